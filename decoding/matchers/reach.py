"""Which configurations of a token automaton are completed by exactly n tokens, or by at most n: found when asked, kept.

Distances do not answer this. From L = {a, bcd} one token leads to acceptance, and no text of three tokens begins with
``a``. And distances of stacks are upper bounds: a token may close several frames at once, so a text can be shorter than
they say. ``Reach`` decides both questions exactly, for finite and push-down automata alike, and gives the masks that
follow: the tokens after which the tokens that are left suffice.

    can(q, 0) = q accepts              can(q, r) = some token leads to a q' with can(q', r - 1)        (exact)
                                                   q accepts, or that                                  (at most)

Data. Configurations are numbered by the native core, equal stacks alike. Of each, the successors are kept, and what is
known: two sets of lengths as the bits of an integer. A question is a depth-first search through what is not known; one
success settles all of its path. The next configuration is the one that stands still, if it may; else the one whose
distance fits the tokens left best, since a shortest way has exactly as many tokens. Where distances are known to be the
least, those that are too far are not tried. At most, and while the tokens left are more than what bounds say that any
next token needs, masks are those of the automaton (``native/token_automata/configurations.hpp``), and nothing is
searched.

Cost. A walk of the vocabulary for each configuration that a search meets; with S configurations at most S * n answers,
most of them never asked for. With stacks nothing bounds S, and an answer "no" close to the end may need very many: the
budget (states: answers) raises. Rejected: tables of all states for all lengths, made ahead (push-down automata have
none); recursion.

Invariant: answers are exact. A mask allows a token exactly if can(q', r - 1) after it.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.decoding.masks.bitmask import bitmask_from_ids
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import BudgetExceeded, TokenBudgetError
from tokenfst.locks import fork_safe_lock

Bits = npt.NDArray[np.int32]

START = 0
"""The number of the first configuration."""

_PLENTY = 1 << 31
"""More tokens than any bound on distances."""

_NEAR = 16
"""How many lengths more and fewer an error looks at to advise others."""


def reach_of(automaton: TokenAutomaton, *, exact: bool) -> Reach:
    """What numbers of tokens complete a text of an automaton from where: exactly so many, or at most. Kept with the
    automaton, and begun anew once half of its budget is used up, so that texts to come have room."""
    known: Reach | None = automaton.kept.get((Reach, exact))
    if known is None or known.is_crowded:
        known = automaton.kept[Reach, exact] = Reach(automaton, exact=exact)
    return known


class Reach:
    """What a token automaton's configurations can be completed with. ``exact``: by exactly so many tokens, not at most.

    Made by ``reach_of``; shared by threads, which wait for each other. Grows by what it is asked, within
    ``automaton.budget``: ``states`` answers and configurations, ``seconds`` for one question or mask, ``bytes`` of
    what they hold; beyond an eighth of that, masks are made anew. Numbers of configurations mean nothing to another
    ``Reach``.
    """

    def __init__(self, automaton: TokenAutomaton, *, exact: bool) -> None:
        self.automaton, self.exact = automaton, exact
        self._lock = fork_safe_lock()
        self._configurations = _native.Configurations(automaton.native)
        self._successors: dict[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}
        self._yes: dict[int, int] = {}
        self._no: dict[int, int] = {}
        self._answers = 0
        self._held = 0
        self._masks: dict[tuple[int, bytes], Bits] = {}
        self._mask_at: dict[tuple[int, int | None], Bits] = {}
        self.end_tokens = bitmask_from_ids(automaton.vocabulary.eos_token_ids, len(automaton.vocabulary))

    @property
    def is_crowded(self) -> bool:
        """Whether half of the budget is used up."""
        budget = self.automaton.budget
        return 2 * self._states > budget.states or 2 * self._bytes > budget.bytes

    def accepting(self, at: int) -> bool:
        """Whether a configuration accepts."""
        return self._configurations.accepting(at)

    def distance(self, at: int) -> int:
        """Tokens to acceptance, the end token not counted; with stacks an upper bound."""
        with self._lock:
            return self._configurations.distance(at)

    def advance(self, at: int, token: int) -> int:
        """Where a token leads; -1: nowhere."""
        with self._lock:
            return self._configurations.advance(at, token)

    def check(self, tokens: int) -> None:
        """Raise ``TokenBudgetError`` where no text fits, naming numbers of tokens that work."""
        if not self.can(START, tokens):
            raise self.refusal(START, tokens)

    def refusal(self, at: int, tokens: int) -> TokenBudgetError:
        """The error where so many tokens complete no text, naming numbers that do."""
        name, enough = self.automaton.source, self.distance(at)
        near: list[int] = []
        with contextlib.suppress(BudgetExceeded):  # advice only
            if self.exact:
                near = [n for n in range(max(0, tokens - _NEAR), tokens + _NEAR + 1) if self.can(at, n)]
            else:
                near = [next(n for n in range(tokens + 1, enough + 1) if self.can(at, n))]
        if self.exact:
            advice = nearest(tokens, near or [enough])
            return TokenBudgetError(f"no text of {name} has exactly {tokens} tokens: {advice}")
        advice = f"the least number is {near[0]}" if near else f"{enough} suffice"
        return TokenBudgetError(f"no accepted text of {name} fits into {tokens} tokens: {advice}")

    def can(self, at: int, left: int) -> bool:
        """Whether ``left`` tokens suffice from here, or are just right. Raises ``BudgetExceeded``."""
        with self._lock:
            return self._can(at, left, self._deadline())

    def _can(self, at: int, left: int, deadline: float) -> bool:
        known = self._known(at, left)
        return self._search(at, left, deadline) if known is None else known

    def _deadline(self) -> float:
        return time.monotonic() + self.automaton.budget.seconds

    def _search(self, at: int, left: int, deadline: float) -> bool:
        path = [(at, left, self._order(at, left))]
        while path:
            here, rest, untried = path[-1]
            answer: bool | None = False
            while untried and answer is False:
                following = untried.pop()
                answer = self._known(following, rest - 1)
                if answer is None:
                    path.append((following, rest - 1, self._order(following, rest - 1)))
            if answer:
                for earlier, length, _ in path:
                    self._learn(earlier, length, True)
                return True
            if answer is False:
                self._learn(here, rest, False)
                path.pop()
            if time.monotonic() > deadline:
                raise BudgetExceeded("seconds", self.automaton.budget.seconds, self._where())
        return False

    def mask(self, at: int, left: int | None) -> Bits:
        """The tokens after which ``left - 1`` tokens suffice, or are just right, or any number (None); packed, read
        only. At most: the end tokens too, where the text is accepted."""
        with self._lock:
            known = self._mask_at.get((at, left))
            if known is None and not self.exact and (left is None or left > 0):
                known = self._configurations.mask(at, None if left is None else min(left, _PLENTY))
                if known is not None:
                    return known
            if known is None:
                targets, deadline = self._reached(at)[0].tolist(), self._deadline()
                more = left is None or left > 0
                chosen = np.array(
                    [more and (left is None or self._can(target, left - 1, deadline)) for target in targets],
                    bool,
                )
                known = self._mask_of(at, chosen, more and not self.exact)
                if len(self._mask_at) > self.automaton.budget.states:
                    self._mask_at.clear()
                self._mask_at[at, left] = known
            return known

    def nearer(self, at: int) -> Bits:
        """The tokens that reduce the distance, packed; end tokens apart. Read only."""
        with self._lock:
            distances = self._reached(at)[1]
            return self._mask_of(at, distances < self.distance(at), False)

    def _mask_of(self, at: int, chosen: npt.NDArray[np.bool_], ends: bool) -> Bits:
        ends = ends and self.accepting(at)
        key = (at, np.packbits(chosen).tobytes() + (b"e" if ends else b""))
        found = self._masks.get(key)
        if found is None:
            _, offsets, tokens = self._configurations.arcs(at)
            found = bitmask_from_ids(
                tokens[np.repeat(chosen, np.diff(offsets))], len(self.automaton.vocabulary)
            )
            if ends:
                found = found | self.end_tokens
            found.flags.writeable = False
            if (len(self._masks) + 1) * found.nbytes > self.automaton.budget.bytes // 8:
                self._masks.clear()
                self._mask_at.clear()
            self._masks[key] = found
        return found

    def _reached(self, at: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The configurations one token away, in the order of arcs, and their distances."""
        found = self._successors.get(at)
        if found is None:
            targets = self._configurations.arcs(at)[0].astype(np.int64)
            distances = np.array([self.distance(target) for target in targets.tolist()], np.int64)
            found = self._successors[at] = (targets, distances)
            self._held += targets.nbytes + distances.nbytes
            self._check_size()
        return found

    def _order(self, at: int, left: int) -> list[int]:
        """The successors to try for ``left`` tokens, the best one last."""
        targets, distances = self._reached(at)
        slack = left - 1 - distances
        if self._configurations.distances_are_least:
            targets, slack = targets[slack >= 0], slack[slack >= 0]
        order = np.lexsort((np.abs(slack), (targets != at) | (slack < 0), slack < 0))
        best_first: list[int] = targets[order].tolist()
        return best_first[::-1]

    def _known(self, at: int, left: int) -> bool | None:
        if left <= 0:
            return left == 0 and self.accepting(at)
        if self.exact:
            if self._yes.get(at, 0) >> left & 1:
                return True
            return False if self._no.get(at, 0) >> left & 1 else None
        if self.accepting(at) or self.distance(at) <= left or self._yes.get(at, left + 1) <= left:
            return True
        return False if self._no.get(at, -1) >= left else None

    def _learn(self, at: int, left: int, answer: bool) -> None:
        """Exact: bits of lengths. At most: the least length that suffices, and the greatest that does not."""
        self._answers += 1
        self._check_size()
        if self.exact:
            known = self._yes if answer else self._no
            known[at] = known.get(at, 0) | 1 << left
        elif answer:
            self._yes[at] = min(left, self._yes.get(at, left))
        else:
            self._no[at] = max(left, self._no.get(at, left))

    def _check_size(self) -> None:
        budget = self.automaton.budget
        if self._states > budget.states:
            raise BudgetExceeded("states", budget.states, self._where())
        if self._bytes > budget.bytes:
            raise BudgetExceeded("bytes", budget.bytes, self._where())

    @property
    def _states(self) -> int:
        return max(self._answers, len(self._configurations))

    @property
    def _bytes(self) -> int:
        return self._held + self._configurations.memory

    def _where(self) -> str:
        return f"the search for numbers of tokens that complete texts of {self.automaton.source}"


def nearest(tokens: int, numbers: list[int]) -> str:
    """Which of the ascending ``numbers`` of tokens that work are next to one that does not."""
    near = [n for n in numbers if n < tokens][-1:] + [n for n in numbers if n > tokens][:1]
    if not near:
        return "no number works"
    return f"{' and '.join(map(str, near))} {'works' if len(near) == 1 else 'work'}"
