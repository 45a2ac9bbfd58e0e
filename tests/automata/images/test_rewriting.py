"""Edits, case, normal forms and images under transducers, against twins that look at one text at a time."""

from __future__ import annotations

import itertools
import random
import unicodedata
from collections.abc import Callable

import numpy as np
import pynini
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.transducers.edits import canonical, compatible, distance, simple_fold, written
from tokenfst import (
    Budget,
    Language,
    Vocabulary,
    allocate_token_bitmask,
    case_insensitive,
    compile,
    gbnf,
    normalization_insensitive,
    regex,
    rewrite,
    within_edits,
)
from tokenfst.automata.characters import case
from tokenfst.automata.openfst import fst
from tokenfst.automata.openfst.label_kinds import with_byte_symbols
from tokenfst.errors import BudgetExceeded, ConstraintError, FstError


def texts(letters: str, longest: int) -> list[str]:
    return ["".join(word) for n in range(longest + 1) for word in itertools.product(letters, repeat=n)]


def words_of(*words: str | bytes) -> Language:
    return Language.union_of(map(Language.literal, words))


# --- edits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transpositions", [False, True])
@pytest.mark.parametrize("pattern", ["", "ab|ba*", "(?:aé)+", "a[^b]?é", "(?=.*a)[abé]{2}", "é{2,3}b?"])
def test_edits_of_small_languages(pattern: str, transpositions: bool) -> None:
    language = regex(pattern)
    every = texts("abé", 4)
    # "☃" stands for all the letters that no text here has: [^b] has them too.
    inside = [text for text in texts("abé☃", 5) if language.accepts(text)]
    for k in (0, 1, 2) if len(inside) < 100 else (0, 1):
        made = within_edits(language, k, transpositions=transpositions)
        for text in every:
            nearest = min(
                (distance(text, each, transpositions) for each in inside if abs(len(each) - len(text)) <= k),
                default=9,
            )
            assert made.accepts(text) == (nearest <= k), (text, k)


@given(
    st.lists(st.text("abé", max_size=5), min_size=1, max_size=4),
    st.lists(st.text("abé€", max_size=6), min_size=5, max_size=20),
    st.integers(0, 3),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_edits_of_words(words: list[str], queries: list[str], k: int, transpositions: bool) -> None:
    language = words_of(*words)
    made = within_edits(language, k, transpositions=transpositions)
    by_bytes = within_edits(language, k, transpositions=transpositions, unit="bytes")
    for text in queries:
        assert made.accepts(text) == any(distance(text, word, transpositions) <= k for word in words)
        data = text.encode()[: 1 + len(text)]
        near = any(distance(data, word.encode(), transpositions) <= k for word in words)
        assert by_bytes.accepts(data) == near


def test_laws_of_edits() -> None:
    language = regex("a[bé]*|€")
    once = within_edits(language, 1)
    assert within_edits(once, 1).equivalent(within_edits(language, 2))
    assert within_edits(language, 0).equivalent(language)
    assert within_edits(language, 2).includes(once)
    assert Language.any_text().includes(once)
    assert within_edits(words_of(b"a\xff", "b"), 1).equivalent(within_edits(words_of("b"), 1))
    assert within_edits(words_of(b"\xff"), 1, unit="bytes").accepts(b"a")
    assert within_edits(Language.empty(), 3).is_empty()
    assert within_edits(words_of("a"), 1).accepts("\U0010ffff") and within_edits(words_of("a"), 1).accepts(
        "\0"
    )


# --- case ---------------------------------------------------------------------------------------------

CASED = "kK\u212asSſßẞ1"


@pytest.mark.parametrize(
    "language",
    [
        regex("k{1,2}[sß]|1"),
        regex("[^k]?s"),
        regex("(?!ks)[ks]+"),
        regex("[ks]+(?<=k)"),
        regex(".*s") & regex(".*K.*"),
        ~regex("[sS]*") & regex("[skK1]*"),
        regex("(?:ks)+") + ~regex("ſ.*") & Language.any_text(),
        words_of("ß", "SS", "K1"),
        regex(r"\w(?<!s)\W*"),
    ],
    ids=lambda language: language.source,
)
def test_case_of_small_languages(language: Language) -> None:
    made = case_insensitive(language)
    every = texts(CASED, 3)
    inside = {simple_fold(text) for text in every if language.accepts(text)}
    for text in every:
        assert made.accepts(text) == (simple_fold(text) in inside), text
    assert case_insensitive(made).equivalent(made)
    assert made.includes(language & Language.any_text())


def test_simple_folding_of_all_characters() -> None:
    for code in range(0x20000):
        if code not in (0xFB05, 0x1FD3, 0x1FE3):  # from Unicode 15.1 on: docs/research/rewriting.md
            assert case.simple_fold(chr(code)) == simple_fold(chr(code)), hex(code)


def test_case_keeps_counts() -> None:
    language = case_insensitive(regex("[a-f]{1,50000}"))
    assert language.accepts("aF" * 25_000) and not language.accepts("aF" * 25_000 + "a")


@given(
    st.lists(st.text("sßẞfﬁSi\u0307İ", max_size=4), min_size=1, max_size=3),
    st.lists(st.text("sßẞfﬁSi\u0307İ", max_size=6), min_size=5, max_size=20),
)
@settings(max_examples=40, deadline=None)
def test_full_folding(words: list[str], queries: list[str]) -> None:
    made = case_insensitive(words_of(*words), full=True)
    for text in (*queries, *(word.upper() for word in words)):
        assert made.accepts(text) == (text.casefold() in {word.casefold() for word in words})


# --- normal forms -------------------------------------------------------------------------------------

MARKED = "aeé\u0301\u0323ạ\u0302ấÅ\u212bA\u030a"


@pytest.mark.parametrize("form", ["NFC", "NFKD"])
@pytest.mark.parametrize(
    "pattern",
    [
        "é\u0323?",
        "a[\u0301\u0323]{0,2}",
        "[aeé]*\u0301",
        "(?:ấ|e)\u0323*",
        "ạ\u0302\u0301?e?",
        "[\u0301\u0302]*\u0301",
        "[a\u0301\u0323]{0,3}ạ",
        "\u212b[aA]?|[eé]\u0323\u0302?",
    ],
)
def test_normal_forms_of_small_languages(pattern: str, form: str) -> None:
    normal: Callable[[str], str] = canonical if form == "NFC" else compatible
    language = regex(pattern)
    made = normalization_insensitive(language, form)  # type: ignore[arg-type]
    inside = {normal(text) for text in texts(MARKED, 4) if language.accepts(text)}
    for text in texts(MARKED, 3):
        assert made.accepts(text) == (normal(text) in inside), ascii(text)
    assert normalization_insensitive(made, form).equivalent(made)  # type: ignore[arg-type]


LETTERS = "aqdńṩḋ\u0307\u0323\u0301\u0344\u0308Å한ㅎ\u1112\u1161\u11abㄱﬁ²Ω\u2126"


@given(
    st.lists(st.text(LETTERS, max_size=5), min_size=1, max_size=3),
    st.lists(st.text(LETTERS, max_size=6), min_size=3, max_size=20),
    st.randoms(use_true_random=False),
)
@settings(max_examples=30, deadline=None)
def test_normal_forms_of_words(words: list[str], queries: list[str], rng: random.Random) -> None:
    shuffled = []
    for word in words:
        marks = list(canonical(word))
        for _ in range(9):
            place = rng.randrange(max(1, len(marks) - 1))
            pair = marks[place : place + 2][::-1]
            if canonical("".join(marks[:place] + pair + marks[place + 2 :])) == canonical(word):
                marks[place : place + 2] = pair
        shuffled.append("".join(marks))
    for form, normal in (("NFD", canonical), ("NFKC", compatible)):
        made = normalization_insensitive(words_of(*words), form)  # type: ignore[arg-type]
        inside = set(map(normal, words))
        spelled = [unicodedata.normalize("NFC", word) for word in words]
        assert all(map(made.accepts, (*words, *spelled, *shuffled)))
        for text in (*queries, *(word[::-1] for word in shuffled)):
            assert made.accepts(text) == (normal(text) in inside), ascii(text)


def test_open_languages_are_closed_already() -> None:
    for pattern in (r"[^x]*", "(?s:.*)", "(?s:a.*b)"):
        made = normalization_insensitive(regex(pattern))
        assert made.includes(regex(pattern)) and made.accepts("ab") == regex(pattern).accepts("ab")
    cafe = normalization_insensitive(regex("(?s:.*)café(?s:.*)"))
    assert (
        cafe.accepts("un cafe\u0323\u0301!")
        and cafe.accepts("caf\u1eb9\u0301")
        and not cafe.accepts("cafe\u0323")
    )


def test_unbounded_marks_in_order_are_refused() -> None:
    with pytest.raises(ConstraintError, match="repeat without a bound"):
        normalization_insensitive(regex("a(?:\u0301\u0323)*"))
    assert normalization_insensitive(regex("a(?:\u0301|\u0323)*")).accepts("á\u0323")


# --- transducers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_images_under_random_transducers(seed: int) -> None:
    rng = random.Random(seed)
    letters = [b"", b"a", b"\x00"]
    arcs = [
        (rng.randrange(3), rng.choice(letters), rng.choice(letters), rng.randrange(3))
        for _ in range(rng.randrange(3, 9))
    ]
    finals = rng.sample(range(3), rng.randrange(1, 3))
    words = [bytes(rng.choices(b"a\0", k=rng.randrange(4))) for _ in range(3)]
    transducer = fst.from_arcs(
        3,
        0,
        finals,
        [arc[0] for arc in arcs],
        [arc[1][0] + 1 if arc[1] else 0 for arc in arcs],
        [arc[2][0] + 1 if arc[2] else 0 for arc in arcs],
        [arc[3] for arc in arcs],
    )
    made = rewrite(words_of(*words), transducer, byte_zero=1)
    expected = written(arcs, 0, finals, words, 5)
    for n in range(6):
        for word in map(bytes, itertools.product(b"a\0", repeat=n)):
            assert made.accepts(word) == (word in expected), word


def test_rewrite_rules_of_pynini() -> None:
    with pynini.default_token_type("byte"):
        letters = pynini.union(*"abxy")
        rule = pynini.cdrewrite(pynini.cross("a", "xy"), "b", "", pynini.closure(letters))
    made = rewrite(regex("b?a{1,3}"), rule, byte_zero=0)
    assert made.equivalent(words_of("a", "aa", "aaa", "bxy", "bxya", "bxyaa"))
    back = rewrite(made, pynini.invert(rule), byte_zero=0)
    assert back.includes(regex("b?a{1,3}"))


# --- bad input, budgets -------------------------------------------------------------------------------


def test_what_is_refused() -> None:
    grammar = gbnf('root ::= "a" root "b" | ""')
    copy = with_byte_symbols(fst.from_arcs(1, 0, [0], [0], [98], [98], [0]))
    for call in (
        lambda: within_edits(grammar, 1),  # type: ignore[arg-type]
        lambda: case_insensitive(grammar),  # type: ignore[arg-type]
        lambda: normalization_insensitive(grammar),  # type: ignore[arg-type]
        lambda: rewrite(grammar, copy),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConstraintError, match="truncate"):
            call()
    with pytest.raises(ConstraintError, match="at least 0"):
        within_edits(regex("a"), -1)
    with pytest.raises(ConstraintError, match="unit"):
        within_edits(regex("a"), 1, unit="words")  # type: ignore[arg-type]
    with pytest.raises(ConstraintError, match="normal forms"):
        normalization_insensitive(regex("a"), "NFE")  # type: ignore[arg-type]
    with pytest.raises(FstError, match="output label 300"):
        rewrite(regex("a"), fst.from_arcs(1, 0, [0], [0], [98], [300], [0]), byte_zero=1)
    with pytest.raises(FstError, match="weight"):
        rewrite(regex("a"), pynini.accep("a", weight=2), byte_zero=0)
    assert rewrite(regex("b"), copy).is_empty() and rewrite(Language.empty(), copy).is_empty()
    assert rewrite(regex("a*"), copy).equivalent(regex("a*"))


def test_budgets() -> None:
    with pytest.raises(BudgetExceeded, match="states"):
        within_edits(regex("[ab]{30}c"), 3, budget=Budget(states=200))
    with pytest.raises(BudgetExceeded, match="seconds"):
        within_edits(regex("[ab]{30}c"), 3, budget=Budget(seconds=1e-4))
    copy = fst.from_arcs(2, 0, [0], [0, 0, 1], [98, 98, 98], [98, 99, 99], [0, 1, 0])
    with pytest.raises(BudgetExceeded, match="states"):
        rewrite(regex("a{500}"), copy, byte_zero=1, budget=Budget(states=600))
    with pytest.raises(BudgetExceeded):
        normalization_insensitive(regex("(?s:.{0,9})"), budget=Budget(seconds=2))


# --- over a real vocabulary ---------------------------------------------------------------------------


def walk(language: Language, vocabulary: Vocabulary, rng: random.Random, steps: int = 25) -> bytes:
    """A random text, masks checked on the way against the language."""
    matcher = compile(language, vocabulary).matcher(steps)
    row = allocate_token_bitmask(1, len(vocabulary))
    free = compile(language, vocabulary).matcher()
    text = b""
    while not matcher.is_terminated():
        free.fill_next_token_bitmask(row, 0)
        allowed = np.unpackbits(row.view(np.uint8), bitorder="little")
        some = rng.sample(range(len(vocabulary)), 60) + rng.sample(np.flatnonzero(allowed).tolist(), 1)
        for token in some:
            if vocabulary.tokens[token]:
                data = text + vocabulary.tokens[token]
                assert allowed[token] == (language.viable_prefix(data) == len(data)), data
        matcher.fill_next_token_bitmask(row, 0)
        ending = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        token = rng.choice(ending)
        assert matcher.accept_token(token) and free.accept_token(token)
        text += vocabulary.tokens[token]
    return text


@pytest.mark.parametrize("seed", range(3))
def test_walks_over_tekken(tekken: Vocabulary, seed: int) -> None:
    rng = random.Random(seed)
    words = ["straße", "Größe 10 €", "naïve café"]
    near = walk(within_edits(words_of(*words), 2, transpositions=True), tekken, rng)
    assert min(distance(near.decode(), word, True) for word in words) <= 2
    cased = walk(case_insensitive(words_of(*words)), tekken, rng)
    assert simple_fold(cased.decode()) in map(simple_fold, words)
    folded = walk(case_insensitive(words_of(*words), full=True), tekken, rng)
    assert folded.decode().casefold() in {word.casefold() for word in words}
    spelled = walk(normalization_insensitive(words_of(*words)), tekken, rng)
    assert canonical(spelled.decode()) in map(canonical, words)
    both = within_edits(case_insensitive(words_of(*words)), 1) & ~words_of(*words) & regex("[^x]*")
    near = walk(both, tekken, rng)
    assert "x" not in near.decode() and near.decode() not in words
