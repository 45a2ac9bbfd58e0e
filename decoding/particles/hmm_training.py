"""Training of hidden Markov models on token sequences, and distillation from language models by sampling.

``train_hmm`` is Baum-Welch: each pass runs forward and backward over batches of rows, adds up the expected counts of
initial states, transitions and emissions, and normalizes them. No pass lowers the likelihood (with ``smoothing``, the
likelihood times that of the pseudo-observations). The result of EM depends on its starting point. ``first_hmm`` starts
from a bigram model of token classes, which on text is better than the result of ten passes from random tables
(docs/decoding/probabilistic.md).

Cost of a pass: two products of (tokens, H) with (H, H) and one of (H, tokens) with (tokens, H); memory rows · length ·
H numbers for a batch, besides the counts, which are as large as the model.

Rejected: gradient descent on the logarithms (a learning rate to choose, and no monotonicity); online EM with a decaying
step (useful if samples do not fit into memory; 2 million of 32 tokens are half a gigabyte).

Source: Rabiner, "A tutorial on hidden Markov models" (1989), section III.C; Zhang et al., Ctrl-G (2024), for the
distillation.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any

from tokenfst.common.arguments import checked, whole
from tokenfst.common.renamed import renamed
from tokenfst.common.token_ids import check_width
from tokenfst.decoding.models.language_model import Prompts, as_language_model, next_log_probs, prompt_rows
from tokenfst.decoding.particles.hmm import Hmm, unit_maximum
from tokenfst.decoding.particles.resampling import draw_one
from tokenfst.errors import ArgumentTypeError, HmmError, MissingDependencyError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('hidden Markov models need torch: pip install "tokenfst[torch]"') from error

_NOISE = 0.1
"""The share of noise in the initial tables: EM never makes a zero probability positive."""


@dataclass(frozen=True, slots=True)
class Training:
    """A trained model, and the mean log-likelihood per token (natural) before each pass."""

    hmm: Hmm
    log_likelihoods: list[float]


@dataclass(frozen=True, slots=True)
class Counts:
    """Expected counts of one pass: of initial states (H,), transitions (H, H) and emissions (V, H)."""

    initial: torch.Tensor
    transition: torch.Tensor
    emitted: torch.Tensor


@checked
def train_hmm(
    hmm: Hmm,
    tokens: torch.Tensor,
    lengths: torch.Tensor | None = None,
    *,
    passes: int = 20,
    tolerance: float = 1e-4,
    smoothing: float = 0.1,
    batch_rows: int = 64,
) -> Training:
    """Improve ``hmm`` by expectation maximization on the rows of ``tokens`` (rows, T), on its own device.

    ``lengths``: the number of tokens of each row that are used (default: all). Stops after ``passes``, or when a pass
    raised the mean log-likelihood per token by less than ``tolerance``. ``smoothing``: pseudo-observations per row of
    each table, spread evenly; if positive, every probability stays positive. ``batch_rows``: rows processed together;
    this bounds memory and does not change the result. Raises ``HmmError`` if there are no tokens, or if a row has
    probability zero.
    """
    tokens, lengths = hmm.padded(tokens, lengths)
    total = int(lengths.sum())
    if not total or passes < 1 or batch_rows < 1 or smoothing < 0:
        raise HmmError(
            f"training needs tokens ({total} given), passes ({passes}) and batch_rows ({batch_rows}) of at least one, "
            f"and smoothing ({smoothing}) that is not negative"
        )
    reached: list[float] = []
    for _ in range(passes):
        counts, log_likelihood = _expected(hmm, tokens, lengths, batch_rows)
        reached.append(log_likelihood / total)
        hmm = Hmm(
            _normalized(counts.initial[None], hmm.initial[None], smoothing)[0],
            _normalized(counts.transition, hmm.transition, smoothing),
            _normalized(counts.emitted.T, hmm.emission, smoothing),
            hmm.vocabulary,
        )
        if len(reached) > 1 and reached[-1] - reached[-2] < tolerance:
            break
    return Training(hmm, reached)


def _expected(hmm: Hmm, tokens: torch.Tensor, lengths: torch.Tensor, batch_rows: int) -> tuple[Counts, float]:
    """The expected counts over all rows, and the log-likelihood."""
    emitted = hmm.emitted
    counts = Counts(
        torch.zeros_like(hmm.initial), torch.zeros_like(hmm.transition), torch.zeros_like(emitted)
    )
    log_likelihood = 0.0
    for begin in range(0, len(tokens), batch_rows):
        seen, size = tokens[begin : begin + batch_rows], lengths[begin : begin + batch_rows]
        filtered, gains = hmm.forward(seen, size)
        impossible = (gains == -torch.inf).any(1).nonzero()
        if len(impossible):
            raise HmmError(
                f"row {begin + int(impossible[0])} has probability zero: begin with a model whose probabilities are "
                "positive, such as first_hmm's"
            )
        log_likelihood += float(gains.sum(dtype=torch.float64))
        after = torch.ones_like(filtered[:, 0])
        for column in range(seen.shape[1] - 1, -1, -1):
            counted = (column < size)[:, None]
            posterior = filtered[:, column] * after
            posterior = (posterior / posterior.sum(1, keepdim=True)).where(counted, posterior.new_zeros(()))
            counts.emitted.index_add_(0, seen[:, column], posterior)
            if column == 0:
                counts.initial.add_(posterior.sum(0))
                break
            arriving = unit_maximum(emitted[seen[:, column]])[0] * after
            earlier = arriving @ hmm.transition.T
            weight = (filtered[:, column - 1] * earlier).sum(1, keepdim=True)
            arriving = (arriving / weight).where(counted, arriving.new_zeros(()))
            counts.transition.addmm_(filtered[:, column - 1].T, arriving)
            after = unit_maximum(earlier)[0].where(counted, after.new_ones(()))
    counts.transition.mul_(hmm.transition)
    return counts, log_likelihood


def _normalized(counts: torch.Tensor, before: torch.Tensor, smoothing: float) -> torch.Tensor:
    """Distributions in proportion to the counts and ``smoothing`` observations that are spread evenly.

    A row without any count keeps its distribution ``before``.
    """
    counts = counts + smoothing / counts.shape[1]
    total = counts.sum(1, keepdim=True)
    return torch.where(total > 0, counts / total.where(total > 0, total.new_ones(())), before)


def first_hmm(
    tokens: torch.Tensor,
    lengths: torch.Tensor | None = None,
    *,
    hidden_size: int,
    vocab_size: int,
    generator: torch.Generator | None = None,
    vocabulary: str | None = None,
) -> Hmm:
    """An initial model for the training, made from the same rows.

    Tokens that occur are assigned to hidden states by frequency (several tokens to one state, or several states to one
    token, depending on the numbers). A state emits its tokens in proportion to their frequency, and follows another
    state as often as its tokens follow the other's. A tenth of each table is spread evenly, and the transitions are
    perturbed at random to break symmetries. On the device of ``tokens``. Memory: two tables of (V, H).
    """
    rough = Hmm.random(hidden_size, vocab_size, sharpness=0.0).to(tokens.device)
    tokens, lengths = rough.padded(tokens, lengths)
    counted = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
    frequency = torch.bincount(tokens[counted], minlength=vocab_size).to(torch.float32)
    kinds = frequency.argsort(descending=True, stable=True)[: max(int((frequency > 0).sum()), 1)]
    deal = torch.arange(max(len(kinds), hidden_size), device=tokens.device)
    emitted = frequency.new_zeros(vocab_size, hidden_size)
    emitted[kinds[deal % len(kinds)], deal % hidden_size] = frequency[kinds[deal % len(kinds)]]
    share = emitted / emitted.sum(1, keepdim=True).clamp_min(1.0)
    transition = frequency.new_zeros(hidden_size, hidden_size)
    for column in range(1, tokens.shape[1]):
        rows = counted[:, column]
        transition.addmm_(share[tokens[rows, column - 1]].T, share[tokens[rows, column]])
    blur = torch.rand(hidden_size, hidden_size, generator=generator, device=tokens.device)
    return Hmm(
        _blended(share[tokens[counted[:, 0], 0]].sum(0)[None])[0],
        _blended(transition * (0.5 + blur)),
        _blended(emitted.T),
        vocabulary,
    )


def _blended(counts: torch.Tensor) -> torch.Tensor:
    """The counts as distributions, a share of each of which is spread evenly."""
    even = torch.full_like(counts, 1 / counts.shape[1])
    return (1 - _NOISE) * _normalized(counts, even, 0.0) + _NOISE * even


def draw_samples(
    model: Any,
    prompts: Prompts,
    *,
    count: int,
    max_new_tokens: int,
    vocabulary: Vocabulary,
    generator: torch.Generator | None = None,
    width: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``count`` unconstrained continuations of each prompt, sampled from the model.

    Returns tokens (prompts · count, max_new_tokens) in order of the prompts, and lengths: a row ends after its first
    end token of ``vocabulary``, and the rest is padding. Ids that the model scores beyond the vocabulary are never
    drawn. ``generator``: on the model's device. ``width``: the number of scores, if ``model`` is a function.
    """
    for name, value in (("count", count), ("max_new_tokens", max_new_tokens)):
        whole("draw_samples", name, value, 1)
    language_model = as_language_model(model, width)
    check_width(language_model.width, len(vocabulary))
    session = language_model.start(prompts)
    device = session.logits.device
    rows = torch.arange(len(session.logits), device=device).repeat_interleave(count)
    tokens = torch.full((len(rows), max_new_tokens), vocabulary.eos_token_ids[0], device=device)
    lengths = torch.full((len(rows),), max_new_tokens, device=device)
    ends = torch.tensor(vocabulary.eos_token_ids, device=device)
    live = torch.arange(len(rows), device=device)
    log_probs = next_log_probs(session.logits[:, : len(vocabulary)])[rows]
    parents = rows
    for column in range(max_new_tokens):
        drawn = draw_one(log_probs.exp(), generator)
        tokens[live, column] = drawn
        ended = torch.isin(drawn, ends)
        lengths[live[ended]] = column + 1
        going_on = (~ended).nonzero().squeeze(1)
        live = live[going_on]
        if not len(live) or column == max_new_tokens - 1:
            break
        session.extend(parents[going_on], drawn[going_on])
        parents = torch.arange(len(live), device=device)
        log_probs = next_log_probs(session.logits[:, : len(vocabulary)])
    return tokens, lengths


@renamed(max_tokens="max_new_tokens")
@checked
def distil_hmm(
    model: Any,
    prompts: Prompts,
    *,
    vocabulary: Vocabulary,
    hidden_size: int,
    count: int,
    max_new_tokens: int,
    generator: torch.Generator | None = None,
    batch_prompts: int = 16,
    width: int | None = None,
    **training: Any,
) -> Training:
    """A hidden Markov model of the text that ``model`` writes after the prompts: ``count`` samples of each, then EM.

    Samples of at most ``max_new_tokens`` tokens are drawn by ``draw_samples``, for ``batch_prompts`` prompts at a time.
    ``hidden_size``: the number of hidden states. ``generator``: on the model's device. ``width``: the number of scores,
    if ``model`` is a function. ``training``: options of ``train_hmm``. The result stores its vocabulary, so that using
    it with another one raises an error.
    """
    for name, value in (("hidden_size", hidden_size), ("batch_prompts", batch_prompts)):
        whole("distil_hmm", name, value, 1)
    try:
        signature(train_hmm).bind(None, None, **training)  # before the samples, which may take hours
    except TypeError as error:
        raise ArgumentTypeError(f"distil_hmm: {error}") from None
    every = prompt_rows(prompts)
    parts = [
        draw_samples(
            model,
            every[begin : begin + batch_prompts],
            count=count,
            max_new_tokens=max_new_tokens,
            vocabulary=vocabulary,
            generator=generator,
            width=width,
        )
        for begin in range(0, len(every), batch_prompts)
    ]
    tokens, lengths = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
    first = first_hmm(
        tokens,
        lengths,
        hidden_size=hidden_size,
        vocab_size=len(vocabulary),
        generator=generator,
        vocabulary=vocabulary.fingerprint,
    )
    return train_hmm(first, tokens, lengths, **training)
