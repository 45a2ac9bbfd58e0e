"""Sampling under globally constrained decoding: every text is complete, with at most or exactly n tokens.

Each token is drawn from the model's distribution, restricted to the tokens that the mask allows and renormalized: q(x_t
| x_<t) ∝ p(x_t | x_<t) · m_t(x_t). This is not a sample from the model's distribution given the constraint, because the
renormalization is local. The incremental weight that corrects it is the allowed mass, Σ_x p(x) · m_t(x), and
``log_weight`` is the sum of its logarithms: log p - log q. Weighted by it, samples give unbiased estimates of the
unnormalized posterior; ``smc`` also resamples along the way.

Cost of a step: one call of the model over all unfinished rows, a softmax, a mask, a draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tokenfst.common.arguments import checked_but
from tokenfst.common.renamed import old_names, renamed
from tokenfst.decoding.models.language_model import Prompts, as_language_model, next_log_probs
from tokenfst.decoding.rows.generations import Generation
from tokenfst.decoding.rows.reach_rows import Length, start_rows
from tokenfst.decoding.rows.rows import AnyAutomaton, Rows
from tokenfst.errors import DecodingError, LogitsError, MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


@renamed(max_length="max_new_tokens")
@checked_but("automata")
def exact_length_sample(
    model: Any,
    prompts: Prompts,
    automata: AnyAutomaton | Sequence[AnyAutomaton] | Rows,
    *,
    max_new_tokens: int,
    length: Length = "at_most",
    count_end: bool = False,
    generator: torch.Generator | None = None,
    width: int | None = None,
) -> list[Generation]:
    """A sample for each prompt, with ``log_prob`` and ``log_weight``. Repeat a prompt for several samples.

    Arguments and errors are those of ``automata_beam_search``. ``generator``: the random generator, on the model's
    device. Raises ``LogitsError`` if the model gives every allowed token probability zero.
    """
    if max_new_tokens < 0:
        raise DecodingError(f"max_new_tokens={max_new_tokens} is out of range: it must not be negative")
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
    log_prob = torch.zeros(len(prompts), dtype=torch.float32, device=scorer.device)
    log_weight = log_prob.clone()
    session = scorer.start(prompts) if max_new_tokens else None
    identity = torch.arange(len(prompts), device=scorer.device)
    for step in range(max_new_tokens if session is not None else 0):
        going = ~rows.finished
        if session is None or not bool(going.any()):
            break
        log_probs = rows.mask_(next_log_probs(session.logits))
        passed = log_probs.logsumexp(1)
        if bool((going & passed.isneginf()).any()):
            row = int((going & passed.isneginf()).nonzero()[0, 0])
            raise LogitsError(
                f"the model gives every token that row {row} may take the probability 0: none can be drawn"
            )
        shares = (log_probs - passed.unsqueeze(1)).exp().nan_to_num_(0.0)
        shares[~going, rows.vocabulary.eos_token_ids[0]] = 1.0
        tokens = torch.multinomial(shares, 1, generator=generator).squeeze(1)
        log_prob += log_probs.gather(1, tokens.unsqueeze(1)).squeeze(1).where(going, 0.0)
        log_weight += passed.where(going, 0.0)
        rows.extend(identity, tokens)
        if step + 1 < max_new_tokens:
            session.extend(identity, tokens)
    return [
        Generation(tuple(taken := rows.tokens(row)), rows.vocabulary.decode(taken), log_prob=p, log_weight=w)
        for row, (p, w) in enumerate(zip(log_prob.tolist(), log_weight.tolist(), strict=True))
    ]


if not TYPE_CHECKING:
    __getattr__ = old_names(__name__, {"gcd_sample": "exact_length_sample", "Sample": "Generation"})
