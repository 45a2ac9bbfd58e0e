"""The constraint's side of every decoder: where each row of a batch stands, and what it may take next.

Read in this order: ``rows``, ``reach_rows`` (exact numbers of tokens), ``edges`` and ``tensor_rows`` (the same as
matrix products), ``generations`` (what decoders return).
"""
