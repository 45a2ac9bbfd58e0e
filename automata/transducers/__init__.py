"""Weighted finite-state transducers of the native core under OpenFst's names (``import tokenfst.fst``).

pynini is not needed. A machine is an object of the core, with one class for each semiring; Python holds its symbol
tables. Operations that OpenFst does in place are methods and return the machine; operations that make a new machine are
functions. All of them take a budget.

Invariant: two machines are combined only if semirings and symbol tables agree, and never machines in which bytes have
different labels (``byte_labels``). Cost: linear in the arcs.

Read in this order: ``weights`` (semirings, arc types), ``symbols`` (tables), ``byte_labels`` (the labels of bytes, and
which machines may meet), ``checks`` (arguments), ``arcs`` (and semirings that must agree), ``property_bits`` (OpenFst's
names of properties), ``vector`` (machines), ``iterating`` (the arcs of a state), ``growth`` (cost of machines built in
Python), ``mapping`` (arc by arc: arcmap, encode, relabel), ``text`` and ``files`` (AT&T text, OpenFst's files, pynini's
objects), ``far`` (archives of files), ``pictures`` (for Graphviz), ``acceptors`` (from columns of arcs and from
automata over bytes, and the conversion to labels of bytes).
"""
