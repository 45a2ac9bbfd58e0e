"""Lattices: sums over the paths of acyclic graphs whose weights torch computes, with gradients.

The gradient of a log partition function by an arc's weight is the arc's posterior, so it comes from one forward and one
backward pass of the core, whatever network made the weights.

Read in this order: ``lattice`` (``Lattice``), ``texts`` (the lattice of a text in a weighted language).
"""
