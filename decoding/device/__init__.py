"""The masking loop on a device: gather, apply, choose, advance, without synchronization with the host.

``tables`` packs automata, ``kernels`` computes the loop. The public classes are in ``automata`` (also samplers),
``paged`` (matchers on the host), ``lazy`` (states that come as they are met) and ``weighted``. Here are ``graphs``
(CUDA graphs) and ``generate`` (transformers).
"""
