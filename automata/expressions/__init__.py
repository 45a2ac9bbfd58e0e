"""Expressions: the value that every front end makes and the native core reads.

An expression is an immutable graph of extended regular operations over bytes: sets, concatenation, union,
intersection, complement, counted repetition, look-behind, and calls of rules. Equal parts are shared, so a graph may
be far smaller than the text it is written as. Making a node is O(its operands).

Read in this order: ``expression`` (the nodes), ``program`` (the flat form that the core reads), ``digests`` (which
programs are one), ``tables`` (finished automata as leaves), ``minimization`` (least deterministic automata),
``exclusion_marks`` (strings that must differ), ``rebuilding`` (nodes with other operands), ``metering`` (counting work
against a budget).
"""
