"""Matchers in Python: those that follow the rows of a batch, and those with exact token limits.

Invariant: a matcher holds one node more than it has tokens; an error leaves it unchanged. Cost: a step and a mask for
each token; exact limits may search, and keep what they find.

Read in this order: ``history`` (the nodes and tokens of one decoding), ``node_matcher`` (a matcher over any graph of
nodes), ``reach`` and ``reach_matcher`` (exact token limits for push-down automata), ``prefixes`` (finds the matcher of
a row by its token ids), ``unconstrained`` (the value that stands for "no constraint").
"""
