"""Random expressions of pynini's functions and operators, under pynini and under ``tokenfst.grm``: the same weights."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pynini
from support.running.seeds import few_and_many_seeds, in_ranges
from support.worlds.transducer_worlds import adopted, same

import tokenfst.grm as grm

Expression = Callable[[Any, str], Any]
"""Makes a machine, given the module and the arc type."""


def leaf(rng: random.Random) -> Expression:
    """Short strings over two labels, with weights whose sums over repetitions converge."""
    weight = rng.choice([1.5, 2.0, 2.5])
    read, written = rng.choice(["\x01", "\x02", "\x01\x02", ""]), rng.choice(["\x01", "\x02", ""])
    return rng.choice(
        [
            lambda p, kind: p.accep(read, weight=weight, arc_type=kind),
            lambda p, kind: p.string_map([[read or "\x02"]], arc_type=kind),
            lambda p, kind: p.cross(p.accep(read, weight=weight, arc_type=kind), p.accep(written, arc_type=kind)),
        ]
    )  # fmt: skip


def expression(rng: random.Random, depth: int) -> Expression:
    """Operators and functions of pynini over random expressions of less depth."""
    if depth == 0:
        return leaf(rng)
    one, other = expression(rng, depth - 1), expression(rng, depth - 1)
    least, side = rng.randint(0, 2), rng.choice(["input", "output"])
    most = max(least + rng.randint(0, 2), 1)

    def words(p: Any, kind: str) -> Any:
        """An unweighted deterministic acceptor."""
        found = p.determinize(p.rmepsilon(p.project(other(p, kind), "input")))
        return p.arcmap(found, map_type="rmweight")

    return rng.choice(
        [
            lambda p, kind: one(p, kind) + other(p, kind),
            lambda p, kind: one(p, kind) | other(p, kind),
            lambda p, kind: one(p, kind) @ other(p, kind),
            lambda p, kind: p.closure(one(p, kind), least, most),
            lambda p, kind: one(p, kind).ques,
            lambda p, kind: one(p, kind).optimize(),
            lambda p, kind: p.invert(one(p, kind)),
            lambda p, kind: p.project(one(p, kind), side),
            lambda p, kind: p.rmepsilon(one(p, kind)),
            lambda p, kind: p.union(one(p, kind), other(p, kind), one(p, kind)),
            lambda p, kind: p.cross(p.project(one(p, kind), side), p.project(other(p, kind), "input")),
            lambda p, kind: p.reverse(one(p, kind)),
            lambda p, kind: p.push(one(p, kind), push_weights=True),
            lambda p, kind: p.difference(p.project(one(p, kind), "input"), words(p, kind)),
        ]
    )


def check(seed: int) -> None:
    """One expression."""
    rng = random.Random(seed)
    made, kind = expression(rng, rng.choice([1, 2, 3, 3, 4, 5])), rng.choice(["standard", "log", "log64"])
    ours, theirs = made(grm, kind), adopted(made(pynini, kind))
    assert same(ours, theirs, 3, 1e-6 if kind == "standard" else 1e-3), (seed, kind)


@few_and_many_seeds(in_ranges(range(100), 25), in_ranges(range(1000, 11_000), 5000))
def test_an_expression_means_the_same(seeds: range) -> None:
    for seed in seeds:
        check(seed)
