"""OpenFst: the only door to pynini, and the labels and files that are exchanged with it (convention 2).

Machines cross as numpy arrays of arcs. Label 0 is epsilon, byte b has label b + 1. Importing a module of this room
does not import pynini; calling an operation does.

Read in this order: ``labels``, ``fst`` (arcs, and the operations of OpenFst), ``label_kinds`` (what labels stand
for), ``headers`` (what its files begin with), ``files`` (its binary files, and text).
"""
