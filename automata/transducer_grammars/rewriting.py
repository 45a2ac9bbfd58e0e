"""Application of a rule to a string, as in ``pynini.lib.rewrite``: the output lattice, the best outputs, matching.

``input_token_type`` and ``output_token_type`` say how strings are read and written: "byte", "utf8", a symbol table, or
by default the current token type (``default_token_type``).
"""

from __future__ import annotations

from contextlib import nullcontext
from itertools import islice

from tokenfst.automata.transducer_grammars.machines import Fst, compose, intersect, shortestpath
from tokenfst.automata.transducer_grammars.strings import TokenType, default_token_type
from tokenfst.automata.transducer_operations import operations
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import FstOpError

Error = FstOpError
"""What the functions raise where ``pynini.lib.rewrite`` raises its ``Error``."""


@checked
def rewrite_lattice(
    string: VectorFst | str | bytes, rule: VectorFst, token_type: TokenType | None = None, *,
    budget: Budget | None = None,
) -> Fst:  # fmt: skip
    """All outputs of the rule for a string, as an acceptor without epsilons. Raises ``FstOpError`` if there are
    none.
    """
    with nullcontext() if token_type is None else default_token_type(token_type):
        lattice = compose(string, rule, budget=budget)
    lattice.project("output").rmepsilon(budget=budget)
    if lattice.start() < 0:
        raise FstOpError("rewrite: the rule maps the string to nothing")
    return lattice


@checked
def lattice_to_dfa(lattice: VectorFst, optimal_only: bool, *, budget: Budget | None = None) -> Fst:
    """The lattice determinized, with its best strings only if ``optimal_only``.

    pynini stops at a number of states and warns; here the budget raises ``BudgetExceeded``.
    """
    weight = lattice.kind.core.one() if optimal_only else None
    return Fst.around(operations.determinize(lattice, weight=weight, budget=budget))


@checked
def lattice_to_nshortest(lattice: VectorFst, nshortest: int, *, budget: Budget | None = None) -> Fst:
    """The best paths of the ``nshortest`` best strings."""
    return shortestpath(lattice, nshortest, unique=True, budget=budget)


@checked
def lattice_to_strings(lattice: VectorFst, token_type: TokenType | None = None) -> list[str]:
    """The string of each path."""
    return list(Fst.around(lattice).paths(output_token_type=token_type).ostrings())


@checked
def lattice_to_top_string(
    lattice: VectorFst, token_type: TokenType | None = None, *, budget: Budget | None = None
) -> str:
    """The best string; the first of several equally good ones."""
    return shortestpath(lattice, budget=budget).string(token_type)


@checked
def lattice_to_one_top_string(lattice: VectorFst, token_type: TokenType | None = None) -> str:
    """The only string of a lattice. Raises ``FstOpError`` if there is none, or more than one."""
    found = list(islice(Fst.around(lattice).paths(output_token_type=token_type).ostrings(), 2))
    if len(found) != 1:
        raise FstOpError(
            f"rewrite: {found[0]!r} and {found[1]!r} are as good" if found else "rewrite: no string"
        )
    return found[0]


@checked
def rewrites(
    string: VectorFst | str | bytes, rule: VectorFst, input_token_type: TokenType | None = None,
    output_token_type: TokenType | None = None, *, budget: Budget | None = None,
) -> list[str]:  # fmt: skip
    """All distinct outputs."""
    lattice = rewrite_lattice(string, rule, input_token_type, budget=budget)
    return lattice_to_strings(lattice_to_dfa(lattice, False, budget=budget), output_token_type)


@checked
def one_rewrite(
    string: VectorFst | str | bytes, rule: VectorFst, input_token_type: TokenType | None = None,
    output_token_type: TokenType | None = None, *, budget: Budget | None = None,
) -> str:  # fmt: skip
    """The only output. Raises ``FstOpError`` if there are several; it names two, and the others are not made."""
    found = top_rewrites(string, rule, 2, input_token_type, output_token_type, budget=budget)
    if len(found) > 1:
        raise FstOpError(f"rewrite: there are several outputs, among them {found[0]!r} and {found[1]!r}")
    return found[0]


@checked
def optimal_rewrites(
    string: VectorFst | str | bytes, rule: VectorFst, input_token_type: TokenType | None = None,
    output_token_type: TokenType | None = None, *, budget: Budget | None = None,
) -> list[str]:  # fmt: skip
    """All outputs that are as good as the best one."""
    lattice = rewrite_lattice(string, rule, input_token_type, budget=budget)
    return lattice_to_strings(lattice_to_dfa(lattice, True, budget=budget), output_token_type)


@checked
def top_rewrites(
    string: VectorFst | str | bytes, rule: VectorFst, nshortest: int, input_token_type: TokenType | None = None,
    output_token_type: TokenType | None = None, *, budget: Budget | None = None,
) -> list[str]:  # fmt: skip
    """The ``nshortest`` best outputs, the best first."""
    lattice = rewrite_lattice(string, rule, input_token_type, budget=budget)
    best = lattice_to_nshortest(lattice, nshortest, budget=budget).paths(output_token_type=output_token_type)
    found = [(text, float(weight)) for _, text, weight in best.items()]
    return [text for text, _ in sorted(found, key=lambda each: each[1])]


@checked
def top_rewrite(
    string: VectorFst | str | bytes, rule: VectorFst, input_token_type: TokenType | None = None,
    output_token_type: TokenType | None = None, *, budget: Budget | None = None,
) -> str:  # fmt: skip
    """The best output; the first of several equally good ones."""
    lattice = rewrite_lattice(string, rule, input_token_type, budget=budget)
    return lattice_to_top_string(lattice, output_token_type, budget=budget)


@checked
def one_top_rewrite(
    string: VectorFst | str | bytes, rule: VectorFst, input_token_type: TokenType | None = None,
    output_token_type: TokenType | None = None, *, budget: Budget | None = None,
) -> str:  # fmt: skip
    """The best output. Raises ``FstOpError`` if two are equally good."""
    lattice = rewrite_lattice(string, rule, input_token_type, budget=budget)
    return lattice_to_one_top_string(lattice_to_dfa(lattice, True, budget=budget), output_token_type)


@checked
def matches(
    istring: VectorFst | str | bytes,
    ostring: VectorFst | str | bytes,
    rule: VectorFst,
    input_token_type: TokenType | None = None,
    output_token_type: TokenType | None = None,
    *,
    budget: Budget | None = None,
) -> bool:
    """Whether the rule maps one string to the other. Raises ``FstOpError`` if it maps the first to nothing."""
    lattice = rewrite_lattice(istring, rule, input_token_type, budget=budget)
    with nullcontext() if output_token_type is None else default_token_type(output_token_type):
        return intersect(lattice, ostring, budget=budget).start() >= 0
