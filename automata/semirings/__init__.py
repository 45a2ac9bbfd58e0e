"""Semirings written in Python, and machines over them, for research (``import tokenfst.semirings``).

A weight may be any Python value. The native semirings of ``tokenfst.fst`` are faster by orders of magnitude.

Invariant: an operation raises an error if the semiring lacks a property that it needs. Cost: that of the algorithm,
with a Python call for each weight.

Read in this order: ``protocol`` (the semiring protocol), ``numbers`` (the semirings of ``tokenfst.fst`` under this
protocol), ``structured`` (strings, pairs, powers, expectations), ``machines`` (states and arcs), ``distances`` (sums
over paths), ``operations`` (constructions of new machines), ``files`` (OpenFst's files of such weights).
"""
