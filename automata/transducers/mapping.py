"""Operations arc by arc: ``arcmap``, ``statemap``, encoding, relabelling. All work on arrays in linear time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.automata.transducers.checks import DELTA, chosen, limits, positive
from tokenfst.automata.transducers.growth import Growth
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import ArcType, Weight, arc_type_named, number
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import FstArgError, FstBadWeightError, FstOpError

_Ints = npt.NDArray[np.int32]
_MAP_TYPES = (
    "identity", "input_epsilon", "invert", "output_epsilon", "plus", "power", "quantize", "rmweight", "superfinal",
    "times", "to_log", "to_log64", "to_std",
)  # fmt: skip
_COSTS = ("standard", "tropical64", "log", "log64")
"""Arc types whose weights are negative logarithms, so that conversion keeps the numbers."""


def rebuilt(
    fst: VectorFst, *, arc_type: str | None = None, finals: Any = None, ilabels: Any = None, olabels: Any = None,
    weights: Any = None, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """The machine with other weights, other labels or another semiring."""
    kind = arc_type_named(arc_type or fst.arc_type())
    parts = fst.arrays()
    finals = parts[0] if finals is None else finals
    weights = parts[4] if weights is None else weights
    labels = [
        np.ascontiguousarray(own if given is None else given, np.int32)
        for own, given in ((parts[2], ilabels), (parts[3], olabels))
    ]
    core = kind.core.from_arrays(
        fst.start(), np.ascontiguousarray(finals, kind.dtype), parts[1], *labels,
        np.ascontiguousarray(weights, kind.dtype), parts[5], limits(budget),
    )  # fmt: skip
    return VectorFst.of_core(kind, core, fst.tables)


@checked
def arcmap(
    ifst: VectorFst, delta: float = DELTA, map_type: str = "identity", power: float = 1.0,
    weight: Weight | str | float | None = None, *, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """The machine with every arc and final weight mapped. Zero stays Zero.

    ``map_type``: "identity"; "input_epsilon" and "output_epsilon" replace the labels of one side by epsilon; "rmweight"
    replaces weights by One; "plus" and "times" combine them with ``weight``; "power" takes the power ``power``;
    "invert" takes inverses; "quantize" rounds to multiples of ``delta``; "superfinal" makes a single final state of
    weight One; "to_std", "to_log" and "to_log64" change the semiring. Raises ``FstOpError`` for maps without meaning in
    the semiring.
    """
    chosen("arcmap: map_type", map_type, _MAP_TYPES)
    if map_type in ("to_std", "to_log", "to_log64"):
        return _to(ifst, {"to_std": "standard"}.get(map_type, map_type.removeprefix("to_")), budget)
    if map_type == "superfinal":
        return _superfinal(ifst, budget)
    finals, _, ilabels, olabels, weights, _ = ifst.arrays()
    if map_type == "input_epsilon":
        return rebuilt(ifst, ilabels=np.zeros_like(ilabels), budget=budget)
    if map_type == "output_epsilon":
        return rebuilt(ifst, olabels=np.zeros_like(olabels), budget=budget)
    function = _weight_map(ifst, map_type, delta, power, weight)
    return rebuilt(ifst, finals=function(finals), weights=function(weights), budget=budget)


def _weight_map(fst: VectorFst, map_type: str, delta: float, power: float, weight: Any) -> Any:
    """A function of arrays of weights. Zero stays Zero."""
    core, name, dtype = fst.kind.core, fst.arc_type(), fst.kind.dtype
    zero, one = core.zero(), core.one()
    if map_type == "identity":
        return lambda values: values
    if map_type == "rmweight":
        return lambda values: np.where(values == zero, zero, one).astype(dtype)
    if map_type in ("plus", "times"):
        default = zero if map_type == "plus" else one
        value = default if weight is None else number(weight, fst.kind, f"arcmap: {map_type}")
        operation = getattr(core, map_type)

        def combine(values: Any) -> Any:
            distinct, place = np.unique(values, return_inverse=True)
            new = [zero if each == zero else operation(float(each), value) for each in distinct]
            return np.array(new, dtype)[place]

        return combine if weight is not None else lambda values: values
    if map_type == "quantize":
        positive("arcmap: delta", delta)
        return lambda values: np.where(
            np.isfinite(values), np.floor(values / delta + 0.5) * delta, values
        ).astype(dtype)
    if name in ("minmax", "minmax64", "boolean"):
        raise FstOpError(f"arcmap: {map_type} has no meaning in the semiring {fst.weight_type()!r}")
    if map_type == "power":
        if not power > 0 or power == float("inf"):
            raise FstArgError(f"arcmap: power must be more than 0 and finite, not {power!r}")

        def raised(values: Any) -> Any:
            with np.errstate(over="ignore", under="ignore"):
                made = (values * power if name in _COSTS else values**power).astype(dtype)
            _refuse_lost("arcmap: power", values, made, fst.kind, fst.kind)
            return made

        return raised

    def inverted(values: Any) -> Any:
        if name in _COSTS:
            return np.where(values == zero, zero, -values)
        with np.errstate(over="ignore"):
            return np.where(values == zero, zero, 1 / np.where(values == zero, 1, values))

    return inverted


def _to(fst: VectorFst, arc_type: str, budget: Budget | None) -> VectorFst:
    if fst.arc_type() not in _COSTS:
        raise FstOpError(
            f"arcmap: weights of the semiring {fst.weight_type()!r} are no negative logarithms: convert(fst, arc_type) "
            "says what becomes of them"
        )
    return convert(fst, arc_type, budget=budget)


@checked
def convert(ifst: VectorFst, arc_type: str, *, budget: Budget | None = None) -> VectorFst:
    """The machine over another semiring.

    Costs keep their numbers; probabilities become negative logarithms and vice versa; for "boolean" only Zero or not
    Zero matters. Raises ``FstOpError`` from and to min-max, except for "boolean"; ``FstBadWeightError`` if the new arcs
    cannot represent a weight, as a probability that is too small.
    """
    new = arc_type_named(arc_type)
    if arc_type == ifst.arc_type():
        return ifst.copy()
    mine, its = (("minmax" in name) - ("boolean" in name) for name in (ifst.arc_type(), arc_type))
    if mine != its and max(mine, its) > 0 and min(mine, its) == 0:
        raise FstOpError(
            f"convert: {ifst.arc_type()!r} and {arc_type!r} have no common meaning: One is minus infinity in min-max"
        )
    finals, _, _, _, weights, _ = ifst.arrays()
    zero = ifst.kind.core.zero()
    real = {"real", "real64"}

    def mapped(values: Any) -> Any:
        wide = values.astype(np.float64)
        if arc_type == "boolean":
            return wide != zero
        if ifst.arc_type() == "boolean":
            return np.where(wide == zero, new.core.zero(), new.core.one())
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            if ifst.arc_type() in real and arc_type not in real:
                wide = -np.log(wide)
            elif arc_type in real and ifst.arc_type() not in real:
                wide = np.exp(-wide)
            made = wide.astype(new.dtype)
        _refuse_lost("convert", values, made, ifst.kind, new)
        return made

    return rebuilt(ifst, arc_type=arc_type, finals=mapped(finals), weights=mapped(weights), budget=budget)


def _refuse_lost(call: str, old: Any, new: Any, kind: ArcType, new_kind: ArcType) -> None:
    """Raise ``FstBadWeightError`` for a finite weight that became Zero or infinite."""
    lost = np.isfinite(old) & (old != kind.core.zero()) & (~np.isfinite(new) | (new == new_kind.core.zero()))
    if lost.any():
        weight = float(old[lost][0])
        raise FstBadWeightError(
            f"{call}: the weight {weight!r} does not fit into arcs of type {new_kind.name!r}"
        )


def _superfinal(fst: VectorFst, budget: Budget | None) -> VectorFst:
    """One final state, with weight One and no arcs; epsilons with the final weights lead to it."""
    core, made = fst.kind.core, fst.copy()
    finals = [state for state in fst.states() if fst.core.final(state) != core.zero()]
    if not finals or (
        len(finals) == 1 and fst.core.final(finals[0]) == core.one() and fst.num_arcs(finals[0]) == 0
    ):
        return made
    growth, end = Growth(budget, "arcmap"), made.add_state()
    for state in finals:
        growth.grown(made)
        made.core.add_arc(state, 0, 0, fst.core.final(state), end)
        made.core.set_final(state, core.zero())
    return made.set_final(end)


@checked
def statemap(ifst: VectorFst, map_type: str, *, budget: Budget | None = None) -> VectorFst:
    """The machine with the arcs of each state merged.

    "arc_sum": arcs with the same labels and target become one, with the sum of their weights; "arc_unique": identical
    arcs become one; "identity": unchanged. The result is sorted by (input, output, target).
    """
    chosen("statemap: map_type", map_type, ("identity", "arc_sum", "arc_unique"))
    if map_type == "identity":
        return ifst.copy()
    made = (
        VectorFst(ifst.arc_type())
        .set_input_symbols(ifst.input_symbols())
        .set_output_symbols(ifst.output_symbols())
    )
    made.add_states(ifst.num_states())
    plus, growth = ifst.kind.core.plus, Growth(budget, "statemap")
    for state in ifst.states():
        growth.grown(made)
        kept: dict[tuple[int, ...], float] = {}
        for ilabel, olabel, weight, target in sorted(
            ifst.core.arcs(state), key=lambda arc: (arc[0], arc[1], arc[3], arc[2])
        ):
            key: tuple[Any, ...] = (ilabel, olabel, target)
            if map_type == "arc_unique":
                key = (*key, weight)
            kept[key] = plus(kept[key], weight) if key in kept and map_type == "arc_sum" else weight
        for key, weight in kept.items():
            made.core.add_arc(state, key[0], key[1], weight, key[2])
        made.core.set_final(state, ifst.core.final(state))
    return made if ifst.start() < 0 else made.set_start(ifst.start())


# --- encoding -----------------------------------------------------------------------------------------


class EncodeMapper:
    """An encoding of (input, output), (input, weight) or all three as one label, and its inverse.

    The table grows with each machine; label k is entry k - 1. If weights are encoded, final weights become arcs to a
    new state. Epsilon arcs of weight One keep label 0.
    """

    @checked
    def __init__(
        self, arc_type: str = "standard", encode_labels: bool = False, encode_weights: bool = False
    ) -> None:
        self._kind = arc_type_named(arc_type)
        self._labels, self._weights = encode_labels, encode_weights
        self._codes: dict[tuple[int, int, float], int] = {}
        self._tables: tuple[SymbolTable | None, SymbolTable | None] = None, None

    def arc_type(self) -> str:
        """The arc type of the encoded machines."""
        return self._kind.name

    def weight_type(self) -> str:
        """The name of their semiring."""
        return self._kind.weight_type

    def _check(self, call: str, fst: VectorFst) -> None:
        if fst.kind is not self._kind:
            raise FstOpError(
                f"{call}: the mapper is for arcs of type {self._kind.name!r}, and the machine has {fst.arc_type()!r}"
            )

    def encoded(self, fst: VectorFst, budget: Budget | None = None) -> VectorFst:
        """The result of ``VectorFst.encode``."""
        self._check("encode", fst)
        one, zero = self._kind.core.one(), self._kind.core.zero()
        self._tables = fst.tables
        finals, _, ilabels, olabels, weights, _ = fst.arrays()
        codes = self._codes_of(ilabels, olabels, weights)
        made = rebuilt(
            fst,
            finals=np.where((finals == zero) | (finals == one), finals, zero) if self._weights else finals,
            ilabels=codes,
            olabels=codes if self._labels else olabels,
            weights=np.full_like(weights, one) if self._weights else weights,
            budget=budget,
        ).set_tables((None, None))
        moved = np.flatnonzero((finals != zero) & (finals != one) & self._weights)
        if len(moved):
            nothing = np.zeros(len(moved), np.int32)
            end, growth = made.add_state(), Growth(budget, "encode")
            made.set_final(end)
            labels = self._codes_of(nothing, nothing, finals[moved])
            for state, code in zip(moved.tolist(), labels.tolist(), strict=True):
                made.core.add_arc(state, code, code if self._labels else 0, one, end)
                growth.grown(made, 1)
        return made

    def _codes_of(self, ilabels: _Ints, olabels: _Ints, weights: Any) -> _Ints:
        """The label of each arc; new ones in the order of the arcs that need them."""
        one = self._kind.core.one()
        wide = ilabels.astype(np.int64) << 32
        if self._labels:
            wide |= olabels
        values = weights if self._weights else np.full_like(weights, one)
        pairs, place = np.unique(wide, return_inverse=True)
        numbers, which = np.unique(values, return_inverse=True)
        both, first, inverse = np.unique(
            place.astype(np.int64) * len(numbers) + which, return_index=True, return_inverse=True
        )
        labels = np.zeros(len(both), np.int32)
        for at in np.argsort(first).tolist():
            arc = int(first[at])
            pair, weight = int(pairs[place[arc]]), float(numbers[which[arc]])
            ilabel, olabel = pair >> 32, pair & 0xFFFFFFFF
            if ilabel or int(olabels[arc]) or weight != one:
                labels[at] = self._codes.setdefault((ilabel, olabel, weight), len(self._codes) + 1)
        return labels[inverse].astype(np.int32)

    def decoded(self, fst: VectorFst, budget: Budget | None = None) -> VectorFst:
        """The result of ``VectorFst.decode``. Raises ``FstOpError`` for labels that were never encoded."""
        self._check("decode", fst)
        entries = list(self._codes)
        _, _, ilabels, olabels, weights, _ = fst.arrays()
        if int(ilabels.max(initial=0)) > len(entries):
            raise FstOpError(
                f"decode: label {ilabels.max()} was not encoded by this mapper, which knows {len(entries)}"
            )
        one = self._kind.core.one()
        table = np.array([(0, 0), *((i, o) for i, o, _ in entries)], np.int32)
        values = np.array([one, *(w for _, _, w in entries)], np.float64)
        made = rebuilt(
            fst,
            ilabels=table[ilabels, 0],
            olabels=table[ilabels, 1] if self._labels else olabels,
            weights=np.where(ilabels > 0, values[ilabels], weights) if self._weights else weights,
            budget=budget,
        )
        return VectorFst.of_core(made.kind, made.core, self._tables)


@checked
def encode(ifst: VectorFst, mapper: EncodeMapper, *, budget: Budget | None = None) -> VectorFst:
    """The machine with labels and weights encoded as one label."""
    return mapper.encoded(ifst, budget)


@checked
def decode(ifst: VectorFst, mapper: EncodeMapper, *, budget: Budget | None = None) -> VectorFst:
    """The machine with the labels and weights that ``mapper`` encoded."""
    return mapper.decoded(ifst, budget)


# --- labels -------------------------------------------------------------------------------------------


def relabelled(
    fst: VectorFst, ipairs: Iterable[Any] | None, opairs: Iterable[Any] | None, budget: Budget | None = None
) -> VectorFst:
    """The result of ``VectorFst.relabel_pairs``."""
    if ipairs is None and opairs is None:
        raise FstArgError("relabel_pairs: neither ipairs nor opairs is given")
    _, _, ilabels, olabels, _, _ = fst.arrays()
    return rebuilt(
        fst,
        ilabels=_mapped("ipairs", ilabels, ipairs),
        olabels=_mapped("opairs", olabels, opairs),
        budget=budget,
    )


def _mapped(name: str, labels: _Ints, pairs: Iterable[Any] | None) -> _Ints:
    if pairs is None:
        return labels
    new: dict[int, int] = {}
    for at, pair in enumerate(pairs):
        try:
            old, label = map(int, pair)
        except (TypeError, ValueError):
            raise FstArgError(f"relabel_pairs: {name}[{at}] is not a pair of labels: {pair!r:.60}") from None
        if min(old, label) < 0 or max(old, label) > 2**31 - 1:
            raise FstArgError(
                f"relabel_pairs: {name}[{at}] has a label that is not from 0 to 2^31 - 1: {pair!r}"
            )
        if new.setdefault(old, label) != label:
            raise FstArgError(f"relabel_pairs: {name}[{at}] gives label {old} a second new label")
    distinct, place = np.unique(labels, return_inverse=True)
    return np.array([new.get(each, each) for each in distinct.tolist()], np.int32)[place].astype(np.int32)


def table_pairs(
    side: str, old: SymbolTable | None, new: SymbolTable | None, unknown: str
) -> list[tuple[int, int]] | None:
    """The labels of each symbol in the old and in the new table; ``unknown``: the symbol that replaces missing ones."""
    if new is None:
        return None
    if old is None:
        raise FstArgError(f"relabel_tables: there is no old table of {side} labels, and the machine has none")
    if unknown and not new.member(unknown):
        raise FstOpError(f"relabel_tables: the unknown symbol {unknown!r} is not in the new table")
    pairs = []
    for label, symbol in old:
        if not new.member(symbol) and not unknown:
            raise FstOpError(f"relabel_tables: the new table of {side} labels lacks {symbol!r}")
        pairs.append((label, int(new.find(symbol if new.member(symbol) else unknown))))
    return pairs
