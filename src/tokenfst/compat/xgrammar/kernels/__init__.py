"""Kernels that apply masks to logits, one module for each of xgrammar's kernels, under its name.

On the CPU they use the native core, elsewhere plain torch (``..._torch``, ``..._torch_compile``), a Triton kernel
(``..._triton``, and ``..._cuda``, which is the same kernel here), or MLX. As in xgrammar, logits beyond
``vocab_size`` keep their values; tokenfst's own ``apply_token_bitmask_inplace`` masks them.

Read in this order: ``apply_token_bitmask_inplace_cpu``, ``apply_token_bitmask_inplace_torch``,
``apply_token_bitmask_inplace_torch_compile``, ``apply_token_bitmask_inplace_triton``,
``apply_token_bitmask_inplace_cuda``, ``apply_token_bitmask_mlx``.
"""
