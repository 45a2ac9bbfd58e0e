"""Captures of patterns: the spans that Python's ``re`` gives, over small patterns and words, however texts arrive."""

from __future__ import annotations

import itertools
import pickle
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.expressions.captures import captures as captures_of
from reference.expressions.captures import captures_of_beginning
from tokenfst import Budget, Language, regex
from tokenfst.automata.captures.values import Captures
from tokenfst.errors import BudgetExceeded, ConstraintError

WORDS = ["".join(word) for n in range(6) for word in itertools.product("ab", repeat=n)]


def random_pattern(rng: random.Random, depth: int, names: list[str]) -> str:
    """A pattern over a and b with named groups."""
    kind = rng.randrange(8) if depth else 0
    if kind < 2:
        return rng.choice(["a", "b", "ab", ".", "[ab]", "", "a*", "b??", "a+?", "b{1,2}"])
    if kind < 4:
        return random_pattern(rng, depth - 1, names) + random_pattern(rng, depth - 1, names)
    if kind == 4:
        return f"(?:{random_pattern(rng, depth - 1, names)}|{random_pattern(rng, depth - 1, names)})"
    if kind == 5:
        quantifier = rng.choice(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}"])
        return f"(?:{random_pattern(rng, depth - 1, names)}){quantifier}"
    names.append(f"g{len(names)}")
    return f"(?P<{names[-1]}>{random_pattern(rng, depth - 1, names)})"


def spans(found: Captures) -> dict[str, list[tuple[int, int | None]]]:
    return {name: [(each.begin, each.end) for each in captured] for name, captured in found.items()}


@pytest.mark.parametrize("seed", range(4))
def test_the_spans_of_re(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    while compared < 150:
        names: list[str] = []
        pattern = random_pattern(rng, 5, names)
        if not names or len(pattern) > 80:
            continue
        language, compiled = regex(pattern), re.compile(pattern)
        assert language.capture_names == tuple(names) and language.reading is not None
        compared += 1
        for word in rng.sample(WORDS, 12):
            matched = compiled.fullmatch(word)
            if matched is None:
                assert not language.accepts(word)
                continue
            found = spans(language.captures(word))
            for name in names:
                last = found[name][-1] if found[name] else (-1, -1)
                assert last == matched.span(name), (pattern, word, name)


@pytest.mark.parametrize("seed", range(4))
def test_all_words_of_groups_by_trying_one_way_after_the_other(seed: int) -> None:
    rng = random.Random(100 + seed)
    compared = 0
    while compared < 100:
        names: list[str] = []
        pattern = random_pattern(rng, 4, names)
        if not names:
            continue
        compared += 1
        language = regex(pattern)
        assert language.reading is not None
        for word in rng.sample(WORDS, 8):
            if not language.accepts(word):
                continue
            expected = captures_of(language.reading, word.encode())
            assert expected is not None
            found = spans(language.captures(word))
            assert found == {
                name: [(begin, end) for each, begin, end in expected if each == name] for name in names
            }, (pattern, word)


def test_lists_where_groups_repeat() -> None:
    language = regex(r"(?P<year>\d{4})-(?P<month>\d\d)(?:,(?P<tag>\w+))*")
    found = language.captures("2024-05,aé,b")
    assert list(found) == ["year", "month", "tag"]
    assert [each.text for each in found["tag"]] == ["aé", "b"]
    assert spans(found) == {"year": [(0, 4)], "month": [(5, 7)], "tag": [(8, 11), (12, 13)]}
    assert language.captures("2024-05")["tag"] == []


def test_beginnings_have_open_captures() -> None:
    language = regex(r"(?P<year>\d{4})-(?P<month>\d\d)")
    [month] = language.captures("2024-0", prefix=True)["month"]
    assert month.is_open and month.data == b"0" and month.begin == 5
    assert language.captures("2024-05", prefix=True) == language.captures("2024-05")
    with pytest.raises(ConstraintError, match="stops too early"):
        language.captures("2024-0")
    with pytest.raises(ConstraintError, match="leaves the language at byte 2"):
        language.captures("20x", prefix=True)


def test_algebra_keeps_captures() -> None:
    day, rest = regex("(?P<day>[0-9]+)"), regex(":(?P<rest>.*)")
    assert spans((day + rest).captures("12:x")) == {"day": [(0, 2)], "rest": [(3, 4)]}
    assert spans((day | rest).captures(":x")) == {"day": [], "rest": [(1, 2)]}
    assert spans((day + Language.literal(",")).star().captures("1,2,")) == {"day": [(0, 1), (2, 3)]}
    assert spans(((day + Language.literal(",")).repeat(1, 2)).captures("1,2,")) == {"day": [(0, 1), (2, 3)]}
    assert spans((day & regex("(?P<first>.).*")).captures("12")) == {"day": [(0, 2)], "first": [(0, 1)]}
    assert spans((day - regex("1(?P<no>.)")).captures("21")) == {"day": [(0, 2)]}
    assert spans(Language.union_of([rest, day]).captures("3")) == {"rest": [], "day": [(0, 1)]}
    assert spans(day.optional().captures("")) == {"day": []}
    assert spans(day.minimize().captures("34")) == {"day": [(0, 2)]}
    assert (~day).capture_names == () and (~day).captures("x") == {}
    assert spans(pickle.loads(pickle.dumps(day + rest)).captures("1:")) == {"day": [(0, 1)], "rest": [(2, 2)]}


def test_anchors_and_bytes() -> None:
    assert spans(regex("^(?P<a>.+?)(?P<b>x*)$").captures("yxx")) == {"a": [(0, 1)], "b": [(1, 3)]}
    assert spans(regex(rb"(?P<a>[\x80-\xff]+)z").captures(b"\xff\xfez")) == {"a": [(0, 2)]}
    assert spans(regex("(?P<SUBSTRING_OF>hello)(?P<a>!)").captures("ell!")) == {"a": [(3, 4)]}
    language = regex(r"(?P<word>\w+)\b.*")
    assert language.accepts("ab c")
    with pytest.raises(ConstraintError, match="looks around"):
        language.captures("ab c")
    both = regex("(?P<word>[ab]+)(?P<rest>.*)") & regex(r"\w+\b.*")
    assert spans(both.captures("ab c")) == {"word": [(0, 2)], "rest": [(2, 4)]}


def test_counts_are_bounded() -> None:
    with pytest.raises(BudgetExceeded, match="positions"):
        regex("(?:(?P<a>x)|y){900}", budget=Budget(positions=2000)).captures("x" * 900)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.text("ab", max_size=12), st.data())
def test_what_is_decided_stays(seed: int, word: str, data: st.DataObject) -> None:
    from tokenfst.automata.captures.reader import Reader
    from tokenfst.automata.captures.run import shared

    names: list[str] = []
    pattern = random_pattern(random.Random(seed), 4, names)
    if not names:
        return
    language = regex(pattern)
    assert language.reading is not None
    run = Reader(language.reading, Budget()).run()
    before: list[object] = []
    for letter in word:
        if language.viable_prefix(word[: run.position + 1].encode()) <= run.position:
            return
        run.feed(letter.encode())
        saved = run.all_saved()
        assert saved
        now = shared(saved)
        assert now is not None and now[: len(before)] == before
        before = list(now)
        assert (run.ended != ()) == language.accepts(word[: run.position])


@pytest.mark.parametrize("seed", range(4))
def test_beginnings_by_trying_one_way_after_the_other(seed: int) -> None:
    rng = random.Random(200 + seed)
    compared = 0
    while compared < 60:
        names: list[str] = []
        pattern = random_pattern(rng, 4, names)
        if not names:
            continue
        language = regex(pattern)
        assert language.reading is not None
        for word in map(str.encode, rng.sample(WORDS, 6)):
            if language.viable_prefix(word) < len(word) or not language.next_bytes(word)[0]:
                continue
            compared += 1
            expected = captures_of_beginning(language.reading, word)
            assert expected is not None, (pattern, word)
            if language.accepts(word):  # of a whole text it is the reading of a whole text
                assert language.captures(word, prefix=True) == language.captures(word)
                continue
            assert spans(language.captures(word, prefix=True)) == {
                name: [(begin, end) for each, begin, end in expected if each == name] for name in names
            }, (pattern, word)
