r"""Codes: how characters are spelled in bytes, and the deterministic automata of sets of spellings.

The idea: UTF-8, ``\uXXXX`` and ``\n`` are all of one kind. A *form* writes a code point, less a base, as digits of
mixed radix, one byte (or one of several bytes) for a digit. A code is a set of forms; all their spellings together must
be a prefix code. An automaton that steps by characters becomes one that steps by bytes: a state between two bytes is
what each form can still write, cut into one part for each next digit. Equal parts are one state, and states are made
bottom up, so what lies between two character states is minimal and acyclic by construction.

Cost: linear in the number of blocks that a range cuts, plus one table of (states, 256).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tokenfst._native import Speller
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.tables import frozen_dfa
from tokenfst.errors import BudgetExceeded

_UNBOUNDED = (1 << 64) - 1

Steps = tuple[tuple[int, int, int], ...]
"""The transitions of a state: disjoint, ascending ranges of code points, both ends included, each with the next state.
"""


@dataclass(frozen=True, eq=False)
class Form:
    """One way to spell the code points from ``least`` to ``greatest``.

    ``digits[k][d]`` are the bytes any of which may stand for the digit d at place k of the number ``code - base``; it
    is empty if that digit is not written in this way.
    """

    least: int
    greatest: int
    base: int
    digits: tuple[tuple[bytes, ...], ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """For each place k: the number of code points that have the same digits up to place k."""
        sizes = [1]
        for digits in reversed(self.digits[1:]):
            sizes.append(sizes[-1] * len(digits))
        return tuple(reversed(sizes))


def spell(
    steps: Sequence[Steps],
    accepting: Sequence[bool],
    forms: Sequence[Form],
    limit: int | None = None,
    seconds: float = math.inf,
) -> Dfa:
    """The byte automaton of an automaton over characters, with every spelling of each character.

    State k >= 1 has the transitions ``steps[k - 1]``; 1 is the start and 0 is DEAD. These states keep their numbers,
    and the states between two bytes follow. Raises ``BudgetExceeded`` for more than ``limit`` states or ``seconds``.
    The result is trim if the given automaton is trim and each of its characters has a spelling.
    """
    made = _speller(tuple(forms)).spell(steps, _UNBOUNDED if limit is None else limit, seconds)
    if made is None:
        assert limit is not None
        raise BudgetExceeded("states", limit, "the spellings of characters")
    classes, table = made
    accepted = np.zeros(len(table), np.bool_)
    accepted[1 : len(steps) + 1] = accepting
    return frozen_dfa(classes, table, accepted, 1)


@lru_cache(maxsize=64)
def _speller(forms: tuple[Form, ...]) -> Speller:
    """The forms as the native core holds them."""
    return Speller([(form.least, form.greatest, form.base, form.digits, form.sizes) for form in forms])
