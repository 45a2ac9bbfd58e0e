"""Scoring of labels and label lists, and search in label sets that are too large to score exhaustively.

Read in this order: ``tries``, ``trie_pass``, ``scoring``, ``lists``, ``search``; ``check`` verifies which labels an
automaton accepts.
"""
