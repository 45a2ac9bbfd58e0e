"""The page's numpy in plain Python against numpy itself: all that it has, over small arrays of every type."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as real
import pytest

PLACE = Path(__file__).resolve().parents[2] / "tools" / "explorer_page" / "numpy"


def _load() -> Any:
    spec = importlib.util.spec_from_file_location(
        "small_numpy", PLACE / "__init__.py", submodule_search_locations=[str(PLACE)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["small_numpy"] = module
    spec.loader.exec_module(module)
    return module


small = _load()
TYPES = ["bool_", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float64"]
ROWS = [[], [1], [3, 0, 2, 2, 7, 0], [0, 1, 1, 0]]
TABLES = [[[1, 2, 3], [0, 5, 2]], [[1], [0], [1]], [[0, 0], [1, 1]]]

OF_ROWS = {
    "cumsum": lambda np, a: np.cumsum(a),
    "flatnonzero": lambda np, a: np.flatnonzero(a),
    "nonzero": lambda np, a: a.nonzero()[0],
    "count_nonzero": lambda np, a: np.count_nonzero(a),
    "unique": lambda np, a: np.unique(a),
    "unique and all": lambda np, a: [
        each.tolist() for each in np.unique(a, return_index=True, return_inverse=True, return_counts=True)
    ],
    "sort": lambda np, a: np.sort(a),
    "argsort": lambda np, a: np.argsort(a, kind="stable"),
    "reversed": lambda np, a: a[::-1],
    "slice": lambda np, a: a[1:3],
    "after": lambda np, a: a[-2:],
    "mask": lambda np, a: a[a > 1],
    "places": lambda np, a: a[np.flatnonzero(a)],
    "sum": lambda np, a: np.sum(a),
    "any": lambda np, a: np.any(a),
    "all": lambda np, a: np.all(a),
    "bytes": lambda np, a: a.tobytes(),
    "view": lambda np, a: a.view(np.uint8),
    "column": lambda np, a: a[:, None],
    "table": lambda np, a: a[:, None] == a[None, :],
    "both": lambda np, a: (a > 0) & (a < 3),
    "not": lambda np, a: ~(a == 2),
    "where": lambda np, a: np.where(a == 0, 5, a),
    "among": lambda np, a: np.isin(a, [0, 2]),
    "appended": lambda np, a: np.append(np.append(a, a), [1, 2]),
    "joined": lambda np, a: np.concatenate([a, a[:1]]),
    "repeat": lambda np, a: np.repeat(a, 2),
    "repeat by": lambda np, a: np.repeat(a, np.arange(len(a))),
    "minimum": lambda np, a: np.minimum(a, 1),
    "maximum": lambda np, a: np.maximum(a, a[::-1]),
    "bits": lambda np, a: np.packbits(a > 0),
    "little bits": lambda np, a: np.packbits(a > 0, bitorder="little"),
    "unpacked": lambda np, a: np.unpackbits(a.view(np.uint8), bitorder="little", count=5) if len(a) else a,
    "lexsort": lambda np, a: np.lexsort((np.arange(len(a)), a)),
    "inserted": lambda np, a: np.insert(a, [0, len(a), 0], [1, 0, 1]),
    "plus one": lambda np, a: a + 1,
    "like": lambda np, a: np.zeros_like(a),
    "empty": lambda np, a: np.empty(0, a.dtype),
    "copied": lambda np, a: a.copy(),
    "equal": lambda np, a: np.array_equal(a, a.copy()),
    "searched": lambda np, a: np.searchsorted(np.sort(a), a, side="right"),
    "set": lambda np, a: _after(a, lambda b: b.__setitem__(slice(1, None), 1)),
    "set some": lambda np, a: _after(a, lambda b: b.__setitem__(b > 1, 1)),
}
OF_TABLES = {
    "sum 0": lambda np, a: a.sum(axis=0),
    "sum 1": lambda np, a: a.sum(axis=1),
    "any": lambda np, a: a.any(axis=1),
    "all": lambda np, a: np.all(a, axis=0),
    "max": lambda np, a: a.max(axis=1),
    "min": lambda np, a: a.min(axis=0),
    "transposed": lambda np, a: a.T,
    "row": lambda np, a: a[1],
    "place": lambda np, a: a[1, 0],
    "column": lambda np, a: a[:, 0],
    "rows": lambda np, a: a[[1, 0, 1]],
    "columns": lambda np, a: a[:, ::-1],
    "part": lambda np, a: a[1:, :1],
    "ellipsis": lambda np, a: a[..., 0],
    "pairs": lambda np, a: a[np.array([0, 1]), np.array([0, 0])],
    "grid": lambda np, a: a[np.array([[0], [1]]), np.array([[0, 0]])],
    "mask": lambda np, a: a[a == 1],
    "row mask": lambda np, a: a[a[:, 0] == 1],
    "unique rows": lambda np, a: np.unique(a, axis=0),
    "unique columns": lambda np, a: [each.tolist() for each in np.unique(a, axis=1, return_inverse=True)],
    "unique bytes": lambda np, a: [
        each.tolist()
        for each in np.unique(
            a.view(np.dtype((np.void, a.itemsize * a.shape[1]))).ravel(),
            return_index=True,
            return_inverse=True,
        )[1:]
    ],
    "columns of both": lambda np, a: np.column_stack([a[:, 0], a]),
    "argmax": lambda np, a: a.argmax(axis=1),
    "flat": lambda np, a: a.ravel(),
    "shape": lambda np, a: list(a.reshape(-1).reshape(len(a), -1).shape),
    "spread": lambda np, a: a + a[:, :1],
    "where": lambda np, a: np.where(a > a[0], a, 0),
    "stacked": lambda np, a: np.stack([a[0], a[1]]),
    "side by side": lambda np, a: np.concatenate([a, a], axis=1),
    "appended": lambda np, a: np.append(a, np.zeros((len(a), 1), a.dtype), axis=1),
    "found": lambda np, a: np.argwhere(a),
    "bits": lambda np, a: np.packbits(a > 0, axis=1, bitorder="little"),
    "set column": lambda np, a: _after(a, lambda b: b.__setitem__((slice(None), 0), 1)),
    "set row": lambda np, a: _after(a, lambda b: b.__setitem__(0, b[1])),
    "equal": lambda np, a: np.array_equal(a, a[::-1]),
    "iterated": lambda np, a: [row.tolist() for row in a],
}
OF_TWO = {
    name: eval(f"lambda a, b: a {name} b")
    for name in ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "/", "==", "!=", "<", "<=", ">", ">=")
}


def _after(array: Any, change: Any) -> Any:
    changed = array.copy()
    change(changed)
    return changed


def _told(found: Any) -> Any:
    if isinstance(found, small.ndarray | real.ndarray):
        return found.tolist(), found.dtype.name, tuple(found.shape)
    return found.item() if isinstance(found, real.generic) else found


def _answer(of: Any, *given: Any) -> Any:
    try:
        with real.errstate(all="ignore"):
            return _told(of(*given))
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return "refused"


def _differs(ours: Any, theirs: Any) -> bool:
    return ours != theirs and "refused" not in (ours, theirs)


ONE_ARRAY = [
    *(pytest.param(of, ROWS, id=f"rows-{name}") for name, of in OF_ROWS.items()),
    *(pytest.param(of, TABLES, id=f"tables-{name}") for name, of in OF_TABLES.items()),
]


@pytest.mark.parametrize(("of", "arrays"), ONE_ARRAY)
def test_an_array(of: Any, arrays: Any) -> None:
    for values, kind in itertools.product(arrays, TYPES):
        ours = _answer(of, small, small.array(values, getattr(small, kind)))
        theirs = _answer(of, real, real.array(values, getattr(real, kind)))
        assert ours == theirs, (values, kind)


@pytest.mark.parametrize("name", OF_TWO)
def test_two_arrays_and_an_array_with_a_number(name: str) -> None:
    of = OF_TWO[name]
    signs = ["bool_", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64"]
    for one, other in itertools.product(signs, signs):
        mine = (
            small.array([1, 0, 3, 5], getattr(small, one)),
            small.array([2, 1, 1, 3], getattr(small, other)),
        )
        its = real.array([1, 0, 3, 5], getattr(real, one)), real.array([2, 1, 1, 3], getattr(real, other))
        assert not _differs(_answer(of, *mine), _answer(of, *its)), (one, other)
        assert not _differs(_answer(of, mine[0], 2), _answer(of, its[0], 2)), (one, "a number")


def test_numbers_wrap_around() -> None:
    for np in (small, real):
        assert _told(np.array([250, 255], np.uint8) + np.array([10, 1], np.uint8))[0] == [4, 0]
        assert _told(np.array([-1, 2**40], np.int64).astype(np.uint32))[0] == [2**32 - 1, 0]
        assert _told(~np.array([1], np.uint32))[0] == [2**32 - 2]


def test_views_share_and_copies_do_not() -> None:
    for np in (small, real):
        table = np.zeros((2, 3), np.int32)
        table[0][1] = 5
        table[1:][0][:2] = 7
        table[[0]][0] = 9
        assert table.tolist() == [[0, 5, 0], [7, 7, 0]]
        table.view(np.uint8)[0, 0] = 1
        assert table.tolist()[0][0] == 1
        table.flags.writeable = False
        with pytest.raises((ValueError, TypeError)):
            table[0, 0] = 3


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(ValueError, match=r"numpy\.median.*tokenfst explore"):
        small.median([1])
    with pytest.raises(ValueError, match="no arrays of"):
        small.zeros(1, "complex128")
    table, cube = small.zeros((2, 2), small.int32), small.zeros((2, 2, 2), small.int32)
    for of in (
        small.sort,
        small.argsort,
        small.diff,
        lambda a: small.unpackbits(a.view(small.uint8), axis=0),
    ):
        with pytest.raises(ValueError, match="of one axis alone"):
            of(table)
    for of in (
        lambda a: a.T,
        lambda a: a.sum(axis=1),
        lambda a: small.unique(a, axis=1),
        lambda a: small.concatenate([a], axis=1),
    ):
        with pytest.raises(ValueError, match="tokenfst explore"):
            of(cube)
