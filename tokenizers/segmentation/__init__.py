"""Segmentation of a text by a tokenizer: pre-token boundaries and merges of byte pairs.

Invariant: the tokens of a text are those of the tokenizer itself. Cost: tables once for each vocabulary; then a
look-up for each token.

Read in this order: ``character_kinds``, ``split_pattern`` (the pattern of the boundaries), ``cuts`` (the same, token by
token), ``byte_pairs`` (which tokens may be adjacent), ``ordinary_texts`` (what a tokenizer does not change),
``tokenizer`` (all of it together).
"""
