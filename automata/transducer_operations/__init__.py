"""What makes new transducers of given ones, and of strings, by OpenFst's names.

The constructions themselves are the core's; here are the arguments, the tables, the budgets, and what is put together
of several of them. docs/fst/ has a page for each operation, with its cost.

Read in this order: ``counting`` (drawn paths), ``operations``, ``replacing`` (machines in the place of labels),
``building`` (machines from strings), ``lazy`` (machines whose states are made when they are asked for).
"""
