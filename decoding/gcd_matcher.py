"""Matchers whose token budgets are exact for stacks: the configurations of ``Reach``, walked.

A push-down automaton's distances are upper bounds, since one token may close several frames. So ``Matcher`` refuses
some budgets into which a text fits. ``start_matcher`` gives every decoder its matcher, and goes over to a
``ReachMatcher`` then; where the bound suffices, masks stay those of ``Matcher``, sound and soon found.
"""

from __future__ import annotations

from tokenfst.decoding.canonical import CanonicalAutomaton
from tokenfst.decoding.gcd_reach import START, Bits, Reach
from tokenfst.decoding.node_matcher import NodeMatcher
from tokenfst.decoding.prefixes import AnyMatcher
from tokenfst.decoding.token_automaton import TokenAutomaton
from tokenfst.errors import TokenBudgetError
from tokenfst.tokenizers.vocabulary import Vocabulary


def start_matcher(automaton: TokenAutomaton | CanonicalAutomaton, max_tokens: int | None) -> AnyMatcher:
    """A walk from the start, complete within ``max_tokens`` tokens, the end token counted but not needed.

    Raises ``TokenBudgetError``, with the least number that suffices, where no accepted text is so short,
    ``EmptyLanguageError``, and ``BudgetExceeded`` where that cannot be found out for a stack.
    """
    try:
        return automaton.matcher(max_tokens)
    except TokenBudgetError:
        if max_tokens is None or max_tokens < 0 or not isinstance(automaton, TokenAutomaton):
            raise
        if automaton._native.has_marks or not automaton.is_pushdown:
            raise
        return ReachMatcher(_Configurations(automaton.reach(exact=False)), max_tokens)


class ReachMatcher(NodeMatcher[int]):
    """One decoding over the configurations of a ``Reach``; its methods mean what those of ``Matcher`` mean."""


class _Configurations:
    """A ``Reach`` of budgets as a ``Walk``."""

    start = START

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self.end_tokens = reach.end_tokens
        self.distance, self.accepting = reach.distance, reach.accepting
        self.is_within, self.refusal, self.mask_within = reach.can, reach.refusal, reach.mask

    @property
    def vocabulary(self) -> Vocabulary:
        return self._reach.automaton.vocabulary

    def step(self, node: int, token: int) -> int | None:
        following = self._reach.advance(node, token)
        return None if following < 0 else following

    def mask(self, node: int) -> Bits:
        return self._reach.mask(node, None)
