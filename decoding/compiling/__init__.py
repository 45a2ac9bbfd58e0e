"""Compilation of a constraint and a vocabulary to an automaton over tokens.

A language becomes a finite automaton, a grammar a push-down automaton. With ``tokenization="canonical"`` only the
tokenizer's own token sequences are accepted. Compilation is lazy: states and masks are computed when they are first
requested.

Invariant: two calls with equal arguments give equal automata. Cost: linear in the constraint's program and, once for
each vocabulary, in its bytes.

Read in this order: ``compile``, ``missing_bytes`` (vocabularies that cannot spell every text), ``estimate`` (how large
an automaton will be).
"""
