"""Constraint state for a batch: the position of each row in its automaton, and the tokens that it allows next.

Invariant: an unfinished row allows a token; a finished one allows end tokens only. Cost: a mask and an advance for
each row.

Read in this order: ``rows``, ``reach_rows`` (exact numbers of tokens), ``edges`` and ``tensor_rows`` (the same as
matrix products), ``generations`` (the result type of the decoders).
"""
