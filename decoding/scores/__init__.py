"""Token scores under weighted languages: a log weight for each next token, in place of the one bit of a mask.

A walk visits nodes. A node has a score for each token, which is -inf where the token leads out of the language.
``ScoreMatcher`` walks one text and adds scores to logits in place.

Invariant: the scores of a text's tokens add up to its log weight. Cost: a walk of the vocabulary for each new node; a
kept row costs one addition over the logits.

Read in this order: ``rows`` (the scores of a node, and a bounded store of them), ``matcher``, ``kept_rows`` (what the
following share), ``automaton`` (weighted languages over bytes), ``grammar_scores`` (weighted grammars),
``token_ngrams`` (n-gram models over token ids).
"""
