"""The native composition against its specification: determinize(rmepsilon(project(compose(T, A)))) by OpenFst."""

from __future__ import annotations

import random
import warnings

import pynini
import pytest

import tokenfst
import tokenfst.fst as native_fst
from reference.expressions.random_expressions import random_expression
from tests.support.worlds.token_worlds import random_vocabulary
from tokenfst.automata.languages.language import Language
from tokenfst.automata.openfst import fst
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import EmptyLanguageError, UnspellableWarning
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


def quietly_compiled(language: Language, vocabulary: Vocabulary) -> TokenAutomaton | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnspellableWarning)
        try:
            return compile(language, vocabulary)
        except EmptyLanguageError:
            return None


def agree(language: Language, vocabulary: Vocabulary) -> bool:
    automaton = quietly_compiled(language, vocabulary)
    native = pynini.Fst() if automaton is None else automaton.to_fst()
    if automaton is None:
        native.set_start(native.add_state())
    specified = fst.compose(vocabulary.detokenizer(), language.to_fst())
    return bool(
        pynini.equivalent(native, specified) if specified.start() >= 0 else pynini.equivalent(native, empty())
    )


def empty() -> pynini.Fst:
    machine = pynini.Fst()
    machine.set_start(machine.add_state())
    return machine


@pytest.mark.parametrize("seed", range(6))
def test_hundreds_of_pairs(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        assert agree(Language(random_expression(rng, rng.randint(1, 4))), random_vocabulary(rng))


def test_the_comparison_can_fail() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"ab", b""], 3)
    automaton = quietly_compiled(tokenfst.regex("a*b"), vocabulary)
    assert automaton is not None
    specified = fst.compose(vocabulary.detokenizer(), tokenfst.regex("a+b").to_fst())
    assert not pynini.equivalent(automaton.to_fst(), specified)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_machines_without_pynini(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        vocabulary, language = random_vocabulary(rng), Language(random_expression(rng, rng.randint(1, 4)))
        assert pynini.equal(native_fst.to_pynini(vocabulary.native_detokenizer()), vocabulary.detokenizer())
        automaton = quietly_compiled(language, vocabulary)
        if automaton is not None:
            assert pynini.equal(native_fst.to_pynini(automaton.to_native_fst()), automaton.to_fst())


def test_a_real_vocabulary_without_pynini(tekken: Vocabulary) -> None:
    language = tokenfst.regex("(0|[1-9][0-9]?)%")
    spelled = native_fst.compose(tekken.native_detokenizer(), language.to_native_fst())
    specified = native_fst.determinize(spelled.project("input").rmepsilon())
    assert native_fst.equivalent(tokenfst.compile(language, tekken).to_native_fst(), specified)


def test_a_real_vocabulary(tekken: Vocabulary) -> None:
    language = tokenfst.regex(r"(0|[1-9][0-9]{0,3})(, (0|[1-9][0-9]{0,3})){0,2}")
    automaton = quietly_compiled(language, tekken)
    assert automaton is not None
    assert pynini.equivalent(automaton.to_fst(), fst.compose(tekken.detokenizer(), language.to_fst()))
    source, token, _, states, start, _ = automaton.arcs()
    first = token[source == start]
    assert states > 5 and {tekken.tokens[t] for t in first.tolist()} >= {b"0", b"7"}
