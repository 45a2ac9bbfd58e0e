"""Transducers: weighted machines of the native core under OpenFst's names (``import tokenfst.fst``), without
pynini.

A machine is an object of the core, one class a semiring; Python holds its symbol tables. Operations that
OpenFst does in place are methods and return the machine; those that make a new one are functions. All of them
take a budget.

Read in this order: ``weights`` (semirings, arc types), ``symbols`` (tables), ``checks`` (arguments),
``vector`` (machines and arcs), ``text`` and ``files`` (AT&T text, OpenFst's files, pynini's objects),
``far`` (archives of files), ``operations`` (what makes a new machine), ``mapping`` (arc by arc: arcmap, encode,
relabel), ``replacing`` (machines in the place of labels), ``building`` (machines from strings), ``lazy`` (machines
whose states are made when they are asked for), ``acceptors`` (from automata over bytes).
"""
