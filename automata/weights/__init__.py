"""Weighted languages: texts with weights, as automata over bytes in the log semiring.

A text's weight is the sum over its paths of the products of their weights. Sums over all texts, though there are
infinitely many, come from linear equations over the cycles.

Read in this order: ``machine`` (the arrays), ``sums`` (of all paths, exactly), ``language`` (``WeightedLanguage``),
``drawing_texts`` (samples), ``entropy`` (of highest entropy), ``preferences`` (``prefer``, ``boost``), ``edits``
(``weighted_edits``), ``choices`` (``weighted_template``), ``arpa`` (the file) and ``ngrams`` (``NGramModel``),
``look_ahead`` (what a model expects), ``grammar_mass`` (sums over grammars that need a stack).
"""
