"""Masks applied to logits on any device, by xgrammar's names of what it compiles by ``torch.compile``.

Nothing is compiled here: these are torch's operations as they are, so no compiler is needed and the first call is as
quick as the others.
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
