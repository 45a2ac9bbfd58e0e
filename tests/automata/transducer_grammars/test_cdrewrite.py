"""Rewrite rules beside pynini's, on random rules and all short words; boundaries; weights."""

from __future__ import annotations

import itertools
import random

import pynini
import pytest
from support.worlds.transducer_worlds import adopted

import tokenfst.fst as fst
import tokenfst.grm as grm
from tokenfst.errors import FstArgError, FstOpError

LETTERS = "abc"
SIGMA = grm.union(*LETTERS).closure().optimize()
THEIRS = pynini.union(*LETTERS).closure().optimize()
MANY, PARTS = 1_672, 2
"""Of the soak: 10,000 rules in all directions and modes together, in parts of half a minute."""
WORDS = ["".join(each) for n in range(5) for each in itertools.product(LETTERS, repeat=n)]


def outputs(rule: fst.VectorFst, word: str) -> dict[str, float]:
    found: dict[str, float] = {}
    made = fst.compose(fst.accep(word, arc_type=rule.arc_type()), rule)
    for _, written, weight in grm.Fst.around(made).paths().items():
        found[written] = min(found.get(written, float("inf")), round(float(weight), 4))
    return found


def random_rule(rng: random.Random) -> tuple[list[tuple[str, ...]], list[str], list[str]]:
    def text(least: int, most: int) -> str:
        return "".join(rng.choice(LETTERS) for _ in range(rng.randint(least, most)))

    pairs = [(text(1, 2), text(0, 2), str(rng.randint(0, 3))) for _ in range(rng.randint(1, 2))]

    def context(bound: str, before: bool) -> list[str]:
        parts = [text(0, 2) for _ in range(rng.randint(1, 2))]
        if rng.random() < 0.3:
            parts.append(bound + text(0, 1) if before else text(0, 1) + bound)
        return parts

    return pairs, context("[BOS]", True), context("[EOS]", False)


def check(seed: int, direction: str, mode: str) -> None:
    rng = random.Random(seed)
    pairs, left, right = random_rule(rng)
    ours = grm.cdrewrite(grm.string_map(pairs), grm.union(*left), grm.union(*right), SIGMA, direction, mode)
    wanted = adopted(
        pynini.cdrewrite(
            pynini.string_map(pairs), pynini.union(*left), pynini.union(*right), THEIRS, direction, mode
        )
    )
    for word in rng.sample(WORDS, 40):
        assert outputs(ours, word) == outputs(wanted, word), (seed, pairs, left, right, word)


@pytest.mark.parametrize("direction", ["ltr", "rtl", "sim"])
@pytest.mark.parametrize("mode", ["obl", "opt"])
def test_a_rule_is_pyninis(direction: str, mode: str) -> None:
    for seed in range(5):
        check(seed, direction, mode)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("direction", ["ltr", "rtl", "sim"])
@pytest.mark.parametrize("mode", ["obl", "opt"])
def test_many_rules_are_pyninis(direction: str, mode: str, part: int) -> None:
    for seed in range(5 + part, MANY, PARTS):
        check(seed, direction, mode)


def test_the_three_directions() -> None:
    # "a" becomes "b" after "b": once, to the end, or in every second place.
    rule = {d: grm.cdrewrite(grm.cross("a", "b"), "b", "", SIGMA, d) for d in ("ltr", "rtl", "sim")}
    assert {d: grm.one_rewrite("baaa", each) for d, each in rule.items()} == {
        "ltr": "bbbb", "rtl": "bbaa", "sim": "bbaa",
    }  # fmt: skip


def test_words_outside_of_sigma_are_not_read() -> None:
    rule = fst.cdrewrite(fst.cross("a", "b"), "", "", SIGMA)
    assert fst.compose(fst.accep("ad"), rule).start() == -1
    assert fst.string(fst.compose(fst.accep("acab"), rule)) == "bcbb"


def test_weights_of_sums_count_each_way_once() -> None:
    sigma = grm.union(grm.accep("a", arc_type="log64"), grm.accep("b", arc_type="log64")).closure().optimize()
    tau = grm.cross(grm.accep("a", arc_type="log64"), grm.accep("b", 0.5, "log64"))
    for mode, wanted in (("obl", 1.0), ("opt", None)):
        rule = fst.cdrewrite(tau, "", "", sigma, mode=mode)
        through = fst.compose(
            fst.compose(grm.accep("aa", arc_type="log64"), rule), grm.accep("bb", arc_type="log64")
        )
        assert fst.shortestdistance(through, reverse=True)[through.start()] == pytest.approx(1.0)
        if wanted is None:
            kept = fst.compose(
                fst.compose(grm.accep("aa", arc_type="log64"), rule), grm.accep("aa", arc_type="log64")
            )
            assert fst.shortestdistance(kept, reverse=True)[kept.start()] == pytest.approx(0.0)


def test_bad_arguments_are_refused() -> None:
    tau = fst.cross("a", "b")
    with pytest.raises(FstArgError, match="direction"):
        fst.cdrewrite(tau, "", "", SIGMA, "left")
    with pytest.raises(FstArgError, match="mode"):
        fst.cdrewrite(tau, "", "", SIGMA, mode="may")
    with pytest.raises(FstOpError, match="l must be an unweighted acceptor"):
        fst.cdrewrite(tau, tau, "", SIGMA)
    with pytest.raises(FstOpError, match="r must be an unweighted acceptor"):
        fst.cdrewrite(tau, "", fst.accep("a", 1), SIGMA)
    with pytest.raises(FstOpError, match="different semirings"):
        fst.cdrewrite(tau, "", "", fst.accep("a", arc_type="log"))
    with pytest.raises(FstOpError, match="which only contexts have"):
        fst.cdrewrite(tau, "[BOS]", "", grm.union("a", "[BOS]").closure())
