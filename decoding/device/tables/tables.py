"""Token automata packed into few arrays of small integers, for loops that stay on a device
(docs/decoding/device.md).

Several automata over one vocabulary share one numbering of states: 0 is DEAD, 1 is ENDED (after the end token), and
the states of each automaton are consecutive. So a state determines its automaton, and a batch may mix automata. An
automaton is packed relative to itself (``pack``) and moved after the existing ones (``Packed.placed``).

The walk is factored: a token's bytes run through the class table. An entry of ``table`` is the place of the next
state's row, not its number, so that a byte costs two look-ups (the byte's class, then the entry), only one of which
waits for the previous byte. The word before a row is the number of its state, or 0 if no token may end there. The
alternative, an explicit edge for each state and token, is measured in docs/decisions/006-device-layout.md.

A mask is a row XOR flips, as everywhere (docs/serving/format.md). Row 0 is the empty one, and mask 0 has the end tokens
only: these are allowed for DEAD and ENDED rows, and for rows without remaining tokens. A mask with more than
``MOST_FLIPS`` flips becomes a separate row. With ``dense``, so does a mask with flips on any row but the empty one:
then a mask is a row or a list. This is for devices whose threads cannot search a list for each column.

Limits of tokens: each state has masks by the distance that may remain after the token
(native/device/limit_layers.hpp).

Cost: linear in the arrays of the artifact; with limits of tokens, a walk of the vocabulary for each state at worst.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.budget import Budget
from tokenfst.decoding.masks.bitmask import bitmask_from_ids
from tokenfst.decoding.token_automata.token_automaton import UNREACHABLE, TokenAutomaton
from tokenfst.errors import BudgetExceeded, ConstraintError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Ints = npt.NDArray[np.int32]

DEAD, ENDED = 0, 1
ACCEPTING, FIRST = 1, 2
"""Flags of a state: it is accepting; tokens at it are in their initial form."""
ROW, CLASSES, MASK, LAYERS_BEGIN, LAYERS_END, FLAGS, AFTER_EMPTY, DISTANCE = range(8)
"""The fields of a state.

They are its place in ``table``, its automaton's place in ``classes``, its mask, its range of ``layers``, flags, the
state after a token whose initial form is empty, and the distance to acceptance in tokens (``FAR``: none).
"""
FAR = 2**31 - 1
MOST_FLIPS = 512
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)
"""The number of 1 bits of each byte."""


class StackLoops(NamedTuple):
    """The bounds of the loops: ``looks`` into the stack after one byte, ``pushes`` of one action, ``asks`` for one
    mask.
    """

    looks: int
    pushes: int
    asks: int


@dataclass(frozen=True, slots=True)
class Packed:
    """One automaton with its own numbers: its first state is 2, its first mask and the place of its first row are
    1.

    ``states``: int32 (states, 8), the fields above. ``table``: int32, for each state its number and its row.
    ``classes``: uint8 (256,). ``masks``: int32 (masks, 4): row, begin and end of its flips, number of allowed
    tokens. ``rows``: uint32 (rows, words). ``flips``: int32, token ids. ``layers``: int32 (layers, 2): least
    distance, mask. ``start``.
    """

    states: Ints
    table: Ints
    classes: npt.NDArray[np.uint8]
    masks: Ints
    rows: npt.NDArray[np.uint32]
    flips: Ints
    layers: Ints
    start: int

    def placed(
        self, states: int, table: int, classes: int, masks: int, flips: int, layers: int, rows: Ints
    ) -> Packed:
        """This automaton moved after the given numbers of states, table entries and so on; row r of a mask becomes
        ``rows[r]``.
        """
        by_state = self.states.copy()
        by_state[:, ROW] = _moved(by_state[:, ROW], 1, table)
        by_state[:, CLASSES] = classes
        by_state[:, MASK] = _moved(by_state[:, MASK], 1, masks)
        by_state[:, LAYERS_BEGIN : LAYERS_END + 1] += layers
        by_state[:, AFTER_EMPTY] = _moved(by_state[:, AFTER_EMPTY], 2, states)
        moved = _moved(self.table, 1, table)
        moved[self._headers()] = _moved(self.table[self._headers()], 2, states)
        by_mask = self.masks.copy()
        by_mask[:, 0] = rows[by_mask[:, 0]]
        by_mask[:, 1:3] += flips
        by_layer = self.layers.copy()
        by_layer[:, 1] = _moved(by_layer[:, 1], 1, masks)
        start = self.start if self.start < 2 else self.start - 2 + states
        return Packed(by_state, moved, self.classes, by_mask, self.rows, self.flips, by_layer, start)

    def _headers(self) -> Ints:
        """The positions in ``table`` of the numbers of states."""
        places = self.states[:, ROW]
        return places[places > 0] - 1


def _moved(values: Ints, first: int, to: int) -> Ints:
    """Add an offset to numbers from ``first`` on, so that ``first`` becomes ``to``; those below have a fixed
    meaning.
    """
    return np.where(values < first, values, values - first + to).astype(np.int32)


def pack(
    automaton: TokenAutomaton, *, masks: bool, token_limits: bool, dense: bool, budget: Budget
) -> Packed:
    """Pack an automaton; it is expanded first if necessary.

    ``token_limits``: include masks for every number of remaining tokens. ``masks``: ``False`` for the class table
    alone, without expansion; distances are then 0 for all states from which acceptance can be reached.

    Raises ``ConstraintError`` for a push-down automaton, one with special tokens, and one with strings that must
    differ; ``BudgetExceeded`` if a table exceeds 31 bits or ``budget``.
    """
    if automaton.native.is_pushdown:
        raise ConstraintError(
            f"{automaton.source} needs a stack, and these device tables hold finite automata: use "
            "PushDownDeviceAutomaton, compile the grammar's truncate(depth), or page the masks of its matchers in with "
            "DeviceMatchers"
        )
    if automaton.native.has_marks:
        raise ConstraintError(
            f"{automaton.source} has strings that must differ from each other (names of a JSON object, unique items), "
            'which device tables do not remember: use DeviceMatchers, or json_schema(..., repeated_names="allow")'
        )
    arrays = automaton.arrays() if masks else _without_masks(automaton)
    by_limit = (
        _native.limit_layers(automaton.expand().native, budget.bytes, budget.seconds) if token_limits else {}
    )
    rests = arrays["distance"] != UNREACHABLE
    rests[DEAD] = False
    return pack_arrays(arrays, by_limit, rests, automaton, dense=dense)


def pack_arrays(
    arrays: dict[str, Any],
    by_limit: dict[str, Any],
    rests: npt.NDArray[np.bool_],
    automaton: TokenAutomaton,
    *,
    dense: bool,
) -> Packed:
    """The same for the arrays of an automaton. ``rests``: bool (states,), where tokens may end.

    ``by_limit``: arrays of masks for every number of remaining tokens (native/device/limit_layers.hpp), or none.
    """
    vocabulary = automaton.vocabulary
    num_states, num_classes = arrays["table"].shape
    if num_states * (num_classes + 1) > FAR:
        raise BudgetExceeded("entries", FAR, f"the device table of {automaton.source}")
    numbers = np.arange(num_states, dtype=np.int32) + 1  # numbers of states, without DEAD
    numbers[DEAD] = DEAD
    places = (numbers - 2) * (num_classes + 1) + 1  # places of their rows in `table`; that of DEAD is 0
    targets = np.where(arrays["table"] == 0, 0, places[arrays["table"]])
    ended = _after_tokens(arrays, automaton.source)
    table = np.concatenate([np.where(rests[ended], numbers[ended], 0)[:, None], targets], axis=1)[1:].astype(
        np.int32
    )

    states = np.zeros((num_states, 8), np.int32)
    states[:, ROW] = places
    states[:, MASK] = np.where(rests, arrays["mask"], 0)
    states[:, DISTANCE] = np.minimum(arrays["distance"], FAR)
    states[:, FLAGS] = arrays["accepting"] * ACCEPTING
    if vocabulary.initial_tokens is not None:
        start, inner = int(arrays["start"]), int(arrays["inner_start"])
        after = start if vocabulary.start_absorbs else inner
        states[start, FLAGS] |= FIRST
        states[start, AFTER_EMPTY] = numbers[after] if rests[after] else DEAD
    layers = np.zeros((0, 2), np.int32)
    if by_limit:
        offsets = by_limit["layer_offsets"].astype(np.int32)
        states[:, LAYERS_BEGIN], states[:, LAYERS_END] = offsets[:-1], offsets[1:]
        layers = by_limit["layers"].astype(np.int32)
    by_mask, rows, flips = _masks(arrays | by_limit, dense)
    # An empty mask becomes that of the end tokens only, like mask 0.
    states[:, MASK] = np.where(by_mask[states[:, MASK], 3] == 0, 0, states[:, MASK])
    return Packed(
        states[1:],
        table.reshape(-1),
        arrays["classes"],
        by_mask[1:],
        rows,
        flips,
        layers,
        int(numbers[arrays["start"]]) if rests[arrays["start"]] else DEAD,
    )


def _after_tokens(arrays: dict[str, Any], source: str) -> npt.NDArray[np.uint32]:
    """For each state that a token's bytes reach, the state after the token: by the column of token boundaries, if
    there is one.
    """
    columns = arrays.get("token_columns", np.zeros((0, 2), np.uint32))
    boundary = columns[:, 0] == UNREACHABLE
    if not boundary.all():
        raise ConstraintError(
            f"{source} constrains special tokens, but device tables support bytes only: use DeviceMatchers, which "
            "pages the masks of its matchers in"
        )
    table = arrays["table"]
    return table[:, columns[0, 1]] if len(columns) else np.arange(len(table), dtype=np.uint32)


def _without_masks(automaton: TokenAutomaton) -> dict[str, Any]:
    """The arrays of an automaton as if no state had a mask.

    A token may end at every live state only if each byte is a token: otherwise raises ``ConstraintError``.
    """
    if not automaton.vocabulary.native.complete:
        raise ConstraintError(
            f"masks of {automaton.source} cannot be composed on a device: not every byte is a token of the vocabulary, "
            "so the allowed tokens must be searched for. Use DeviceAutomaton"
        )
    if automaton.native.is_token_level:
        raise ConstraintError(
            f"masks of {automaton.source} cannot be composed on a device: it constrains tokens, not only "
            "bytes. Use DeviceAutomaton"
        )
    arrays = _native.byte_tables(automaton.native)
    if not automaton.native.spellable:  # initial forms may be empty
        arrays["start"] = DEAD
    states = len(arrays["accepting"])
    distance = np.zeros(states, np.uint32)
    distance[DEAD] = FAR
    return arrays | {
        "distance": distance,
        "mask": np.zeros(states, np.uint32),
        "mask_row": np.zeros(1, np.uint32),
        "flip_offsets": np.zeros(2, np.uint32),
        "flips": np.zeros(0, np.uint32),
        "rows": np.zeros((0, -(-len(automaton.vocabulary) // 32)), np.uint32),
    }


def _masks(arrays: dict[str, Any], dense: bool) -> tuple[Ints, npt.NDArray[np.uint32], Ints]:
    """Masks as (row, begin of flips, end, count), rows and flips."""
    rows, flips = arrays["rows"], arrays["flips"]
    offsets = arrays["flip_offsets"].astype(np.int64)
    if len(flips) > FAR:
        raise BudgetExceeded("entries", FAR, "the masks for the device")
    row_counts = np.concatenate([[0], _ONES[rows.view(np.uint8)].sum(axis=1, dtype=np.int64)])
    by_mask = np.zeros((len(arrays["mask_row"]), 4), np.int32)
    by_mask[:, 0] = arrays["mask_row"]
    by_mask[:, 1], by_mask[:, 2] = offsets[:-1], offsets[1:]
    extended = np.concatenate([np.zeros((1, rows.shape[1]), np.uint32), rows])
    owner = np.repeat(np.arange(len(by_mask)), np.diff(offsets))
    inside = extended[by_mask[owner, 0], flips // 32] >> (flips % 32) & 1
    change = np.bincount(owner, 1 - 2 * inside.astype(np.int64), len(by_mask)).astype(np.int64)
    by_mask[:, 3] = row_counts[by_mask[:, 0]] + change
    sizes = np.diff(offsets)
    long = np.flatnonzero((sizes > MOST_FLIPS) | (dense & (sizes > 0) & (by_mask[:, 0] > 0)))
    if len(long) == 0:
        return by_mask, rows, flips.astype(np.int32)
    made = extended[by_mask[long, 0]].copy()
    for k, mask in enumerate(long.tolist()):
        own = flips[offsets[mask] : offsets[mask + 1]]
        np.bitwise_xor.at(made[k], own // 32, np.uint32(1) << (own % 32).astype(np.uint32))
    by_mask[long, 0] = len(rows) + 1 + np.arange(len(long))
    by_mask[long, 2] = by_mask[long, 1]
    return by_mask, np.concatenate([rows, made]), flips.astype(np.int32)


def ground(vocabulary: Vocabulary) -> dict[str, npt.NDArray[Any]]:
    """The initial tables, before any automaton is added.

    They have DEAD and ENDED, mask 0 of the end tokens, the empty row, the tokens, and for stacks (``stacks``) the first
    action and the first slot, which have no owner.
    """
    text, tokens = token_table(vocabulary)
    ends = np.array(vocabulary.eos_token_ids, np.int32)
    states = np.zeros((2, 8), np.int32)
    states[:, DISTANCE] = FAR, 0
    rows = np.zeros((1, -(-len(vocabulary) // 32)), np.uint32)
    masks = np.array([[0, 0, len(ends), len(ends)]], np.int32)
    if len(ends) > MOST_FLIPS:
        rows = np.concatenate([rows, bitmask_from_ids(ends, len(vocabulary)).view(np.uint32)[None]])
        masks = np.array([[1, 0, 0, len(ends)]], np.int32)
    return {
        "states": states,
        "table": np.zeros(257, np.int32),
        "classes": np.zeros(256, np.uint8),
        "bytes": text if len(text) else np.zeros(1, np.uint8),
        "tokens": tokens,
        "masks": masks,
        "rows": rows,
        "flips": ends[:MOST_FLIPS],
        "layers": np.zeros((1, 2), np.int32),
        "controls": np.array([[0, 0, FAR, 0], [0, 1, FAR, 0]], np.int32),
        "actions": np.zeros((1, 5), np.int32),
        "pushes": np.zeros((1, 2), np.int32),
        "comb": np.zeros((1, 2), np.int32),
        "frames": np.zeros(1, np.int32),
    }


def token_table(vocabulary: Vocabulary) -> tuple[npt.NDArray[np.uint8], Ints]:
    """The bytes of all tokens, and int32 (V, 4): the position and length of each, inside a text and at its start.

    An end token has length -1, other special tokens 0. Raises ``BudgetExceeded`` beyond 2 GiB of bytes.
    """
    parts: list[npt.NDArray[np.uint8]] = []
    columns: list[npt.NDArray[np.int64]] = []
    placed = 0
    for initial in (False, True):
        if initial and vocabulary.initial_tokens is None:
            columns += columns[:2]
            break
        data, offsets = vocabulary.packed(initial=initial)
        at = offsets.astype(np.int64)
        parts.append(np.frombuffer(data, np.uint8))
        columns += [at[:-1] + placed, np.diff(at)]
        placed += len(data)
    if placed > FAR:
        raise BudgetExceeded("bytes", FAR, "the bytes of all tokens")
    tokens = np.stack(columns, axis=1).astype(np.int32)
    tokens[list(vocabulary.eos_token_ids), 1] = -1
    tokens[list(vocabulary.eos_token_ids), 3] = -1
    return np.concatenate(parts), tokens
