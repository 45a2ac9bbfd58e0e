"""Native transducers beside OpenFst (pywrapfst): `python benchmarks/fst.py [lexicon] [tekken] [random]`.

CPU time of one thread, the least of some runs, both in this process and on the same machines. What OpenFst
does in place is done on a copy by both.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import numpy as np
import pywrapfst
from compilation import TEKKEN
from patterns import object_with_20_properties

import tokenfst
import tokenfst.fst as fst
from tokenfst import Budget

BUDGET = Budget(states=20_000_000, bytes=16 << 30, seconds=600)
WORDS, STATES, ARCS = 100_000, 100_000, 1_000_000
Pair = tuple[fst.VectorFst, Any]


def both(machine: fst.VectorFst) -> Pair:
    return machine, pywrapfst.VectorFst.read_from_string(machine.write_to_string())


def of_arrays(
    finals: Any, counts: Any, ilabels: Any, olabels: Any, weights: Any, nexts: Any
) -> fst.VectorFst:
    made = fst.VectorFst()
    limits = (BUDGET.states, BUDGET.bytes, BUDGET.seconds)
    arrays = [np.ascontiguousarray(a, t) for a, t in (
        (finals, np.float32), (counts, np.int64), (ilabels, np.int32), (olabels, np.int32), (weights, np.float32),
        (nexts, np.int32),
    )]  # fmt: skip
    return made.of_core(made.kind, made.kind.core.from_arrays(0, *arrays, limits))


def seconds(call: Callable[[], object], runs: int) -> float:
    best = float("inf")
    for _ in range(runs):
        begun = process_time()
        call()
        best = min(best, process_time() - begun)
    return best


def compared(
    what: str, mine: Callable[[], fst.VectorFst | Any], its: Callable[[], Any], runs: int = 3
) -> Iterator[tuple[str, float, float, str]]:
    made, other = mine(), its()
    sizes = ""
    if isinstance(made, fst.VectorFst):
        arcs = sum(other.num_arcs(s) for s in other.states())
        sizes = f"{made.num_states():,} / {made.num_arcs():,} (OpenFst {other.num_states():,} / {arcs:,})"
    yield what, seconds(mine, runs), seconds(its, runs), sizes


def five(
    name: str, composed: tuple[Pair, Pair], det: Pair, eps: Pair
) -> Iterator[tuple[str, float, float, str]]:
    """The operations of the target, each on the machine that it is given, and minimization and distances of
    what they make."""
    (a, x), (b, y) = composed
    yield from compared(
        f"{name}: compose", lambda: fst.compose(a, b, budget=BUDGET), lambda: pywrapfst.compose(x, y)
    )
    yield from compared(
        f"{name}: rmepsilon",
        lambda: eps[0].copy().rmepsilon(budget=BUDGET),
        lambda: eps[1].copy().rmepsilon(),
    )
    yield from compared(
        f"{name}: determinize",
        lambda: fst.determinize(det[0], budget=BUDGET),
        lambda: pywrapfst.determinize(det[1]),
    )
    plain = both(fst.determinize(det[0], budget=BUDGET))
    yield from compared(
        f"{name}: minimize",
        lambda: plain[0].copy().minimize(budget=BUDGET),
        lambda: plain[1].copy().minimize(),
    )
    yield from compared(
        f"{name}: shortestdistance",
        lambda: fst.shortestdistance(plain[0], budget=BUDGET),
        lambda: pywrapfst.shortestdistance(plain[1]),
    )


def words(rng: random.Random) -> list[str]:
    syllables = [c + v + e for c in "bcdfghklmnprstvw" for v in "aeiou" for e in ("", "", "n", "r", "s")]
    found: dict[str, None] = {}
    while len(found) < WORDS:
        found["".join(rng.choices(syllables, k=rng.randint(2, 4)))] = None
    return list(found)


def lexicon() -> Iterator[tuple[str, float, float, str]]:
    """Words as chains from one start, each with a weight; with an epsilon before each; and one edit from each
    word."""
    rng = random.Random(0)
    chains, spaced = fst.VectorFst(), fst.VectorFst()
    for machine in (chains, spaced):
        machine.set_start(machine.add_state())
    for word in words(rng):
        weight = rng.randint(1, 1000) / 64
        for machine in (chains, spaced):
            state = 0
            if machine is spaced:
                state = machine.add_state()
                machine.core.add_arc(0, 0, 0, weight, state)
            for letter in word.encode():
                new = machine.add_state()
                machine.core.add_arc(state, letter, letter, 0.0, new)
                state = new
            machine.core.set_final(state, weight)
    edit = fst.VectorFst()
    edit.add_states(2).set_start(0).set_final(0).set_final(1, 1.0)
    for letter in range(97, 123):
        for state in (0, 1):
            edit.core.add_arc(state, letter, letter, 0.0, state)
        for other in range(97, 123):
            edit.core.add_arc(0, letter, other, 1.0, 1)
    smallest = fst.determinize(chains, budget=BUDGET).minimize(budget=BUDGET).arcsort("olabel")
    yield from five("lexicon", (both(smallest), both(edit.arcsort())), both(chains), both(spaced))


def tekken() -> Iterator[tuple[str, float, float, str]]:
    """The detokenizer of Tekken and the automaton of an object with 20 properties."""
    detokenizer = fst.from_pynini(tokenfst.load_vocabulary(TEKKEN).detokenizer(), budget=BUDGET)
    language = fst.from_pynini(tokenfst.regex(object_with_20_properties()).to_fst(), budget=BUDGET)
    for machine in (detokenizer, language):
        machine.set_input_symbols(None).set_output_symbols(None)
    detokenizer.arcsort("olabel")
    product = fst.compose(detokenizer, language, budget=BUDGET).project("input")
    free = product.copy().rmepsilon(budget=BUDGET)
    yield from five("tekken", (both(detokenizer), both(language)), both(free), both(product))


def random_machines() -> Iterator[tuple[str, float, float, str]]:
    """A million arcs: a deterministic machine with cycles, one with epsilons and none, and one to compose with."""
    rng = np.random.default_rng(0)
    each = ARCS // STATES
    finals = np.where(rng.random(STATES) < 0.1, rng.integers(0, 64, STATES) / 8, np.inf)
    counts = np.full(STATES, each)
    labels = np.sort(rng.permuted(np.tile(np.arange(1, 101), (STATES, 1)), axis=1)[:, :each], axis=1).ravel()
    weights = rng.integers(0, 64, ARCS) / 8
    nexts = rng.integers(0, STATES, ARCS)
    machine = of_arrays(finals, counts, labels, labels, weights, nexts)
    source = np.repeat(np.arange(STATES), each)
    later = np.minimum(source + 1 + rng.integers(0, 50, ARCS), STATES - 1)
    silent = np.where(rng.random(ARCS) < 0.1, 0, labels)
    silent[source >= STATES - 1] = 1
    epsilons = of_arrays(finals, counts, silent, silent, weights, np.where(silent == 0, later, nexts))
    n, m = 40, 25
    small = of_arrays(
        np.where(np.arange(n) % 4 == 0, 0.0, np.inf), np.full(n, m),
        np.sort(rng.permuted(np.tile(np.arange(1, 101), (n, 1)), axis=1)[:, :m], axis=1).ravel(),
        rng.integers(1, 101, n * m), rng.integers(0, 64, n * m) / 8, rng.integers(0, n, n * m),
    )  # fmt: skip
    yield from five("random", (both(machine), both(small)), both(machine), both(epsilons))


def main() -> None:
    parts = {"lexicon": lexicon, "tekken": tekken, "random": random_machines}
    print("| what | tokenfst | OpenFst | of OpenFst's | states / arcs |\n|---|---|---|---|---|")
    for name in sys.argv[1:] or parts:
        for what, mine, its, sizes in parts[name]():
            print(
                f"| {what} | {mine * 1e3:,.0f} ms | {its * 1e3:,.0f} ms | {mine / its:.0%} | {sizes} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
