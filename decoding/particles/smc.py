"""Sequential Monte Carlo: weighted samples of a language model's texts, conditioned on a constraint.

The target is the posterior p(x | x accepted) ∝ p_lm(x) · 1{x accepted}, over texts of n tokens, or of up to n with
their end token. Masking alone samples from another distribution: if a mask leaves little of the model's probability,
nothing compensates for it later. Here k particles are run. Each draws its next token from a *proposal* q
(``proposals.py``) and multiplies its weight by p_lm(x) / q(x); when the weights have become too unequal, particles are
resampled. For q ∝ p_lm · m the factor is Σ_x p_lm(x) m(x), whatever was drawn; for P-GCD it is Z / g(x), with g the
look-ahead and Z = Σ_x p_lm(x) g(x). The mean of the weights is an unbiased estimate of the evidence Σ p_lm(x) · 1{x
accepted}, for every proposal, resampling scheme and number of particles; the weighted particles converge to the
posterior as k grows.

With P-GCD the weight of a particle decreases exactly when it takes a token that leads to acceptance, so resampling by
weights would remove such particles. Therefore resampling uses weight times *potential*, p_hmm(accepted | particle):
with a perfect hidden Markov model these products are all equal. The potential is divided out again, and no returned
weight contains it.

A particle that took an end token is finished: it keeps its weight and is resampled with the others, but the model is
not called for it any more. A local mask (LCD) can leave a particle without any token, or incomplete after n of them;
its weight is then zero. If all weights are zero, the evidence estimate is zero.

Cost: one prompt run for each prompt, then one model call for each step for all unfinished particles of all prompts, and
one gather of the cache in steps that resample. Rejected: resampling in every step (unnecessary variance), particles as
separate objects (a model call each).

Source: "Mitigating bias in locally constrained decoding via tractable proposals"; Naesseth, Lindsten, Schön, "Elements
of sequential Monte Carlo" (2019), chapters 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tokenfst.automata.languages.display.readable import quoted
from tokenfst.automata.pictures.charts import Bar, Chart, svg
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but, whole
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import renamed
from tokenfst.decoding.models.language_model import Prompts, Session, as_language_model, next_log_probs
from tokenfst.decoding.particles.hmm import Hmm
from tokenfst.decoding.particles.hmm_product import HmmProduct
from tokenfst.decoding.particles.proposals import MaskedRows, ProductRows, Proposal
from tokenfst.decoding.particles.resampling import SCHEMES, Resampling, draw_one, resample
from tokenfst.decoding.rows.generations import Generation, Generations
from tokenfst.decoding.rows.reach_rows import Length, ReachRows, start_rows
from tokenfst.decoding.rows.rows import AnyAutomaton, ConstraintRows, one_for_each
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import HmmError, MissingDependencyError, ParticleError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error

ProposalName = Literal["lcd", "gcd", "p-gcd"]

PROPOSALS = get_args(ProposalName)

_PLOTTED, _PLOTTED_BYTES = 10, 20
"""The maximum number of texts in a plot, and of bytes that are shown of each."""


@dataclass(frozen=True, slots=True)
class Particles(Generations):
    """Weighted samples for one prompt: a ``Generation`` for each particle, with its ``log_weight``.

    ``finished`` is False for particles that the constraint does not accept; their weight is 0. ``log_weights``: float64
    (k,), natural logarithms; the mean of the weights estimates the evidence. ``log_evidence``: the logarithm of that
    mean, -inf where no particle was accepted. ``effective``: the effective sample size after each step, before
    resampling. ``resampled``: the steps after which particles were resampled, from 0.
    """

    log_weights: torch.Tensor
    log_evidence: float
    effective: list[float]
    resampled: list[int]

    @property
    def weights(self) -> torch.Tensor:
        """float64 (k,): the weights, summing to one; zeros where no particle was accepted."""
        if self.log_evidence == -math.inf:
            return torch.zeros_like(self.log_weights)
        return self.log_weights.softmax(0)

    def distribution(self) -> dict[tuple[int, ...], float]:
        """The estimated posterior: the probability of each distinct sequence with positive weight."""
        found: dict[tuple[int, ...], float] = {}
        for row, weight in zip(self.rows, self.weights.tolist(), strict=True):
            if weight > 0:
                found[row.tokens] = found.get(row.tokens, 0.0) + weight
        return found

    def plot(self) -> str:
        """An SVG element: the effective sample size after each step, before resampling; steps after which particles
        were resampled have another colour. Then the most probable texts, at most ten, with their probabilities.
        """
        steps = [
            Bar(str(step + 1), size, f"{size:.1f}{', resampled' * again}", first=again)
            for step, size in enumerate(self.effective)
            for again in (step in self.resampled,)
        ]
        texts: dict[bytes, float] = {}
        for row, weight in zip(self.rows, self.weights.tolist(), strict=True):
            if weight > 0:
                texts[row.text] = texts.get(row.text, 0.0) + weight
        likely = sorted(texts.items(), key=lambda item: -item[1])[:_PLOTTED]
        title = f"effective sample size of {counted(len(self), 'particle')} after each step"
        shown = [Bar(quoted(text, _PLOTTED_BYTES), weight, f"{weight:.1%}") for text, weight in likely]
        return svg([Chart(title, steps), Chart("probability of each text", shown)], inside=True)

    def _repr_svg_(self) -> str:
        return self.plot()

    def draw(self, count: int = 1, generator: torch.Generator | None = None) -> list[list[int]]:
        """The tokens of ``count`` particles, drawn with replacement in proportion to their weights: approximate samples
        of the posterior.

        Raises ``ParticleError`` if no particle was accepted.
        """
        whole("Particles.draw", "count", count, 1)
        if self.log_evidence == -math.inf:
            raise ParticleError(
                "no particle was accepted, so none can be drawn: use more particles, or a proposal that knows the "
                'limit ("gcd")'
            )
        chosen = torch.multinomial(self.weights, count, replacement=True, generator=generator)
        return [list(self.rows[index].tokens) for index in chosen.tolist()]


@renamed(max_tokens="max_new_tokens")
@checked_but("automata")
def smc(
    model: Any,
    prompts: Prompts,
    automata: AnyAutomaton | Sequence[AnyAutomaton],
    *,
    particles: int,
    max_new_tokens: int,
    proposal: ProposalName = "gcd",
    length: Length = "at_most",
    hmm: Hmm | HmmProduct | Sequence[HmmProduct] | None = None,
    corrected: bool = True,
    potentials: bool = True,
    defensive: float = 0.0,
    resampling: Resampling = "systematic",
    ess_threshold: float = 0.5,
    generator: torch.Generator | None = None,
    budget: Budget | None = None,
    width: int | None = None,
) -> list[Particles]:
    """``particles`` weighted samples for each prompt, of at most ``max_new_tokens`` tokens (``length="at_most"``) or of
    exactly that many (``"exact"``).

    ``model``: an argument of ``as_language_model`` (with ``width`` for plain functions). ``automata``: one for all
    prompts, or one for each. "lcd" and "gcd" also accept push-down automata and canonical tokenizations, but "gcd" does
    not accept exact lengths of the latter. ``proposal``: "lcd", "gcd", or "p-gcd", which needs ``hmm``: a hidden Markov
    model of the model's output after its prompts, over the same vocabulary; or finished products of the automata with
    it, for reuse. ``corrected``, ``potentials``, ``defensive``: options of P-GCD; see ``HmmProduct.log_weights``, the
    module, and ``ProductRows``; they and ``hmm`` have no effect on the other proposals. ``defensive`` is the share of
    tokens that are drawn as in GCD, as a safeguard against wrong look-aheads. ``resampling``: the scheme (module
    ``resampling``). ``ess_threshold``: particles of a prompt are resampled after a step if their effective sample size
    is below this share of k; 0 never, 1 (nearly) always.
    ``generator``: on the model's device.

    Raises, before the model is called: ``TokenLimitError`` if no text fits, with the least feasible number of tokens;
    ``VocabularyMismatchError``; ``ParticleError`` for inconsistent options; ``HmmError`` if "p-gcd" has no ``hmm``.
    Later: ``LogitsError`` if the model's scores are not a distribution.
    """
    if particles < 1 or max_new_tokens < 0 or not (0 <= ess_threshold <= 1 and 0 <= defensive <= 1):
        raise ParticleError(
            "particles must be at least 1, max_new_tokens at least 0, ess_threshold and defensive from 0 to 1; "
            f"they are {particles}, {max_new_tokens}, {ess_threshold} and {defensive}"
        )
    if proposal not in PROPOSALS or length not in ("exact", "at_most") or resampling not in SCHEMES:
        raise ParticleError(
            f"proposal is one of {', '.join(PROPOSALS)}, length one of exact, at_most, and resampling one of "
            f"{', '.join(SCHEMES)}; they are {proposal!r}, {length!r} and {resampling!r}"
        )
    language_model = as_language_model(model, width)
    each = one_for_each(automata, len(prompts))
    shared = [automaton for automaton in each for _ in range(particles)]
    scored, device = language_model.width, language_model.device
    if proposal != "lcd" or length == "at_most" or all(isinstance(a, TokenAutomaton) for a in each):
        # Checks budgets and vocabularies, with one row a prompt. Exact lengths of canonical sequences are not known.
        start_rows(
            each,
            prompts=len(prompts),
            max_new_tokens=max_new_tokens,
            width=scored,
            device=device,
            length=length,
        )
    vocabulary = each[0].vocabulary
    found: Proposal
    if proposal == "p-gcd":
        products = _products(hmm, each, max_new_tokens, length, budget)
        found = ProductRows(
            [product for product in products for _ in range(particles)],
            scored,
            corrected=corrected,
            potentials=potentials,
            defensive=defensive,
        )
    elif proposal == "lcd":
        forbidden = vocabulary.eos_token_ids if length == "exact" else ()
        found = MaskedRows(ConstraintRows(shared, None, scored, device), forbidden)
    elif length == "exact" or any(isinstance(a, TokenAutomaton) and a.is_pushdown for a in each):
        # Distances of stacks are upper bounds, so masks by distances would exclude texts of the target.
        found = MaskedRows(ReachRows(shared, max_new_tokens, scored, device, exact=length == "exact"))
    else:
        found = MaskedRows(ConstraintRows(shared, max_new_tokens, scored, device))
    run = _Run(language_model.start(prompts), found, len(prompts), particles, max_new_tokens, vocabulary)
    for left in range(max_new_tokens, 0, -1):
        going = run.draw(left, generator)
        parents = run.resample(going, resampling, ess_threshold if left > 1 else 0.0, generator)
        if not run.extend(going, parents, left - 1):
            break
    return run.particles()


class _Run:
    """The current particles. Row p · k + j is particle j of prompt p.

    ``live``: the rows that are not finished, in the order of the proposal's rows. ``place``: for each of them, the
    row of the session that it continues.
    """

    def __init__(
        self,
        session: Session,
        proposal: Proposal,
        prompts: int,
        count: int,
        max_new_tokens: int,
        vocabulary: Vocabulary,
    ) -> None:
        self._session, self._proposal, self._count = session, proposal, count
        device, rows = session.logits.device, prompts * count
        self._vocabulary = vocabulary
        self._ends = torch.tensor(list(vocabulary.eos_token_ids), device=device)
        self._tokens = torch.zeros(rows, max_new_tokens, dtype=torch.long, device=device)
        self._lengths = torch.zeros(rows, dtype=torch.long, device=device)
        self._weights = torch.zeros(rows, dtype=torch.float64, device=device)
        self._potentials = torch.zeros_like(self._weights)
        self._live = torch.arange(rows, device=device)
        self._place = self._live // count
        self._effective: list[torch.Tensor] = []
        self._resampled: list[torch.Tensor] = []

    def draw(self, left: int, generator: torch.Generator | None) -> torch.Tensor:
        """Draw a token for every live row, and update weights and potentials.

        Returns which of all rows continue: those that have neither ended nor run out of tokens.
        """
        log_probs = next_log_probs(self._session.logits)
        if len(log_probs) < len(self._place):  # one row a prompt, before the first token
            log_probs = log_probs[self._place]
        scores = self._proposal.weigh(log_probs, left)
        total = scores.logsumexp(1)
        stuck = total == -torch.inf
        if bool(stuck.any()):
            scores[stuck, 0] = total[stuck] = 0.0
        tokens = draw_one((scores - total[:, None]).exp_(), generator)
        factors, potentials = self._proposal.taken(tokens)
        live = self._live
        self._weights[live] += (total - factors).double().masked_fill(stuck, -torch.inf)
        self._potentials[live] = potentials.double().masked_fill(stuck, 0.0)
        self._tokens[live, self._tokens.shape[1] - left] = tokens
        self._lengths[live] += (~stuck).long()
        going = torch.zeros(len(self._weights), dtype=torch.bool, device=tokens.device)
        going[live] = ~(stuck | torch.isin(tokens, self._ends))
        return going

    def resample(
        self, going: torch.Tensor, scheme: Resampling, threshold: float, generator: torch.Generator | None
    ) -> torch.Tensor:
        """The row that each row continues. It is the row itself for prompts that are not resampled.

        These are prompts whose weights are equal enough, or that are finished.
        """
        rows = torch.arange(len(going), device=going.device).reshape(-1, self._count)
        steering = (self._weights + self._potentials).reshape(rows.shape)
        best = steering.amax(1, keepdim=True)
        shares = (steering - best).exp().nan_to_num(0.0)
        effective = shares.sum(1) ** 2 / (shares**2).sum(1).clamp_min(1e-300)
        chosen = (effective < threshold * self._count) & going.reshape(rows.shape).any(1) & (effective > 0)
        self._effective.append(effective)
        self._resampled.append(chosen)
        parents = rows.clone()
        if bool(chosen.any()):
            own = resample(shares[chosen], scheme, generator)
            parents[chosen] = rows[chosen].gather(1, own)
            mean = (shares.mean(1, keepdim=True).log() + best)[chosen]
            given = self._potentials.reshape(rows.shape)[chosen].gather(1, own)
            self._weights.reshape(rows.shape)[chosen] = mean - given
        return parents.reshape(-1)

    def extend(self, going: torch.Tensor, parents: torch.Tensor, left: int) -> bool:
        """Continue every row from its parent, also in the model and the proposal for rows that continue. Returns
        whether any does.
        """
        live = going[parents].nonzero().squeeze(1)
        slots = torch.empty_like(parents)
        slots[self._live] = torch.arange(len(self._live), device=parents.device)
        sources = slots[parents[live]]
        self._tokens, self._lengths = self._tokens[parents], self._lengths[parents]
        self._potentials = self._potentials[parents]
        self._live, places = live, self._place[sources]
        self._place = torch.arange(len(live), device=parents.device)
        if len(live):
            tokens = self._tokens[live, self._tokens.shape[1] - left - 1]
            self._proposal.extend(sources, tokens)
            if left:
                self._session.extend(places, tokens)
        return len(live) > 0

    def particles(self) -> list[Particles]:
        """The particles of each prompt; incomplete ones have weight zero."""
        if len(self._live):
            complete = self._proposal.accepting().to(self._live.device)
            self._weights[self._live[~complete]] = -torch.inf
        found = []
        for prompt, log_weights in enumerate(self._weights.reshape(-1, self._count)):
            begin = prompt * self._count
            rows = [
                self._generation(begin + place, weight) for place, weight in enumerate(log_weights.tolist())
            ]
            found.append(
                Particles(
                    tuple(rows),
                    log_weights,
                    float(log_weights.logsumexp(0)) - math.log(self._count),
                    [float(effective[prompt]) for effective in self._effective],
                    [step for step, chosen in enumerate(self._resampled) if bool(chosen[prompt])],
                )
            )
        return found

    def _generation(self, row: int, log_weight: float) -> Generation:
        tokens = self._tokens[row, : self._lengths[row]].tolist()
        text = self._vocabulary.decode(tokens)
        return Generation(tuple(tokens), text, log_weight > -math.inf, log_weight=log_weight)


def _different(automata: Sequence[AnyAutomaton]) -> Iterable[tuple[int, AnyAutomaton]]:
    return {id(automaton): automaton for automaton in automata}.items()


def _products(
    hmm: Hmm | HmmProduct | Sequence[HmmProduct] | None,
    automata: Sequence[AnyAutomaton],
    max_new_tokens: int,
    length: Length,
    budget: Budget | None,
) -> list[HmmProduct]:
    """A circuit product for each prompt."""
    if hmm is None:
        raise HmmError('proposal="p-gcd" needs hmm: a hidden Markov model, such as distil_hmm makes')
    if isinstance(hmm, Hmm):
        made = {
            number: HmmProduct(hmm, automaton, max_new_tokens, length, budget=budget)
            for number, automaton in _different(automata)
        }
        return [made[id(automaton)] for automaton in automata]
    products = [hmm] * len(automata) if isinstance(hmm, HmmProduct) else list(hmm)
    if len(products) != len(automata) or any(product.hmm is not products[0].hmm for product in products):
        raise HmmError("give one product for each prompt, all of one hidden Markov model")
    for product, automaton in zip(products, automata, strict=True):
        horizon = product.horizon
        if product.automaton is not automaton or (horizon.max_new_tokens, horizon.length) != (
            max_new_tokens,
            length,
        ):
            raise HmmError(
                f"a product was made of {horizon.name} for {horizon.length} "
                f"{counted(horizon.max_new_tokens, 'token')}, and is "
                f"asked about {automaton.source} for {length} {max_new_tokens}"
            )
    return products
