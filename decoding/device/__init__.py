"""The masking loop on a device: gather, apply, choose, advance, without synchronization with the host.

``tables`` packs automata, ``kernels`` computes the loop; the modules here are the public interface.

Read in this order: ``automaton``, ``masks``, ``operators`` (for ``torch.compile``), ``paging`` and ``matchers`` (masks
paged in), ``pushdown`` (stacks of bounded depth), ``composing`` (no stored masks), ``sampling`` (random tokens),
``verification`` (draft trees), ``graphs`` (CUDA graphs), ``generate`` (transformers), ``score_rows`` and ``scores``
(weighted languages), ``score_matchers`` (their rows paged in).
"""
