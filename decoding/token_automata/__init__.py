"""Token automata: a language composed with a vocabulary's detokenizing transducer, and determinized.

A mask is made when it is first asked for and kept. ``expand()`` makes all of them; ``save()`` writes them as an
artifact, or the program that they are made from.

Read in this order: ``token_automaton``, ``classes`` (names of tokens in constraints), ``tensors`` (the table of
an artifact's tensors), ``artifact_format`` (the rules of docs/serving/format.md) and ``artifact``, ``program_arrays``
(artifacts of automata that have no tables), ``learned`` (what they find out while they are walked), ``pickled``,
``reading_tokens`` (what named and heated rules read of tokens), ``explaining`` (why a token is not allowed),
``drawing`` (pictures), ``tracing`` (masks along a token sequence, and
their heat map).
"""
