"""Sigma, rho and phi in composition, beside machines in which they are written out."""

from __future__ import annotations

import random

import pytest
from support.worlds.transducer_worlds import TOLERANCE, ours, same

import tokenfst.fst as fst
from reference.transducers.special_labels import written_out
from reference.transducers.transducers import Plain, random_plain
from tokenfst.errors import FstArgError, FstOpError

KINDS = ("sigma", "rho", "phi")
SPECIAL = 9
MANY, PARTS = 5_000, 2
"""Of the soak: 10,000 machines for each kind, on inputs and outputs together."""


def with_special(rng: random.Random, kind: str, label: int, output: bool) -> Plain:
    """A random machine with special arcs: of phi one a state at most, forwards or to itself."""
    made = random_plain(rng, acceptor=rng.random() < 0.5, epsilons=label != 0, least=1.5)
    for state in range(made.states):
        for _ in range(rng.randint(0, 1 if kind == "phi" else 2)):
            first = state if kind == "phi" else 0
            target = rng.randint(first, made.states - 1)
            other = rng.choice((label, 1, 2))
            labels = (other, label) if output else (label, other)
            made.arcs.append((state, *labels, 1.5 + rng.randint(0, 4) / 4, target))
    return made


def check(kind: str, side: str, seed: int) -> None:
    rng = random.Random(seed)
    label = 0 if kind == "phi" and rng.random() < 0.2 else SPECIAL
    output = side == "output"
    special, other = with_special(rng, kind, label, output), random_plain(rng, least=1.5)
    mode, loop = rng.choice(("auto", "always", "never")), rng.random() < 0.7
    if not loop:
        special.arcs = [a for a in special.arcs if a[0] != a[4] or a[2 if output else 1] != label]
    acceptor = all(arc[1] == arc[2] for arc in special.arcs)  # as it is composed, without those loops
    both = mode == "always" or (mode == "auto" and acceptor)
    plain = written_out(special, kind, label, range(1, 3), output=output, both=both, loop=loop)
    arc_type = rng.choice(("standard", "log64"))
    given = {f"{kind}_label": label, "match_type": side, "rewrite_mode": mode, "phi_loop": loop}
    pair = (special, other) if output else (other, special)
    wanted = fst.compose(*(ours(each, arc_type) for each in ((plain, other) if output else (other, plain))))
    for name in ("auto", "alt_sequence", "match") if label else ("auto",):
        found = fst.compose(*(ours(each, arc_type) for each in pair), name, **given)
        assert same(found, wanted, 3, 4 * TOLERANCE[arc_type]), (kind, side, seed, name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["input", "output"])
def test_a_special_label_stands_for_the_arcs_it_matches(kind: str, side: str) -> None:
    for seed in range(7):
        check(kind, side, seed)


@pytest.mark.parametrize("seed", [176, 1505])
def test_a_failure_label_that_is_0_is_no_epsilon(seed: int) -> None:
    """The other machine may go on alone where all arcs of a state are failures."""
    check("phi", "output", seed)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["input", "output"])
def test_many_special_labels_stand_for_the_arcs_they_match(kind: str, side: str, part: int) -> None:
    for seed in range(7 + part, MANY, PARTS):
        check(kind, side, seed)


def acceptor(*arcs: tuple[int, int, int], final: int = 1) -> fst.VectorFst:
    made = fst.VectorFst()
    made.add_states(1 + max(max(s, t) for s, _, t in arcs))
    made.set_start(0).set_final(final)
    for source, label, target in arcs:
        made.add_arc(source, fst.Arc(label, label, 0, target))
    return made


def test_the_usual_ones() -> None:
    word = fst.accep("ab")
    anything = acceptor((0, 300, 0), final=0)
    assert fst.equal(fst.compose(word, anything, sigma_label=300), word)
    assert fst.equal(fst.compose(word, anything, rho_label=300), word)
    # A phi arc falls back: "b" is read in state 1.
    backoff = acceptor((0, ord("a"), 0), (0, 300, 1), (1, ord("b"), 1))
    assert fst.string(fst.compose(word, backoff, phi_label=300)) == "ab"
    assert fst.compose(fst.accep("ba"), backoff, phi_label=300).start() == -1


def test_what_is_refused() -> None:
    word, plain = fst.accep("ab"), acceptor((0, 300, 1))
    with pytest.raises(FstArgError, match="one special label"):
        fst.compose(word, plain, phi_label=300, rho_label=301)
    with pytest.raises(FstArgError, match="sigma_label is a label that is not epsilon"):
        fst.compose(word, plain, sigma_label=0)
    with pytest.raises(FstArgError, match="rewrite_mode is 'auto'"):
        fst.compose(word, plain, sigma_label=1, rewrite_mode="none")
    with pytest.raises(FstArgError, match="match_type is 'input'"):
        fst.compose(word, plain, sigma_label=1, match_type="both")
    with pytest.raises(FstOpError, match="has an arc with the special label 300"):
        fst.compose(plain, plain, sigma_label=300)
    with pytest.raises(FstOpError, match="has 2 phi arcs"):
        fst.compose(word, acceptor((0, 300, 0), (0, 300, 1)), phi_label=300)
    with pytest.raises(FstOpError, match="lead back to it"):
        fst.compose(word, acceptor((0, 300, 1), (1, 300, 0), final=2 - 2), phi_label=300)
