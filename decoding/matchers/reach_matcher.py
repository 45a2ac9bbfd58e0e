"""Matchers with exact token limits for push-down automata, over the configurations of ``Reach``.

Distances of a push-down automaton are upper bounds, since one token may pop several frames. So ``Matcher`` rejects some
limits into which a text fits, and near the end of a limit its masks omit tokens whose texts would fit.
``start_matcher`` gives every decoder its matcher. With a stack and a limit it is a ``ReachMatcher``: a mask has a
token if and only if the text can be completed after it. If that cannot be decided within ``automaton.budget``,
``BudgetExceeded`` is raised; a mask is never incomplete.

Cost: while the limit is large, masks are the automaton's own; near its end a search, whose answers are kept with the
automaton (``reach``).
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import tokenfst._native as _native
from tokenfst._native import Matcher
from tokenfst.decoding.matchers.node_matcher import NodeMatcher
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.matchers.reach import START, Bits, Reach, reach_of
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class Walkable(Protocol):
    """An automaton with matchers."""

    def matcher(self, max_new_tokens: int | None = None) -> AnyMatcher:
        """A matcher at the start."""


def start_matcher(automaton: Walkable, max_new_tokens: int | None) -> AnyMatcher:
    """A matcher at the start, complete within ``max_new_tokens`` tokens; the end token counts but is not needed.

    Raises ``TokenLimitError``, with the least number that suffices, if no accepted text is short enough, and
    ``EmptyLanguageError``. With a stack, this call and the matcher's masks raise ``BudgetExceeded`` if the budget does
    not suffice to decide it.
    """
    if max_new_tokens is None or max_new_tokens < 0 or not isinstance(automaton, TokenAutomaton):
        return automaton.matcher(max_new_tokens)
    if automaton.native.has_marks or not automaton.is_pushdown:
        return automaton.matcher(max_new_tokens)
    return ReachMatcher(_Configurations(reach_of(automaton, exact=False)), max_new_tokens)


class ReachMatcher(NodeMatcher[int]):
    """One decoding over the configurations of a ``Reach``, with the methods of ``Matcher``."""

    _twin: Matcher | None = None
    """A matcher of the same automaton without a limit, from which ``forced_bytes`` reads."""

    @property
    def state(self) -> int:
        """A state number: equal numbers have equal futures, in forks of one matcher."""
        return self._nodes[-1]

    def forced_bytes(self) -> bytes:
        """The bytes that follow in every accepted text. As in ``Matcher``, the limit of tokens is ignored."""
        tokens, twin = self.tokens, self._twin
        if twin is None:
            assert isinstance(self.automaton, _Configurations)
            twin = self._twin = self.automaton.without_limit()
        known = twin.tokens
        same = next(
            (k for k, pair in enumerate(zip(known, tokens, strict=False)) if pair[0] != pair[1]), None
        )
        kept = min(len(known), len(tokens)) if same is None else same
        twin.rollback(len(known) - kept)
        twin.accept_tokens(tokens[kept:])
        return twin.forced_bytes()

    def fork(self) -> Self:
        """A copy of this matcher, in the same state. At the start it takes the automaton's newest ``Reach``, so that
        later texts have room.
        """
        walk = self.automaton
        if self._tokens or not isinstance(walk, _Configurations):
            return super().fork()
        return type(self)(walk.newest(), self.max_tokens_left)


class _Configurations:
    """A ``Reach`` of limits as a ``Walk``."""

    start = START

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self.end_tokens = reach.end_tokens
        self.distance, self.accepting = reach.distance, reach.accepting
        self.is_within, self.refusal, self.mask_within = reach.can, reach.refusal, reach.mask

    def __reduce__(self) -> tuple[Any, ...]:
        return _newest, (self._reach.automaton,)

    def without_limit(self) -> Matcher:
        """A walk from the start, of any number of tokens."""
        return self._reach.automaton.matcher()

    def newest(self) -> _Configurations:
        """The same over the ``Reach`` that the automaton begins texts with now."""
        reach = reach_of(self._reach.automaton, exact=False)
        return self if reach is self._reach else _Configurations(reach)

    @property
    def vocabulary(self) -> Vocabulary:
        return self._reach.automaton.vocabulary

    @property
    def native(self) -> _native.TokenAutomaton:
        return self._reach.automaton.native

    def step(self, node: int, token: int) -> int | None:
        following = self._reach.advance(node, token)
        return None if following < 0 else following

    def mask(self, node: int) -> Bits:
        return self._reach.mask(node, None)


def _newest(automaton: TokenAutomaton) -> _Configurations:
    return _Configurations(reach_of(automaton, exact=False))
