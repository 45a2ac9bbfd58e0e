"""Expressions: the syntax graph that every front end builds and the native core compiles.

An expression is an immutable graph of extended regular operations over bytes: sets, concatenation, union, intersection,
complement, counted repetition, look-behind, and calls of rules. Equal subexpressions are shared, so a graph may be far
smaller than the text it is written as.

Invariant: a node never changes once it is part of another; only the body of a recursion is set after its variable.
Cost: a node takes time linear in the number of its operands.

Read in this order: ``expression`` (the nodes), ``program`` (the serialized form that the core reads), ``digests``
(equality of programs by hash), ``tables`` (finished automata as leaves), ``minimization`` (minimal deterministic
automata), ``distinct`` (the distinct rows of large tables), ``exclusion_marks`` (strings that must differ),
``rebuilding`` (copies of nodes with other operands), ``metering`` (counting work against a budget).
"""
