"""What is asked of many words at once is what is asked of each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tokenfst.automata.json_schema.sets.strings import Part, Strings, join, meet
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.regex.ecma import ecma_pattern

WORDS = ["", "a", "b", "ab", "ba", "abc", "é", "éa"]
PARTS = [Part(ecma_pattern("a")), Part(ecma_pattern("^[ab]*$")), Part(ecma_pattern("^b"), False)]

some_words = st.frozensets(st.sampled_from(WORDS))
listed = st.builds(Strings, values=some_words)
described = st.builds(
    Strings,
    parts=st.lists(st.sampled_from(PARTS), max_size=2, unique_by=id).map(tuple),
    low=st.integers(0, 2),
    high=st.none() | st.integers(2, 3),
    excluded=some_words,
)


@given(listed | described, some_words)
def test_words_among_a_cell(cell: Strings, texts: frozenset[str]) -> None:
    assert cell.among(texts) == {text for text in texts if cell.holds(text)}


@given(st.lists(listed | described, max_size=3), st.lists(listed | described, max_size=3))
def test_cells_together(left: list[Strings], right: list[Strings]) -> None:
    def holds(cells: tuple[Strings, ...], text: str) -> bool:
        return any(cell.holds(text) for cell in cells)

    both, either = meet(tuple(left), tuple(right), Work()), join((tuple(left), tuple(right)), Work())
    for text in WORDS:
        sides = [holds(tuple(side), text) for side in (left, right)]
        assert (holds(both, text), holds(either, text)) == (all(sides), any(sides))
