"""Masks of push-down automata against brute force over every token; what is kept of them is what a fresh one makes."""

from __future__ import annotations

import random
import threading

import pytest

from reference.grammars.pushdown import INFINITE, START, TokenModel
from reference.grammars.random_grammars_wide import GrammarGenerator, Patience
from tests.support.worlds.pushdown_worlds import CROSSING, compose, crossing, walk
from tests.support.worlds.token_worlds import allowed, random_vocabulary
from tokenfst import Matcher, Vocabulary, _native, compile, json_object, json_schema, json_value, regex
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.errors import ConstraintError, EmptyLanguageError, UnspellableWarning


def check(seed: int, count: int, walks: int) -> None:
    rng, patience = random.Random(seed), Patience(1 + count // 8)
    for _ in range(count):
        grammar, vocabulary = GrammarGenerator(rng).grammar(), random_vocabulary(rng, letters=True)
        model = TokenModel(grammar, vocabulary)
        for narrow in (192, 0):
            automaton = compose(grammar, vocabulary, narrow)
            assert automaton.is_empty == (model.recognizer.first is None)
            if automaton.is_empty:
                continue
            if model.least(START) >= INFINITE:
                with pytest.raises(EmptyLanguageError):
                    Matcher(automaton)
                continue
            with patience():
                for _ in range(walks):
                    walk(rng, automaton, model)


@pytest.mark.parametrize("seed", range(6))
def test_random_grammars_and_vocabularies(seed: int) -> None:
    check(seed, 8, 3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_many_random_grammars_and_vocabularies(seed: int) -> None:
    check(seed, 60, 6)


# --- tokens across the borders of rules ---------------------------------------------------------------


@pytest.mark.parametrize("name", CROSSING)
def test_tokens_across_borders(name: str) -> None:
    grammar, vocabulary = crossing(name, complete=True)
    automaton, model = compile(grammar, vocabulary), TokenModel(grammar, vocabulary)
    model.complete = True  # what these tokens spell is all that these grammars use
    rng = random.Random(name)
    for _ in range(12):
        walk(rng, automaton._native, model)
    by_fragments = compose(grammar, vocabulary, 0)
    for _ in range(4):
        walk(rng, by_fragments, model)


def test_a_mask_by_hand() -> None:
    grammar, vocabulary = crossing("json", complete=True)
    matcher = compile(grammar, vocabulary).matcher()
    ids = {text: token for token, text in enumerate(vocabulary.tokens)}
    spelled = {*CROSSING["json"][1].split(b" "), b""}

    def names() -> set[bytes]:
        return {vocabulary.tokens[token] for token in allowed(matcher, len(vocabulary))} & spelled

    assert matcher.accept_tokens([ids[b"[{"], ids[b'"a']])
    assert matcher.accept_tokens([ids[b'":{"'], ids[b'":[']])
    assert names() == set(b'{ [ " 0 true ] [[ [{ {" "a "b ["","a" {"a": {} [] ]}'.split())
    assert matcher.accept_token(ids[b"]}"])
    assert names() == {b"}", b",", b"}]"}
    assert matcher.accept_token(ids[b"}]"]) and names() == {b""} and matcher.is_accepting()


# --- what is kept -------------------------------------------------------------------------------------


def walked(
    automaton: _native.TokenAutomaton, size: int, seed: int, steps: int
) -> list[tuple[list[int], set[int]]]:
    """The tokens and masks of a random walk."""
    rng, matcher, seen = random.Random(seed), Matcher(automaton), []
    for _ in range(steps):
        mask = allowed(matcher, size)
        seen.append((matcher.tokens, mask))
        choices = sorted(mask)
        if matcher.is_terminated() or not choices or not matcher.accept_token(rng.choice(choices)):
            break
    return seen


def check_kept(grammar: Grammar, vocabulary: Vocabulary, walks: int, narrow: int) -> None:
    size = len(vocabulary)
    kept = compose(grammar, vocabulary, narrow)
    for seed in range(walks):
        for tokens, mask in walked(kept, size, seed, 12):
            fresh = Matcher(compose(grammar, vocabulary, narrow))
            assert fresh.accept_tokens(tokens)
            assert allowed(fresh, size) == mask, tokens


@pytest.mark.parametrize("name", CROSSING)
def test_kept_masks_are_those_of_a_fresh_automaton(name: str) -> None:
    check_kept(*crossing(name, complete=True), walks=12, narrow=192)
    check_kept(*crossing(name, complete=True), walks=6, narrow=0)


def test_kept_masks_of_random_grammars() -> None:
    rng, done, patience = random.Random(8), 0, Patience(1)
    while done < 12:
        grammar, vocabulary = GrammarGenerator(rng).grammar(), random_vocabulary(rng, letters=True)
        model = TokenModel(grammar, vocabulary)
        if model.recognizer.first is not None and model.least(START) < INFINITE:
            with patience():
                check_kept(grammar, vocabulary, walks=6, narrow=192)
            done += 1


@pytest.mark.parametrize("name", CROSSING)
def test_threads_see_the_same_masks(name: str) -> None:
    grammar, vocabulary = crossing(name, complete=True)
    size = len(vocabulary)
    alone = [walked(compose(grammar, vocabulary, 192), size, seed, 20) for seed in range(6)]
    for _ in range(3):
        shared = compose(grammar, vocabulary, 192)
        results: list[object] = [None] * 12
        barrier = threading.Barrier(12)

        def work(
            number: int, shared: _native.TokenAutomaton, results: list[object], barrier: threading.Barrier
        ) -> None:
            barrier.wait()
            results[number] = walked(shared, size, number % 6, 20)

        threads = [threading.Thread(target=work, args=(n, shared, results, barrier)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == alone * 2


# --- what cannot be spelled ---------------------------------------------------------------------------


def test_unspellable_parts_are_told_and_never_entered() -> None:
    """``c`` is missing: brackets may hold it, but no token sequence closes them then."""
    grammar = gbnf('root ::= "(" root ")" | "[" root "c" "]" | "x"')
    vocabulary = Vocabulary([b"(", b")", b"[", b"]", b"x", b"(x", b"([", b")]", b""], 8)
    with pytest.warns(UnspellableWarning):
        automaton = compile(grammar, vocabulary)
    matcher = automaton.matcher()
    assert allowed(matcher, 9) == {0, 4, 5}
    assert matcher.accept_tokens([0, 5]) and allowed(matcher, 9) == {1}
    with pytest.raises(EmptyLanguageError, match="no token sequence"):
        compile(gbnf('root ::= "(" root ")" | "c"'), vocabulary)


def test_names_that_must_differ_need_each_byte() -> None:
    """The error is about the constraint, not about an operator that the caller did not write."""
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(128)), b""], 128)
    for constraint in (json_object(), json_value(), regex("a") + json_object()):
        with pytest.raises(
            ConstraintError, match=r"each byte must be a token.*repeated_names=\"allow\""
        ) as caught:
            compile(constraint, vocabulary)
        assert str(caught.value).startswith(constraint.source)
    with pytest.warns(UnspellableWarning):
        free = compile(json_schema({"type": "object"}, repeated_names="allow"), vocabulary)
    assert free.matcher().accept_tokens([*b'{"a": 1, "a": 2}', 128])


def test_bytes_that_only_longer_tokens_have() -> None:
    """Whether tokens lead on to the end would be a question about the whole stack: refused, with the remedy."""
    vocabulary = Vocabulary([b"(", b")", b"xy", b"(x", b""], 4)
    with pytest.raises(ConstraintError, match=r"must be a token by itself.*truncate"):
        compile(gbnf('root ::= "(" root ")" | "xy"'), vocabulary)
    assert compile(gbnf('root ::= "(" root ")" | "xy"').truncate(3), vocabulary).distance() == 1
    regular = compile(gbnf('root ::= "xy" root | "(x"'), vocabulary)
    assert regular.distance() == 1
