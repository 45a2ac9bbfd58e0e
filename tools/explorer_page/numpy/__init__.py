"""As much of numpy as the explorer's questions use, in plain Python: for the page without a server, which has no numpy.

An array is a flat ``memoryview`` in C order and a shape. Rows and slices with step 1 of the first axis are views, as in
numpy; whatever else is taken out is a copy. The core reads arrays through the buffer protocol, and what it gives back
becomes an array without a copy. Numbers wrap around as those of their type do; of two types the result has the one that
numpy would take. What is not here raises ``NotHereError``, which says so: nothing is approximated. Axes are there where
they are used: ``axis`` of sums and the like is None, 0 or 1.

Cost: a loop of Python for each operation. tests/explore/test_small_numpy.py compares it with numpy.
"""

from __future__ import annotations

import math
from typing import Any

from ._arrays import asarray, ndarray  # noqa: F401  # numpy has them here, too
from ._bits import *
from ._making import *
from ._searching import *
from ._types import *
from ._types import NotHereError

inf, nan, newaxis, pi = math.inf, math.nan, None, math.pi
ascontiguousarray = asarray


def __getattr__(name: str) -> Any:
    raise NotHereError(
        f"this constraint needs numpy.{name}, which the page without a server has not got: use `tokenfst explore`"
    )
