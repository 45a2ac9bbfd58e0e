"""Artifacts altered at random and sealed again: refused by the rules of docs/serving/format.md, or walked without
harm.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from support.worlds.artifact_files import GOOD, VOCABULARY, make, put_together, seal, take_apart

from reference.tokens import artifact as slow
from reference.tokens.small_automata import small_vocabulary
from tokenfst import _native
from tokenfst.budget import Budget
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.artifacts.tensors import TENSORS
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import (
    ArtifactCorruptError,
    ArtifactError,
    ArtifactVocabularyError,
    EmptyLanguageError,
    TokenfstError,
    TokenLimitError,
)

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")


def use(automaton: TokenAutomaton, rng: random.Random) -> None:
    """Call everything that walks the tables. What it answers may be wrong; it must answer."""
    size = len(automaton.vocabulary)
    mask = np.zeros((1, (size + 31) // 32), np.int32)
    automaton.stats(), automaton.memory(), automaton.distance()
    for limit in (None, rng.randrange(1, 9)):
        try:
            matcher = automaton.matcher(limit)
        except (EmptyLanguageError, TokenLimitError):
            continue
        for _ in range(6):
            matcher.fill_next_token_bitmask(mask)
            tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            assert np.all(tokens < size)
            matcher.distance(), matcher.is_accepting(), matcher.forced_bytes(), matcher.forced_tokens()
            if matcher.is_terminated() or not len(tokens):
                break
            matcher.accept_token(int(rng.choice(tokens)))
            matcher.validate_tokens([rng.randrange(size) for _ in range(3)])
        matcher.rollback(matcher.num_tokens)


INTERESTING = [0, 1, 2, 3, 31, 32, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """The file with some numbers or bytes replaced, most often by near or extreme ones, and sealed again."""
    header, content = take_apart(data)
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        tensor = rng.choice([tensor for tensor in TENSORS if header[tensor.name]["data_offsets"][1]])
        begin, end = header[tensor.name]["data_offsets"]
        width = 4 if tensor.dtype == "U32" else 1
        if begin == end:
            continue
        place = rng.randrange(begin, end, width)
        old = int.from_bytes(changed[place : place + width], "little")
        other = rng.randrange(begin, end, width)
        new = rng.choice(
            [
                old + rng.choice([-1, 1]),
                old ^ 1 << rng.randrange(8 * width),
                rng.choice(INTERESTING),
                int.from_bytes(changed[other : other + width], "little"),
            ]
        )
        changed[place : place + width] = (new % 256**width).to_bytes(width, "little")
    if rng.random() < 0.1:
        name = rng.choice(["start", "inner_start", "vocabulary_size"])
        header["__metadata__"][name] = str(rng.choice([*INTERESTING, int(header["__metadata__"][name]) + 1]))
    return put_together(header, bytes(changed))


def fuzz(seeds: range, path: Path) -> tuple[int, int]:
    """Mutations of small artifacts: fast and slow reader refuse the same ones; the others are walked."""
    loaded = 0
    for seed in seeds:
        rng = random.Random(seed)
        data, vocabulary = make(seed % 40)
        changed = mutate(data, rng)
        path.unlink(missing_ok=True)
        path.write_bytes(changed)
        try:
            slow.read(changed, len(vocabulary))
            good = True
        except slow.BrokenRuleError:
            good = False
        try:
            automaton = TokenAutomaton.load(path, vocabulary)
        except ArtifactError:
            assert not good, f"seed {seed}: refused a file that keeps all rules"
            continue
        assert good, f"seed {seed}: took a file that breaks a rule"
        use(automaton, rng)
        loaded += 1
    return loaded, len(seeds)


def test_mutations(tmp_path: Path) -> None:
    loaded, tried = fuzz(range(2500), tmp_path / "it")
    assert tried / 10 < loaded < tried * 9 / 10, "mutations should both pass and fail"


@pytest.mark.soak
@pytest.mark.parametrize("first", range(10_000, 200_000, 5_000))
def test_many_mutations(first: int, tmp_path: Path) -> None:
    fuzz(range(first, first + 5_000), tmp_path / "it")


def test_random_bytes_behind_a_good_header(tmp_path: Path) -> None:
    rng = random.Random(3)
    for turn in range(300):
        header, content = take_apart(GOOD)
        noise = [rng.randbytes(len(content)), bytes(len(content)), b"\xff" * len(content)][turn % 3]
        cut = rng.randrange(len(content))
        (tmp_path / "it").unlink(missing_ok=True)
        (tmp_path / "it").write_bytes(put_together(header, content[:cut] + noise[cut:]))
        try:
            use(TokenAutomaton.load(tmp_path / "it", VOCABULARY), rng)
        except ArtifactCorruptError:
            continue


def test_exports_of_false_files(tmp_path: Path) -> None:
    pytest.importorskip("pynini")
    outcomes = {False: 0, True: 0}
    for seed in range(300):
        data, vocabulary = make(seed % 20)
        (tmp_path / "it").unlink(missing_ok=True)
        (tmp_path / "it").write_bytes(mutate(data, random.Random(seed)))
        try:
            automaton = TokenAutomaton.load(tmp_path / "it", vocabulary)
        except ArtifactError:
            continue
        try:
            outcomes[automaton.to_fst().verify()] += 1
        except TokenfstError:
            outcomes[False] += 1
    assert outcomes[False] and outcomes[True]


def test_a_false_fingerprint(tmp_path: Path) -> None:
    rng = random.Random(11)
    refused = 0
    for seed in range(120):
        data, vocabulary = make(seed % 40)
        other = small_vocabulary(rng)
        (tmp_path / "it").unlink(missing_ok=True)
        (tmp_path / "it").write_bytes(
            seal(data.replace(vocabulary.fingerprint.encode(), other.fingerprint.encode()))
        )
        if len(other) != len(vocabulary):
            with pytest.raises(ArtifactVocabularyError):
                TokenAutomaton.load(tmp_path / "it", other)
        # Not even the core alone, which knows no fingerprints, leaves its tables.
        arrays = artifact.read(tmp_path / "it").arrays
        try:
            native = _native.TokenAutomaton.from_arrays(
                other.native, arrays, arrays["start"], arrays["inner_start"]
            )
        except ArtifactCorruptError:
            refused += 1
            continue
        use(TokenAutomaton(native, other, "", Budget(), arrays), rng)
    assert 0 < refused < 120
