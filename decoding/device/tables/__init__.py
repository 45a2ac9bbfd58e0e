"""Automata packed for a device: a few arrays of small integers.

Invariant: state 0 is DEAD and state 1 ENDED for all automata, and equal masks are stored once. Cost: linear in the
artifact's arrays; with limits of tokens, at worst a walk of the vocabulary for each state.

Read in this order: ``tables``, ``stacks``, ``pool`` (arrays that grow within a capacity), ``weights``.
"""
