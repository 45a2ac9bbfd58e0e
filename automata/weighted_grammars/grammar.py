"""``WeightedGrammar``: a weighted context-free grammar, with weights on the alternatives of rules.

The weight of a text is the sum, over its derivations, of the product of their weights. The weight of a prefix x is the
total weight of all texts that start with x (Jelinek and Lafferty, "Computation of the probability of initial substring
generation by stochastic context-free grammars", 1991). Both are computed exactly by an Earley-style chart, built byte
by byte by the core (native/scores/weighted_rules); rules may be left-recursive, ambiguous, empty, and cyclic.

Scores are those of the distribution in proportion to the weights, so a grammar whose total weight is infinite is
rejected. Rejected alternative: prefix weights that count only the derivations so far, as ``WeightedLanguage`` has them;
with left-recursive rules there can be infinitely many.

Cost of a byte: the chart items of its position, and the items that wait for the rules that are complete there. A few
items if the next byte decides; in the worst case, for ambiguous grammars, (length of the text) x (states).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np

import tokenfst._native as _native
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.languages.operands import encode
from tokenfst.automata.weighted_grammars.closures import make_core
from tokenfst.automata.weighted_grammars.expectations import Expectations
from tokenfst.automata.weighted_grammars.nets import Net, Rule, read_rules
from tokenfst.automata.weighted_grammars.one_way import check_one_way
from tokenfst.automata.weighted_grammars.totals import WHERE, divided, totals, without_bytes
from tokenfst.automata.weights.machine import Floats
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, refuse, whole
from tokenfst.common.plurals import counted
from tokenfst.errors import BudgetExceeded, EmptyLanguageError


class WeightedGrammar:
    """Weighted texts, defined by rules that may be recursive.

    ``rules``: for each name, either a mapping from templates to weights (not logarithms), in which ``{name}`` is a word
    of that rule and ``{{`` is a brace; or the rule's words: a ``WeightedLanguage``, a pattern (str) or another regular
    constraint, whose texts have weight 1. Rules that ``start`` does not reach are ignored.

    Raises ``ConstraintError`` for an undefined ``start`` and constraints that are not regular, ``TemplateError`` for
    invalid templates and undefined names in them, ``ArgumentValueError`` for weights that are negative or not finite,
    ``DivergingGrammarError`` or ``DivergingSumError`` if the total weight is infinite, ``BudgetExceeded``.
    """

    __slots__ = ("_core", "_nets", "_total", "budget", "source")

    @checked
    def __init__(self, rules: Mapping[str, Rule], start: str = "start", budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        deadline = Deadline(self.budget, WHERE)
        nets = read_rules(rules, start, deadline)
        logs, onward = totals(nets, deadline)
        self._total = float(logs[0])
        self._nets: list[Net] = divided(nets, logs, onward)
        self._core: _native.WeightedRules | None = None
        if not self.is_empty():
            self._core = make_core(self._nets, totals(without_bytes(self._nets), deadline)[0], deadline)
        self.source = f"WeightedGrammar of {start!r}"

    def __repr__(self) -> str:
        states = sum(len(net.finals) for net in self._nets)
        return f"<{self.source}: {counted(len(self._nets), 'rule')}, {counted(states, 'state')}>"

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        return None, {name: getattr(self, name) for name in ("budget", "source", "_nets", "_total")} | {
            "_core": None
        }

    def is_empty(self) -> bool:
        """Whether no text has a positive weight."""
        return self._total == -np.inf

    @property
    def core(self) -> _native.WeightedRules:
        """The grammar object of the native core. Raises ``EmptyLanguageError`` if there is no text."""
        if self._core is None:
            self._check_some()
            deadline = Deadline(self.budget, WHERE)
            self._core = make_core(self._nets, totals(without_bytes(self._nets), deadline)[0], deadline)
        return self._core

    @checked
    def log_mass(self) -> float:
        """The log of the total weight of all texts. The cost is that of Newton steps: cubic in the states of rules that
        call each other.
        """
        return self._total

    @checked
    def mass(self) -> float:
        """The total weight of all texts. The cost is that of ``log_mass``.

        Infinite if it exceeds the largest float: ``log_mass`` is finite then.
        """
        with np.errstate(over="ignore"):
            return float(np.exp(self._total))

    @checked
    def log_weight(self, text: str | bytes) -> float:
        """The log of a text's weight, summed over its derivations; -inf for a text outside the language.

        At worst cubic in the length.
        """
        found = self._read(text)
        return -np.inf if found is None else self._total + found[1] + found[0].end

    @checked
    def log_prefix_weight(self, prefix: str | bytes) -> float:
        """The log of the total weight of all texts that start with ``prefix``; -inf if there are none.

        The cost is that of ``log_weight``.
        """
        found = self._read(prefix)
        return -np.inf if found is None else self._total + found[1]

    @checked
    def expected_length(self) -> float:
        """The mean number of bytes of a text under the distribution in proportion to the weights.

        Raises ``DivergingGrammarError`` if it is infinite, because texts are as likely to grow as to end, and
        ``EmptyLanguageError``.

        The cost is that of ``log_mass``.
        """
        return self._expectations().length

    @checked
    def expected_calls(self) -> dict[str, float]:
        """The mean number of calls of each rule in a derivation, including the first call of the start. Errors as
        for ``expected_length``.
        """
        found = self._expectations().calls.tolist()
        return dict(zip((net.name for net in self._nets), found, strict=True))

    @checked
    def entropy(self, *, derivations: bool = False) -> float:
        """The entropy of the distribution in proportion to the weights, in nats; with ``derivations``, that of
        derivations, which is larger where a text has several.

        ``ConstraintError`` unless the next byte always decides how the grammar continues, or ``derivations`` is set;
        other errors as for ``expected_length``.
        """
        found = self._expectations()
        if not derivations:
            deadline = Deadline(self.budget, WHERE)
            check_one_way(self._nets, totals(without_bytes(self._nets), deadline)[0], deadline)
        return found.entropy

    @checked
    def sample(self, count: int = 1, *, generator: np.random.Generator | None = None) -> list[bytes]:
        """Independent samples, with probability in proportion to their weight.

        ``generator``: a numpy ``Generator``; by default a new one. Raises ``EmptyLanguageError``, and
        ``BudgetExceeded("bytes")`` for texts that exceed the budget. The cost is the bytes of the texts.
        """
        whole("WeightedGrammar.sample", "count", count, 0)
        if generator is None:
            generator = np.random.default_rng()
        if not isinstance(generator, np.random.Generator):
            refuse("WeightedGrammar.sample", "generator", generator, "a numpy Generator")
        self._check_some()
        deadline = Deadline(self.budget, "a text of a weighted grammar")
        ways = [_ways(net) for net in self._nets]
        texts: list[bytes] = []
        held = count * sys.getsizeof(b"")
        while len(texts) < count:
            if held > self.budget.bytes:
                raise BudgetExceeded(
                    "bytes", self.budget.bytes, f"{counted(count, 'text')} of a weighted grammar"
                )
            texts.append(self._drawn(ways, generator, deadline))
            held += len(texts[-1])
        return texts

    def _check_some(self) -> None:
        if self.is_empty():
            raise EmptyLanguageError(f"{self!r} has no text with a weight")

    def _expectations(self) -> Expectations:
        self._check_some()
        return Expectations(self._nets, Deadline(self.budget, WHERE))

    def _drawn(self, ways: list[list[_Way]], generator: np.random.Generator, deadline: Deadline) -> bytes:
        text, stack = bytearray(), [(0, self._nets[0].start)]
        while stack:
            rule, state = stack.pop()
            shares, steps = ways[rule][state]
            deadline.tick(5)
            step = steps[
                min(int(np.searchsorted(shares, generator.random() * shares[-1], "right")), len(steps) - 1)
            ]
            if step is None:
                continue
            calls, label, target = step
            stack.append((rule, target))
            if calls:
                stack.append((label, self._nets[label].start))
            else:
                text.append(label)
            if 16 * len(stack) + len(text) > self.budget.bytes:
                raise BudgetExceeded("bytes", self.budget.bytes, "a text of a weighted grammar")
        return bytes(text)

    def _read(self, text: str | bytes) -> tuple[_native.RuleChart, float] | None:
        data = encode(text)
        if data is None or self.is_empty():
            return None
        limit = self.budget.states
        chart, score = self.core.advance(self.core.start(limit), data, limit, self.budget.seconds)
        return None if score == -np.inf else (chart, score)


_Way = tuple[Floats, list[tuple[bool, int, int] | None]]
"""For a state: the cumulative probabilities of its steps, and the steps.

A step is a triple: whether it is a call, the byte or the called rule, and the target. None stands for the end.
"""


def _ways(net: Net) -> list[_Way]:
    shares: list[list[float]] = [[float(np.exp(final))] for final in net.finals]
    steps: list[list[tuple[bool, int, int] | None]] = [[None] for _ in net.finals]
    for calls, arcs in ((False, net.bytes), (True, net.calls)):
        for source, label, weight, target in zip(*(each.tolist() for each in arcs), strict=True):
            shares[source].append(float(np.exp(weight)))
            steps[source].append((calls, label, target))
    return [(np.cumsum(each), own) for each, own in zip(shares, steps, strict=True)]
