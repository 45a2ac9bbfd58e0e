"""Scoring of labels and label lists, and search in label sets that are too large to score exhaustively.

Invariant: a label's probability is the exact sum over the token sequences that count for it. Cost: the nodes of the
labels' trie times the model's cost of a token.

Read in this order: ``tries``, ``trie_pass``, ``scoring``, ``lists``, ``search``; ``check`` verifies which labels an
automaton accepts.
"""
