"""Captures: which parts of a text a constraint's named groups and rules have read.

The hot walk knows nothing of them. A constraint that has names brings a *reading*, how its texts are cut into parts,
beside its expression; a text is read by it when somebody asks.

Read in this order: ``trees`` (readings), ``code`` (readings as instructions), ``run`` (texts read by them), ``values``
(what was captured), ``reader`` (the door), ``heat`` (which temperature the rules that are open say), ``captured`` (the
part of all constraints).
"""
