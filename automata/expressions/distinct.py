"""The distinct rows of large matrices, in bounded time and memory between two checks of the clock.

Numpy finds the distinct rows of a matrix by one sort, which nothing can interrupt, and which copies the matrix. Here
the rows are computed and sorted in parts, and a dictionary joins the distinct rows of the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.metering import Deadline

_ENTRIES = 1 << 18
"""The number of entries of the matrix that are computed and sorted between two checks of the clock."""


class DistinctRows(NamedTuple):
    """``rows``: the distinct rows, in no particular order. ``first``: int64, for each of them a row of the matrix that
    is equal to it, the first one. ``number``: int64, for each row of the matrix its index in ``rows``.
    """

    rows: npt.NDArray[Any]
    first: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]


def distinct_rows(
    rows: Callable[[slice], npt.NDArray[Any]], count: int, width: int, deadline: Deadline | None = None
) -> DistinctRows:
    """The distinct rows of a matrix with ``count`` rows and about ``width`` columns.

    ``rows(part)`` computes the rows of a slice of ``range(count)``, all of one dtype. O(count * width * log count).
    Raises BudgetExceeded("seconds") after ``deadline``.
    """
    size = max(1, _ENTRIES // max(width, 1))
    if count <= size:
        return _distinct(rows(slice(0, count)))
    numbers: dict[bytes, int] = {}
    first: list[int] = []
    number: list[npt.NDArray[np.int64]] = []
    for begin in range(0, count, size):
        if deadline is not None:
            deadline.check()
        part = _distinct(rows(slice(begin, begin + size)))
        own = np.empty(len(part.rows), np.int64)
        for k, (row, place) in enumerate(zip(part.rows, part.first.tolist(), strict=True)):
            own[k] = known = numbers.setdefault(row.tobytes(), len(first))
            if known == len(first):
                first.append(begin + place)
        number.append(own[part.number])
    found = np.frombuffer(b"".join(numbers), part.rows.dtype).reshape(len(first), -1)
    return DistinctRows(found, np.array(first), np.concatenate(number))


def _distinct(rows: npt.NDArray[Any]) -> DistinctRows:
    if not rows.shape[1]:
        return DistinctRows(rows[:1], np.zeros(min(len(rows), 1), np.int64), np.zeros(len(rows), np.int64))
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, number = np.unique(whole, return_index=True, return_inverse=True)
    return DistinctRows(rows[first], first, number.ravel())
