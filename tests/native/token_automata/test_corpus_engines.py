"""The corpus of real-life patterns over every engine: lazy, expanded, loaded from disk, and OpenFst.

Texts are offered token by token, in two tokenizations; the vocabulary has every byte and pieces of the
corpus.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pynini
import pytest

from tests.automata.regex.test_regex_corpus import CORPUS, flags_of
from tokenfst import Matcher, TokenAutomaton, Vocabulary, compile, regex
from tokenfst.automata.openfst import fst
from tokenfst.errors import BudgetExceeded

STATES = 3_000
"""Larger machines are walked lazily only: expanding them is not what this test is for."""


def corpus_vocabulary() -> Vocabulary:
    rng = random.Random(0)
    texts = [text.encode() for entry in CORPUS for text in entry["yes"] + entry["no"]]
    pieces = {text[at : at + rng.randint(2, 6)] for text in texts for at in range(0, len(text), 3)}
    tokens = [bytes([byte]) for byte in range(256)] + sorted(piece for piece in pieces if len(piece) > 1)
    return Vocabulary([*tokens, b""], len(tokens))


VOCABULARY = corpus_vocabulary()
EOS = VOCABULARY.eos_token_ids[0]


def tokenizations(text: str) -> list[list[int]]:
    data = text.encode()
    return [VOCABULARY.encode_greedy(data), [VOCABULARY.ids(bytes([byte]))[0] for byte in data]]


def says(matcher: Matcher, tokens: list[int]) -> bool:
    matcher.reset()
    return matcher.accept_tokens([*tokens, EOS])


@pytest.mark.parametrize("entry", CORPUS, ids=[entry["name"] for entry in CORPUS])
def test_every_engine_agrees_with_the_corpus(entry: dict[str, Any], tmp_path: Path) -> None:
    language = regex(entry["regex"], flags_of(entry))
    lazy = compile(language, VOCABULARY)
    engines = {"lazy": lazy.matcher()}
    try:
        small = language.size().states <= STATES
    except BudgetExceeded:
        small = False
    if small:
        expanded = lazy.expand()
        expanded.save(tmp_path / "a.safetensors")
        engines["expanded"] = expanded.matcher()
        engines["loaded"] = TokenAutomaton.load(tmp_path / "a.safetensors", VOCABULARY).matcher()
        machine, detokenizer = language.to_fst().arcsort("ilabel"), VOCABULARY.detokenizer()
    for wanted, texts in ((True, entry["yes"]), (False, entry["no"])):
        for text in texts:
            for tokens in tokenizations(text):
                for name, matcher in engines.items():
                    assert says(matcher, tokens) is wanted, (name, text)
                if small:
                    assert openfst_says(machine, detokenizer, tokens) is wanted, ("OpenFst", text)


def openfst_says(machine: pynini.Fst, detokenizer: pynini.Fst, tokens: list[int]) -> bool:
    count = len(tokens)
    path = fst.from_arcs(
        count + 1,
        0,
        [count],
        list(range(count)),
        [token + 1 for token in tokens],
        [token + 1 for token in tokens],
        list(range(1, count + 1)),
    )
    spelled = pynini.compose(path, detokenizer).project("output").rmepsilon()
    return bool(pynini.compose(spelled, machine).start() >= 0)


def test_most_of_the_corpus_runs_on_all_engines() -> None:
    small = 0
    for entry in CORPUS:
        try:
            small += regex(entry["regex"], flags_of(entry)).size().states <= STATES
        except BudgetExceeded:
            continue
    assert small >= 0.8 * len(CORPUS)
