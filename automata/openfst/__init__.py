"""OpenFst interoperability: the only room that imports pynini, and the labels and files that are exchanged with it.

Machines are exchanged as numpy arrays of arcs. Label 0 is epsilon, and byte b has label b + 1 (convention 2). Importing
a module of this room does not import pynini; calling an operation does.

Invariant: weights are never dropped silently, and what a label means is given by symbol tables or by the caller, never
guessed. Cost: linear in the arcs, apart from OpenFst's own operations.

Read in this order: ``labels``, ``fst`` (arcs, and machines of pynini), ``byte_automata`` (deterministic automata as
machines, and their operations), ``label_kinds`` (what labels stand for), ``headers`` (the headers of its files),
``files`` (its binary and text files).
"""
