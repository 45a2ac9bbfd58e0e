"""Lattices: sums over the paths of acyclic graphs with torch weights, with gradients.

The gradient of the log partition function with respect to an arc's weight is the posterior probability of that arc. So
one forward and one backward pass of the core give the gradient, whatever network computed the weights.

Read in this order: ``lattice`` (``Lattice``), ``texts`` (the lattice of a text in a weighted language).
"""
