"""Weighted grammars: texts that nest, with weights on the alternatives of rules.

A text weighs the sum over its derivations of the products of their weights. What all texts that begin in one way weigh
together is exact, though there are infinitely many of them.

Read in this order: ``nets`` (the rules as automata), ``totals`` (sums over all words of each rule), ``closures`` (empty
words, rules that begin with one another, and what the core's chart is made of), ``grammar`` (``WeightedGrammar``).
"""
