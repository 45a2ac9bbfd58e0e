"""Semirings written in Python, and machines over them: for research, and slow (``import tokenfst.semirings``).

What ``tokenfst.fst`` has natively is quicker by orders of magnitude; here a weight may be any value.

Read in this order: ``protocol`` (what a semiring says of itself), ``numbers`` (those of ``tokenfst.fst`` as such),
``structured`` (strings, pairs, powers, expectations), ``machines`` (states and arcs), ``distances`` (sums over paths),
``operations`` (what makes a new machine).
"""
