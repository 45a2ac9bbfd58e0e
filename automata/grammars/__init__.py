"""Grammars: context-free languages as immutable values, and constructions that combine several constraints.

Invariant: a grammar is immutable, every rule that is called exists, and calls stand only under concatenation, union
and repetition. Cost: construction is linear in the rules; intersections and the nearest text are bounded by the
budget.

Read in this order: ``grammar`` (the value), ``operators`` (its algebra), ``conflict`` (steps after which one stack is
not enough), ``network`` (pictures), ``captured`` (named rules), ``assembly`` (combines constraints: the result is a
language if all parts are languages, else a grammar), ``lists`` and ``templates``, ``repairing`` (the nearest text).
"""
