"""Analyses and transformations of rule tables, which map names to expressions.

Nothing here depends on ``Grammar``. Every construction counts the nodes that it creates against a budget. Least fixed
points over rules are computed one strongly connected component at a time.

Invariant: the start of a rewritten table has the same words as before, except in ``truncation`` and ``product``, which
say what they leave out. Cost: linear in the rules for analyses; constructions count their nodes.

Read in this order: ``graph`` (the call graph), ``permutations``, ``lint``; ``left_recursion``,
``inlining``, ``pushdown`` and ``truncation`` (from rules to the form that the engine runs); ``shortest_word``,
``finiteness``; ``leaf_walks``, ``product_ends`` and ``product`` (the intersection with a regular language).
"""
