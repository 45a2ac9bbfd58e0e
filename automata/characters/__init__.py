r"""Character sets: conversion between code points and bytes (convention 1).

A set of characters becomes a minimal deterministic automaton over its byte encoding. In UTF-8, "any character" takes 10
states and ``\w`` a few hundred.

Invariant: a word spells exactly one character. Cost: linear in the blocks of code points that a range cuts; tables of
Unicode are made once in a process, in at most 0.3 s each.

Read in this order: ``utf8`` (sets of code points), ``classes`` (classes of ``re``), ``case`` (characters that differ
only in case), ``properties`` (Unicode properties by name), ``codes`` (other encodings of a character, such as JSON
escapes).
"""
