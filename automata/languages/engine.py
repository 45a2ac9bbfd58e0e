"""Expressions in the native core: lazy automata, tables, and witnesses.

The budgets of queries about languages are used here.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

import tokenfst._native as _native
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, utf8_dfa
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    Dfa,
    Expr,
    byte_set,
    intersect,
    machine,
    repeat,
)
from tokenfst.automata.expressions.program import Program, linearize
from tokenfst.automata.expressions.tables import frozen_dfa
from tokenfst.budget import QUICK, Budget
from tokenfst.errors import BudgetExceeded

_READABLE_LENGTH = 1_000


def make_automaton(expr: Expr, budget: Budget) -> _native.ByteAutomaton:
    """The automaton of an expression; its states are computed on demand."""
    return run_program(linearize(expr), budget)


def run_program(program: Program, budget: Budget) -> _native.ByteAutomaton:
    """The automaton of a program; with rules, a push-down automaton."""
    return _native.ByteAutomaton(program.native(), budget.states, budget.bytes, budget.seconds)


def make_tables(automaton: _native.ByteAutomaton) -> Dfa:
    """All states of an automaton as tables, trim (convention 3)."""
    classes, table, accepting, start = automaton.determinize()
    return frozen_dfa(classes, table, accepting.astype(np.bool_), start)


def find_witness(expr: Expr, automaton: _native.ByteAutomaton) -> bytes | None:
    """A shortest word; a readable one if it can be found within ``QUICK``."""
    word = automaton.shortest()
    if not word or len(word) > _READABLE_LENGTH:
        return word
    for characters in _readable():
        text = intersect(repeat(characters), repeat(ANY_BYTE, len(word), len(word)))
        try:
            readable = make_automaton(intersect(expr, text), QUICK).shortest()
        except BudgetExceeded:
            return word
        if readable is not None:
            return readable
    return word


@lru_cache(maxsize=1)
def _readable() -> tuple[Expr, ...]:
    """Characters that a witness had better consist of, best first."""
    letters = sum(1 << byte for byte in range(128) if chr(byte).isalnum())
    printable = machine(utf8_dfa(((0x20, 0x7E), (0xA1, MAX_CODE_POINT))))
    return byte_set(letters), printable
