"""Operations that construct new transducers from transducers or strings, under OpenFst's names.

The native core does the constructions. The modules here check arguments, symbol tables and budgets, and define the
operations that combine several constructions. docs/fst/ has a page for each operation, with its cost.

Invariant: an operation gives OpenFst's result, or a machine that is equivalent to it, and leaves its arguments as they
were. Cost: states and arcs are counted against the budget while they are made.

Read in this order: ``counting`` (sampled paths), ``operations``, ``replacing`` (substitution of machines for labels),
``building`` (machines from strings), ``lazy`` (machines whose states are made on demand).
"""
