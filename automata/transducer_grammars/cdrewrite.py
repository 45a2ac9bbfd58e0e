"""Context-dependent rewrite rules as transducers: ``tau / l __ r`` (Mohri and Sproat, "An efficient compiler for
weighted rewrite rules", 1996), as in pynini's ``cdrewrite``.

A rule is a cascade over the alphabet and three markers. ``>`` is inserted before each occurrence of the right context;
``<1`` or ``<2`` before each position from which the rule's input leads to a ``>``. Between ``<1`` and ``>`` the rule
rewrites, and markers inside are removed. Then ``<1`` must follow the left context and ``<2`` must not. For
left-to-right rules, the left context is matched in the output. Right-to-left is the mirror image. In simultaneous rules
(``sim``) both contexts are matched in the input.

The input is a word of ``sigma_star``; contexts are matched in strings over its labels. Each rewriting of a word is one
path for each path of ``tau``, so sums of weights are correct too. Cost: the deterministic automata of both contexts and
of the rule's input, and the composition of the five machines.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenfst.automata.openfst.labels import BYTE_ZERO_LABEL, byte_label
from tokenfst.automata.transducer_grammars.strings import BOS, EOS, bracketed
from tokenfst.automata.transducer_operations.building import chain, optimize
from tokenfst.automata.transducer_operations.operations import compose, is_acceptor, reverse, words_of
from tokenfst.automata.transducers.arcs import require_same
from tokenfst.automata.transducers.byte_labels import byte_table, common_tables, is_byte_table
from tokenfst.automata.transducers.checks import chosen
from tokenfst.automata.transducers.mapping import EncodeMapper
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import FstArgError, FstOpError

_UNWEIGHTED = 0x200000000
_FEW = 200
"""Machines up to this number of states are not optimized."""


@checked
def cdrewrite(
    tau: VectorFst, l: VectorFst | str | bytes, r: VectorFst | str | bytes, sigma_star: VectorFst,  # noqa: E741  # pynini's name
    direction: str = "ltr", mode: str = "obl", *, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """The transducer that rewrites by ``tau`` wherever it occurs after ``l`` and before ``r``.

    ``tau``: a transducer, possibly weighted; ``l``, ``r``: unweighted acceptors, or strings, in which ``[BOS]`` and
    ``[EOS]`` are the beginning and the end; ``sigma_star``: the input language, an unweighted acceptor. ``direction``:
    "ltr", "rtl" or "sim"; ``mode``: "obl" (obligatory) or "opt" (optional). Raises ``FstOpError`` if a context is a
    transducer or has weights.
    """
    chosen("cdrewrite: direction", direction, ("ltr", "rtl", "sim"))
    chosen("cdrewrite: mode", mode, ("obl", "opt"))
    kind = tau.arc_type()
    shift = is_byte_table(sigma_star.input_symbols())
    left, right = (_context(each, kind, shift) for each in (l, r))
    require_same("cdrewrite", tau, left, right, sigma_star)
    tables = common_tables("cdrewrite", sigma_star, tau, left, right)
    tau, left, right, sigma_star = (_bare(each) for each in (tau, left, right, sigma_star))
    for name, each in (("l", left), ("r", right), ("sigma_star", sigma_star)):
        if not is_acceptor(each) or not each.properties(_UNWEIGHTED):
            raise FstOpError(f"cdrewrite: {name} must be an unweighted acceptor")
    labels = _labels_in(sigma_star)
    bounds = {BOS, EOS} & (_labels_in(left) | _labels_in(right))
    if bounds & labels:
        raise FstOpError("cdrewrite: sigma_star has the labels of [BOS] or [EOS], which only contexts have")
    alphabet = sorted(labels | ({BOS, EOS} if bounds else set()))
    if direction == "rtl":
        mirrored, before, after = (_turned(each, budget) for each in (tau, right, left))
        rule = _turned(
            _Rule(mirrored, before, after, alphabet, False, mode == "opt", budget).machine(), budget
        )
    else:
        rule = _Rule(tau, left, right, alphabet, direction == "sim", mode == "opt", budget).machine()
    if bounds:
        wrap = _around(kind, sorted(labels))
        rule = compose(compose(wrap, rule, budget=budget), wrap.copy().invert(), budget=budget)
    return optimize(compose(sigma_star, rule, budget=budget), budget=budget).set_tables(tables)


class _Rule:
    """The rule from left to right, or at once, over the free words of an alphabet."""

    def __init__(
        self, tau: VectorFst, left: VectorFst, right: VectorFst, alphabet: list[int], at_once: bool, optional: bool,
        budget: Budget | None,
    ) -> None:  # fmt: skip
        self._tau, self._left, self._right, self._alphabet = tau, left, right, alphabet
        self._at_once, self._optional, self._budget = at_once, optional, budget
        self._kind = tau.arc_type()
        self._zero, self._one = float(tau.kind.core.zero()), float(tau.kind.core.one())
        top = max([0, *alphabet, *_labels_in(tau), *_labels_in(left), *_labels_in(right)])
        if top > 2**31 - 5:
            raise FstArgError("cdrewrite: labels are too large: three more are needed")
        self._close, self._open, self._not = top + 1, top + 2, top + 3  # >, <1, <2

    def machine(self) -> VectorFst:
        """The cascade."""
        by_mirror = self._mark_after(_turned(self._right, self._budget), self._alphabet, [self._close])
        parts = [_turned(by_mirror, self._budget)]
        marks_of_left: dict[int, int] = {self._open: self._open if self._at_once else 0}
        if self._optional and not self._at_once:
            parts += [self._replace({0: self._open}), self._check(marks_of_left, [], True)]
        else:
            parts.append(self._find())
            kept = [self._not, *([self._close] if self._at_once else [])]
            check = self._check(marks_of_left, kept, True)
            others = [self._open, self._close] if self._at_once else []
            deny = self._check({self._not: 0}, others, False)
            replace = self._replace({self._open: 0 if self._at_once else self._open})
            parts += [check, deny, replace] if self._at_once else [replace, check, deny]
        made = parts[0]
        for each in parts[1:]:
            made = compose(made, each, budget=self._budget)
        return self._merged(made)

    def _merged(self, machine: VectorFst) -> VectorFst:
        """States that have the same arcs into the same states made one: each place where the rule may begin has brought
        a copy of all that the rule does. Small machines are left as they are.
        """
        if machine.num_states() < _FEW:
            return machine
        mapper = EncodeMapper(self._kind, True, True)
        machine.encode(mapper, budget=self._budget).minimize(allow_nondet=True, budget=self._budget)
        return machine.decode(mapper, budget=self._budget)

    def _find(self) -> VectorFst:
        """Puts ``<1`` or ``<2`` before each place from which the rule's input leads to a ``>``."""
        pattern = words_of(_turned(self._tau.copy().project("input"), self._budget), self._budget)
        # The mirror image: ">", then the input backwards, with ">" between its labels.
        found = VectorFst(self._kind)
        found.add_states(2 * pattern.num_states() + 1)
        found.set_start(0)
        if pattern.start() >= 0:
            self._arc(found, 0, self._close, self._close, 1 + 2 * pattern.start())
        for state in pattern.states():
            plain, marked = 1 + 2 * state, 2 + 2 * state
            if pattern.core.final(state) != self._zero:
                found.set_final(plain)
            if state != pattern.start():
                self._arc(found, plain, self._close, self._close, marked)
            for label, _, _, target in pattern.core.arcs(state):
                for source in (plain, marked):
                    self._arc(found, source, label, label, 1 + 2 * target)
        marked_after = self._mark_after(found, [*self._alphabet, self._close], [self._open, self._not])
        return _turned(marked_after, self._budget)

    def _replace(self, entry: dict[int, int]) -> VectorFst:
        """Outside it writes what it reads; from ``<1`` to ``>`` the rule. ``entry``: how ``<1`` is read and written."""
        # Marks are dropped only after the first label, so that there is one path only.
        drop = VectorFst(self._kind)
        drop.add_states(2)
        drop.set_start(0).set_final(0).set_final(1)
        for state in (0, 1):
            for label in self._alphabet:
                self._arc(drop, state, label, label, 1)
        for mark in (self._close, self._open, self._not):
            self._arc(drop, 1, mark, 0, 1)
        inner = self._merged(compose(drop, self._tau, budget=self._budget))
        made = _one_state(
            self._kind, [*((a, a) for a in self._alphabet), (self._close, 0), (self._not, self._not)]
        )
        if self._optional and self._at_once:
            self._arc(made, 0, self._open, 0, 0)
        if inner.start() < 0:
            return made
        made.add_states(inner.num_states())
        ((read, written),) = entry.items()
        self._arc(made, 0, read, written, 1 + inner.start())
        for state in inner.states():
            for ilabel, olabel, weight, target in inner.core.arcs(state):
                made.core.add_arc(1 + state, ilabel, olabel, weight, 1 + target)
            if (final := inner.core.final(state)) != self._zero:
                made.core.add_arc(1 + state, self._close, 0, final, 0)
        return made

    def _check(self, marks: dict[int, int], others: list[int], after: bool) -> VectorFst:
        """Allow ``marks`` only after the left context (``after``), or only elsewhere, and write them as given.
        ``others`` are copied.
        """
        made = self._ends(self._left, self._alphabet)
        for state in made.states():
            matched = made.core.final(state) != self._zero
            made.set_final(state)
            for mark in others:
                self._arc(made, state, mark, mark, state)
            if matched == after:
                for mark, written in marks.items():
                    self._arc(made, state, mark, written, state)
        return made

    def _mark_after(self, pattern: VectorFst, alphabet: list[int], marks: list[int]) -> VectorFst:
        """Insert one of ``marks`` at each place at which a word of ``pattern`` ends."""
        ends = self._ends(pattern, alphabet)
        made = VectorFst(self._kind)
        made.add_states(2 * ends.num_states())
        made.set_start(2 * ends.start())
        for state in ends.states():
            matched = ends.core.final(state) != self._zero
            last = 2 * state + matched
            for mark in marks if matched else ():
                self._arc(made, 2 * state, 0, mark, last)
            made.set_final(last)
            for label, _, _, target in ends.core.arcs(state):
                self._arc(made, last, label, label, 2 * target)
        return made.connect(budget=self._budget)

    def _ends(self, pattern: VectorFst, alphabet: list[int]) -> VectorFst:
        """The complete deterministic automaton of the texts that end with a word of ``pattern``."""
        made = _one_state(self._kind, [(a, a) for a in alphabet]).concat(pattern, budget=self._budget)
        if pattern.start() < 0:  # nothing ends so
            made = _one_state(self._kind, [(a, a) for a in alphabet])
            made.core.set_final(0, self._zero)
            return made
        return words_of(made, self._budget)

    def _arc(self, machine: VectorFst, source: int, ilabel: int, olabel: int, target: int) -> None:
        machine.core.add_arc(source, ilabel, olabel, self._one, target)


def _context(given: VectorFst | str | bytes, kind: str, shift: bool) -> VectorFst:
    """A context as a machine; ``shift``: the bytes of a string have label b + 1, as those of the other machines."""
    if isinstance(given, VectorFst):
        return given
    labels = bracketed(given)
    if shift:
        labels = [byte_label(label) if label <= 0xFF else label for label in labels]
    made = VectorFst(kind)
    made = chain(labels, labels, made.kind.core.one(), kind)
    return made.set_tables((table := byte_table(BYTE_ZERO_LABEL) if shift else None, table))


def _bare(machine: VectorFst) -> VectorFst:
    """The machine without symbol tables, to be composed with those of the cascade, which have none."""
    return VectorFst.of_core(machine.kind, machine.core)


def _labels_in(machine: VectorFst) -> set[int]:
    _, _, ilabels, olabels, _, _ = machine.arrays()
    return (set(ilabels.tolist()) | set(olabels.tolist())) - {0}


def _one_state(kind: str, labels: Iterable[tuple[int, int]]) -> VectorFst:
    made = VectorFst(kind)
    made.set_start(made.add_state()).set_final(0)
    for ilabel, olabel in labels:
        made.core.add_arc(0, ilabel, olabel, made.kind.core.one(), 0)
    return made


def _around(kind: str, labels: list[int]) -> VectorFst:
    """Puts the beginning and the end around a word."""
    made = _one_state(kind, [(a, a) for a in labels])
    one = made.kind.core.one()
    made.core.set_final(0, made.kind.core.zero())
    first, last = made.add_state(), made.add_state()
    made.core.add_arc(first, 0, BOS, one, 0)
    made.core.add_arc(0, 0, EOS, one, last)
    return made.set_start(first).set_final(last)


def _turned(machine: VectorFst, budget: Budget | None) -> VectorFst:
    return reverse(machine, budget=budget)
