"""Lazy automata on a device: states and masks are copied there when a text first needs them.

Invariant: a state's number is never reused for another state, so kept rows stay valid. Cost: a new state takes one pass
over its byte classes on the host, and about 1 KB of memory on the host and again on the device.

Read in this order: ``byte_states`` (states by number, on the host), ``mask_pages`` (slots of masks), ``residents``
(what is on the device), ``lazy`` (the automaton).
"""
