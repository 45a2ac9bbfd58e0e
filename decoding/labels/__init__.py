"""Scoring labels, lists of labels, and searching sets of labels that are too large to score.

Read in this order: ``tries``, ``trie_pass``, ``scoring``, ``lists``, ``search``; ``check`` proves which labels a
machine has.
"""
