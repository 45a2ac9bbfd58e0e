"""Particles: the cost of sequential Monte Carlo beside plain samples, and of a step of the circuit product.

The model is transformers' GPT-2 with random weights over 8,192 tokens (single bytes, and the first tokens of Tekken).
So the masks are realistic, and no download is needed. Every run begins with the same seed. All texts are lower-case
words. The end token is allowed at nearly every step and almost never drawn, so every run has all of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

from benchmarks.measuring.libraries import World
from benchmarks.measuring.measure import Figure, figure, sample
from tokenfst import Vocabulary, compile, regex

TOKENS, SIZE, PARTICLES, HIDDEN = 48, 8_192, 16, 1_024
PATTERN = "[a-z]+( [a-z]+)*[.]?"
OVERHEAD = 1.3
"""The target for the time of SMC, as a multiple of the time of plain samples."""


def small_vocabulary(world: World) -> Vocabulary:
    """A vocabulary of every single byte, the first tokens of Tekken that are longer, and an end token."""
    single = [bytes([byte]) for byte in range(256)]
    longer = [token for token in world.vocabulary.tokens if len(token) > 1]
    return Vocabulary([*single, *longer[: SIZE - 257], b""], SIZE - 1)


def small_model() -> Any:
    """GPT-2 with 4 layers of 256: 5 million parameters."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    shape = {"n_embd": 256, "n_layer": 4, "n_head": 4, "n_positions": 2 * TOKENS}
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=SIZE, eos_token_id=SIZE - 1, bos_token_id=SIZE - 1, **shape)
    ).eval()


def particles(world: World) -> Iterator[Figure]:
    """SMC with every proposal beside plain samples; one step of the circuit product for 4, 16 and 128 rows."""
    import torch

    from tokenfst.decoding.particles.hmm import Hmm
    from tokenfst.decoding.particles.hmm_product import HmmProduct
    from tokenfst.decoding.particles.hmm_training import draw_samples
    from tokenfst.decoding.particles.smc import smc

    torch.set_num_threads(1)
    vocabulary, model = small_vocabulary(world), small_model()
    automaton = compile(regex(PATTERN), vocabulary)
    hmm = Hmm.random(HIDDEN, SIZE, generator=torch.Generator().manual_seed(1))
    product = HmmProduct(hmm, automaton, TOKENS, "exact")

    def seeded() -> torch.Generator:
        return torch.Generator().manual_seed(2)

    def run(**options: Any) -> Any:
        return smc(
            model,
            [[97]],
            automaton,
            particles=PARTICLES,
            max_new_tokens=TOKENS,
            generator=seeded(),
            **options,
        )

    def plain() -> Any:
        return draw_samples(
            model, [[97]], count=PARTICLES, max_new_tokens=TOKENS, vocabulary=vocabulary, generator=seeded()
        )

    calls: dict[str, Callable[[], Any]] = {
        "SMC, GCD": run,
        "SMC, GCD, resampled whenever weights differ": partial(run, ess_threshold=1.0),
        "SMC, LCD": partial(run, proposal="lcd"),
        "SMC, GCD of exact length": partial(run, length="exact"),
        f"SMC, P-GCD of exact length, H = {HIDDEN:,}": partial(
            run, proposal="p-gcd", hmm=product, length="exact"
        ),
        "plain samples of the same model": plain,
    }
    # They take turns, so that other work on the computer affects all alike.
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(7):
        for name, call in calls.items():
            seconds[name] += sample(call, runs=1, warm_up=not seconds[name])
    usual = median(seconds["plain samples of the same model"])
    for name, call in calls.items():
        note = ""
        if call is not plain:
            found = call()[0]
            length = sum(map(len, found.tokens)) / PARTICLES
            note = f"{length:.0f} tokens a sequence, resampled after {len(found.resampled)} of them"
        yield figure(name, "time", seconds[name], note=note)
        if call is not plain:
            target = OVERHEAD if call is run else None
            ratio = median(seconds[name]) / usual
            yield Figure(name, "of plain samples", ratio, unit="x", target=target)

    what = f"one step of P-GCD, H = {HIDDEN:,}, V = {SIZE:,}"
    for rows in (4, 16, 128):
        belief, states = hmm.start(rows), torch.full((rows,), product.start)
        words = torch.tensor([97 + row % 26 for row in range(rows)])
        belief, states = hmm.observe(belief, words), product.next_states(states, words)

        def step(belief: Any = belief, states: Any = states, words: Any = words) -> None:
            product.log_weights(belief, states, TOKENS - 1)
            hmm.observe(belief, words)
            product.next_states(states, words)

        yield figure(f"{what}, {rows} rows", "time", sample(step, runs=15))
    made = sample(lambda: HmmProduct(hmm, automaton, TOKENS, "exact"), runs=3)
    yield figure(f"the circuit product, {TOKENS} tokens, H = {HIDDEN:,}", "time", made)
