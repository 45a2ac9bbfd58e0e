"""The masking loop as programs call it, on a GPU: calls from Python, sampled steps, masks composed, whole
generations.

``python benchmarks/run.py --only device`` (``make bench-gpu``), after the figures of ``masking_loop``. Calls from
Python are timed one after the other, without a CUDA graph, so the figures include the time to start them. Sampled
steps are those of a ``DeviceSampler`` in a CUDA graph. Generations are calls of transformers' ``generate`` with a
Llama of 1.5 billion random parameters, by the clock: unconstrained, with the logits processor, and with
``DeviceGenerate``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import tokenfst
from benchmarks.device import masking_loop
from benchmarks.device.masking_loop import gpu_seconds, resident, states_in
from benchmarks.measuring import patterns
from benchmarks.measuring.libraries import World, version
from benchmarks.measuring.measure import OURS, Figure, figure
from tokenfst.common.plurals import counted

ROWS = 64
CALLED = {"mask_logits_": 10e-6, "advance": 8e-6, "greedy step": 20e-6, "sampled step": 30e-6}
"""The target in seconds for one call from Python over ``ROWS`` rows."""
SAMPLED = {64: 12e-6, 1024: 105e-6, 4096: 400e-6}
"""For each batch, by its number of rows, the target in seconds for a sampled step in a CUDA graph. With filters the
target is ``FILTERED`` times as high."""
FILTERED = 1.5
FILTERS = {"top_k": 50, "top_p": 0.95, "min_p": 0.02}
COMPOSED = 100e-6
"""The target in seconds for 64 different masks that are composed on the device."""
SHARE = 1.02
"""The target for a constrained step of a generation, as a multiple of the time of an unconstrained step."""
SIZES = {
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
PROMPT, NEW = 32, 64
"""The number of tokens of a prompt, and of the generated text."""


def device(world: World) -> Iterator[Figure]:
    """All figures of the masking loop that this computer can measure."""
    yield from masking_loop.device(world)
    if version("torch") is None:
        return
    import torch

    if torch.cuda.is_available():
        yield from called(world, torch)
        yield from sampled(world, torch)
        yield from composed(world, torch)
        yield from generations(world, torch)


def called(world: World, torch: Any, where: str = "cuda") -> Iterator[Figure]:
    """Calls from Python, one after the other, over ``ROWS`` rows inside of a JSON string."""
    automaton = resident(world, where)
    states, tokens = states_in(world, automaton, torch, "strings", ROWS)
    logits = torch.randn((ROWS, len(world.vocabulary)), device=where, dtype=torch.bfloat16)
    sampler = tokenfst.DeviceSampler(automaton, ROWS)
    masked = logits.clone()
    calls: dict[str, dict[str, Callable[[], object]]] = {
        "mask_logits_": {OURS: partial(automaton.mask_logits_, masked, states)},
        "advance": {OURS: partial(automaton.advance, states, tokens)},
        "greedy step": {
            OURS: partial(automaton.step, logits, states),
            "unconstrained (torch argmax)": partial(logits.argmax, 1),
        },
        "sampled step": {
            f"{OURS}, DeviceSampler": partial(sampler.step, logits, states),
            f"{OURS}, torch's generator": partial(automaton.step, logits, states, temperature=1.0),
            "unconstrained (torch softmax, multinomial)": lambda: logits.float().softmax(1).multinomial(1),
        },
    }
    for name, ways in calls.items():
        for place, (who, call) in enumerate(ways.items()):
            seconds = gpu_seconds(torch, call, graph=False)
            target = None if place else CALLED[name]
            yield figure(f"{name}, {ROWS} rows, called from Python", who, seconds, target=target)


def sampled(
    world: World, torch: Any, where: str = "cuda", batches: Sequence[int] = tuple(SAMPLED)
) -> Iterator[Figure]:
    """Steps at temperature 1 in a CUDA graph, inside of a JSON string."""
    automaton = resident(world, where)
    for rows in batches:
        logits = torch.randn((rows, len(world.vocabulary)), device=where, dtype=torch.bfloat16)
        states, _ = states_in(world, automaton, torch, "strings", rows)
        target = SAMPLED.get(rows)
        for name, options, factor in (("", {}, 1.0), (f", {_named(FILTERS)}", FILTERS, FILTERED)):
            sampler = tokenfst.DeviceSampler(automaton, rows, **options)
            seconds = gpu_seconds(torch, partial(sampler.step, logits, states))
            what = f"sampled step in a CUDA graph, {rows:,} rows{name}"
            yield figure(what, OURS, seconds, target=target and factor * target)


def composed(world: World, torch: Any, where: str = "cuda") -> Iterator[Figure]:
    """The masks of different states of an object, composed in one call; none of them is read from a table."""
    automaton = resident(world, where, token_limits=False)
    states = states_in(world, automaton, torch, "objects", 64 * ROWS)[0].unique()[:ROWS].contiguous()
    what = f"{len(states)} different masks composed at once"
    yield figure(what, OURS, gpu_seconds(torch, partial(automaton.compose, states)), target=COMPOSED)


def generations(
    world: World, torch: Any, where: str = "cuda", sizes: dict[str, int] | None = None, new: int = NEW
) -> Iterator[Figure]:
    """A step of transformers' ``generate`` inside of a JSON string. Unconstrained texts may not take the end token."""
    if version("transformers") is None:
        return
    import transformers

    vocabulary, end = world.vocabulary, world.vocabulary.eos_token_ids[0]
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        max_position_embeddings=4 * (PROMPT + NEW),
        bos_token_id=1,
        eos_token_id=end,
        pad_token_id=end,
        **(SIZES if sizes is None else sizes),
    )
    torch.manual_seed(0)
    with torch.device(where):
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16).eval()
    lazy, whole = (tokenfst.compile(tokenfst.regex(patterns.STRING), vocabulary) for _ in range(2))
    on_device = tokenfst.DeviceAutomaton(whole, where, token_limits=False)

    def no_end(ids: Any, scores: Any) -> Any:
        scores[:, end] = -torch.inf
        return scores

    ways: dict[str, Callable[[], dict[str, Any]]] = {
        "unconstrained": lambda: {"logits_processor": [no_end]},
        f"{OURS}, ConstraintLogitsProcessor": lambda: {
            "logits_processor": [tokenfst.ConstraintLogitsProcessor(lazy)]
        },
        f"{OURS}, DeviceGenerate": lambda: {"custom_generate": tokenfst.DeviceGenerate(on_device)},
    }
    for rows in (1, ROWS):
        ids = torch.full((rows, PROMPT), 7, device=where)
        for cache, options in (("dynamic", {}), ("static, compiled", {"cache_implementation": "static"})):
            base = None
            for who, given in ways.items():

                def run(ids: Any = ids, options: Any = options, given: Any = given) -> float:
                    """The seconds of one step, by the clock."""
                    torch.manual_seed(0)
                    torch.cuda.synchronize()
                    begun = perf_counter()
                    with torch.inference_mode():
                        made = model.generate(
                            ids,
                            attention_mask=torch.ones_like(ids),
                            max_new_tokens=new,
                            do_sample=True,
                            top_k=None,
                            **options,
                            **given(),
                        )
                    torch.cuda.synchronize()
                    return (perf_counter() - begun) / (made.shape[1] - PROMPT)

                seconds = [run() for _ in range(4)][1:]
                what = f"a step of transformers' generate, {counted(rows, 'row')}, {cache} cache"
                found = figure(what, who, seconds, target=base and SHARE * base)
                base = base or found.median
                yield found


def _named(options: dict[str, float]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())
