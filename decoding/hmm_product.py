"""The circuit product of a hidden Markov model with a deterministic token automaton: how likely a prefix ends well.

The look-ahead of state q with r tokens left is a vector over the hidden states that emit the next token,

    β_0(q) = 1 if q accepts, else 0          β_r(q) = Σ over edges q→q' of  mass(q→q') ∘ (A β_{r-1}(q'))

where the mass of an edge, (H,), is what the emissions give to its tokens together: found once per token set. A token x
of state q leads to one q', so p_hmm(x, accepted | prefix) = Σ_h φ(h) B[h, x] (A β_{r-1}(q'))(h), φ being the belief
about the hidden state that emits x. Hidden and automaton states are never paired in one matrix: the product's transitions
are a Kronecker product whose factors are applied in turn.

``length="exact"``: n tokens that lead to acceptance. ``"at_most"``: the end token leads from accepting states to a
state that is absorbing and accepts whatever the model would emit there (its look-ahead is all ones), so texts of every
length up to n count, each with the probability of the text and its end; one of n tokens needs no end token. This is
what ``Matcher`` means by ``max_tokens``.

No underflow: A β_r(q) is stored with the maximum one and the logarithm of its scale, since states differ by hundreds
of orders of magnitude. A token that the constraint allows but the model (nearly) rules out keeps e^-60 of the largest
weight (``FLOOR``): a proposal's support is that of the constraint, always.

The automaton must be deterministic, for otherwise the recursion counts accepting *runs*, not sequences: token automata
are, ``TokenEdges`` are asked.

Only states that can be met with r tokens left, and end well, have a look-ahead. Cost: making it takes n products of
(Q, H) with (H, H) and n·E·H operations at most, and holds n·Q·H + D·H numbers (E edges, D different token sets),
against ``budget.bytes``. A step takes, for each state that rows stand in, H times the tokens that it allows; the
corrected form one product of (rows, H) with (H, V) besides.

Rejected: β per pair of hidden state and edge, as the source writes it (E / Q times the memory).

Source: "Mitigating bias in locally constrained decoding via tractable proposals", section 4; Zhang et al., "Adaptable
logical control for large language models" (Ctrl-G, 2024), for the form that divides p_hmm(x | prefix) out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import torch

from tokenfst.budget import Budget
from tokenfst.decoding.gcd_edges import TokenEdges
from tokenfst.decoding.hmm import Belief, Hmm, unit_maximum
from tokenfst.errors import (
    BudgetExceeded,
    MatcherError,
    NondeterministicError,
    TokenBudgetError,
    VocabularyMismatchError,
)

if TYPE_CHECKING:
    from tokenfst.decoding.token_automaton import TokenAutomaton

Length = Literal["exact", "at_most"]

FLOOR = -60.0
"""Natural logarithm, relative to a row's largest weight, of the least weight of an allowed token."""

_CHUNK = 1 << 23
"""Numbers in one temporary array of a step."""
_WIDE = 4
"""A token set that holds more than one token in so many is multiplied as a whole, not gathered."""


class HmmProduct:
    """``hmm`` times ``automaton``, for texts of ``max_tokens`` tokens: ``"exact"`` so many, or ``"at_most"``.

    ``automaton``: a finite token automaton; or its edges, with the ``end_tokens`` that ``"at_most"`` needs. Attributes:
    ``start``, the state before the first token; ``ended``, the one after an end token (``None``: exact). Everything is
    on the device of ``hmm``; states are int64 tensors of shape (rows,) on any.

    Raises ``VocabularyMismatchError`` where the two are over different tokens, ``NondeterministicError``,
    ``EmptyLanguageError`` and ``TokenBudgetError`` (naming the least number of tokens that works) where no text fits,
    ``ConstraintError`` for a push-down automaton, and ``BudgetExceeded``.
    """

    def __init__(
        self,
        hmm: Hmm,
        automaton: TokenAutomaton | TokenEdges,
        max_tokens: int,
        length: Length = "at_most",
        *,
        end_tokens: Sequence[int] | None = None,
        budget: Budget | None = None,
    ) -> None:
        if length not in ("exact", "at_most"):
            raise ValueError(f'length is "exact" or "at_most", not {length!r}')
        if max_tokens < 0:
            raise ValueError(f"max_tokens must not be negative: {max_tokens}")
        if isinstance(automaton, TokenEdges):
            edges, name = automaton, "the edges"
            _check_vocabulary(hmm, edges.num_tokens, None)
            if not edges.is_deterministic:
                raise NondeterministicError(
                    "the edges are not deterministic, so the product would count runs: determinize the automaton"
                )
        else:
            _check_vocabulary(hmm, len(automaton.vocabulary), automaton.vocabulary.fingerprint)
            edges, name = TokenEdges.from_automaton(automaton), automaton.source
            end_tokens = automaton.vocabulary.eos_token_ids if end_tokens is None else end_tokens
        self.ended: int | None = None
        if length == "at_most":
            if not end_tokens:
                raise ValueError('length="at_most" needs end_tokens')
            self.ended = edges.num_states
            edges = edges.with_end(end_tokens)
        self.hmm, self.max_tokens, self.length, self.edges = hmm, max_tokens, length, edges
        self.start = int(np.flatnonzero(edges.start)[0])
        alive = self._met_and_ending_well(name)
        needed = (int(alive[:-1].sum()) + edges.num_sets) * hmm.hidden_size * hmm.dtype.itemsize
        limit = (budget or Budget()).bytes
        if needed > limit:
            raise BudgetExceeded("bytes", limit, f"the look-ahead over {max_tokens} tokens of {name}")
        device = hmm.device
        self._source, self._target, self._label, self._tokens = (
            torch.tensor(part, device=device)
            for part in (edges.source, edges.target, edges.label, edges.tokens)
        )
        self._first_edge = np.searchsorted(edges.source, np.arange(edges.num_states + 1)).tolist()
        labels = np.repeat(np.arange(edges.num_sets), np.diff(edges.offsets))
        self._keys = labels * edges.num_tokens + edges.tokens
        self._alive = torch.from_numpy(alive).to(device)
        self._row = (self._alive.cumsum(1) - 1).masked_fill_(~self._alive, 0)
        self._gathered: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._ahead, self._scale = self._looked_ahead()

    # --- what is made once --------------------------------------------------------------------------------

    def _met_and_ending_well(self, name: str) -> npt.NDArray[np.bool_]:
        """(max_tokens + 1, Q): whether a state can be met with r tokens left, and reach acceptance by exactly r."""
        edges = self.edges
        alive = edges.reachability(self.max_tokens)
        if not alive[-1, self.start]:
            least = self._least(alive[-1])
            raise TokenBudgetError(
                f"no text of {name} has {'exactly' if self.length == 'exact' else 'at most'} {self.max_tokens} tokens: "
                + ("no larger number works either" if least is None else f"the least that works is {least}")
            )
        met = edges.start
        for left in range(self.max_tokens, -1, -1):
            alive[left] &= met
            met = np.zeros_like(met)
            met[edges.target[alive[left, edges.source]]] = True
        return alive

    def _least(self, reach: npt.NDArray[np.bool_]) -> int | None:
        """The least number of tokens, above ``max_tokens``, of a text; ``reach``: the states that reach acceptance by
        ``max_tokens``. Ends, since only states that the start leads to are followed: with a cycle among them there are
        ever longer texts, without one none reaches acceptance by as many tokens as there are states."""
        edges, tokens = self.edges, self.max_tokens
        met = edges.start.copy()
        for _ in range(edges.num_states):
            met[edges.target[met[edges.source]]] = True
        while (reach := reach & met).any():
            before = np.zeros_like(reach)
            before[edges.source[reach[edges.target]]] = True
            reach, tokens = before, tokens + 1
            if reach[self.start]:
                return tokens
        return None

    def _looked_ahead(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """For each number of tokens left, A β_r(q) of the states that are alive, (alive, H), the maximum of each row 1;
        and the logarithms of their scales, (max_tokens, Q)."""
        hmm, alive = self.hmm, self._alive
        masses = self._masses()
        ahead: list[torch.Tensor] = []
        scales = hmm.initial.new_full((self.max_tokens, self.edges.num_states), -torch.inf)
        beta = hmm.initial.new_ones(int(alive[0].sum()), hmm.hidden_size)
        scale = beta.new_zeros(len(beta))
        for left in range(self.max_tokens):
            scaled, peak = unit_maximum(beta @ hmm.transition.T)
            ahead.append(scaled)
            scales[left, alive[left]] = scale + peak.log()
            going = (alive[left + 1, self._source] & alive[left, self._target]).nonzero().squeeze(1)
            sources, targets = self._row[left + 1, self._source[going]], self._row[left, self._target[going]]
            arriving = scales[left, self._target[going]]
            count = int(alive[left + 1].sum())
            best = scale.new_full((count,), -torch.inf).scatter_reduce(0, sources, arriving, "amax")
            weight = (arriving - best[sources]).exp().nan_to_num(0.0)[:, None]
            beta = scaled.new_zeros(count, hmm.hidden_size)
            for part in _parts(len(going), hmm.hidden_size):
                mass = masses[self._label[going[part]]]
                beta.index_add_(0, sources[part], mass * scaled[targets[part]] * weight[part])
            if self.ended is not None and alive[left + 1, self.ended]:
                ended = self._row[left + 1, self.ended]
                beta[ended], best[ended] = 1.0, 0.0
            beta, peak = unit_maximum(beta)
            scale = best + peak.log()
        return ahead, scales

    def _masses(self) -> torch.Tensor:
        """(D, H): the probability that a hidden state emits a token of the set."""
        emitted, offsets = self.hmm.emitted, torch.from_numpy(np.diff(self.edges.offsets))
        of_set = torch.arange(self.edges.num_sets).repeat_interleave(offsets).to(emitted.device)
        masses = emitted.new_zeros(self.edges.num_sets, self.hmm.hidden_size)
        for part in _parts(len(of_set), self.hmm.hidden_size):
            masses.index_add_(0, of_set[part], emitted[self._tokens[part]])
        return masses

    # --- one step -----------------------------------------------------------------------------------------

    def next_states(self, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """(rows,): where the tokens (rows,) lead from the states (rows,). Raises ``MatcherError`` for a token that the
        automaton does not have there; after the end token, every token is padding."""
        found = []
        for row, (state, token) in enumerate(zip(states.tolist(), tokens.tolist(), strict=True)):
            span = slice(*self._first_edge[state : state + 2])
            wanted = self.edges.label[span] * self.edges.num_tokens + token
            place = np.searchsorted(self._keys, wanted).clip(max=len(self._keys) - 1)
            here = np.flatnonzero(self._keys[place] == wanted)
            if state == self.ended:
                found.append(state)
            elif len(here):
                found.append(int(self.edges.target[span][here[0]]))
            else:
                raise MatcherError(f"state {state} has no token {token} (row {row})")
        return torch.tensor(found, dtype=torch.long, device=states.device)

    def log_joint(self, belief: Belief, states: torch.Tensor, left: int) -> torch.Tensor:
        """(rows, V): log p_hmm(x_t = x, accepted | x_1..x_{t-1}), with ``left`` tokens left, x_t among them; -inf
        where the constraint forbids x. Rows after the end token have no next token: all -inf."""
        return self._log_joint(belief, states, left)[0]

    def log_accepted(self, belief: Belief, states: torch.Tensor, left: int) -> torch.Tensor:
        """(rows,): log p_hmm(accepted | prefix) with ``left`` tokens left. Costs what ``log_joint`` does."""
        if left == 0:
            return self._alive[0, states.to(self._alive.device)].to(belief.state).log()
        total = self.log_joint(belief, states, left).logsumexp(-1)
        return total if self.ended is None else total.masked_fill(states.to(total.device) == self.ended, 0.0)

    def log_weights(
        self, belief: Belief, states: torch.Tensor, left: int, *, corrected: bool = True
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(rows, V), twice: the logarithm of what to multiply the language model's probabilities with, and
        ``log_joint``.

        As published, the factor is p_hmm(x | accepted, prefix), which holds p_hmm(x | prefix): the language model has
        given that already. ``corrected``, it is p_hmm(accepted | prefix, x). Every token that the constraint allows
        has a finite weight, at least e^``FLOOR`` of the row's largest, and no other has; a token that the hidden
        Markov model holds impossible says nothing of the end: its corrected weight is 1.
        """
        joint, allowed = self._log_joint(belief, states, left)
        if corrected:
            alone = self.hmm.log_next(belief)
            weights = torch.where(alone == -torch.inf, 0.0, joint - alone)
        else:
            weights = joint - joint.logsumexp(-1, keepdim=True).nan_to_num(neginf=0.0)
        weights = weights.masked_fill(~allowed, -torch.inf)
        least = weights.amax(-1, keepdim=True).nan_to_num(neginf=0.0) + FLOOR
        return weights.maximum(least).masked_fill(~allowed, -torch.inf), joint

    def _log_joint(
        self, belief: Belief, states: torch.Tensor, left: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """``log_joint``, and which tokens the constraint allows: those may have -inf too."""
        if not 1 <= left <= self.max_tokens:
            raise TokenBudgetError(f"the tokens left must be from 1 to {self.max_tokens}, not {left}")
        joint = belief.state.new_full((len(states), self.edges.num_tokens), -torch.inf)
        allowed = torch.zeros_like(joint, dtype=torch.bool)
        ahead, row_of, alive = self._ahead[left - 1], self._row[left - 1], self._alive[left - 1]
        states = states.to(joint.device)
        for state in torch.unique(states).tolist():
            if state == self.ended:
                continue
            if not self._alive[left, state]:
                raise MatcherError(f"state {state} is not met with {left} of {self.max_tokens} tokens left")
            rows = (states == state).nonzero()
            beliefs = belief.state[rows[:, 0]]
            tokens, edges = self._narrow(state)
            going = alive[self._target[edges]]
            tokens, targets = tokens[going], self._target[edges[going]]
            for part in _parts(len(tokens), self.hmm.hidden_size):
                weighted = self.hmm.emitted[tokens[part]] * ahead[row_of[targets[part]]]
                joint[rows, tokens[part]] = self._log(beliefs @ weighted.T, left, targets[part])
            allowed[rows, tokens] = True
            for edge in self._wide(state):
                target, tokens = int(self.edges.target[edge]), self._set(edge)
                if alive[target]:
                    whole = (beliefs * ahead[row_of[target]]) @ self.hmm.emitted.T
                    joint[rows, tokens] = self._log(whole[:, tokens], left, self._target[edge])
                    allowed[rows, tokens] = True
        return joint, allowed

    def _log(self, scaled: torch.Tensor, left: int, targets: torch.Tensor) -> torch.Tensor:
        """Logarithms of what was made of scaled look-aheads."""
        return scaled.log() + self._scale[left - 1, targets]

    def _set(self, edge: int) -> torch.Tensor:
        """The tokens of an edge."""
        begin, end = self.edges.offsets[self.edges.label[edge] :][:2].tolist()
        return self._tokens[begin:end]

    def _wide(self, state: int) -> list[int]:
        """The edges of a state that bear many tokens: at most ``_WIDE`` of them."""
        edges = range(*self._first_edge[state : state + 2])
        return [edge for edge in edges if len(self._set(edge)) * _WIDE > self.edges.num_tokens]

    def _narrow(self, state: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The tokens of all other edges of a state, and the edge of each."""
        if state not in self._gathered:
            wide = set(self._wide(state))
            edges = [edge for edge in range(*self._first_edge[state : state + 2]) if edge not in wide]
            sets = [self._set(edge) for edge in edges]
            device = self._tokens.device
            sizes = torch.tensor([len(tokens) for tokens in sets], dtype=torch.long, device=device)
            of_token = torch.tensor(edges, dtype=torch.long, device=device).repeat_interleave(sizes)
            self._gathered[state] = torch.cat([*sets, sizes[:0]]), of_token
        return self._gathered[state]


def _check_vocabulary(hmm: Hmm, size: int, fingerprint: str | None) -> None:
    known = fingerprint is not None and hmm.vocabulary is not None
    if hmm.vocab_size != size or (known and hmm.vocabulary != fingerprint):
        raise VocabularyMismatchError(
            f"the hidden Markov model is over {hmm.vocab_size:,} tokens (vocabulary {(hmm.vocabulary or '?')[:12]}), "
            f"the automaton over {size:,} ({(fingerprint or '?')[:12]}): distil the model from samples over the latter"
        )


def _parts(count: int, width: int) -> Iterator[slice]:
    """Slices of ``count`` rows of this width, each of a bounded size."""
    step = max(_CHUNK // width, 1)
    for begin in range(0, count, step):
        yield slice(begin, min(begin + step, count))
