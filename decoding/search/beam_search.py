"""Automata-guided beam search (ABS): beam search within a constraint, with scores that favour progress to acceptance.

The candidates are masked by the constraint within the remaining tokens, so that no beam can die. Scores favour tokens
that reduce the distance to acceptance, and the more so the fewer tokens are left. At step t of T, a row at distance d
(in tokens, on the composed token automaton) has the scores

    pushed(x) = alpha * max_y log p(y) + (1 - alpha) * log p(x)     where x reduces d,      log p(x)     elsewhere
    alpha     = alpha_min + (1 - alpha_min) * min(1, (d / (T - t)) ** gamma),               1 where T - t = 0 < d

Sums of ``pushed`` select the k rows that continue. Results are ranked by the true log-probability, or by the pushed
score on request. With ``alpha_min=0, gamma=inf`` nothing is pushed before the limit forces it.

Rules. The search starts with one live row for each prompt, and extends distinct rows by distinct tokens, so no two rows
are ever equal. The score of an end token is its log-probability, without a push. It ends a row if it is among the k
best candidates of its prompt; the k best candidates without an end token continue. A text of all T tokens is complete
without an end token. Ranking divides by ``length ** length_penalty``. A prompt is settled when no live row can beat the
sequences that were found: stopping early does not change the result.

Invariant (soundness, for every k >= 1): each live row has an accepted completion within the remaining tokens, since the
masks allow nothing else. So after each step each prompt has a live row or a finished one, and the last step finishes
all. If k is at least the number of prefixes, nothing is pruned, and the result is the exact constrained maximum.

Cost of a step with R live rows: one call of the model; over (R, V) scores a softmax, one or two masks, two passes for
the push if some row is not accepting, and a top-k; then R * k candidates. No loop over the vocabulary.

Source: "ABS: enforcing constraint satisfaction on generated sequences via automata-guided beam search".
docs/decoding/beam-search.md lists the differences from the paper and their reasons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tokenfst.common.arguments import checked_but
from tokenfst.common.renamed import old_names, renamed
from tokenfst.decoding.models.language_model import Prompts, Session, as_language_model, next_log_probs
from tokenfst.decoding.rows.generations import Generation
from tokenfst.decoding.rows.reach_rows import Length, start_rows
from tokenfst.decoding.rows.rows import AnyAutomaton, Rows
from tokenfst.decoding.search.beam_trace import Beam, BeamTrace
from tokenfst.errors import DecodingError, MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error

_MOST_PUSH = 1 - 2**-20
"""Upper bound of alpha. It is below 1, so that among pushed tokens the more likely one wins."""

_MOST_POWER = 150
_MOST_LOG = _MOST_POWER * math.log(10)
"""Bound that keeps the divisor of a ranking score, and the quotient, well within the range of a float."""

_BLOCK = 128
"""Block size, in scores, of the search for candidates."""

_IMPOSSIBLE = -1e6
"""The log-probability that ranks rows if the model gives every allowed token probability zero."""


class _Hypothesis(NamedTuple):
    """A complete sequence; see ``Generation``."""

    tokens: tuple[int, ...]
    log_prob: float
    pushed: float
    score: float


@dataclass(frozen=True, slots=True)
class _Options:
    num_beams: int
    max_new_tokens: int
    count_end: bool
    alpha_min: float
    gamma: float
    rank_by: str
    length_penalty: float
    num_return_sequences: int

    def __post_init__(self) -> None:
        for met, found, range_ in (
            (self.num_beams >= 1, f"num_beams={self.num_beams}", "at least 1"),
            (self.max_new_tokens >= 0, f"max_new_tokens={self.max_new_tokens}", "not negative"),
            (
                _is_plain(self.alpha_min) and 0 <= self.alpha_min <= 1,
                f"alpha_min={self.alpha_min}",
                "between 0 and 1",
            ),
            (self.gamma > 0, f"gamma={self.gamma}", "positive; math.inf switches the ramp off"),
            (self.rank_by in ("log_prob", "pushed"), f"rank_by={self.rank_by!r}", '"log_prob" or "pushed"'),
            (
                _is_plain(self.length_penalty)
                and abs(self.length_penalty) <= _MOST_LOG / math.log(max(self.max_new_tokens, 2)),
                f"length_penalty={self.length_penalty}",
                f"finite, and max_new_tokens ** length_penalty between 1e{-_MOST_POWER} and 1e{_MOST_POWER}",
            ),
            (
                1 <= self.num_return_sequences <= self.num_beams,
                f"num_return_sequences={self.num_return_sequences}",
                f"between 1 and num_beams, {self.num_beams}",
            ),
        ):
            if not met:
                raise DecodingError(f"{found} is out of range: it must be {range_}")


def _is_plain(value: object) -> bool:
    return isinstance(value, float | int)


@renamed(max_length="max_new_tokens")
@checked_but("automata", "alpha_min", "length_penalty")
def automata_beam_search(
    model: Any,
    prompts: Prompts,
    automata: AnyAutomaton | Sequence[AnyAutomaton] | Rows,
    *,
    num_beams: int,
    max_new_tokens: int,
    length: Length = "at_most",
    count_end: bool = False,
    alpha_min: float = 0.5,
    gamma: float = 1.0,
    rank_by: Literal["log_prob", "pushed"] = "log_prob",
    length_penalty: float = 0.0,
    num_return_sequences: int = 1,
    width: int | None = None,
    trace: BeamTrace | None = None,
) -> list[list[Generation]]:
    """The best ``num_return_sequences`` distinct sequences for each prompt, best first.

    At least one sequence is returned; fewer than requested only if the search met fewer.

    ``model``: a causal transformers model, a function from ids to scores (with the ``width`` of its scores), or a
    ``LanguageModel``. ``prompts``: token ids, of any lengths; for a function they may be empty. ``automata``: one for
    all prompts, or one for each; or rows that were started for them with this length (``rows.tensor_rows.TensorRows``
    for nondeterministic automata). ``max_new_tokens``: maximum number of tokens after the prompt, including the end
    token; with ``length="exact"`` exactly this many, without end token unless ``count_end`` (``rows.reach_rows``).
    ``num_beams``: the number k of rows that continue for each prompt. ``alpha_min`` (0 to 1) and ``gamma`` (positive)
    determine the push, ``rank_by`` and ``length_penalty`` the ranking of results; see the module. ``trace``: is filled
    with the beams of each step (``BeamTrace``, which also draws them).

    Raises before the first call of the model: ``DecodingError`` for an option out of range, ``EmptyLanguageError``,
    ``TokenLimitError``, with a feasible ``max_new_tokens``, ``VocabularyMismatchError``, ``ModelError``. Later:
    ``LogitsError`` for scores that are not a distribution. If the model gives every allowed token probability zero,
    sequences are still returned, with ``log_prob`` -inf.
    """
    options = _Options(
        num_beams=num_beams,
        max_new_tokens=max_new_tokens,
        count_end=count_end,
        alpha_min=alpha_min,
        gamma=gamma,
        rank_by=rank_by,
        length_penalty=length_penalty,
        num_return_sequences=num_return_sequences,
    )
    scorer = as_language_model(model, width)
    rows = start_rows(
        automata,
        prompts=len(prompts),
        max_new_tokens=max_new_tokens,
        width=scorer.width,
        device=scorer.device,
        length=length,
        count_end=count_end,
    )
    if max_new_tokens == 0:
        nothing = Generation((), b"", log_prob=0.0, score=0.0, pushed=0.0)
        return [[nothing] for _ in range(len(prompts))]
    if trace is not None:
        trace.begin(len(prompts), rows.vocabulary)
    return _Search(rows, options, trace).run(scorer.start(prompts))


class _Search:
    """One search: its prompts that are not settled, with the same number of rows each, prompt by prompt.

    ``pushed``, ``log_prob``: sums so far, of shape (prompts, rows of each). A prompt with fewer live rows than
    others has copies of its best one with a pushed sum of -inf, whose candidates are never taken.
    """

    def __init__(self, rows: Rows, options: _Options, trace: BeamTrace | None = None) -> None:
        self.rows, self.options, self.trace = rows, options, trace
        self.prompts = list(range(len(rows)))
        self.found: list[list[_Hypothesis]] = [[] for _ in self.prompts]
        self.ends = torch.tensor(rows.vocabulary.eos_token_ids, device=rows.device)
        sums = torch.float32 if rows.device.type == "mps" else torch.float64
        self.pushed = torch.zeros((len(rows), 1), dtype=sums, device=rows.device)
        self.log_prob = self.pushed.clone()

    def run(self, session: Session) -> list[list[Generation]]:
        for left in range(self.options.max_new_tokens, 0, -1):
            parents, tokens = self._step(next_log_probs(session.logits), left)
            if not parents:
                break
            self.rows.extend(parents, tokens)
            session.extend(*(torch.tensor(each, device=self.rows.device) for each in (parents, tokens)))
        decode = self.rows.vocabulary.decode
        return [
            [
                Generation(
                    each.tokens, decode(each.tokens), True, each.log_prob, None, each.score, each.pushed
                )
                for each in found
            ]
            for found in self.found
        ]

    def _step(self, log_probs: torch.Tensor, left: int) -> tuple[list[int], list[int]]:
        """Choose the next tokens: the rows that continue, and their tokens. No rows continue if all prompts are
        settled.
        """
        scores = self._push(log_probs, left)
        end_probs = log_probs.index_select(1, self.ends)
        scores.index_fill_(1, self.ends, -math.inf)
        going, ending = self._best(scores, end_probs, end_probs, log_probs)
        starved = (going.pushed[:, 0].isneginf() & ending.pushed.amax(1).isneginf()).repeat_interleave(
            self.pushed.shape[1]
        )
        if bool(starved.any()):
            allowed = self.rows.allowed() & starved.unsqueeze(1)
            end_scores = end_probs.masked_fill(allowed.index_select(1, self.ends), _IMPOSSIBLE)
            allowed.index_fill_(1, self.ends, False)
            scores = scores.masked_fill(allowed & scores.isneginf(), _IMPOSSIBLE)
            going, ending = self._best(scores, end_scores, end_probs, log_probs)
        self._finish(ending)
        if left == 1:
            self._finish(going)
            return [], []
        return self._go_on(going, self.options.max_new_tokens - left + 1)

    def _push(self, log_probs: torch.Tensor, left: int) -> torch.Tensor:
        """Mask ``log_probs`` in place, and return the pushed scores: the same tensor if nothing is pushed."""
        alpha = self._alpha(self.rows.distances(), left - 1 - self.options.count_end)
        peak = log_probs.amax(1)
        self.rows.mask_(log_probs)
        if not bool(alpha.any()):
            return log_probs
        nearer = log_probs * (1 - alpha).unsqueeze(1)
        nearer += (alpha * peak).unsqueeze(1)
        self.rows.mask_nearer_(nearer)
        return torch.maximum(log_probs, nearer, out=nearer)

    def _alpha(self, distances: torch.Tensor, rest: int) -> torch.Tensor:
        """Alpha for rows with ``rest`` tokens of text left after the next one; 0 at distance 0, because no token is
        nearer.
        """
        d, options = distances.to(torch.float32), self.options
        tight = (d / rest).clamp_(max=1) if rest > 0 else torch.ones_like(d)
        alpha = options.alpha_min + (1 - options.alpha_min) * tight**options.gamma
        return alpha.clamp_(max=_MOST_PUSH).masked_fill_(distances == 0, 0.0)

    def _best(
        self,
        scores: torch.Tensor,
        end_scores: torch.Tensor,
        end_probs: torch.Tensor,
        log_probs: torch.Tensor,
    ) -> tuple[_Candidates, _Candidates]:
        """For each prompt its k best candidates that continue, best first, and its candidates with an end token.

        The latter have -inf if they are not among the k best of all. At most k candidates of a row can be among
        these.
        """
        most, (prompts, beams) = self.options.num_beams, self.pushed.shape
        base, log_prob = self.pushed.view(-1, 1), self.log_prob.view(-1, 1)
        rows = torch.arange(prompts * beams, device=base.device).unsqueeze(1)
        pushed, row, token = self._likeliest(scores, rows)
        going = _Candidates(pushed, self.log_prob.view(-1)[row] + log_probs[row, token], row, token)
        of_ends = (
            end_scores + base,
            end_probs + log_prob,
            rows.expand_as(end_scores),
            self.ends.expand_as(end_scores),
        )
        ending = _Candidates(*(each.reshape(prompts, -1) for each in of_ends))
        both = torch.cat([going.pushed, ending.pushed], dim=1)
        if both.shape[1] > most:
            least = both.topk(most, dim=1).values[:, -1:]
            ending = ending._replace(pushed=ending.pushed.masked_fill(ending.pushed < least, -math.inf))
        return going, ending

    def _likeliest(
        self, scores: torch.Tensor, rows: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The pushed sums, rows and tokens of the k best candidates of each prompt, each of shape (prompts, k), best
        first; sums of -inf where there are fewer.

        Scores are processed in blocks. The k best candidates are in the k blocks with the best maxima, because
        every score in another block is less than those k maxima. So one pass finds the maxima, and top-k gets few
        values (128 rows of 131,072: 13 ms; by one top-k of all 576 ms, by rows 149).
        """
        most, prompts, width = self.options.num_beams, len(self.prompts), scores.shape[1]
        whole = width // _BLOCK * _BLOCK
        maxima = scores[:, :whole].unflatten(1, (-1, _BLOCK)).amax(2) if whole else scores[:, :0]
        if whole < width:
            maxima = torch.cat([maxima, scores[:, whole:].amax(1, keepdim=True)], dim=1)
        best = (maxima + self.pushed.view(-1, 1)).view(prompts, -1)
        chosen = best.topk(min(most, best.shape[1]), dim=1).indices
        row = rows.view(prompts, -1)[:, :1] + chosen // maxima.shape[1]
        token = (chosen % maxima.shape[1] * _BLOCK).unsqueeze(2) + torch.arange(_BLOCK, device=scores.device)
        beyond, token = token >= width, token.clamp(max=width - 1)
        inside = scores[row.unsqueeze(2), token].masked_fill(beyond, -math.inf)
        values = (inside + self.pushed.view(-1)[row].unsqueeze(2)).flatten(1)
        pushed, within = values.topk(min(most, values.shape[1]), dim=1)
        return pushed, row.gather(1, within // _BLOCK), token.flatten(1).gather(1, within)

    def _finish(self, candidates: _Candidates) -> None:
        """Record candidates as complete; for each prompt the best ones are kept."""
        options = self.options
        for prompt, ways in zip(self.prompts, candidates.lists(), strict=True):
            found = self.found[prompt]
            for pushed, log_prob, row, token in ways:
                tokens = (*self.rows.tokens(row), token)
                score = self._score(log_prob if options.rank_by == "log_prob" else pushed, len(tokens))
                found.append(_Hypothesis(tokens, log_prob, pushed, score))
                if self.trace is not None:
                    self.trace.finished[prompt].append(Beam(tokens, log_prob, pushed))
            found.sort(key=lambda each: (-each.score, each.tokens))
            del found[options.num_return_sequences :]

    def _go_on(self, going: _Candidates, length: int) -> tuple[list[int], list[int]]:
        """Make rows of ``length`` tokens from the candidates of prompts that are not settled."""
        kept = []
        for prompt, ways in zip(self.prompts, going.lists(), strict=True):
            found = self.found[prompt]
            sums = [
                log_prob if self.options.rank_by == "log_prob" else pushed for pushed, log_prob, *_ in ways
            ]
            # Sums only decrease; the divisor may grow to that of the longest text, or is smallest now.
            longest = self.options.max_new_tokens if self.options.length_penalty > 0 else length + 1
            full = len(found) == self.options.num_return_sequences
            if ways and not (full and self._score(max(sums), longest) <= found[-1].score):
                kept.append((prompt, ways))
        self.prompts = [prompt for prompt, _ in kept]
        if self.trace is not None:
            for prompt, ways in kept:
                beams_now = (Beam((*self.rows.tokens(row), token), q, p) for p, q, row, token in ways)
                self.trace.keep(prompt, beams_now)
        beams = max((len(ways) for _, ways in kept), default=0)
        filled = [[*ways, *[(-math.inf, *ways[0][1:])] * (beams - len(ways))] for _, ways in kept]
        both = [[each[:2] for each in ways] for ways in filled]
        self.pushed, self.log_prob = self.pushed.new_tensor(both).reshape(len(kept), beams, 2).unbind(2)
        return [each[2] for ways in filled for each in ways], [each[3] for ways in filled for each in ways]

    def _score(self, total: float, length: int) -> float:
        divisor: float = length ** float(self.options.length_penalty)
        return total / divisor


class _Candidates(NamedTuple):
    """Possible continuations, of shape (prompts, ways): sums of scores (-inf: no candidate), rows and tokens."""

    pushed: torch.Tensor
    log_prob: torch.Tensor
    row: torch.Tensor
    token: torch.Tensor

    def lists(self) -> list[list[tuple[float, float, int, int]]]:
        """The continuations of each prompt, in one transfer from the device."""
        table = torch.stack([each.to(self.pushed.dtype) for each in self], dim=2).tolist()
        return [[(p, q, int(r), int(t)) for p, q, r, t in ways if p != -math.inf] for ways in table]


if not TYPE_CHECKING:
    __getattr__ = old_names(__name__, {"abs_beam_search": "automata_beam_search", "Hypothesis": "Generation"})
