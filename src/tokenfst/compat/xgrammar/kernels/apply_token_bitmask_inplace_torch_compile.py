"""Applies masks to logits on any device, under the names of the kernels that xgrammar compiles with
``torch.compile``.

Nothing is compiled here: these are plain operations of torch, so no compiler is needed and the first call is as fast
as later ones.
"""

from tokenfst.compat.xgrammar.kernels.apply_token_bitmask_inplace_torch import (
    apply_token_bitmask_inplace_kernel_indices_torch as apply_token_bitmask_inplace_kernel_indices_torch_compile,
)
from tokenfst.compat.xgrammar.kernels.apply_token_bitmask_inplace_torch import (
    apply_token_bitmask_inplace_kernel_no_indices_torch as apply_token_bitmask_inplace_kernel_no_indices_torch_compile,
)
from tokenfst.compat.xgrammar.kernels.apply_token_bitmask_inplace_torch import (
    apply_token_bitmask_inplace_torch as apply_token_bitmask_inplace_torch_compile,
)

__all__ = [
    "apply_token_bitmask_inplace_kernel_indices_torch_compile",
    "apply_token_bitmask_inplace_kernel_no_indices_torch_compile",
    "apply_token_bitmask_inplace_torch_compile",
]
