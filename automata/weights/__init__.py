"""Weighted languages: automata over bytes in the log semiring.

The weight of a text is the sum, over its paths, of the product of their weights. Sums over infinitely many texts are
computed from linear equations over the cycles.

Invariant: every state of an automaton is on a path from the start to a final state. Cost: linear in the arcs, and cubic
in the states of a common cycle; the budget bounds the memory, which is quadratic in them.

Read in this order: ``machine`` (the arrays), ``sums`` (over all paths, exactly), ``language`` (``WeightedLanguage``),
``drawing_texts`` (samples), ``entropy`` (maximum entropy), ``preferences`` (``prefer``, ``boost``), ``edits``
(``weighted_edits``), ``choices`` (``weighted_template``), ``arpa`` (the file format) and ``ngrams`` (``NGramModel``),
``look_ahead`` (expected continuations under a model), ``grammar_mass`` (sums over grammars that need a stack).
"""
