"""Operations that make a new machine, or answer a question, under pywrapfst's names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.arguments import checked
from tokenfst.automata.transducer_operations.counting import counted
from tokenfst.automata.transducers.arcs import require_same, require_same_tables, require_table
from tokenfst.automata.transducers.checks import (
    DELTA,
    NO_LABEL,
    NO_STATE_ID,
    QUEUE_TYPES,
    SHORTEST_DELTA,
    chosen,
    kept,
    limits,
    positive,
    special,
)
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import Weight
from tokenfst.budget import Budget
from tokenfst.errors import FstArgError, FstOpError

FILTERS = {"null": 0, "trivial": 1, "sequence": 2, "auto": 2, "alt_sequence": 3, "match": 4, "no_match": 5}
DET_TYPES = {"functional": 1, "nonfunctional": 2, "disambiguate": 3}
_ACCEPTOR, _UNWEIGHTED, _NO_EPSILONS, _I_DETERMINISTIC = 0x10000, 0x200000000, 0x800000, 0x40000
_LONGEST = 2**31 - 1


@checked
def compose(
    ifst1: VectorFst, ifst2: VectorFst, compose_filter: str = "auto", connect: bool = True, *,
    phi_label: int = NO_LABEL, rho_label: int = NO_LABEL, sigma_label: int = NO_LABEL, match_type: str = "input",
    rewrite_mode: str = "auto", phi_loop: bool = True, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """What the first maps x to, and the second that to z: x to z. Neither needs to be sorted; it is quicker if
    one is.

    One label may be special, as OpenFst's matchers have it, on the inputs of the second machine, or with
    ``match_type="output"`` on the outputs of the first: ``sigma_label`` matches every label, ``rho_label`` every label
    for which the state has no arc, ``phi_label`` leads where such a label is looked for next, without reading it.
    ``rewrite_mode``: whether what was matched is written on both sides of the arc ("always"), on the side that was
    matched ("never"), or on both if that machine is an acceptor ("auto"). ``phi_loop``: a phi arc to its own state
    reads.

    ``FstOpError`` for two semirings. Pairs of states at worst, each with the product of matching arcs.
    """
    require_same("compose", ifst1, ifst2)
    require_table("compose", "middle", ifst1.output_symbols(), ifst2.input_symbols())
    chosen("compose: compose_filter", compose_filter, FILTERS)
    looked_up = ifst1 if match_type == "output" else ifst2
    given = special(
        phi_label, rho_label, sigma_label, match_type, rewrite_mode, phi_loop,
        lambda: is_acceptor(looked_up),
    )  # fmt: skip
    tables = ifst1.input_symbols(), ifst2.output_symbols()
    if not given[0]:
        made = ifst1.core.compose(ifst2.core, FILTERS[compose_filter], connect, limits(budget))
        return VectorFst.of_core(ifst1.kind, made, tables)
    lazy = ifst1.kind.lazy
    pairs = lazy.compose(lazy.of(ifst1.core), lazy.of(ifst2.core), FILTERS[compose_filter], *given, 0)
    found = VectorFst.of_core(ifst1.kind, pairs.expanded(limits(budget)), tables)
    return found.connect(budget=budget) if connect else found


@checked
def intersect(
    ifst1: VectorFst, ifst2: VectorFst, compose_filter: str = "auto", connect: bool = True, *,
    budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """The words of both acceptors, with the products of their weights. ``FstOpError`` for transducers."""
    for which, each in (("first", ifst1), ("second", ifst2)):
        _require_acceptor("intersect", which, each)
    return compose(ifst1, ifst2, compose_filter, connect, budget=budget)


@checked
def difference(
    ifst1: VectorFst, ifst2: VectorFst, compose_filter: str = "auto", connect: bool = True, *,
    budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """The words of the first acceptor that the second does not have, with their weights.

    The second must be an unweighted acceptor (``FstOpError``). Where it is not deterministic or has epsilons,
    it is made so first, which may be exponential.
    """
    require_same("difference", ifst1, ifst2)
    require_same_tables("difference", ifst1, ifst2)
    chosen("difference: compose_filter", compose_filter, FILTERS)
    _require_acceptor("difference", "first", ifst1)
    second = to_subtract(ifst2, budget)
    if second.start() < 0:
        return ifst1.copy().connect(budget=budget) if connect else ifst1.copy()
    return ifst1.like(ifst1.core.difference(second.core, connect, limits(budget)))


@checked
def determinize(
    ifst: VectorFst, delta: float = SHORTEST_DELTA, det_type: str = "functional", nstate: int = NO_STATE_ID,
    subsequential_label: int = 0, weight: Weight | str | float | None = None,
    increment_subsequential_label: bool = False, *, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """An equivalent machine with at most one arc for each input label in a state. Epsilon counts as a label.

    ``det_type`` says what becomes of an input with several outputs: "functional" refuses it (``FstOpError``),
    "nonfunctional" keeps all, "disambiguate" the best. Weights that differ by less than ``delta`` count as equal, so
    that the weight of a path may move by ``delta`` for each of its arcs. Exponential at worst, and endless for some
    weighted machines: ``BudgetExceeded``. ``weight`` and ``nstate`` prune as ``prune`` does; of an acceptor no state is
    made that is not kept. With ``increment_subsequential_label`` each further output behind an input has the next
    label.
    """
    threshold = kept("determinize", ifst.kind, weight, nstate)
    kind = DET_TYPES[chosen("determinize: det_type", det_type, DET_TYPES)]
    outputs = 0 if is_acceptor(ifst) else kind
    delta = positive("determinize: delta", delta)
    made = ifst.core.determinize(
        outputs, subsequential_label, increment_subsequential_label, *threshold, delta, limits(budget)
    )
    return ifst.like(made)


@checked
def disambiguate(
    ifst: VectorFst, delta: float = DELTA, nstate: int = NO_STATE_ID, subsequential_label: int = 0,
    weight: Weight | str | float | None = None, *, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """An equivalent machine in which no two paths read the same input; each carries the sum of all that did. Epsilon
    counts as a label. Then pruned (``weight``, ``nstate``).

    Unlike ``determinize`` it leaves apart what has no continuation in common, so it ends for more machines.
    ``FstOpError`` for an input with two outputs. Exponential at worst.
    """
    threshold = kept("disambiguate", ifst.kind, weight, nstate)
    delta = positive("disambiguate: delta", delta)
    made = ifst.like(ifst.core.disambiguate(subsequential_label, delta, limits(budget)))
    if weight is not None or nstate != NO_STATE_ID:
        made.core = made.core.prune(*threshold, limits(budget))
    return made


@checked
def push(
    ifst: VectorFst, delta: float = DELTA, push_weights: bool = False, push_labels: bool = False,
    remove_common_affix: bool = False, remove_total_weight: bool = False, reweight_type: str = "to_initial", *,
    budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """Weights, outputs or both moved towards the start ("to_initial") or acceptance ("to_final"); the same
    meaning."""
    to_final = chosen("push: reweight_type", reweight_type, ("to_initial", "to_final")) == "to_final"
    made = ifst.core.push(
        push_weights, push_labels, to_final, remove_total_weight, remove_common_affix,
        positive("push: delta", delta), limits(budget),
    )  # fmt: skip
    return ifst.like(made)


@checked
def prune(
    ifst: VectorFst, delta: float = DELTA, nstate: int = NO_STATE_ID,
    weight: Weight | str | float | None = None, *, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """Without what lies on no path as good as the best one times ``weight``, and (``nstate``) with that many states at
    most: those on the best paths. Needs a semiring that chooses."""
    return ifst.copy().prune(delta, nstate, weight, budget=budget)


@checked
def reverse(ifst: VectorFst, require_superinitial: bool = True, *, budget: Budget | None = None) -> VectorFst:
    """Every path from its end to its beginning."""
    return ifst.like(ifst.core.reverse(require_superinitial, limits(budget)))


@checked
def shortestdistance(
    ifst: VectorFst, delta: float = SHORTEST_DELTA, nstate: int = NO_STATE_ID, queue_type: str = "auto",
    reverse: bool = False, *, budget: Budget | None = None,
) -> npt.NDArray[Any]:  # fmt: skip
    """The sum of the weights of all paths from the start to each state, or (``reverse``) from it to acceptance.

    An array with a number for each state, where pywrapfst has a list of weights. ``nstate`` is the state to begin at,
    as it is in pywrapfst, if it is not the start. ``FstOpError`` where a sum diverges.
    """
    if nstate != NO_STATE_ID and not reverse:
        ifst = ifst.copy().set_start(nstate)
    chosen("shortestdistance: queue_type", queue_type, QUEUE_TYPES)
    found: npt.NDArray[Any] = ifst.core.shortestdistance(
        reverse, positive("shortestdistance: delta", delta), limits(budget)
    )
    return found


@checked
def shortestpath(
    ifst: VectorFst, delta: float = SHORTEST_DELTA, nshortest: int = 1, nstate: int = NO_STATE_ID,
    queue_type: str = "auto", unique: bool = False, weight: Weight | str | float | None = None, *,
    budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """The ``nshortest`` best paths as a tree; with ``unique``, of an acceptor, the best path of each of the
    best words.

    ``weight``: none that is worse than the best one times it; ``nstate``: the search makes about that many states and
    then ends. Needs a semiring that chooses (``FstOpError``).
    """
    threshold = kept("shortestpath", ifst.kind, weight, nstate)
    chosen("shortestpath: queue_type", queue_type, QUEUE_TYPES)
    if nshortest < 1:
        raise FstArgError(f"shortestpath: nshortest must be at least 1, not {nshortest}")
    if unique:
        _require_acceptor("shortestpath(unique=True)", "given", ifst)
    delta = positive("shortestpath: delta", delta)
    return ifst.like(ifst.core.shortestpath(nshortest, unique, *threshold, delta, limits(budget)))


@checked
def randgen(
    ifst: VectorFst, npath: int = 1, seed: int = 0, select: str = "uniform", max_length: int = _LONGEST,
    weighted: bool = False, remove_total_weight: bool = False, *, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """``npath`` paths at random; the same seed gives the same paths. ``select``: "uniform" (each arc of a
    state is as likely) or "log_prob" (by weights as negative logarithms of probabilities).

    ``weighted``: as a tree in which each path weighs how often it was drawn, as a negative logarithm (``real``: the
    number); with ``remove_total_weight`` its share. ``FstOpError`` in semirings that know no such weights."""
    by_weight = chosen("randgen: select", select, ("uniform", "log_prob")) == "log_prob"
    if npath < 0 or max_length < 0 or seed < 0:
        raise FstArgError("randgen: npath, max_length and seed must not be negative")
    made = ifst.like(ifst.core.randgen(npath, seed, by_weight, max_length, limits(budget)))
    return counted(made, 1 if remove_total_weight else npath, budget) if weighted else made


@checked
def synchronize(ifst: VectorFst, *, budget: Budget | None = None) -> VectorFst:
    """An equivalent machine that reads and writes a label at once as long as it can.

    Where a cycle reads more than it writes, or less, there is none: ``BudgetExceeded``.
    """
    return ifst.like(ifst.core.synchronize(limits(budget)))


@checked
def epsnormalize(ifst: VectorFst, eps_norm_type: str = "input", *, budget: Budget | None = None) -> VectorFst:
    """An equivalent machine without epsilons on both sides, whose arcs that read nothing ("output": write
    nothing) carry only what one label maps to beyond its first, or what stands behind all that is read.

    ``FstOpError`` where a cycle reads nothing and writes.
    """
    side = chosen("epsnormalize: eps_norm_type", eps_norm_type, ("input", "output"))
    if side == "output":
        return epsnormalize(ifst.copy().invert(), budget=budget).invert()
    return ifst.like(ifst.core.epsnormalize(SHORTEST_DELTA, limits(budget)))


# --- questions ----------------------------------------------------------------------------------------


@checked
def equal(ifst1: VectorFst, ifst2: VectorFst, delta: float = DELTA) -> bool:
    """Whether both have the same states and arcs in the same order, with weights within ``delta``."""
    require_same("equal", ifst1, ifst2)
    return bool(ifst1.core.equal(ifst2.core, delta))


@checked
def isomorphic(
    ifst1: VectorFst, ifst2: VectorFst, delta: float = DELTA, *, budget: Budget | None = None
) -> bool:
    """Whether both are equal but for the numbers of states and the order of arcs."""
    require_same("isomorphic", ifst1, ifst2)
    return bool(ifst1.core.isomorphic(ifst2.core, positive("isomorphic: delta", delta), limits(budget)))


@checked
def equivalent(
    ifst1: VectorFst, ifst2: VectorFst, delta: float = DELTA, *, budget: Budget | None = None
) -> bool:
    """Whether two deterministic acceptors without epsilons give the same weights to the same words.
    ``FstOpError`` for others: ``rmepsilon`` and ``determinize`` them first."""
    require_same("equivalent", ifst1, ifst2)
    return bool(ifst1.core.equivalent(ifst2.core, positive("equivalent: delta", delta), limits(budget)))


@checked
def randequivalent(
    ifst1: VectorFst, ifst2: VectorFst, npath: int = 1, delta: float = DELTA, seed: int = 0,
    select: str = "uniform", max_length: int = _LONGEST, *, budget: Budget | None = None,
) -> bool:  # fmt: skip
    """Whether both give the same weights to the inputs and outputs of ``npath`` random paths of either."""
    kind = require_same("randequivalent", ifst1, ifst2)
    for at in range(npath):
        source = (ifst1, ifst2)[at % 2]
        path = randgen(source, 1, seed + at, select, max_length, budget=budget)
        if path.start() < 0:
            continue
        inputs, outputs = path.copy().project("input"), path.copy().project("output")
        sums = []
        for each in (ifst1, ifst2):
            through = compose(compose(inputs, each, budget=budget), outputs, budget=budget)
            distance = shortestdistance(through, delta=1e-9, reverse=True, budget=budget)
            sums.append(float(distance[through.start()]) if through.start() >= 0 else kind.core.zero())
        if sums[0] != sums[1] and not abs(sums[0] - sums[1]) <= delta:
            return False
    return True


def is_acceptor(fst: VectorFst) -> bool:
    """Whether input and output are the same on every arc."""
    return bool(fst.properties(_ACCEPTOR))


def to_subtract(ifst2: VectorFst, budget: Budget | None) -> VectorFst:
    """What ``difference`` takes away: an unweighted acceptor, deterministic and sorted. ``FstOpError``."""
    _require_acceptor("difference", "second", ifst2)
    if not ifst2.properties(_UNWEIGHTED):
        raise FstOpError(
            'difference: the second machine has weights: drop them with arcmap(map_type="rmweight")'
        )
    wanted = _NO_EPSILONS | _I_DETERMINISTIC
    second = ifst2
    if ifst2.properties(wanted) != wanted:
        second = words_of(ifst2, budget)
    return second.copy().arcsort(budget=budget)


def words_of(fst: VectorFst, budget: Budget | None) -> VectorFst:
    """The deterministic acceptor, without epsilons, of an acceptor's words, each with weight One."""
    plain = _over_booleans(fst, budget)
    plain = determinize(plain.rmepsilon(budget=budget), budget=budget)
    return _with_weight_one(plain, fst, budget)


# --- details ------------------------------------------------------------------------------------------


def _require_acceptor(call: str, which: str, fst: VectorFst) -> None:
    if not is_acceptor(fst):
        raise FstOpError(
            f"{call}: the {which} machine is a transducer, and an acceptor is due: project it first"
        )


def _over_booleans(fst: VectorFst, budget: Budget | None) -> VectorFst:
    finals, counts, ilabels, olabels, weights, nexts = fst.arrays()
    zero = fst.kind.core.zero()
    made = VectorFst("boolean")
    core = made.kind.core.from_arrays(
        fst.start(), (finals != zero).astype(np.uint8), counts, ilabels, olabels,
        (weights != zero).astype(np.uint8), nexts, limits(budget),
    )  # fmt: skip
    return VectorFst.of_core(made.kind, core)


def _with_weight_one(plain: VectorFst, model: VectorFst, budget: Budget | None) -> VectorFst:
    finals, counts, ilabels, olabels, weights, nexts = plain.arrays()
    core, dtype = model.kind.core, model.kind.dtype
    made = core.from_arrays(
        plain.start(), np.where(finals, core.one(), core.zero()).astype(dtype), counts, ilabels, olabels,
        np.full(len(weights), core.one(), dtype), nexts, limits(budget),
    )  # fmt: skip
    return model.like(made)
