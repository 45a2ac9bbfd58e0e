"""Application of masks to logits, one module for each of xgrammar's kernels, under its names.

On the CPU the native core does it. Elsewhere it is plain torch (``..._torch``, ``..._torch_compile``), a Triton kernel
(``..._triton``, and ``..._cuda``, which is the same one here), or MLX. As in xgrammar, logits beyond ``vocab_size``
keep their values; ``apply_token_bitmask_inplace`` of tokenfst masks them out.

Read in this order: ``apply_token_bitmask_inplace_cpu``, ``apply_token_bitmask_inplace_torch``,
``apply_token_bitmask_inplace_torch_compile``, ``apply_token_bitmask_inplace_triton``,
``apply_token_bitmask_inplace_cuda``, ``apply_token_bitmask_mlx``.
"""
