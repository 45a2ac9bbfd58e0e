"""Operations that construct a new machine or answer a query, under pywrapfst's names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.automata.transducer_operations.counting import counted
from tokenfst.automata.transducers.arcs import require_same
from tokenfst.automata.transducers.byte_labels import common_tables, require_middle
from tokenfst.automata.transducers.checks import (
    DELTA,
    NO_LABEL,
    NO_STATE_ID,
    QUEUE_TYPES,
    SHORTEST_DELTA,
    chosen,
    kept,
    limits,
    not_negative,
    positive,
    special,
)
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import Weight
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
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
    """The composition: maps x to z if the first machine maps x to some y, and the second y to z.

    Neither machine needs to be sorted; it is faster if one is. One label may be special, as in OpenFst's matchers, on
    the inputs of the second machine, or with ``match_type="output"`` on the outputs of the first: ``sigma_label``
    matches every label, ``rho_label`` every label for which the state has no arc, ``phi_label`` leads to the state
    where such a label is looked up next, without consuming it. ``rewrite_mode``: whether the matched label is written
    on both sides of the arc ("always"), on the matched side only ("never"), or on both if that machine is an acceptor
    ("auto"). ``phi_loop``: whether a phi arc to its own state consumes the label.

    ``compose_filter``: one of OpenFst's epsilon filters; "auto" is "sequence", which counts each path once.
    ``connect``: whether states that are on no path from the start to a final state are removed.

    Raises ``FstOpError`` for different semirings. Cost: in the worst case all pairs of states, each with all pairs of
    matching arcs.
    """
    require_same("compose", ifst1, ifst2)
    require_middle("compose", ifst1, ifst2)
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
    """The intersection of two acceptors; weights multiply. Raises ``FstOpError`` for transducers.

    The cost is that of ``compose``.
    """
    require_same("intersect", ifst1, ifst2)
    for which, each in (("first", ifst1), ("second", ifst2)):
        _require_acceptor("intersect", which, each)
    return compose(ifst1, ifst2, compose_filter, connect, budget=budget)


@checked
def difference(
    ifst1: VectorFst, ifst2: VectorFst, compose_filter: str = "auto", connect: bool = True, *,
    budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """The difference: the words of the first acceptor that are not in the second, with their weights.

    The second must be an unweighted acceptor (``FstOpError``). If it is nondeterministic or has epsilons, it is
    determinized first, which may be exponential.
    """
    require_same("difference", ifst1, ifst2)
    common_tables("difference", ifst1, ifst2)
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
    """An equivalent machine with at most one arc for each input label in a state. Epsilon is treated as a label.

    ``det_type``: the treatment of an input with several outputs: "functional" rejects it (``FstOpError``),
    "nonfunctional" keeps all, "disambiguate" the best. Weights that differ by less than ``delta`` count as equal, so
    the weight of a path may change by ``delta`` for each of its arcs. Exponential in the worst case; does not terminate
    for some weighted machines: ``BudgetExceeded``. ``weight`` and ``nstate`` prune as in ``prune``; for an acceptor,
    pruned states are not constructed. Outputs after the end of the input are on arcs with ``subsequential_label``; with
    ``increment_subsequential_label`` each further output of an input has the next label.
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
    """An equivalent machine in which no two paths have the same input; the weight of a path is the sum over all
    former paths with its input.

    Epsilon is treated as a label. Outputs after the end of the input are on arcs with ``subsequential_label``. The
    result is pruned (``weight``, ``nstate``, as in ``prune``). Unlike ``determinize`` it keeps states without a common
    continuation apart, so it terminates for more machines. Raises ``FstOpError`` for an input with two outputs.
    Exponential in the worst case.
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
    """An equivalent machine with weights, outputs or both pushed towards the start ("to_initial") or the final states
    ("to_final").

    ``push_weights``, ``push_labels``: what is pushed; with neither, the result is a copy. What all paths share arrives
    at the start or at the final states and is kept there; ``remove_total_weight`` drops such a weight, and
    ``remove_common_affix`` such an output. Weights cost as much as ``shortestdistance``; labels cost the arcs times the
    length of the pushed output. Raises ``FstOpError`` if a sum diverges.
    """
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
    """The machine without states and arcs that are on no path as good as the best one times ``weight``.

    ``weight``: by default, all paths are kept. ``nstate``: keep at most this number of states, those on the best paths.
    Needs a semiring with the path property. O(E log V).
    """
    return ifst.copy().prune(delta, nstate, weight, budget=budget)


@checked
def reverse(ifst: VectorFst, require_superinitial: bool = True, *, budget: Budget | None = None) -> VectorFst:
    """The reversed machine, with a new start state. Linear.

    With ``require_superinitial=False`` there is no new start if the machine has a single final state, of weight One.
    """
    return ifst.like(ifst.core.reverse(require_superinitial, limits(budget)))


@checked
def shortestdistance(
    ifst: VectorFst, delta: float = SHORTEST_DELTA, nstate: int = NO_STATE_ID, queue_type: str = "auto",
    reverse: bool = False, *, budget: Budget | None = None,
) -> npt.NDArray[Any]:  # fmt: skip
    """The sum of the weights of all paths from the start to each state, or (``reverse``) from it to acceptance.

    An array with a number for each state, where pywrapfst has a list of weights. ``nstate``: the source state, as in
    pywrapfst, if it is not the start. Raises ``FstOpError`` if a sum diverges. O(V + E) without cycles. With cycles:
    O(E log V) where the sum is a minimum (O(V E) with weights better than One); else cubic in the states of a cycle, up
    to 128 of them, and beyond that by relaxation up to ``delta``.
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
    """The ``nshortest`` best paths as a tree; with ``unique``, for an acceptor, the best path of each of the best
    words. For one path ``unique`` changes nothing, and the machine may be a transducer, as in OpenFst.

    ``weight``: paths worse than the best one times ``weight`` are excluded. ``nstate``: the search stops after about
    this number of states. Needs a semiring with the path property (``FstOpError``). The cost is that of the distances
    to acceptance, and ``nshortest`` times the states near the paths, times a logarithm.
    """
    threshold = kept("shortestpath", ifst.kind, weight, nstate)
    chosen("shortestpath: queue_type", queue_type, QUEUE_TYPES)
    if nshortest < 1:
        raise FstArgError(f"shortestpath: nshortest must be at least 1, not {nshortest}")
    if unique := unique and nshortest > 1:
        _require_acceptor("shortestpath(unique=True)", "given", ifst)
    delta = positive("shortestpath: delta", delta)
    return ifst.like(ifst.core.shortestpath(nshortest, unique, *threshold, delta, limits(budget)))


@checked
def randgen(
    ifst: VectorFst, npath: int = 1, seed: int = 0, select: str = "uniform", max_length: int = _LONGEST,
    weighted: bool = False, remove_total_weight: bool = False, *, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """``npath`` random paths; the same seed gives the same paths.

    ``select``: "uniform" (all arcs of a state, and its end, are equally likely) or "log_prob" (by the weights of the
    state as negative log-probabilities, or in ``real`` as probabilities; they need not sum to one). "fast_log_prob" is
    another name for the latter. Paths with more than ``max_length`` arcs are dropped.

    ``weighted``: return a tree in which the weight of each path is how often it was drawn, as a negative logarithm
    (``real``: the number); with ``remove_total_weight`` its share. Raises ``FstOpError`` in semirings without such
    weights, or if the weights of a state have no finite sum as probabilities. Each path costs the arcs of the states
    that it visits.
    """
    by_weight = chosen("randgen: select", select, ("uniform", "log_prob", "fast_log_prob")) != "uniform"
    for name, value in (("npath", npath), ("max_length", max_length), ("seed", seed)):
        not_negative(f"randgen: {name}", value)
    made = ifst.like(ifst.core.randgen(npath, seed, by_weight, max_length, limits(budget)))
    return counted(made, 1 if remove_total_weight else npath, budget) if weighted else made


@checked
def synchronize(ifst: VectorFst, *, budget: Budget | None = None) -> VectorFst:
    """An equivalent machine that reads and writes labels in lockstep as long as possible.

    If a cycle reads more labels than it writes, or fewer, there is no such machine: ``BudgetExceeded``. The result has
    a state for each state and each string that waits there to be read or written: exponential at worst.
    """
    return ifst.like(ifst.core.synchronize(limits(budget)))


@checked
def epsnormalize(ifst: VectorFst, eps_norm_type: str = "input", *, budget: Budget | None = None) -> VectorFst:
    """An equivalent epsilon-normalized machine: no arc has epsilon on both sides, and input epsilons ("output": output
    epsilons) follow the labels that are read.

    An arc with an input epsilon carries only the further outputs of one input label, or outputs after all of the input.
    Raises ``FstOpError`` if a cycle reads nothing and writes. Exponential at worst in the length of output that is
    written without reading.
    """
    side = chosen("epsnormalize: eps_norm_type", eps_norm_type, ("input", "output"))
    if side == "output":
        return epsnormalize(ifst.copy().invert(), budget=budget).invert()
    return ifst.like(ifst.core.epsnormalize(SHORTEST_DELTA, limits(budget)))


# --- questions ----------------------------------------------------------------------------------------


@checked
def equal(ifst1: VectorFst, ifst2: VectorFst, delta: float = DELTA) -> bool:
    """Whether both have the same states and arcs in the same order, with weights within ``delta``.

    Linear. Raises ``FstOpError`` for different semirings.
    """
    require_same("equal", ifst1, ifst2)
    return bool(ifst1.core.equal(ifst2.core, not_negative("equal: delta", delta)))


@checked
def isomorphic(
    ifst1: VectorFst, ifst2: VectorFst, delta: float = DELTA, *, budget: Budget | None = None
) -> bool:
    """Whether both are equal up to the numbering of states and the order of arcs.

    O(V + E log d) for at most d arcs of a state. Raises ``FstOpError`` if two arcs of a state have the same labels and
    weight.
    """
    require_same("isomorphic", ifst1, ifst2)
    return bool(ifst1.core.isomorphic(ifst2.core, positive("isomorphic: delta", delta), limits(budget)))


@checked
def equivalent(
    ifst1: VectorFst, ifst2: VectorFst, delta: float = DELTA, *, budget: Budget | None = None
) -> bool:
    """Whether two deterministic acceptors without epsilons give the same weights to the same words.

    Raises ``FstOpError`` for others: apply ``rmepsilon`` and ``determinize`` first. Also for different semirings or
    symbol tables. Nearly linear.
    """
    require_same("equivalent", ifst1, ifst2)
    common_tables("equivalent", ifst1, ifst2)
    return bool(ifst1.core.equivalent(ifst2.core, positive("equivalent: delta", delta), limits(budget)))


@checked
def randequivalent(
    ifst1: VectorFst, ifst2: VectorFst, npath: int = 1, delta: float = DELTA, seed: int = 0,
    select: str = "uniform", max_length: int = _LONGEST, *, budget: Budget | None = None,
) -> bool:  # fmt: skip
    """Whether both give the same weights to the inputs and outputs of ``npath`` random paths, drawn from them in turn.

    Weights that differ by at most ``delta`` count as equal. The other arguments are those of ``randgen``. True means
    that none of these paths tells the machines from each other. Raises ``FstOpError`` for different semirings or symbol
    tables, or if the weights of one input and output have no sum. The cost is that of ``npath`` paths, each composed
    with both machines.
    """
    kind = require_same("randequivalent", ifst1, ifst2)
    common_tables("randequivalent", ifst1, ifst2)
    not_negative("randequivalent: npath", npath)
    not_negative("randequivalent: delta", delta)
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
    """The second operand of ``difference``: an unweighted acceptor, deterministic and sorted. Raises ``FstOpError``."""
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
    """The deterministic, epsilon-free acceptor of an acceptor's words, with weight One."""
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
