"""What the explorer answers: against the constraint itself, over small worlds, and for questions that make no sense."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

from tokenfst import Language, Vocabulary, compile, regex
from tokenfst.automata.characters.utf8 import normalize
from tokenfst.automata.languages.texts.walk import Walk
from tokenfst.explore.kinds import KINDS
from tokenfst.explore.layout import place
from tokenfst.explore.opened import MOST_TOKENS, Opened
from tokenfst.explore.picture import _characters
from tokenfst.explore.questions import Explorer

WORDS = [b"ab", b"abc", b"yes", b"no", b'{"', b'":', b" \xf0\x9f"]
END = 256 + len(WORDS)
VOCABULARY = Vocabulary(
    [*(bytes((byte,)) for byte in range(256)), *WORDS, b"", b""], END, special_tokens={"<tool>": END + 1}
)
EXPLORER = Explorer(VOCABULARY)


def ask(question: str, text: str, kind: str = "regex", **more: Any) -> dict[str, Any]:
    code, answer = EXPLORER.answer(question, {"kind": kind, "text": text, **more})
    assert code == 200
    json.dumps(answer)
    return answer


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_example_opens_walks_to_its_end_and_has_a_picture(kind: Any) -> None:
    if kind.name == "lark":
        pytest.importorskip("lark")
    for _, text in kind.examples:
        opened = ask("open", text, kind.name)
        shortest = opened["shortest"]["text"]
        tokens = ask("cut", text, kind.name, candidate=shortest)["tokens"]
        there = ask("step", text, kind.name, tokens=tokens)
        assert there["tokens"] == tokens and there["here"]["accepting"] and there["text"][1:-1]
        assert ask("check", text, kind.name, candidate=shortest)["accepted"]
        picture = ask("picture", text, kind.name, tokens=tokens, around=True, states=30)
        assert picture["states"][0]["accepting"] and picture["here"] == 0


def test_a_step_says_what_the_matcher_says() -> None:
    pattern = "(yes|no), ab(c|)"
    automaton = compile(regex(pattern), VOCABULARY)
    tokens = VOCABULARY.encode_greedy(b"yes, ab")
    for count in range(len(tokens) + 1):
        matcher = automaton.matcher()
        assert matcher.accept_tokens(tokens[:count])
        there = ask("step", pattern, tokens=tokens[:count], count=500)
        allowed = {token for token in range(len(VOCABULARY)) if matcher.validate_tokens([token])}
        assert {each["id"] for each in there["list"]} == allowed and there["allowed"] == len(allowed)
        assert there["here"]["accepting"] == matcher.is_accepting()
        assert there["here"]["distance"].startswith(f"{matcher.distance()} token")
        forced = there["here"]["forced"]
        assert (forced["text"].encode() if forced else b"") == matcher.forced_bytes()
    ended = ask("step", pattern, tokens=[*tokens, END])
    assert ended["terminated"] and ended["allowed"] == 0 and ended["path"][-1]["shown"]


def test_tokens_behind_one_that_is_refused_do_not_count() -> None:
    there = ask("step", "no", tokens=[ord("n"), ord("x"), ord("o")])
    assert there["tokens"] == [ord("n")] and [step["taken"] for step in there["path"]] == [True, False]
    said = ask("explain", "no", tokens=[ord("n")], token=ord("x"))
    assert not said["allowed"] and "expected" in said["said"] and "^" in said["said"]
    assert ask("explain", "no", tokens=[ord("n")], token=ord("o"))["allowed"]


def test_a_limit_of_tokens_is_kept() -> None:
    assert {each["id"] for each in ask("step", "a*b", tokens=[], limit=1)["list"]} == {ord("b"), 256}
    there = ask("step", "a*b", tokens=[ord("a")], limit=2)
    assert there["left"] == 1 and there["allowed"] == 2
    assert (
        "no accepted" in ask("step", "a{9}", limit=2)["error"]
        or "token" in ask("step", "a{9}", limit=2)["error"]
    )


def test_a_search_finds_the_token_itself_first() -> None:
    listed = ask("step", "(?s:.*)", query="ab")["list"]
    assert [VOCABULARY.token_bytes(each["id"]) for each in listed] == [b"ab", b"abc"]
    assert [each["id"] for each in ask("step", "(?s:.*)", query="#97")["list"]] == [97]
    whole = ask("step", "(?s:.*)", count=500)
    pages = [ask("step", "(?s:.*)", count=100, offset=offset)["list"] for offset in range(0, 300, 100)]
    assert [each for page in pages for each in page] == whole["list"]


def test_a_refused_text_is_pointed_at() -> None:
    answer = ask("check", "[a-z]+-[0-9]", candidate="ab-x")
    assert not answer["accepted"] and answer["said"].count("^") == 1 and "[0-9]" in answer["said"]
    assert answer["ending"]["text"] == "0"


def test_only_tokens_walk_what_names_tokens() -> None:
    tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "<tool>", "end": "!",
           "content": {"type": "regex", "pattern": "ab?"}}}  # fmt: skip
    text = json.dumps(tag)
    assert ask("open", text, "structural_tag")["shortest"] is None
    there = ask("step", text, "structural_tag", tokens=[])
    assert [each["shown"] for each in there["list"]] == ["<tool>"] and there["following"] == ""
    assert "only be walked by tokens" in ask("picture", text, "structural_tag")["error"]
    assert not ask("check", text, "structural_tag", candidate="a!")["accepted"]


def test_what_is_wrong_with_a_constraint_is_said() -> None:
    assert "unterminated" in ask("open", "(a")["error"] or "missing" in ask("open", "(a")["error"]
    assert "empty" in ask("open", "(?!)")["error"]
    assert ask("open", "{", "json_schema")["error"]
    answer = EXPLORER.answer("open", {"kind": "regex", "text": "(a|b)*a(a|b){40}"})[1]
    assert "facts" in answer or answer["kind"] == "budget"
    assert "surrogate" in ask("cut", "a", candidate="\ud800")["error"]


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("none", {}),
        ("open", []),
        ("open", {"kind": "regex"}),
        ("open", {"kind": "no", "text": ""}),
        ("open", {"kind": "given", "text": ""}),
        ("step", {"kind": "regex", "text": "a", "tokens": "a"}),
        ("step", {"kind": "regex", "text": "a", "tokens": [True]}),
        ("step", {"kind": "regex", "text": "a", "tokens": [0] * (MOST_TOKENS + 1)}),
        ("step", {"kind": "regex", "text": "a", "offset": -1}),
        ("step", {"kind": "regex", "text": "a", "count": 10**9}),
        ("step", {"kind": "regex", "text": "a", "limit": 0}),
        ("picture", {"kind": "regex", "text": "a", "states": 0}),
        ("explain", {"kind": "regex", "text": "a"}),
    ],
)
def test_questions_of_another_form_are_refused(question: str, asked: Any) -> None:
    code, answer = EXPLORER.answer(question, asked)
    assert code in (400, 404) and answer["kind"] == "request" and answer["error"]


def test_a_token_outside_of_the_vocabulary_is_an_error() -> None:
    assert "token" in ask("step", "a", tokens=[len(VOCABULARY)])["error"]


def test_the_constraint_of_the_command_line_is_there() -> None:
    given = Opened(compile(regex("ab"), VOCABULARY), regex("ab"), "mine")
    explorer = Explorer(VOCABULARY, given=given)
    assert explorer.answer("about", {})[1]["given"] == "mine"
    assert explorer.answer("open", {"kind": "given", "text": ""})[1]["shortest"]["text"] == "ab"


# --- pictures -----------------------------------------------------------------------------------------

PATTERNS = [
    "a",
    "(ab|ba)*",
    "a*b*",
    "aab|abb|",
    "(a|b){2}(ab)*",
    "ab(ab)*a?",
    "(a|ba)*bb",
    "aaaa(b|aab)*",
    "(?!ab)(a|b){1,4}",
]


def pieces(label: str) -> re.Pattern[str]:
    """What an arrow's label stands for."""
    if label.startswith('"'):
        return re.compile(re.escape(json.loads(label)))
    return re.compile(label if label.startswith("[") else f"[{label}]")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_whole_picture_reads_the_language(pattern: str) -> None:
    picture = ask("picture", pattern, states=400)
    assert picture["left_out"] == ""
    arrows = [(each["source"], each["target"], pieces(each["label"])) for each in picture["arrows"]]
    for length in range(7):
        for letters in itertools.product("ab", repeat=length):
            text = "".join(letters)
            seen = {(0, 0)}
            pending = [(0, 0)]
            for state, at in pending:
                for source, target, label in arrows:
                    match = label.match(text, at) if source == state else None
                    if match and (target, match.end()) not in seen:
                        seen.add((target, match.end()))
                        pending.append((target, match.end()))
            accepted = any(at == length and picture["states"][state]["accepting"] for state, at in seen)
            assert accepted == bool(re.fullmatch(pattern, text)), (pattern, text)


def test_a_part_says_what_is_left_out() -> None:
    picture = ask("picture", "[ab]{50}", states=10)
    assert len(picture["states"]) == 10 and "10 states nearest to the start" in picture["left_out"]
    assert [state["open"] for state in picture["states"]].count(True) == 1
    around = ask("picture", "[ab]{50}", tokens=[97] * 20, around=True, states=10)
    assert around["here"] == 0 and "that was reached" in around["left_out"]
    unread = ask("picture", "[ab]{50}", tokens=[97] * 20, states=10)
    assert unread["here"] is None


def test_a_character_is_one_arrow_and_a_word_is_one() -> None:
    def labels(pattern: str) -> set[str]:
        return {each["label"] for each in ask("picture", pattern)["arrows"]}

    assert labels("word") == {'"word"'}
    assert labels("[^a]") == {"[^a]"}
    assert labels("(?s:.)") == {"any character"}
    assert labels("[à-ü]|[€-₯]|[😀-😎]x") == {"[à-ü€-₯]", "[😀-😎]", '"x"'}
    assert labels("abé+") == {'"abé"', '"é"'}
    raw = Language.byte_range(0xF8, 0xFF) + Language.literal(b"\xc3")
    automaton = compile(raw, VOCABULARY)
    found = Opened(automaton, raw, "raw").picture([], around=False, states=9)["arrows"]
    assert [each["label"] for each in found] == ["byte \\xf8-\\xff", '"\\xc3"']


@pytest.mark.parametrize(
    "pattern", [r"\w", "[^а-я]", r"[\u0800-\uffff]", r"(?i)straße|[\U00010000-\U0010ffff]x"]
)
def test_labels_hold_every_character(pattern: str) -> None:
    """Arrows out of the first state, against the automaton asked about each of some characters."""
    constraint = regex(pattern)
    walk = Walk(constraint.automaton, constraint.budget, "a test")
    assert walk.start is not None
    found = [(target, normalize(step.characters)) for target, step, _ in _characters(walk, walk.start)]
    points = [
        *range(0x800),
        *range(0x800, 0xD800, 37),
        *range(0xE000, 0x110000, 1_009),
        0xFFFF,
        0x10000,
        0x10FFFF,
    ]
    for point in points:
        reached = walk.run(chr(point).encode())
        assert [target for target, codes in found if any(a <= point <= b for a, b in codes)] == (
            [] if reached is None else [reached]
        ), hex(point)


def test_states_stand_apart_and_arrows_end_at_them() -> None:
    graphs = [
        (1, []),
        (1, [(0, 0)]),
        (3, [(0, 1), (1, 2), (2, 0), (0, 2), (1, 1)]),
        (6, [(0, k) for k in range(1, 6)] + [(5, 0), (1, 5), (2, 2)]),
        (7, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (4, 5), (5, 1), (0, 6), (6, 5)]),
    ]
    for count, arrows in graphs:
        labelled = [(source, target, source + target) for source, target in arrows]
        placed = place(range(count), labelled)
        assert placed == place(range(count), labelled)
        assert len(set(placed.at)) == count and len(placed.ways) == len(arrows)
        for (source, target), way in zip(arrows, placed.ways, strict=True):
            assert way[0] == placed.at[source] and way[-1] == placed.at[target]
            inner = set(way[1:-1])
            assert not inner & set(placed.at)


def test_columns_of_a_picture() -> None:
    """An arrow leads to the right unless it leads back, and no state is far from the first where that costs many long
    arrows.
    """

    def columns(count: int, arrows: list[tuple[int, int]]) -> list[int]:
        placed = place([30] * count, [(source, target, 1) for source, target in arrows])
        return [int(x // 150) for x, _ in placed.at]

    assert columns(4, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 1)]) == [0, 1, 2, 3]
    chain = [(state, state + 1) for state in range(9)]
    ends = [(state, 9) for state in range(8)]
    assert columns(10, [*chain, *ends])[9] == 1  # 36 virtual positions beside 10 states otherwise
    assert columns(10, [*chain, (0, 9)])[9] == 9


def test_columns_are_as_far_apart_as_their_texts_need() -> None:
    def widths(words: list[int], arrows: list[tuple[int, int, int]]) -> list[float]:
        at = [x for x, _ in place(words, arrows).at]
        return [right - left for left, right in itertools.pairwise(at)]

    assert widths([1, 1, 1], [(0, 1, 1), (1, 2, 1)]) == [80, 80]
    assert widths([1, 1, 1], [(0, 1, 12), (1, 2, 1)]) == [pytest.approx(12 * 6.7 + 54), 80]
    assert widths([15, 9, 1], [(0, 1, 1), (1, 2, 1)]) == [pytest.approx(12 * 6.7 + 20), 80]
    assert widths([99, 99], [(0, 1, 99)]) == [150]
    assert widths([1, 1, 1], [(0, 1, 1), (1, 2, 1), (0, 2, 19)])[0] > 80  # above the second column
    assert widths([1, 1], [(0, 0, 19), (0, 1, 1)])[0] > 80  # a loop's label
    placed = place([1, 1, 1], [(0, 1, 1), (0, 2, 1), (1, 0, 99)])
    assert placed.at[1][0] == 80  # the label of an arrow that leads back stands below


@pytest.mark.parametrize(
    ("pattern", "states", "exact"),
    [
        ("(yes|no), [0-9]{1,3} (apples|pears)", 40, True),
        ("a(b|cdé*)*f?", 40, True),
        ("x{50}y|é{9}z", 12, False),
    ],
)
def test_states_say_how_many_bytes_are_missing(pattern: str, states: int, exact: bool) -> None:
    """By the shortest completion of a text that leads to each state."""
    picture = ask("picture", pattern, tokens=[], around=False, states=states)
    language = regex(pattern)
    assert (picture["left_out"] == "") == exact
    assert any(state["least"] > 0 for state in picture["states"])
    for state in picture["states"]:
        text = b"" if state["after"] == "the start" else json.loads(state["after"]).encode()
        ending = b"" if language.accepts(text) else language.explain(text).ending
        assert ending is not None
        assert state["least"] <= len(ending) and (state["least"] == len(ending) or not exact)
        assert (state["least"] == 0) == state["accepting"]
