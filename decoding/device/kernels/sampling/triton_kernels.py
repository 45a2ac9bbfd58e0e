# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
"""Triton kernels of the sampled step; ``triton`` starts them, ``plain`` specifies their results.

``mass_kernel``: a program takes a block of columns of a row as [256, 32] with 256 mask words, and writes its
greatest score and the sum of its weights. It reads no column of a word without an allowed token. ``draw_kernel``: a
program takes a row, draws a block by its mass and then the token in it, one group of 32 after the other, and walks
the token's bytes. Weights are integers, so the order of sums does not matter.

With filters the first kernel also writes the greatest key of each group: keys are integers in the order of the
scores. The cut is found by bisection over keys. First it is done among groups, which gives a lower bound (k groups
whose greatest key is at least some key hold k tokens), then among the tokens of the groups above the bound: usually
a few hundred. A mass alone (``top_p`` without ``top_k``) is searched for from the top downwards, in spans that
quadruple.

Cost: one read of the row, and one read of each group above the bound for each bit of a key. Rejected: a sort (reads
the whole row several times), a histogram (masses by atomics give the same result in any order, but serialize if
logits are similar).
"""

from __future__ import annotations

import triton
import triton.language as tl

from tokenfst.decoding.device.kernels.triton_kernels import columns_of
from tokenfst.decoding.device.kernels.triton_stack_kernels import mask_of_row, step_row

NO_KEY = tl.constexpr(-(2**31))
LOWEST = tl.constexpr(-(2**31) + 1)
LARGEST = tl.constexpr(3.4028234663852886e38)
ONE = tl.constexpr(1073741824.0)
FINER = tl.constexpr(2048.0)
LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)
EVERYTHING = tl.constexpr(2**62)
CHUNK = tl.constexpr(1024)


@triton.jit
def _score(at, seen, column, loaded, allowed, numbers, penalized: tl.constexpr):
    """The scores of columns; -inf for columns without weight."""
    score = tl.load(at + column, mask=loaded, other=float("-inf")).to(tl.float32)
    if penalized:
        word = tl.load(seen + column // 32, mask=allowed, other=0)
        by = tl.where(score > 0, tl.load(numbers + 5), tl.load(numbers + 4))
        less = score * by - tl.load(numbers + 6)
        score = tl.where(((word >> (column % 32)) & 1) != 0, less, score)
    return tl.where(allowed & (score > float("-inf")), tl.minimum(score, LARGEST), float("-inf"))


@triton.jit
def _weight(score, top, scale):
    return (tl.exp2((score - top) * scale) * ONE).to(tl.int32)


@triton.jit
def _key(score, shift: tl.constexpr):
    """Integers in the order of scores, equal if the scores are. ``shift``: bits that are 0 in all of them."""
    bits = score.to(tl.int32, bitcast=True)
    size = (bits & 0x7FFFFFFF) >> shift
    return tl.where(score > float("-inf"), tl.where(bits < 0, -size, size), NO_KEY)


@triton.jit(do_not_specialize=["left"])
def mass_kernel(
    logits, stride, width, batch, each, left, states, layers, masks, rows, flips, num_states, vocab_size, words,
    numbers, seen, controls, comb, frames, num_controls, num_slots, num_frames, capacity, tops, masses, model_tops,
    model_masses, keys,
    has_left: tl.constexpr, has_each: tl.constexpr, steps: tl.constexpr, most_flips: tl.constexpr,
    penalized: tl.constexpr, filtered: tl.constexpr, logs: tl.constexpr, shift: tl.constexpr, block: tl.constexpr,
    stacked: tl.constexpr,
):  # fmt: skip
    """The greatest score of a block and its mass.

    With ``logs`` also both over all its logits; with ``filtered`` the greatest key of each group.
    """
    row = tl.program_id(0)
    base, flips_begin, flips_end = mask_of_row(
        row, batch, each, left, states, layers, masks, num_states, controls, comb, frames, num_controls, num_slots,
        num_frames, capacity, has_left, has_each, steps, stacked,
    )  # fmt: skip
    at = logits + row.to(tl.int64) * stride
    seen += row.to(tl.int64) * words
    numbers += row * 8
    scale = tl.load(numbers)
    first = tl.program_id(1) * block
    out = row * tl.num_programs(1) + tl.program_id(1)
    groups: tl.constexpr = block // 32
    if flips_begin < flips_end:
        place = flips_begin + tl.arange(0, most_flips)
        token = tl.load(flips + place, mask=place < flips_end, other=-1)
        here = (token >= first) & (token < first + block)
        listed = _score(at, seen, token, here, here, numbers, penalized)
        top = tl.maximum(tl.max(listed, 0), -LARGEST)
        mass = tl.sum(_weight(listed, top, scale).to(tl.int64), 0)
    else:
        number = tl.program_id(1) * groups + tl.arange(0, groups)
        word = tl.load(rows + base.to(tl.int64) * words + number, mask=number < words, other=0)[:, None]
        column = columns_of(first, groups)
        allowed = (((word >> (column % 32)) & 1) != 0) & (column < vocab_size)
        score = _score(at, seen, column, (word != 0) & (column < width), allowed, numbers, penalized)
        greatest = tl.max(score, 1)
        top = tl.maximum(tl.max(greatest, 0), -LARGEST)
        mass = tl.sum(tl.sum(_weight(score, top, scale).to(tl.int64), 1), 0)
        if filtered:
            of_row = keys + row.to(tl.int64) * tl.num_programs(1) * groups
            tl.store(of_row + number, _key(greatest, shift))
    tl.store(tops + out, top)
    tl.store(masses + out, mass)
    if logs:
        column = columns_of(first, groups)
        inside = column < vocab_size
        score = _score(at, seen, column, inside, inside, numbers, False)
        top = tl.maximum(tl.max(tl.max(score, 1), 0), -LARGEST)
        tl.store(model_tops + out, top)
        tl.store(model_masses + out, tl.sum(tl.sum(_weight(score, top, LOG2_E).to(tl.int64), 1), 0))


@triton.jit
def _shares(tops, masses, scale, blocks, padded: tl.constexpr):
    """The greatest score of a row, and the masses of its blocks relative to it."""
    place = tl.arange(0, padded)
    tops = tl.load(tops + place, mask=place < blocks, other=-LARGEST)
    mass = tl.load(masses + place, mask=place < blocks, other=0)
    top = tl.max(tops, 0)
    return top, (mass.to(tl.float64) * tl.exp2((tops - top) * scale).to(tl.float64) * FINER).to(tl.int64)


@triton.jit
def _fallen(weights, target, count: tl.constexpr):
    """The first of ``count`` places at which the sum of weights exceeds the target, and the sum before it."""
    sums = tl.cumsum(weights, 0)
    place = tl.arange(0, count)
    found = tl.min(tl.where(sums > target, place, count - 1), 0)
    return found, tl.sum(tl.where(place < found, weights, 0), 0)


@triton.jit
def _random(high, low, mass):
    """A number below ``mass``, made from 64 random bits."""
    both = (high.to(tl.uint64) << 32) | low.to(tl.uint64)
    return tl.umulhi(both, mass.to(tl.uint64)).to(tl.int64)


@triton.jit
def _tile(chunk, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top, scale,
          penalized: tl.constexpr, shift: tl.constexpr):  # fmt: skip
    """Columns, scores, keys and weights of a chunk of candidates, from a list of tokens or from groups of 32."""
    slot = chunk * CHUNK + tl.arange(0, CHUNK)
    entry = tl.load(listed + tl.where(is_list, slot, slot // 32), mask=slot < count, other=0)
    column = tl.where(is_list, entry, entry * 32 + slot % 32)
    inside = (slot < count) & (column < vocab_size)
    word = tl.load(row_words + column // 32, mask=inside, other=0)
    allowed = inside & tl.where(is_list, True, ((word >> (column % 32)) & 1) != 0)
    score = _score(at, seen, column, allowed, allowed, numbers, penalized)
    return column, score, _key(score, shift), _weight(score, top, scale).to(tl.int64)


@triton.jit
def _above(key, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top, scale,
           penalized: tl.constexpr, shift: tl.constexpr):  # fmt: skip
    """How many candidates have at least this key, and their mass."""
    number = tl.full((), 0, tl.int64)
    mass = tl.full((), 0, tl.int64)
    for chunk in range(tl.cdiv(count, CHUNK)):
        _, _, keys, weights = _tile(chunk, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top, scale,
                                    penalized, shift)  # fmt: skip
        number += tl.sum((keys >= key).to(tl.int64), 0)
        mass += tl.sum(tl.where(keys >= key, weights, 0), 0)
    return number, mass


@triton.jit
def _middle(low, high):
    return low + ((high.to(tl.int64) - low + 1) >> 1).to(tl.int32)


@triton.jit
def _cut(low, high, least, by_mass: tl.constexpr, count, is_list, listed, at, seen, row_words, vocab_size, numbers,
         top, scale, penalized: tl.constexpr, shift: tl.constexpr):  # fmt: skip
    """The greatest key from ``low`` to ``high`` that the given number or mass of candidates reaches, otherwise
    ``low``.

    Also the mass above it, how many candidates have this key, and the weight of each.
    """
    while low < high:
        middle = _middle(low, high)
        number, mass = _above(middle, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top, scale,
                              penalized, shift)  # fmt: skip
        if by_mass:
            number = mass
        low = tl.where(number >= least, middle, low)
        high = tl.where(number >= least, high, middle - 1)
    number, mass = _above(low, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top, scale,
                          penalized, shift)  # fmt: skip
    greater, above = _above(low + 1, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top, scale,
                            penalized, shift)  # fmt: skip
    tied = number - greater
    return low, greater, above, tied, (mass - above) // tl.maximum(tied, 1)


@triton.jit
def _kept(target, cut, tied, floor, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top, scale,
          penalized: tl.constexpr, shift: tl.constexpr):  # fmt: skip
    """The mass of the kept candidates, and the first token at which the sum of weights exceeds the target."""
    mass = tl.full((), 0, tl.int64)
    ties = tl.full((), 0, tl.int64)
    found = vocab_size
    for chunk in range(tl.cdiv(count, CHUNK)):
        column, score, keys, weights = _tile(chunk, count, is_list, listed, at, seen, row_words, vocab_size, numbers,
                                             top, scale, penalized, shift)  # fmt: skip
        tie = (keys == cut).to(tl.int64)
        rank = ties + tl.cumsum(tie, 0) - tie
        kept = ((keys > cut) | ((tie != 0) & (rank < tied))) & ((score - top) * scale >= floor)
        weights = tl.where(kept, weights, 0)
        sums = mass + tl.cumsum(weights, 0)
        found = tl.minimum(found, tl.min(tl.where((sums > target) & (weights > 0), column, vocab_size), 0))
        mass += tl.sum(weights, 0)
        ties += tl.sum(tie, 0)
    return mass, found


@triton.jit
def _list(group_keys, low, listed, groups: tl.constexpr):
    """Write the groups whose greatest key is at least ``low``, and return how many columns they have."""
    wanted = group_keys >= low
    place = tl.cumsum(wanted.to(tl.int32), 0) - 1
    tl.debug_barrier()  # wait until the list that was there before has been read
    tl.store(listed + place, tl.arange(0, groups), mask=wanted)
    tl.debug_barrier()
    return 32 * tl.sum(wanted.to(tl.int32), 0)


@triton.jit
def _filtered(
    high, low, total, keys, num_groups, is_list, flips, num_flips, listed, at, seen, row_words, vocab_size, numbers,
    top, scale, most_flips: tl.constexpr, groups: tl.constexpr, penalized: tl.constexpr, shift: tl.constexpr,
):  # fmt: skip
    """A token among those that the filters keep, and the mass of these."""
    top_k = tl.load(numbers + 1).to(tl.int64)
    top_p = tl.load(numbers + 2)
    floor = tl.load(numbers + 3)
    best = _key(top, shift)
    # ``min_p`` keeps nothing below this; with top_k and top_p the mass of all of the k is needed.
    lowest = _key(top + tl.maximum(floor * 1.001 - 0.001, -LARGEST) / scale, shift)
    lowest = tl.where((top_k > 0) & (top_p < 1), LOWEST, tl.maximum(lowest, LOWEST))
    bound = lowest
    group_keys = tl.full((groups,), NO_KEY, tl.int32)
    if is_list:
        place = tl.arange(0, most_flips)
        token = tl.load(flips + place, mask=place < num_flips, other=0)
        tl.store(listed + place, token, mask=place < num_flips)
        tl.debug_barrier()
        count = num_flips
    else:
        number = tl.arange(0, groups)
        group_keys = tl.load(keys + number, mask=number < num_groups, other=NO_KEY)
        if top_k > 0:
            above = best
            while bound < above:
                middle = _middle(bound, above)
                enough = tl.sum((group_keys >= middle).to(tl.int64), 0) >= top_k
                bound = tl.where(enough, middle, bound)
                above = tl.where(enough, above, middle - 1)
        count = 0
        if (top_k > 0) | (top_p >= 1):
            count = _list(group_keys, bound, listed, groups)
    mass = total >> 11
    least = tl.maximum(tl.ceil(top_p.to(tl.float64) * mass.to(tl.float64)).to(tl.int64), 1)
    if (is_list == 0) & (top_k == 0) & (top_p < 1):
        span = 0.5
        found = tl.full((), 0, tl.int64)
        bound = best
        searching = True
        while searching:
            bound = tl.where(span < 60, tl.maximum(_key(top - span / scale, shift), lowest), lowest)
            count = _list(group_keys, bound, listed, groups)
            _, found = _above(bound, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top, scale,
                              penalized, shift)  # fmt: skip
            searching = (found < least) & (bound > lowest)
            span *= 4
    cut = bound
    tied = tl.full((), EVERYTHING, tl.int64)
    if top_k > 0:
        cut, greater, above_cut, same, weight = _cut(
            bound, best, top_k, False, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top, scale,
            penalized, shift)  # fmt: skip
        tied = tl.minimum(top_k - greater, same)
        mass = above_cut + tied * weight
        least = tl.maximum(tl.ceil(top_p.to(tl.float64) * mass.to(tl.float64)).to(tl.int64), 1)
    if top_p < 1:
        new, greater, above_cut, same, weight = _cut(
            cut, best, least, True, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top, scale,
            penalized, shift)  # fmt: skip
        needed = (least - above_cut + weight - 1) // tl.maximum(weight, 1)
        tied = tl.where(new > cut, needed, tl.minimum(tied, needed))
        cut = new
    mass, _ = _kept(EVERYTHING, cut, tied, floor, count, is_list, listed, at, seen, row_words, vocab_size, numbers, top,
                    scale, penalized, shift)  # fmt: skip
    _, token = _kept(_random(high, low, mass), cut, tied, floor, count, is_list, listed, at, seen, row_words,
                     vocab_size, numbers, top, scale, penalized, shift)  # fmt: skip
    return token, mass


@triton.jit
def _from_block(
    number, high, low, mass, base_top, scale, is_list, flips, num_flips, at, seen, row_words, words, width, vocab_size,
    numbers, most_flips: tl.constexpr, penalized: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """A token of one block, given the block's greatest score and mass."""
    target = _random(high, low, mass)
    first = number * block
    groups: tl.constexpr = block // 32
    if is_list:
        place = tl.arange(0, most_flips)
        token = tl.load(flips + place, mask=place < num_flips, other=-1)
        here = (token >= first) & (token < first + block)
        listed = _score(at, seen, token, here, here, numbers, penalized)
        found, _ = _fallen(_weight(listed, base_top, scale).to(tl.int64), target, most_flips)
        chosen = tl.load(flips + found)
    else:
        group = number * groups + tl.arange(0, groups)
        word = tl.load(row_words + group, mask=group < words, other=0)[:, None]
        column = columns_of(first, groups)
        allowed = (((word >> (column % 32)) & 1) != 0) & (column < vocab_size)
        score = _score(at, seen, column, (word != 0) & (column < width), allowed, numbers, penalized)
        sums = tl.sum(_weight(score, base_top, scale).to(tl.int64), 1)
        found, before = _fallen(sums, target, groups)
        column = first + 32 * found + tl.arange(0, 32)
        bits = tl.load(row_words + number * groups + found) >> tl.arange(0, 32)
        allowed = ((bits & 1) != 0) & (column < vocab_size)
        score = _score(at, seen, column, allowed, allowed, numbers, penalized)
        inside, _ = _fallen(_weight(score, base_top, scale).to(tl.int64), target - before, 32)
        chosen = first + 32 * found + inside
    return chosen


@triton.jit
def _first_allowed(is_list, flips, num_flips, row_words, words, vocab_size, most_flips: tl.constexpr):
    found = vocab_size
    if is_list:
        place = tl.arange(0, most_flips)
        found = tl.min(tl.load(flips + place, mask=place < num_flips, other=vocab_size), 0)
    else:
        begin = 0
        while (begin < words) & (found == vocab_size):
            number = begin + tl.arange(0, 64)
            word = tl.load(row_words + number, mask=number < words, other=0)[:, None]
            column = columns_of(32 * begin, 64)
            allowed = (((word >> (column % 32)) & 1) != 0) & (column < vocab_size)
            found = tl.min(tl.min(tl.where(allowed, column, vocab_size), 1), 0)
            begin += 64
    return found


@triton.jit(do_not_specialize=["left"])
def draw_kernel(
    logits, stride, width, batch, each, left, states, layers, masks, rows, flips, num_states, vocab_size, words,
    numbers, seen, controls, comb, frames, num_controls, num_slots, num_frames, capacity, tops, masses, model_tops,
    model_masses, keys, listed, actions, pushes,
    table, classes, text, tokens, seeds, draws, forced, chosen, reached, log_probabilities, model_log_probabilities,
    blocks, list_size,
    has_left: tl.constexpr, has_each: tl.constexpr, steps: tl.constexpr, most_flips: tl.constexpr,
    penalized: tl.constexpr, filtered: tl.constexpr, logs: tl.constexpr, walks: tl.constexpr, shift: tl.constexpr,
    padded: tl.constexpr, groups: tl.constexpr, block: tl.constexpr, stacked: tl.constexpr,
):  # fmt: skip
    """Draw the token of a row by the masses of its blocks, and compute the state after it.

    ``stacked``: ``padded`` of ``mask_of_row``.
    """
    row = tl.program_id(0)
    base, begin, end = mask_of_row(
        row, batch, each, left, states, layers, masks, num_states, controls, comb, frames, num_controls, num_slots,
        num_frames, capacity, has_left, has_each, steps, stacked,
    )  # fmt: skip
    at = logits + row.to(tl.int64) * stride
    seen += row.to(tl.int64) * words
    numbers += row * 8
    row_words = rows + base.to(tl.int64) * words
    is_list = begin < end
    flips += begin
    scale = tl.load(numbers)
    top, shares = _shares(tops + row * blocks, masses + row * blocks, scale, blocks, padded)
    total = tl.sum(shares, 0)
    count = tl.load(draws + row)
    r0, r1, r2, r3 = tl.philox(
        tl.load(seeds + row), (count & 0xFFFFFFFF).to(tl.uint32), (count >> 32).to(tl.uint32),
        tl.full((), 0, tl.uint32), tl.full((), 0, tl.uint32),
    )  # fmt: skip
    mass = total
    unit = ONE * FINER
    token = vocab_size
    if total == 0:
        token = _first_allowed(is_list, flips, end - begin, row_words, words, vocab_size, most_flips)
    else:
        cuts = False
        if filtered:
            cuts = (
                (tl.load(numbers + 1) > 0)
                | (tl.load(numbers + 2) < 1)
                | (tl.load(numbers + 3) > float("-inf"))
            )
            if cuts:
                num_groups = blocks * (block // 32)
                token, mass = _filtered(
                    r2, r3, total, keys + row.to(tl.int64) * num_groups, num_groups, is_list, flips, end - begin,
                    listed + row.to(tl.int64) * list_size, at, seen, row_words, vocab_size, numbers, top, scale,
                    most_flips, groups, penalized, shift,
                )  # fmt: skip
                unit = ONE
        if cuts == 0:
            number, _ = _fallen(shares, _random(r0, r1, total), padded)
            token = _from_block(
                number, r2, r3, tl.load(masses + row * blocks + number), tl.load(tops + row * blocks + number), scale,
                is_list, flips, end - begin, at, seen, row_words, words, width, vocab_size, numbers, most_flips,
                penalized, block,
            )  # fmt: skip
    if logs:
        logit = tl.load(at + token).to(tl.float32)
        score = _score(at, seen, token, True, True, numbers, penalized)
        ours = (score - top) * scale * LN_2 - tl.log((mass.to(tl.float64) / unit).to(tl.float32))
        tl.store(log_probabilities + row, tl.where(total == 0, 0.0, ours))
        model_top, model = _shares(
            model_tops + row * blocks, model_masses + row * blocks, LOG2_E, blocks, padded
        )
        of_all = tl.log((tl.sum(model, 0).to(tl.float64) / (ONE * FINER)).to(tl.float32))
        logit = tl.where(logit > LARGEST, LARGEST, logit)
        tl.store(model_log_probabilities + row, logit - model_top - of_all)
    tl.store(draws + row, count + 1)
    tl.store(forced + row, tl.load(forced + row) + (total == 0).to(tl.int64))
    tl.store(chosen + row, token.to(tl.int64))
    if penalized:
        tl.debug_barrier()
        word = seen + token // 32
        tl.store(word, tl.load(word) | (tl.full((), 1, tl.int32) << (token % 32)))
    if walks:
        step_row(
            row, token, batch, reached, states, table, classes, text, tokens, actions, pushes, comb, num_states,
            num_controls, vocab_size, num_slots, capacity, stacked,
        )  # fmt: skip
