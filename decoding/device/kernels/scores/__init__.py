"""Scores of tokens in a weighted language, added to logits.

Invariant: ``triton`` gives what ``plain`` gives. Cost: one launch for a step; resident rows are read, for others the
bytes of each token are run.

Read in this order: ``plain`` (the specification, in torch), ``triton`` (its kernels and their launches).
"""
