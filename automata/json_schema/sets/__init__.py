"""Sets of JSON values, closed under and, or, not: the normal form of schemas.

A set is split by the type of its values, and each type is a union of cells. String lengths and patterns are in
``strings``, items in ``arrays``, members in ``objects``. Intersections multiply cells, so their number is bounded by
a budget.

Read in this order: ``formula`` (what is to hold of a value), ``constants``, ``strings``, ``arrays``, ``objects``,
``statements`` and ``decisions`` (how many of several sets of objects hold), ``shape``; ``work`` (what a schema may
cost).
"""
