"""Languages: sets of byte strings as immutable values with an exact boolean algebra.

A ``Language`` holds an expression. Queries determinize it lazily. A query whose answer is "no" also returns a word that
proves it. Budgets bound every query.

Invariant: a language is immutable, and every answer is exact. Cost: operators take constant time; queries search the
states, exponentially many in the worst case, within the budget.

Read in this order: ``operands`` (arguments that the operators accept), ``constraint`` (the base class of all sets of
texts, grammars included), ``language``, ``engine`` (the automaton in the native core), ``emptiness``, ``finiteness``,
``answer``, ``reversal`` (and substitution of bytes), ``quotients``, ``pickled``. The room ``texts`` counts and samples
the texts of a language; the room ``display`` has pictures and explanations.
"""
