"""Sets of JSON values, closed under intersection, union and complement: the normal form of schemas.

A set is divided by the type of its values, and each type is a union of cells. String lengths and patterns are in
``strings``, items in ``arrays``, members in ``objects``.

Invariant: operations are exact; a set from which something was left out says so, and is never complemented. Cost: an
intersection multiplies the numbers of cells, which a limit bounds.

Read in this order: ``formula`` (boolean formulas over assertions about a value), ``constants``, ``strings``,
``arrays``, ``objects``, ``statements`` and ``decisions`` (how many of several sets contain an object), ``value_sets``;
``work`` (the budget of a schema).
"""
