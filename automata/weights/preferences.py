"""Preferences: weights that favour languages and phrases without forbidding anything.

A weight that only a complete text or phrase earns is paid out in advance while it is being written, and taken back
where the text departs from it. So it guides every token. The amount paid so far is the *potential* of a state. The
weight of an arc is its earning plus the difference of the potentials, and the final weight pays back the rest. So the
weights of complete texts are exactly the specified ones, whatever the potentials are.

- ``prefer``: a text of the language has weight e^by, any other 1. The potential is ``by`` as long as the language can
  still be reached.
- ``boost``: a text has weight e^by for each occurrence of a phrase in it, including overlapping ones. States are the
  prefixes of phrases (Aho and Corasick 1975), potentials grow with the matched part of a phrase, and a failure arc
  takes them back.

Cost: the states of the language plus one; for phrases, a state and an arc for each byte, and 256 arcs at the root.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.operands import encode
from tokenfst.automata.weights.language import WeightedLanguage, as_language
from tokenfst.automata.weights.machine import make
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, refuse
from tokenfst.errors import ArgumentValueError, BudgetExceeded

_ARCS = 256 * 8
"""The memory, in bytes, of the targets of one state."""


@checked
def prefer(language: Constraint, by: float = 1.0, *, budget: Budget | None = None) -> WeightedLanguage:
    """A soft constraint: a text of ``language`` has the log weight ``by``, any other 0. Nothing is forbidden.

    A token that makes the language unreachable has the score -by, once; all others have 0. With a negative ``by`` the
    language is avoided. Computes all states of the language. Raises BudgetExceeded; ``budget``: by default that of the
    language.
    """
    _finite("prefer", "by", by)
    regular = as_language(language, "prefer")
    deadline = Deadline(budget or regular.budget, "prefer")
    with deadline.part() as rest:
        dfa = regular.with_budget(rest).determinize()
    states = dfa.num_states
    if _ARCS * states > deadline.budget.bytes:
        raise BudgetExceeded("bytes", deadline.budget.bytes, "prefer")
    table = dfa.table[:, dfa.classes].astype(np.int64)
    table[0] = 0
    alive = table > 0
    deadline.check()
    source, label = np.nonzero(alive)
    # State 0, DEAD, means that the language can no longer be reached: all bytes lead back to it.
    arcs = (
        np.concatenate([np.zeros(256, np.int64), source]),
        np.concatenate([np.arange(256), label]),
        np.zeros(256 + len(source)),
        np.concatenate([np.zeros(256, np.int64), table[alive]]),
    )
    deadline.check()
    finals = np.where(dfa.accepting, 0.0, -by)
    finals[0] = 0.0
    fails, costs = np.zeros(states, np.int64), np.full(states, -by)
    fails[0], costs[0] = -1, 0.0
    machine = make(dfa.start, by if dfa.start else 0.0, finals, arcs, (fails, costs))
    return WeightedLanguage(machine, f"prefer({regular.source}, by={by:g})", deadline.budget, 0.0)


@checked
def boost(
    phrases: Iterable[str | bytes] | Mapping[str, float], by: float = 1.0, *, budget: Budget | None = None
) -> WeightedLanguage:
    """Contextual biasing: each occurrence of a phrase adds ``by``, or its own number in a mapping, to a text's log
    weight.

    Nothing is forbidden. A phrase of n bytes earns ``by`` / n with each byte; if the text departs from it, the earnings
    are taken back. Raises BudgetExceeded. A state for each byte of a phrase.
    """
    _finite("boost", "by", by)
    if isinstance(phrases, str | bytes):
        refuse("boost", "phrases", phrases, "a list of phrases, or a mapping from phrases to boosts")
    given = dict(phrases) if isinstance(phrases, Mapping) else dict.fromkeys(phrases, by)
    limit = budget or Budget()
    deadline = Deadline(limit, "boost")
    children: list[dict[int, int]] = [{}]
    depth, earned, potential = [0], [0.0], [0.0]
    for phrase, worth in given.items():
        data = encode(phrase) if isinstance(phrase, str | bytes) else None
        if not data:
            refuse("boost", "a phrase", phrase, "a text that is not empty", ArgumentValueError)
        _finite("boost", f"the boost of {phrase!r:.60}", worth)
        deadline.tick(5 + len(data))
        at = 0
        for place, byte in enumerate(data, 1):
            if byte not in children[at]:
                children[at][byte] = len(children)
                children.append({})
                depth.append(place)
                earned.append(0.0)
                potential.append(0.0)
            at = children[at][byte]
            if place < len(data):
                paid = worth * place / len(data)
                potential[at] = max(potential[at], paid, key=abs)
        earned[at] += worth
        if len(children) > limit.states:
            raise BudgetExceeded("states", limit.states, "boost")
    fails = _failures(children, earned, deadline)
    arcs = [(0, byte, 0.0, 0) for byte in range(256) if byte not in children[0]]
    for state, onward in enumerate(children):
        deadline.tick(1 + len(onward))
        for byte, child in onward.items():
            arcs.append((state, byte, earned[child] + potential[child] - potential[state], child))
    source, label, weight, target = (np.array(each) for each in zip(*arcs, strict=True))
    deadline.check()
    own = np.array(potential)
    back = np.array(fails)
    costs = np.where(back >= 0, own[back] - own, 0.0)
    machine = make(0, 0.0, -own, (source, label, weight.astype(np.float64), target), (back, costs))
    return WeightedLanguage(machine, f"boost({len(given)} phrases)", limit, 0.0)


def _failures(children: list[dict[int, int]], earned: list[float], deadline: Deadline) -> list[int]:
    """For each state the longest proper suffix that is a state too; -1 for the root.

    A state earns what its suffixes earn.
    """
    fails = [-1] * len(children)
    queue = deque([0])
    while queue:
        state = queue.popleft()
        deadline.tick(1 + 2 * len(children[state]))
        for byte, child in children[state].items():
            back = fails[state]
            while back >= 0 and byte not in children[back]:
                back = fails[back]
            fails[child] = children[back][byte] if back >= 0 else 0
            earned[child] += earned[fails[child]]
            queue.append(child)
    return fails


def _finite(call: str, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        refuse(call, name, value, "a finite number", ArgumentValueError)
