"""The circuit product of a hidden Markov model with a deterministic token automaton: how likely a prefix ends well.

The look-ahead of state q with r tokens left is a vector over the hidden states that emit the next token,

    β_0(q) = 1 if q accepts, else 0          β_r(q) = Σ over edges q→q' of  mass(q→q') ∘ (A β_{r-1}(q'))

where the mass of an edge, (H,), is what the emissions give to its tokens together: found once per edge. A token x of
state q leads to one q', so p_hmm(x, accepted | prefix) = Σ_h φ(h) B[h, x] (A β_{r-1}(q'))(h), with φ the belief about
the hidden state that emits x. Hidden and automaton states are never paired in one matrix: the product's transitions
are a Kronecker product whose factors are applied in turn.

``length="exact"``: n tokens that lead to acceptance. ``"at_most"``: the end token leads from accepting states to a
state that is absorbing and accepts whatever the model would emit there (its look-ahead is all ones), so texts of every
length up to n count, each with the probability of the text and its end; one of n tokens needs no end token. This is
what ``Matcher`` means by ``max_tokens``.

No underflow: A β_r(q) is stored with the maximum one and the logarithm of its scale, since states differ by hundreds
of orders of magnitude. A token that the constraint allows but the model (nearly) rules out keeps e^-60 of the largest
weight (``FLOOR``): a proposal's support is that of the constraint, always.

The automaton must be deterministic, for otherwise the recursion counts accepting *runs*, not sequences. Token
automata are.

Only states that can be met with r tokens left, and end well, have a look-ahead. Cost: making it takes n products of
(Q, H) with (H, H) and n·E·H operations at most, and holds n·Q·H + E·H numbers, against ``budget.bytes``. A step takes,
for each state that rows stand in, H times the tokens that it allows; the corrected form one product of (rows, H) with
(H, V) besides.

Rejected: β per pair of hidden state and edge, as the source writes it (E / Q times the memory).

Source: "Mitigating bias in locally constrained decoding via tractable proposals", section 4; Zhang et al., "Adaptable
logical control for large language models" (Ctrl-G, 2024), for the form that divides p_hmm(x | prefix) out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from tokenfst.budget import Budget
from tokenfst.decoding.hmm import Belief, Hmm, unit_maximum
from tokenfst.decoding.hmm_edges import Length, TokenEdges
from tokenfst.errors import BudgetExceeded, MatcherError, TokenBudgetError, VocabularyMismatchError

if TYPE_CHECKING:
    from tokenfst.decoding.token_automaton import TokenAutomaton

FLOOR = -60.0
"""Natural logarithm, relative to a row's largest weight, of the least weight of an allowed token."""

_CHUNK = 1 << 23
"""Numbers in one temporary array of a step."""
_WIDE = 4
"""An edge that holds more than one token in so many is multiplied as a whole, not gathered."""


class HmmProduct:
    """``hmm`` times ``automaton``, for texts of ``max_tokens`` tokens: ``"exact"`` so many, or ``"at_most"``.

    Automaton states are those of ``automaton.arcs()``, and one more after the end token. Everything is on the device
    of ``hmm``. Raises ``VocabularyMismatchError`` where the two are over different tokens, ``EmptyLanguageError`` and
    ``TokenBudgetError`` (naming the least number of tokens that works) where no text fits, and ``BudgetExceeded``.
    """

    def __init__(
        self,
        hmm: Hmm,
        automaton: TokenAutomaton,
        max_tokens: int,
        length: Length = "at_most",
        *,
        budget: Budget | None = None,
    ) -> None:
        vocabulary = automaton.vocabulary
        if hmm.vocab_size != len(vocabulary) or hmm.vocabulary not in (None, vocabulary.fingerprint):
            raise VocabularyMismatchError(
                f"the hidden Markov model is over {hmm.vocab_size:,} tokens (vocabulary "
                f"{'not named' if hmm.vocabulary is None else hmm.vocabulary[:12]}), the automaton over "
                f"{len(vocabulary):,} ({vocabulary.fingerprint[:12]}): distil the model from samples over this one"
            )
        self.hmm, self.max_tokens, self.length = hmm, max_tokens, length
        self.edges = edges = TokenEdges(automaton, max_tokens, length)
        needed = (int(edges.alive[:-1].sum()) + len(edges.source)) * hmm.hidden_size
        limit = (budget or Budget()).bytes
        if needed * hmm.dtype.itemsize > limit:
            raise BudgetExceeded(
                "bytes", limit, f"the look-ahead over {max_tokens} tokens of {automaton.source}"
            )
        device = hmm.device
        sizes = torch.from_numpy(np.diff(edges.offsets)).to(device)
        self._source = torch.from_numpy(edges.source).to(device)
        self._target = torch.from_numpy(edges.target).to(device)
        self._token = torch.from_numpy(edges.token).to(device)
        self._edge = torch.arange(len(edges.source), device=device).repeat_interleave(sizes)
        self._of_state = np.searchsorted(edges.source, np.arange(edges.num_states + 1)).tolist()
        self._keys, order = (self._source[self._edge] * edges.vocab_size + self._token).sort()
        self._key_target = self._target[self._edge[order]]
        self._alive = torch.from_numpy(edges.alive).to(device)
        self._row = (self._alive.cumsum(1) - 1).masked_fill_(~self._alive, 0)
        self._ahead, self._scale = self._looked_ahead()

    def _looked_ahead(self) -> tuple[list[torch.Tensor], torch.Tensor]:
        """For each number of tokens left, A β_r(q) of the states that are alive, (alive, H), the maximum of each row 1;
        and the logarithms of their scales, (max_tokens, Q)."""
        hmm, edges = self.hmm, self.edges
        masses = self._masses()
        ahead: list[torch.Tensor] = []
        scales = hmm.initial.new_full((self.max_tokens, edges.num_states), -torch.inf)
        beta = hmm.initial.new_ones(int(edges.alive[0].sum()), hmm.hidden_size)
        scale = beta.new_zeros(len(beta))
        for left in range(self.max_tokens):
            scaled, peak = unit_maximum(beta @ hmm.transition.T)
            ahead.append(scaled)
            scales[left, self._alive[left]] = scale + peak.log()
            going = (
                (self._alive[left + 1, self._source] & self._alive[left, self._target]).nonzero().squeeze(1)
            )
            sources = self._row[left + 1, self._source[going]]
            targets = self._row[left, self._target[going]]
            arriving = scales[left, self._target[going]]
            count = int(edges.alive[left + 1].sum())
            best = scale.new_full((count,), -torch.inf).scatter_reduce(0, sources, arriving, "amax")
            weight = (arriving - best[sources]).exp().nan_to_num(0.0)[:, None]
            beta = scaled.new_zeros(count, hmm.hidden_size)
            for part in _parts(len(going), hmm.hidden_size):
                beta.index_add_(0, sources[part], masses[going[part]] * scaled[targets[part]] * weight[part])
            if edges.alive[left + 1, edges.ended]:
                ended = self._row[left + 1, edges.ended]
                beta[ended], best[ended] = 1.0, 0.0
            beta, peak = unit_maximum(beta)
            scale = best + peak.log()
        return ahead, scales

    def _masses(self) -> torch.Tensor:
        """(E, H): the probability that a hidden state emits a token of the edge."""
        emitted = self.hmm.emitted
        masses = emitted.new_zeros(len(self._source), self.hmm.hidden_size)
        for part in _parts(len(self._token), self.hmm.hidden_size):
            masses.index_add_(0, self._edge[part], emitted[self._token[part]])
        return masses

    # --- one step -----------------------------------------------------------------------------------------

    def next_states(self, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """(rows,): where the tokens (rows,) lead from the states (rows,). Raises ``MatcherError`` for a token that the
        automaton does not have there."""
        wanted = states * self.edges.vocab_size + tokens
        place = torch.searchsorted(self._keys, wanted).clamp_max(len(self._keys) - 1)
        wrong = (self._keys[place] != wanted).nonzero()
        if len(wrong):
            row = int(wrong[0])
            raise MatcherError(f"state {int(states[row])} has no token {int(tokens[row])} (row {row})")
        return self._key_target[place]

    def log_joint(self, belief: Belief, states: torch.Tensor, left: int) -> torch.Tensor:
        """(rows, V): log p_hmm(x_t = x, accepted | x_1..x_{t-1}), with ``left`` tokens left, x_t among them; -inf
        where the constraint forbids x. Rows after the end token have no next token: all -inf."""
        return self._log_joint(belief, states, left)[0]

    def log_accepted(self, belief: Belief, states: torch.Tensor, left: int) -> torch.Tensor:
        """(rows,): log p_hmm(accepted | prefix) with ``left`` tokens left. Costs what ``log_joint`` does."""
        if left == 0:
            return self._alive[0, states].to(belief.state).log()
        total = self.log_joint(belief, states, left).logsumexp(-1)
        return total.masked_fill(states == self.edges.ended, 0.0)

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
        joint = belief.state.new_full((len(states), self.edges.vocab_size), -torch.inf)
        allowed = torch.zeros_like(joint, dtype=torch.bool)
        alive, offsets = self.edges.alive, self.edges.offsets
        ahead, row_of = self._ahead[left - 1], self._row[left - 1]
        for state in torch.unique(states).tolist():
            if not alive[left, state]:
                raise MatcherError(f"state {state} is not met with {left} of {self.max_tokens} tokens left")
            rows = (states == state).nonzero()
            small = []
            for edge in range(*self._of_state[state : state + 2]):
                span = slice(offsets[edge], offsets[edge + 1])
                if not alive[left - 1, self.edges.target[edge]]:
                    continue
                if _WIDE * (span.stop - span.start) > self.edges.vocab_size:
                    tokens, target = self._token[span], self._target[edge]
                    weighted = belief.state[rows[:, 0]] * ahead[row_of[target]]
                    joint[rows, tokens] = self._log(weighted @ self.hmm.emitted.T, left, target)[:, tokens]
                    allowed[rows, tokens] = True
                else:
                    small.append(np.arange(span.start, span.stop))
            places = np.concatenate(small) if small else np.empty(0, np.int64)
            for part in _parts(len(places), self.hmm.hidden_size):
                chosen = torch.from_numpy(places[part]).to(joint.device)
                tokens, targets = self._token[chosen], self._target[self._edge[chosen]]
                weighted = self.hmm.emitted[tokens] * ahead[row_of[targets]]
                joint[rows, tokens] = self._log(belief.state[rows[:, 0]] @ weighted.T, left, targets)
                allowed[rows, tokens] = True
        return joint, allowed

    def _log(self, scaled: torch.Tensor, left: int, targets: torch.Tensor) -> torch.Tensor:
        """Logarithms of what was made of scaled look-aheads."""
        return scaled.log() + self._scale[left - 1, targets]


def _parts(count: int, width: int) -> Iterator[slice]:
    """Slices of ``count`` rows of this width, each of a bounded size."""
    step = max(_CHUNK // width, 1)
    for begin in range(0, count, step):
        yield slice(begin, min(begin + step, count))
