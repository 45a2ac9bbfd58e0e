"""The masks of an expanded automaton, read from its tables one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class MaskTable:
    """The interned masks of an expanded automaton: a dense row XOR a list of flips each (docs/serving/format.md)."""

    def __init__(self, arrays: dict[str, Any], vocab_size: int) -> None:
        self._arrays = arrays
        self._vocab_size = vocab_size

    def __len__(self) -> int:
        return len(self._arrays["mask_row"])

    def token_ids(self, mask: int) -> npt.NDArray[np.int64]:
        """The allowed token ids of a mask, ascending."""
        arrays = self._arrays
        begin, end = arrays["flip_offsets"][mask : mask + 2]
        flips: npt.NDArray[np.int64] = arrays["flips"][begin:end].astype(np.int64)
        row = int(arrays["mask_row"][mask])
        if row == 0:
            return flips
        bits = np.unpackbits(
            arrays["rows"][row - 1].view(np.uint8), bitorder="little", count=self._vocab_size
        )
        bits[flips] ^= 1
        found: npt.NDArray[np.int64] = np.flatnonzero(bits)
        return found
