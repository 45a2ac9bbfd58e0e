"""Rewrite rules and pynini's interface over transducers of the native core (``import tokenfst.grm``).

Read in this order: ``strings`` (text with square brackets), ``cdrewrite`` (context-dependent rewrite rules),
``machines`` (pynini's ``Fst`` and its constructors), ``functions`` (OpenFst's operations as pynini's functions),
``rewriting`` (application of a rule to a string).
"""
