"""Distinct rows in parts against numpy's sort of the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tokenfst.automata.expressions import distinct
from tokenfst.automata.expressions.distinct import distinct_rows
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

MATRICES = arrays.arrays(
    np.int64, st.tuples(st.integers(1, 20), st.integers(0, 4)), elements=st.integers(0, 2), fill=st.nothing()
)


@given(MATRICES, st.integers(1, 40))
def test_rows_in_parts_are_those_of_the_whole(matrix: np.ndarray, entries: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "_ENTRIES", entries)
        rows, first, number = distinct_rows(lambda part: matrix[part], *matrix.shape)
    wanted = np.unique(matrix, axis=0) if matrix.shape[1] else matrix[:1]
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, wanted.tolist()))
    assert (rows[number] == matrix).all() and (matrix[first] == rows).all()
    assert [int(np.flatnonzero(number == k)[0]) for k in range(len(rows))] == first.tolist()


def test_the_clock_is_read_between_parts() -> None:
    with pytest.raises(BudgetExceeded, match="seconds; it grew in here"):
        distinct_rows(
            lambda part: np.zeros((2, 1 << 17), np.int64),
            100,
            1 << 18,
            Deadline(Budget(seconds=1e-9), "here"),
        )
