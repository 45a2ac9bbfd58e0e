"""Rewrite rules and pynini's interface over transducers of the native core (``import tokenfst.grm``).

Read in this order: ``strings`` (text with square brackets), ``paths`` (the strings of a machine), ``cdrewrite``
(context-dependent rewrite rules), ``machines`` (pynini's ``Fst`` and its constructors), ``functions`` (OpenFst's
operations as pynini's functions); then the modules of ``pynini.lib``: ``pynutil``, ``rewriting`` (``rewrite`` there),
``byte`` and ``utf8``; and that of ``pynini.export``: ``export``.
"""
