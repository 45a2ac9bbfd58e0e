"""Constraint state for a batch: the position of each row in its automaton, and the tokens that it allows next.

Read in this order: ``rows``, ``reach_rows`` (exact numbers of tokens), ``edges`` and ``tensor_rows`` (the same as
matrix products), ``generations`` (the result type of the decoders).
"""
