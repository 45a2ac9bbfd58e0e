"""Masks applied to logits, by the names of xgrammar's kernels; each module is one of them.

On the CPU the native core does it. Elsewhere plain torch (``..._torch``, ``..._torch_compile``), a Triton kernel
(``..._triton``, and ``..._cuda``, which is the same one here), or MLX. As there, logits behind ``vocab_size`` stay as
they are; ``apply_token_bitmask_inplace`` of the package forbids them.

Read in this order: ``apply_token_bitmask_inplace_cpu``, ``apply_token_bitmask_inplace_torch``,
``apply_token_bitmask_inplace_torch_compile``, ``apply_token_bitmask_inplace_triton``,
``apply_token_bitmask_inplace_cuda``, ``apply_token_bitmask_mlx``.
"""
