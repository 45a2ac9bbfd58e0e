"""Automata packed for a device: a few arrays of small integers.

Read in this order: ``tables``, ``stacks``, ``pool`` (arrays that grow within a capacity), ``weights``.
"""
