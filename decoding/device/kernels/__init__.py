"""The kernels of the masking loop: a specification in plain torch, and Triton kernels that compute the same.

``triton`` launches the kernels of ``triton_kernels``, ``triton_greedy_kernels`` and ``triton_stack_kernels``.
``plain`` and ``plain_stacks`` specify the results of the kernels bit for bit. The folder ``sampling`` has the kernels
of a sampled step, and the folder ``scores`` those of weighted languages.

Invariant: a kernel gives what its specification gives. Cost: one or two launches for a step.

Read in this order: ``plain``, ``plain_stacks``, ``launching``, ``triton``, ``triton_kernels``,
``triton_stack_kernels``, ``triton_greedy_kernels``, ``compose`` (masks from the trie, level by level).
"""
