"""Texts back to calls, whole or while they arrive.

The idea: the automaton of the structural tag with signs says where each part of a text begins and ends; what stands
between two signs is read by what the part is for. Nothing here searches a text for the marks of a format.

Read in this order: ``values`` (JSON and Python's literals), ``elements`` (parameters in a model's style), ``replies``
(what a text says), ``call_events`` (as soon as it is decided), ``reader``.
"""
