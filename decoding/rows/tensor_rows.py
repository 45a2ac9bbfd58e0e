"""Exact numbers of tokens on any finite automaton by matrix products, for a batch on any device.

Globally constrained decoding as in its paper, over ``TokenEdges``. For every row the *set* of states that it may be in
is kept, so nondeterministic automata need no determinization, and masks are computed on the device of the logits. With
f the accepting states:

    alpha_t(., x) = 1{T_inᵀ (T_outᵀ alpha_{t-1}(., x_{t-1}) ∘ B_f)}        the states after each token x
    beta_n = f,   beta_{t-1} = 1{T_out ((T_in beta_t) ∘ (B_f 1))}           those that the tokens left complete
    m_t = 1{alpha_tᵀ beta_t}                                                the mask

Data. T_out has a single 1 in each column, T_in in each row: their products are look-ups by ``source`` and ``target``.
B_f is stored as the distinct token sets, a sparse matrix, and the number of the set of each edge. alpha_t is never
computed for all tokens. The mask needs the edges that lead from alpha to beta, and their tokens,

    m = 1{Bᵀ Lᵀ (T_outᵀ alpha ∘ T_in beta)},     L (E, D): the set of each edge, B (D, V): its tokens

and the step to alpha_t is taken for the chosen token only.

Invariant: row i's ``alpha`` holds exactly the states that its tokens may have led to. Costs, with R rows: beta once,
O(n * E); a mask O(R * E) and the tokens of the sets; a step O(R * E). Nothing is recomputed as rows grow. For a
deterministic automaton on a CPU, ``ReachRows`` is faster, because it copies precomputed masks.

Source: "Mitigating bias in locally constrained decoding via tractable proposals", section 3. There alpha is computed
for all tokens, and a fixed length needs a loop of end tokens on acceptance; here "at_most" adds it
(``TokenEdges.with_end``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, whole
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import renamed
from tokenfst.decoding.rows.edges import TokenEdges
from tokenfst.decoding.rows.reach_rows import Length, check_length
from tokenfst.decoding.rows.rows import Rows, as_lists, not_allowed
from tokenfst.errors import DecodingError, MissingDependencyError, VocabularyMismatchError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error

_NEVER = 1 << 30
"""The distance of states that cannot reach acceptance."""


class TensorRows(Rows):
    """Rows over one automaton of edges, deterministic or not, completed by exactly or at most ``max_new_tokens``
    tokens.

    ``edges``: without end tokens, over the tokens of ``vocabulary``. ``prompts``: the number of rows. ``width``,
    ``device``: of the scores that are masked. ``length`` and ``count_end`` as in ``reach_rows``.
    ``budget``: of the table of states and numbers of tokens. Raises ``DecodingError`` for options out of range,
    ``VocabularyMismatchError``, ``BudgetExceeded``, and ``TokenLimitError``, which names the nearest feasible numbers
    of tokens.
    """

    @renamed(max_tokens="max_new_tokens")
    @checked
    def __init__(
        self,
        edges: TokenEdges,
        vocabulary: Vocabulary,
        *,
        prompts: int,
        max_new_tokens: int,
        width: int,
        device: torch.device | str = "cpu",
        length: Length = "at_most",
        count_end: bool = False,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(vocabulary, width, torch.device(device))
        check_length(length, max_new_tokens, count_end)
        prompts = whole("TensorRows", "prompts", prompts, 0, 1 << 24)
        if edges.num_tokens != len(vocabulary):
            raise VocabularyMismatchError(
                f"the edges are over {counted(edges.num_tokens, 'token')}, and the vocabulary has {len(vocabulary):,}: "
                "give the vocabulary that the edges were made for"
            )
        distance, accepting = _distances(edges), edges.accepting
        self._ended_state: int | None = None
        if length == "at_most" or count_end:
            self._ended_state = edges.num_states
            edges = edges.with_end(vocabulary.eos_token_ids, needed=count_end)
            distance, accepting = np.append(distance, 0), np.append(accepting, True)
        self.edges = edges
        beta = edges.completing(max_new_tokens, exact=length == "exact", name="the edges", budget=budget)
        self._left = max_new_tokens
        self._taken: list[list[int]] = [[] for _ in range(prompts)]
        self._ended = torch.zeros(prompts, dtype=torch.bool, device=self.device)
        self._source, self._target, self._label = (
            torch.tensor(each, device=self.device) for each in (edges.source, edges.target, edges.label)
        )
        self._beta = torch.tensor(beta, device=self.device)
        self._sets = edges.sets_by_token(self.device)
        self._distance = torch.tensor(distance, device=self.device)
        self._accepting = torch.tensor(accepting, device=self.device)
        self.alpha = torch.tensor(edges.start, device=self.device).repeat(prompts, 1)

    def __len__(self) -> int:
        return len(self.alpha)

    @checked
    def is_finished(self, row: int) -> bool:
        whole("TensorRows.is_finished", "row", row, 0, len(self) - 1)
        return self._left == 0 or bool(self._ended[row])

    @property
    def finished(self) -> torch.Tensor:
        return self._ended | (self._left == 0)

    @property
    def accepting(self) -> torch.Tensor:
        return (self.alpha & self._accepting).any(1)

    def distances(self) -> torch.Tensor:
        return torch.where(self.alpha, self._distance, _NEVER).amin(1)

    @checked
    def tokens(self, row: int) -> list[int]:
        whole("TensorRows.tokens", "row", row, 0, len(self) - 1)
        return list(self._taken[row])

    @renamed(left="max_new_tokens")
    @checked
    def mask_(self, scores: torch.Tensor, *, max_new_tokens: Sequence[int] | None = None) -> torch.Tensor:
        if max_new_tokens is None:
            completing = self._beta[self._left - 1, self._target] & (self._left > 0)
        else:
            steps = torch.as_tensor(max_new_tokens, dtype=torch.long, device=self.device).clamp(
                max=len(self._beta)
            )
            if steps.shape != (len(self),) or bool((steps < 0).any()):
                raise DecodingError(
                    f"max_new_tokens must be one number from 0 for each row ({counted(len(self), 'row')}), not "
                    f"{max_new_tokens!r:.80}"
                )
            completing = self._beta[steps - 1][:, self._target] & (steps > 0).unsqueeze(1)
        allowed = self._tokens(completing)
        finished = self.finished
        if bool(finished.any()):
            ends = torch.zeros(self.edges.num_tokens, dtype=torch.bool, device=self.device)
            ends[list(self.vocabulary.eos_token_ids)] = True
            allowed = torch.where(finished.unsqueeze(1), ends, allowed)
        return self._keep(scores, allowed)

    @checked
    def mask_nearer_(self, scores: torch.Tensor) -> torch.Tensor:
        nearer = self._distance[self._target] < self.distances().unsqueeze(1)
        return self._keep(scores, self._tokens(nearer))

    def _tokens(self, edges: torch.Tensor) -> torch.Tensor:
        """The tokens of these edges, bool (edges,) or (rows, edges), for edges that leave the rows' states."""
        active = (self.alpha[:, self._source] & edges).to(torch.float32)
        sets = torch.zeros((len(active), self.edges.num_sets), device=self.device)
        sets.index_add_(1, self._label, active)
        borne: torch.Tensor = (self._sets @ sets.T.contiguous()) > 0
        return borne.T

    def _bearing(self, tokens: torch.Tensor) -> torch.Tensor:
        """The sets that contain each of these tokens, bool (tokens, sets): rows of the sparse matrix."""
        begins, labels = self._sets.crow_indices(), self._sets.col_indices()
        counts = begins[tokens + 1] - begins[tokens]
        rows = torch.arange(len(tokens), device=self.device).repeat_interleave(counts)
        within = torch.arange(len(rows), device=self.device) - (counts.cumsum(0) - counts)[rows]
        found = torch.zeros((len(tokens), self.edges.num_sets), dtype=torch.bool, device=self.device)
        found[rows, labels[begins[tokens][rows] + within]] = True
        return found

    def _keep(self, scores: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        known = self.edges.num_tokens
        if (
            scores.dim() != 2
            or len(scores) != len(self)
            or scores.shape[1] < known
            or not scores.is_floating_point()
        ):
            raise DecodingError(
                f"scores must be floating point, of shape ({len(self)}, {known} or more), not {scores.dtype} "
                f"{tuple(scores.shape)}"
            )
        scores[:, :known].masked_fill_(~allowed, -torch.inf)
        scores[:, known:] = -torch.inf
        return scores

    @checked
    def extend(self, parents: Sequence[int] | torch.Tensor, tokens: Sequence[int] | torch.Tensor) -> None:
        chosen, taken = as_lists(parents, tokens)
        if len(chosen) != len(taken) or not all(0 <= row < len(self) for row in chosen):
            raise DecodingError(
                f"parents must name rows from 0 to {len(self) - 1}, one for each of "
                f"{counted(len(taken), 'token')}, not {chosen!r:.80}"
            )
        parent = torch.tensor(chosen, device=self.device, dtype=torch.long)
        token = torch.tensor(taken, device=self.device, dtype=torch.long)
        alpha, ended = self.alpha[parent], self._ended[parent]
        if self._left:
            inside = (token >= 0) & (token < self.edges.num_tokens)
            moved = alpha[:, self._source] & self._bearing(token.where(inside, 0))[:, self._label]
            moved &= inside.unsqueeze(1)
            completed = (moved & self._beta[self._left - 1, self._target]).any(1)
            after = torch.zeros(alpha.shape, device=self.device).index_add_(
                1, self._target, moved.to(torch.float32)
            )
            stuck = (~completed & ~ended).nonzero()
            if len(stuck):
                row = int(stuck[0, 0])
                raise not_allowed(chosen[row], taken[row])
            alpha = torch.where(ended.unsqueeze(1), alpha, after > 0)
        going = (~self.finished[parent]).tolist()
        self._taken = [
            [*self._taken[row], token] if goes else self._taken[row]
            for row, token, goes in zip(chosen, taken, going, strict=True)
        ]
        self.alpha, self._ended = alpha, ended
        if self._ended_state is not None:
            self._ended = alpha[:, self._ended_state]
        self._left -= self._left > 0


def _distances(edges: TokenEdges) -> npt.NDArray[np.int64]:
    """The least number of tokens from each state to acceptance."""
    found: npt.NDArray[np.int64] = np.where(edges.accepting, 0, _NEVER)
    for length in range(1, edges.num_states):
        reached = edges.source[found[edges.target] == length - 1]
        better = reached[found[reached] == _NEVER]
        if not len(better):
            break
        found[better] = length
    return found
