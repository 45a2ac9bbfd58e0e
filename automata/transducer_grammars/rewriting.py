"""Application of a rule to a string, as in ``pynini.lib.rewrite``: the output lattice, the best outputs, matching."""

from __future__ import annotations

from tokenfst.arguments import checked
from tokenfst.automata.transducer_grammars.machines import Fst, compose, shortestpath
from tokenfst.automata.transducer_operations import building
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.budget import Budget
from tokenfst.errors import FstOpError


@checked
def rewrite_lattice(string: VectorFst | str | bytes, rule: VectorFst, *, budget: Budget | None = None) -> Fst:
    """All outputs of the rule for a string, as an acceptor without epsilons. Raises ``FstOpError`` if there are
    none.
    """
    lattice = compose(string, rule, budget=budget)
    lattice.project("output").rmepsilon(budget=budget)
    if lattice.start() < 0:
        raise FstOpError("rewrite: the rule maps the string to nothing")
    return lattice


@checked
def top_rewrites(
    string: VectorFst | str | bytes, rule: VectorFst, nshortest: int, *, budget: Budget | None = None
) -> list[str]:
    """The ``nshortest`` best outputs, the best first."""
    lattice = rewrite_lattice(string, rule, budget=budget)
    best = shortestpath(lattice, nshortest, unique=True, budget=budget)
    return [
        text
        for text, _ in sorted(((o, float(w)) for _, o, w in best.paths().items()), key=lambda each: each[1])
    ]


@checked
def top_rewrite(string: VectorFst | str | bytes, rule: VectorFst, *, budget: Budget | None = None) -> str:
    """The best output; the first of several equally good ones."""
    return top_rewrites(string, rule, 1, budget=budget)[0]


@checked
def one_top_rewrite(string: VectorFst | str | bytes, rule: VectorFst, *, budget: Budget | None = None) -> str:
    """The best output. Raises ``FstOpError`` if two are equally good."""
    lattice = rewrite_lattice(string, rule, budget=budget)
    best = shortestpath(lattice, 2, unique=True, budget=budget)
    found = sorted(((float(w), o) for _, o, w in best.paths().items()))
    if len(found) > 1 and found[0][0] == found[1][0]:
        raise FstOpError(f"rewrite: {found[0][1]!r} and {found[1][1]!r} are as good")
    return found[0][1]


@checked
def rewrites(string: VectorFst | str | bytes, rule: VectorFst, *, budget: Budget | None = None) -> list[str]:
    """All distinct outputs."""
    lattice = building.optimize(rewrite_lattice(string, rule, budget=budget), budget=budget)
    return list(Fst.around(lattice).paths().ostrings())


@checked
def one_rewrite(string: VectorFst | str | bytes, rule: VectorFst, *, budget: Budget | None = None) -> str:
    """The only output. Raises ``FstOpError`` if there are several."""
    found = rewrites(string, rule, budget=budget)
    if len(found) > 1:
        raise FstOpError(f"rewrite: there are {len(found)} outputs, among them {found[0]!r} and {found[1]!r}")
    return found[0]


@checked
def matches(
    istring: VectorFst | str | bytes,
    ostring: VectorFst | str | bytes,
    rule: VectorFst,
    *,
    budget: Budget | None = None,
) -> bool:
    """Whether the rule maps one string to the other."""
    return compose(compose(istring, rule, budget=budget), ostring, budget=budget).start() >= 0
