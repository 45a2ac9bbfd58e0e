"""The rules of a weighted grammar as automata, whose arcs read a byte or call a rule.

An alternative is a template, fixed text with holes that name rules: ``"{sum}+{sum}"``; a rule may also be a weighted
language. Each becomes an automaton without epsilon arcs; weights are logarithms. Cost: a state for each byte and call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.grammars.templates import hole_constraint, pieces_in
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.automata.weights.machine import Floats, Ints
from tokenfst.common.arguments import refuse
from tokenfst.errors import ArgumentValueError, BudgetExceeded, ConstraintError, TemplateError

Rule = Mapping[str, float] | str | Constraint | WeightedLanguage
"""A mapping from templates to weights; a regular expression or another constraint (each text has weight 1); or a
weighted language.
"""
Arcs = tuple[Ints, Ints, Floats, Ints]
"""Source, byte or rule number, weight, target."""


@dataclass(frozen=True, slots=True)
class Net:
    """The automaton of a rule: states from 0; arcs with bytes, and arcs with calls."""

    name: str
    start: int
    finals: Floats
    bytes: Arcs
    calls: Arcs


def read_rules(rules: Mapping[str, Rule], start: str, deadline: Deadline) -> list[Net]:
    """The nets of the rules that the start reaches, the start's first."""
    if start not in rules:
        raise ConstraintError(
            f"the weighted grammar has no rule {start!r}; its rules: {', '.join(rules) or 'none'}"
        )
    numbers = {start: 0}
    nets: list[Net] = []
    left = deadline.budget.states
    while len(nets) < len(numbers):
        name = list(numbers)[len(nets)]
        rule = rules[name]
        net = _alternatives(name, rule, rules, numbers) if isinstance(rule, Mapping) else _leaf(name, rule)
        nets.append(net)
        deadline.tick(len(net.finals))
        left -= len(net.finals)
        if left < 0:
            raise BudgetExceeded("states", deadline.budget.states, f"the rule {name!r} of a weighted grammar")
    return nets


def columns(arcs: list[tuple[int, int, float, int]]) -> Arcs:
    """Arcs as arrays."""
    source, label, weight, target = zip(*arcs, strict=True) if arcs else ((), (), (), ())
    whole = np.int64
    return (
        np.array(source, whole),
        np.array(label, whole),
        np.array(weight, np.float64),
        np.array(target, whole),
    )


def _alternatives(
    name: str, rule: Mapping[str, float], rules: Mapping[str, Rule], numbers: dict[str, int]
) -> Net:
    """State 0 is the start, state 1 the end."""
    finals = [-np.inf, 0.0]
    arcs: dict[bool, list[tuple[int, int, float, int]]] = {False: [], True: []}
    stands = dict.fromkeys(rules, Language.literal(""))
    for text, weight in rule.items():
        log_weight = _log(name, text, weight)
        if log_weight == -np.inf:
            continue
        try:
            pieces = list(pieces_in(text, stands, again=True))
        except TemplateError as error:
            error.add_note(f"in an alternative of the rule {name!r} of a weighted grammar")
            raise
        steps = [
            (piece.constraint is not None, label)
            for piece in pieces
            for label in (
                piece.text if piece.constraint is None else [numbers.setdefault(piece.name, len(numbers))]
            )
        ]
        if not steps:
            finals[0] = float(np.logaddexp(finals[0], log_weight))
        at = 0
        for place, (calls, label) in enumerate(steps, 1):
            target = 1 if place == len(steps) else len(finals)
            if target != 1:
                finals.append(-np.inf)
            arcs[calls].append((at, label, log_weight if place == 1 else 0.0, target))
            at = target
    return Net(name, 0, np.array(finals), columns(arcs[False]), columns(arcs[True]))


def _log(name: str, text: object, weight: object) -> float:
    if not isinstance(text, str):
        refuse("WeightedGrammar", f"an alternative of rules[{name!r}]", text, "a str")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < np.inf:
        refuse(
            "WeightedGrammar", f"the weight of {text!r:.80} in rules[{name!r}]", weight,
            "a number that is not negative and finite", ArgumentValueError,
        )  # fmt: skip
    return math.log(weight) if weight else -np.inf


def _leaf(name: str, rule: str | Constraint | WeightedLanguage) -> Net:
    if not isinstance(rule, str | Constraint | WeightedLanguage):
        refuse(
            "WeightedGrammar", f"rules[{name!r}]", rule,
            "a mapping from templates to weights, a pattern, a Constraint or a WeightedLanguage",
        )  # fmt: skip
    if not isinstance(rule, WeightedLanguage):
        rule = WeightedLanguage.of(hole_constraint(name, rule))
    if rule.is_empty():
        return Net(name, 0, np.array([-np.inf]), columns([]), columns([]))
    machine = rule.plain
    arcs = (
        machine.sources(),
        machine.labels.astype(np.int64),
        machine.weights,
        machine.targets.astype(np.int64),
    )
    return Net(name, machine.start, machine.finals + machine.initial, arcs, columns([]))
