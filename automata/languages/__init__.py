"""Languages: sets of byte strings as immutable values with exact boolean algebra.

A ``Language`` holds an expression. Questions about it are answered by determinizing lazily, and each answer that is
"no" carries a word that shows it. Budgets bound every question.

Read in this order: ``language``, ``engine`` (its automaton in the native core), ``emptiness``, ``answer``,
``sampling``, ``reversal``; then how languages are shown: ``readable``, ``drawing``.
"""
