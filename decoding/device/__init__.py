"""The masking loop on a device: gather, apply, choose, advance, without synchronization with the host.

``tables`` packs automata, ``kernels`` computes the loop. The public classes are in ``automata`` (also samplers),
``paged`` (matchers on the host), ``lazy`` (states that are copied when a text first needs them) and ``weighted``. In
this room itself are ``graphs`` (CUDA graphs) and ``generate`` (transformers).

Invariant: masks and states are those of matchers on the host, bit for bit. Cost: a constant number of launches for
each step of a batch; memory for tables, within a capacity.
"""
