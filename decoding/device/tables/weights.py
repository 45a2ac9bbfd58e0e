"""A weighted automaton over bytes packed for a device, in one of two layouts.

Bytes that no state distinguishes are one class. *As a table*: there is a row for each state and a column for each
class. An entry holds the next state and the log weight. Failure arcs are written out, so a byte costs two look-ups and
no search. *As arcs*: each state has a bit for each class, which is 1 if the state has an arc for the class. A state's
arcs are stored in the order of their classes, so the place of an arc is the number of 1 bits below its own bit. If the
bit of a class is 0, the state's failure arc is followed, and its weight added, until a state has the bit: exact
back-off (Allauzen, Mohri, Roark, "Generalized algorithms for constructing statistical language models", 2003). A byte
then costs some look-ups for each failure.

State 0 is DEAD, 1 is ENDED, 2 is the start where the first token is still to come, which may be spelled otherwise, and
s + 3 is state s.

Invariant: one arc for each byte, so a place in a text is one state: a weighted language that is not deterministic is
refused. Weights are float32: scores are sums of a token's bytes. Cost: 8 bytes for each state and class of a table; of
arcs 8 bytes for each arc, and for each state 12 bytes and 8 for every 32 classes.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.automata.weights.machine import Machine
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.tables import ENDED, token_table
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

FIRST_STATE = ENDED + 1
"""The start, before any token."""
_BEFORE = FIRST_STATE + 1
"""The number of state 0 of the machine."""
PLAIN, END, SPECIAL = 0, 1, 2
"""Kinds of tokens."""


Layout = Literal["auto", "table", "arcs"]


class WeightTables(NamedTuple):
    """The tables of a weighted automaton as tensors.

    ``classes`` int32 (256,). ``table`` int32 and ``weights`` float32 (states, classes) or (arcs,). ``finals`` float32
    (states,), -inf where no text ends. ``bytes`` uint8, ``tokens`` int32 (V, 4): where a token's bytes begin and how
    many they are, and the same at the start of a text. ``kinds`` int32 (V,). ``slots`` int32 (states,): which of
    ``rows`` has the scores of all tokens there, -1 for none. ``rows`` float32 (rows, V). ``special``: the score of a
    special token. ``absorbs``: whether a token without bytes leaves a text at its start. ``start``: the start's number
    after the first token.

    For arcs: ``bits`` and ``first`` int32 (states, words): for each 32 classes, which of them have an arc, and where
    these arcs begin. ``failures`` int32 and ``costs`` float32 (states,): the state that a failure leads to (DEAD if
    there is none), and its weight. ``chain``: the most states in a row that failures connect; 0 for a table.
    """

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
    bits: Tensor
    first: Tensor
    failures: Tensor
    costs: Tensor
    chain: int = 0


def pack_weights(
    language: WeightedLanguage,
    vocabulary: Vocabulary,
    device: torch.device,
    capacity: int | None,
    layout: Layout = "table",
) -> tuple[WeightTables, int]:
    """The tables without any rows, and the number of the start. ``layout`` "auto": a table if it fits, else arcs.

    Raises ``EmptyLanguageError`` if no text has a weight, ``ConstraintError`` if a text has several paths, and
    ``BudgetExceeded`` beyond ``capacity`` bytes or the language's budget.
    """
    if language.is_empty():
        raise EmptyLanguageError(f"{language!r} has no text with a weight")
    if not language.is_deterministic:
        raise ConstraintError(
            f"{language!r} has several paths for a text, whose weights side by side have no finite table: "
            "determinize() it first, or use DeviceScoreMatchers"
        )
    most = language.budget.bytes if capacity is None else min(capacity, language.budget.bytes)
    if layout == "arcs":
        machine, packed = language.machine, _arcs(language.machine, most)
    else:
        try:
            machine, packed = language.plain, _table(language.plain, most)
        except BudgetExceeded:
            if layout == "table":
                raise
            machine, packed = language.machine, _arcs(language.machine, most)
    finals = np.full(machine.num_states + _BEFORE, -np.inf, np.float32)
    finals[_BEFORE:] = machine.finals
    start = machine.start + _BEFORE
    for each in (*packed.by_state, finals):
        each[FIRST_STATE] = each[start]
    text, tokens = token_table(vocabulary)
    kinds = np.zeros(len(vocabulary), np.int32)
    kinds[list(vocabulary.special_token_ids)] = SPECIAL
    kinds[list(vocabulary.eos_token_ids)] = END

    def sent(array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    tables = WeightTables(
        finals=sent(finals),
        bytes=sent(text if len(text) else np.zeros(1, np.uint8)),
        tokens=sent(tokens),
        kinds=sent(kinds),
        slots=sent(np.full(len(finals), -1, np.int32)),
        rows=sent(np.zeros((0, len(vocabulary)), np.float32)),
        special=float(language.special_weight),
        absorbs=vocabulary.start_absorbs,
        start=start,
        chain=packed.chain,
        **{name: sent(array) for name, array in packed.arrays.items()},
    )
    return tables, start if vocabulary.initial_tokens is None else FIRST_STATE


class _Packed(NamedTuple):
    """The arrays of a layout by their names in ``WeightTables``; those with a row for each state."""

    arrays: dict[str, npt.NDArray[Any]]
    by_state: list[npt.NDArray[Any]]
    chain: int


def _table(machine: Machine, most: int) -> _Packed:
    classes = _classes(machine)
    states, width = machine.num_states + _BEFORE, int(classes.max()) + 1
    _check_room(states * (8 * width + 8), most)
    table = np.zeros((states, width), np.int32)
    weights = np.zeros((states, width), np.float32)
    at = machine.sources() + _BEFORE, classes[machine.labels]
    table[at] = machine.targets.astype(np.int32) + _BEFORE
    weights[at] = machine.weights
    none = np.zeros((1, 1), np.int32)
    arrays = {"classes": classes, "table": table, "weights": weights, "bits": none, "first": none}
    return _Packed(arrays | {"failures": none[0], "costs": none[0].astype(np.float32)}, [table, weights], 0)


def _arcs(machine: Machine, most: int) -> _Packed:
    classes = _classes(machine)
    states, words = machine.num_states + _BEFORE, int(classes.max()) // 32 + 1
    sources, own = machine.sources() + _BEFORE, classes[machine.labels]
    _, kept = np.unique(sources * 256 + own, return_index=True)  # bytes of one class share one arc
    sources, own = sources[kept], own[kept]
    _check_room(states * (8 * words + 16) + 8 * len(kept), most)
    place = sources * words + own // 32
    bits = np.zeros(states * words, np.uint32)
    np.bitwise_or.at(bits, place, np.uint32(1) << (own % 32).astype(np.uint32))
    first = np.searchsorted(place, np.arange(states * words)).astype(np.int32)
    failures, costs = np.zeros(states, np.int32), np.zeros(states, np.float32)
    fails = machine.failures >= 0
    failures[_BEFORE:][fails] = machine.failures[fails] + _BEFORE
    costs[_BEFORE:][fails] = machine.failure_weights[fails]
    chain, at = 1, np.unique(failures)
    while at.any():
        chain, at = chain + 1, np.unique(failures[at])
    mask, first_arc = bits.view(np.int32).reshape(states, words), first.reshape(states, words)
    arrays = {
        "classes": classes,
        "table": machine.targets[kept].astype(np.int32) + _BEFORE,
        "weights": machine.weights[kept].astype(np.float32),
        "bits": mask,
        "first": first_arc,
        "failures": failures,
        "costs": costs,
    }
    return _Packed(arrays, [mask, first_arc, failures, costs], chain)


def _check_room(size: int, most: int) -> None:
    if size > most:
        raise BudgetExceeded("bytes", most, "the tables of a weighted language on a device")


def _classes(machine: Machine) -> npt.NDArray[np.int32]:
    """The class of each byte; 0 for bytes without arcs. Bytes are in one class if they are on the same arcs. Linear
    in the arcs.
    """
    labels, sources = machine.labels, machine.sources()
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(257))
    found: dict[bytes, int] = {b"": 0}
    classes = np.zeros(256, np.int32)
    for byte in range(256):
        own = order[ends[byte] : ends[byte + 1]]
        key = sources[own].tobytes() + machine.targets[own].tobytes() + machine.weights[own].tobytes()
        classes[byte] = found.setdefault(key, len(found))
    return classes
