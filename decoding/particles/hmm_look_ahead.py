"""Look-ahead of a hidden Markov model over the rest of a text, without a bound on its length.

``HmmProduct`` looks n tokens ahead. Here texts may have any length. For state q of a weighted language and hidden state
h that emits the next token, the expected weight u(q, h) of the rest of the text, its end included, solves

    u(q, h) = B[h, end] · final(q) + Σ over tokens t of B[h, t] · w(q, t) · (A u(q·t))(h)

where B are the emissions, A the transitions, and w the weights of the language, 1 if it has none. Each strongly
connected component is solved as one linear system, in reverse topological order, exact up to rounding. Solutions are
stored with the maximum one for each state and the logarithm of its scale, so long texts do not underflow.

Scores are log e(x·t) - log e(x), where e(x) is the expected weight of a text that starts with x, times that of x. This
is the factor by which P-GCD multiplies a model's probabilities (docs/decoding/probabilistic.md). The scores work with
``FusedModel``, logits processors and matchers. A token that the language allows and the model (nearly) excludes keeps
e^``FLOOR`` of the largest factor, so only the language forbids tokens. Special tokens are followed where the language
allows them.

Cost: a run of all tokens from each state; n³ H³ operations and n² H² numbers for n states on common cycles, bounded by
the budget. A row of scores takes (V + states) · H operations.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.rules.graph import components
from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.automata.weights.machine import Floats
from tokenfst.automata.weights.sums import solved
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted
from tokenfst.decoding.device.kernels.scores import plain as plain_scores
from tokenfst.decoding.device.tables.weights import pack_weights
from tokenfst.decoding.particles.hmm import Hmm
from tokenfst.decoding.particles.hmm_product import FLOOR, check_vocabulary
from tokenfst.decoding.scores.matcher import ScoreMatcher, ScoreSource
from tokenfst.decoding.scores.rows import ScoreRow
from tokenfst.errors import (
    BudgetExceeded,
    EmptyLanguageError,
    HmmError,
    MissingDependencyError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('hidden Markov models need torch: pip install "tokenfst[torch]"') from error

_WHERE = "the look-ahead of a hidden Markov model"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A state of the language, the belief about the hidden state that emits the next token (H,), and the log of the
    expected weight here.
    """

    state: int
    belief: torch.Tensor
    expected: float


class HmmLookAhead(ScoreSource):
    """The look-ahead of ``hmm`` over ``language``, as scores of tokens: ``matcher().scores_into`` adds them to logits.

    ``language``: regular; its texts have weight 1 if it has no weights. ``vocabulary``: that of the model's tokens.
    Raises ``ConstraintError`` for a weighted language that is not deterministic, ``EmptyLanguageError`` if the model
    gives all of its texts probability zero, ``VocabularyMismatchError``, ``HmmError`` if the expectation is infinite,
    ``BudgetExceeded``.
    """

    @checked
    def __init__(
        self,
        hmm: Hmm,
        language: Constraint | WeightedLanguage,
        vocabulary: Vocabulary,
        *,
        budget: Budget | None = None,
    ) -> None:
        check_vocabulary(hmm, len(vocabulary), vocabulary.fingerprint)
        if not isinstance(language, WeightedLanguage):
            language = WeightedLanguage.of(language, budget)
        self.hmm, self.language, self.vocabulary = hmm, language, vocabulary
        self._deadline = Deadline(budget or language.budget, _WHERE)
        self._tables, first = pack_weights(language, vocabulary, torch.device("cpu"), None)
        self._emitted = hmm.emitted.double().cpu()
        self._passed = hmm.transition.double().cpu()
        self._ends = list(vocabulary.eos_token_ids)
        self._steps: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        """For each state the targets of all tokens, 0 if there is none, and their scores."""
        self._reach(first)
        self._ahead = torch.zeros((len(self._tables.finals), hmm.hidden_size), dtype=torch.float64)
        """The expected weight of the rest, by state and the hidden state that emits the next token."""
        self._onward = self._ahead.clone()
        """The same by the hidden state before that one."""
        self._scale = torch.full((len(self._ahead),), -torch.inf, dtype=torch.float64)
        """The logs of the scales of both; -inf where nothing is expected."""
        self._solve()
        belief = hmm.initial.double().cpu()
        expected = self._expected(first, belief)
        if expected == -math.inf:
            raise EmptyLanguageError(f"{hmm!r} gives no text of {language!r} a probability")
        self.start = Place(first, belief, expected)
        """The start of walks."""

    def __repr__(self) -> str:
        return f"<HmmLookAhead of {self.language.source!r}: {counted(len(self._steps), 'state')}>"

    @property
    def start_weight(self) -> float:
        """The log weight of every text before its first token."""
        return self.language.machine.initial

    @property
    def log_expected(self) -> float:
        """The log of the expected weight of a text; for a language without weights, the log of its probability."""
        return self.start_weight + self.start.expected

    def matcher(self) -> ScoreMatcher[Place]:
        """A matcher at the start."""
        return ScoreMatcher(self)

    def row(self, node: Place) -> ScoreRow:
        """The scores of all tokens at a node, recomputed each time because nodes contain beliefs."""
        reached, scores = self._steps[node.state]
        weighted = node.belief * self._emitted  # (V, H)
        alone, joint = weighted.sum(1), (weighted * self._onward[reached]).sum(1)
        unseen = alone <= 0
        joint = torch.where(unseen, (self._onward @ node.belief)[reached], joint)
        after = (joint / torch.where(unseen, 1.0, alone)).log() + self._scale[reached]
        after[self._ends] = 0.0
        found = scores.double() + after - node.expected
        allowed = scores > -torch.inf
        found = torch.where(allowed, found, -torch.inf)
        least = float(found.max()) + FLOOR
        found = torch.where(allowed, found.clamp_min(least if least > -math.inf else FLOOR), found)
        return ScoreRow.of(found.float().numpy())

    def key(self, node: Place) -> Hashable:
        """Nodes with equal keys have equal rows."""
        return node.state, node.belief.numpy().tobytes(), node.expected

    def step(self, node: Place, token: int) -> tuple[Place, float] | None:
        """The node after a token, and the token's score; None if the token leaves the language. Not for end tokens."""
        reached, scores = self._steps[node.state]
        state, own = int(reached[token]), float(scores[token])
        if own == -math.inf:
            return None
        seen = node.belief * self._emitted[token]
        total = float(seen.sum())
        belief = (seen / total if total > 0 else node.belief) @ self._passed
        expected = self._expected(state, belief)
        if expected == -math.inf:  # the least score in a row
            expected = node.expected - own + FLOOR
        return Place(state, belief, expected), own + expected - node.expected

    def end_score(self, node: Place) -> float:
        """The score of an end token."""
        return float(self._tables.finals[node.state]) - node.expected

    # --- the equations ----------------------------------------------------------------------------------

    def _expected(self, state: int, belief: torch.Tensor) -> float:
        """The log of the expected weight of the rest."""
        return float((belief @ self._ahead[state]).log() + self._scale[state])

    def _reach(self, first: int) -> None:
        """Run all tokens from each reachable state."""
        tokens = torch.arange(len(self.vocabulary))
        longest = max(1, *map(len, (*self.vocabulary.tokens, *(self.vocabulary.initial_tokens or ()))))
        pending, room = [first], self._deadline.budget.bytes
        while pending:
            state = pending.pop()
            if state in self._steps:
                continue
            self._deadline.check()
            if 12 * len(tokens) * (len(self._steps) + 1) > room:
                raise BudgetExceeded("bytes", room, _WHERE)
            at = torch.full((len(tokens),), state, dtype=torch.int32)
            reached, scores = plain_scores.advance(self._tables, at, tokens, longest)
            reached[self._ends] = 0
            self._steps[state] = reached.long(), scores
            pending += [each for each in torch.unique(reached).tolist() if each > 1]

    def _solve(self) -> None:
        hidden = self.hmm.hidden_size
        graph = {
            state: [each for each in torch.unique(reached).tolist() if each > 1]
            for state, (reached, _) in self._steps.items()
        }
        finals = self._tables.finals.double()
        ending, passed = self._emitted[self._ends].sum(0).log(), self._passed.log().numpy()
        for part in components(graph):
            size, place = len(part) * hidden, {state: number for number, state in enumerate(part)}
            cyclic = len(part) > 1 or part[0] in graph[part[0]]
            if cyclic and 4 * 8 * size**2 > self._deadline.budget.bytes:
                raise BudgetExceeded("bytes", self._deadline.budget.bytes, _WHERE)
            known = torch.full((len(part), hidden), -torch.inf, dtype=torch.float64)
            table = np.full((len(part), hidden) * 2 if cyclic else (0,), -np.inf)
            for at, state in enumerate(part):
                self._deadline.check()
                reached, scores = self._steps[state]
                known[at] = ending + finals[state]
                for target in graph[state]:
                    mass = self._mass(reached == target, scores)
                    if target in place:
                        table[at, :, place[target]] = mass.numpy()[:, None] + passed
                    else:
                        after = mass + self._onward[target].log() + self._scale[target]
                        known[at] = torch.logaddexp(known[at], after)
            found = (
                _solved(known.numpy().ravel(), table.reshape(size, size), self._deadline)
                if cyclic
                else known.numpy()
            )
            self._keep(part, torch.from_numpy(found.reshape(len(part), hidden)))

    def _mass(self, tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """(H,): the log of the weights of these tokens, each multiplied by its probability."""
        own = scores[tokens].double()
        most = own.max()
        return (self._emitted[tokens] * (own - most).exp()[:, None]).sum(0).log() + most

    def _keep(self, states: list[int], logs: torch.Tensor) -> None:
        scale = logs.max(1).values
        self._scale[states] = scale
        self._ahead[states] = (logs - scale.nan_to_num(neginf=0.0)[:, None]).exp()
        self._onward[states] = self._ahead[states] @ self._passed.T


def _solved(known: Floats, table: Floats, deadline: Deadline) -> Floats:
    """The logs x of the least solution of e^x = e^known + e^table e^x. Raises HmmError if it is infinite."""
    at, to = np.nonzero(table > -np.inf)
    found = solved(known, (at, to, table[at, to]), deadline)
    if found is None:
        raise HmmError(
            "the expected weight of what follows is infinite: on a cycle of the language the model never ends, and the "
            "weights do not fall. Scale the weights down, or let the model end"
        )
    return found
