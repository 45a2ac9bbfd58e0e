"""Analyses and rewritings of a table of rules: name to expression. Nothing here knows ``Grammar``.

Every construction counts what it makes against a budget. Least fixed points over rules are found component by
component.

Read in this order: ``graph`` (who calls whom), ``metering``, ``permutations``, ``lint``; ``left_recursion``,
``inlining``, ``pushdown`` and ``truncation`` (from rules to what the engine runs); ``shortest_word``, ``finiteness``;
``leaf_walks``, ``product_ends`` and ``product`` (the intersection with a regular language).
"""
