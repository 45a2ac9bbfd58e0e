"""The masking loop on a device: on a GPU, timed by CUDA events; without a GPU, on the CPU through Python.

``python benchmarks/run.py --only device``. Logits are as wide as Tekken's vocabulary. On a GPU it measures masks and
advances for batches of 1 to 4,096 rows, in one CUDA graph each. Beside them it measures xgrammar's way (masks filled
on the CPU, copied, applied by its kernel), xgrammar's kernel alone, and a lower bound, which is the time to write as
many bytes. Then come whole steps of a small model, with and without a constraint, in which any wait for the device is
an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import tokenfst
from benchmarks.measuring import patterns
from benchmarks.measuring.libraries import World, version
from benchmarks.measuring.measure import OURS, Figure, figure, sample

BATCHES = (1, 64, 1024, 4096)
CALLS = 20
"""The number of calls in one CUDA graph."""


def device(world: World) -> Iterator[Figure]:
    """All figures that this computer can measure."""
    if version("torch") is None:
        yield Figure("masking loop on a device", OURS, None, note="needs torch, which is not installed")
        return
    import torch

    torch.set_num_threads(1)
    if torch.cuda.is_available():
        yield from on_gpu(world, torch)
        yield from decoding(world, torch)
    else:
        yield from on_cpu(world, torch)
    yield from layouts(world, torch)
    yield from composition(world, torch)
    yield from lazily(world, torch)


def resident(world: World, where: str = "cpu", **options: Any) -> Any:
    """A device automaton of three constraints: digits, a JSON string and an object of 20 properties."""
    from tokenfst.decoding.device.automata.automaton import DeviceAutomaton

    texts = (patterns.DIGITS, patterns.STRING, patterns.object_with_20_properties())
    return DeviceAutomaton([world.ours.compile(text) for text in texts], where, **options)


def states_in(world: World, automaton: Any, torch: Any, what: str, rows: int) -> tuple[Any, Any]:
    """The states of ``rows`` rows, and a token that each of them allows. ``what`` names the place of the states:
    "digits", a JSON string, or "objects" for states anywhere in an object.
    """
    device = automaton.device
    if what != "objects":
        index, head, token = (0, b"", b"1") if what == "digits" else (1, b'"', b" the")
        states = automaton.start_states([index] * rows)
        if head:
            states = automaton.advance(
                states, torch.full((rows,), world.vocabulary.ids(head)[0], device=device)
            )
        return states, torch.full((rows,), world.vocabulary.ids(token)[0], device=device)
    generator = torch.Generator(device=device).manual_seed(0)
    found, taken = [], []
    states = automaton.start_states([2] * 64)
    noise = torch.zeros((64, len(world.vocabulary)), device=device)
    while len(found) * 64 < rows:
        noise.normal_(generator=generator)
        tokens, reached = automaton.step(noise, states, temperature=1.0, generator=generator)
        found.append(states)
        taken.append(tokens)
        over = automaton.is_ended(reached) | automaton.is_dead(reached)
        states = torch.where(over, automaton.start(2), reached)
    return torch.cat(found)[:rows].contiguous(), torch.cat(taken)[:rows].contiguous()


# --- on a CPU ---


def on_cpu(world: World, torch: Any) -> Iterator[Figure]:
    """The figures of calls from Python in one thread."""
    automaton = resident(world)
    rows, width = 64, len(world.vocabulary)
    block = torch.randn(4096)
    logits = torch.empty(rows, width)

    def write() -> tuple[()]:
        logits.view(-1, 4096).copy_(block.expand(rows * width // 4096, -1))
        return ()

    for what in ("digits", "strings", "objects"):
        states, tokens = states_in(world, automaton, torch, what, rows)
        seconds = sample(partial(automaton.advance, states, tokens), runs=2001, warm_up=100)
        yield figure(f"advance {rows} rows, {what}, on the CPU", OURS, seconds, target=5e-6)
        name = f"mask {rows} x {width:,} float32 logits, {what}, on the CPU"
        for who, call, target in (
            (OURS, partial(automaton.mask_logits_, logits, states), 1e-3),
            ("writing -inf everywhere (torch fill_)", partial(logits.fill_, float("-inf")), None),
        ):
            yield figure(name, who, sample(call, setup=write, runs=41, warm_up=5), target=target)
        write()
        name = f"greedy step, {rows} x {width:,} float32 logits, {what}, on the CPU"
        yield figure(name, OURS, sample(partial(automaton.step, logits, states), runs=21, warm_up=3))
        yield figure(
            name, "unconstrained (torch argmax)", sample(lambda: logits.argmax(1), runs=21, warm_up=3)
        )


# --- on a GPU ---


def on_gpu(
    world: World, torch: Any, where: str = "cuda", batches: Sequence[int] = BATCHES
) -> Iterator[Figure]:
    """The figures of bf16 logits, by CUDA events. Tests name another device and replace ``torch.cuda``."""
    automaton = resident(world, where)
    width, note = (
        len(world.vocabulary),
        f"{torch.cuda.get_device_name()}, bf16, {CALLS} calls in a CUDA graph",
    )
    for rows in batches:
        logits = torch.randn((rows, width), device=where, dtype=torch.bfloat16)
        bound = figure("", "", gpu_seconds(torch, lambda logits=logits: logits.fill_(-1.0)))
        assert bound.median is not None
        for what in ("digits", "strings", "objects"):
            states, tokens = states_in(world, automaton, torch, what, rows)

            def both(logits: Any = logits, states: Any = states, tokens: Any = tokens) -> None:
                automaton.mask_logits_(logits, automaton.advance(states, tokens))

            name = f"advance and mask {rows:,} x {width:,} logits, {what}"
            target = 8e-6 if rows == 1 else 1.5 * bound.median
            yield figure(name, OURS, gpu_seconds(torch, both), target=target, note=note)
            yield Figure(
                name, "bound: writing as many bytes (torch fill_)", bound.median, bound.least, bound.runs
            )
            step = partial(automaton.step, logits, states)
            yield figure(name, f"{OURS}, greedy step", gpu_seconds(torch, step))
            if version("xgrammar") is not None and what == "strings":
                yield from xgrammars(world, torch, automaton, logits, states, name)


def xgrammars(
    world: World, torch: Any, automaton: Any, logits: Any, states: Any, name: str
) -> Iterator[Figure]:
    """xgrammar's masks, filled on the CPU and copied; its kernel alone; and our masking without a graph."""
    import xgrammar

    rows, size = logits.shape
    peer = next(iter(world.peers("xgrammar")))
    compiled = peer.compile(patterns.STRING)
    matchers = [xgrammar.GrammarMatcher(compiled) for _ in range(rows)]
    for matcher in matchers:
        assert matcher.accept_token(world.vocabulary.ids(b'"')[0])
    words = xgrammar.allocate_token_bitmask(rows, size).pin_memory()
    there = automaton.bitmask(states)

    def filled() -> None:
        for row, matcher in enumerate(matchers):
            matcher.fill_next_token_bitmask(words, row)
        xgrammar.apply_token_bitmask_inplace(logits, words.to(logits.device, non_blocking=True))
        torch.cuda.synchronize()

    yield figure(
        name, "xgrammar: fill on the CPU, copy, apply (wall clock)", sample(filled, runs=9, warm_up=2)
    )
    alone = partial(xgrammar.apply_token_bitmask_inplace, logits, there)
    yield figure(name, "xgrammar: its kernel alone, calls in a row", gpu_seconds(torch, alone, graph=False))
    ours = partial(automaton.mask_logits_, logits, states)
    yield figure(name, f"{OURS}: masking alone, calls in a row", gpu_seconds(torch, ours, graph=False))


def gpu_seconds(torch: Any, call: Callable[[], object], runs: int = 41, *, graph: bool = True) -> list[float]:
    """The seconds of one call, by CUDA events around ``CALLS`` calls: in a CUDA graph, or without one
    (``graph=False``), where starting the kernels may take longer than the kernels.
    """

    def calls() -> None:
        for _ in range(CALLS):
            call()

    replay = captured(torch, calls).replay if graph else calls
    seconds = []
    for run in range(-3, runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        replay()
        end.record()
        torch.cuda.synchronize()
        if run >= 0:
            seconds.append(begin.elapsed_time(end) / 1e3 / CALLS)
    return seconds


def captured(torch: Any, call: Callable[[], object]) -> Any:
    """A CUDA graph of a call, after three calls to warm up. A wait for the device inside of the graph is an error."""
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.cuda.graph(graph):
            call()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return graph


def decoding(
    world: World, torch: Any, where: str = "cuda", rows: int = 64, steps: int = 200
) -> Iterator[Figure]:
    """A greedy step of a small model with a static cache, with and without a constraint; on a GPU as one CUDA graph."""
    if version("transformers") is None:
        return
    automaton = resident(world, where)
    what = f"step of a small model, {rows} rows, on {where}"
    base: float | None = None
    for constrained in (False, True):
        step = model_step(world, torch, automaton if constrained else None, where, rows, steps + 8)
        who = f"{OURS}, constrained" if constrained else "unconstrained"
        with torch.inference_mode():
            if where != "cuda":
                seconds = sample(step, runs=steps)
            else:
                try:
                    graph = captured(torch, step)
                except RuntimeError as error:
                    yield Figure(what, who, None, note=f"no CUDA graph of this model: {error}")
                    return
                seconds = [gpu_once(torch, graph.replay) for _ in range(steps)]
        found = figure(what, who, seconds, target=base and 1.02 * base)
        base = base or found.median
        yield found


def gpu_once(torch: Any, call: Callable[[], object]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1e3


def model_step(
    world: World, torch: Any, automaton: Any, where: str, rows: int, length: int
) -> Callable[[], None]:
    """A function that makes one step of a model with random weights and changes its tensors in place. ``automaton``:
    the constraint; None: no constraint.
    """
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    config = LlamaConfig(
        vocab_size=len(world.vocabulary),
        hidden_size=512,
        intermediate_size=1536,
        num_hidden_layers=8,
        num_attention_heads=8,
        max_position_embeddings=length,
    )
    model = LlamaForCausalLM(config).to(where, torch.bfloat16).eval()
    cache = StaticCache(config=config, max_cache_len=length)
    tokens = torch.full((rows, 1), 1, device=where)
    place = torch.zeros((rows, 1), dtype=torch.int64, device=where)
    states = automaton.start_states([1] * rows) if automaton else None

    def step() -> None:
        logits = model(tokens, past_key_values=cache, position_ids=place, use_cache=True).logits[:, -1]
        if automaton:
            chosen, reached = automaton.step(logits, states)
            states.copy_(reached)
        else:
            chosen = logits.argmax(1)
        tokens.copy_(chosen[:, None])
        place.add_(1)

    return step


# --- layouts, and masks made on the device ---


def layouts(world: World, torch: Any) -> Iterator[Figure]:
    """Two layouts of an automaton: a token's bytes go through the table of byte classes; or each state has an explicit
    edge for each token.
    """
    import numpy as np

    where = "cuda" if torch.cuda.is_available() else "cpu"
    automaton = resident(world, where, token_limits=False)
    size = len(world.vocabulary)
    texts = (patterns.DIGITS, patterns.STRING, patterns.object_with_20_properties())
    for name, text in zip(("digits", "strings", "objects"), texts, strict=True):
        compiled = world.ours.compile(text)
        source, token, target, states, _, _ = compiled.arcs()
        keys = torch.from_numpy(np.sort(source * size + token)).to(where)
        targets = torch.from_numpy(target.astype(np.int32)).to(where)
        what = f"advance 64 rows on {where}, {name}: layouts"
        rows, tokens = states_in(world, automaton, torch, name, 64)
        edge_rows = torch.randint(0, states, (64,), device=where)

        def by_edges(
            keys: Any = keys, targets: Any = targets, rows: Any = edge_rows, tokens: Any = tokens
        ) -> Any:
            wanted = rows * size + tokens
            place = torch.searchsorted(keys, wanted).clamp_max(len(keys) - 1)
            return torch.where(keys[place] == wanted, targets[place], 0)

        timed = gpu_seconds if where == "cuda" else _cpu_seconds
        table = type(automaton)(compiled, where, token_limits=False).memory().automata
        yield figure(
            what,
            f"{OURS}: bytes through the class table",
            timed(torch, partial(automaton.advance, rows, tokens)),
        )
        yield figure(what, "explicit edges, sorted (torch searchsorted)", timed(torch, by_edges))
        memory = f"memory of the arcs, {name}: layouts"
        yield Figure(memory, f"{OURS}: class table and states", table, unit="bytes")
        yield Figure(memory, f"explicit edges, 12 bytes each ({len(keys):,})", 12 * len(keys), unit="bytes")


def _cpu_seconds(torch: Any, call: Callable[[], object]) -> list[float]:
    return sample(call, runs=501, warm_up=20)


def composition(world: World, torch: Any) -> Iterator[Figure]:
    """The mask of a new state, made by running the whole vocabulary through the table of byte classes."""
    where = "cuda" if torch.cuda.is_available() else "cpu"
    automaton = resident(world, where, token_limits=False)
    timed = gpu_seconds if where == "cuda" else _cpu_seconds
    for what in ("digits", "strings"):
        states, _ = states_in(world, automaton, torch, what, 1)
        name = f"one mask composed on {where}, {what}"
        yield figure(name, OURS, timed(torch, partial(automaton.compose, states)))
        text, head = (patterns.DIGITS, b"") if what == "digits" else (patterns.STRING, b'"')
        seconds = []
        for _ in range(5):
            matcher = tokenfst.compile(tokenfst.regex(text), world.vocabulary).matcher()
            mask = tokenfst.allocate_token_bitmask(1, len(world.vocabulary))
            if head:
                matcher.accept_token(world.vocabulary.ids(head)[0])
            seconds += sample(partial(matcher.fill_next_token_bitmask, mask), runs=1, warm_up=0)
        yield figure(name, f"{OURS}, on the CPU, lazily (fragments known)", seconds[1:])


def lazily(world: World, torch: Any) -> Iterator[Figure]:
    """A greedy step of 64 rows over the states of an object, all of which are new.

    ``LazyDeviceAutomaton`` copies states to the device when a text first reaches them; ``DeviceMatchers`` copies the
    masks of matchers. Both get the same logits, so they write the same texts.
    """
    where, rows, steps = "cuda" if torch.cuda.is_available() else "cpu", 64, 24
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "ok": {"type": "boolean"}},
        "required": ["name", "age", "ok"],
        "additionalProperties": False,
    }
    compiled = partial(tokenfst.compile, tokenfst.json_schema(schema), world.vocabulary)
    torch.manual_seed(0)
    logits = torch.randn(rows, len(world.vocabulary), device=where)

    def by_states() -> None:
        lazy = tokenfst.LazyDeviceAutomaton(compiled(), where, token_limits=False)
        states = lazy.start_states(rows)
        for step in range(steps):
            states = lazy.step(logits.roll(step, 1), states)[1]
        lazy.settle(states)

    def by_matchers() -> None:
        automaton = compiled()
        paged = tokenfst.DeviceMatchers([automaton.matcher() for _ in range(rows)], world.vocabulary, where)
        for step in range(steps):
            paged.follow(paged.choose(logits.roll(step, 1), paged.states()))
        paged.states()

    name = f"a greedy step of {rows} rows on {where}, states met for the first time"
    for library, run in (
        (f"{OURS}, LazyDeviceAutomaton", by_states),
        (f"{OURS}, DeviceMatchers", by_matchers),
    ):
        yield figure(name, library, [seconds / steps for seconds in sample(run, runs=5, warm_up=1)])

    # The host's work in a step, without a model: the tokens come from one run before.
    automaton, tokens = compiled(), []
    matchers = tokenfst.DeviceMatchers([automaton.matcher() for _ in range(rows)], world.vocabulary, where)
    for step in range(steps):
        tokens.append(matchers.choose(logits.roll(step, 1), matchers.states()))
        matchers.follow(tokens[-1])
    every_step: list[float] = []
    for _ in range(5):
        matchers = tokenfst.DeviceMatchers(
            [automaton.matcher() for _ in range(rows)], world.vocabulary, where
        )
        matchers.states()
        for chosen in tokens:
            begun = time.perf_counter()
            matchers.follow(chosen)
            matchers.states()
            every_step.append(time.perf_counter() - begun)
    yield figure(f"follow and states of {rows} rows on {where}", f"{OURS}, DeviceMatchers", every_step)
