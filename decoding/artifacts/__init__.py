"""Artifacts: the files in which token automata, or the programs that make them, are kept.

Invariant: what is read from a file has every tensor of its format, with the right dtype and consistent shapes, and its
content has the digest that its header names. This room does not know automata: ``token_automata`` writes and reads
automata with it. Cost: one SHA-256 of the file.

Read in this order: ``tensors`` (the table of an artifact's tensors), ``artifact_format`` (the rules of
docs/serving/format.md), ``artifact`` (writing and reading files), ``program_arrays`` (programs as arrays, for artifacts
of automata without tables).
"""
