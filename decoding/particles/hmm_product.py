"""The circuit product of a hidden Markov model with a deterministic token automaton: the probability that a prefix is
completed to an accepted text.

The look-ahead of state q with r tokens left is a vector over the hidden states that emit the next token,

    β_0(q) = 1 if q accepts, else 0          β_r(q) = Σ over edges q→q' of  mass(q→q') ∘ (A β_{r-1}(q'))

where the mass of an edge, (H,), is the total emission probability of its tokens, computed once for each token set. A
token x of state q leads to one q', so p_hmm(x, accepted | prefix) = Σ_h φ(h) B[h, x] (A β_{r-1}(q'))(h), where φ is the
belief about the hidden state that emits x. Hidden and automaton states are never combined in one matrix: the transition
matrix of the product is a Kronecker product whose factors are applied in turn.

``length="exact"``: n tokens that lead to acceptance. ``"at_most"``: the end token leads from accepting states to an
absorbing state that accepts whatever the model would emit there (its look-ahead is all ones). So texts of every length
up to n count, each with the probability of the text and its end; a text of n tokens needs no end token. This is the
meaning of ``max_new_tokens`` in ``Matcher``.

Underflow is avoided: A β_r(q) is stored with the maximum one and the logarithm of its scale, since states differ by
hundreds of orders of magnitude. A token that the constraint allows but the model (nearly) excludes keeps e^-60 of the
largest weight (``FLOOR``): the support of a proposal is always that of the constraint.

The automaton must be deterministic, for otherwise the recursion counts accepting *runs*, not sequences. Token automata
are deterministic; ``TokenEdges`` are checked.

Only states that are reachable with r tokens left, and can reach acceptance, have a look-ahead. Cost: construction takes
n products of (Q, H) with (H, H) and at most n·E·H operations, and holds n·Q·H + D·H numbers (E edges, D distinct token
sets), counted against ``budget.bytes``. A step takes H operations for each row and token that its state allows, the
corrected form twice as many.

Rejected: β for each pair of hidden state and edge, as in the source (E / Q times the memory).

Source: "Mitigating bias in locally constrained decoding via tractable proposals", section 4; Zhang et al., "Adaptable
logical control for large language models" (Ctrl-G, 2024), for the form that divides p_hmm(x | prefix) out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import renamed
from tokenfst.decoding.particles.hmm import Belief, Hmm, unit_maximum
from tokenfst.decoding.particles.horizon import Horizon
from tokenfst.decoding.rows.edges import TokenEdges
from tokenfst.decoding.rows.reach_rows import Length
from tokenfst.decoding.rows.rows import AnyAutomaton
from tokenfst.errors import (
    BudgetExceeded,
    HmmError,
    MatcherError,
    MissingDependencyError,
    TokenLimitError,
    VocabularyMismatchError,
)

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('hidden Markov models need torch: pip install "tokenfst[torch]"') from error

FLOOR = -60.0
"""Natural logarithm, relative to a row's largest weight, of the least weight of an allowed token."""

_CHUNK = 1 << 23
"""The number of elements in one temporary array of a step."""
_WIDE = 4
"""A token set with more than 1/``_WIDE`` of all tokens is multiplied as a whole, not gathered."""


class HmmProduct:
    """The product of ``hmm`` and ``automaton`` for texts of ``max_new_tokens`` tokens: exactly (``"exact"``) or
    ``"at_most"``.

    ``automaton``, ``length`` and ``end_tokens`` are those of ``Horizon``, which is stored as ``horizon``. States are
    those of the horizon, in int64 tensors of shape (rows,). All other tensors are on the device of ``hmm``. ``budget``:
    its bytes bound the stored look-ahead, its seconds the construction.

    Raises ``VocabularyMismatchError`` if the two have different tokens, ``BudgetExceeded``, and the errors of
    ``Horizon``: ``TokenLimitError``, ``NondeterministicError``, ``ConstraintError``.
    """

    @renamed(max_tokens="max_new_tokens")
    @checked
    def __init__(
        self,
        hmm: Hmm,
        automaton: AnyAutomaton | TokenEdges,
        max_new_tokens: int,
        length: Length = "at_most",
        *,
        end_tokens: Sequence[int] | None = None,
        budget: Budget | None = None,
    ) -> None:
        if isinstance(automaton, TokenEdges):
            check_vocabulary(hmm, automaton.num_tokens, None)
        else:
            check_vocabulary(hmm, len(automaton.vocabulary), automaton.vocabulary.fingerprint)
        self.hmm, self.automaton = hmm, automaton
        deadline = Deadline(budget or Budget(), f"the product of a hidden Markov model and {automaton!r}")
        with deadline.part() as part:
            self.horizon = horizon = Horizon(automaton, max_new_tokens, length, end_tokens, part)
        self._edges = edges = horizon.edges
        held = int(horizon.alive[:-1].sum()) + edges.num_sets
        limit = deadline.budget.bytes
        if held * hmm.hidden_size * hmm.dtype.itemsize > limit:
            raise BudgetExceeded(
                "bytes", limit, f"the look-ahead over {counted(max_new_tokens, 'token')} of {horizon.name}"
            )
        self._source, self._target, self._label, self._tokens = (
            torch.tensor(part, device=hmm.device)
            for part in (edges.source, edges.target, edges.label, edges.tokens)
        )
        self._alive = torch.from_numpy(horizon.alive).to(hmm.device)
        self._row = (self._alive.cumsum(1) - 1).masked_fill_(~self._alive, 0)
        self._gathered: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._ahead, self._scale = self._looked_ahead(deadline)

    @property
    def start(self) -> int:
        """The state before the first token."""
        return self.horizon.start

    # --- what is made once --------------------------------------------------------------------------------

    def _looked_ahead(self, deadline: Deadline) -> tuple[list[torch.Tensor], torch.Tensor]:
        """For each number of tokens left, A β_r(q) of the states that are alive, (alive, H), the maximum of each row 1;
        and the logarithms of their scales, (max_new_tokens, Q).
        """
        hmm, alive = self.hmm, self._alive
        masses = self._masses(deadline)
        ahead: list[torch.Tensor] = []
        scales = hmm.initial.new_full((self.horizon.max_new_tokens, self._edges.num_states), -torch.inf)
        beta = hmm.initial.new_ones(int(alive[0].sum()), hmm.hidden_size)
        scale = beta.new_zeros(len(beta))
        for left in range(self.horizon.max_new_tokens):
            deadline.check()
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
                deadline.check()
                mass = masses[self._label[going[part]]]
                beta.index_add_(0, sources[part], mass * scaled[targets[part]] * weight[part])
            if self.horizon.ended is not None and alive[left + 1, self.horizon.ended]:
                ended = self._row[left + 1, self.horizon.ended]
                beta[ended], best[ended] = 1.0, 0.0
            beta, peak = unit_maximum(beta)
            scale = best + peak.log()
        return ahead, scales

    def _masses(self, deadline: Deadline) -> torch.Tensor:
        """(D, H): the probability that a hidden state emits a token of the set."""
        emitted, offsets = self.hmm.emitted, torch.from_numpy(np.diff(self._edges.offsets))
        of_set = torch.arange(self._edges.num_sets).repeat_interleave(offsets).to(emitted.device)
        masses = emitted.new_zeros(self._edges.num_sets, self.hmm.hidden_size)
        for part in _parts(len(of_set), self.hmm.hidden_size):
            deadline.check()
            masses.index_add_(0, of_set[part], emitted[self._tokens[part]])
        return masses

    # --- one step -----------------------------------------------------------------------------------------

    @checked
    def next_states(self, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """(rows,): the states after the tokens (rows,), from the states (rows,). Raises ``MatcherError`` for a token
        that a state does not allow.
        """
        self._check_states(states)
        if tokens.shape != states.shape:
            raise HmmError(
                f"tokens must be one for each of {counted(len(states), 'state')}, not {tuple(tokens.shape)}"
            )
        pairs = zip(states.tolist(), tokens.tolist(), strict=True)
        found = [self.horizon.next_state(state, token) for state, token in pairs]
        return torch.tensor(found, dtype=torch.long, device=states.device)

    @renamed(left="max_new_tokens")
    @checked
    def log_joint(self, belief: Belief, states: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        """(rows, V): log p_hmm(x_t = x, accepted | x_1..x_{t-1}), with ``max_new_tokens`` tokens left, including x_t.

        -inf for a token x that the constraint forbids. Rows after the end token have no next token: all -inf.
        """
        return self._scores(belief, states, max_new_tokens, False)[0]

    @renamed(left="max_new_tokens")
    @checked
    def log_accepted(self, belief: Belief, states: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        """(rows,): log p_hmm(accepted | prefix) with ``max_new_tokens`` tokens left. Same cost as ``log_joint``."""
        self._check_states(states)
        if max_new_tokens == 0:
            return self._alive[0, states.to(self._alive.device)].to(belief.state).log()
        total = self.log_joint(belief, states, max_new_tokens).logsumexp(-1)
        if self.horizon.ended is None:
            return total
        return total.masked_fill(states.to(total.device) == self.horizon.ended, 0.0)

    @renamed(left="max_new_tokens")
    @checked
    def log_weights(
        self, belief: Belief, states: torch.Tensor, max_new_tokens: int, *, corrected: bool = True
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Two tensors (rows, V): the log of the factor for the language model's probabilities, and ``log_joint``.

        As published, the factor is p_hmm(x | accepted, prefix), which contains p_hmm(x | prefix), a term that the
        language model already contributes. With ``corrected``, it is p_hmm(accepted | prefix, x). A weight is finite if
        and only if the constraint allows the token; it is then at least e^``FLOOR`` of the row's largest. For a token
        with probability zero in the hidden Markov model nothing is known about acceptance: its corrected weight is 1.
        """
        joint, allowed, alone = self._scores(belief, states, max_new_tokens, corrected)
        if corrected:
            weights = torch.where(alone == -torch.inf, 0.0, joint - alone)
        else:
            weights = joint - joint.logsumexp(-1, keepdim=True).nan_to_num(neginf=0.0)
        weights = weights.masked_fill(~allowed, -torch.inf)
        least = weights.amax(-1, keepdim=True).nan_to_num(neginf=0.0) + FLOOR
        return weights.maximum(least).masked_fill(~allowed, -torch.inf), joint

    def _check_states(self, states: torch.Tensor) -> None:
        count = self._alive.shape[1]
        if states.dim() != 1 or states.is_floating_point() or bool(((states < 0) | (states >= count)).any()):
            raise HmmError(
                f"states must be (rows,), integers from 0 to {count - 1}, not {states.dtype} {tuple(states.shape)}"
            )

    def _scores(
        self, belief: Belief, states: torch.Tensor, left: int, with_alone: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Three tensors (rows, V): ``log_joint``; the tokens that the constraint allows, which may be -inf in the
        first; and for these log p_hmm(x | prefix), if it is requested.
        """
        self._check_states(states)
        if len(belief.state) != len(states):
            raise HmmError(
                f"a belief of {counted(len(belief.state), 'row')} goes with as many states, not {len(states):,}"
            )
        if not 1 <= left <= self.horizon.max_new_tokens:
            raise TokenLimitError(
                f"max_new_tokens must be from 1 to {self.horizon.max_new_tokens}, not {left}"
            )
        emitted = self.hmm.emitted
        joint = belief.state.new_full((len(states), self._edges.num_tokens), -torch.inf)
        alone = joint.clone() if with_alone else joint
        allowed = torch.zeros_like(joint, dtype=torch.bool)
        ahead, row_of, alive = self._ahead[left - 1], self._row[left - 1], self._alive[left - 1]
        states = states.to(joint.device)
        for state in torch.unique(states).tolist():
            if state == self.horizon.ended:
                continue
            if not self._alive[left, state]:
                raise MatcherError(
                    f"state {state} cannot be reached with {left} of "
                    f"{counted(self.horizon.max_new_tokens, 'token')} left"
                )
            rows = (states == state).nonzero()
            beliefs = belief.state[rows[:, 0]]
            tokens, edges = self._narrow(state)
            going = alive[self._target[edges]]
            tokens, targets = tokens[going], self._target[edges[going]]
            allowed[rows, tokens] = True
            for part in _parts(len(tokens), self.hmm.hidden_size):
                gathered = emitted[tokens[part]]
                if with_alone:
                    alone[rows, tokens[part]] = (beliefs @ gathered.T).log()
                weighted = gathered * ahead[row_of[targets[part]]]
                joint[rows, tokens[part]] = self._log(beliefs @ weighted.T, left, targets[part])
            wide = [edge for edge in self._wide(state) if alive[self._target[edge]]]
            whole = (beliefs @ emitted.T).log() if wide and with_alone else beliefs
            for edge in wide:
                target, tokens = self._target[edge], self._set(edge)
                allowed[rows, tokens] = True
                if with_alone:
                    alone[rows, tokens] = whole[:, tokens]
                scaled = (beliefs * ahead[row_of[target]]) @ emitted.T
                joint[rows, tokens] = self._log(scaled[:, tokens], left, target)
        return joint, allowed, alone

    def _log(self, scaled: torch.Tensor, left: int, targets: torch.Tensor) -> torch.Tensor:
        """Logarithms of a product of scaled look-aheads."""
        return scaled.log() + self._scale[left - 1, targets]

    def _set(self, edge: int) -> torch.Tensor:
        """The tokens of an edge."""
        begin, end = self._edges.offsets[self._edges.label[edge] :][:2].tolist()
        return self._tokens[begin:end]

    def _wide(self, state: int) -> list[int]:
        """The edges of a state with many tokens: at most ``_WIDE`` of them."""
        edges = self.horizon.edges_of(state)
        return [edge for edge in edges if len(self._set(edge)) * _WIDE > self._edges.num_tokens]

    def _narrow(self, state: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The tokens of all other edges of a state, and the edge of each."""
        if state not in self._gathered:
            wide = set(self._wide(state))
            edges = [edge for edge in self.horizon.edges_of(state) if edge not in wide]
            sets = [self._set(edge) for edge in edges]
            device = self._tokens.device
            sizes = torch.tensor([len(tokens) for tokens in sets], dtype=torch.long, device=device)
            of_token = torch.tensor(edges, dtype=torch.long, device=device).repeat_interleave(sizes)
            self._gathered[state] = torch.cat([*sets, sizes[:0]]), of_token
        return self._gathered[state]


def check_vocabulary(hmm: Hmm, size: int, fingerprint: str | None) -> None:
    """Raise ``VocabularyMismatchError`` unless the model is over the tokens of this vocabulary, as far as is known."""
    known = fingerprint is not None and hmm.vocabulary is not None
    if hmm.vocab_size != size or (known and hmm.vocabulary != fingerprint):
        raise VocabularyMismatchError(
            f"the hidden Markov model is over {counted(hmm.vocab_size, 'token')} (vocabulary "
            f"{(hmm.vocabulary or '?')[:12]}), "
            f"the automaton over {size:,} ({(fingerprint or '?')[:12]}): distil the model from samples over the latter"
        )


def _parts(count: int, width: int) -> Iterator[slice]:
    """Slices of ``count`` rows of this width, each of bounded size."""
    step = max(_CHUNK // width, 1)
    for begin in range(0, count, step):
        yield slice(begin, min(begin + step, count))
