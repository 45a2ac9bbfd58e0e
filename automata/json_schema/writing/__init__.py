"""From sets of values to the grammar rules of their JSON texts.

Invariant: the words of a rule are the texts of its set, and short cuts make the same words as the general way. Cost:
linear in the cells; counted items and complements multiply states by choices, within the budget.

Read in this order: ``writer`` (value sets to rules), ``layout`` (spelling and white space), ``numbers``, ``items``,
``contains``, ``members`` with ``choices`` (how members satisfy complements), ``plain`` (a fast path for schemas without
algebra), ``distinct`` (strings that must differ), ``cardinality`` (lower bounds of the number of values, for
``uniqueItems``), ``program`` (rules to the core's program), ``written`` (grammars that this room wrote, which become a
program in one pass).
"""
