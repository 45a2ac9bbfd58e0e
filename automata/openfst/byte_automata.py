"""Deterministic byte automata as machines of OpenFst, and back: conversion, determinization, minimization, reversal.

Invariants of results: a ``Dfa`` is trim, its state 0 is DEAD (convention 3), and two bytes share a class if and only if
no state distinguishes them. ``arcs_to_dfa``, reversal, replacement of bytes, and functions that take or return a
``pynini.Fst`` need pynini.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import tokenfst._native as _native
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.tables import EMPTY_DFA, frozen_dfa
from tokenfst.automata.openfst.fst import (
    INT32_MAX,
    NO_STATE,
    Arcs,
    check_range,
    from_arcs,
    require_pynini,
    to_arcs,
)
from tokenfst.automata.openfst.labels import BYTE_ZERO_LABEL, EPSILON_LABEL, byte_label
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, FstError

if TYPE_CHECKING:
    import pynini

_FIRST_STATES = 4096
"""The state limit of the first attempt at a determinization; each following attempt multiplies it by four."""
_DELTA = 1e-6
"""The tolerance for weights that minimization expects. The machines here have no weights."""


def dfa_to_fst(dfa: Dfa, *, byte_zero: int = BYTE_ZERO_LABEL) -> pynini.Fst:
    """The acceptor of a ``Dfa``: byte b has label b + ``byte_zero`` (convention 2: b + 1); DEAD is omitted.

    Arcs of a state ascend by label. ``byte_zero=0`` gives pynini's own labels for strings; byte 0 would then be ε, so a
    machine that reads it is rejected with ``FstError``. Linear in the number of arcs.
    """
    arcs = dfa_to_arcs(dfa, byte_zero)
    columns = arcs.source, arcs.ilabel, arcs.olabel, arcs.nextstate
    return from_arcs(arcs.num_states, arcs.start, arcs.final_states, *columns, sorted_by_source=True)


def dfa_to_arcs(dfa: Dfa, byte_zero: int = BYTE_ZERO_LABEL) -> Arcs:
    """The arcs of ``dfa_to_fst``."""
    if dfa.start == 0:
        none = np.zeros(0, np.int32)
        return Arcs(0, NO_STATE, np.zeros(0, np.int64), none, none, none, none)
    state, group = np.nonzero(dfa.table)
    order = np.argsort(dfa.classes, kind="stable")
    sizes = np.bincount(dfa.classes, minlength=dfa.table.shape[1])
    # The bytes of class c are order[begin[c] : begin[c] + sizes[c]]: one arc for each.
    begin = np.cumsum(sizes) - sizes
    count = sizes[group]
    arc = np.repeat(np.arange(len(group)), count)
    nth = np.arange(len(arc)) - np.repeat(np.cumsum(count) - count, count)
    byte = order[begin[group[arc]] + nth]
    source = state[arc]
    label = byte_label(byte) - BYTE_ZERO_LABEL + byte_zero
    by_label = np.argsort(source * 256 + byte)
    if byte_zero == EPSILON_LABEL and np.any(label == EPSILON_LABEL):
        raise FstError("the language holds byte 0, and with byte_zero=0 its label would be ε")
    check_range("ilabel", label[by_label], INT32_MAX + 1)
    labels = label[by_label].astype(np.int32)
    return Arcs(
        num_states=dfa.num_states - 1,
        start=dfa.start - 1,
        final_states=np.flatnonzero(dfa.accepting) - 1,
        source=(source[by_label] - 1).astype(np.int32),
        ilabel=labels,
        olabel=labels,
        nextstate=(dfa.table[state, group][arc][by_label].astype(np.int64) - 1).astype(np.int32),
    )


def arcs_to_dfa(arcs: Arcs, deadline: Deadline) -> Dfa:
    """The ``Dfa`` of an acceptor over bytes (convention 2), by ``rmepsilon`` and ``determinize``.

    Exponential in the number of states in the worst case. OpenFst does not check a clock, so it is run with increasing
    state limits. Raises ``BudgetExceeded("states" or "seconds")``.
    """
    openfst = require_pynini()
    columns = arcs.source, arcs.ilabel, arcs.olabel, arcs.nextstate
    made = from_arcs(arcs.num_states, arcs.start, arcs.final_states, *columns, sorted_by_source=True)
    made.project(
        "input"
    ).connect().rmepsilon()  # known to be an acceptor, so that no more states are made than needed
    limit, most = deadline.budget.states, 0
    while most < limit:
        deadline.check()
        most = min(limit, 4 * most + _FIRST_STATES)
        found = openfst.determinize(made, nstate=most + 1)
        if found.num_states() <= most:
            return _tables(to_arcs(found.connect()))
    raise BudgetExceeded("states", limit, deadline.where)


def native_arcs_to_dfa(arcs: Arcs, deadline: Deadline) -> Dfa:
    """``arcs_to_dfa`` by the native core, without pynini; the order of states may differ.

    Raises ``BudgetExceeded("states", "bytes" or "seconds")``.
    """
    finals = np.zeros(arcs.num_states, np.uint8)
    finals[arcs.final_states] = 1
    counts = np.bincount(arcs.source, minlength=arcs.num_states).astype(np.int64)
    labels, ones = np.ascontiguousarray(arcs.ilabel, np.int32), np.ones(len(arcs.ilabel), np.uint8)
    given = (finals, counts, labels, labels, ones, np.ascontiguousarray(arcs.nextstate, np.int32))
    whole = (INT32_MAX, 1 << 62, deadline.budget.seconds)  # the machine is there, only the result is bounded
    try:
        with deadline.part() as budget:
            machine = _native.Fst_boolean.from_arrays(arcs.start, *given, whole)
            plain = machine.rmepsilon(True, 0.0, -1, _DELTA, (INT32_MAX, budget.bytes, budget.seconds))
            found = plain.determinize(
                0, 0, False, 0.0, -1, _DELTA, (budget.states, budget.bytes, budget.seconds)
            )
    except BudgetExceeded as error:
        raise BudgetExceeded(error.resource, error.limit, deadline.where) from None
    accepting, counts, labels, _, _, targets = found.arrays()
    source = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    made = (np.flatnonzero(accepting), source, labels, labels, targets)
    return _tables(Arcs(found.num_states(), found.start(), *made))


def minimize_dfa(dfa: Dfa, deadline: Deadline | None = None) -> Dfa:
    """The minimal deterministic automaton of the same language, by the native core. O(arcs · log states).

    The letters are the classes of bytes: one arc stands for all bytes of a class. Raises
    ``BudgetExceeded("seconds" or "bytes")``.
    """
    deadline = deadline or Deadline(Budget(), "the minimization of an automaton")
    if dfa.start == 0:
        return EMPTY_DFA
    state, group = np.nonzero(dfa.table[1:])  # in the order of states, then of classes
    labels = (group + 1).astype(np.int32)
    targets = dfa.table[1:][state, group].astype(np.int32) - 1
    counts = np.bincount(state, minlength=dfa.num_states - 1).astype(np.int64)
    given = (
        dfa.accepting[1:].astype(np.uint8),
        counts,
        labels,
        labels,
        np.ones(len(labels), np.uint8),
        targets,
    )
    try:
        with deadline.part() as budget:
            limits = (INT32_MAX, budget.bytes, budget.seconds)
            machine = _native.Fst_boolean.from_arrays(dfa.start - 1, *given, limits)
            found = machine.minimize(_DELTA, False, limits)
    except BudgetExceeded as error:
        raise BudgetExceeded(error.resource, error.limit, deadline.where) from None
    accepting, counts, labels, _, _, targets = found.arrays()
    table = np.zeros((len(counts) + 1, dfa.table.shape[1]), np.uint32)
    table[np.repeat(np.arange(1, len(counts) + 1), counts), labels - 1] = targets + 1
    # Classes whose columns are equal now are one class: the first of them in the order of bytes.
    numbers: dict[bytes, int] = {}
    merged = [numbers.setdefault(table[:, column].tobytes(), column) for column in range(table.shape[1])]
    kept = list(dict.fromkeys(merged[column] for column in dfa.classes))
    new = np.array([kept.index(column) if column in kept else 0 for column in merged], np.uint8)
    final = np.concatenate(([False], accepting.astype(np.bool_)))
    return frozen_dfa(new[dfa.classes], np.ascontiguousarray(table[:, kept]), final, found.start() + 1)


def reverse_dfa(dfa: Dfa, budget: Budget | None = None) -> Dfa:
    """The automaton of the reversed words. Exponential in the worst case: "the k-th byte from the end" has 2^k
    states.
    """
    deadline = Deadline(budget or Budget(), "the reversal of an automaton")
    return arcs_to_dfa(to_arcs(require_pynini().reverse(dfa_to_fst(dfa))), deadline)


def map_dfa(dfa: Dfa, table: bytes, budget: Budget | None = None) -> Dfa:
    """The automaton of the words with each byte b replaced by ``table[b]``. Exponential in the worst case, if bytes are
    merged.
    """
    deadline = Deadline(budget or Budget(), "the replacement of bytes in an automaton")
    arcs = to_arcs(dfa_to_fst(dfa))
    labels = np.concatenate(([0], np.frombuffer(table, np.uint8).astype(np.int32) + BYTE_ZERO_LABEL))
    mapped = labels[arcs.ilabel].astype(np.int32)
    return arcs_to_dfa(replace(arcs, ilabel=mapped, olabel=mapped), deadline)


def _tables(arcs: Arcs) -> Dfa:
    """A trim deterministic acceptor over bytes (convention 2) as tables; two bytes share a class if their arcs
    are the same.
    """
    if arcs.num_states == 0:
        return EMPTY_DFA
    order = np.lexsort((arcs.source, arcs.ilabel))
    source, target = arcs.source[order], arcs.nextstate[order].astype(np.uint32)
    bounds = np.searchsorted(arcs.ilabel[order], np.arange(257) + BYTE_ZERO_LABEL)
    classes = np.zeros(256, np.uint8)
    columns: dict[tuple[bytes, bytes], tuple[int, int]] = {}
    for byte in range(256):
        part = slice(bounds[byte], bounds[byte + 1])
        key = (source[part].tobytes(), target[part].tobytes())
        classes[byte] = columns.setdefault(key, (len(columns), byte))[0]
    table = np.zeros((arcs.num_states + 1, len(columns)), np.uint32)
    for number, byte in columns.values():
        part = slice(bounds[byte], bounds[byte + 1])
        table[source[part] + 1, number] = target[part] + 1
    accepting = np.zeros(arcs.num_states + 1, np.bool_)
    accepting[arcs.final_states + 1] = True
    return frozen_dfa(classes, table, accepting, arcs.start + 1)
