"""Token automata: a language composed with a vocabulary's detokenizing transducer, and determinized.

A mask is computed when it is first requested, and kept. ``expand()`` computes all of them. ``save()`` writes them as an
artifact, or the program from which they can be computed.

Read in this order: ``token_automaton``, ``sizes``, ``classes`` (names of tokens in constraints), ``tensors`` (the
table of an artifact's tensors), ``artifact_format`` (the rules of docs/serving/format.md) and ``artifact``,
``program_arrays`` (artifacts of automata without tables), ``learned`` (facts that are learned while an automaton is
walked), ``pickled``, ``reading_tokens`` (captures and temperatures of token sequences), ``explaining`` (why a token is
not allowed), ``showing`` (what a matcher shows of itself), ``drawing`` (pictures), ``tracing`` (masks along a token
sequence, and their heat map).
"""
