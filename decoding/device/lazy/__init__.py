"""Lazy automata on a device: states and masks come there as texts meet them.

Read in this order: ``byte_states`` (states by number, on the host), ``mask_pages`` (slots of masks), ``residents``
(what is on the device), ``lazy`` (the automaton).
"""
