"""Automata over symbols (labels, tags, actions), and linear temporal logic on finite traces (LTLf).

The automaton of a formula is built by formula progression: a state is the formula that the rest of the trace must
satisfy. The construction is doubly exponential in the worst case and is counted against a budget.

Invariant: an automaton is minimal and numbered breadth-first, so equal languages have equal tables. Cost: the product
of the numbers of states for operators.

Read in this order: ``automaton``, ``syntax`` with ``declare``, ``progression``, ``ltlf``.
"""
