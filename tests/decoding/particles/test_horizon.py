"""Which states are met and end well, against matchers that try every sequence."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reference.tokens.small_automata import small_automaton
from tokenfst import TokenAutomaton, Vocabulary
from tokenfst.decoding.particles.horizon import Horizon
from tokenfst.errors import EmptyLanguageError, MatcherError, TokenLimitError

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")

TOKENS = 3
VOCABULARY = Vocabulary([b"a", b"b", b"ab", b""], 3)


def completions(automaton: TokenAutomaton, prefix: tuple[int, ...], left: int, exact: bool) -> bool:
    """Whether some tokens after the prefix, ``left`` of them or up to as many, spell a text."""
    for count in [left] if exact else range(left + 1):
        for rest in itertools.product(range(3), repeat=count):
            matcher = automaton.matcher()
            if matcher.accept_tokens((*prefix, *rest)) and matcher.is_accepting():
                return True
    return False


def leads_on(horizon: Horizon, state: int, token: int, left: int) -> bool:
    try:
        return bool(horizon.alive[left, horizon.next_state(state, token)])
    except MatcherError:
        return False


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), exact=st.booleans())
@example(seed=1264, exact=False)
def test_tokens_are_allowed_exactly_if_some_completion_is_accepted(seed: int, exact: bool) -> None:
    automaton = small_automaton(random.Random(seed), VOCABULARY)
    try:
        automaton.matcher()
    except EmptyLanguageError:  # these tokens spell none of its strings
        with pytest.raises(EmptyLanguageError):
            Horizon(automaton, TOKENS, "exact" if exact else "at_most")
        return
    if not completions(automaton, (), TOKENS, exact):
        with pytest.raises(TokenLimitError):
            Horizon(automaton, TOKENS, "exact" if exact else "at_most")
        return
    horizon = Horizon(automaton, TOKENS, "exact" if exact else "at_most")
    met: list[set[int]] = [set() for _ in range(TOKENS + 1)]
    prefixes: list[tuple[tuple[int, ...], int]] = [((), horizon.start)]
    for prefix, state in prefixes:  # grows meanwhile
        left = TOKENS - len(prefix)
        met[left].add(state)
        if not left:
            continue
        allowed = [x for x in range(4) if leads_on(horizon, state, x, left - 1)]
        matcher = automaton.matcher()
        assert matcher.accept_tokens(prefix)
        ends = [3] if matcher.is_accepting() and not exact else []
        wanted = [x for x in range(3) if completions(automaton, (*prefix, x), left - 1, exact)]
        assert allowed == wanted + ends
        prefixes += [((*prefix, x), horizon.next_state(state, x)) for x in wanted]
    for left in range(TOKENS + 1):
        alive = {state for state in range(len(horizon.alive[left])) if horizon.alive[left, state]}
        assert alive - {horizon.ended} == met[left]


def test_the_end_stays_the_end() -> None:
    horizon = Horizon(small_automaton(random.Random(3), VOCABULARY), 6, "at_most")
    assert horizon.ended is not None
    assert horizon.next_state(horizon.ended, 0) == horizon.ended
    with pytest.raises(MatcherError, match="has no token"):
        horizon.next_state(horizon.start, 17)
