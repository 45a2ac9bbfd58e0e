"""Decoders: the plain loop, speculation, automata-guided beam search, exact-length sampling, transformers' processor.

A decoder takes a model (``decoding/models``) and constraint rows (``decoding/rows``) that advance together.

Invariant: every text that a decoder returns is accepted, and complete within ``max_new_tokens``. Cost of a step: one
call of the model over all unfinished rows, and a mask for each.

Read in this order: ``jump_forward`` with ``forced_runs`` (the plain loop), ``logits_processor`` with ``generate_calls``
and ``scores_processor``, ``beam_search`` with ``beam_trace`` and ``beam_search_generate``, ``exact_length_sampling``,
``drafts`` and ``speculation``.
"""
