"""Choices, multiple choices and hierarchies: their strings are exactly the labels, over bytes and over tokens."""

from __future__ import annotations

import itertools
import pickle
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenfst
from reference.tokens.token_automaton import SlowTokenAutomaton
from tokenfst import (
    Budget,
    Grammar,
    Language,
    Vocabulary,
    choices,
    compile,
    hierarchy,
    hierarchy_labels,
    multi_choice,
    regex,
    verify_labels,
)
from tokenfst._native import Lexicon
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.json_values.strings import json_string
from tokenfst.automata.languages.answer import Side
from tokenfst.errors import BudgetExceeded, ConstraintError, LabelError, UnspellableWarning

BYTES = [bytes([byte]) for byte in range(256)]
LABELS = ["a", "ab", "abb", "b", "ba", "cab"]


def toy(*tokens: bytes) -> Vocabulary:
    return Vocabulary([*tokens, *BYTES, b""], len(tokens) + 256)


def selections(labels: list[str], separator: str, low: int, high: int, unique: bool = True) -> set[str]:
    """The slow twin: every selection written out."""
    ways = itertools.permutations if unique else lambda them, count: itertools.product(them, repeat=count)
    return {separator.join(chosen) for count in range(low, high + 1) for chosen in ways(labels, count)}


def walk(automaton: tokenfst.TokenAutomaton, rng: random.Random, limit: int | None = None) -> str:
    """A text whose tokens are drawn from the masks alone, at most ``limit`` of them."""
    matcher, vocabulary = automaton.matcher(max_new_tokens=limit), automaton.vocabulary
    row = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    while not matcher.is_terminated() and matcher.max_tokens_left != 0:
        matcher.fill_next_token_bitmask(row, 0)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        assert matcher.accept_token(int(rng.choice(allowed.tolist())))
    return vocabulary.decode(matcher.tokens[: -1 if matcher.is_terminated() else None]).decode()


# --- the automaton of words ---------------------------------------------------------------------------


@given(st.sets(st.binary(min_size=1, max_size=6), min_size=1, max_size=40))
@settings(max_examples=150, deadline=None)
def test_lexicons_are_minimal_and_keep_their_words(words: set[bytes]) -> None:
    shuffled = list(words)
    random.Random(0).shuffle(shuffled)
    lexicon = Lexicon(shuffled * 2)
    assert lexicon.words() == sorted(words) and len(lexicon) == len(words)
    assert pickle.loads(pickle.dumps(lexicon)).words() == sorted(words)
    residuals = {
        frozenset(word[end:] for word in words if word.startswith(prefix))
        for longest in words
        for end in range(len(longest) + 1)
        for prefix in [longest[:end]]
    }
    assert lexicon.num_states == len(residuals)  # Nerode: one state for each set of endings


def test_choices_are_a_least_automaton_and_exactly_the_labels() -> None:
    language = choices(LABELS)
    assert verify_labels(language, LABELS)
    assert language.minimize().size().states == language.size().states
    assert pickle.loads(pickle.dumps(language)).equivalent(language)
    assert choices(["ß", b"\xff\x00"]).accepts(b"\xff\x00")
    assert language.reverse().accepts("bba") and not language.reverse().accepts("abb")


def test_leading_spaces() -> None:
    assert verify_labels(choices(["a", "b"], leading_space="required"), [" a", " b"])
    assert verify_labels(choices(["a", "b"], leading_space="optional"), ["a", "b", " a", " b"])
    expected = {" " + text for text in selections(["a", "b"], ", ", 1, 2)}
    assert verify_labels(multi_choice(["a", "b"], leading_space="required"), expected)
    assert verify_labels(hierarchy({"a": ["b"]}, leading_space="required"), [" a", " a > b"])


def test_choices_compose_with_everything() -> None:
    assert verify_labels(choices(LABELS) & regex("a.*"), ["a", "ab", "abb"])
    assert verify_labels(choices(LABELS) - choices(["a", "cab"]), ["ab", "abb", "b", "ba"])
    assert json_string(choices(['a"b', "ä"])).accepts('"a\\"b"')
    assert json_string(multi_choice(["a", "b"], '"')).accepts('"b\\"a"')
    assert not json_string(multi_choice(["a", "b"], '"')).accepts('"a\\"a"')
    either = choices(["x"]) + regex("=") + choices(["1", "2"])
    assert verify_labels(either, ["x=1", "x=2"])


# --- several labels -----------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ", ", "; and also ", "\n"])
@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 3), (2, 2), (2, 6), (1, 6)])
def test_selections_are_exact(separator: str, low: int, high: int) -> None:
    language = multi_choice(LABELS[:4], separator, min=min(low, 4), max=min(high, 4))
    assert verify_labels(language, selections(LABELS[:4], separator, min(low, 4), min(high, 4)))


@given(
    st.lists(st.text("ab,", min_size=1, max_size=3), min_size=1, max_size=4, unique=True),
    st.text("a, ", min_size=1, max_size=3),
    st.integers(0, 3),
    st.integers(1, 3),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_all_small_selections(labels: list[str], separator: str, low: int, high: int, unique: bool) -> None:
    if low > high or (unique and low > len(labels)):
        with pytest.raises(ConstraintError, match="there is no selection"):
            multi_choice(labels, separator, min=low, max=high, unique=unique)
        return
    if any((label + separator).find(separator) < len(label) for label in labels):
        with pytest.raises(LabelError, match="separator"):
            multi_choice(labels, separator, min=low, max=high, unique=unique)
        return
    expected = selections(labels, separator, low, high, unique)
    language = multi_choice(labels, separator, min=low, max=high, unique=unique)
    assert verify_labels(language, expected)
    for text in expected - {""}:
        assert set(text.split(separator)) <= set(labels)  # what is allowed can be read back
    automaton = compile(language, toy(b"a,", b"ab,", b", ", b"a, a", b"b", b"ba"))
    assert verify_labels(automaton, expected)


def test_a_selection_of_thousands_is_made_on_demand() -> None:
    rng = random.Random(1)
    labels = sorted({f"{rng.choice('abcdef')}{rng.randrange(10**6)}" for _ in range(3000)})
    language = multi_choice(labels, "; ", min=2)
    chosen = rng.sample(labels, 40)
    assert language.accepts("; ".join(chosen))
    assert not language.accepts("; ".join([*chosen, chosen[7]]))
    assert not language.accepts("; ".join(chosen) + "; ") and not language.accepts(chosen[0])
    everything = rng.sample(labels, len(labels))
    assert language.accepts("; ".join(everything))
    prefix = "; ".join(everything[:-1]) + "; "
    at_end, left = language.next_bytes(prefix.encode()), everything[-1]
    assert at_end == (left[:1].encode(), False)  # one label is left, and it is forced
    assert language.next_bytes((prefix + left).encode()) == (b"", True)
    assert language.automaton.num_states < 200_000
    with pytest.raises(BudgetExceeded, match="multi_choice"):
        language.with_budget(Budget(states=5000)).determinize()


# --- hierarchies --------------------------------------------------------------------------------------

TREE = {
    "animal": {"dog": ["poodle", {"hound": ["beagle", "basset"]}], "cat": None},
    "plant": [],
}


def test_hierarchies() -> None:
    paths = hierarchy_labels(TREE, "/")
    assert paths == [
        "animal",
        "animal/dog",
        "animal/dog/poodle",
        "animal/dog/hound",
        "animal/dog/hound/beagle",
        "animal/dog/hound/basset",
        "animal/cat",
        "plant",
    ]
    leaves = [
        "animal/dog/poodle",
        "animal/dog/hound/beagle",
        "animal/dog/hound/basset",
        "animal/cat",
        "plant",
    ]
    assert hierarchy_labels(TREE, "/", leaf_only=True) == leaves
    assert verify_labels(hierarchy(TREE, "/"), paths)
    assert verify_labels(hierarchy(TREE, "/", leaf_only=True), leaves)
    several = multi_choice(hierarchy_labels(TREE, "/", leaf_only=True), "; ", max=2)
    assert verify_labels(several, selections(leaves, "; ", 1, 2))


def test_a_name_above_nothing_is_a_leaf() -> None:
    tree = {"a": [{}], "b": [], "c": ({} for _ in range(2)), "d": [{"x": {}}, {}], "e": None}
    assert hierarchy_labels(tree, "/", leaf_only=True) == ["a", "b", "c", "d/x", "e"]  # type: ignore[arg-type]


def test_a_deep_and_a_cyclic_hierarchy() -> None:
    deep: dict[str, object] = {"leaf": None}
    for _ in range(5000):
        deep = {"n": deep}
    assert hierarchy_labels(deep, "/", leaf_only=True)[0].count("/") == 5000  # type: ignore[arg-type]
    for small in (Budget(positions=500), Budget(bytes=100_000)):
        with pytest.raises(BudgetExceeded, match="hold itself"):
            hierarchy_labels(deep, "/", budget=small)  # type: ignore[arg-type]
    cyclic: dict[str, object] = {"a": None}
    cyclic["again"] = [{"b": cyclic}]
    with pytest.raises(ConstraintError, match="below 'again/b' holds itself"):
        hierarchy_labels(cyclic, "/")  # type: ignore[arg-type]
    shared = {"x": None}
    assert len(hierarchy_labels({"a": shared, "b": {"c": shared}})) == 5


# --- the bugs of the paper's code ---------------------------------------------------------------------


def test_a_label_that_shares_its_first_token_with_a_used_one_stays() -> None:
    vocabulary = toy(b"apple", b" pie", b" tart", b", ")
    automaton = compile(multi_choice(["apple pie", "apple tart"], ", "), vocabulary)
    matcher = automaton.matcher()
    assert matcher.accept_tokens([0, 1, 3, 0])  # apple pie, apple
    row = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    matcher.fill_next_token_bitmask(row, 0)
    allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
    assert [vocabulary.tokens[token] for token in allowed] == [b" tart", b" "]


def test_a_used_label_does_not_come_back_spelled_otherwise() -> None:
    vocabulary = toy(b"dog", b"do", b", ", b", d")
    matcher = compile(multi_choice(["dog", "cat"], ", "), vocabulary).matcher()
    assert matcher.accept_tokens([0, 2])
    assert not matcher.accept_token(1) and not matcher.accept_token(4 + ord("d"))
    assert matcher.rollback(1) is None and not matcher.accept_token(3)  # a token across the separator


def test_a_separator_of_several_tokens_in_any_cut() -> None:
    vocabulary = toy(b" and", b" also ", b" and also ", b"a and")
    labels = ["a", "b", "c"]
    automaton = compile(multi_choice(labels, " and also "), vocabulary)
    assert verify_labels(automaton, selections(labels, " and also ", 1, 3))


def test_no_separator_where_no_label_is_left() -> None:
    rng = random.Random(0)
    automaton = compile(multi_choice(["a", "b"], ", "), toy(b", ", b"a,", b"b, "))
    assert {walk(automaton, rng) for _ in range(60)} == {"a", "b", "a, b", "b, a"}


def test_every_row_of_a_batch_has_its_own_mask() -> None:
    vocabulary = toy(b"ab", b"ba")
    automaton = compile(choices(["aba", "bab"]), vocabulary)
    matchers = [automaton.matcher() for _ in range(3)]
    assert matchers[1].accept_token(0) and matchers[2].accept_tokens([1, 2 + ord("b")])
    rows = tokenfst.allocate_token_bitmask(3, len(vocabulary))
    tokenfst.fill_bitmasks(matchers, rows)
    allowed = [set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))) for row in rows]
    a, b = 2 + ord("a"), 2 + ord("b")
    assert allowed == [{0, 1, a, b}, {a}, {len(vocabulary) - 1}]


def test_a_budget_of_tokens_never_cuts_a_label() -> None:
    rng = random.Random(2)
    labels = ["abc", "bcd", "aabbccdd"]
    automaton = compile(multi_choice(labels, "--", min=2), toy(b"ab", b"--"))
    for limit in range(7, 20):
        for _ in range(5):
            chosen = walk(automaton, rng, limit).split("--")
            assert set(chosen) <= set(labels) and 2 <= len(chosen) == len(set(chosen))


def test_a_budget_of_tokens_with_very_many_states() -> None:
    labels = [f"{k:04}" for k in range(0, 9000, 3)]
    vocabulary = toy(b"00", b", ")
    automaton = compile(multi_choice(labels, ", ", min=3, max=9), vocabulary)
    # The least: "0000" takes two tokens, every other label three or four, and a separator one.
    shortest = [b"00", b"00", b", ", b"00", b"0", b"3", b", ", b"00", b"0", b"6"]
    matcher = automaton.matcher(max_new_tokens=len(shortest))
    assert matcher.accept_tokens([list(vocabulary.tokens).index(token) for token in shortest])
    assert matcher.is_accepting()
    assert automaton.matcher().distance() == len(shortest)  # a bound, and never less than the truth
    rng = random.Random(3)
    for limit in (17, 18, 25):
        chosen = walk(automaton, rng, limit).split(", ")
        assert set(chosen) <= set(labels) and 3 <= len(chosen) == len(set(chosen))


@pytest.mark.parametrize("seed", range(4))
def test_every_tokenization_and_masks_against_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    tokens = [bytes(rng.choices(b"ab, ", k=rng.randint(2, 4))) for _ in range(12)]
    vocabulary = toy(*tokens)
    language = multi_choice(LABELS[:4], ", ", max=2)
    automaton = compile(language, vocabulary)
    assert verify_labels(automaton, selections(LABELS[:4], ", ", 1, 2))
    dfa = language.determinize()
    slow = SlowTokenAutomaton(
        dfa.classes, dfa.table, dfa.accepting, dfa.start, list(vocabulary.tokens), vocabulary.eos_token_ids[0]
    )
    row = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    for _ in range(20):
        matcher, node = automaton.matcher(), slow.start
        while not matcher.is_terminated():
            matcher.fill_next_token_bitmask(row, 0)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
            assert set(allowed) == slow.allowed(node)
            token = rng.choice(allowed)
            assert matcher.accept_token(token)
            if not matcher.is_terminated():
                node = slow.arcs[node][token]


# --- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "no labels"),
        (["a", ""], "label 2 of 2 is empty"),
        (["a", "b", "a"], "'a' occurs 2 times"),
        (["\ud800"], "lone surrogate"),
        ("abc", "put it in a list"),
        ([1], "must be text or bytes, not int"),
    ],
)
def test_bad_labels(labels: list[str], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        choices(labels)
    with pytest.raises(ConstraintError, match=message):
        multi_choice(labels)


def test_bad_selections() -> None:
    with pytest.raises(LabelError, match="'a, b' holds the separator") as caught:
        multi_choice(["c", "a, b"], ", ")
    assert caught.value.label == "a, b"
    assert pickle.loads(pickle.dumps(caught.value)).label == "a, b"
    with pytest.raises(LabelError, match="'xa'"):
        multi_choice(["x", "xa"], "aa")  # "xa" + "aa" begins with "x" + "aa"
    with pytest.raises(ConstraintError, match="the separator is empty"):
        multi_choice(["a"], "")
    with pytest.raises(ConstraintError, match="no selection of 3 or more of 2"):
        multi_choice(["a", "b"], min=3)
    with pytest.raises(ConstraintError, match="max be 1 or more"):
        multi_choice(["a", "b"], min=0, max=0)
    with pytest.raises(ConstraintError, match=r"leading_space must be one of .* not 'some'"):
        choices(["a"], leading_space="some")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": ["b", "b"]}, "'a > b' occurs twice"),
        ({"a": {"": None}}, "an empty name below 'a'"),
        ({"a": ["b > c"]}, "'b > c' holds the separator"),
        ({"a": "bc"}, "not str"),
        ({"a": 1}, "not int"),
        ({1: None}, "names must be text"),
        ({}, "no labels"),
    ],
)
def test_bad_hierarchies(tree: object, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        hierarchy(tree)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(30))
def test_labels_are_walked_as_a_pattern_of_them(seed: int) -> None:
    """Labels are read side by side with the vocabulary, patterns state by state: the same masks, alone and in a
    grammar with a stack.
    """
    rng = random.Random(seed)
    single = [bytes([byte]) for byte in (range(256) if seed % 3 else b"abc()")]
    longer = sorted({bytes(rng.choices(b"abc)", k=rng.randint(2, 5))) for _ in range(rng.randint(1, 40))})
    vocabulary = Vocabulary([*single, *longer, b""], len(single) + len(longer))
    labels = sorted({"".join(rng.choices("abc", k=rng.randint(1, 7))) for _ in range(rng.randint(1, 30))})
    pattern = regex("|".join(labels))
    one, two = choices(labels), pattern
    if seed % 2:
        one, two = (
            Grammar(
                {"root": ex.union(ex.concat(ex.literal(b"("), ex.call("root"), ex.literal(b")")), each.expr)},
                "root",
            )
            for each in (one, two)
        )
    rows = [tokenfst.allocate_token_bitmask(1, len(vocabulary)) for _ in range(2)]
    both = [tokenfst.compile(each, vocabulary) for each in (one, two)]
    for _ in range(6):
        walked = [each.matcher(9) for each in both]
        while not walked[0].is_terminated() and walked[0].max_tokens_left:
            for matcher, row in zip(walked, rows, strict=True):
                matcher.fill_next_token_bitmask(row, 0)
            np.testing.assert_array_equal(*rows)
            allowed = np.flatnonzero(np.unpackbits(rows[0].view(np.uint8), bitorder="little"))
            token = int(rng.choice(allowed.tolist()))
            assert all(matcher.accept_token(token) for matcher in walked)


def test_labels_that_no_token_spells_are_named() -> None:
    vocabulary = Vocabulary([b"a", b"b", b""], 2)
    with pytest.warns(UnspellableWarning, match="cab"):
        automaton = compile(choices(["a", "b", "cab"]), vocabulary)
    assert verify_labels(automaton, ["a", "b"])


# --- the proof can fail -------------------------------------------------------------------------------


def test_proofs_find_what_is_missing_and_what_is_too_much() -> None:
    language = choices(["a", "ab", "b"])
    missing = verify_labels(language, ["a", "ab", "b", "ba"])
    assert (missing.witness, missing.side) == (b"ba", Side.RIGHT)
    extra = verify_labels(language, ["a", "ab"])
    assert (extra.witness, extra.side) == (b"b", Side.LEFT)
    inner = verify_labels(regex("ab?"), ["ab"])
    assert (inner.witness, inner.side) == (b"a", Side.LEFT)
    endless = verify_labels(regex("ab*c"), ["ac"])
    assert endless.side is Side.LEFT and regex("ab+c").accepts(endless.witness or b"")
    assert verify_labels(Language.empty(), []) and verify_labels(Language.epsilon(), [""])
    with pytest.raises(BudgetExceeded):
        verify_labels(choices(LABELS), LABELS, budget=Budget(positions=3))
    tokens = compile(language, toy(b"ab"))
    assert verify_labels(tokens, ["a", "ab", "b"])
    assert verify_labels(tokens, ["a", "ab"]).witness == b"b"
    own = Vocabulary([*BYTES, b"ab", b""], 257, split_pattern=r"\S+|\s+")
    canonical = compile(language, own, tokenization="canonical")
    assert verify_labels(canonical, ["a", "ab", "b"])
    assert verify_labels(canonical, ["a", "ab"]).witness == b"b"
    unread = compile(choices(["a", b"\xff"]), own, tokenization="canonical")
    assert verify_labels(unread, ["a", b"\xff"]).witness == b"\xff"


# --- cost ---------------------------------------------------------------------------------------------


def test_a_hundred_thousand_labels_in_a_second(tekken: Vocabulary) -> None:
    rng = random.Random(0)
    syllables = ["ka", "to", "mi", "ren", "sol", "ve", "dra", "lin", "an", "er", "is", "on", "th", "ing"]
    labels = {" ".join("".join(rng.choices(syllables, k=3)) for _ in range(3)) for _ in range(100_000)}
    least = 1e9
    for _ in range(2):
        begin = time.process_time()
        automaton = compile(choices(labels), tekken)
        matcher = automaton.matcher()
        matcher.fill_next_token_bitmask(tokenfst.allocate_token_bitmask(1, len(tekken)), 0)
        least = min(least, time.process_time() - begin)
    assert least < 3  # 0.2 s where this was written; see docs/constraints/taxonomies.md
    texts = [walk(automaton, rng) for _ in range(20)]
    assert set(texts) <= labels
