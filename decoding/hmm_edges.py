"""A finite token automaton as edges, one per pair of states, and what it can reach in exactly r tokens.

Edges hold sets of tokens: the form in which a vector over hidden states is multiplied once per edge, not once per
token. With ``length="at_most"`` the end tokens lead from accepting states to one more state, ``ended``, that is
absorbing and accepting; with ``"exact"`` there are no end tokens.

Source: "Mitigating bias in locally constrained decoding via tractable proposals", definition 3.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from tokenfst.errors import EmptyLanguageError, TokenBudgetError

if TYPE_CHECKING:
    from tokenfst.decoding.token_automaton import TokenAutomaton

Length = Literal["exact", "at_most"]


class TokenEdges:
    """The edges of an automaton for texts of ``max_tokens`` tokens.

    ``source``, ``target``: (E,), ascending by both. ``token[offsets[e]:offsets[e + 1]]``: the tokens of edge e,
    ascending. ``start``, ``ended``: states; ``num_states`` counts ``ended``. ``alive``: (max_tokens + 1, num_states),
    whether a state can be met with r tokens left and then reach acceptance by exactly those, the end token and what
    follows it counted.

    Raises ``EmptyLanguageError``, and ``TokenBudgetError`` where no text has so many tokens.
    """

    def __init__(self, automaton: TokenAutomaton, max_tokens: int, length: Length) -> None:
        if length not in ("exact", "at_most"):
            raise ValueError(f'length is "exact" or "at_most", not {length!r}')
        if max_tokens < 0:
            raise ValueError(f"max_tokens must not be negative: {max_tokens}")
        self.max_tokens = max_tokens
        self.vocab_size = len(automaton.vocabulary)
        source, token, target, states, self.start, final = automaton.arcs()
        if not len(final):
            raise EmptyLanguageError(f"no token sequence spells a text of {automaton.source}")
        self.ended, self.num_states = states, states + 1
        if length == "at_most":
            ends = np.array(automaton.vocabulary.eos_token_ids, np.int64)
            source = np.concatenate([source, np.repeat(final, len(ends))])
            token = np.concatenate([token, np.tile(ends, len(final))])
            target = np.concatenate([target, np.full(len(final) * len(ends), self.ended)])
        order = np.lexsort((token, target, source))
        self.token = token[order]
        pairs = source[order] * self.num_states + target[order]
        begins = np.flatnonzero(np.diff(pairs, prepend=-1))
        self.source, self.target = np.divmod(pairs[begins], self.num_states)
        self.offsets = np.append(begins, len(pairs))
        self._absorbing = length == "at_most"
        self.accepting = np.zeros(self.num_states, bool)
        self.accepting[final] = True
        self.accepting[self.ended] = self._absorbing
        reach = [self.accepting]
        for _ in range(max_tokens):
            reach.append(self._before(reach[-1]))
        if not reach[-1][self.start]:
            least = self._least(reach[-1])
            remedy = "no larger number works either" if least is None else f"the least that works is {least}"
            kind = "at most" if self._absorbing else "exactly"
            raise TokenBudgetError(f"no text of {automaton.source} has {kind} {max_tokens} tokens: {remedy}")

        self.alive = np.array(reach)
        met = np.zeros(self.num_states, bool)
        met[self.start] = True
        for left in range(max_tokens, -1, -1):
            self.alive[left] &= met
            met = self._after(self.alive[left])

    def _after(self, met: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The states to which one token leads from one of these."""
        after = np.zeros_like(met)
        after[self.target[met[self.source]]] = True
        after[self.ended] |= met[self.ended]
        return after

    def _before(self, reach: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The states from which one token leads to one of these."""
        before = np.zeros_like(reach)
        before[self.source[reach[self.target]]] = True
        before[self.ended] = self._absorbing
        return before

    def _least(self, reach: npt.NDArray[np.bool_]) -> int | None:
        """The least number of tokens, above ``max_tokens``, of a text. Ends, since the automaton is trim: with a cycle
        there are ever longer texts, without one no state reaches acceptance in as many tokens as there are states."""
        tokens = self.max_tokens
        while reach.any():
            reach, tokens = self._before(reach), tokens + 1
            if reach[self.start]:
                return tokens
        return None
