"""From sets of values to the grammar rules of their JSON texts.

Read in this order: ``writer`` (shapes to rules), ``layout`` (spelling and white space), ``numbers``, ``items``,
``contains``, ``members`` with ``choices`` (how members satisfy complements), ``plain`` (a fast path for schemas without
algebra), ``distinct`` (strings that must differ), ``cardinality`` (lower bounds on the number of values, for
``uniqueItems``), ``program`` (rules to the core's program), ``written`` (grammars that this room wrote, which become a
program in one pass).
"""
