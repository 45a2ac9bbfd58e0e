"""pynini's interface: ``Fst`` with the operators ``+``, ``|``, ``@``, ``-``, ``.star`` ..., and its constructors.

A string stands for its acceptor everywhere, with pynini's brackets (``strings``) and the current token type. Each
``Fst`` is a ``VectorFst`` of ``tokenfst.fst``, and each operation is one of its operations.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from tokenfst.automata.transducer_grammars import cdrewrite as rules
from tokenfst.automata.transducer_grammars.paths import Paths
from tokenfst.automata.transducer_grammars.strings import TokenType, bracketed, type_or_default
from tokenfst.automata.transducer_operations import building, operations
from tokenfst.automata.transducers.checks import NO_STATE_ID
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import Weight, number
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import BudgetExceeded, FstArgError, FstIOError, FstOpError

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

    def __eq__(self, other: object) -> bool:
        """Whether the states and arcs are the same, as in ``equal``; never of another semiring."""
        if not isinstance(other, VectorFst):
            return NotImplemented
        return self.arc_type() == other.arc_type() and operations.equal(self, other)

    __hash__ = None  # type: ignore[assignment]

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
        """Replace the machine by an equivalent one, usually smaller (``tokenfst.fst.optimize``). ``compute_props`` has
        no effect.
        """
        self.core = building.optimize(self, budget=budget).core
        return self

    def string(self, token_type: TokenType | None = None) -> str:
        """The output string of a machine with exactly one path. Raises ``FstOpError`` for any other number of paths,
        and ``FstArgError`` for a machine with cycles.
        """
        found = list(islice(self.paths(output_token_type=token_type).ostrings(), 2))
        if len(found) != 1:
            raise FstOpError("string: the machine has not exactly one path")
        return found[0]

    def paths(
        self, input_token_type: TokenType | None = None, output_token_type: TokenType | None = None
    ) -> Paths:
        """The paths of an acyclic machine, made one after another. Raises ``FstArgError`` for a machine with cycles."""
        return Paths(self, type_or_default(input_token_type), type_or_default(output_token_type))


FstLike = VectorFst | str | bytes


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
    token_type: TokenType | None = None,
) -> Fst:
    """The acceptor of one string in pynini's notation (``strings``), with a weight (by default One)."""
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
    nothing, limit = building.accep("", arc_type=fst.arc_type()), budget or Budget()

    def before(rest: VectorFst) -> VectorFst:
        """The machine once, then ``rest``."""
        if plain.num_states() + rest.num_states() > limit.states:
            raise BudgetExceeded("states", limit.states, "closure")
        return fst.like(plain.core.copy()).concat(rest, budget=budget)

    # From the end, one within the other, so that each number of times has one path: x (x (x)?)?
    made = fst.like(nothing.core.copy())
    if upper == 0:
        made = fst.like(plain.core.copy()).closure("star", budget=budget)
    for _ in range(upper - lower):
        made = before(made).union(nothing, budget=budget)
    for _ in range(lower):
        made = before(made)
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
    """An equivalent machine, usually smaller (``tokenfst.fst.optimize``)."""
    return acceptor_or_machine(fst).copy().optimize(budget=budget)


@checked
def shortestpath(
    fst: VectorFst | str | bytes, nshortest: int = 1, unique: bool = False, *, nstate: int = NO_STATE_ID,
    weight: WeightLike | None = None, budget: Budget | None = None,
) -> Fst:  # fmt: skip
    """The ``nshortest`` best paths (``tokenfst.fst.shortestpath``)."""
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
def string_map(
    lines: Iterable[Any], arc_type: str = "standard", input_token_type: TokenType | None = None,
    output_token_type: TokenType | None = None, *, budget: Budget | None = None,
) -> Fst:  # fmt: skip
    """Each string mapped to another, with pynini's brackets: strings, (input, output) or (input, output, weight)."""
    made = building.tree_of(
        lines, arc_type,
        lambda text: bracketed(text, input_token_type), lambda text: bracketed(text, output_token_type), budget,
    )  # fmt: skip
    return Fst.around(made).optimize(budget=budget)


@checked
def string_file(
    filename: str | os.PathLike[str], arc_type: str = "standard", input_token_type: TokenType | None = None,
    output_token_type: TokenType | None = None, *, budget: Budget | None = None,
) -> Fst:  # fmt: skip
    """``string_map`` of a file: each line has one string, or two, or two and a weight, separated by tabs."""
    try:
        lines = Path(filename).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise FstIOError(f"{os.fspath(filename)}: it is no UTF-8: {error}") from None
    columns = [line.split("\t") for line in lines if line]
    return string_map(columns, arc_type, input_token_type, output_token_type, budget=budget)


@checked
def cdrewrite(
    tau: VectorFst | str | bytes, l: VectorFst | str | bytes, r: VectorFst | str | bytes,  # noqa: E741  # pynini's name
    sigma_star: VectorFst | str | bytes, direction: str = "ltr", mode: str = "obl", *, budget: Budget | None = None,
) -> Fst:  # fmt: skip
    """The transducer that rewrites by ``tau`` wherever it occurs after ``l`` and before ``r``
    (``tokenfst.fst.cdrewrite``).
    """
    kind = next((each.arc_type() for each in (tau, sigma_star) if isinstance(each, VectorFst)), "standard")
    rule, left, right, words = (acceptor_or_machine(each, kind) for each in (tau, l, r, sigma_star))
    return Fst.around(rules.cdrewrite(rule, left, right, words, direction, mode, budget=budget))
