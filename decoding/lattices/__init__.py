"""Lattices: sums over the paths of acyclic graphs with torch weights, with gradients.

The gradient of the log partition function with respect to an arc's weight is the posterior probability of that arc. So
one forward and one backward pass of the core give the gradient, whatever network computed the weights.

Invariant: sums are taken in float64, whatever the dtype of the weights. Cost: linear in the arcs, once forward and
twice backward.

Read in this order: ``lattice`` (``Lattice``), ``texts`` (the lattice of a text in a weighted language).
"""
