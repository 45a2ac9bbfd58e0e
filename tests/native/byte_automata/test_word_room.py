"""How many words an automaton has, and how long they are: the core against counting them one by one."""

import numpy as np
import pytest

from tokenfst._native import word_counts
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.regex.translate import regex

MANY = 40
"""So many words are plenty here."""
_PLAIN = frozenset(range(0x20, 256)) - frozenset(b'"\\')


def words_by_length(dfa: Dfa, start: int, longest: int, letters: frozenset[int]) -> list[int]:
    """Of each length the number of words of some letters that lead from a state to acceptance."""
    states = {start: 1}
    found = []
    for _ in range(longest + 1):
        found.append(sum(count for state, count in states.items() if dfa.accepting[state]))
        following: dict[int, int] = {}
        for state, count in states.items():
            for byte in letters:
                target = int(dfa.table[state, dfa.classes[byte]])
                if target:
                    following[target] = following.get(target, 0) + count
        states = following
    return found


def expected(dfa: Dfa, excluded: int, numbers: list[int], longest: int) -> tuple[int | None, bool, list[int]]:
    """The same answers, but for the number of words, ``None``, where there are very many."""
    bound = dfa.num_states + 1  # a state with a word that long is on the way to a cycle
    totals = {}
    for state in range(1, dfa.num_states):
        lengths = words_by_length(dfa, state, 2 * bound, frozenset(range(256)))
        totals[state] = MANY * MANY if any(lengths[bound:]) else min(sum(lengths), MANY * MANY)
    count = totals[dfa.start] - excluded
    few_endings = count < MANY or min(totals.values()) < MANY
    states = [dfa.start] if few_endings else list(totals)
    found = []
    for number in numbers:
        least = 0
        for state in states:
            wanted = min(totals[state], number + 1 + excluded)
            sums = np.cumsum(words_by_length(dfa, state, longest, _PLAIN))
            least = max(least, next((k for k, total in enumerate(sums) if total >= wanted), 10**9))
        found.append(0 if least > longest else max(least, 1))
    return (None if totals[dfa.start] == MANY * MANY else count), few_endings, found


@pytest.mark.parametrize(
    "pattern",
    [
        "a",
        "a?",
        "[ab]{0,3}",
        "(a|b)*",
        "a*b",
        "x[0-9]{2}|y*",
        '"*',
        '["a]{1,9}',
        "[a-z]{3}",
        "ab|cd|e",
        "é{2}",
        ".+",
        "(ab){3,}",
    ],
)
@pytest.mark.parametrize("excluded", [0, 1])
def test_against_counting(pattern: str, excluded: int) -> None:
    dfa = regex(pattern).determinize()
    numbers, longest = [3, 30], 12
    count, few_endings, lengths = word_counts(
        dfa.classes, dfa.table, dfa.accepting, dfa.start, excluded, MANY, numbers, longest
    )
    wanted = expected(dfa, excluded, numbers, longest)
    assert (few_endings, lengths) == wanted[1:]
    assert count == wanted[0] if wanted[0] is not None else count >= MANY
