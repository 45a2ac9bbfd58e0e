"""The kernels of the masking loop: the plain torch that specifies it, Triton that computes it.

The greedy kernel is in ``triton_kernels``; ``triton`` starts it. ``plain``, ``plain_stacks`` and ``plain_sampling`` say
what the kernels give, bit for bit.

Read in this order: ``plain``, ``plain_stacks``, ``launching``, ``triton``, ``triton_kernels``,
``triton_stack_kernels``, ``plain_sampling``, ``triton_sampling``, ``triton_sampling_kernels``, ``compose``,
``plain_scores`` and ``triton_scores`` (weighted languages).
"""
