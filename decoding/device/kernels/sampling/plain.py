"""One token of each row drawn by its own random numbers, in plain torch: the specification of
``triton_kernels``.

A row's allowed logits get weights: ``2**30 * exp2((logit - greatest) * scale)``, cut to an integer. All that follows
is arithmetic of integers, whose sums do not depend on their order: so a draw is the same in any batch, by any number
of threads. ``exp2`` is the only function that devices round differently.

Without filters the draw has two levels, each exact: a block of ``BLOCK`` columns by its mass, then the token in it. A
block's weights are relative to its own greatest logit, so a token loses less than 2**-30 of the probability of the
block's greatest token. With filters the weights are relative to the row's greatest logit. What filters keep is a prefix
of the order "greatest first, then least number": the first ``top_k``, then the fewest of these whose mass is ``top_p``
of theirs, then those whose weight is at least ``min_p`` of the greatest.

NaN and -inf have no weight. If a row has allowed logits of +inf, these tokens are equally likely. A row without any
weight takes its first allowed token, and is *forced*.

Random numbers: Philox 4x32-10 with the row's seed as its key and the number of the draw as its counter (Salmon et al.,
Parallel random numbers: as easy as 1, 2, 3; 2011). Cost: O(V) a row, and a sort with filters; Triton sorts nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from tokenfst.decoding.device.tables.pool import Tensor, torch

SCALE, TOP_K, TOP_P, FLOOR, REPETITION, INVERSE, PRESENCE, NUMBERS = range(8)
"""Columns of a row's numbers, float32: log2(e) / temperature; ``top_k`` (0: all); ``top_p`` (1: all); log2 of
``min_p``; the repetition penalty, by which negative logits of seen tokens are multiplied; its inverse, for other
logits; the presence penalty, which is then subtracted.
"""
BLOCK = 8192
ONE = 2**30
"""The weight of the greatest logit."""
FINER = 2**11
"""The ratio of the resolutions of a row's mass and of its weights."""
LARGEST = 3.4028234663852886e38
LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453
_LOW = 0xFFFFFFFF


class Rows(NamedTuple):
    """The parameters of each row: ``numbers`` float32 (B, 8), and ``seeds``, ``draws`` and ``forced`` int64 (B,).

    If there are penalties, also ``seen`` int32 (B, words). ``draws``, ``forced`` and ``seen`` are updated.
    """

    numbers: Tensor
    seeds: Tensor
    draws: Tensor
    forced: Tensor
    seen: Tensor | None


class Draws(NamedTuple):
    """``tokens`` int64 (B,). ``forced`` bool (B,): no allowed logit had a weight. ``log_probabilities`` float32 (B,):
    of the tokens under the sampling distribution. ``model_log_probabilities`` float32 (B,): by the logits alone. Both
    are None unless requested.
    """

    tokens: Tensor
    forced: Tensor
    log_probabilities: Tensor | None
    model_log_probabilities: Tensor | None


def sample(
    logits: Tensor,
    permitted: Tensor,
    numbers: Tensor,
    seeds: Tensor,
    draws: Tensor,
    seen: Tensor | None,
    *,
    filtered: bool,
    logs: bool,
) -> Draws:
    """Draw for each row. ``permitted``: bool (B, V). ``numbers``: float32 (B, 8), the columns above. ``seeds``,
    ``draws``: int64 (B,). ``seen``: int32 (B, words), tokens that penalties are for. ``filtered``: some row has
    ``top_k``, ``top_p`` or ``min_p``.
    """
    raw = logits[:, : permitted.shape[1]].float()
    scores = _counted(raw if seen is None else _penalized(raw, seen, numbers), permitted)
    scale = numbers[:, SCALE, None]
    tops, masses, weights = _blocks(scores, scale)
    top, shares = _shares(tops, masses, scale)
    total = shares.sum(1, keepdim=True)
    random = philox(seeds, draws)
    block, size = _drawn(shares, total, random[:, :1]), weights.shape[2]
    inside = weights.gather(1, block[:, :, None].expand(-1, -1, size))[:, 0]
    tokens = block * size + _drawn(inside, masses.gather(1, block), random[:, 1:])
    logarithm = (total.double() / (ONE * FINER)).log().float()
    if filtered:
        kept = _kept(scores, top, total, numbers)
        mass = kept.sum(1, keepdim=True)
        is_filtered = (
            (numbers[:, TOP_K] > 0) | (numbers[:, TOP_P] < 1) | (numbers[:, FLOOR] > float("-inf"))
        )[:, None]
        tokens = torch.where(is_filtered, _drawn(kept, mass, random[:, 1:]), tokens)
        logarithm = torch.where(is_filtered, (mass.double() / ONE).log().float(), logarithm)
    forced = total == 0
    tokens = torch.where(forced, permitted.byte().argmax(1, keepdim=True), tokens)
    if not logs:
        return Draws(tokens[:, 0], forced[:, 0], None, None)
    ours = (scores.gather(1, tokens) - top) * scale * LN_2 - logarithm
    return Draws(
        tokens[:, 0],
        forced[:, 0],
        torch.where(forced, 0.0, ours)[:, 0],
        _model_log_probabilities(raw, tokens)[:, 0],
    )


def see_(seen: Tensor, tokens: Tensor) -> None:
    """Mark tokens, int64 (B, n), as seen: int32 (B, words). Numbers out of range are ignored."""
    bits = seen.shape[1] * 32
    places = torch.where((tokens >= 0) & (tokens < bits), tokens, bits)
    fresh = torch.zeros((len(seen), bits + 1), dtype=torch.bool, device=seen.device).scatter_(1, places, True)
    fresh = fresh[:, :bits]
    place = torch.arange(32, dtype=torch.int32, device=seen.device)
    words = torch.where(fresh.unflatten(1, (-1, 32)), torch.ones_like(place) << place, 0)
    seen |= words.sum(-1, dtype=torch.int32)


def philox(seeds: Tensor, counters: Tensor) -> Tensor:
    """Two random numbers of 64 bits for each row, int64 (B, 2)."""
    a, b = counters & _LOW, (counters >> 32) & _LOW
    c, d = torch.zeros_like(a), torch.zeros_like(a)
    key, other = seeds & _LOW, (seeds >> 32) & _LOW
    for _ in range(10):
        first, second = _product(a, 0xD2511F53), _product(c, 0xCD9E8D57)
        a, b, c, d = second[0] ^ b ^ key, second[1], first[0] ^ d ^ other, first[1]
        key, other = (key + 0x9E3779B9) & _LOW, (other + 0xBB67AE85) & _LOW
    return torch.stack([(a << 32) | b, (c << 32) | d], 1)


def high_product(a: Tensor, b: Tensor) -> Tensor:
    """The upper 64 bits of a product: ``a`` is any unsigned number of 64 bits, ``b`` is from 0 to 2**62."""
    a0, a1, b0, b1 = a & _LOW, (a >> 32) & _LOW, b & _LOW, b >> 32
    low, middle, other = (a0 * b0 >> 32) & _LOW, a1 * b0, a0 * b1
    carry = low + (middle & _LOW) + (other & _LOW)
    return a1 * b1 + ((middle >> 32) & _LOW) + ((other >> 32) & _LOW) + (carry >> 32)


def _product(a: Tensor, b: int) -> tuple[Tensor, Tensor]:
    """The upper and the lower 32 bits of a product of 32 bits each."""
    product = a * b  # wraps around; the 64 bits are right
    return (product >> 32) & _LOW, product & _LOW


def _penalized(raw: Tensor, seen: Tensor, numbers: Tensor) -> Tensor:
    place = torch.arange(32, dtype=torch.int32, device=raw.device)
    was = ((seen[:, :, None] >> place) & 1).flatten(1)[:, : raw.shape[1]].bool()
    by = torch.where(raw > 0, numbers[:, INVERSE, None], numbers[:, REPETITION, None])
    return torch.where(was, raw * by - numbers[:, PRESENCE, None], raw)


def _counted(scores: Tensor, permitted: Tensor) -> Tensor:
    """Scores with weight; -inf for others."""
    return torch.where(permitted & (scores > float("-inf")), scores.clamp_max(LARGEST), float("-inf"))


def _weights(scores: Tensor, top: Tensor, scale: Tensor) -> Tensor:
    return (torch.exp2((scores - top) * scale) * ONE).long()


def _blocks(scores: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each block the greatest score, the mass, and the weights in it: (B, blocks), (B, blocks), (B, blocks,
    columns).
    """
    size = min(BLOCK, scores.shape[1])
    parts = torch.nn.functional.pad(scores, (0, -scores.shape[1] % size), value=float("-inf"))
    parts = parts.unflatten(1, (-1, size))
    tops = parts.amax(2).clamp_min(-LARGEST)
    weights = _weights(parts, tops[:, :, None], scale[:, :, None])
    return tops, weights.sum(2), weights


def _shares(tops: Tensor, masses: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """The greatest score of each row, (B, 1), and the masses of its blocks relative to that, (B, blocks)."""
    top = tops.amax(1, keepdim=True)
    return top, (masses.double() * torch.exp2((tops - top) * scale).double() * FINER).long()


def _drawn(weights: Tensor, mass: Tensor, random: Tensor) -> Tensor:
    """The position that a random number selects, (B, 1); any position if there is no mass."""
    after = weights.cumsum(1) <= high_product(random, mass)
    return after.sum(1, keepdim=True).clamp_max(weights.shape[1] - 1)


def _kept(scores: Tensor, top: Tensor, total: Tensor, numbers: Tensor) -> Tensor:
    """The weights that the filters keep, int64 (B, V); 0 for others."""
    scale, top_k, top_p = numbers[:, SCALE, None], numbers[:, TOP_K, None], numbers[:, TOP_P, None]
    weights = _weights(scores, top, scale)
    order = scores.sort(dim=1, descending=True, stable=True).indices
    place = torch.arange(scores.shape[1], device=scores.device)
    ordered = torch.where((place < top_k) | (top_k == 0), weights.gather(1, order), 0)
    mass = torch.where(top_k > 0, ordered.sum(1, keepdim=True), total // FINER)
    least = (top_p.double() * mass.double()).ceil().long().clamp_min(1)
    before = ordered.cumsum(1) - ordered
    ordered = torch.where((before < least) | (top_p >= 1), ordered, 0)
    high_enough = (scores - top) * scale >= numbers[:, FLOOR, None]
    return torch.where(high_enough, torch.zeros_like(weights).scatter(1, order, ordered), 0)


def _model_log_probabilities(raw: Tensor, tokens: Tensor) -> Tensor:
    """The log-probabilities of tokens, int64 (B, 1), among the whole vocabulary at temperature 1 without penalties."""
    scale = torch.full_like(raw[:, :1], LOG2_E)
    tops, masses, _ = _blocks(_counted(raw, torch.ones_like(raw, dtype=torch.bool)), scale)
    top, shares = _shares(tops, masses, scale)
    logarithm = (shares.sum(1, keepdim=True).double() / (ONE * FINER)).log().float()
    return raw.gather(1, tokens).clamp_max(LARGEST) - top - logarithm
