"""The masking loop in plain torch: the specification of ``native/device/kernels.hpp`` and ``triton.py``.

Pure functions of tables and tensors, on any device, without synchronization with the host: no function reads the value
of a tensor, and no shape depends on one. So ``torch.compile(fullgraph=True)`` and CUDA graphs accept them. All tokens
are walked for as many steps as the longest token has bytes. Masks are unpacked to booleans. Numbers out of range count
as DEAD.
"""

from __future__ import annotations

from tokenfst.decoding.device.tables.pool import Tables, Tensor, torch
from tokenfst.decoding.device.tables.tables import (
    ACCEPTING,
    AFTER_EMPTY,
    CLASSES,
    DEAD,
    ENDED,
    FIRST,
    FLAGS,
    LAYERS_BEGIN,
    LAYERS_END,
    MASK,
    ROW,
)


def advance(t: Tables, states: Tensor, tokens: Tensor, longest: int) -> Tensor:
    """The states after ``tokens`` (int64, (B,)). ``longest``: bytes of the longest token. O(B * longest)."""
    known = (states > ENDED) & (states < len(t.states)) & (tokens >= 0) & (tokens < len(t.tokens))
    at = t.states[torch.where(known, states, DEAD)]
    token = t.tokens[torch.where(known, tokens, 0)]
    reads, entry = bytes_read(t, at, token, longest)
    row = at[:, ROW]
    for i in range(longest):
        row = torch.where(reads[:, i], t.table[row + entry[:, i]], row)
    reached = state_reached(t, at, token, row)
    return torch.where(known, reached, torch.where(states == ENDED, ENDED, DEAD)).int()


def bytes_read(t: Tables, at: Tensor, token: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """For each row and each place of a token (B, longest): whether the token has a byte there, and the entry of the
    byte's class in a row of the table. ``at``, ``token``: the records of the rows' states and tokens.
    """
    first = (at[:, FLAGS] & FIRST) != 0
    begin = torch.where(first, token[:, 2], token[:, 0])
    length = torch.where(first, token[:, 3], token[:, 1])
    place = torch.arange(longest, dtype=torch.int32, device=at.device)
    reads = place < length[:, None]
    byte = t.bytes[torch.where(reads, begin[:, None] + place, 0)]
    return reads, t.classes[at[:, CLASSES, None] + byte.int()].int() + 1


def state_reached(t: Tables, at: Tensor, token: Tensor, row: Tensor) -> Tensor:
    """The states after tokens whose bytes lead to these rows of the table; tokens without bytes and end tokens, too."""
    length = torch.where((at[:, FLAGS] & FIRST) != 0, token[:, 3], token[:, 1])
    reached = torch.where(length == 0, torch.where(token[:, 1] > 0, at[:, AFTER_EMPTY], DEAD), t.table[row])
    ended = torch.where((at[:, FLAGS] & ACCEPTING) != 0, ENDED, DEAD)
    return torch.where(token[:, 1] < 0, ended, reached)


def mask_of(t: Tables, states: Tensor, left: Tensor | int | None, steps: int) -> Tensor:
    """The number of each row's mask. ``left``: the number of tokens left, ``None`` or negative for any number.
    ``steps``: the number of steps of the binary search among the layers of one state, which is the number of bits of
    the greatest number of layers.
    """
    at = t.states[torch.where((states >= 0) & (states < len(t.states)), states, DEAD)]
    if left is None:
        return at[:, MASK]
    begin, end = at[:, LAYERS_BEGIN], at[:, LAYERS_END]
    low, high = begin, end
    for _ in range(steps):
        middle = torch.where(low < high, (low + high) // 2, 0)
        fits = t.layers[middle, 0] < left
        searching = low < high
        low, high = (
            torch.where(searching & fits, middle + 1, low),
            torch.where(searching & ~fits, middle, high),
        )
    found = torch.where(low > begin, t.layers[torch.where(low > begin, low - 1, 0), 1], 0)
    if isinstance(left, int):
        return found if left >= 0 else at[:, MASK]
    return torch.where(left < 0, at[:, MASK], found)


def allowed(t: Tables, masks: Tensor, most_flips: int) -> Tensor:
    """The masks as booleans, (B, V). ``most_flips``: the longest list of flips."""
    of = t.masks[masks]
    words = t.rows[of[:, 0]]
    shifts = torch.arange(32, dtype=torch.int32, device=masks.device)
    bits = ((words[:, :, None] >> shifts) & 1).flatten(1).bool()
    place = of[:, 1, None] + torch.arange(most_flips, dtype=torch.int32, device=masks.device)
    valid = place < of[:, 2, None]
    # Positions after the end of a list all set one additional column, which is cut off.
    spare = bits.shape[1]
    bits = torch.nn.functional.pad(bits, (0, 1))
    columns = torch.where(valid, t.flips[torch.where(valid, place, 0)], spare).long()
    flipped = ~bits.gather(1, columns)
    return bits.scatter(1, columns, flipped)[:, : len(t.tokens)]


def packed(permitted: Tensor) -> Tensor:
    """Masks as int32 words, (B, ceil(V / 32)): token t is bit t mod 32 of word t div 32."""
    bits = torch.nn.functional.pad(permitted, (0, -permitted.shape[1] % 32)).unflatten(1, (-1, 32))
    place = torch.arange(32, dtype=torch.int32, device=permitted.device)
    return torch.where(bits, torch.ones_like(place) << place, 0).sum(-1, dtype=torch.int32)


def mask_logits_(logits: Tensor, permitted: Tensor) -> Tensor:
    """Forbidden logits, and those beyond the vocabulary, become -inf in place."""
    vocab_size = permitted.shape[1]
    logits[:, :vocab_size].masked_fill_(~permitted, float("-inf"))
    logits[:, vocab_size:] = float("-inf")
    return logits


def greedy(logits: Tensor, permitted: Tensor) -> Tensor:
    """The first greatest allowed logit of each row (a NaN is the greatest), int64 (B,)."""
    scores = logits[:, : permitted.shape[1]].masked_fill(~permitted, float("-inf"))
    return _permitted(scores.argmax(1), permitted)


def sample(
    logits: Tensor,
    permitted: Tensor,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    generator: torch.Generator | None,
) -> Tensor:
    """A token of each row, drawn with the probabilities of its allowed logits, int64 (B,).

    In the order of transformers: temperature; the ``top_k`` greatest logits (more if the last are equal); the smallest
    set of these whose probability is at least ``top_p``. NaN has no probability; if no logit is finite, the greatest
    are equally likely. Each token gets an exponential random variable with its probability as rate, and the token with
    the least variable is drawn. This needs no synchronization with the host.
    """
    scores = logits[:, : permitted.shape[1]].float()
    scores = torch.where(permitted & ~scores.isnan(), scores, float("-inf"))
    greatest = scores.amax(1, keepdim=True)
    level = torch.where(permitted & (scores == greatest), 0.0, float("-inf"))
    scores = torch.where(greatest.isfinite(), scores / temperature, level)
    if top_k is not None and top_k < scores.shape[1]:
        least = scores.topk(top_k, dim=1).values[:, -1:]
        scores = torch.where(scores < least, float("-inf"), scores)
    if top_p is not None and top_p < 1.0:
        ordered, order = scores.sort(dim=1, descending=True, stable=True)
        chances = ordered.softmax(1)
        kept = (chances.cumsum(1) - chances) < top_p
        kept[:, 0] = True
        scores = torch.where(torch.zeros_like(kept).scatter(1, order, kept), scores, float("-inf"))
    chances = scores.softmax(1)
    waits = torch.empty_like(chances).exponential_(1.0, generator=generator).clamp_min_(1e-30)
    return _permitted((chances / waits).argmax(1), permitted)


def _permitted(tokens: Tensor, permitted: Tensor) -> Tensor:
    """The tokens if they are allowed; otherwise the first allowed token, for rows in which no allowed logit is above
    -inf.
    """
    fits = permitted.gather(1, tokens[:, None])[:, 0]
    return torch.where(fits, tokens, permitted.byte().argmax(1))
