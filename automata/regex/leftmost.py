"""``Leftmost``: the match that ``re.match`` prefers (leftmost-first semantics), as an automaton.

As a set of words a pattern has no order, but ``re`` tries alternatives from left to right, and greedy repetitions
before the rest: ``a|ab`` matches the "a" of "ab" and never all of it. A state of the automaton here is a list of
positions in the pattern, in order of preference. If one of them is the end of the pattern, the less preferred ones are
dropped (Pike; RE2 calls this leftmost-first). So a word is accepted if ``re.match`` takes all of it, and the end of a
match in a longer text is the last accepting state on the way.

Most patterns prefer their longest words, so that each word is its own match. ``is_orderly`` recognizes most of these
without the automaton: no position in the pattern can continue in two ways by the same character, and continuing is
preferred to ending.

Cost: ``is_orderly`` is linear in the pattern if few positions follow each position; counted repetitions count once.
``read`` builds an automaton, with repetitions expanded, under ``Budget``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.automata.characters.classes import members
from tokenfst.automata.characters.utf8 import SURROGATES, Ranges, normalize, overlap
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.letters import Ints, crawl, write_letters
from tokenfst.automata.regex.parse import (
    ANY,
    ASSERT,
    ASSERT_NOT,
    AT,
    BRANCH,
    FAILURE,
    IN,
    LITERAL,
    MAX_REPEAT,
    MAXREPEAT,
    MIN_REPEAT,
    NOT_LITERAL,
    SUBPATTERN,
    Pattern,
    combine_flags,
)
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_MAX_PLACES = 50_000
_CHARACTERS = (LITERAL, NOT_LITERAL, ANY, IN)
_NEVER, _DOUBT, _SURE = 0, 1, 2
_SHORT = 16
"""The greatest number of positions of a fixed repetition that is expanded even if ``folded``."""
_END = 0
"""The position after the pattern."""


@dataclass(frozen=True, eq=False)
class Leftmost:
    """A deterministic automaton over classes of characters; state 0 is DEAD, 1 the start.

    ``begins`` and ``group`` map characters to classes as in ``LetterAutomaton`` (-1: surrogates). ``hides``: whether
    positions were dropped, so that some words may not be their own match and are not accepted.
    """

    begins: Ints
    group: Ints
    table: npt.NDArray[np.uint32]
    accepting: npt.NDArray[np.bool_]
    hides: int

    def expr(self, budget: Budget) -> Expr:
        """The words that are their own match, in UTF-8."""
        return write_letters(
            self.begins, self.group, self.table, self.accepting, "characters", Deadline(budget, "a terminal")
        )


class Places:
    """The positions of a pattern and their successors, in order of preference.

    ``folded``: the body of a repetition is expanded only once, whatever its counts, so positions are over-approximated.
    Repetitions of a few characters a fixed number of times are expanded nevertheless. ``blind``: conditions on the
    surrounding text (look-around, anchors) are ignored. ``hollow``: something that may be empty is repeated without
    bound, or lazily more than once; ``re`` ends such a repetition by its own rules. ``ends_twice``: some text leads to
    the end in two ways. ``backwards``: the opposite order of preference. Raises BudgetExceeded("positions").
    """

    def __init__(self, pattern: Pattern, *, folded: bool = False, backwards: bool = False) -> None:
        self.pattern, self.folded, self.backwards = pattern, folded, backwards
        self.sets: list[Ranges | None] = [None]
        self.ways: list[tuple[int, ...]] = [()]
        self.loops: dict[int, tuple[int, int]] = {}
        self.blind = self.hollow = self.ends_twice = False
        self.start = self._sequence(pattern.tree.data, pattern.flags, _END)

    @cached_property
    def first(self) -> Ranges:
        """A superset of the characters with which a word can begin."""
        found, _, _ = self.reached((self.start,))
        return normalize(pair for place in found for pair in self.sets[place] or ())

    def reached(self, starts: Iterable[int]) -> tuple[tuple[int, ...], bool, int]:
        """The places reachable from ``starts`` that read a character, in order of preference, up to the end of the
        pattern.

        Also whether the end is reached, and whether places after it were dropped: ``_NEVER``, ``_DOUBT`` or ``_SURE``.
        """
        found: list[int] = []
        seen: set[int] = set()
        ends, drops = False, _NEVER
        stack = list(starts)[::-1]
        while stack:
            place = stack.pop()
            if place in self.loops:
                again, out = self.loops[place]
                stack.append(out if again in seen else again)  # an empty round is the last one
                continue
            if place in seen:
                # A repetition that is written once has one place for many: one after the end may be one of them.
                # And a condition on the surrounding text may exclude the first one.
                doubt = (ends and self.folded) or self.blind
                drops = max(drops, _DOUBT) if doubt and place != _END else drops
                self.ends_twice |= place == _END
                continue
            seen.add(place)
            if place == _END:
                ends = True
            elif self.sets[place] is None:
                stack += reversed(self.ways[place])
            elif ends:
                drops = _SURE
            else:
                found.append(place)
        return tuple(found), ends, drops

    def _place(self, ways: tuple[int, ...], characters: Ranges | None = None) -> int:
        if len(self.ways) > _MAX_PLACES:
            shown = str(self.pattern.text)
            raise BudgetExceeded("positions", _MAX_PLACES, f"the regular expression {shown[:40]!r}")
        self.ways.append(ways)
        self.sets.append(characters)
        return len(self.ways) - 1

    def _sequence(self, items: Any, flags: int, rest: int) -> int:
        for op, argument in reversed(items):
            rest = self._item(op, argument, flags, rest)
        return rest

    def _item(self, op: Any, argument: Any, flags: int, rest: int) -> int:
        if op in _CHARACTERS:
            return self._place((rest,), members(op, argument, flags))
        if op is SUBPATTERN:
            _, added, removed, body = argument
            return self._sequence(body.data, combine_flags(flags, added, removed), rest)
        if op is BRANCH:
            ways = tuple(self._sequence(each.data, flags, rest) for each in argument[1])
            return self._place(ways[::-1] if self.backwards else ways)
        if op is FAILURE:
            return self._place(())
        if op is AT or op is ASSERT or op is ASSERT_NOT:
            self.blind = True
            return rest
        low, high, body = argument
        greedy = (op is MAX_REPEAT) != self.backwards
        short = (
            low == high
            and high * len(body.data) <= _SHORT
            and all(each in _CHARACTERS for each, _ in body.data)
        )
        once = self.folded and (high is MAXREPEAT or high > 1) and not short
        if once or high is MAXREPEAT:
            self.hollow |= body.getwidth()[0] == 0
            again, back = self._place(()), self._place(())
            self.loops[back] = (again, rest)
            begin = self._sequence(body.data, flags, back)
            self.ways[again] = (begin, rest) if greedy else (rest, begin)
            if once:
                return begin if low else again
            rest = again
        else:
            self.hollow |= op is MIN_REPEAT and low < high > 1 and body.getwidth()[0] == 0
            after = rest
            for _ in range(high - low):
                begin = self._sequence(body.data, flags, rest)
                rest = self._place((begin, after) if greedy else (after, begin))
        for _ in range(low):
            rest = self._sequence(body.data, flags, rest)
        return rest


def is_orderly(pattern: Pattern) -> bool:
    """Whether every word of a pattern is certainly its own match: sufficient, not necessary.

    Look-around does not matter, because it only removes parses.
    """
    if pattern.reserved:
        return False
    if not _has_choices(pattern) or _longest_first(pattern):
        return True
    if _counts_choices(pattern):
        return False  # the copies of a counted part are one place below
    places = Places(pattern, folded=True)
    lists = [places.reached((places.start,))]
    lists += [
        places.reached(ways)
        for ways, characters in zip(places.ways, places.sets, strict=True)
        if characters is not None
    ]
    for found, _, drops in lists:
        if drops:
            return False
        read: Ranges = ()
        for place in found:
            more = places.sets[place] or ()
            if read and overlap(read, more):
                return False
            read = normalize((*read, *more))
    return True


def read(pattern: Pattern, budget: Budget) -> Leftmost | None:
    """The automaton of the matches of ``re.match``; None if the pattern has look-around, named groups, or an unbounded
    repetition of something that may be empty.
    """
    if pattern.reserved:
        return None
    places = Places(pattern)
    return None if places.blind or places.hollow else _automaton(places, budget)


def is_certain(pattern: Pattern, budget: Budget) -> bool:
    """Whether every word is its own match: sufficient, not necessary. Ignores look-around."""
    places = Places(pattern)
    if pattern.reserved:
        return False
    made = _automaton(places, budget)
    prefix_free = made.hides != _SURE and not made.table[made.accepting].any()
    return prefix_free or not (made.hides or places.hollow)


def is_shortest(pattern: Pattern, budget: Budget) -> bool:
    """Whether the shortest match is always preferred, and after it the next longer one.

    Look-around may exclude the first matches. So it is not enough that nothing is preferred to the first end: in the
    opposite order no end may be preferred to what continues.
    """
    places = Places(pattern)
    made = _automaton(places, budget)
    if places.hollow or places.ends_twice or made.table[made.accepting].any():
        return False
    return not places.blind or _automaton(Places(pattern, backwards=True), budget).hides != _SURE


def _automaton(places: Places, budget: Budget) -> Leftmost:
    distinct = sorted({each for each in places.sets if each is not None})
    begins, group, classes = cut({each: k for k, each in enumerate(distinct)})
    holds = [
        frozenset(k for k, inside in enumerate(classes) if number in inside)
        for number in range(len(distinct))
    ]
    number = {each: k for k, each in enumerate(distinct)}
    reads = [frozenset[int]() if each is None else holds[number[each]] for each in places.sets]
    hides = _NEVER

    def follow(state: tuple[tuple[int, ...], bool]) -> tuple[None, dict[int, Any]]:
        nonlocal hides
        found: dict[int, Any] = {}
        for k in frozenset[int]().union(*(reads[place] for place in state[0])):
            following, ends, drops = places.reached(
                [places.ways[place][0] for place in state[0] if k in reads[place]]
            )
            hides = max(hides, drops)
            if following or ends:
                found[k] = (following, ends)
        return None, found

    first, ends, drops = places.reached((places.start,))
    table, accepting = crawl(
        (first, ends),
        follow,
        lambda state: state[1],
        max(len(classes), 1),
        Deadline(budget, f"what {str(places.pattern.text)[:40]!r} matches first"),
    )
    return Leftmost(begins, group, table, accepting, max(hides, drops))


def cut(sets: dict[Ranges, int]) -> tuple[Ints, Ints, list[frozenset[int]]]:
    """Classes of characters that no set distinguishes: ``begins`` and ``group`` as in ``LetterAutomaton``, and the
    sets that contain each class. Characters in no set have a class, too; surrogates have none.
    """
    edges = {0}
    for ranges in (*sets, SURROGATES):
        edges.update(edge for low, high in ranges for edge in (low, high + 1))
    begins = np.array(sorted(edge for edge in edges if edge <= 0x10FFFF), np.int64)
    members: list[set[int]] = [set() for _ in begins]
    for ranges, k in sets.items():
        for low, high in ranges:
            first, last = np.searchsorted(begins, (low, high + 1))
            for each in members[first:last]:
                each.add(k)
    numbers: dict[frozenset[int], int] = {}
    group = np.array([numbers.setdefault(frozenset(each), len(numbers)) for each in members], np.int64)
    [(low, high)] = SURROGATES
    group[(begins >= low) & (begins <= high)] = -1
    return begins, group, list(numbers)


def _longest_first(pattern: Pattern) -> bool:
    """Whether a pattern consists of alternatives of one length each, longer ones first."""
    items = pattern.tree.data
    while len(items) == 1 and items[0][0] is SUBPATTERN:
        items = items[0][1][3].data
    if len(items) != 1 or items[0][0] is not BRANCH:
        return False
    widths = [each.getwidth() for each in items[0][1][1]]
    return all(low == high for low, high in widths) and widths == sorted(widths, reverse=True)


def _has_choices(pattern: Pattern) -> bool:
    """Whether there is a choice: alternatives, or repetitions that may end at several places."""
    return _chooses(pattern.tree)


def _chooses(tree: Any) -> bool:
    stack = [tree]
    while stack:
        for op, argument in stack.pop().data:
            if op is BRANCH or ((op is MAX_REPEAT or op is MIN_REPEAT) and argument[0] != argument[1]):
                return True
            if op is SUBPATTERN:
                stack.append(argument[3])
            elif op is MAX_REPEAT or op is MIN_REPEAT:
                stack.append(argument[2])
    return False


def _counts_choices(pattern: Pattern) -> bool:
    """Whether a counted part can be read in several ways, or a count that can end at several places is repeated.

    Then the end of one copy determines what is left for the next one.
    """
    stack = [(pattern.tree, False)]
    while stack:
        tree, repeated = stack.pop()
        for op, argument in tree.data:
            if op is SUBPATTERN:
                stack.append((argument[3], repeated))
            elif op is BRANCH:
                stack += [(each, repeated) for each in argument[1]]
            elif op is MAX_REPEAT or op is MIN_REPEAT:
                low, high, body = argument
                counted = low > 1 or 1 < high < MAXREPEAT
                if counted and (_chooses(body) or (low != high and repeated)):
                    return True
                stack.append((body, repeated or high > 1))
    return False
