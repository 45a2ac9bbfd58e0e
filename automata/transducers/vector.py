"""``VectorFst``: a mutable weighted transducer with symbol tables, and OpenFst's in-place operations."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tokenfst.automata.pictures.drawing import Drawing
from tokenfst.automata.transducers.arcs import Arc, require_same
from tokenfst.automata.transducers.byte_labels import common_tables
from tokenfst.automata.transducers.checks import (
    DELTA,
    NO_STATE_ID,
    QUEUE_TYPES,
    SHORTEST_DELTA,
    WeightLike,
    at_state,
    chosen,
    kept,
    limits,
    positive,
    room_for_states,
)
from tokenfst.automata.transducers.iterating import WithArcs
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.weights import ArcType, Weight, arc_type_named, number
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted
from tokenfst.errors import FstArgError, FstBadWeightError, FstIndexError

if TYPE_CHECKING:
    from tokenfst.automata.transducers.mapping import EncodeMapper


class VectorFst(WithArcs):
    """A weighted transducer. ``arc_type``: "standard" (tropical), "log", "log64", "real", ... (docs/fst/index.md)."""

    def __init__(self, arc_type: str = "standard") -> None:
        self._kind = arc_type_named(arc_type)
        self.core: Any = self._kind.core()
        """The core's object."""
        self._isymbols: SymbolTable | None = None
        self._osymbols: SymbolTable | None = None

    @classmethod
    def of_core(
        cls, kind: ArcType, core: Any, tables: tuple[SymbolTable | None, SymbolTable | None] = (None, None)
    ) -> VectorFst:
        """A machine that wraps an object of the core."""
        made = cls(kind.name)
        made.core = core
        return made.set_tables(tables)

    @property
    def kind(self) -> ArcType:
        """The arc type with its properties."""
        return self._kind

    @property
    def tables(self) -> tuple[SymbolTable | None, SymbolTable | None]:
        """Both symbol tables."""
        return self._isymbols, self._osymbols

    def set_tables(self, tables: tuple[SymbolTable | None, SymbolTable | None]) -> VectorFst:
        """Set both symbol tables, shared."""
        self._isymbols, self._osymbols = tables
        return self

    def like(self, core: Any) -> VectorFst:
        """Another machine of this semiring, with the same tables."""
        return VectorFst.of_core(self._kind, core, self.tables)

    # --- what it is -----------------------------------------------------------------------------------

    def arc_type(self) -> str:
        """The name of the arc type."""
        return self._kind.name

    def weight_type(self) -> str:
        """The name of the semiring."""
        return self._kind.weight_type

    def fst_type(self) -> str:
        """Always "vector"."""
        return "vector"

    def start(self) -> int:
        """The start state, or -1."""
        return int(self.core.start())

    def num_states(self) -> int:
        """The number of states."""
        return int(self.core.num_states())

    def num_arcs(self, state: int | None = None) -> int:
        """The number of arcs of ``state``; by default, of all states together."""
        return int(self.core.total_arcs() if state is None else at_state(self.core.num_arcs, state))

    def states(self) -> range:
        """All states."""
        return range(self.num_states())

    def final(self, state: int) -> Weight:
        """The final weight of a state: Zero if it is not final."""
        return Weight.of(self._kind, at_state(self.core.final, state))

    @checked
    def properties(self, mask: int, test: bool = True) -> int:
        """OpenFst's property bits under ``mask``. All are computed, whatever ``test`` is. Linear."""
        return int(self.core.properties(limits(Budget.unlimited()))) & mask

    def verify(self) -> bool:
        """Whether all weights are members of the semiring. A product that overflows float32 is not one. States and
        labels are checked on input.
        """
        finals, weights = self.arrays()[0], self.arrays()[4]
        values = np.concatenate([finals, weights]).astype(np.float64)
        if self.arc_type() in ("real", "real64"):
            return bool((np.isfinite(values) & (values >= 0)).all())
        return not np.isnan(values).any()

    def arrays(self) -> tuple[Any, ...]:
        """The machine as six numpy arrays, which ``fst.from_arrays`` takes after the start state.

        The final weight (Zero: not final) and the number of arcs (int64) of each state; and the input label, output
        label, weight and target state of each arc, state by state. Labels and states are int32, weights have the dtype
        of the semiring. Linear.
        """
        return tuple(self.core.arrays())

    def copy(self) -> VectorFst:
        """An independent copy; data are copied only when one of them is changed."""
        tables = tuple(None if table is None else table.copy() for table in self.tables)
        return VectorFst.of_core(self._kind, self.core.copy(), tables)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        size = f"{counted(self.num_states(), 'state')} and {counted(self.num_arcs(), 'arc')}"
        return f"<VectorFst {self.arc_type()} of {size}>"

    def __str__(self) -> str:
        return self.print()

    # --- changing it ----------------------------------------------------------------------------------

    def add_state(self) -> int:
        """Add a state and return its number."""
        return int(self.core.add_state())

    @checked
    def add_states(self, n: int, *, budget: Budget | None = None) -> VectorFst:
        """Add ``n`` states, all or none. ``BudgetExceeded`` if they do not fit the budget's bytes."""
        room_for_states("add_states", self.num_states(), n, budget)
        for _ in range(n):
            self.core.add_state()
        return self

    def add_arc(self, state: int, arc: Arc) -> VectorFst:
        """Add an arc to a state. Its target state must exist. Raises ``FstIndexError``, ``FstBadWeightError``."""
        if not isinstance(arc, Arc):
            raise FstArgError(f"add_arc: arc must be an Arc, not a {type(arc).__name__}")
        what = "the weight of an arc"
        weight = arc.weight if type(arc.weight) is float else number(arc.weight, self._kind, what)
        try:
            self.core.add_arc(state, arc.ilabel, arc.olabel, weight, arc.nextstate)
        except FstBadWeightError:
            number(weight, self._kind, what)  # which names the semiring in its error
        except TypeError:  # no whole number, or none that 64 bits hold
            raise FstArgError(
                f"add_arc: the state {state!r}, and the labels and the next state of {arc!r:.200}, must be whole "
                "numbers below 2^31"
            ) from None
        return self

    def set_start(self, state: int) -> VectorFst:
        """Set the start state."""
        at_state(self.core.set_start, state)
        return self

    def set_final(self, state: int, weight: WeightLike | None = None) -> VectorFst:
        """Set the final weight of a state (One by default)."""
        value = self._kind.core.one() if weight is None else number(weight, self._kind, "a final weight")
        at_state(self.core.set_final, state, value)
        return self

    @checked
    def delete_arcs(self, state: int, n: int | None = None) -> VectorFst:
        """Delete the arcs of a state, or its last ``n``."""
        if n is not None and n < 0:
            raise FstArgError(f"delete_arcs: n must not be negative: {n}")
        self.core.clear_arcs(state, self.core.num_arcs(state) if n is None else n)
        return self

    @checked
    def delete_states(self, states: Iterable[int] | None = None) -> VectorFst:
        """Delete some states and the arcs to them, or all states. The others keep their order."""
        if states is None:
            self.core = self._kind.core()
            return self
        gone = set(states)
        if wrong := [state for state in gone if not 0 <= state < self.num_states()]:
            raise FstIndexError(f"delete_states: there is no state {wrong[0]}")
        finals, counts, ilabels, olabels, weights, nexts = self.arrays()
        keep = np.ones(len(finals), bool)
        keep[list(gone)] = False
        place = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        source = np.repeat(np.arange(len(finals)), counts)
        stays = keep[source] & keep[nexts]
        start = self.start()
        counts = np.bincount(place[source[stays]], minlength=int(keep.sum())).astype(np.int64)
        self.core = self._kind.core.from_arrays(
            int(place[start]) if start >= 0 else -1, finals[keep], counts,
            ilabels[stays], olabels[stays], weights[stays], place[nexts[stays]], limits(Budget.unlimited()),
        )  # fmt: skip
        return self

    @checked
    def reserve_states(self, n: int, *, budget: Budget | None = None) -> VectorFst:
        """Reserve memory for states. ``BudgetExceeded`` if they do not fit the budget's bytes."""
        room_for_states("reserve_states", 0, n, budget)
        self.core.reserve(n, 0)
        return self

    def reserve_arcs(self, state: int, n: int) -> VectorFst:
        """Does nothing: the arcs of all states share one array."""
        return self

    def input_symbols(self) -> SymbolTable | None:
        """The table of input labels."""
        return self._isymbols

    def output_symbols(self) -> SymbolTable | None:
        """The table of output labels."""
        return self._osymbols

    @checked
    def set_input_symbols(self, table: SymbolTable | None) -> VectorFst:
        """Set the table of input labels (a copy), or remove it."""
        self._isymbols = None if table is None else table.copy()
        return self

    @checked
    def set_output_symbols(self, table: SymbolTable | None) -> VectorFst:
        """Set the table of output labels (a copy), or remove it."""
        self._osymbols = None if table is None else table.copy()
        return self

    # --- operations in place --------------------------------------------------------------------------

    @checked
    def arcsort(self, sort_type: str = "ilabel", *, budget: Budget | None = None) -> VectorFst:
        """Sort the arcs of each state by "ilabel" or "olabel", then by the other label."""
        by_output = chosen("arcsort: sort_type", sort_type, ("ilabel", "olabel")) == "olabel"
        self.core = self.core.arcsort(by_output, limits(budget))
        return self

    @checked
    def closure(self, closure_type: str = "star", *, budget: Budget | None = None) -> VectorFst:
        """Make the Kleene closure: "star" (any number of times) or "plus" (at least once)."""
        plus = chosen("closure: closure_type", closure_type, ("star", "plus")) == "plus"
        self.core = self.core.closure(plus, limits(budget))
        return self

    @checked
    def concat(self, fst2: VectorFst, *, budget: Budget | None = None) -> VectorFst:
        """Append another machine."""
        require_same("concat", self, fst2)
        tables = common_tables("concat", self, fst2)
        self.core = self.core.concat(fst2.core, limits(budget))
        return self.set_tables(tables)

    @checked
    def union(self, *fsts2: VectorFst, budget: Budget | None = None) -> VectorFst:
        """Add other machines as alternatives."""
        require_same("union", self, *fsts2)
        tables, core = common_tables("union", self, *fsts2), self.core
        for other in fsts2:
            core = core.union(other.core, limits(budget))
        self.core = core
        return self.set_tables(tables)

    @checked
    def connect(self, *, budget: Budget | None = None) -> VectorFst:
        """Delete states that are not on a path from the start to a final state."""
        self.core = self.core.connect(limits(budget))
        return self

    @checked
    def topsort(self, *, budget: Budget | None = None) -> VectorFst:
        """Sort the states topologically; a cyclic machine is unchanged."""
        self.core, _ = self.core.topsort(limits(budget))
        return self

    @checked
    def invert(self, *, budget: Budget | None = None) -> VectorFst:
        """Exchange input and output labels."""
        self.core = self.core.relabelled(0, limits(budget))
        self._isymbols, self._osymbols = self._osymbols, self._isymbols
        return self

    @checked
    def project(self, project_type: str, *, budget: Budget | None = None) -> VectorFst:
        """Make the acceptor of one side: "input" or "output"."""
        side = chosen("project: project_type", project_type, ("input", "output"))
        self.core = self.core.relabelled(1 if side == "input" else 2, limits(budget))
        table = self._isymbols if side == "input" else self._osymbols
        self._isymbols = self._osymbols = table
        return self

    @checked
    def minimize(
        self, delta: float = SHORTEST_DELTA, allow_nondet: bool = False, *, budget: Budget | None = None
    ) -> VectorFst:
        """Minimize a deterministic machine. Raises ``FstOpError`` for others, unless ``allow_nondet``.

        Weights that differ by less than ``delta`` count as equal, so the weight of a path may change by ``delta`` for
        each of its arcs.
        """
        self.core = self.core.minimize(positive("minimize: delta", delta), allow_nondet, limits(budget))
        return self

    @checked
    def prune(
        self, delta: float = DELTA, nstate: int = NO_STATE_ID, weight: Weight | str | float | None = None,
        *, budget: Budget | None = None,
    ) -> VectorFst:  # fmt: skip
        """Delete states and arcs that are on no path as good as the best one times ``weight``.

        ``weight``: by default, all paths are kept. ``nstate``: keep at most this number of states, those on the best
        paths.
        """
        threshold = kept("prune", self._kind, weight, nstate)
        if weight is not None or nstate != NO_STATE_ID:
            self.core = self.core.prune(*threshold, limits(budget))
        return self

    @checked
    def push(
        self, delta: float = SHORTEST_DELTA, remove_total_weight: bool = False,
        reweight_type: str = "to_initial", *, budget: Budget | None = None,
    ) -> VectorFst:  # fmt: skip
        """Push weights towards the start ("to_initial") or towards the final states ("to_final").

        ``remove_total_weight``: drop the total weight, which is otherwise kept there.
        """
        to_final = chosen("push: reweight_type", reweight_type, ("to_initial", "to_final")) == "to_final"
        delta = positive("push: delta", delta)
        self.core = self.core.push(True, False, to_final, remove_total_weight, False, delta, limits(budget))
        return self

    @checked
    def reweight(
        self, potentials: Iterable[Any], reweight_type: str = "to_initial", *, budget: Budget | None = None
    ) -> VectorFst:
        """Reweight by a potential for each state, such as the result of ``shortestdistance``; in the direction of
        ``push``.
        """
        to_final = chosen("reweight: reweight_type", reweight_type, ("to_initial", "to_final")) == "to_final"
        values = [number(each, self._kind, f"reweight: potential {at}") for at, each in enumerate(potentials)]
        self.core = self.core.reweight(np.array(values, np.float64), to_final, limits(budget))
        return self

    @checked
    def rmepsilon(
        self, queue_type: str = "auto", connect: bool = True, weight: Weight | str | float | None = None,
        nstate: int = NO_STATE_ID, delta: float = SHORTEST_DELTA, *, budget: Budget | None = None,
    ) -> VectorFst:  # fmt: skip
        """Remove epsilon arcs, then prune (``weight``, ``nstate``). ``connect``: whether unreachable states are
        removed.

        Raises ``FstOpError`` if the sum of an epsilon cycle diverges.
        """
        threshold = kept("rmepsilon", self._kind, weight, nstate)
        chosen("rmepsilon: queue_type", queue_type, QUEUE_TYPES)
        self.core = self.core.rmepsilon(
            connect, *threshold, positive("rmepsilon: delta", delta), limits(budget)
        )
        return self

    @checked
    def encode(self, mapper: EncodeMapper, *, budget: Budget | None = None) -> VectorFst:
        """Encode labels and weights as one label by ``mapper``, which records how to decode them."""
        return self._become(mapper.encoded(self, budget))

    @checked
    def decode(self, mapper: EncodeMapper, *, budget: Budget | None = None) -> VectorFst:
        """Decode the labels and weights that ``mapper`` encoded."""
        return self._become(mapper.decoded(self, budget))

    @checked
    def relabel_pairs(
        self, ipairs: Iterable[Any] | None = None, opairs: Iterable[Any] | None = None, *,
        budget: Budget | None = None,
    ) -> VectorFst:  # fmt: skip
        """Relabel inputs by ``ipairs`` and outputs by ``opairs``, pairs of an old and a new label. Labels without a
        pair are unchanged.
        """
        from tokenfst.automata.transducers.mapping import relabelled

        return self._become(relabelled(self, ipairs, opairs, budget))

    @checked
    def relabel_tables(
        self, old_isymbols: SymbolTable | None = None, new_isymbols: SymbolTable | None = None,
        unknown_isymbol: str = "", attach_new_isymbols: bool = True, old_osymbols: SymbolTable | None = None,
        new_osymbols: SymbolTable | None = None, unknown_osymbol: str = "", attach_new_osymbols: bool = True, *,
        budget: Budget | None = None,
    ) -> VectorFst:  # fmt: skip
        """Relabel to the labels that the same symbols have in other tables.

        The old tables are by default those of the machine. ``unknown_isymbol``, ``unknown_osymbol``: symbols that
        replace those missing in the new tables; without them, missing symbols raise ``FstOpError``.
        ``attach_new_isymbols``, ``attach_new_osymbols``: whether the machine gets the new tables.
        """
        from tokenfst.automata.transducers.mapping import table_pairs

        if new_isymbols is None and new_osymbols is None:
            raise FstArgError("relabel_tables: no new table is given")
        pairs = [
            table_pairs(side, old or own, new, unknown)
            for side, own, old, new, unknown in (
                ("input", self._isymbols, old_isymbols, new_isymbols, unknown_isymbol),
                ("output", self._osymbols, old_osymbols, new_osymbols, unknown_osymbol),
            )
        ]
        self.relabel_pairs(*pairs, budget=budget)
        if new_isymbols is not None and attach_new_isymbols:
            self.set_input_symbols(new_isymbols)
        if new_osymbols is not None and attach_new_osymbols:
            self.set_output_symbols(new_osymbols)
        return self

    def _become(self, other: VectorFst) -> VectorFst:
        self.core = other.core
        return self.set_tables(other.tables)

    # --- files and text -------------------------------------------------------------------------------

    @classmethod
    def read(cls, source: str | os.PathLike[str], *, budget: Budget | None = None) -> VectorFst:
        """The machine in an OpenFst file (vector or const). ``FstIOError``, ``OSError``."""
        from tokenfst.automata.transducers.files import read

        return read(source, budget=budget)

    @classmethod
    def read_from_string(cls, state: bytes, *, budget: Budget | None = None) -> VectorFst:
        """The machine in the bytes of an OpenFst file."""
        from tokenfst.automata.transducers.files import from_bytes

        return from_bytes(state, budget=budget)

    def write(self, source: str | os.PathLike[str], fst_type: Literal["vector", "const"] = "vector") -> None:
        """Write an OpenFst file of type "vector" or "const"."""
        from tokenfst.automata.transducers.files import write

        write(self, source, fst_type)

    def write_to_string(self, fst_type: Literal["vector", "const"] = "vector") -> bytes:
        """The bytes of an OpenFst file."""
        from tokenfst.automata.transducers.files import to_bytes

        return to_bytes(self, fst_type)

    def print(
        self, isymbols: SymbolTable | None = None, osymbols: SymbolTable | None = None,
        ssymbols: SymbolTable | None = None, acceptor: bool = False, show_weight_one: bool = False,
        missing_sym: str = "",
    ) -> str:  # fmt: skip
        """The machine as AT&T text; reading it restores weights exactly."""
        from tokenfst.automata.transducers.text import print_fst

        return print_fst(self, isymbols, osymbols, ssymbols, acceptor, show_weight_one, missing_sym)

    @checked
    def draw(
        self, source: str | os.PathLike[str] | None = None, isymbols: SymbolTable | None = None,
        osymbols: SymbolTable | None = None, ssymbols: SymbolTable | None = None, acceptor: bool = False,
        title: str = "", width: float = 8.5, height: float = 11, portrait: bool = False, vertical: bool = False,
        ranksep: float = 0.4, nodesep: float = 0.25, fontsize: int = 14, precision: int = 5,
        float_format: str = "g", show_weight_one: bool = False, *, max_states: int = 200, format: str | None = None,
    ) -> Drawing:  # fmt: skip
        """A picture; with ``source`` also a file. Its Graphviz text is identical to OpenFst's.

        ``format``: ``"svg"``, ``"png"``, ``"html"`` or ``"dot"`` (the text); by default, the ending of ``source``
        decides. Raises ``FstIOError`` for a label that is missing in a table; ``DrawingError`` for more than
        ``max_states`` states, and for another ending.
        """
        from tokenfst.automata.transducers.pictures import drawn

        tables = isymbols or self._isymbols, osymbols or self._osymbols, ssymbols
        made = drawn(
            self, tables, acceptor, title, width, height, portrait, vertical, ranksep, nodesep, fontsize,
            precision, float_format, show_weight_one, max_states,
        )  # fmt: skip
        if source is not None:
            made.save(source, format)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return VectorFst.read_from_string, (self.write_to_string(),)
