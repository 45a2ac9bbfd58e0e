"""Grammars of transducers: rewrite rules, and machines under pynini's names and operators (``import tokenfst.grm``).

Read in this order: ``strings`` (text with square brackets), ``cdrewrite`` (rules that rewrite in a context),
``machines`` (pynini's ``Fst`` and what makes one), ``rewriting`` (a rule applied to a string).
"""
