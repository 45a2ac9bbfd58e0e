"""``Reach``: which configurations of a token automaton are completed by exactly n, or by at most n, tokens; memoized.

Distances do not answer this. In L = {a, bcd} one token leads to acceptance, but no text of three tokens starts with
``a``. And distances of push-down automata are upper bounds: a token may pop several frames at once, so a text can be
shorter than they say. ``Reach`` decides both questions exactly, for finite and push-down automata, and computes the
corresponding masks: the tokens after which the remaining tokens suffice.

    can(q, 0) = q accepts              can(q, r) = some token leads to a q' with can(q', r - 1)        (exact)
                                                   q accepts, or that                                  (at most)

Data. The native core numbers configurations; equal stacks have equal numbers. For each one the successors are kept, and
the known answers: two sets of lengths as the bits of an integer. A query is a depth-first search through unknown
answers; one success answers the query for all configurations of its path. The search first tries a configuration that
is its own successor, if there is one, then the successor whose distance fits the remaining tokens best, since a
shortest path has exactly that many tokens. If distances are exact, successors that are too far are skipped. In "at
most" mode, as long as the remaining tokens exceed the upper bounds after every next token, the masks are those of the
automaton (``native/token_automata/configurations.hpp``) and nothing is searched.

Cost. A walk of the vocabulary for each configuration that a search visits; with S configurations at most S * n answers,
most of which are never needed. With stacks S is unbounded, and a negative answer near the end may need very many
configurations: beyond ``budget.states`` answers ``BudgetExceeded`` is raised. Rejected: precomputed tables of all
states for all lengths (impossible for push-down automata); recursion.

Invariant: answers are exact. A mask allows a token if and only if can(q', r - 1) holds after it.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.common.locks import fork_safe_lock
from tokenfst.common.plurals import counted
from tokenfst.decoding.masks.bitmask import bitmask_from_ids
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import BudgetExceeded, TokenLimitError

Bits = npt.NDArray[np.int32]

START = 0
"""The number of the first configuration."""

_PLENTY = 1 << 31
"""A number of tokens above any bound on distances."""

_NEAR = 16
"""An error looks for feasible lengths up to this much above and below the given one."""


def reach_of(automaton: TokenAutomaton, *, exact: bool) -> Reach:
    """The ``Reach`` of an automaton, for exact or for maximum numbers of tokens.

    Cached with the automaton. Replaced by a new one when half of its budget is used, so that later texts have room.
    """
    known: Reach | None = automaton.caches.get((Reach, exact))
    if known is None or known.is_crowded:
        known = automaton.caches[Reach, exact] = Reach(automaton, exact=exact)
    return known


class Reach:
    """Exact reachability of a token automaton. ``exact``: whether queries are for exactly the given number of tokens,
    or else for at most that many.

    Created by ``reach_of``; shared by threads, which wait for each other. It grows by its queries, within
    ``automaton.budget``: ``states`` bounds answers and configurations, ``seconds`` one query or mask, ``bytes`` its
    memory; masks beyond an eighth of that are recomputed. Configuration numbers are not valid in another ``Reach``.
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
        """Whether half of the budget is used."""
        budget = self.automaton.budget
        return 2 * self._states > budget.states or 2 * self._bytes > budget.bytes

    def accepting(self, at: int) -> bool:
        """Whether a configuration accepts."""
        return self._configurations.accepting(at)

    def distance(self, at: int) -> int:
        """The number of tokens to acceptance, not counting the end token; with stacks an upper bound."""
        with self._lock:
            return self._configurations.distance(at)

    def advance(self, at: int, token: int) -> int:
        """The configuration after a token; -1 if there is none."""
        with self._lock:
            return self._configurations.advance(at, token)

    def check(self, tokens: int) -> None:
        """Raise ``TokenLimitError`` if no text fits, naming feasible numbers of tokens."""
        if not self.can(START, tokens):
            raise self.refusal(START, tokens)

    def refusal(self, at: int, tokens: int) -> TokenLimitError:
        """The error for a text that ``tokens`` tokens cannot complete, naming numbers that can."""
        name, enough = self.automaton.source, self.distance(at)
        near: list[int] = []
        with contextlib.suppress(BudgetExceeded):  # advice only
            if self.exact:
                near = [n for n in range(max(0, tokens - _NEAR), tokens + _NEAR + 1) if self.can(at, n)]
            else:
                near = [next(n for n in range(tokens + 1, enough + 1) if self.can(at, n))]
        if self.exact:
            advice = nearest(tokens, near or [enough])
            return TokenLimitError(f"no text of {name} has exactly {counted(tokens, 'token')}: {advice}")
        advice = f"the least number is {near[0]}" if near else f"{enough} suffice"
        return TokenLimitError(f"no accepted text of {name} fits into {counted(tokens, 'token')}: {advice}")

    def can(self, at: int, left: int) -> bool:
        """Whether at most, or exactly, ``left`` tokens complete the text. Raises ``BudgetExceeded``."""
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
        """The tokens after which at most, or exactly, ``left - 1`` tokens complete the text; for ``left=None`` any
        number of tokens. An int32 mask (words,), read-only.

        In "at most" mode the mask also has the end tokens, if the text is accepted. Raises ``BudgetExceeded``.
        """
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
        """The tokens that reduce the distance, without end tokens: an int32 mask (words,), read-only."""
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
    """A message with the ascending feasible ``numbers`` nearest to ``tokens``."""
    near = [n for n in numbers if n < tokens][-1:] + [n for n in numbers if n > tokens][:1]
    if not near:
        return "no number works"
    return f"{' and '.join(map(str, near))} {'works' if len(near) == 1 else 'work'}"
