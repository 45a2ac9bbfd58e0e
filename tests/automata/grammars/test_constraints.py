"""Constraints of both kinds by brute force: all texts up to a length over a small alphabet, against the definitions."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from reference.expressions.random_expressions import random_expression
from reference.grammars.random_grammars import all_words, random_grammar
from tokenfst import Constraint, Grammar, Language, gbnf, json_schema, one_token, regex
from tokenfst.automata.expressions.expression import byte_set, repeat
from tokenfst.automata.grammars.templates import template
from tokenfst.budget import Budget
from tokenfst.errors import (
    AlgebraError,
    ArgumentTypeError,
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
)

LONGEST = 6
WORDS = all_words(LONGEST)
LETTERS = Language(repeat(byte_set(1 << 97 | 1 << 98)))
BRACKETS = gbnf('root ::= "(" root ")" root | "[" root "]" root | ""')
AMBIGUOUS = gbnf('root ::= root root | "a" | "b" root "b"')
PALINDROMES = gbnf('root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""')
CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def short(constraint: Constraint) -> set[bytes]:
    """Which of ``WORDS`` a constraint accepts; what it accepts is compared with the definitions elsewhere."""
    return {word for word in WORDS if constraint.accepts(word)}


def worlds(seed: int) -> tuple[list[Language], list[Grammar]]:
    rng = random.Random(seed)
    languages = [Language(random_expression(rng, 2)) & LETTERS for _ in range(4)]
    return languages, [random_grammar(rng) for _ in range(3)]


def concatenated(left: set[bytes], right: set[bytes]) -> set[bytes]:
    return {word for a in left for b in right if len(word := a + b) <= LONGEST}


def repeated(words: set[bytes], low: int, high: int | None) -> set[bytes]:
    step = {b""}
    for _ in range(low):
        step = concatenated(step, words)
    found, count = set(step), low
    while (high is None or count < high) and count < low + LONGEST + 1:
        step = concatenated(step, words)
        found |= step
        count += 1
    return found


# --- the algebra --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_union_and_concatenation_of_all_kinds(seed: int) -> None:
    languages, grammars = worlds(seed)
    both: list[Constraint] = [*languages[:2], *grammars[:2]]
    known = {id(each): short(each) for each in both}
    for a, b in itertools.product(both, both):
        union, joined = a | b, a + b
        kind = Grammar if isinstance(a, Grammar) or isinstance(b, Grammar) else Language
        assert isinstance(union, kind) and isinstance(joined, kind)
        assert short(union) == known[id(a)] | known[id(b)]
        assert short(joined) == concatenated(known[id(a)], known[id(b)])


@pytest.mark.parametrize("seed", range(12))
def test_repetition_reversal_and_maps(seed: int) -> None:
    languages, grammars = worlds(100 + seed)
    swap, merge = bytes.maketrans(b"ab", b"ba"), bytes.maketrans(b"b", b"a")
    each: Constraint
    for each in (*languages, *grammars):
        words = short(each)
        assert short(each.star()) == repeated(words, 0, None)
        assert short(each.plus()) == repeated(words, 1, None)
        assert short(each.optional()) == words | {b""}
        assert short(each.repeat(1, 2)) == repeated(words, 1, 2)
        assert short(each.reverse()) == {word[::-1] for word in words}
        assert short(each.reverse().reverse()) == words
        for table in (swap, merge):
            assert short(each.map_bytes(table)) == {word.translate(table) for word in words}


@pytest.mark.parametrize("seed", range(6))
def test_intersection_and_difference(seed: int) -> None:
    languages, _ = worlds(200 + seed)
    regular = gbnf('root ::= root "ab" | item\nitem ::= "b" | "a" item')
    grammars = [PALINDROMES, gbnf('root ::= "a" root "b" | ""'), regular]
    assert regular.is_regular()
    small = [language for language in languages if language.size().states <= 30]
    for language, grammar in itertools.product(small, grammars):
        inside, words = short(grammar), short(language)
        assert short(grammar & language) == short(language & grammar) == inside & words
        assert short(grammar - language) == inside - words
    for grammar in grammars:
        assert short(grammar & regular) == short(regular & grammar) == short(grammar) & short(regular)
        assert short(grammar - regular) == short(grammar) - short(regular)
    assert short(languages[0] - regular) == short(languages[0]) - short(regular)
    assert short(~regular) == set(WORDS) - short(regular)


REFUSED: dict[str, Callable[[], object]] = {
    "complement": lambda: ~BRACKETS,
    "two grammars": lambda: BRACKETS & PALINDROMES,
    "grammar without grammar": lambda: BRACKETS - PALINDROMES,
    "language without grammar": lambda: regex("a") - BRACKETS,
    "equivalent": lambda: BRACKETS.equivalent(PALINDROMES),
    "includes": lambda: BRACKETS.includes(regex("a")),
    "tokens backwards": lambda: one_token(regex("ab")).reverse(),
    "tokens mapped": lambda: (regex("a") + one_token()).map_bytes(bytes(range(256))),
    "names that differ, backwards": lambda: json_schema({"type": "object"}).reverse(),
    "names that differ, mapped": lambda: json_schema({"type": "object"}).map_bytes(bytes(range(256))),
    "names that differ, without some": lambda: json_schema({"type": "object"}) - regex("{}"),
    "names that differ, counted": lambda: json_schema({"type": "object"}).count(5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_exact_result_is_refused(name: str) -> None:
    with pytest.raises(AlgebraError, match=r".: |[a-z]: "):
        REFUSED[name]()


def test_a_language_includes_a_grammar_or_says_why_not() -> None:
    assert regex(r"[()\[\]]*").includes(BRACKETS)
    answer = regex(r"[()]*").includes(BRACKETS)
    assert not answer and answer.witness == b"[]"


def test_schemas_are_united_with_patterns() -> None:
    schema = json_schema(CLOSED, whitespace="compact")
    either = schema | regex("no")
    assert either.accepts("no") and either.accepts('{"a":7}') and not either.accepts("nono")
    assert (regex("no") | schema).accepts('{"a":7}')
    thought = regex("<think>[a-z ]*</think>") + json_schema({"type": "array"}).plus()
    assert thought.accepts("<think>well</think>[1, [2]][]") and not thought.accepts("<think>well</think>")
    assert template("{x}!", x=either).accepts("no!")
    nested = json_schema({"type": "array"}, repeated_names="allow") - regex(r"(?s).*null.*")
    assert nested.accepts("[[1]]") and not nested.accepts("[[null]]")


def test_other_operands_are_no_constraints() -> None:
    for left in (regex("a"), BRACKETS):
        for operation in ("__or__", "__and__", "__sub__", "__add__"):
            for right in (object(), 1, None):
                assert getattr(left, operation)(right) is NotImplemented
            with pytest.raises(ArgumentTypeError, match="both sides must be constraints, not 'a'"):
                getattr(left, operation)("a")
    with pytest.raises(TypeError, match="unsupported operand"):
        BRACKETS | 1  # type: ignore[operator]
    with pytest.raises(ConstraintError, match="256 bytes"):
        BRACKETS.map_bytes(b"abc")
    with pytest.raises(ArgumentTypeError, match="256 bytes"):
        regex("a").map_bytes("abc")  # type: ignore[arg-type]
    with pytest.raises(ConstraintError, match="cannot repeat"):
        BRACKETS.repeat(3, 2)
    with pytest.raises(ConstraintError, match="low must be at most 2147483647, not 2147483648"):
        BRACKETS.repeat(2**31)
    with pytest.raises(ArgumentTypeError):
        Language.union_of(regex("a*"))  # type: ignore[arg-type]  # one, whose texts never end


# --- questions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_counts_order_and_ends_by_brute_force(seed: int) -> None:
    languages, grammars = worlds(300 + seed)
    each: Constraint
    for each in (*languages, *grammars):
        words = short(each)
        counts = each.count(LONGEST)
        by_length = Counter(map(len, words))
        assert counts.by_length == tuple(by_length[length] for length in range(LONGEST + 1))
        assert counts.total == len(words)
        ordered = sorted(words, key=lambda word: (len(word), word))
        assert list(itertools.takewhile(lambda word: len(word) <= LONGEST, each)) == ordered
        assert each.shortest() == next(iter(each), None)
        assert each.is_empty() == (each.shortest() is None)
        if each.is_finite():
            everything = list(each)
            assert each.count().total == len(everything) == len(set(everything))
            assert all(each.accepts(word) for word in everything)
        else:
            assert len(list(itertools.islice(each, 50))) == 50
            with pytest.raises(ConstraintError, match="infinitely many"):
                each.count()


@pytest.mark.parametrize("seed", range(10))
def test_explanations_agree_with_what_is_accepted(seed: int) -> None:
    languages, grammars = worlds(400 + seed)
    each: Constraint
    for each in (*languages, *grammars):
        for word in WORDS[:63]:
            found = each.explain(word)
            assert bool(found) == each.accepts(word) == (word in each)
            if found or found.expected is None:
                assert each.is_empty() or found
                continue
            before = word[: found.place]
            assert each.viable_prefix(word) == found.place
            live = {chr(point) for low, high in found.expected.characters for point in range(low, high + 1)}
            assert live == {
                letter for letter in "ab" if each.viable_prefix(before + letter.encode()) > len(before)
            }
            assert found.expected.ends == each.accepts(before)
            assert found.ending is not None and each.accepts(before + found.ending)
            onward = [len(word) for word in WORDS if word.startswith(before) and each.accepts(word)]
            if onward:
                assert len(before + found.ending) == min(onward)


def test_questions_about_a_beginning_take_text_and_bytes() -> None:
    accents = gbnf('root ::= "é" root "z" | ""')
    for each, deepest in ((accents, ("root",)), (regex("é*z"), None)):
        assert each.completion("é") == each.completion("é".encode()) == b"z"
        assert each.completion("x") is each.completion("\ud800") is None
        assert each.viable_prefix("éx") == each.viable_prefix("éx".encode()) == 2
        assert each.viable_prefix("\ud800") == 0
        assert each.following("é") == each.following("é".encode()) and each.following("é").characters
        assert each.open_rules("é") == each.open_rules("é".encode()) == deepest
        for question in (each.completion, each.viable_prefix, each.following, each.next_bytes):
            with pytest.raises(
                ArgumentTypeError, match=f"{question.__name__}: .* must be text or bytes, not 3"
            ):
                question(3)
        with pytest.raises(ArgumentTypeError, match="explain: text must be text or bytes, not None"):
            each.explain(None)  # type: ignore[arg-type]


def test_an_explanation_points_at_the_place() -> None:
    found = (json_schema(CLOSED) | regex("no")).explain('{"a": "é"}')
    assert (found.place, found.character) == (6, 6) and not found
    assert str(found).splitlines()[1:] == ['  {"a": "é"}', "        ^"]
    assert "leaves the language at byte 6: expected" in str(found)
    early = regex("é{2}").explain("é")
    assert str(early) == 'the text stops too early, at byte 2 (character 1): expected "é"\n  é\n   ^'
    assert str(regex("a").explain("a")) == "the text is in the language"
    assert str(Language.empty().explain("a")) == "the language has no text at all"
    unfinished = json_schema({"type": "object"}).explain('{"a": 1, "a": 2}')
    assert not unfinished and unfinished.place == 11 and unfinished.rules is not None
    assert not regex("a").explain("\ud800")


def test_ambiguous_texts_count_once() -> None:
    catalan = [1, 1, 2, 5, 14, 42]
    assert BRACKETS.count(10).by_length == tuple(
        2 ** (n // 2) * catalan[n // 2] if n % 2 == 0 else 0 for n in range(11)
    )
    assert AMBIGUOUS.count(7).by_length == tuple(
        sum(AMBIGUOUS.accepts(word) for word in map(bytes, itertools.product(b"ab", repeat=n)))
        for n in range(8)
    )


def test_large_counts_are_exact() -> None:
    assert regex(r"(?s:.)", 0).count() == regex(r"(?s:.)").count()
    assert Language.any_bytes().count(100).by_length[100] == 256**100
    assert regex("[a-z]{1,3000}").count().total == sum(26**n for n in range(1, 3001))
    assert regex("[ab]{0,400}").count(10).by_length == tuple(2**n for n in range(11))


def test_texts_of_lazy_constraints() -> None:
    endless = regex(r"(\w{1,300} ){1,3000}")  # its automaton is never made in full
    assert list(itertools.islice(endless, 2)) == [b"0 ", b"1 "]
    assert list(itertools.islice(json_schema({"type": "object"}), 3)) == [b"{}", b'{"":0}', b'{"":1}']
    assert list(regex("c|ab|b|a|")) == [b"", b"a", b"b", b"c", b"ab"]
    names = json_schema(
        {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}, whitespace="compact"
    )
    assert [text for text in names if b"u" not in text] == [
        b"[]",
        b'["a"]',
        b'["b"]',
        b'["a","b"]',
        b'["b","a"]',
    ]


def test_budgets_of_walks() -> None:
    tight = BRACKETS.with_budget(Budget(states=200))
    with pytest.raises(BudgetExceeded, match="states"):
        tight.count(60)
    assert tight.count(6) == BRACKETS.count(6)
    with pytest.raises(BudgetExceeded, match="seconds"):
        BRACKETS.with_budget(Budget(seconds=0.05)).count(200)


# --- samples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "constraint",
    [
        regex("[ab]{4}|abab[ab]{0,3}"),
        BRACKETS,
        PALINDROMES,
        AMBIGUOUS,
        (AMBIGUOUS | regex("a*")) - regex("aaaa"),
    ],
    ids=["language", "brackets", "palindromes", "ambiguous", "combined"],
)
def test_samples_are_uniform(constraint: Constraint) -> None:
    """Pearson's chi-square, of a fixed seed, below the quantile 0.999 (by Wilson and Hilferty)."""
    texts = list(
        itertools.islice((text for text in constraint if len(text) == 4), constraint.count(4).by_length[4])
    )
    generator = random.Random(17)
    draws = 200 * len(texts)
    found = Counter(constraint.sample(generator, length=4) for _ in range(draws))
    assert set(found) == set(texts)
    expected = draws / len(texts)
    statistic = sum((found[text] - expected) ** 2 / expected for text in texts)
    freedom = len(texts) - 1
    assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3


def test_samples_by_weights_of_lengths() -> None:
    language = regex("a|bb|[ab]{3}")
    generator = np.random.default_rng(3)
    lengths = Counter(len(language.sample(generator, weights={1: 1, 2: 3, 9: 100})) for _ in range(2000))
    assert set(lengths) == {1, 2} and 1380 < lengths[2] < 1620
    every = Counter(language.sample(generator, 3, weights="texts") for _ in range(5000))
    assert len(every) == 10 and min(every.values()) > 400
    assert language.sample(random.Random(1), length=3) == language.sample(random.Random(1), length=3)
    assert BRACKETS.accepts(BRACKETS.sample(random.Random(2))) and len(BRACKETS.sample(max_length=4)) <= 4
    differing = json_schema(
        {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}, whitespace="compact"
    )
    assert {differing.sample(generator, length=9) for _ in range(40)} >= {b'["a","b"]', b'["b","a"]'}
    with pytest.raises(ConstraintError, match="there is no text of length 7"):
        language.sample(generator, length=7)
    with pytest.raises(EmptyLanguageError):
        Language.empty().sample(generator, length=7)
    with pytest.raises(ConstraintError, match="not both"):
        language.sample(length=1, weights={1: 1})
    with pytest.raises(ConstraintError, match="goes with max_length"):
        language.sample(weights="texts")
    with pytest.raises(ConstraintError, match="none of them negative"):
        language.sample(weights={1: -1})
    for unknown in (3, "text"):
        with pytest.raises(ArgumentTypeError, match="mapping from lengths"):
            language.sample(max_length=3, weights=unknown)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="each weight in weights must be a number"):
        language.sample(weights={1: "much"})  # type: ignore[dict-item]
    with pytest.raises(ArgumentTypeError, match="generator"):
        language.sample(3)
