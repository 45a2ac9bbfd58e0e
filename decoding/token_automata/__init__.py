"""Token automata: a language composed with a vocabulary's detokenizing transducer, and determinized.

A mask is computed when it is first requested, and kept. ``expand()`` computes all of them. ``save()`` writes them as an
artifact, or the program from which they can be computed.

Invariant: every allowed token has a completion, and every token that has one is allowed (convention 7). Cost: a mask
takes microseconds from fragments and up to milliseconds by a walk of the vocabulary, once for each state.

Read in this order: ``token_automaton``, ``sizes``, ``learned`` (facts that are learned while an automaton is walked),
``held_constraints`` (what an automaton keeps of its constraint), ``pickled``, ``reading_tokens`` (captures and
temperatures of token sequences), ``explaining`` (why a token is not allowed), ``showing`` (what a matcher shows of
itself), ``drawing`` (pictures), ``tracing`` (masks along a token sequence, and their heat map). Files are read and
written by ``decoding/artifacts``.
"""
