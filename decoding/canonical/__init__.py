"""Canonical tokenizations: of every text of a language, the one token sequence that its tokenizer makes.

Read in this order: ``nodes``, ``automaton``, ``lengths`` (token budgets), ``matcher``.
"""
