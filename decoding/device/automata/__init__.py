"""Device automata: tables whose states are numbers, and the loop of masks, choices and advances over them.

Read in this order: ``options`` (of sampling), ``masks``, ``operators`` (for ``torch.compile``), ``automaton``,
``pushdown`` (stacks of bounded depth), ``composing`` (no stored masks), ``sampling`` (random tokens), ``verification``
(draft trees).
"""
