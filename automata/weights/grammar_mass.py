"""The mass of a grammar that needs a stack: the total weight of its texts under a weighted automaton.

For a rule A and states p, q of the automaton let X_A[p, q] be the total weight of the words of A that lead from p to q.
The rules give equations between these matrices: a part without calls is a constant matrix (sums over the product of two
automata), a network of parts and calls a geometric series over its states. This is a system of polynomial equations,
whose least solution is the mass (Etessami and Yannakakis, "Recursive Markov chains", JACM 2009). Strongly connected
rules are solved together, callees first, by Newton's method from zero, which increases monotonically to the least
solution (Esparza, Kiefer and Luttenberger, "Computing the least fixed point of positive polynomial systems", SIAM J.
Comput. 2010). Below the least solution the derivative's spectral radius is below one; where it is not, the sum
diverges.

Exact for each derivation; a text with two derivations would count twice. So the grammar must be *one-way*: at each
position the next byte decides how to continue (LL(1) over bytes). Others are rejected, unless all derivations are
requested.

Cost: n states of the automaton, K of a network, L of a part, R mutually recursive rules: (Ln)³, (Kn)³ and (Rn²)³
operations, and memory in the squares, which the budget bounds. At the edge of divergence eight digits are correct.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tokenfst.automata.expressions.expression import Dfa, Expr, Op, below
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.grammars.network import Network, network
from tokenfst.automata.languages.language import Language
from tokenfst.automata.rules.graph import components
from tokenfst.automata.weights.machine import Floats, Machine
from tokenfst.automata.weights.sums import log_sum
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError, DivergingGrammarError, DrawingError

_NETWORK_STATES = 5_000
_LARGEST = 1e13
_STEPS = 200
_WHERE = "the mass of a grammar"


def grammar_mass(grammar: Grammar, machine: Machine, budget: Budget, *, derivations: bool = False) -> float:
    """The log of the total weight of the grammar's texts in a machine without failures; with ``derivations``, of all
    its derivations. -inf also if the weights are too small for a float64.

    Raises ``ConstraintError`` for a grammar that is not one-way (unless ``derivations``), or that constrains tokens or
    strings that must differ; ``DivergingGrammarError``; ``BudgetExceeded``.
    """
    if grammar.is_empty() or machine.num_states == 0:
        return -np.inf
    deadline = Deadline(budget, _WHERE)
    rules = _read(grammar, deadline)
    if not derivations:
        _OneWay(rules, grammar.start).check()
    sums = _Sums(rules, machine, deadline).solved(grammar.start)
    with np.errstate(divide="ignore"):
        return machine.initial + log_sum(np.log(sums[machine.start]) + machine.finals)


@dataclass(slots=True)
class _Rule:
    """A network; the parts of its arcs by the place of the arc, None for calls, and what the arcs call."""

    network: Network
    parts: list[Dfa | None] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)


def _read(grammar: Grammar, deadline: Deadline) -> dict[str, _Rule]:
    found: dict[str, _Rule] = {}
    known: dict[int, Dfa] = {}
    pending = [grammar.start]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        try:
            rule = found[name] = _Rule(network(name, grammar.rules[name], _NETWORK_STATES))
        except DrawingError:
            raise BudgetExceeded("states", 10 * _NETWORK_STATES, f"{_WHERE}: the rule {name!r}") from None
        for arc in rule.network.arcs:
            called = arc.label.op is Op.CALL
            rule.calls.append(str(arc.label.value) if called else "")
            if called:
                rule.parts.append(None)
                pending.append(rule.calls[-1])
                continue
            if id(arc.label) not in known:
                known[id(arc.label)] = _dfa(arc.label, deadline)
            rule.parts.append(known[id(arc.label)])
    return found


def _dfa(label: Expr, deadline: Deadline) -> Dfa:
    if any(node.op in (Op.OPENED, Op.FRESH) for node in below(label)):
        raise ConstraintError(f"{_WHERE}: strings that must differ have no finite automaton")
    language = Language(label, label.source or "a part of a grammar")
    language.program().refuse_tokens()
    with deadline.part() as budget:
        return language.with_budget(budget).determinize()


# --- one way -------------------------------------------------------------------------------------------


class _OneWay:
    """Which bytes words of each rule begin with, which may follow them, and whether the next byte always decides. Sets
    of bytes are the bits of an int.
    """

    def __init__(self, rules: Mapping[str, _Rule], start: str) -> None:
        self._rules = rules
        self._empty: set[str] = set()
        self._first: dict[str, int] = dict.fromkeys(rules, 0)
        self._follow: dict[str, int] = dict.fromkeys(rules, 0)
        self._next: dict[tuple[str, int], tuple[int, bool]] = {}
        changed = True
        while changed:
            before = (len(self._empty), dict(self._first))
            self._next = {}
            for name in rules:
                first, empty = self._at(name, 0)
                self._first[name] |= first
                if empty:
                    self._empty.add(name)
            changed = before != (len(self._empty), self._first)
        changed = True
        while changed:
            old = dict(self._follow)
            for name, rule in rules.items():
                for arc, called in zip(rule.network.arcs, rule.calls, strict=True):
                    if called:
                        self._follow[called] |= self._after(name, arc.target)
            changed = old != self._follow

    def check(self) -> None:
        """Raise ``ConstraintError`` at the first place at which the next byte does not decide."""
        for name, rule in self._rules.items():
            for state in range(rule.network.num_states):
                ways = [
                    self._choice(name, arc.target, called, part)
                    for arc, called, part in zip(rule.network.arcs, rule.calls, rule.parts, strict=True)
                    if arc.source == state
                ]
                # The end of the text is a separate byte.
                ways += [self._follow[name] | 1 << 256] if state in rule.network.accepting else []
                seen = 0
                for way in ways:
                    if seen & way:
                        self._refuse(name, seen & way)
                    seen |= way
            for arc, part in zip(rule.network.arcs, rule.parts, strict=True):
                if part is None:
                    continue
                after = self._after(name, arc.target)
                for inner in np.flatnonzero(part.accepting).tolist():
                    if _bytes_from(part, inner) & after:
                        self._refuse(name, _bytes_from(part, inner) & after)

    def _refuse(self, name: str, both: int) -> None:
        byte = (both & -both).bit_length() - 1
        shown = "the end" if byte == 256 else f"the byte {bytes([byte])!r}"
        raise ConstraintError(
            f"the mass of the texts of a grammar needs one that goes one way: in the rule {name!r}, {shown} can come "
            "in two ways, so a text may have two derivations. Write it so that the next byte decides, truncate(depth) "
            "it, or sum over derivations"
        )

    def _choice(self, name: str, target: int, called: str, part: Dfa | None) -> int:
        """The first parts on a path through an arc; after a part that may be empty, also the next ones."""
        if part is None:
            first, empty = self._first[called], called in self._empty
        else:
            first, empty = _bytes_from(part, part.start), bool(part.accepting[part.start])
        return first | (self._after(name, target) | 1 << 256 if empty else 0)

    def _after(self, name: str, state: int) -> int:
        first, empty = self._at(name, state)
        return first | (self._follow[name] if empty else 0)

    def _at(self, name: str, state: int) -> tuple[int, bool]:
        """The bytes that may come next at a state of a network, and whether the rule may end without any."""
        if (name, state) in self._next:
            return self._next[name, state]
        rule, first, seen, pending = self._rules[name], 0, {state}, [state]
        while pending:
            at = pending.pop()
            for arc, called, part in zip(rule.network.arcs, rule.calls, rule.parts, strict=True):
                if arc.source != at:
                    continue
                if part is None:
                    first, empty = first | self._first[called], called in self._empty
                else:
                    first, empty = first | _bytes_from(part, part.start), bool(part.accepting[part.start])
                if empty and arc.target not in seen:
                    seen.add(arc.target)
                    pending.append(arc.target)
        found = self._next[name, state] = first, not seen.isdisjoint(rule.network.accepting)
        return found


def _bytes_from(dfa: Dfa, state: int) -> int:
    """The bytes that lead on from a state."""
    found = 0
    for byte in np.flatnonzero(dfa.table[state][dfa.classes]).tolist():
        found |= 1 << byte
    return found


# --- sums ----------------------------------------------------------------------------------------------


class _Sums:
    def __init__(self, rules: Mapping[str, _Rule], machine: Machine, deadline: Deadline) -> None:
        self._rules, self._deadline = rules, deadline
        self._size = machine.num_states
        self._byte = np.zeros((256, self._size, self._size))
        self._room(256 * self._size**2)
        at = (machine.labels, machine.sources(), machine.targets.astype(np.int64))
        np.add.at(self._byte, at, np.exp(machine.weights))
        self._parts: dict[int, Floats] = {}
        self._sums: dict[str, Floats] = {}

    def solved(self, start: str) -> Floats:
        """The weights of the start's words between states."""
        graph = {name: [each for each in rule.calls if each] for name, rule in self._rules.items()}
        for part in components(graph):
            self._solve(part, any(name in graph[name] for name in part) or len(part) > 1)
        return self._sums[start]

    def _solve(self, names: list[str], recursive: bool) -> None:
        size = self._size**2
        for name in names:
            self._sums[name] = np.zeros((self._size, self._size))
        if not recursive:
            self._sums[names[0]] = self._value(names[0], {})[0]
            return
        self._room(2 * (len(names) * size) ** 2)
        place = {name: number * size for number, name in enumerate(names)}
        for _ in range(_STEPS):
            self._deadline.check()
            jacobian, change = np.zeros((len(names) * size,) * 2), np.zeros(len(names) * size)
            for name in names:
                value, slopes = self._value(name, place)
                rows = slice(place[name], place[name] + size)
                change[rows] = (value - self._sums[name]).ravel()
                for called, slope in slopes:
                    jacobian[rows, place[called] : place[called] + size] += slope
            most = max(float(self._sums[name].max(initial=0)) for name in names)
            if float(change.max(initial=0)) <= 1e-15 * max(most, 1e-300):
                return
            step = _inverse_of_rest(jacobian, names) @ np.maximum(change, 0)
            for name in names:
                grown = self._sums[name] + step[place[name] : place[name] + size].reshape(self._size, -1)
                if not grown.max(initial=0) < _LARGEST:
                    raise DivergingGrammarError(names)
                self._sums[name] = grown
        raise DivergingGrammarError(names)

    def _value(self, name: str, place: Mapping[str, int]) -> tuple[Floats, list[tuple[str, Floats]]]:
        """A rule's matrix, computed from those of the called rules, and its derivative by each call of a rule in
        ``place``.
        """
        rule, n = self._rules[name], self._size
        states = rule.network.num_states
        self._room((states * n) ** 2)
        whole = np.zeros((states * n, states * n))
        for arc, called, part in zip(rule.network.arcs, rule.calls, rule.parts, strict=True):
            block = self._sums[called] if part is None else self._part(part, name)
            rows, columns = _block(arc.source, n), _block(arc.target, n)
            whole[rows, columns] += block
        paths = _inverse_of_rest(whole, [name])
        ends = np.zeros((states * n, n))
        for state in rule.network.accepting:
            ends[_block(state, n)] += np.eye(n)
        inward = paths @ ends
        slopes: list[tuple[str, Floats]] = [
            (
                called,
                np.kron(paths[:n, _block(arc.source, n)], inward[_block(arc.target, n)].T).astype(np.float64),
            )
            for arc, called in zip(rule.network.arcs, rule.calls, strict=True)
            if called in place
        ]
        return inward[:n], slopes

    def _part(self, dfa: Dfa, name: str) -> Floats:
        """The weights of the words of a part without calls, between states of the machine."""
        if id(dfa) not in self._parts:
            n, states = self._size, dfa.num_states
            self._room((states * n) ** 2)
            whole = np.zeros((states * n, states * n))
            for state in range(1, states):
                row = dfa.table[state][dfa.classes]
                for target in np.unique(row[row > 0]).tolist():
                    whole[_block(state, n), _block(target, n)] = self._byte[row == target].sum(0)
                self._deadline.tick(20)
            paths = _inverse_of_rest(whole, [name])[_block(dfa.start, n)]
            total = np.zeros((n, n))
            for state in np.flatnonzero(dfa.accepting).tolist():
                total += paths[:, _block(state, n)]
            self._parts[id(dfa)] = total
        return self._parts[id(dfa)]

    def _room(self, numbers: int) -> None:
        """Memory for this number of values, some of them more than once."""
        self._deadline.check()
        if 4 * 8 * numbers > self._deadline.budget.bytes:
            raise BudgetExceeded("bytes", self._deadline.budget.bytes, _WHERE)


def _block(number: int, size: int) -> slice:
    return slice(number * size, (number + 1) * size)


def _inverse_of_rest(matrix: Floats, names: list[str]) -> Floats:
    """1 + M + M² + ...: the inverse of 1 - M, which is not negative where the series converges, and only there."""
    try:
        found = np.linalg.inv(np.eye(len(matrix)) - matrix)
    except np.linalg.LinAlgError:
        raise DivergingGrammarError(names) from None
    positive = found.min(initial=0) > -1e-9 * found.max(initial=1)
    if not (np.isfinite(found).all() and positive and found.max(initial=0) < _LARGEST):
        raise DivergingGrammarError(names)
    series: Floats = np.maximum(found, 0.0)
    return series
