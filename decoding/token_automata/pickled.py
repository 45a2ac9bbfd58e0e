"""Pickling of token automata and matchers.

The core's automaton consists of tables and tries in memory. It is pickled as the data it was made from (``made_from``,
set by ``TokenAutomaton``) and its constraint, if known: an expanded automaton as its arrays, a lazy one as its
program, which is composed again when unpickled. Both include their vocabulary; a process keeps one object of each that
it receives. A matcher is pickled as its automaton and its history, which is replayed. Automata are immutable, so a copy
within a process is the automaton itself, and a copy of a matcher is a fork.

Cost: the pickle is as large as the arrays, or the program, and the vocabulary. If an artifact file exists, send its
path instead, and call ``load`` in each process.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tokenfst._native as _native
from tokenfst._native import Matcher
from tokenfst.decoding.token_automata.held_constraints import HeldConstraint, held_by
from tokenfst.errors import ArgumentTypeError

_T = TypeVar("_T")


def made_by(
    make: Callable[..., _native.TokenAutomaton], native: _native.TokenAutomaton, *parts: Any
) -> _native.TokenAutomaton:
    """The automaton, annotated with the call ``make(*parts)`` that recreates it."""
    native.made_from = make, *parts
    return native


def restored(matcher: _T, tokens: Sequence[int], left: int | None) -> _T:
    """A matcher at its start, advanced by the tokens of its history, with ``left`` tokens left."""
    walked: Any = matcher
    walked.accept_tokens(tokens)
    walked.max_tokens_left = left
    return matcher


def _matcher(automaton: _native.TokenAutomaton, tokens: Sequence[int], left: int | None) -> Matcher:
    return restored(Matcher(automaton), tokens, left)


def _reduce_automaton(automaton: _native.TokenAutomaton) -> tuple[Any, ...]:
    made_from = getattr(automaton, "made_from", None)
    if made_from is None:
        raise ArgumentTypeError(f"cannot pickle {automaton!r}: it was not made by compile() or load()")
    return _remade, (made_from, held_by(automaton))


def _remade(made_from: tuple[Any, ...], held: HeldConstraint | None) -> _native.TokenAutomaton:
    make, *parts = made_from
    automaton: _native.TokenAutomaton = make(*parts)
    if held is not None:
        automaton.held_constraint = held
    return automaton


def _reduce_matcher(matcher: Matcher) -> tuple[Any, ...]:
    return _matcher, (matcher.automaton, matcher.tokens, matcher.max_tokens_left)


def _itself(value: _T, memo: object = None) -> _T:
    return value


def _fork(matcher: Matcher, memo: object = None) -> Matcher:
    return matcher.fork()


copyreg.pickle(_native.TokenAutomaton, _reduce_automaton)
copyreg.pickle(Matcher, _reduce_matcher)
for _name in ("__copy__", "__deepcopy__"):
    setattr(_native.TokenAutomaton, _name, _itself)
    setattr(Matcher, _name, _fork)
