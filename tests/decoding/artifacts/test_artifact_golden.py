"""The artifacts of tests/golden: read as they are, and written again bit by bit."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from golden.make import (
    ARTIFACTS,
    FOLDER,
    LEARNED,
    LEARNED_BY,
    PROGRAM,
    make,
    make_learned,
    make_unwalked,
    walk,
)

from reference.tokens import artifact as slow
from tokenfst.automata.regex.translate import regex
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.token_automata import learned
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

NAMES = sorted(ARTIFACTS)


def test_all_files_are_known() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.safetensors")) == sorted([*NAMES, PROGRAM, *LEARNED])


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bytes_today(name: str, tmp_path: Path) -> None:
    make(name).save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_slow_reader_finds_what_the_format_promises(name: str) -> None:
    pattern, vocabulary = ARTIFACTS[name]
    found = slow.read((FOLDER / name).read_bytes(), len(vocabulary))
    assert found.metadata["source"] == regex(pattern).source
    slow.meaning(found, vocabulary)
    slow.canonical(found)
    assert bool(found.shapes["rows"][0]) == (name == "words.safetensors")
    assert (found.start != found.inner_start) == (name == "pieces.safetensors")


def random_text(automaton: TokenAutomaton, vocabulary: Vocabulary, rng: random.Random) -> bytes:
    matcher = automaton.matcher(40)
    mask = np.zeros((1, (len(vocabulary) + 31) // 32), np.int32)
    while not matcher.is_terminated() and matcher.max_tokens_left:
        matcher.fill_next_token_bitmask(mask)
        tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        assert matcher.accept_token(int(rng.choice(tokens)))
    return vocabulary.decode(matcher.tokens)


@pytest.mark.parametrize("name", NAMES)
def test_decoding_with_them_stays_in_the_language(name: str) -> None:
    pattern, vocabulary = ARTIFACTS[name]
    loaded = TokenAutomaton.load(FOLDER / name, vocabulary)
    rng = random.Random(1)
    texts = {random_text(loaded, vocabulary, rng).decode("utf-8") for _ in range(60)}
    assert len(texts) > 3
    for text in texts:
        assert re.fullmatch(pattern, text), text


@pytest.mark.parametrize("name", LEARNED)
def test_what_was_learned_has_the_same_bytes_today(name: str) -> None:
    assert make_learned(name) == (FOLDER / name).read_bytes()


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize("own", [True, False], ids=["own release", "another release"])
def test_what_was_learned_is_taken_up(name: str, own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the file knows is found again, where this release has learned it; and what it says is what an
    automaton without it finds. What another release has learned is a program.
    """
    if own:
        monkeypatch.setattr(learned, "release", lambda: LEARNED_BY)
    found = artifact.read(FOLDER / name)
    assert (found.version, found.learned_by) == (5, LEARNED_BY)
    cold = make_unwalked(name)
    loaded = TokenAutomaton.load(FOLDER / name, cold.vocabulary)
    assert walk(loaded) == walk(cold)
    assert cold.stats().masks_recalled == 0 < cold.stats().masks_composed
    assert (loaded.stats().masks_composed == 0) == (loaded.stats().masks_recalled > 0) == own
