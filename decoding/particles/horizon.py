"""``Horizon``: a finite token automaton over n tokens: the states that are reachable and can reach acceptance with r
tokens left.

Exact lengths need reachability by exactly r tokens, not distances: in L = {a, bcd} one token leads to acceptance at
once, but no text of three tokens starts with ``a``. With ``length="at_most"`` the end tokens lead from accepting states
to an absorbing state, ``ended``, so the same tables serve both.

The tables are those of ``TokenEdges.completing``, for all states and lengths, since a look-ahead needs them all;
``Reach`` answers the same queries one by one, also for stacks.

Invariant: ``alive[r, q]`` if and only if some n - r tokens lead from the start to q, and some r from q to acceptance.
So every alive state has an alive successor until no token is left. Cost: O(n · E); a transition is found by binary
search among the edges of its state, once.

Source: "Mitigating bias in locally constrained decoding via tractable proposals", section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.budget import Budget
from tokenfst.common.plurals import counted
from tokenfst.decoding.rows.edges import TokenEdges
from tokenfst.decoding.rows.reach_rows import Length
from tokenfst.decoding.rows.rows import AnyAutomaton
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ConstraintError, DecodingError, MatcherError, NondeterministicError


class Horizon:
    """A deterministic automaton for texts of ``max_new_tokens`` tokens: exactly (``"exact"``) or ``"at_most"``.

    ``automaton``: a finite token automaton; or its edges, with the ``end_tokens`` that ``"at_most"`` needs. ``edges``:
    including end tokens where they count; ``start``: the state before the first token; ``ended``: the state after an
    end token (``None`` for exact). ``alive``: bool (max_new_tokens + 1, states), by the tokens left. ``name``: the
    constraint's name. ``budget``: of these tables.

    Raises ``NondeterministicError``, ``ConstraintError`` for a push-down automaton, ``EmptyLanguageError`` and
    ``TokenLimitError`` (naming feasible numbers of tokens) if no text fits, ``BudgetExceeded``, and ``DecodingError``
    for options out of range.
    """

    def __init__(
        self,
        automaton: AnyAutomaton | TokenEdges,
        max_new_tokens: int,
        length: Length,
        end_tokens: Sequence[int] | None = None,
        budget: Budget | None = None,
    ) -> None:
        if length not in ("exact", "at_most"):
            raise DecodingError(f'length is "exact" or "at_most", not {length!r}')
        if max_new_tokens < 0:
            raise DecodingError(f"max_new_tokens must not be negative: {max_new_tokens}")
        if isinstance(automaton, TokenEdges):
            edges, self.name = automaton, "the edges"
            if not edges.is_deterministic:
                raise NondeterministicError(
                    "the edges are not deterministic, so sums over them would count runs, not texts: determinize the "
                    "automaton"
                )
        elif not isinstance(automaton, TokenAutomaton):
            raise ConstraintError(
                f"{automaton!r} has no edges: what canonical tokenizations can be completed with is not known ahead. "
                'Compile with tokenization="all"'
            )
        else:
            edges, self.name = TokenEdges.from_automaton(automaton), automaton.source
            end_tokens = automaton.vocabulary.eos_token_ids
        self.ended: int | None = None
        if length == "at_most":
            if not end_tokens:
                raise DecodingError('length="at_most" needs end_tokens')
            self.ended = edges.num_states
            edges = edges.with_end(end_tokens)
            if not edges.is_deterministic:
                raise NondeterministicError(
                    f"an accepting state of {self.name} has an end token also as a token of its own, so a text could "
                    "end and go on with it: give end_tokens that no edge has"
                )
        self.max_new_tokens, self.length, self.edges = max_new_tokens, length, edges
        self.start = int(np.flatnonzero(edges.start)[0])
        self._first_edge = np.searchsorted(edges.source, np.arange(edges.num_states + 1)).tolist()
        labels = np.repeat(np.arange(edges.num_sets), np.diff(edges.offsets))
        self._keys = labels * edges.num_tokens + edges.tokens
        self._known: dict[tuple[int, int], int] = {}
        self.alive = self._met_and_ending_well(
            Deadline(budget or Budget(), f"the horizon of {counted(max_new_tokens, 'token')} of {self.name}")
        )

    def _met_and_ending_well(self, deadline: Deadline) -> npt.NDArray[np.bool_]:
        edges = self.edges
        with deadline.part() as part:
            alive = edges.completing(
                self.max_new_tokens, exact=self.length == "exact", name=self.name, budget=part
            )
        met = edges.start
        for left in range(self.max_new_tokens, -1, -1):
            deadline.check()
            alive[left] &= met
            met = np.zeros_like(met)
            met[edges.target[alive[left, edges.source]]] = True
        return alive

    def edges_of(self, state: int) -> range:
        """The outgoing edges of a state."""
        return range(*self._first_edge[state : state + 2])

    def next_state(self, state: int, token: int) -> int:
        """The state after a token; after the end token, every token is padding. Raises ``MatcherError`` for a token
        that the state does not allow.
        """
        if state == self.ended:
            return state
        found = self._known.get((state, token))
        if found is None:
            found = self._known[state, token] = self._look_up(state, token)
        return found

    def _look_up(self, state: int, token: int) -> int:
        edges = self.edges_of(state)
        wanted = self.edges.label[edges.start : edges.stop] * self.edges.num_tokens + token
        place = np.searchsorted(self._keys, wanted).clip(max=len(self._keys) - 1)
        here = np.flatnonzero(self._keys[place] == wanted)
        if not len(here) or not 0 <= token < self.edges.num_tokens:
            raise MatcherError(f"state {state} of {self.name} has no token {token}")
        return int(self.edges.target[edges[here[0]]])
