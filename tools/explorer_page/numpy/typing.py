"""Names for annotations."""

from typing import Any

from numpy import ndarray as NDArray

ArrayLike = DTypeLike = Any
__all__ = ["ArrayLike", "DTypeLike", "NDArray"]
