"""Device automata: tables whose states are numbers, and the loop of masks, choices and advances over them.

Invariant: a chosen token is an allowed one whatever the logits are; a number out of range counts as DEAD. Cost: one
pass over the logits of a row.

Read in this order: ``options`` (of sampling), ``masks``, ``operators`` (for ``torch.compile``), ``automaton``,
``pushdown`` (stacks of bounded depth), ``composing`` (no stored masks), ``sampling`` (random tokens), ``verification``
(draft trees).
"""
