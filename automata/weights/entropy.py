"""``maximum_entropy``: the distribution over a language's texts with maximum entropy for a given expected length.

The probability of a text of n bytes is proportional to z^n for one z (a Gibbs distribution), found by bisection: the
expected length grows with z, from that of the shortest texts to that of all, or without bound up to the z at which the
sum diverges. Cost: about 55 steps, each with two exact sums (``sums``).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, refuse
from tokenfst.errors import ArgumentValueError, DivergingSumError

_STEPS = 200
_FAR = 300.0
"""The largest |log z|; beyond it the expected length no longer changes."""


@checked
def maximum_entropy(
    language: Constraint, mean_length: float, *, budget: Budget | None = None
) -> WeightedLanguage:
    """The distribution of maximum entropy over the texts of ``language`` with an expected length of ``mean_length``
    bytes.

    Normalized. Raises ``ArgumentValueError`` if there is no such distribution: the mean must lie between the lengths of
    the shortest and the longest text. Raises ``BudgetExceeded``.
    """
    plain = WeightedLanguage.of(language, budget)
    deadline = Deadline(plain.budget, "maximum_entropy")
    if not 0 <= mean_length < math.inf:
        refuse("maximum_entropy", "mean_length", mean_length, "not negative and finite", ArgumentValueError)
    low, high = -_FAR, _FAR
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if high - low < 1e-13 * max(1.0, abs(middle)):
            break
        if _length(plain, middle, deadline) < mean_length:
            low = middle
        else:
            high = middle
    if abs(_length(plain, low, deadline) - mean_length) > 1e-6 * max(1.0, mean_length):
        refuse(
            "maximum_entropy", "mean_length", mean_length,
            "between the lengths of the language's shortest and longest text", ArgumentValueError,
        )  # fmt: skip
    with deadline.part() as rest:
        return _tilted(plain, low).normalized(rest)


def _length(language: WeightedLanguage, log_z: float, deadline: Deadline) -> float:
    """The expected length; infinite where the sum diverges."""
    try:
        with deadline.part() as rest:
            return _tilted(language, log_z).expected_length(rest)
    except DivergingSumError:
        return math.inf


def _tilted(language: WeightedLanguage, log_z: float) -> WeightedLanguage:
    """Each byte's weight multiplied by z."""
    machine = replace(language.machine, weights=np.asarray(language.machine.weights + log_z))
    return WeightedLanguage(machine, language.source, language.budget)
