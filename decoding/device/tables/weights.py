"""A weighted automaton over bytes packed for a device: tables of a row for each state and a column for each class.

Bytes that no state distinguishes are one class; ``table`` says where a state goes by a class, and ``weights``
at which log weight. Failure arcs are written out first, so a byte costs two look-ups and no search. State 0 is DEAD, 1
is ENDED, 2 is the start where the first token is still to come, which may be spelled otherwise, and s + 3 is state s.

Invariant: one arc a byte, so a place in a text is one state: a weighted language that is not deterministic is
refused. Weights are float32: scores are sums of a token's bytes. Cost: 8 bytes for each state and class. Rejected: arcs
listed by state with failures walked on the device: as small as the model, but a search and a loop for each byte.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.tables import ENDED, token_table
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

FIRST_STATE = ENDED + 1
"""The start, before any token."""
PLAIN, END, SPECIAL = 0, 1, 2
"""Kinds of tokens."""


class WeightTables(NamedTuple):
    """``classes`` int32 (256,). ``table`` int32 and ``weights`` float32 (states, classes). ``finals`` float32
    (states,), -inf where no text ends. ``bytes`` uint8, ``tokens`` int32 (V, 4): where a token's bytes begin and how
    many they are, and the same at the start of a text. ``kinds`` int32 (V,). ``slots`` int32 (states,): which of
    ``rows`` has the scores of all tokens there, -1 for none. ``rows`` float32 (rows, V). ``special``: the score of a
    special token. ``absorbs``: whether a token without bytes leaves a text at its start. ``start``: the start's number
    behind the first token."""

    classes: Tensor
    table: Tensor
    weights: Tensor
    finals: Tensor
    bytes: Tensor
    tokens: Tensor
    kinds: Tensor
    slots: Tensor
    rows: Tensor
    special: float
    absorbs: bool
    start: int


def pack_weights(
    language: WeightedLanguage, vocabulary: Vocabulary, device: torch.device, capacity: int | None
) -> tuple[WeightTables, int]:
    """The tables without any rows, and the number of the start. ``EmptyLanguageError``; ``ConstraintError`` where a
    text has several paths; ``BudgetExceeded`` beyond ``capacity`` bytes or the language's budget."""
    if language.is_empty():
        raise EmptyLanguageError(f"{language!r} has no text with a weight")
    if not language.is_deterministic:
        raise ConstraintError(
            f"{language!r} has several paths for a text, whose weights side by side have no finite table: "
            "determinize() it first, or use DeviceScoreMatchers"
        )
    most = language.budget.bytes if capacity is None else min(capacity, language.budget.bytes)
    machine = language.plain
    classes = _classes(machine.labels, machine.sources(), machine.weights, machine.targets)
    states, width = machine.num_states + FIRST_STATE + 1, int(classes.max()) + 1
    if states * (8 * width + 8) > most:
        raise BudgetExceeded("bytes", most, "the tables of a weighted language on a device")
    table = np.zeros((states, width), np.int32)
    weights = np.zeros((states, width), np.float32)
    at = machine.sources() + FIRST_STATE + 1, classes[machine.labels]
    table[at] = machine.targets.astype(np.int32) + FIRST_STATE + 1
    weights[at] = machine.weights
    finals = np.full(states, -np.inf, np.float32)
    finals[FIRST_STATE + 1 :] = machine.finals
    start = machine.start + FIRST_STATE + 1
    for each in (table, weights, finals):
        each[FIRST_STATE] = each[start]
    text, tokens = token_table(vocabulary)
    kinds = np.zeros(len(vocabulary), np.int32)
    kinds[list(vocabulary.special_token_ids)] = SPECIAL
    kinds[list(vocabulary.eos_token_ids)] = END

    def sent(array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    tables = WeightTables(
        classes=sent(classes),
        table=sent(table),
        weights=sent(weights),
        finals=sent(finals),
        bytes=sent(text if len(text) else np.zeros(1, np.uint8)),
        tokens=sent(tokens),
        kinds=sent(kinds),
        slots=sent(np.full(states, -1, np.int32)),
        rows=sent(np.zeros((0, len(vocabulary)), np.float32)),
        special=float(language.special_weight),
        absorbs=vocabulary.start_absorbs,
        start=start,
    )
    return tables, start if vocabulary.initial_tokens is None else FIRST_STATE


def _classes(
    labels: np.ndarray[tuple[int], np.dtype[np.uint8]],
    sources: np.ndarray[tuple[int], np.dtype[np.int64]],
    weights: np.ndarray[tuple[int], np.dtype[np.float64]],
    targets: np.ndarray[tuple[int], np.dtype[np.uint32]],
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """The class of each byte, that of bytes without arcs 0: of equal class are bytes whose arcs are the same ones.
    Linear in the arcs."""
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(257))
    found: dict[bytes, int] = {b"": 0}
    classes = np.zeros(256, np.int32)
    for byte in range(256):
        own = order[ends[byte] : ends[byte + 1]]
        key = sources[own].tobytes() + targets[own].tobytes() + weights[own].tobytes()
        classes[byte] = found.setdefault(key, len(found))
    return classes
