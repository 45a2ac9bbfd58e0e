"""Temporal formulas on the command line; sequences of symbols: their notation, and the place where a sequence violates
a formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from tokenfst.automata.symbols.automaton import SymbolAutomaton
from tokenfst.automata.symbols.ltlf import ltlf
from tokenfst.budget import Budget
from tokenfst.cli.constraints.constraints import Constraint
from tokenfst.cli.output.terminal import UsageError, say
from tokenfst.tokenizers.adapters.symbols import listed_symbols

_PANEL = "Symbols"
_SHOWN = 12
"""Symbols to list."""


@dataclass(frozen=True)
class SymbolOptions:
    """Temporal formulas over symbols."""

    ltlf: Annotated[
        list[str] | None,
        typer.Option(
            "--ltlf",
            metavar="FORMULA",
            help="A formula of linear temporal logic on finite traces; may be repeated, and all must hold.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    symbols: Annotated[
        str | None,
        typer.Option(
            "--symbols",
            metavar="A,B,C|@FILE",
            help="The symbols, or a file with one on each line; if not given, those that the formulas name.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def read_formulas(self, budget: Budget) -> Constraint | None:
        """The constraint of the formulas, if some are given."""
        if self.ltlf:
            names = None if self.symbols is None else listed_symbols(self.symbols)
            automaton = ltlf(self.ltlf, names, budget)
            language = automaton.language(budget=budget)
            return Constraint(language, language.source, automaton=automaton)
        if self.symbols is not None:
            raise UsageError("--symbols goes with --ltlf")
        return None


@dataclass(frozen=True, slots=True)
class SymbolResult:
    """The result of checking one sequence.

    If it is not accepted: ``place`` is the number of symbols that are allowed, ``expected`` the symbols that could come
    next, ``other`` whether any other symbol could, ``ends`` whether the sequence could end, and ``ending`` a shortest
    continuation.
    """

    symbols: tuple[str, ...]
    accepted: bool
    place: int = 0
    expected: tuple[str, ...] = ()
    other: bool = False
    ends: bool = False
    ending: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The value in JSON."""
        answer: dict[str, Any] = {"symbols": list(self.symbols), "accepted": self.accepted}
        if not self.accepted:
            answer |= {
                "symbol": self.place,
                "stops_early": self.place == len(self.symbols),
                "expected": {"end": self.ends, "symbols": list(self.expected), "other": self.other},
                "ending": list(self.ending),
            }
        return answer

    def show(self) -> None:
        """Print it."""
        text = _listed(self.symbols) or "(no symbol)"
        if self.accepted:
            say(f"yes  {text}", "green")
            return
        say(f"no   {text}", "red")
        after = f"after {_listed(self.symbols[: self.place])}" if self.place else "at the beginning"
        if self.place == len(self.symbols):
            say(f"     the sequence stops too early, {after}")
        else:
            say(f"     symbol {self.place} ({self.symbols[self.place]}) is not allowed {after}")
        extra = [*(["anything else"] if self.other else []), *(["the end"] if self.ends else [])]
        say(f"     expected {_listed((*self.expected, *extra))}")
        if self.ending:
            say(f"     a shortest way on: {_listed(self.ending)}")


def check_symbols(automaton: SymbolAutomaton, text: str) -> SymbolResult:
    """Check one sequence, written with commas or else spaces between its symbols."""
    symbols = tuple(part.strip() for part in text.split(",")) if "," in text else tuple(text.split())
    state, place = automaton.start, 0
    for symbol in symbols:
        following = automaton.step(state, symbol)
        if not following:
            break
        state, place = following, place + 1
    if place == len(symbols) and automaton.accepting[state]:
        return SymbolResult(symbols, True)
    expected, other = automaton.next_symbols(state)
    way = automaton.witness(state) or ()
    ending = tuple("(anything else)" if symbol is None else symbol for symbol in way)
    ends = bool(automaton.accepting[state])
    return SymbolResult(symbols, False, place, tuple(expected), other, ends, ending)


def _listed(symbols: tuple[str, ...]) -> str:
    """Symbols separated by commas; of very many only the last ones."""
    shown = ", ".join(symbols[-_SHOWN:])
    return f"…, {shown}" if len(symbols) > _SHOWN else shown
