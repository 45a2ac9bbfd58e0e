"""Character classes against ``re`` on all code points, and their automata against Python's UTF-8 decoder."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tokenfst.automata.characters.classes import TEXT, character_set, is_cased, leaf, members
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges, negate, normalize, overlap, utf8_dfa
from tokenfst.automata.expressions.expression import Dfa, Expr, Op

EVERYTHING = "".join(map(chr, range(MAX_CODE_POINT + 1)))
_parser: Any = import_module("re._parser")

# One string rather than a list of many: easier on the eye.
CLASSES = r"""
. \d \D \w \W \s \S [\w-] [^\W\d_] [\d\s] [^\d\s]
[^"] [^"\\\x00-\x1f] [a-zA-Z_] [^a] é [à-ÿ] [α-ωΑ-Ω] [一-鿿] [\U0001F600-\U0001F64F]
[\x00-\U0010FFFF] [\u07ff\u0800] [\uffff\U00010000] [\ud7ff\ue000] [\x7f\x80] [\U0010FFFF]
k [k] [^k] K [a-z] [A-Z] [^a-z] s ſ i ı İ [i-k] ß ẞ σ [ς] [Σ-Ω] µ ͅ Å [ﬅﬆ] [A-Å] [^\x00-\x7fſ]
[\Wk] [k\d] ǅ [Ǆ-ǆ] ᏸ [Ꭰ-ᏽ]
𐐀 [𐐀] [𐐀x] [x𐐨] [𐐀-𐐧] [\uff00-\U0001ffff] [^𐐀-𐐧] [a-\U00010410] [\W𐐀]
""".split()  # noqa: SIM905  # words are read more easily than a list
FLAGS = [0, re.IGNORECASE, re.ASCII, re.IGNORECASE | re.ASCII]


@cache
def cased() -> str:
    """All letters that have a case; found when a test asks, since every run of any test imports this file."""
    return "".join(c for c in EVERYTHING if is_cased(ord(c), int(re.UNICODE)))


def parsed(pattern: str, flags: int) -> tuple[Any, Any, int]:
    """The class that is the whole of a pattern, and its flags."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        tree = _parser.parse(pattern, int(flags))
    [(op, argument)] = tree.data
    return op, argument, tree.state.flags | TEXT


def expected(pattern: str, flags: int) -> Ranges:
    """What ``re`` matches of all code points."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        found = re.compile(f"{pattern}+", flags).finditer(EVERYTHING)
    return tuple((match.start(), match.end() - 1) for match in found)


@pytest.mark.parametrize("flags", FLAGS)
def test_classes_are_those_of_re_on_all_code_points(flags: int) -> None:
    for pattern in CLASSES:
        assert members(*parsed(pattern, flags)) == expected(pattern, flags), (pattern, flags)


@pytest.mark.parametrize("flags", [re.IGNORECASE, re.IGNORECASE | re.ASCII])
def test_every_cased_letter(flags: int) -> None:
    assert len(cased()) > 2500
    for letter in cased():
        got = members(*parsed(letter, flags))
        found = [chr(code) for low, high in got for code in range(low, high + 1)]
        assert found == re.findall(letter, cased(), flags), letter


_CODES = st.one_of(
    st.sampled_from([ord(c) for c in "aAkKzZsSiI09_-\nſıİσςΣµ𐐀𐐨"]),
    st.deferred(lambda: st.sampled_from([ord(c) for c in cased()])),
    st.integers(0, MAX_CODE_POINT),
)


@st.composite
def character_classes(draw: st.DrawFn) -> str:
    parts = []
    for kind in draw(st.lists(st.sampled_from("lrc"), min_size=1, max_size=4)):
        if kind == "c":
            parts.append(draw(st.sampled_from([r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"])))
        else:
            low, high = sorted((draw(_CODES), draw(_CODES)))
            parts.append(f"\\U{low:08x}" if kind == "l" else f"\\U{low:08x}-\\U{min(high, low + 3000):08x}")
    return f"[{draw(st.sampled_from(['', '^']))}{''.join(parts)}]"


@given(character_classes(), st.sampled_from(FLAGS))
@example(r"[\U00010400\U00000078]", re.IGNORECASE)
@settings(max_examples=25, deadline=None)
def test_random_classes(pattern: str, flags: int) -> None:
    assert members(*parsed(pattern, flags)) == expected(pattern, flags)


@given(character_classes(), st.sampled_from(FLAGS))
@settings(max_examples=1000, deadline=None)
@pytest.mark.soak
def test_many_random_classes(pattern: str, flags: int) -> None:
    assert members(*parsed(pattern, flags)) == expected(pattern, flags)


# --- the automata -------------------------------------------------------------------------------------


def run(dfa: Dfa, words: Iterable[bytes]) -> list[bool]:
    """Which words a deterministic automaton accepts; all of one length are walked together."""
    results: dict[bytes, bool] = {}
    words = list(words)
    for length, group in itertools.groupby(sorted(words, key=len), key=len):
        batch = list(group)
        table = np.frombuffer(b"".join(batch), np.uint8).reshape(len(batch), length)
        state = np.full(len(batch), dfa.start, np.uint32)
        for column in dfa.classes[table].T:
            state = dfa.table[state, column]
        results.update(zip(batch, dfa.accepting[state].tolist(), strict=True))
    return [results[word] for word in words]


@pytest.mark.parametrize(
    "pattern",
    [r".", r"\w", r"\d", r'[^"\\\x00-\x1f]', r"[\x00-\U0010FFFF]", r"[é一-鿿😀]", r"[\u0800-\uffff]"],
)
def test_automaton_on_every_code_point(pattern: str) -> None:
    dfa = utf8_dfa(members(*parsed(pattern, 0)))
    compiled = re.compile(pattern)
    texts = EVERYTHING[:0xD800] + EVERYTHING[0xE000:]
    assert run(dfa, map(str.encode, texts)) == [compiled.fullmatch(c) is not None for c in texts]


def test_nothing_but_utf8() -> None:
    """All words of one and two bytes, and of three and four bytes at the edges, against Python's decoder."""
    dfa = utf8_dfa(((0, MAX_CODE_POINT),))
    edges = bytes(
        [
            0x00,
            0x41,
            0x7F,
            0x80,
            0x8F,
            0x90,
            0x9F,
            0xA0,
            0xBF,
            0xC0,
            0xC1,
            0xC2,
            0xDF,
            0xE0,
            0xE1,
            0xEC,
            0xED,
            0xEE,
        ]
    )
    edges += bytes([0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF])  # fmt: skip
    words = [b"", *(bytes([a]) for a in range(256)), *map(bytes, itertools.product(range(256), repeat=2))]
    words += map(bytes, itertools.product(edges, repeat=3))
    words += map(bytes, itertools.product(edges[14:], edges[3:10], edges[3:10], edges[2:10]))
    assert run(dfa, words) == [_one_character(word) for word in words]


def _one_character(word: bytes) -> bool:
    try:
        return len(word.decode()) == 1
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize(
    ("pattern", "flags", "states"),
    [
        (r".", re.DOTALL, 10),
        (r".", 0, 10),
        (r'[^"\\\x00-\x1f]', 0, 10),
        (r"[éè]", 0, 4),
        (r"\d", 0, None),
        (r"\w", 0, None),
    ],
)
def test_automata_are_minimal_and_trim(pattern: str, flags: int, states: int | None) -> None:
    argument = leaf(*parsed(pattern, flags))
    dfa = argument.value
    assert isinstance(dfa, Dfa)
    assert states is None or dfa.num_states == states
    assert not dfa.table[0].any()
    assert not dfa.accepting[0]
    # Moore's refinement: no two states are equivalent, and only DEAD is dead.
    blocks = dfa.accepting.astype(np.int64)
    while True:
        _, refined = np.unique(np.column_stack([blocks, blocks[dfa.table]]), axis=0, return_inverse=True)
        if refined.max() == blocks.max():
            break
        blocks = refined.ravel()
    assert len(set(refined.ravel().tolist())) == dfa.num_states
    # No two byte classes are the same column.
    assert len({column.tobytes() for column in np.ascontiguousarray(dfa.table.T)}) == dfa.table.shape[1]


def test_the_empty_set_is_dead() -> None:
    for ranges in ((), ((0xD800, 0xDFFF),)):
        dfa = utf8_dfa(ranges)
        assert (dfa.num_states, dfa.start, dfa.accepting.any()) == (1, 0, False)


# --- sets ---------------------------------------------------------------------------------------------

_SETS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: (min(pair), max(pair))), max_size=6
)


def _set(pairs: Iterable[tuple[int, int]]) -> set[int]:
    return {code for low, high in pairs for code in range(low, high + 1)}


@given(_SETS, _SETS)
def test_set_algebra(xs: list[tuple[int, int]], ys: list[tuple[int, int]]) -> None:
    x, y = normalize(xs), normalize(ys)
    assert _set(x) == _set(xs)
    assert _set(negate(x, 40)) == set(range(41)) - _set(xs)
    assert _set(overlap(x, y)) == _set(xs) & _set(ys)
    for ranges in (x, negate(x, 40), overlap(x, y)):
        assert all(a[1] + 1 < b[0] for a, b in itertools.pairwise(ranges))


def test_leaves_are_shared_and_simple() -> None:
    def of(pattern: str, flags: int = 0) -> Expr:
        return leaf(*parsed(pattern, flags))

    assert of(r"[^\"]") is of(r'[^"]')
    assert of(r"\d", re.ASCII) is character_set(((48, 57),), True)
    assert of(r"[0-9]").op is Op.BYTES
    assert of(r"[é]") is not of(r"[è]")
    assert of(r"[é]").value == "é".encode()
    assert of(r"\w").op is Op.MACHINE
    assert of(r"k", re.IGNORECASE).op is Op.MACHINE
    assert of(r"k", re.IGNORECASE | re.ASCII).value == 1 << ord("k") | 1 << ord("K")
