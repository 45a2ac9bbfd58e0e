"""The masking loop on a device: gather mask, apply, choose, advance, with no word to the host.

``tables`` packs automata, ``kernels`` computes the loop; here is what users of a device import.

Read in this order: ``automaton``, ``masks``, ``operators`` (for ``torch.compile``), ``matchers`` (masks paged in),
``pushdown`` (stacks of bounded depth), ``composing`` (no masks kept), ``sampling`` (tokens drawn), ``graphs`` (CUDA
graphs), ``generate`` (transformers), ``scores`` (weighted languages).
"""
