"""Transducers: weighted machines of the native core under OpenFst's names (``import tokenfst.fst``), without
pynini.

A machine is an object of the core, one class a semiring; Python holds its symbol tables. Operations that
OpenFst does in place are methods and return the machine; those that make a new one are functions. All of them
take a budget.

Read in this order: ``weights`` (semirings, arc types), ``symbols`` (tables), ``checks`` (arguments), ``arcs`` (and what
two machines must agree in), ``vector`` (machines), ``growth`` (costs of what Python makes), ``mapping`` (arc by arc:
arcmap, encode, relabel), ``text`` and ``files`` (AT&T text, OpenFst's files, pynini's objects), ``far`` (archives of
files), ``pictures`` (for Graphviz), ``acceptors`` (from automata over bytes).
"""
