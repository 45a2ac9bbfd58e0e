"""Languages: sets of byte strings as immutable values with exact boolean algebra.

A ``Language`` holds an expression. Questions about it are answered by determinizing lazily, and each answer that is
"no" carries a word that shows it. Budgets bound every question.

Read in this order: ``operands`` (what operators take), ``constraint`` (what all sets of texts are, grammars among
them), ``language``, ``engine`` (its automaton in the native core), ``emptiness``, ``finiteness``, ``answer``,
``reversal`` (and bytes replaced by others), ``quotients``, ``pickled``. The texts of a language, counted and drawn,
are in ``texts``; pictures and explanations in ``display``.
"""
