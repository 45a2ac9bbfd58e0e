"""``Sampling``: the choice of the next token from masked scores, greedy or random.

``temperature``, ``top_k`` and ``top_p`` have the meaning of transformers, and are applied in that order, after the
mask. ``probabilities`` is the distribution from which ``choose`` draws, so speculative decoding compares draft and
target by the same numbers that sampling uses.

Invariant: the chosen token is allowed, and its score is finite. Cost: a few passes over the scores; one for greedy
choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tokenfst.errors import DecodingError, LogitsError, MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings; greedy unless ``do_sample``. Raises ``DecodingError`` for values out of range."""

    do_sample: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise DecodingError(
                f"temperature={self.temperature} is not positive: for the most probable token, do_sample=False"
            )
        if self.top_k is not None and self.top_k < 1:
            raise DecodingError(f"top_k={self.top_k} leaves no token: let it be 1 or more, or None for all")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise DecodingError(f"top_p={self.top_p} is no share of the probability: let it lie in (0, 1]")

    def with_temperatures(self, scores: torch.Tensor, temperatures: Sequence[float | None]) -> torch.Tensor:
        """Scores of shape (rows, width), scaled by a separate temperature for each row.

        Sampling from the result with these settings is the same as sampling from each row of ``scores`` at its own
        temperature (``matcher.temperature``). ``None`` is the temperature of the settings; 0 keeps only the most
        probable token.
        """
        if not self.do_sample or all(each is None for each in temperatures):
            return scores
        found = scores.double()
        for row, temperature in enumerate(temperatures):
            best = found[row].max()
            if temperature is None or not bool(best.isfinite()):
                continue
            if temperature == 0:
                only = torch.full_like(found[row], float("-inf"))
                only[found[row].argmax()] = 0.0
                found[row] = only
            else:
                found[row] = (found[row] - best) * (self.temperature / temperature)
        return found

    def probabilities(self, scores: torch.Tensor) -> torch.Tensor:
        """The distribution of the next token: float64, with the shape (rows, width) of ``scores``, where forbidden
        tokens have -inf.

        Greedy: probability 1 for the most probable token, the first of equals. Raises ``LogitsError`` for a row with
        NaN, +inf, or no finite score.
        """
        check_scores(scores.amax(dim=-1))
        if not self.do_sample:
            return torch.nn.functional.one_hot(scores.argmax(dim=-1), scores.shape[-1]).double()
        kept = scores.double() / self.temperature
        if self.top_k is not None and self.top_k < kept.shape[-1]:
            least = kept.topk(self.top_k, dim=-1).values[..., -1:]
            kept = kept.masked_fill(kept < least, float("-inf"))
        found = torch.softmax(kept, dim=-1)
        if self.top_p is not None and self.top_p < 1:
            ordered, places = found.sort(dim=-1, descending=True, stable=True)
            drop = ordered.cumsum(dim=-1) - ordered >= self.top_p
            found = found.masked_fill(torch.zeros_like(drop).scatter(-1, places, drop), 0.0)
            found = found / found.sum(dim=-1, keepdim=True)
        return found

    def choose(self, scores: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """The next token of each row, int64 of shape (rows,). Raises the errors of ``probabilities``."""
        if self.do_sample:
            return torch.multinomial(self.probabilities(scores), 1, generator=generator).squeeze(1)
        best, tokens = scores.max(dim=-1)
        check_scores(best)
        return tokens


def check_scores(best: torch.Tensor) -> None:
    """Raise ``LogitsError`` if the best allowed score of a row is not finite."""
    values = best.tolist()
    if not all(map(math.isfinite, values)):
        row = [math.isfinite(value) for value in values].index(False)
        what = "are all -inf" if values[row] == float("-inf") else "have NaN or +inf"
        raise LogitsError(
            f"the scores of the tokens that row {row} may take {what}: none can be chosen. Check the model's weights "
            "and precision, and what other processors forbid"
        )
