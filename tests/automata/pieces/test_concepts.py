"""Concept transducers against every form tried at every place, and the errors of the ABS paper's bookkeeping."""

from __future__ import annotations

import itertools
import random
import re
import sys
import time
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenfst
from reference.transducers.concepts import occurrences
from tokenfst import Budget, Vocabulary, avoids, compile, concepts, contains_all, contains_in_order, regex
from tokenfst.automata.pieces.classifier import classifier
from tokenfst.errors import BudgetExceeded, ConstraintError, LabelError, MissingDependencyError

BYTES = [bytes([byte]) for byte in range(256)]
FORMS = st.dictionaries(
    st.sampled_from(["x", "y", "z"]),
    st.lists(st.text("abé -", min_size=1, max_size=3), min_size=1, max_size=2),
    min_size=1,
    max_size=3,
)


def toy(*tokens: bytes) -> Vocabulary:
    return Vocabulary([*tokens, *BYTES, b""], len(tokens) + 256)


class Table:
    """An automaton over symbols, as ``Concepts.language`` wants one."""

    def __init__(self, symbols: list[str], table: list[list[int]], accepting: list[bool]) -> None:
        self.symbols, self.start = symbols, 1
        self.table, self.accepting = np.array(table), np.array(accepting)

    def accepts(self, sequence: list[str]) -> bool:
        state = self.start
        for symbol in sequence:
            column = self.symbols.index(symbol) if symbol in self.symbols else len(self.symbols)
            state = int(self.table[state, column])
        return bool(self.accepting[state])


# --- what is written, and what is accepted ------------------------------------------------------------


@given(FORMS, st.lists(st.text("abé -“5", max_size=9), min_size=5, max_size=20), st.booleans())
@settings(max_examples=40, deadline=None)
def test_symbols_and_constraints(forms: dict[str, list[str]], texts: list[str], boundaries: bool) -> None:
    if len({form for each in forms.values() for form in set(each)}) < sum(
        len(set(each)) for each in forms.values()
    ):
        with pytest.raises(LabelError, match="belongs to two concepts"):
            concepts(forms)
        return
    made = concepts(forms, boundaries=boundaries)
    ordered = contains_in_order(forms, boundaries=boundaries)
    everything = contains_all(forms, boundaries=boundaries)
    none = avoids(forms, boundaries=boundaries)
    for text in texts:
        written = occurrences(forms, text, boundaries)
        assert made.symbols(text) == written
        rest = iter(written)
        assert ordered.accepts(text) == all(name in rest for name in forms)
        assert everything.accepts(text) == (set(written) == set(forms))
        assert none.accepts(text) == (not written)
    assert not none.accepts(b"\xff") and not none.accepts(b"a" + b"\xc3")


@pytest.mark.parametrize("seed", range(6))
def test_composition_with_any_automaton_over_symbols(seed: int) -> None:
    rng = random.Random(seed)
    forms = {"one": ["a", "b a"], "two": ["ab", "é"], "three": ["b-"]}
    symbols = rng.sample(["one", "two", "elsewhere"], 2)  # three is always anything else
    table = [[0] * 3] + [[rng.randint(0, 3) for _ in range(3)] for _ in range(3)]
    automaton = Table(symbols, table, [False, *(rng.random() < 0.5 for _ in range(3))])
    for boundaries in (True, False):
        made = concepts(forms, boundaries=boundaries)
        language = made.language(automaton)
        for text in map("".join, itertools.product("abé -", repeat=4)):
            assert language.accepts(text) == automaton.accepts(occurrences(forms, text, boundaries)), text


def test_characters_beyond_ascii_are_told_apart_as_python_does() -> None:
    characters = [chr(code) for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000]
    read = classifier((("é", 5), ("😀", 6)))
    edges = ["é", "😀", "\x80", "\U0010ffff", "\u0800", "\uffff"]
    for character in [*random.Random(0).sample(characters, 4000), *edges]:
        state = 0
        for byte in character.encode():
            assert state >= 0
            state = int(read.table[state, read.classes[byte - 0x80]])
        expected = {"é": 5, "😀": 6}.get(character, int(bool(re.match(r"\w", character))))
        assert read.outcomes[-1 - state] == expected, character
    nothing = avoids(["q"])
    assert nothing.accepts("“—”") and not nothing.accepts("“q”")
    for bad in (
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xf0\x80\x80\x80",
        b"\x80",
    ):
        assert nothing.viable_prefix(bad) < len(bad)


def test_ignoring_case() -> None:
    language = contains_all(["Dog", "été"], ignore_case=True)
    assert language.accepts("DOG in ÉTÉ") and language.accepts("Été dog") and not language.accepts("dogs été")
    assert not contains_all(["Dog"]).accepts("dog")


def test_inflections(monkeypatch: pytest.MonkeyPatch) -> None:
    plural = contains_all(["dog"], inflections=lambda form: [form + "s"])
    assert plural.accepts("two dogs") and plural.accepts("a dog") and not plural.accepts("dogged")
    stand_in = types.ModuleType("lemminflect")
    stand_in.getAllInflections = lambda word: {"NNS": ("toys",), "VBG": ("toying", "toys")}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lemminflect", stand_in)
    assert concepts(["toy"], inflections=True).forms == {"toy": ("toy", "toying", "toys")}
    monkeypatch.setitem(sys.modules, "lemminflect", None)
    with pytest.raises(MissingDependencyError, match=r"tokenfst\[concepts\]"):
        concepts(["toy"], inflections=True)


def test_real_inflections() -> None:
    pytest.importorskip("lemminflect")
    assert concepts(["run"], inflections=True).symbols("he ran; running runs, run-down, rung") == ["run"] * 4


# --- the paper's errors -------------------------------------------------------------------------------


def test_distances_count_what_is_read_of_a_concept() -> None:
    vocabulary = toy(b" ", b"x")
    language = contains_in_order(["abc"]) & regex(".*", re.DOTALL)
    matcher = compile(language, vocabulary).matcher(
        max_new_tokens=3
    )  # a beam with three tokens left is not empty
    assert matcher.distance() == 3
    for left, token in ((2, b"a"), (1, b"b"), (0, b"c")):
        row = tokenfst.allocate_token_bitmask(1, len(vocabulary))
        matcher.fill_next_token_bitmask(row, 0)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        assert [vocabulary.tokens[one] for one in allowed] == [token]
        assert matcher.accept_token(2 + token[0]) and matcher.distance() == left


def test_failure_links_keep_what_still_counts() -> None:
    parts = toy(b"po", b"cat", b"t")
    automaton = compile(contains_all({"cat": ["cat"], "pot": ["pot"]}, boundaries=False), parts)
    matcher = automaton.matcher()
    assert (
        matcher.accept_tokens([0, 1]) and matcher.distance() == 2
    )  # "po", then "cat": cat is there, pot is not
    assert matcher.accept_tokens([0, 2]) and matcher.is_accepting()
    assert concepts(["aab"], boundaries=False).symbols("aaab") == ["aab"]
    assert concepts(["ab ac"]).symbols("ab ab ac") == ["ab ac"]
    assert concepts({"x": ["ice cream"], "y": ["cream"]}).symbols("ice cream") == ["x", "y"]
    assert concepts(["cat"]).symbols("cat cat") == ["cat", "cat"]  # nothing is left over from a match


def test_cat_is_not_in_category() -> None:
    assert concepts(["cat"]).symbols("category bobcat cat_ café-cat 'cat' cat") == ["cat"] * 3
    assert concepts(["cat"], boundaries=False).symbols("category bobcat") == ["cat", "cat"]
    matcher = compile(contains_all(["cat"]), toy(b"cat", b"egory")).matcher()
    assert matcher.accept_token(0) and matcher.is_accepting()
    assert matcher.accept_token(1) and not matcher.is_accepting()
    assert avoids(["cat"]).accepts("category") and not avoids(["cat"]).accepts("a cat")


# --- bad input, budgets, cost -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forms", "message"),
    [
        ({}, "no concepts"),
        ("dog", "not one text"),
        ({"dog": []}, "'dog' has no forms"),
        ({"dog": [""]}, "empty or no text"),
        ({"dog": [1]}, "empty or no text"),
        ({"dog": ["\ud800"]}, "lone surrogate"),
        ({"a": ["x"], "b": ["y", "x"]}, "'x' belongs to two concepts, 'a' and 'b'"),
    ],
)
def test_bad_concepts(forms: object, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        concepts(forms)  # type: ignore[arg-type]


def test_bad_inflections() -> None:
    for form, message in (("", "empty or no text"), ("\ud800", "lone surrogate")):
        with pytest.raises(LabelError, match=message):
            contains_all(["run"], inflections={"run": [form]}.__getitem__)


def test_budgets() -> None:
    words = [f"word{k}" for k in range(60)]
    with pytest.raises(BudgetExceeded, match="concepts composed"):
        contains_in_order(words, budget=Budget(states=500))
    with pytest.raises(BudgetExceeded, match="concepts composed"):
        contains_in_order(words, budget=Budget(bytes=50_000))
    with pytest.raises(BudgetExceeded):
        contains_all(words[:20], budget=Budget(states=20_000)).size()


def test_ordered_concepts_are_fast(tekken: Vocabulary) -> None:
    forms = {
        "coffee": ["coffee", "coffees"],
        "cat": ["cat", "cats"],
        "toy": ["toy", "toys", "toyed", "toying"],
        "run": ["run", "runs", "ran", "running"],
        "table": ["table", "tables", "tabled", "tabling"],
    }
    row = tokenfst.allocate_token_bitmask(1, len(tekken))
    least = 1e9
    for _ in range(3):
        begin = time.process_time()
        automaton = compile(contains_in_order(forms) & regex(r".*\.", re.DOTALL), tekken)
        matcher = automaton.matcher()
        matcher.fill_next_token_bitmask(row, 0)
        least = min(least, time.process_time() - begin)
    assert least < 0.5  # see docs/research/concepts.md
    assert matcher.accept_tokens(tekken_ids(tekken, "The coffees, a cat and toys ran over the table."))
    assert matcher.is_accepting()


def tekken_ids(vocabulary: Vocabulary, text: str) -> list[int]:
    """Some spelling of a text: single bytes."""
    by_bytes = {token: number for number, token in enumerate(vocabulary.tokens) if len(token) == 1}
    return [by_bytes[bytes([byte])] for byte in text.encode()]


def test_temporal_logic_over_concepts() -> None:
    """Coffee, then a cat, then a toy, and a dot at the end, as a formula over what the text holds."""
    words = concepts({"coffee": ["coffee"], "cat": ["cat", "cats"], "toy": ["toy", "toys"], "dot": ["."]})
    order = tokenfst.ltlf("F(coffee & F(cat & F toy)) & F(dot & last)", ["coffee", "cat", "toy", "dot"])
    language = words.language(order)
    assert language.accepts("coffee with two cats. Their toys, a coffee.")
    assert not language.accepts("A cat, a coffee, a toy.")
    assert not language.accepts("coffee, category, toy.")
    assert not language.accepts("coffee, cats, toys")
