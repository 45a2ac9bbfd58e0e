"""Artifacts of every kind, altered at random in any tensor and sealed again: refused, or used by all that uses them.

What is used may answer wrongly, but it answers, or raises an error of this package. The numbers of states with
stacks, of marks and of columns are here too, and version 3; device automata are made of what is loaded.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.worlds.artifact_files import put_together, take_apart

from tokenfst import (
    Budget,
    CanonicalAutomaton,
    DeviceAutomaton,
    PushDownDeviceAutomaton,
    TokenAutomaton,
    Vocabulary,
    _native,
    allocate_token_bitmask,
    compile,
    gbnf,
    json_schema,
    one_token,
    regex,
    special_token,
)
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.token_automata import token_automaton
from tokenfst.errors import ArtifactCorruptError, ConstraintError, TokenfstError

BYTES = [bytes([byte]) for byte in range(256)]
EVERY = Vocabulary([*BYTES, b"ab", b"))", b'", "', b'["', b"((", b"", b""], 261, {"<tool>": 262})
FEW = Vocabulary([b"(", b")", b"a", b"b", b"ab", b"))", b""], 6)
SPLIT = Vocabulary([*BYTES, b"ab", b"abc", b"  ", b"bc", b""], 260, split_pattern=r"\s+(?!\S)|\s+|\S+")
UNIQUE = {
    "type": "array",
    "items": {"type": "string", "pattern": "^[ab]*$", "maxLength": 2},
    "uniqueItems": True,
}

KINDS: dict[str, tuple[Callable[[], Any], Vocabulary]] = {
    "finite": (lambda: regex("(ab){0,3}a?|acd"), EVERY),
    "stacks": (lambda: gbnf('root ::= "(" root ")" | "a"'), EVERY),
    "few bytes": (lambda: gbnf('root ::= "(" root? ")" | "ab"?'), FEW),
    "chains": (lambda: gbnf('root ::= "(" root ")" "b"? | "a"'), EVERY),
    "marks": (lambda: json_schema(UNIQUE), EVERY),
    "columns": (lambda: regex("a") + special_token("<tool>") + one_token() + regex("b*"), EVERY),
    "canonical": (lambda: regex("(?:abc? ?){0,4}"), SPLIT),
}


def altered(data: bytes, rng: random.Random) -> bytes:
    """The file with some numbers of any tensor replaced, or with two rows of one exchanged; sealed again."""
    header, content = take_apart(data)
    changed = bytearray(content)
    names = [name for name, entry in header.items() if name != "__metadata__" and entry["data_offsets"][1]]
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        entry = header[rng.choice(names)]
        begin, end = entry["data_offsets"]
        width = 4 if entry["dtype"] == "U32" else 1
        if begin == end:
            continue
        if rng.random() < 0.15 and len(entry["shape"]) == 2 and entry["shape"][0] > 1:
            size = width * entry["shape"][1]
            one, other = (begin + size * rng.randrange(entry["shape"][0]) for _ in range(2))
            changed[one : one + size], changed[other : other + size] = (
                changed[other : other + size],
                changed[one : one + size],
            )
            continue
        place = rng.randrange(begin, end, width)
        old = int.from_bytes(changed[place : place + width], "little")
        extreme = [0, 1, 2, 31, 2**31 - 1, 2**31, 2**31 + rng.randrange(40), 2**32 - 3, 2**32 - 2, 2**32 - 1]
        new = rng.choice([old + rng.choice([-2, -1, 1, 2]), rng.choice(extreme), rng.randrange(40)])
        changed[place : place + width] = (new % 256**width).to_bytes(width, "little")
    return put_together(header, bytes(changed))


def use_matcher(made: Any, size: int, rng: random.Random) -> None:
    row = allocate_token_bitmask(1, size)
    for limit in (None, rng.choice([0, 1, 3, 9, 2**31 - 1, 2**32])):
        try:
            matcher = made.matcher(limit)
            for _ in range(8):
                matcher.fill_next_token_bitmask(row, 0)
                tokens = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
                assert np.all(tokens < size)
                matcher.distance(), matcher.is_accepting(), matcher.forced_bytes(), matcher.forced_tokens()
                token = int(rng.choice(tokens)) if len(tokens) and rng.random() < 0.9 else rng.randrange(size)
                if matcher.is_terminated() or not matcher.accept_token(token):
                    break
            matcher.rollback(matcher.num_tokens // 2)
            matcher.fill_next_token_bitmask(row, 0)
        except TokenfstError:
            continue


def use_device(automaton: TokenAutomaton, rng: random.Random) -> None:
    kind = PushDownDeviceAutomaton if automaton.is_pushdown else DeviceAutomaton
    for budgets in (True, False):
        try:
            device = kind([automaton], token_limits=budgets, budget=Budget(bytes=1 << 24, seconds=5))
        except TokenfstError:
            continue
        states = device.start_states([0, 0, 0])
        for _ in range(8):
            tokens = torch.tensor([rng.randrange(len(automaton.vocabulary)) for _ in range(3)])
            for budget in (None, rng.choice([0, 1, 5, 2**31 - 1])) if budgets else (None,):
                rows = device.bitmask(states, budget).numpy()
                bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
                if (found := np.flatnonzero(bits[0])).size and rng.random() < 0.8:
                    tokens[0] = int(rng.choice(found))
                device._greedy(torch.randn(3, len(automaton.vocabulary)), states, budget)
            states = device.advance(states, tokens)
            device.is_accepting(states)


def use(name: str, path: Path, vocabulary: Vocabulary, rng: random.Random) -> None:
    if name == "canonical":
        use_matcher(CanonicalAutomaton.load(path, vocabulary), len(vocabulary), rng)
        return
    automaton = TokenAutomaton.load(path, vocabulary)
    automaton.stats(), automaton.memory()
    use_matcher(automaton, len(vocabulary), rng)
    with contextlib.suppress(TokenfstError):
        automaton.distance()
    if name != "marks":
        use_device(automaton, rng)


def fuzz(name: str, seeds: range, folder: Path) -> int:
    """How many of the altered files were refused."""
    make, vocabulary = KINDS[name]
    path, refused = folder / "it.safetensors", 0
    compile(make(), vocabulary, tokenization="canonical" if name == "canonical" else "all").save(path)
    good = path.read_bytes()
    for seed in seeds:
        rng = random.Random(f"{name} {seed}")
        path.unlink()
        path.write_bytes(altered(good, rng))
        try:
            use(name, path, vocabulary, rng)
        except ArtifactCorruptError:
            refused += 1
        except TokenfstError:
            pass
    return refused


@pytest.fixture(autouse=True)
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches of what was altered are given up soon."""
    monkeypatch.setattr(token_automaton, "Budget", lambda: Budget(states=3_000, seconds=2))


@pytest.mark.parametrize("name", KINDS)
def test_altered_files(name: str, tmp_path: Path) -> None:
    count = 40 if name == "canonical" else 150
    assert fuzz(name, range(count), tmp_path) > count / 10


@pytest.mark.soak
@pytest.mark.parametrize("name", KINDS)
def test_altered_files_at_length(name: str, tmp_path: Path) -> None:
    fuzz(name, range(1_000, 4_000), tmp_path)


# --- single rules -----------------------------------------------------------------------------------------


def stacked(**changes: Any) -> dict[str, Any]:
    """The arrays of an automaton with a stack, some of them changed by functions."""
    arrays = dict(compile(gbnf('root ::= "(" root ")" | "[" root "]" | "a"'), STACKED).expand().arrays())
    for name, change in changes.items():
        arrays[name] = change(np.array(arrays[name]))
    return arrays


STACKED = Vocabulary([*BYTES, b"))", b")))", b"]]", b""], 259)


@pytest.mark.parametrize("value", [1, 17, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1])
def test_bounds_of_states_with_a_stack(value: int, tmp_path: Path) -> None:
    path, arrays = tmp_path / "it", stacked()
    worst = np.array(arrays["worst"])
    worst[arrays["stack_states"][:, 0] == 1] = value
    artifact.write(path, arrays | {"worst": worst}, STACKED.fingerprint, len(STACKED), "altered")
    with pytest.raises(ArtifactCorruptError, match="bound 0"):
        TokenAutomaton.load(path, STACKED)


@pytest.mark.parametrize("name", ["stack_asks", "stack_reveals"])
def test_rows_in_another_order(name: str, tmp_path: Path) -> None:
    arrays = stacked(**{name: lambda rows: rows[::-1].copy()})
    assert len(arrays[name]) > 1
    artifact.write(tmp_path / "it", arrays, STACKED.fingerprint, len(STACKED), "altered")
    with pytest.raises(ArtifactCorruptError, match="ascend"):
        TokenAutomaton.load(tmp_path / "it", STACKED)


@pytest.mark.parametrize("name", ["stack_asks", "stack_reveals"])
def test_rows_that_are_there_twice(name: str, tmp_path: Path) -> None:
    arrays = stacked(**{name: lambda rows: np.concatenate([rows[:1], rows])})
    artifact.write(tmp_path / "it", arrays, STACKED.fingerprint, len(STACKED), "altered")
    with pytest.raises(ArtifactCorruptError, match="ascend"):
        TokenAutomaton.load(tmp_path / "it", STACKED)


@pytest.mark.parametrize(
    "leaves",
    [
        ([5], [1], [], []),
        ([0], [0], [0, 9], [1]),
        ([9**6], [0], [0, 0], []),
        ([0], [9**6], [0, 0], []),
        ([0], [0], [0, 1], [9**6]),
    ],
)
def test_leaves_of_no_automaton(leaves: tuple[list[int], ...]) -> None:
    native = compile(gbnf('root ::= "(" root ")" | "a"'), EVERY).expand()._native
    with pytest.raises(ConstraintError, match="leaves"):
        _native.stack_layers(native, *leaves, 1 << 20, 1.0)


@pytest.mark.parametrize("value", [0, 1, 2**32 - 1])
def test_canonical_distances_that_are_false(value: int, tmp_path: Path) -> None:
    compile(regex("xyzw"), SPLIT, tokenization="canonical").save(tmp_path / "it")
    found = artifact.read(tmp_path / "it")
    for state in range(1, len(found.arrays["distance"])):
        false = np.array(found.arrays["distance"])
        false[state] = value
        arrays = found.arrays | {"distance": false}
        artifact.write(tmp_path / "it", arrays, SPLIT.fingerprint, len(SPLIT), "x", found.encoding)
        with contextlib.suppress(TokenfstError):
            CanonicalAutomaton.load(tmp_path / "it", SPLIT).matcher().distance()


@pytest.mark.parametrize("value", [0, 1, 2**31 - 1, 2**32 - 2, 2**32 - 1])
@pytest.mark.parametrize("which", ["distance", "worst"])
def test_device_automata_of_false_distances(which: str, value: int, tmp_path: Path) -> None:
    arrays = dict(compile(regex("ab|acd"), EVERY).expand().arrays())
    for state in range(1, len(arrays[which])):
        false = np.array(arrays[which])
        false[state] = value
        artifact.write(tmp_path / "it", arrays | {which: false}, EVERY.fingerprint, len(EVERY), "altered")
        try:
            use_device(TokenAutomaton.load(tmp_path / "it", EVERY), random.Random(value))
        except ArtifactCorruptError:
            assert which == "distance" and len(false) <= value < 2**32 - 1
