"""Weighted context-free grammars: weights on the alternatives of rules.

The weight of a text is the sum, over its derivations, of the product of their weights. The total weight of all texts
with a given prefix is computed exactly, although there may be infinitely many of them.

Read in this order: ``nets`` (the rules as automata), ``totals`` (sums over all words of each rule), ``closures`` (empty
words, left corners, and the input of the core's chart parser), ``expectations`` (means over all texts), ``one_way``
(whether each text has one derivation), ``grammar`` (``WeightedGrammar``).
"""
