"""Rewrite rules and pynini's interface over transducers of the native core (``import tokenfst.grm``).

Read in this order: ``strings`` (text with square brackets), ``cdrewrite`` (context-dependent rewrite rules),
``machines`` (pynini's ``Fst`` and its constructors), ``rewriting`` (application of a rule to a string).
"""
