"""Sets of JSON values, closed under intersection, union and complement: the normal form of schemas.

A set is divided by the type of its values, and each type is a union of cells. String lengths and patterns are in
``strings``, items in ``arrays``, members in ``objects``. An intersection multiplies the numbers of cells, so a budget
bounds their number.

Invariant: operations are exact; a set from which something was left out says so, and is never complemented. Cost:
intersections multiply the numbers of cells, which a limit bounds.

Read in this order: ``formula`` (boolean formulas over assertions about a value), ``constants``, ``strings``,
``arrays``, ``objects``, ``statements`` and ``decisions`` (how many of several sets of objects hold), ``value_sets``;
``work`` (the budget of a schema).
"""
