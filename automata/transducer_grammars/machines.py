"""pynini's interface: ``Fst`` with the operators ``+``, ``|``, ``@``, ``-``, ``.star`` ..., and its constructors.

A string stands for its acceptor everywhere, with pynini's brackets (``strings``). Each ``Fst`` is a ``VectorFst`` of
``tokenfst.fst``, and each operation is one of its operations.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tokenfst.arguments import checked
from tokenfst.automata.transducer_grammars import cdrewrite as rules
from tokenfst.automata.transducer_grammars.strings import bracketed, name_of
from tokenfst.automata.transducer_operations import building, operations
from tokenfst.automata.transducers.checks import NO_STATE_ID
from tokenfst.automata.transducers.mapping import arcmap
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import Weight, number
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, FstArgError, FstIOError, FstOpError

TokenType = str | SymbolTable
WeightLike = Weight | str | float


class Fst(VectorFst):
    """A machine with pynini's operators. Operators make a new machine; methods change this one."""

    @classmethod
    def around(cls, machine: VectorFst) -> Fst:
        """A view of a machine with operators; both share data until one is changed."""
        if isinstance(machine, Fst):
            return machine
        made = cls(machine.arc_type())
        made.core = machine.core.copy()
        made.set_tables(machine.tables)
        return made

    def copy(self) -> Fst:
        """An independent copy."""
        return Fst.around(super().copy())

    def __add__(self, other: FstLike) -> Fst:
        return concat(self, other)

    def __radd__(self, other: str) -> Fst:
        return concat(acceptor_or_machine(other, self.arc_type()), self)

    def __or__(self, other: FstLike) -> Fst:
        return union(self, other)

    def __ror__(self, other: str) -> Fst:
        return union(acceptor_or_machine(other, self.arc_type()), self)

    def __matmul__(self, other: FstLike) -> Fst:
        return compose(self, other)

    def __rmatmul__(self, other: str) -> Fst:
        return compose(acceptor_or_machine(other, self.arc_type()), self)

    def __sub__(self, other: FstLike) -> Fst:
        return difference(self, other)

    def __rsub__(self, other: str) -> Fst:
        return difference(acceptor_or_machine(other, self.arc_type()), self)

    def __pow__(self, times: int | tuple[Any, ...]) -> Fst:
        lower, upper = (
            (times, times) if isinstance(times, int) else (times[0], times[1] if len(times) > 1 else 0)
        )
        return closure(self, lower, 0 if upper is Ellipsis else upper)

    @property
    def star(self) -> Fst:
        """The machine any number of times."""
        return closure(self)

    @property
    def plus(self) -> Fst:
        """The machine at least once."""
        return closure(self, 1)

    @property
    def ques(self) -> Fst:
        """The machine at most once."""
        return closure(self, 0, 1)

    def closure(self, lower: int | str = 0, upper: int = 0, *, budget: Budget | None = None) -> Fst:
        """Repeat from ``lower`` to ``upper`` times (0: unbounded), in place."""
        self.core = _closed(self, lower, upper, budget).core
        return self

    def concat(self, fst2: FstLike, *, budget: Budget | None = None) -> Fst:
        """Append another machine, in place."""
        super().concat(acceptor_or_machine(fst2, self.arc_type()), budget=budget)
        return self

    def union(self, *fsts2: FstLike, budget: Budget | None = None) -> Fst:
        """Add other machines as alternatives, in place."""
        super().union(*(acceptor_or_machine(each, self.arc_type()) for each in fsts2), budget=budget)
        return self

    def optimize(self, compute_props: bool = False, *, budget: Budget | None = None) -> Fst:
        """Make the machine smaller where that is certain, in place. ``compute_props`` has no effect."""
        self.core = building.optimize(self, budget=budget).core
        return self

    def string(self, token_type: TokenType = "byte") -> str:
        """The output string of a machine with one path. Raises ``FstArgError`` otherwise."""
        found = list(self.paths(output_token_type=token_type).ostrings())
        if len(found) != 1:
            raise FstArgError("string: the machine has not exactly one path")
        return found[0]

    def paths(self, input_token_type: TokenType = "byte", output_token_type: TokenType = "byte") -> Paths:
        """All paths of an acyclic machine. Raises ``FstArgError`` otherwise."""
        return Paths(self, input_token_type, output_token_type)


FstLike = VectorFst | str | bytes


class Paths:
    """The paths of an acyclic machine, each as (input, output, weight)."""

    def __init__(self, fst: VectorFst, input_token_type: TokenType, output_token_type: TokenType) -> None:
        if not fst.properties(_ACYCLIC):
            raise FstArgError("paths: the machine has cycles, so its paths have no end")
        self._fst, self._types = fst, (input_token_type, output_token_type)

    def _labels(self) -> Iterator[tuple[list[int], list[int], float]]:
        core, kind = self._fst.core, self._fst.kind.core
        waiting: list[tuple[int, list[int], list[int], float]] = []
        if self._fst.start() >= 0:
            waiting.append((self._fst.start(), [], [], kind.one()))
        while waiting:
            state, read, written, weight = waiting.pop()
            if (final := core.final(state)) != kind.zero():
                yield read, written, kind.times(weight, final)
            for ilabel, olabel, more, target in reversed(core.arcs(state)):
                waiting.append(
                    (
                        target,
                        [*read, ilabel] if ilabel else read,
                        [*written, olabel] if olabel else written,
                        kind.times(weight, more),
                    )
                )

    def items(self) -> Iterator[tuple[str, str, Weight]]:
        """Input, output and weight of each."""
        for read, written, weight in self._labels():
            yield (
                text_of(read, self._types[0]),
                text_of(written, self._types[1]),
                Weight.of(self._fst.kind, weight),
            )

    def istrings(self) -> Iterator[str]:
        """The input of each."""
        return (text_of(read, self._types[0]) for read, _, _ in self._labels())

    def ostrings(self) -> Iterator[str]:
        """The output of each."""
        return (text_of(written, self._types[1]) for _, written, _ in self._labels())

    def weights(self) -> Iterator[Weight]:
        """The weight of each."""
        return (Weight.of(self._fst.kind, weight) for _, _, weight in self._labels())


_ACYCLIC = 0x800000000


def text_of(labels: Iterable[int], token_type: TokenType) -> str:
    """The string that labels spell, with generated labels as names in brackets. Raises ``FstOpError`` for labels
    without meaning.
    """
    if isinstance(token_type, SymbolTable):
        return building.spelled(list(labels), token_type)
    out = bytearray()
    for label in labels:
        if (name := name_of(label)) is not None or (token_type == "byte" and label > 255):
            out += f"[{name or label}]".encode()
        else:
            out += bytes([label]) if token_type == "byte" else building.spelled([label], "utf8").encode()
    try:
        return out.decode()
    except UnicodeDecodeError:
        raise FstOpError(f"the labels {list(labels)!r:.60} are no UTF-8") from None


def acceptor_or_machine(given: FstLike, arc_type: str = "standard") -> Fst:
    """A machine as an ``Fst``, or the acceptor of a string."""
    return Fst.around(given) if isinstance(given, VectorFst) else accep(given, arc_type=arc_type)


def both(one: FstLike, other: FstLike) -> tuple[Fst, Fst]:
    """Two machines or strings as ``Fst``; a string gets the arc type of the other."""
    kind = next((each.arc_type() for each in (one, other) if isinstance(each, VectorFst)), "standard")
    return acceptor_or_machine(one, kind), acceptor_or_machine(other, kind)


@checked
def accep(
    astring: str | bytes,
    weight: WeightLike | None = None,
    arc_type: str = "standard",
    token_type: TokenType = "byte",
) -> Fst:
    """The acceptor of one string."""
    labels, made = bracketed(astring, token_type), Fst(arc_type)
    value = made.kind.core.one() if weight is None else number(weight, made.kind, "accep: weight")
    return Fst.around(building.chain(labels, labels, value, arc_type))


@checked
def cross(
    fst1: VectorFst | str | bytes, fst2: VectorFst | str | bytes, *, budget: Budget | None = None
) -> Fst:
    """The cross product: every word of the first mapped to every word of the second."""
    return Fst.around(building.cross(*both(fst1, fst2), budget=budget))


@checked
def union(*fsts: VectorFst | str | bytes, budget: Budget | None = None) -> Fst:
    """The union of the machines."""
    if not fsts:
        raise FstArgError("union: no machine was given")
    kind = next((each.arc_type() for each in fsts if isinstance(each, VectorFst)), "standard")
    return acceptor_or_machine(fsts[0], kind).copy().union(*fsts[1:], budget=budget)


@checked
def concat(
    fst1: VectorFst | str | bytes, fst2: VectorFst | str | bytes, *, budget: Budget | None = None
) -> Fst:
    """The concatenation of the machines."""
    one, other = both(fst1, fst2)
    return one.copy().concat(other, budget=budget)


def _closed(fst: VectorFst, lower: int | str, upper: int, budget: Budget | None) -> VectorFst:
    if isinstance(lower, str):  # as pywrapfst has it
        return fst.like(fst.core.copy()).closure(lower, budget=budget)
    if lower < 0 or upper < 0 or (upper and upper < lower):
        raise FstArgError(
            f"closure: from {lower} to {upper} times: 0 is no limit, else the second is the larger"
        )
    plain = fst.like(fst.core.copy())
    if upper == 0 and lower < 2:
        return plain.closure("plus" if lower else "star", budget=budget)
    nothing = building.accep("", arc_type=fst.arc_type())
    made, limit = fst.like(nothing.core), budget or Budget()
    for at in range(max(lower, upper)):
        part = plain if at < lower else fst.like(plain.core.copy()).union(nothing, budget=budget)
        made.concat(part, budget=budget)
        if made.num_states() > limit.states:
            raise BudgetExceeded("states", limit.states, "closure")
    if upper == 0:
        made.concat(plain.closure("star", budget=budget), budget=budget)
    return made


@checked
def closure(
    fst: VectorFst | str | bytes, lower: int = 0, upper: int = 0, *, budget: Budget | None = None
) -> Fst:
    """The machine repeated from ``lower`` to ``upper`` times (0: unbounded)."""
    return acceptor_or_machine(fst).copy().closure(lower, upper, budget=budget)


@checked
def compose(
    fst1: VectorFst | str | bytes, fst2: VectorFst | str | bytes, compose_filter: str = "auto", connect: bool = True,
    *, budget: Budget | None = None,
) -> Fst:  # fmt: skip
    """The composition of the machines."""
    return Fst.around(operations.compose(*both(fst1, fst2), compose_filter, connect, budget=budget))


@checked
def intersect(
    fst1: VectorFst | str | bytes, fst2: VectorFst | str | bytes, *, budget: Budget | None = None
) -> Fst:
    """The intersection of two acceptors."""
    return Fst.around(operations.intersect(*both(fst1, fst2), budget=budget))


@checked
def difference(
    fst1: VectorFst | str | bytes, fst2: VectorFst | str | bytes, *, budget: Budget | None = None
) -> Fst:
    """The difference: words of the first acceptor that are not in the second."""
    return Fst.around(operations.difference(*both(fst1, fst2), budget=budget))


@checked
def invert(fst: VectorFst | str | bytes) -> Fst:
    """The inverse: input and output labels exchanged."""
    return Fst.around(acceptor_or_machine(fst).copy().invert())


@checked
def project(fst: VectorFst | str | bytes, project_type: str) -> Fst:
    """The acceptor of one side: "input" or "output"."""
    return Fst.around(acceptor_or_machine(fst).copy().project(project_type))


@checked
def optimize(fst: VectorFst | str | bytes, *, budget: Budget | None = None) -> Fst:
    """An equivalent machine, smaller where that is certain."""
    return acceptor_or_machine(fst).copy().optimize(budget=budget)


@checked
def shortestpath(
    fst: VectorFst | str | bytes, nshortest: int = 1, unique: bool = False, *, nstate: int = NO_STATE_ID,
    weight: WeightLike | None = None, budget: Budget | None = None,
) -> Fst:  # fmt: skip
    """The best paths."""
    made = operations.shortestpath(
        acceptor_or_machine(fst),
        nshortest=nshortest,
        unique=unique,
        nstate=nstate,
        weight=weight,
        budget=budget,
    )
    return Fst.around(made)


@checked
def string_map(lines: Iterable[Any], arc_type: str = "standard", *, budget: Budget | None = None) -> Fst:
    """Each string mapped to another, with pynini's brackets: strings, (input, output) or (input, output, weight)."""
    made = Fst.around(building.tree_of(lines, arc_type, bracketed, budget))
    return made.optimize(budget=budget)


@checked
def string_file(
    filename: str | os.PathLike[str], arc_type: str = "standard", *, budget: Budget | None = None
) -> Fst:
    """``string_map`` of a file: each line has one string, or two, or two and a weight, separated by tabs."""
    try:
        lines = Path(filename).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise FstIOError(f"{os.fspath(filename)}: it is no UTF-8: {error}") from None
    return string_map([line.split("\t") for line in lines if line], arc_type, budget=budget)


@checked
def cdrewrite(
    tau: VectorFst | str | bytes, l: VectorFst | str | bytes, r: VectorFst | str | bytes,  # noqa: E741
    sigma_star: VectorFst | str | bytes, direction: str = "ltr", mode: str = "obl", *, budget: Budget | None = None,
) -> Fst:  # fmt: skip
    """The transducer that rewrites by ``tau`` wherever it occurs after ``l`` and before ``r``
    (``tokenfst.fst.cdrewrite``).
    """
    kind = next((each.arc_type() for each in (tau, sigma_star) if isinstance(each, VectorFst)), "standard")
    rule, left, right, words = (acceptor_or_machine(each, kind) for each in (tau, l, r, sigma_star))
    return Fst.around(rules.cdrewrite(rule, left, right, words, direction, mode, budget=budget))


# --- pynutil ------------------------------------------------------------------------------------------


@checked
def insert(expr: VectorFst | str | bytes, weight: WeightLike | None = None) -> Fst:
    """The transducer that maps the empty string to ``expr``."""
    made = acceptor_or_machine(expr)
    made = Fst.around(arcmap(made, map_type="input_epsilon"))
    return made if weight is None else add_weight(made, weight)


@checked
def delete(expr: VectorFst | str | bytes, weight: WeightLike | None = None) -> Fst:
    """The transducer that maps ``expr`` to the empty string."""
    made = Fst.around(arcmap(acceptor_or_machine(expr), map_type="output_epsilon"))
    return made if weight is None else add_weight(made, weight)


@checked
def add_weight(expr: VectorFst | str | bytes, weight: WeightLike) -> Fst:
    """The machine with ``weight`` added to each path."""
    made = acceptor_or_machine(expr)
    value = number(weight, made.kind, "add_weight: weight")
    return Fst.around(building.chain([], [], value, made.arc_type()).set_tables(made.tables)).concat(made)


@checked
def join(expr: VectorFst | str | bytes, sep: VectorFst | str | bytes) -> Fst:
    """One or more ``expr``, separated by ``sep``."""
    one, between = both(expr, sep)
    return one + (between + one).star
