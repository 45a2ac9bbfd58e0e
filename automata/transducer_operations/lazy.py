"""Lazy machines: states are computed on demand, cached while there is room, and recomputed after eviction.

``compose``, ``determinize`` ... here accept machines and lazy machines, and return a ``LazyFst`` at once; OpenFst's
classes are ``ComposeFst``, ``DeterminizeFst`` ... States are numbered in the order in which they are first referenced,
so numbers depend on the order of a walk. ``expand()`` walks breadth-first to the end and gives the result of the eager
operation. ``cache_bytes`` bounds the memory of the arcs that one lazy machine keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tokenfst.automata.transducer_operations import operations
from tokenfst.automata.transducer_operations.replacing import SIDES, named_machines
from tokenfst.automata.transducers.arcs import require_same
from tokenfst.automata.transducers.byte_labels import Tables, common_tables, require_middle
from tokenfst.automata.transducers.checks import (
    NO_LABEL,
    SHORTEST_DELTA,
    WeightLike,
    chosen,
    limits,
    positive,
    special,
)
from tokenfst.automata.transducers.iterating import ArcIterator
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import ArcType, Weight, number
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted as plural
from tokenfst.errors import FstArgError, FstOpError

CACHE_BYTES = 1 << 26
"""The default cache size of a lazy machine in bytes."""
_MAP_TYPES = (
    "identity", "invert", "input_epsilon", "output_epsilon", "project_input", "project_output", "rmweight",
    "times", "plus",
)  # fmt: skip


class Counts(NamedTuple):
    """Statistics of a lazy machine."""

    named: int
    """States with numbers."""
    made: int
    """States that were computed; recomputed states count again."""
    kept: int
    """States whose arcs are in the cache."""
    bytes: int
    """Bytes in the cache."""


class LazyFst:
    """A machine whose states are computed on demand. It has the reading methods of ``VectorFst`` and is immutable."""

    def __init__(self, kind: ArcType, core: Any, tables: Tables, budget: Budget | None) -> None:
        self.kind, self.core, self.tables = kind, core, tables
        self._limits = limits(budget)

    def arc_type(self) -> str:
        """The name of the arc type."""
        return self.kind.name

    def weight_type(self) -> str:
        """The name of the semiring."""
        return self.kind.weight_type

    def fst_type(self) -> str:
        """Always "lazy"."""
        return "lazy"

    def input_symbols(self) -> SymbolTable | None:
        """The table of input labels."""
        return self.tables[0]

    def output_symbols(self) -> SymbolTable | None:
        """The table of output labels."""
        return self.tables[1]

    def start(self) -> int:
        """The start, or -1."""
        return int(self.core.start(self._limits))

    @checked
    def final(self, state: int) -> Weight:
        """The final weight of a state. Raises ``FstIndexError`` for a number that no arc has referenced."""
        return Weight.of(self.kind, self.core.state(state, self._limits)[0])

    @checked
    def arcs(self, state: int) -> ArcIterator:
        """The outgoing arcs of a state. Raises ``FstIndexError`` for a number that no arc has referenced."""
        return ArcIterator(self.kind, list(self.core.state(state, self._limits)[1]))

    @checked
    def num_arcs(self, state: int) -> int:
        """The number of outgoing arcs of a state."""
        return len(self.core.state(state, self._limits)[1])

    @checked
    def num_input_epsilons(self, state: int) -> int:
        """The number of arcs of a state with an epsilon input."""
        return sum(arc[0] == 0 for arc in self.core.state(state, self._limits)[1])

    @checked
    def num_output_epsilons(self, state: int) -> int:
        """The number of arcs of a state with an epsilon output."""
        return sum(arc[1] == 0 for arc in self.core.state(state, self._limits)[1])

    @checked
    def expand(self, *, budget: Budget | None = None) -> VectorFst:
        """All reachable states as an independent machine. Raises ``BudgetExceeded`` if there are infinitely many."""
        made = self.core.expanded(limits(budget) if budget else self._limits)
        return VectorFst.of_core(self.kind, made, self.tables)

    def counts(self) -> Counts:
        """The numbers of states that were named, made and kept."""
        return Counts(*self.core.counts())

    def __repr__(self) -> str:
        return f"<LazyFst {self.arc_type()}, {plural(self.counts().named, 'state')} named>"


AnyFst = VectorFst | LazyFst


def _core(fst: AnyFst) -> Any:
    return fst.core if isinstance(fst, LazyFst) else fst.kind.lazy.of(fst.core)


def _room(cache_bytes: int) -> int:
    if cache_bytes < 0:
        raise FstArgError(f"cache_bytes must not be negative: {cache_bytes}")
    return cache_bytes


@checked
def compose(
    ifst1: AnyFst, ifst2: AnyFst, compose_filter: str = "auto", *, phi_label: int = NO_LABEL, rho_label: int = NO_LABEL,
    sigma_label: int = NO_LABEL, match_type: str = "input", rewrite_mode: str = "auto", phi_loop: bool = True,
    cache_bytes: int = CACHE_BYTES, budget: Budget | None = None,
) -> LazyFst:  # fmt: skip
    """The composition, state by state; arguments as in ``tokenfst.fst.compose``. Not connected.

    With a special label in a lazy machine, ``rewrite_mode`` must be given, because it is not known whether the machine
    is an acceptor. A state costs the product of its matching arcs.
    """
    kind = require_same("compose", ifst1, ifst2)
    require_middle("compose", ifst1, ifst2)
    chosen("compose: compose_filter", compose_filter, operations.FILTERS)
    looked_up = ifst1 if match_type == "output" else ifst2

    def acceptor() -> bool:
        if isinstance(looked_up, VectorFst):
            return operations.is_acceptor(looked_up)
        raise FstArgError(
            'compose: rewrite_mode must be "always" or "never" where the special label is in a lazy machine'
        )

    given = special(phi_label, rho_label, sigma_label, match_type, rewrite_mode, phi_loop, acceptor)
    core = kind.lazy.compose(
        _core(ifst1), _core(ifst2), operations.FILTERS[compose_filter], *given, _room(cache_bytes)
    )
    return LazyFst(kind, core, (ifst1.input_symbols(), ifst2.output_symbols()), budget)


@checked
def intersect(
    ifst1: AnyFst, ifst2: AnyFst, compose_filter: str = "auto", *, cache_bytes: int = CACHE_BYTES,
    budget: Budget | None = None,
) -> LazyFst:  # fmt: skip
    """The intersection of two acceptors. Raises ``FstOpError`` for transducers; for lazy machines the caller must
    ensure this.

    The cost is that of ``compose``.
    """
    require_same("intersect", ifst1, ifst2)
    for each in (ifst1, ifst2):
        if isinstance(each, VectorFst) and not operations.is_acceptor(each):
            raise FstOpError("intersect: a machine is a transducer, and acceptors are due: project it first")
    return compose(ifst1, ifst2, compose_filter, cache_bytes=cache_bytes, budget=budget)


@checked
def difference(
    ifst1: AnyFst, ifst2: VectorFst, *, cache_bytes: int = CACHE_BYTES, budget: Budget | None = None
) -> LazyFst:
    """The difference of two acceptors. The second must be unweighted, and is completely determinized first if
    necessary.

    The cost is that of ``compose``.
    """
    kind = require_same("difference", ifst1, ifst2)
    common_tables("difference", ifst1, ifst2)
    if isinstance(ifst1, VectorFst) and not operations.is_acceptor(ifst1):
        raise FstOpError(
            "difference: the first machine is a transducer, and an acceptor is due: project it first"
        )
    second = operations.to_subtract(ifst2, budget)
    core = kind.lazy.difference(_core(ifst1), _core(second), _room(cache_bytes))
    return LazyFst(kind, core, ifst1.tables, budget)


@checked
def determinize(
    ifst: AnyFst, delta: float = SHORTEST_DELTA, det_type: str = "functional", subsequential_label: int = 0,
    increment_subsequential_label: bool = False, *, acceptor: bool = False, cache_bytes: int = CACHE_BYTES,
    budget: Budget | None = None,
) -> LazyFst:  # fmt: skip
    """Lazy determinization; arguments as in ``tokenfst.fst.determinize``.

    ``acceptor``: asserts that a lazy machine is an acceptor, so that outputs need not be tracked. A lazy machine should
    have no dead states: they take part in the normalization of weights, which moves weights to other arcs. A state
    costs the arcs of its subset.
    """
    chosen("determinize: det_type", det_type, operations.DET_TYPES)
    if isinstance(ifst, VectorFst):
        acceptor = operations.is_acceptor(ifst)
        ifst = ifst.copy().connect(budget=budget)
    kind = ifst.kind
    core = kind.lazy.determinize(
        _core(ifst), 0 if acceptor else operations.DET_TYPES[det_type], subsequential_label,
        increment_subsequential_label, positive("determinize: delta", delta), _room(cache_bytes),
    )  # fmt: skip
    return LazyFst(kind, core, ifst.tables, budget)


@checked
def rmepsilon(
    ifst: AnyFst,
    delta: float = SHORTEST_DELTA,
    *,
    cache_bytes: int = CACHE_BYTES,
    budget: Budget | None = None,
) -> LazyFst:
    """Lazy epsilon removal. Not connected. A state costs all that its epsilons reach."""
    core = ifst.kind.lazy.rmepsilon(_core(ifst), positive("rmepsilon: delta", delta), _room(cache_bytes))
    return LazyFst(ifst.kind, core, ifst.tables, budget)


@checked
def union(*fsts: AnyFst, cache_bytes: int = CACHE_BYTES, budget: Budget | None = None) -> LazyFst:
    """The union, with a new start that has an epsilon arc to each machine. A state costs its arcs."""
    if not fsts:
        raise FstArgError("union: no machine was given")
    kind = require_same("union", *fsts)
    tables = common_tables("union", *fsts)
    core = kind.lazy.union([_core(each) for each in fsts], _room(cache_bytes))
    return LazyFst(kind, core, tables, budget)


@checked
def concat(
    ifst1: AnyFst, ifst2: AnyFst, *, cache_bytes: int = CACHE_BYTES, budget: Budget | None = None
) -> LazyFst:
    """The concatenation of two machines. A state costs its arcs."""
    kind = require_same("concat", ifst1, ifst2)
    tables = common_tables("concat", ifst1, ifst2)
    core = kind.lazy.concat(_core(ifst1), _core(ifst2), _room(cache_bytes))
    return LazyFst(kind, core, tables, budget)


@checked
def closure(
    ifst: AnyFst, closure_type: str = "star", *, cache_bytes: int = CACHE_BYTES, budget: Budget | None = None
) -> LazyFst:
    """The Kleene closure: "star" (any number of times) or "plus" (at least once). A state costs its arcs."""
    plus = chosen("closure: closure_type", closure_type, ("star", "plus")) == "plus"
    return LazyFst(
        ifst.kind, ifst.kind.lazy.closure(_core(ifst), plus, _room(cache_bytes)), ifst.tables, budget
    )


@checked
def arcmap(
    ifst: AnyFst, map_type: str = "identity", weight: WeightLike | None = None, *, cache_bytes: int = CACHE_BYTES,
    budget: Budget | None = None,
) -> LazyFst:  # fmt: skip
    """A map of all arcs: "identity", "invert" (input and output), "input_epsilon", "output_epsilon", "project_input",
    "project_output", "rmweight", "times" and "plus" (with ``weight``). Zero stays Zero.

    A state costs its arcs.
    """
    change = _MAP_TYPES.index(chosen("arcmap: map_type", map_type, _MAP_TYPES))
    kind, (ours, theirs) = ifst.kind, ifst.tables
    neutral = kind.core.zero() if map_type == "plus" else kind.core.one()
    value = neutral if weight is None else number(weight, kind, "arcmap: weight")
    core = kind.lazy.arcmap(_core(ifst), change, value, _room(cache_bytes))
    tables = {"invert": (theirs, ours), "project_input": (ours, ours), "project_output": (theirs, theirs)}
    return LazyFst(kind, core, tables.get(map_type, (ours, theirs)), budget)


@checked
def replace(
    pairs: Iterable[Any], call_arc_labeling: str = "input", return_arc_labeling: str = "neither",
    epsilon_on_replace: bool = False, return_label: int = 0, *, cache_bytes: int = CACHE_BYTES,
    budget: Budget | None = None,
) -> LazyFst:  # fmt: skip
    """Substitution of machines for labels, as in ``tokenfst.fst.replace``, but machines may be recursive.

    A recursive machine has infinitely many states: ``expand`` then raises ``BudgetExceeded``. A state costs its arcs.
    """
    chosen("replace: call_arc_labeling", call_arc_labeling, SIDES)
    chosen("replace: return_arc_labeling", return_arc_labeling, SIDES)
    machines, labels = named_machines(pairs, (VectorFst, LazyFst))
    kind, tables = require_same("replace", *machines), common_tables("replace", *machines)
    call = "neither" if epsilon_on_replace else call_arc_labeling
    back = "neither" if epsilon_on_replace else return_arc_labeling
    core = kind.lazy.replace(
        [(label, _core(machines[at])) for label, at in labels.items()],
        call in ("input", "both"), call in ("output", "both"),
        back in ("input", "both"), back in ("output", "both"), return_label, _room(cache_bytes),
    )  # fmt: skip
    return LazyFst(kind, core, tables, budget)
