"""Scores of tokens under weighted languages: what a mask is to a language, a row of logarithms to a weighted one.

A walk has nodes; a node has a score for each token, and -inf where the token leads out of the language.
``ScoreMatcher`` walks one text and adds scores to logits in place.

Read in this order: ``rows`` (the scores of a node, and a bounded store of them), ``automaton`` (weighted languages over
bytes), ``grammar_scores`` (weighted grammars), ``token_ngrams`` (n-gram models over token ids), ``matcher``.
"""
