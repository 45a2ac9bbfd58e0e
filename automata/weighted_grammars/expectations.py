"""Means over the texts of a weighted grammar: how often a rule is called, how long texts are, how uncertain they
are.

The idea: in nets whose weights add up to one, the sum of the paths from the start of a rule to one of its states is
the expected number of visits of this state in a word of the rule. So the calls of each rule in a word of each rule
are a matrix M, the calls in a whole derivation are the first row of 1 + M + M² + ..., and every mean is a sum over
the states of the rules (Grenander 1967 for the entropy). If texts are as likely to grow as to end, the sum diverges
although their weights add up to one: ``DivergingGrammarError``.

Cost: the arcs, and (number of rules)³ operations; the budget bounds the memory, (number of rules)² numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.weighted_grammars.nets import Net
from tokenfst.automata.weighted_grammars.totals import passed, series
from tokenfst.automata.weights.machine import Floats
from tokenfst.errors import DivergingGrammarError

_LARGEST = 1e7
"""The totals are exact to eight digits at the edge of divergence, so larger means cannot be distinguished from
infinite ones.
"""


class Expectations:
    """Means over the derivations of nets whose weights add up to one.

    ``calls``: float64 (rules,), the mean number of calls of each rule in a derivation, including the first call of the
    start.
    """

    def __init__(self, nets: Sequence[Net], deadline: Deadline) -> None:
        names = [net.name for net in nets]
        matrix = np.zeros((len(nets), len(nets)))
        lengths, choices = np.zeros(len(nets)), np.zeros(len(nets))
        for number, net in enumerate(nets):
            deadline.tick(len(net.finals) + len(net.bytes[0]) + len(net.calls[0]))
            passes = passed(net, deadline)
            reads, calls = (np.exp(passes[arcs[0]] + arcs[2]) for arcs in (net.bytes, net.calls))
            ends = np.exp(passes + net.finals)
            np.add.at(matrix[number], net.calls[1], calls)
            lengths[number] = reads.sum()
            choices[number] = -(
                _mean(reads, net.bytes[2]) + _mean(calls, net.calls[2]) + _mean(ends, net.finals)
            )
        try:
            self.calls: Floats = series(matrix, names, deadline)[0]
            if self.calls.max() > _LARGEST:
                raise DivergingGrammarError(names)
        except DivergingGrammarError as error:
            error.add_note("what has no finite mean here: how often each rule is called in a text")
            raise
        self._lengths, self._choices = lengths, choices

    @property
    def length(self) -> float:
        """The mean number of bytes."""
        return float(self.calls @ self._lengths)

    @property
    def entropy(self) -> float:
        """The entropy of derivations, in nats."""
        return max(float(self.calls @ self._choices), 0.0)


def _mean(shares: Floats, logs: Floats) -> float:
    """The sum of logarithms weighted by their shares; entries with the share 0 add nothing."""
    some = shares > 0
    return float((shares[some] * logs[some]).sum())
