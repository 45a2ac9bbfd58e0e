"""From sets of values to the rules of their JSON texts.

Read in this order: ``writer`` (shapes to rules), ``layout`` (spelling and white space), ``numbers``, ``items``,
``contains``, ``members`` with ``choices`` (what complements ask of them), ``plain`` (schemas that need no algebra),
``fresh`` (strings that must differ), ``supply`` (how many values there are for items that must), ``program`` (rules to
the program that the core reads), ``written`` (grammars that become one so).
"""
