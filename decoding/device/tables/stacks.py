"""Push-down automata packed for a device, in addition to the tables of ``tables``.

Only deterministic ones (one stack is enough for every text) have such tables. They hold the content of an artifact
(docs/serving/format.md, *Stacks*), arranged so that a thread never searches.

- A ``table`` entry below 0 is the negated number of an *action*, which changes the stack. The action names the place to
  continue from, or a look-up of the next action by the symbol on top and by whether there are symbols below it.
- A look-up reads one slot of ``comb``, at the owner's place plus the answer. The slot names its owner, so a look-up
  knows whether the slot is its own (tries by row displacement: Tarjan and Yao, "Storing a sparse table", 1979).
  Reveals, chains of symbols and the decision trees of masks are all such look-ups.
- ``controls`` gives the place of each state's mask: it is at a *leaf* of the decision tree that reads the stack. A leaf
  is a separate state without arcs. So a batch of stacks becomes a batch of states, and all code that needs only masks
  (``automata.masks``) works for both. Limits of tokens are counted above the part that the leaf does not read.

Cost: linear in the artifact's arrays, except for the displacement, which tries places in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.budget import Budget
from tokenfst.decoding.device.tables.tables import (
    FAR,
    LAYERS_BEGIN,
    LAYERS_END,
    MASK,
    Ints,
    Packed,
    StackLoops,
    pack,
    pack_arrays,
)
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import BudgetExceeded, ConstraintError, TokenLimitError

ASK = 1 << 31
"""A flag in an artifact's ``mask``: the other bits are the number of an inner node of a decision tree."""
_REVEAL, _CHAIN, _ASK = range(3)
"""Kinds of slots, by the meaning of their values: actions, symbols, leaves or places."""


@dataclass(frozen=True, slots=True)
class Comb:
    """Slots: ``owners`` and ``values``, int32, and ``kinds``; ``place`` of each owner. The first slot has no owner."""

    owners: Ints
    values: Ints
    kinds: npt.NDArray[np.uint8]
    place: dict[tuple[int, int], int]

    @classmethod
    def of(cls, entries: dict[tuple[int, int], dict[int, int]], widest: int, budget: Budget) -> Comb:
        """Place the answers of each owner (a kind and a number) where no other answers are, longest first.

        ``widest``: the greatest possible answer. Values of look-ups of masks are states, or owners of that kind,
        negated.
        """
        size = sum(map(len, entries.values())) + 2
        taken, used = np.zeros(2 * size + widest, bool), np.zeros(2 * size + widest, bool)
        taken[0] = used[0] = True
        place: dict[tuple[int, int], int] = {}
        free = 1
        for owner in sorted(entries, key=lambda owner: (-len(entries[owner]), owner)):
            answers = np.array(sorted(entries[owner]), np.int64)
            at = max(1, free - int(answers[0])) if len(answers) else 1
            while used[at] or taken[at + answers].any():
                at += 1
                if at + widest >= len(taken):
                    taken, used = (np.concatenate([part, np.zeros_like(part)]) for part in (taken, used))
                    if taken.nbytes > budget.bytes:
                        raise BudgetExceeded("bytes", budget.bytes, "the look-ups of stacks for the device")
            taken[at + answers] = used[at] = True
            place[owner] = at
            while taken[free]:
                free += 1
        length = max(place.values(), default=0) + widest + 1
        owners, values = np.zeros(length, np.int32), np.zeros(length, np.int32)
        kinds = np.zeros(length, np.uint8)
        for owner, answers_of in entries.items():
            for answer, value in answers_of.items():
                slot = place[owner] + answer
                if owner[0] == _ASK and value < 0:
                    value = -place.get((_ASK, -value), 0)
                owners[slot], values[slot], kinds[slot] = place[owner], value, owner[0]
        return cls(owners, values, kinds, place)


@dataclass(frozen=True, slots=True)
class PackedStacks:
    """One automaton with its own numbers, like ``Packed``.

    ``controls``: int32 (states, 4): the place where the look-up of the state's mask begins, or 0 if there is none; the
    state that has the mask, if there is no look-up; the distance without the stack; and where the automaton's frames
    begin. ``actions``: int32 (actions, 5), numbered from 1: place, whether the stack is kept, range of pushes, look-up
    or 0. ``pushes``: int32 (pushes, 2): symbol, look-up of its chains or 0. ``frames``: int32, distances. ``loops``:
    the bounds of loops.
    """

    packed: Packed
    controls: Ints
    actions: Ints
    pushes: Ints
    comb: Comb
    frames: Ints
    loops: StackLoops

    def placed(self, used: dict[str, int], table: Ints) -> dict[str, Any]:
        """The tables of stacks, moved after the existing ones, by name. ``table``: the table of ``packed`` after its
        move; the result contains it with the moved numbers of actions.
        """
        actions, slots = used["actions"], used["comb"] - 1
        by_action = self.actions.copy()
        by_action[:, 0] = np.where(by_action[:, 0] > 0, by_action[:, 0] - 1 + used["table"], 0)
        by_action[:, 2:4] += used["pushes"]
        by_action[:, 4] = _moved(by_action[:, 4], slots)
        by_push = self.pushes.copy()
        by_push[:, 1] = _moved(by_push[:, 1], slots)
        controls = self.controls.copy()
        controls[:, 0] = _moved(controls[:, 0], slots)
        controls[:, 1] += used["states"] - 2
        controls[:, 3] = used["frames"]
        values, kinds = self.comb.values, self.comb.kinds
        values = np.where(kinds == _REVEAL, values + actions - 1, values)
        asks = np.where(values < 0, values - slots, values + used["states"] - 2)
        values = np.where(self.comb.kinds == _ASK, asks, values)
        comb = np.stack([_moved(self.comb.owners, slots), np.where(self.comb.owners > 0, values, 0)], axis=1)
        return {
            "table": np.where(table < 0, table + 1 - actions, table).astype(np.int32),
            "controls": controls,
            "actions": by_action,
            "pushes": by_push,
            "comb": comb[1:].astype(np.int32),
            "frames": self.frames,
        }


def _moved(values: Ints, by: int) -> Ints:
    """Places moved by a number; 0 stays 0."""
    return np.where(values > 0, values + by, 0).astype(np.int32)


def pack_stacks(
    automaton: TokenAutomaton, *, token_limits: bool, dense: bool, budget: Budget
) -> PackedStacks:
    """Pack an automaton with or without a stack; it is expanded first if necessary.

    Raises ``NondeterministicError`` for a grammar that needs more than one stack, ``ConstraintError`` for automata that
    device tables cannot hold (``tables.pack``), ``TokenLimitError`` if ``token_limits`` cannot be counted above the
    stack, and ``BudgetExceeded``.
    """
    if not automaton.native.is_pushdown:
        packed = pack(automaton, masks=True, token_limits=token_limits, dense=dense, budget=budget)
        return _finite(packed)
    if automaton.native.has_marks:
        raise ConstraintError(
            f"{automaton.source} has strings that must differ from each other (names of a JSON object, unique items), "
            'which device tables do not remember: use DeviceMatchers, or json_schema(..., repeated_names="allow")'
        )
    automaton = automaton.expand()
    arrays = automaton.arrays()
    leaves = _Leaves.of(arrays)
    by_limit = _layers(automaton, leaves, budget) if token_limits else {}
    controls_only = np.zeros(len(arrays["mask"]) + 1, np.uint32)
    packed = pack_arrays(
        arrays | {"mask": np.zeros_like(arrays["mask"])},
        by_limit | {"layer_offsets": controls_only} if token_limits else {},
        arrays["mask"] != 0,
        automaton,
        dense=dense,
    )
    count = len(packed.states)
    comb = Comb.of(_look_ups(arrays, leaves, count + 2), 2 * len(arrays["stack_frames"]), budget)
    table = packed.table.reshape(count, -1).copy()
    actions = _Actions.of(arrays, comb, table.shape[1])
    of_target = actions.of_state[arrays["table"]][1:]
    table[:, 1:] = np.where(of_target > 0, -of_target, table[:, 1:])

    records = np.zeros((len(leaves.masks), 8), np.int32)
    records[:, MASK] = np.where(packed.masks[leaves.masks - 1, 3] == 0, 0, leaves.masks)
    if token_limits:
        offsets = by_limit["layer_offsets"].astype(np.int32)
        records[:, LAYERS_BEGIN], records[:, LAYERS_END] = offsets[:-1], offsets[1:]
    controls = np.zeros((count + len(records), 4), np.int32)
    controls[:, 2] = FAR
    controls[:count, 2] = np.minimum(arrays["stack_states"][1:, 3], FAR)
    for leaf, path in enumerate(leaves.paths):
        if not path:
            controls[leaves.states[leaf] - 1, 1] = count + 2 + leaf
    asks = arrays["mask"][1:] & ASK != 0
    roots = arrays["mask"][1:][asks] & ~np.uint32(ASK)
    controls[:count, 0][asks] = [comb.place.get((_ASK, root), 0) for root in roots.tolist()]
    return PackedStacks(
        replace(packed, states=np.concatenate([packed.states, records]), table=table.reshape(-1)),
        controls,
        actions.records,
        actions.pushes,
        comb,
        np.minimum(arrays["stack_frames"][:, 1], FAR).astype(np.int32),
        StackLoops(actions.looks, actions.most_pushes, max(map(len, leaves.paths), default=0)),
    )


def _finite(packed: Packed) -> PackedStacks:
    """The tables for an automaton without a stack: every state has its own mask."""
    controls = np.zeros((len(packed.states), 4), np.int32)
    controls[:, 1], controls[:, 2] = np.arange(len(packed.states)) + 2, FAR
    none = np.zeros((0, 5), np.int32)
    return PackedStacks(
        packed, controls, none, none[:, :2], Comb.of({}, 0, Budget()), none[:, 0], StackLoops(0, 0, 0)
    )


@dataclass(frozen=True, slots=True)
class _Leaves:
    """The leaves with masks: for each its state, its number and the answers that lead to it (none if the state
    reads nothing).

    ``row``: for ``stack_asks``, the leaf there.
    """

    states: list[int]
    masks: npt.NDArray[np.int64]
    paths: list[tuple[int, ...]]
    row: dict[int, int]

    @classmethod
    def of(cls, arrays: dict[str, Any]) -> _Leaves:
        asks = (arrays["mask"] & ASK) != 0
        states = np.flatnonzero(~asks & (arrays["mask"] != 0)).tolist()
        masks = arrays["mask"][states].tolist()
        paths: list[tuple[int, ...]] = [()] * len(states)
        row: dict[int, int] = {}
        node_of: dict[int, tuple[int, tuple[int, ...]]] = {
            int(arrays["mask"][state]) & ~ASK: (state, ()) for state in np.flatnonzero(asks).tolist()
        }
        for number, (node, answer, value) in enumerate(arrays["stack_asks"].tolist()):
            state, path = node_of[node]
            if value & ASK:
                node_of[value & ~ASK] = (state, (*path, answer))
                continue
            row[number] = len(states)
            states.append(state)
            masks.append(value)
            paths.append((*path, answer))
        return cls(states, np.array(masks, np.int64), paths, row)


def _layers(automaton: TokenAutomaton, leaves: _Leaves, budget: Budget) -> dict[str, Any]:
    """The masks of each leaf by the number of remaining tokens."""
    offsets = np.cumsum([0, *map(len, leaves.paths)]).tolist()
    answers = [answer for path in leaves.paths for answer in path]
    try:
        return _native.stack_layers(
            automaton.native,
            leaves.states,
            leaves.masks.tolist(),
            offsets,
            answers,
            budget.bytes,
            budget.seconds,
        )
    except ConstraintError as error:
        raise TokenLimitError(f"{automaton.source}: {error}. Make it with token_limits=False") from None


def _look_ups(
    arrays: dict[str, Any], leaves: _Leaves, first_leaf: int
) -> dict[tuple[int, int], dict[int, int]]:
    """Owners and their answers, for ``Comb.of``. ``first_leaf``: the number of the first leaf as a state."""
    found: dict[tuple[int, int], dict[int, int]] = {
        (_CHAIN, frame): {} for frame in np.flatnonzero(arrays["stack_frames"][:, 0]).tolist()
    }
    for state, answer, effect in arrays["stack_reveals"].tolist():
        found.setdefault((_REVEAL, state), {})[answer] = effect
    for upper, lower, both in arrays["stack_chains"].tolist():
        found[_CHAIN, upper][lower] = both + 1
    for row, (node, answer, value) in enumerate(arrays["stack_asks"].tolist()):
        leaf = leaves.row.get(row)
        found.setdefault((_ASK, node), {})[answer] = -(value & ~ASK) if leaf is None else first_leaf + leaf
    return found


@dataclass(frozen=True, slots=True)
class _Actions:
    """``records`` and ``pushes`` as in ``PackedStacks``. ``of_state``: the action of each target of a step; 0: none."""

    records: Ints
    pushes: Ints
    of_state: Ints
    looks: int
    most_pushes: int

    @classmethod
    def of(cls, arrays: dict[str, Any], comb: Comb, width: int) -> _Actions:
        """``width``: the width of a row of the table, including its state's number."""
        states, effects = arrays["stack_states"], arrays["stack_effects"].astype(np.int64)
        frames = arrays["stack_pushes"].astype(np.int32)
        chains = [comb.place.get((_CHAIN, frame), 0) for frame in frames.tolist()]
        looks = states[:, 2] == 1
        # Effects first; then states that read the stack without having an effect.
        only = np.flatnonzero(looks & (states[:, 1] == 0))
        reached = np.concatenate([effects[:, 0], only])
        records = np.zeros((len(reached), 5), np.int32)
        records[:, 0] = np.where(looks[reached], 0, (reached - 1) * width + 1)
        records[:, 1] = np.concatenate([effects[:, 1], np.ones(len(only), np.int64)])
        records[: len(effects), 3] = effects[:, 2]
        records[1 : len(effects), 2] = effects[:-1, 2]
        records[:, 4] = [
            comb.place.get((_REVEAL, state), 0) if looks[state] else 0 for state in reached.tolist()
        ]
        of_state = states[:, 1].astype(np.int32)
        of_state[only] = len(effects) + 1 + np.arange(len(only))
        most = int((records[:, 3] - records[:, 2]).max(initial=0))
        return cls(
            records,
            np.array([frames, chains], np.int32).reshape(2, -1).T.copy(),
            of_state,
            _most_looks(arrays["stack_reveals"].tolist(), effects[:, 0].tolist(), looks),
            most,
        )


def _most_looks(reveals: list[list[int]], reached: list[int], looks: npt.NDArray[np.bool_]) -> int:
    """The maximum number of symbols that one step pops: the longest path of stack reads.

    Raises ``ConstraintError`` if there is no bound.
    """
    found = {state: 1 for state, _, _ in reveals}
    for _ in range(len(found) + 1):
        before = dict(found)
        for state, _, effect in reveals:
            found[state] = max(found[state], 1 + found.get(reached[effect - 1], 0))
        if found == before:
            return max(found.values(), default=0)
    raise ConstraintError(
        "one byte may take any number of symbols off the stack: page masks in with DeviceMatchers"
    )
