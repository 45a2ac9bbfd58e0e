"""The kernels of the masking loop: a specification in plain torch, and Triton kernels that compute the same.

``triton`` launches the kernels of ``triton_kernels``, ``triton_greedy_kernels`` and ``triton_stack_kernels``.
``plain``, ``plain_stacks`` and ``plain_sampling`` specify the results of the kernels bit for bit.

Invariant: a kernel gives what its specification gives. Cost: one or two launches for a step.

Read in this order: ``plain``, ``plain_stacks``, ``launching``, ``triton``, ``triton_kernels``,
``triton_stack_kernels``, ``triton_greedy_kernels``, ``plain_sampling``, ``triton_sampling``,
``triton_sampling_kernels``, ``compose``, ``plain_scores`` and ``triton_scores`` (weighted languages).
"""
