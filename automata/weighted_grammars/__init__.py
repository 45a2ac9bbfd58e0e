"""Weighted context-free grammars: weights on the alternatives of rules.

The weight of a text is the sum, over its derivations, of the product of their weights. The total weight of all texts
with a given prefix is computed exactly, although there may be infinitely many of them.

Invariant: a sum is exact up to the rounding of float64, and zero only where no text has weight. Cost: cubic in the
rules that call each other; a chart for each text.

Read in this order: ``nets`` (the rules as automata), ``totals`` (sums over all words of each rule), ``closures`` (empty
words, left corners, and the input of the core's chart parser), ``expectations`` (means over all texts), ``one_way``
(whether each text has one derivation), ``grammar`` (``WeightedGrammar``).
"""
