"""The native ``spell`` and ``characters`` against their twins in plain Python: the same tables, number for number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.expressions import character_codes
from tokenfst import regex
from tokenfst.automata.characters import utf8
from tokenfst.automata.characters.codes import Form, Steps, spell
from tokenfst.automata.characters.utf8 import ASCII, MAX_CODE_POINT, MULTIBYTE
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.formats.registry import format_language
from tokenfst.automata.json_values import strings as json_strings
from tokenfst.errors import BudgetExceeded

UTF8: tuple[Form, ...] = (ASCII, *MULTIBYTE)
CODES = {"utf8": UTF8, **{name: code.forms for name, code in json_strings._CODES.items()}}
EDGES = [0, 0x1F, 0x22, 0x2F, 0x5C, 0x61, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600]


def same(left: Dfa, right: Dfa) -> bool:
    parts = ("classes", "table", "accepting")
    return left.start == right.start and all(
        np.array_equal(getattr(left, part), getattr(right, part)) for part in parts
    )


def check(steps: tuple[Steps, ...], accepting: tuple[bool, ...], forms: tuple[Form, ...]) -> None:
    made = spell(steps, accepting, forms)
    assert same(made, character_codes.spell(steps, accepting, forms))
    limit = made.num_states - 1
    assert same(spell(steps, accepting, forms, limit), made)
    if made.num_states > len(steps) + 1:
        for each in (spell, character_codes.spell):
            with pytest.raises(BudgetExceeded):
                each(steps, accepting, forms, limit - 1)
    if forms is UTF8:
        assert utf8.characters(made) == character_codes.characters(made)


@pytest.mark.parametrize("name", CODES)
def test_single_characters_and_ranges(name: str) -> None:
    points = [*EDGES, MAX_CODE_POINT]
    for low in points:
        for high in points:
            surrogates = low < 0xE000 and high > 0xD7FF
            if low <= high and not surrogates:
                check((((low, high, 2),), ()), (False, True), CODES[name])


@st.composite
def automata(draw: st.DrawFn) -> tuple[tuple[Steps, ...], tuple[bool, ...]]:
    """Automata over characters, of which every state has a way to acceptance."""
    number = draw(st.integers(1, 4))
    points = st.one_of(st.sampled_from(EDGES), st.integers(0, 0xD7FF), st.integers(0xE000, MAX_CODE_POINT))
    made = []
    for _ in range(number):
        cuts = sorted(draw(st.lists(points, max_size=6, unique=True)))
        pairs = zip(cuts[::2], cuts[1::2], strict=False)
        whole = [(low, high) for low, high in pairs if not (low < 0xE000 and high > 0xD7FF)]
        made.append(tuple((low, high, draw(st.integers(1, number))) for low, high in whole))
    return tuple(made), (True,) * number


@settings(max_examples=60, deadline=None)
@given(automata(), st.sampled_from(sorted(CODES)))
def test_automata_over_characters(made: tuple[tuple[Steps, ...], tuple[bool, ...]], name: str) -> None:
    check(*made, CODES[name])


@pytest.mark.parametrize(
    "pattern", [b"[\x00-\xff]a", b"\xe4|\xc3\xa4x?", b"[\xe0-\xed][\x80-\xbf]{2}", b"\xf5"]
)
def test_what_is_no_text(pattern: bytes) -> None:
    dfa = regex(pattern).determinize()
    found = utf8.characters(dfa)
    assert found == character_codes.characters(dfa)
    assert not found.whole


@pytest.mark.parametrize("name", ["date", "uri", "idn-email"])
def test_formats(name: str) -> None:
    language = format_language(name)
    assert language is not None
    dfa = language.determinize()
    assert utf8.characters(dfa) == character_codes.characters(dfa)
    with pytest.raises(BudgetExceeded):
        utf8.characters(dfa, 3)
