"""Rewrite rules and pynini's interface over transducers of the native core (``import tokenfst.grm``).

Invariant: results are those of pynini for the same calls, apart from what docs/fst/grammars.md lists. Cost: that of
the operations of the core.

Read in this order: ``strings`` (text with square brackets), ``paths`` (the strings of a machine), ``cdrewrite``
(context-dependent rewrite rules), ``machines`` (pynini's ``Fst`` and its constructors), ``functions`` (OpenFst's
operations as pynini's functions); then the modules of ``pynini.lib``: ``pynutil``, ``rewriting`` (``rewrite`` there),
``byte`` and ``utf8``; and that of ``pynini.export``: ``export``.
"""
