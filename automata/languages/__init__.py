"""Languages: sets of byte strings as immutable values with exact boolean algebra.

A ``Language`` holds an expression. Questions about it are answered by determinizing lazily, and each answer that is
"no" carries a word that shows it. Budgets bound every question.

Read in this order: ``constraint`` (what all sets of texts are, grammars among them), ``language``, ``engine`` (its
automaton in the native core), ``emptiness``, ``finiteness``, ``answer``, ``walk`` (texts by number), ``sampling``
(readable ones), ``explanation`` (where a text leaves), ``reversal`` (and bytes replaced by others), ``pickled``; then
how languages are shown: ``readable``, ``drawing``.
"""
