"""JSON strings against ``json.loads``: every text over small alphabets, then random contents and random escapes."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.expressions.expressions import matches
from reference.expressions.random_expressions_wide import Generator
from reference.json.json_strings import escape, is_written, spellings, value_of
from tokenfst import Budget, Language, Vocabulary, compile, regex
from tokenfst.automata.characters.utf8 import (
    MAX_CODE_POINT,
    characters,
    normalize,
    single_characters,
    utf8_dfa,
    without_surrogates,
)
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.images.lengths import MAX_LENGTH, of_length
from tokenfst.automata.json_values.strings import (
    SPELLINGS,
    Spelling,
    json_content,
    json_literal,
    json_literals,
    json_string,
    json_string_of_length,
)
from tokenfst.errors import BudgetExceeded, ConstraintError

# --- every text over a small alphabet -----------------------------------------------------------------

WRITTEN: tuple[Spelling, ...] = ("plain", "ascii")

CONTENTS = [
    regex("a*"),
    regex("[^a]{1,2}"),
    regex(r'[\n"\\/a]{2,}'),
    regex("a|\x01|\n|\\\\a|n"),
    regex(r"(?=.*a)(?!n)..?", 16),
    regex(r"(?<!\\)n|(?<=\n)a.?|.*(?<![/n])"),
    regex(r"\Ba|\bu.*a\b|.+$"),
    ~regex("a*|n"),
    regex("a.*") - regex(".*n"),
    regex(b"[\x00-\xff]a|n"),
    Language.any_bytes(),
    Language.literal("a") + Language.any_bytes() + Language.literal("n"),
    regex("a*n").minimize() | regex("(?:na)*").reverse(),
    Language.empty(),
    Language.epsilon(),
]


def texts(alphabet: str, longest: int) -> Iterable[bytes]:
    for length in range(longest + 1):
        for letters in itertools.product(alphabet, repeat=length):
            yield b'"' + "".join(letters).encode() + b'"'


def agree(language: Language, words: Iterable[bytes], expected: Callable[[bytes], bool]) -> int:
    """Asserts that they do, and counts the words in the language."""
    automaton, found = language.automaton, 0
    for word in words:
        accepted = automaton.accepts(word)
        assert accepted == expected(word), (language, word)
        found += accepted
    return found


def meant(content: Language) -> Callable[[bytes], bool]:
    def expected(word: bytes) -> bool:
        value = value_of(word)
        return value is not None and content.accepts(value)

    return expected


@pytest.mark.parametrize("content", CONTENTS, ids=repr)
def test_all_short_texts(content: Language) -> None:
    found = agree(json_string(content, spelling="any"), texts('\\"/an\n', 4), meant(content))
    assert found or content.is_empty() or (content.source == "epsilon()" and found == 1)


def test_all_texts_of_any_string() -> None:
    words = [*texts('\\"/anu\n\x7f\x01é', 4), b'"', b"", b'a"a"', b'""a', b'"\xc3"', b'"\xed\xa0\x80"']
    words += [quoted[:-1] for quoted in texts("\\a", 3)]
    assert agree(json_string(spelling="any"), words, lambda word: value_of(word) is not None) > 1000


def test_all_hexadecimal_digits() -> None:
    r"""Every ``\u`` with four of many digits, and pairs of those around the surrogates."""
    any_string, high = (
        json_string(content, spelling="any") for content in (None, regex("[\u00aa-\u0a0d\ue000-\U00012345]"))
    )
    single = [f'"\\u{"".join(d)}"'.encode() for d in itertools.product("09AaDdeFg", repeat=4)]
    units = [f"\\u{a}{b}{c}" for a in "dDc" for b in "789aBbCFg" for c in ("00", "08", "fF", "0g", "0")]
    pairs = [f'"{a}{b}"'.encode() for a in units for b in units]
    for language, content in (
        (any_string, Language.any_text()),
        (high, regex("[ª-\u0a0d\ue000-\U00012345]")),
    ):
        assert agree(language, [*single, *pairs], meant(content)) > 200


def test_every_character_in_every_spelling() -> None:
    any_string = json_string(spelling="any").automaton
    written = {spelling: json_string(spelling=spelling).automaton for spelling in WRITTEN}
    step = 37
    for code in [*range(0x300), *range(0x300, MAX_CODE_POINT + 1, step * step), MAX_CODE_POINT, 0xFFFF]:
        if 0xD800 <= code <= 0xDFFF:
            continue
        for word in spellings(chr(code)) if code < 0x300 else (escape(chr(code), random.Random(code)),):
            assert any_string.accepts(word), (code, word)
            for spelling, automaton in written.items():
                assert automaton.accepts(word) == is_written(word, spelling), (code, word)


@pytest.mark.parametrize("spelling", WRITTEN)
def test_what_json_writes(spelling: Spelling) -> None:
    words = list(texts('\\"/anu0\n\x7f\x01é', 3)) + [json.dumps(chr(c)).encode() for c in range(0x80)]
    words += [json.dumps(chr(c), ensure_ascii=False).encode() for c in range(0x3000)]
    words += [f'"\\u00{a}{b}"'.encode() for a in "012" for b in "0123456789abcdefABCDEF"]
    words += [
        json.dumps(chr(c)).encode() for c in (*range(0xFF, 0x3000), 0xFFFF, 0x10000, 0x12345, MAX_CODE_POINT)
    ]
    words += [json.dumps(chr(c)).upper().replace("U", "u").encode() for c in (0x7F, 0xE9, 0xABCD, 0x12345)]

    def expected(word: bytes) -> bool:
        return is_written(word, spelling)

    assert agree(json_string(spelling=spelling), words, expected) > (
        0x3000 if spelling == "plain" else 0x2F00
    )
    content = regex(r'[\x00-\x1f"a]{1,2}')
    inside = meant(content)
    agree(json_string(content, spelling=spelling), words, lambda word: expected(word) and inside(word))


# --- lengths ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(0, 0), (0, 2), (2, 3), (1, None), (0, None)])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_lengths_count_code_points(bounds: tuple[int, int | None], spelling: Spelling) -> None:
    low, high = bounds
    language = json_string_of_length(low, high, spelling=spelling)
    rng = random.Random(1)
    for text in ("", "a", "é", "😀", "\n", "a😀", "😀😀", '"\\', "😀\x00é", "aaa", "aaaa", "\U0010ffff" * 4):
        written = {json.dumps(text, ensure_ascii=each).encode() for each in (False, True)}
        for word in {escape(text, rng) for _ in range(20)} | written:
            inside = low <= len(text) <= (len(text) if high is None else high)
            assert language.accepts(word) == (inside and is_written(word, spelling)), word
    assert not language.accepts(b'"\\ud83d"')


def test_a_billion_characters_are_lazy(tekken: Vocabulary) -> None:
    began = time.process_time()
    language = json_string_of_length(5, 1_000_000_000, spelling="any")
    matcher = compile(language, tekken).matcher()
    for token in tekken.encode_greedy(b'"hello \\ud83d\\ude00 \\u0041')[:6]:
        assert matcher.accept_token(token)
    assert language.next_bytes(b'"abc')[0].count(b'"') == 0
    assert language.next_bytes('"abc') == language.next_bytes(b'"abc')
    assert language.next_bytes('"\ud800') == (b"", False)
    assert b'"' in language.next_bytes(b'"abc\\ud83d\\ude00d')[0]
    assert time.process_time() - began < 5


@pytest.mark.parametrize("bounds", [(-1, 2), (3, 2), (0, MAX_LENGTH + 1), (MAX_LENGTH + 1, None)])
def test_bad_bounds(bounds: tuple[int, int | None]) -> None:
    with pytest.raises(ConstraintError, match="bounds"):
        json_string_of_length(*bounds)


CONTENTS_WITH_COUNTERS = [
    "[a-c]*",
    "[a-cé😀]+",
    "a[a-c]{0,7}b",
    "(?:ab|bc){1,4}c?",
    "(?:ab|b)*",
    "a{2}|b+|",
    "(?:a|[bc]{3})[ab]{2,5}",
    "(?=.*b)[abc]+",
    "(?<=a)b*|a+(?<!aa)b*",
    "a*b*c",
    "(?:(?:ab){2})*é?",
    "é{3,}|[^a]",
    "abc",
]


@pytest.mark.parametrize("pattern", CONTENTS_WITH_COUNTERS)
def test_lengths_of_contents(pattern: str) -> None:
    content = regex(pattern)
    words = ["".join(letters) for length in range(7) for letters in itertools.product("abc", repeat=length)]
    words += ["é", "éé", "a😀é", "😀😀😀", "ababababé", "éééé", "é\n"]
    for low, high in ((0, None), (0, 0), (1, 1), (0, 2), (2, 4), (3, None), (5, 6)):
        narrowed = of_length(content, low, high)
        for word in words:
            inside = low <= len(word) and (high is None or len(word) <= high)
            assert narrowed.accepts(word) == (inside and content.accepts(word)), (low, high, word)


@pytest.mark.parametrize(
    ("pattern", "counted"),
    [
        ("[a-z0-9-]+", [(3, 63)]),
        ("[a-z][a-z0-9-]*", [(2, 62)]),
        ("(?:[a-z][0-9])*x", [(1, 31)]),
        ("x[a-z]*|[0-9]{5,100}|yy", [(2, 62), (5, 63)]),
        ("[a-z]{4,8}", [(4, 8)]),
    ],
)
def test_lengths_move_into_counters(pattern: str, counted: list[tuple[int, int]]) -> None:
    nodes = list(of_length(regex(pattern), 3, 63).expr.walk())
    assert sorted(node.value for node in nodes if node.op is ex.Op.REPEAT) == counted  # type: ignore[type-var]
    assert all(node.op is not ex.Op.INTERSECT for node in nodes)


# --- literals -----------------------------------------------------------------------------------------


def test_a_literal_has_all_its_spellings_and_no_other_text() -> None:
    language = Language(json_literal("a/\n", spelling="any"))
    every = set(spellings("a/\n"))
    assert len(every) > 10
    assert agree(language, every, lambda word: True) == len(every)
    agree(language, texts("\\/an\n", 5), lambda word: word in every)
    assert Language(json_literal('a/\n"é')).witness() == '"a/\\n\\"é"'.encode()


@given(st.lists(st.text("ab\nü😀", max_size=5), max_size=12), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_enumerations(words: list[str], seed: int) -> None:
    rng = random.Random(seed)
    language = Language(json_literals(words, spelling="any"))
    union = json_string(Language.union_of(map(Language.literal, words)), spelling="any")
    near = [word[:-1] for word in words] + [word + "a" for word in words] + ["", "ab"]
    for word in (*words, *near):
        text = escape(word, rng)
        assert language.accepts(text) == union.accepts(text) == (word in words)
    assert language.equivalent(union)


def test_an_enumeration_of_ten_thousand(tekken: Vocabulary) -> None:
    rng = random.Random(3)
    words = [f"{rng.choice(['item', 'größe', 'x'])}-{rng.randrange(10**9)}" for _ in range(10_000)]
    began = time.process_time()
    matcher = compile(Language(json_literals(words)), tekken).matcher()
    for token in tekken.encode_greedy(json.dumps(words[17]).encode()):
        assert matcher.accept_token(token)
    assert matcher.is_accepting()
    assert time.process_time() - began < 10


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(ConstraintError, match="lone surrogate"):
        json_literal("a\ud800")
    with pytest.raises(ConstraintError, match="must be one of 'plain', 'ascii', 'any'"):
        json_string(spelling="all")  # type: ignore[arg-type]


# --- random contents ----------------------------------------------------------------------------------

ATOMS = [
    "a",
    "b",
    "é",
    "😀",
    r"\n",
    '"',
    r"\\",
    "/",
    ".",
    "[a-z]",
    "[^a]",
    "[^é😀]",
    r"\w",
    r"\s",
    "[\x80-\U0010ffff]",
]
ZERO_WIDTH = ["^", "$", r"\b", r"\B", "(?=a)", "(?!é.)", "(?<=n)", r"(?<!\n)", r"(?<![\\n])", "(?<=😀)"]


def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}"])),
        st.builds("(?{}{})".format, st.sampled_from(["=", "!"]), inner),
    )


PATTERNS = st.recursive(st.sampled_from(ATOMS) | st.sampled_from(ZERO_WIDTH), extend, max_leaves=6)
STRINGS = st.text('abn"\\/\n\x00 éü😀\U0010ffff', max_size=6)


@given(st.lists(PATTERNS, min_size=1, max_size=3), st.lists(STRINGS, max_size=12), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_random_patterns(patterns: list[str], strings: list[str], seed: int) -> None:
    rng = random.Random(seed)
    content = regex(patterns[0])
    for pattern in patterns[1:]:
        other = regex(pattern)
        content = rng.choice([content & other, content | other, content - other, ~content, content + other])
    language = json_string(content, spelling="any")
    for _ in range(3):
        if not language.is_empty():
            sampled = value_of(language.sample(rng, None))
            assert sampled is not None and content.accepts(sampled)
    for text in strings:
        spelled = escape(text, rng)
        assert language.accepts(spelled) == content.accepts(text), (patterns, spelled)
        broken = spelled[: rng.randrange(len(spelled))] + spelled[rng.randrange(len(spelled)) :]
        value = value_of(broken)
        assert language.accepts(broken) == (value is not None and content.accepts(value)), broken


class _Contents(Generator):
    """Random expressions over whole characters and parts of them."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.letters = "aé\n".encode()

    def bounds(self) -> tuple[int, int | None]:
        low = self.rng.choice([0, 0, 1, 1, 2])
        return low, self.rng.choice([None, max(low, 1), low + 1, low + 2])

    def leaf(self) -> Expr:
        whole = [
            ex.literal("é".encode()),
            ex.literal(b"a"),
            ex.byte_set(1 << 97 | 1 << 10),
            ex.UNIVERSE,
            ex.machine(utf8_dfa(((0, MAX_CODE_POINT),))),
            ex.machine(utf8_dfa(((0, 96), (233, 300)))),
        ]
        return self.rng.choice(whole) if self.rng.random() < 0.8 else super().leaf()


SMALL = ["".join(letters) for length in range(4) for letters in itertools.product("aé\n", repeat=length)]


def test_random_expressions() -> None:
    assert sum(agrees_with_its_definition(seed) for seed in range(200)) > 150


@pytest.mark.soak
@pytest.mark.parametrize("block", range(1, 20))
def test_many_random_expressions(block: int) -> None:
    assert sum(agrees_with_its_definition(seed) for seed in range(200 * block, 200 * block + 200)) > 120


BUDGET = Budget(states=3_000, seconds=0.5)


def agrees_with_its_definition(seed: int) -> bool:
    """Asserts it of one random expression; False where that is exponential, and the budget ends it."""
    rng = random.Random(seed)
    expr = _Contents(rng).expression(rng.randint(1, 3))
    try:
        language = Language(json_content(expr, spelling="any", budget=BUDGET), budget=BUDGET)
        for text in SMALL:
            spelled = escape(text, rng)[1:-1]
            assert language.accepts(spelled) == matches(expr, text.encode()), (seed, text, spelled)
            broken = spelled[: rng.randrange(len(spelled) + 1)] + rng.choice(
                [b"\\", b"\xc3", b'"', b"\n", b"\\u"]
            )
            if value_of(b'"' + broken + b'"') is None:
                assert not language.accepts(broken), (seed, broken)
    except BudgetExceeded:
        return False
    return True


# --- what is promised about size ----------------------------------------------------------------------


def test_expressions_keep_their_form() -> None:
    """Counted repetitions stay counted, and a text is as long as its pattern."""
    content = regex("[a-z]{1,64}(?:-[0-9]{3})*")
    mapped = json_content(content.expr, spelling="any")
    counted = [node.value for node in mapped.walk() if node.op is ex.Op.REPEAT]
    assert sorted(counted) == [(0, -1), (1, 64), (3, 3)]  # type: ignore[type-var]
    assert len(list(mapped.walk())) <= 2 * len(list(content.expr.walk()))
    assert json_content(regex("[a-z]").expr) is json_content(regex("[a-z]").expr)


def test_byte_automata_are_bounded_by_the_budget() -> None:
    content = (regex("(?:a|b)*a(?:a|b){12}").minimize()).with_budget(Budget(states=20_000))
    with pytest.raises(BudgetExceeded, match="spellings"):
        json_string(content, spelling="any")


def test_deep_expressions() -> None:
    def nested(depth: int) -> Expr:
        expr = ex.EPSILON
        for _ in range(depth):
            expr = ex.union(ex.literal(b"a"), ex.concat(ex.literal(b"b"), expr))
        return json_content(expr, spelling="any")

    assert sum(1 for _ in nested(5_000).walk()) > 5_000
    assert Language(nested(500)).accepts(b"b" * 499 + b"\\u0061")


# --- automata by characters ---------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, MAX_CODE_POINT), st.integers(0, 5000)), max_size=8))
@settings(max_examples=80, deadline=None)
def test_character_sets_are_read_back(pairs: list[tuple[int, int]]) -> None:
    ranges = without_surrogates(normalize((low, min(low + more, MAX_CODE_POINT)) for low, more in pairs))
    dfa = utf8_dfa(ranges)
    assert characters(dfa).whole
    assert single_characters(dfa) == (ranges or None)


def test_partial_characters_are_noticed() -> None:
    for pattern in (
        rb"\xc3",
        rb"\xc3\xa9\xa9",
        rb"\xff",
        rb"\xed\xa0\x80",
        rb"\xc1\x81",
        rb"a|\xc3a",
        rb"\xf4\x90\x80\x80",
    ):
        assert not characters(regex(pattern).determinize()).whole, pattern
    read = characters(regex("(?:é|ab)*😀").determinize())
    assert read.whole
    assert np.count_nonzero(read.accepting) == 1


# --- single characters --------------------------------------------------------------------------------
