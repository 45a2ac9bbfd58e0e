"""Proposal distributions of sequential Monte Carlo: the next tokens of each particle and their probabilities.

A proposal turns the language model's log-probabilities into the logarithm of an unnormalized distribution q̃ over next
tokens, for each row, and replaces its rows by a selection of them:

- local (LCD): tokens with a completion of any length, ``MaskedRows`` without a limit;
- global (GCD): tokens with a completion within the tokens left, ``MaskedRows`` with a limit or an exact length;
- probabilistic (P-GCD): the latter, each weighted by the look-ahead of a hidden Markov model, ``ProductRows``.

``taken`` also returns the logarithm of a *potential*, an estimate of p(accepted | row). Potentials guide resampling and
cancel out of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tokenfst.decoding.particles.hmm import Belief
from tokenfst.decoding.particles.hmm_product import FLOOR, HmmProduct
from tokenfst.decoding.rows.rows import Rows
from tokenfst.errors import MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


class Proposal(Protocol):
    """The rows of one proposal; all have taken the same number of tokens, none an end token."""

    def weigh(self, log_probs: torch.Tensor, left: int) -> torch.Tensor:
        """log q̃, shape (rows, width), for log-probabilities (rows, width), which may be overwritten; -inf for
        forbidden tokens.

        ``left``: the tokens left, including the next one.
        """

    def taken(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """For tokens (rows,) drawn from the last q̃: log(q̃ / p), and the log potentials of the extended rows; both of
        shape (rows,).
        """

    def extend(self, parents: torch.Tensor, tokens: torch.Tensor) -> None:
        """Replace the rows: row i becomes row ``parents[i]`` followed by ``tokens[i]``, which was drawn for it last."""

    def accepting(self) -> torch.Tensor:
        """Which rows have a complete text now that no token is left, bool (rows,)."""


class MaskedRows:
    """LCD and GCD: forbidden tokens are excluded, the others keep the model's probabilities.

    ``forbidden``: additionally excluded tokens, such as the end tokens for texts of an exact length.
    """

    def __init__(self, rows: Rows, forbidden: Sequence[int] = ()) -> None:
        self._rows = rows
        self._forbidden = list(forbidden)

    def weigh(self, log_probs: torch.Tensor, left: int) -> torch.Tensor:
        masked = self._rows.mask_(log_probs)
        if self._forbidden:
            masked[:, self._forbidden] = -torch.inf
        return masked

    def taken(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return _nothing(tokens)

    def extend(self, parents: torch.Tensor, tokens: torch.Tensor) -> None:
        self._rows.extend(parents, tokens)

    def accepting(self) -> torch.Tensor:
        return self._rows.accepting


class ProductRows:
    """P-GCD: the model's probabilities times the weights of a circuit product (``HmmProduct.log_weights``).

    ``products``: one for each row, over one hidden Markov model, which does not depend on the prompts. ``potentials``:
    whether the product's p_hmm(accepted | row) guides resampling. ``defensive``: the share of draws that use masks
    alone, as in GCD. If a look-ahead is wrong, a step multiplies weights by at most 1 / ``defensive`` times the factor
    of GCD.

    Source: Hesterberg, "Weighted average importance sampling and defensive mixture distributions" (1995).
    """

    def __init__(
        self,
        products: Sequence[HmmProduct],
        width: int,
        *,
        corrected: bool = True,
        potentials: bool = True,
        defensive: float = 0.0,
    ) -> None:
        self._products = list(dict.fromkeys(products))
        self._product = torch.tensor([self._products.index(product) for product in products])
        self._states = torch.tensor([product.start for product in products])
        self._hmm, self._state = products[0].hmm, products[0].hmm.start(len(products)).state
        self._width, self._corrected, self._potentials = width, corrected, potentials
        self._defensive = defensive

    def weigh(self, log_probs: torch.Tensor, left: int) -> torch.Tensor:
        rows, tokens = len(log_probs), self._hmm.vocab_size
        self._factors = log_probs.new_full((rows, self._width), -torch.inf)
        self._joint = log_probs.new_full((rows, tokens), -torch.inf)
        for number, product in enumerate(self._products):
            own = (self._product == number).nonzero().squeeze(1)
            if len(own):
                here = Belief(self._state[own], self._state.new_zeros(len(own)))
                factors, joint = product.log_weights(here, self._states[own], left, corrected=self._corrected)
                self._factors[own, :tokens] = factors.to(log_probs)
                self._joint[own] = joint.to(log_probs)
        if self._defensive:
            self._mix(log_probs)
        return log_probs + self._factors

    def _mix(self, log_probs: torch.Tensor) -> None:
        """Replace the factors by those of the mixture, whose q̃ sums to one."""
        forbidden = self._factors == -torch.inf
        ahead = (log_probs + self._factors).logsumexp(1, keepdim=True).nan_to_num(neginf=0.0)
        alone = log_probs.masked_fill(forbidden, -torch.inf).logsumexp(1, keepdim=True).nan_to_num(neginf=0.0)
        share = log_probs.new_tensor(self._defensive)
        mixed = torch.logaddexp(self._factors - ahead + (-share).log1p(), share.log() - alone)
        self._factors = mixed.masked_fill(forbidden, -torch.inf)

    def taken(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = Belief(self._state, self._state.new_zeros(len(tokens)))
        after = self._hmm.observe(before, tokens)
        self._state = after.state
        factors = self._factors.gather(1, tokens[:, None]).squeeze(1)
        if not self._potentials:
            return factors, torch.zeros_like(factors)
        alone = after.log_likelihood.to(factors)
        potentials = self._joint.gather(1, tokens[:, None]).squeeze(1) - alone
        unknown = alone == -torch.inf
        return factors, potentials.clamp_min(FLOOR).masked_fill(unknown, 0.0)

    def extend(self, parents: torch.Tensor, tokens: torch.Tensor) -> None:
        self._state = self._state[parents.to(self._state.device)]
        chosen = parents.cpu()
        self._product = self._product[chosen]
        states = self._states[chosen]
        for number, product in enumerate(self._products):
            own = self._product == number
            states[own] = product.next_states(states[own], tokens.cpu()[own])
        self._states = states

    def accepting(self) -> torch.Tensor:
        return torch.ones(len(self._states), dtype=torch.bool)


def _nothing(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The factor and the potential of masks, for the tokens that they allow: both are neutral."""
    none = torch.zeros(len(tokens), device=tokens.device)
    return none, none
