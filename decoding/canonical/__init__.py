"""Canonical tokenizations: for each text of a language, only the token sequence that its tokenizer produces.

Read in this order: ``nodes``, ``automaton``, ``lengths`` (token limits), ``matcher``.
"""
