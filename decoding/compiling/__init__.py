"""From a constraint and a vocabulary to an automaton over tokens.

A language becomes a finite automaton, a grammar a push-down automaton; with ``tokenization="canonical"`` only the
tokenizer's own sequences are left. Nothing is walked yet: states and masks are made when they are first asked for.

Read in this order: ``compile``, ``missing_bytes`` (vocabularies that cannot spell every text).
"""
