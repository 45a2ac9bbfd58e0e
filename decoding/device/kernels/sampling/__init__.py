"""The sampled step: one token of each row is drawn by the row's own random numbers, with top-k, top-p and penalties.

Invariant: a draw does not depend on the batch, since all sums are of integers; ``triton`` gives what ``plain`` gives.
Cost: two launches for a step.

Read in this order: ``plain`` (the specification, in torch), ``triton`` (launches), ``triton_kernels``.
"""
