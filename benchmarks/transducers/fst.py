"""Native transducers beside OpenFst (pywrapfst, pynini) and rustfst.

    python -m benchmarks.transducers.fst [PART]... [--save]

The parts are lexicon, tekken, random, lazy, disambiguate, cdrewrite and threads; without names all of them run.

Times are CPU time of one thread, the least of several runs. The libraries take turns in this process and work on the
same machines. An operation that OpenFst and rustfst do in place works on a copy in all libraries. rustfst (pip
install --no-deps rustfst-python) has a column if it is installed. ``--save`` writes the figures to
docs/data/transducers.json.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from threading import Thread
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pynini
import pywrapfst

import tokenfst
import tokenfst.fst as fst
from benchmarks.masks.compilation import TEKKEN
from benchmarks.measuring import record
from benchmarks.measuring.measure import Figure
from benchmarks.measuring.patterns import object_with_20_properties
from tokenfst import Budget

try:
    import rustfst
except ImportError:
    rustfst = None

BUDGET = Budget(states=20_000_000, bytes=16 << 30, seconds=600)
WORDS, STATES, ARCS = 100_000, 100_000, 1_000_000
ENOUGH = 8
"""The seconds after which calls are not timed again."""
Machines = tuple[fst.VectorFst, Any, Any]
Row = tuple[str, float, float, float | None, str]


def all_of(machine: fst.VectorFst) -> Machines:
    """The same machine in each library; None where rustfst is missing."""
    data = machine.write_to_string()
    rust = rustfst.VectorFst.from_bytes(data) if rustfst else None
    return machine, pywrapfst.VectorFst.read_from_string(data), rust


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


def seconds(calls: list[Callable[[], object]], runs: int) -> list[float]:
    """The least CPU time of each call, in seconds; the calls take turns."""
    best, all_runs = [float("inf")] * len(calls), process_time()
    for _ in range(runs):
        for at, call in enumerate(calls):
            begun = process_time()
            call()
            best[at] = min(best[at], process_time() - begun)
        if process_time() - all_runs > ENOUGH * len(calls):
            break
    return best


def compared(
    what: str,
    mine: Callable[[], fst.VectorFst | Any],
    its: Callable[[], Any],
    rust: Callable[[], Any] | None = None,
    runs: int = 3,
) -> Iterator[Row]:
    made, other = mine(), its()
    sizes = ""
    if isinstance(made, fst.VectorFst):
        arcs = sum(other.num_arcs(s) for s in other.states())
        sizes = f"{made.num_states():,} / {made.num_arcs():,} (OpenFst {other.num_states():,} / {arcs:,})"
    del made, other
    third = seconds([rust], 1)[0] if rustfst and rust else None
    ours, theirs = seconds([mine, its], runs)
    yield what, ours, theirs, third, sizes


def five(name: str, composed: tuple[Machines, Machines], det: Machines, eps: Machines) -> Iterator[Row]:
    """The five operations of the target: composition, removal of epsilons and determinization of the given machines,
    and minimization and shortest distances of their results.
    """
    (a, x, p), (b, y, q) = composed
    if rustfst:  # it does not take sortedness from a file's properties
        p.tr_sort(ilabel_cmp=False)
        q.tr_sort()
    yield from compared(
        f"{name}: compose",
        lambda: fst.compose(a, b, budget=BUDGET),
        lambda: pywrapfst.compose(x, y),
        lambda: p.compose(q),
    )
    yield from compared(
        f"{name}: rmepsilon",
        lambda: eps[0].copy().rmepsilon(budget=BUDGET),
        lambda: eps[1].copy().rmepsilon(),
        lambda: eps[2].copy().rm_epsilon(),
    )
    yield from compared(
        f"{name}: determinize",
        lambda: fst.determinize(det[0], budget=BUDGET),
        lambda: pywrapfst.determinize(det[1]),
        lambda: det[2].determinize(),
    )
    plain = all_of(fst.determinize(det[0], budget=BUDGET))
    yield from compared(
        f"{name}: minimize",
        lambda: plain[0].copy().minimize(budget=BUDGET),
        lambda: plain[1].copy().minimize(),
        lambda: plain[2].copy().minimize(),
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


def dictionary() -> tuple[fst.VectorFst, fst.VectorFst, fst.VectorFst, fst.VectorFst]:
    """Four machines: words as chains from one start, each with a weight; the same with an epsilon before each word; the
    minimal machine of the words; and a transducer that substitutes at most one letter.
    """
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
    return chains, spaced, smallest, edit.arcsort()


def lexicon() -> Iterator[Row]:
    chains, spaced, smallest, edit = dictionary()
    yield from five("lexicon", (all_of(smallest), all_of(edit)), all_of(chains), all_of(spaced))


def lazy() -> Iterator[Row]:
    """Lazy machines of the lexicon, walked to the end, and a search that looks at a part of one. OpenFst's Python
    package has no lazy machines, so they are compared with its eager operation on the whole machine.
    """
    chains, spaced, smallest, edit = dictionary()
    (_, x, _), (_, y, _) = all_of(smallest), all_of(edit)

    def composed(connect: bool) -> Any:
        return pywrapfst.compose(x, y, connect=connect)

    yield from compared(
        "lazy: compose, to the end",
        lambda: fst.lazy.compose(smallest, edit, budget=BUDGET).expand(),
        lambda: composed(False),
    )

    def first_states() -> int:
        machine = fst.lazy.compose(smallest, edit, budget=BUDGET)
        waiting, seen = [machine.start()], {machine.start()}
        while waiting and len(seen) < 1000:
            for arc in machine.arcs(waiting.pop()):
                if arc.nextstate not in seen:
                    seen.add(arc.nextstate)
                    waiting.append(arc.nextstate)
        return len(seen)

    yield from compared(
        "lazy: compose, 1,000 states (OpenFst: the whole)", first_states, lambda: composed(True)
    )
    det, eps = all_of(chains), all_of(spaced)
    yield from compared(
        "lazy: determinize, to the end",
        lambda: fst.lazy.determinize(chains, budget=BUDGET).expand(),
        lambda: pywrapfst.determinize(det[1]),
    )
    yield from compared(
        "lazy: rmepsilon, to the end",
        lambda: fst.lazy.rmepsilon(spaced, budget=BUDGET).expand(),
        lambda: eps[1].copy().rmepsilon(),
    )


def disambiguate() -> Iterator[Row]:
    """3,000 words, each twice with different weights, after a loop over their letters; the machine is ambiguous and not
    deterministic.
    """
    rng = random.Random(1)
    machine = fst.VectorFst()
    machine.set_start(machine.add_state())
    for word in words(rng)[:3000]:
        for weight in (1.0, 2.0):
            state = 0
            for letter in word.encode():
                new = machine.add_state()
                machine.core.add_arc(state, letter, letter, 0.0, new)
                state = new
            machine.core.set_final(state, weight)
    given = all_of(machine)
    yield from compared(
        "disambiguate: 3,000 words twice",
        lambda: fst.disambiguate(machine, budget=BUDGET),
        lambda: pywrapfst.disambiguate(given[1]),
    )


def cdrewrite() -> Iterator[Row]:
    """A rule of 200 pairs between contexts of 20 words, and 20 small rules, over 26 letters."""
    rng = random.Random(2)
    letters = [chr(letter) for letter in range(97, 123)]

    def text(least: int, most: int) -> str:
        return "".join(rng.choices(letters, k=rng.randint(least, most)))

    def rules(
        count: int, pairs: int, around: int
    ) -> list[tuple[list[tuple[str, str]], list[str], list[str]]]:
        return [
            (
                [(text(1, 4), text(0, 4)) for _ in range(pairs)],
                [text(0, 3) for _ in range(around)],
                [text(0, 3) for _ in range(around)],
            )
            for _ in range(count)
        ]

    ours = fst.optimize(fst.string_map(letters).closure())
    theirs = pynini.union(*letters).closure().optimize()

    def mine(given: list[Any]) -> int:
        for pairs, left, right in given:
            sides = [fst.optimize(fst.string_map(each)) for each in (left, right)]
            made = fst.cdrewrite(fst.string_map(pairs), *sides, ours, budget=BUDGET)
        return made.num_states()

    def its(given: list[Any]) -> int:
        for pairs, left, right in given:
            sides = [pynini.union(*each).optimize() for each in (left, right)]
            made = pynini.cdrewrite(pynini.string_map(pairs), *sides, theirs)
        return int(made.num_states())

    large, small = rules(1, 200, 20), rules(20, 3, 2)
    yield from compared("cdrewrite: 200 pairs, 20 contexts", lambda: mine(large), lambda: its(large))
    yield from compared("cdrewrite: 20 rules of 3 pairs", lambda: mine(small), lambda: its(small))


def threads() -> Iterator[Row]:
    """Two determinizations of the lexicon: at once in two threads, and one after the other, in seconds by the clock. A
    single operation runs in one thread.
    """
    chains = dictionary()[0]
    machines = [chains.copy(), chains.copy()]

    def one(machine: fst.VectorFst) -> None:
        fst.determinize(machine, budget=BUDGET)

    def at_once() -> None:
        running = [Thread(target=one, args=[machine]) for machine in machines]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    def in_turn() -> None:
        for machine in machines:
            one(machine)

    best = [float("inf")] * 2
    for _ in range(5):
        for at, call in enumerate((at_once, in_turn)):
            begun = perf_counter()
            call()
            best[at] = min(best[at], perf_counter() - begun)
    yield "threads: two determinizations at once, or in turn", best[0], best[1], None, ""


def tekken() -> Iterator[Row]:
    """The detokenizer of Tekken and the automaton of an object with 20 properties."""
    detokenizer = fst.from_pynini(tokenfst.load_vocabulary(TEKKEN).detokenizer(), budget=BUDGET)
    language = fst.from_pynini(tokenfst.regex(object_with_20_properties()).to_fst(), budget=BUDGET)
    for machine in (detokenizer, language):
        machine.set_input_symbols(None).set_output_symbols(None)
    detokenizer.arcsort("olabel")
    product = fst.compose(detokenizer, language, budget=BUDGET).project("input")
    free = product.copy().rmepsilon(budget=BUDGET)
    yield from five("tekken", (all_of(detokenizer), all_of(language)), all_of(free), all_of(product))


def random_machines() -> Iterator[Row]:
    """Machines with a million arcs: a deterministic one with cycles, one with epsilons, and one to compose with."""
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
    yield from five("random", (all_of(machine), all_of(small)), all_of(machine), all_of(epsilons))


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "lexicon": lexicon,
    "tekken": tekken,
    "random": random_machines,
    "lazy": lazy,
    "disambiguate": disambiguate,
    "cdrewrite": cdrewrite,
    "threads": threads,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transducers.fst")
    parser.add_argument("part", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all")
    parser.add_argument("--save", action="store_true", help="write the figures to docs/data/transducers.json")
    options = parser.parse_args()
    if strange := set(options.part) - set(PARTS):
        parser.error(f"no part {sorted(strange)[0]!r}: choose from {', '.join(PARTS)}")
    figures: list[Figure] = []
    print("| what | tokenfst | OpenFst | of OpenFst's | rustfst | states / arcs |\n|---|---|---|---|---|---|")
    for name in options.part or PARTS:
        for what, mine, its, rust, sizes in PARTS[name]():
            third = "" if rust is None else f"{rust * 1e3:,.0f} ms"
            print(
                f"| {what} | {mine * 1e3:,.0f} ms | {its * 1e3:,.0f} ms | {mine / its:.0%} | {third} | {sizes} |",
                flush=True,
            )
            figures += [Figure(what, "tokenfst", mine), Figure(what, "OpenFst", its)]
            figures.append(Figure(what, "of OpenFst's time", None, note=f"{mine / its:.0%}"))
            if sizes:
                figures.append(Figure(what, "states / arcs", None, note=sizes))
    if options.save:
        note = "CPU time of one thread, the least of three runs in turn"
        record.save("transducers", record.run_now(figures, note=note))


if __name__ == "__main__":
    main()
