"""Matchers in Python: those that follow the rows of a batch, and those that count tokens exactly.

Read in this order: ``history`` (the way here), ``walked`` (matchers over anything that can be walked), ``reach`` and
``reach_matcher`` (exact numbers of tokens), ``prefixes`` (which matcher belongs to a row's ids).
"""
