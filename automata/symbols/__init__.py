"""Automata over symbols (labels, tags, actions), and linear temporal logic on finite traces.

A formula's automaton is found by progression: what is left of the formula after a letter. It is doubly exponential at
worst, and counted against a budget.

Read in this order: ``automaton``, ``syntax`` with ``declare``, ``progression``, ``ltlf``.
"""
