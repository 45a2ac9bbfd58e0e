"""One step of decoding: the mask of the next token, then the advance by a token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter_ns, thread_time_ns
from typing import Any

from benchmarks.measuring import patterns
from benchmarks.measuring.libraries import Library, Walk, World
from benchmarks.measuring.measure import OURS, Figure, clock_overhead, figure, quiet

TEXT = (
    " The quick brown fox jumps over the lazy dog, while a large language model writes its answer one token"
    " at a time. Zürich, 東京 and Москва are names; 3.14159 is a number."
)
PER_LOOP = 1000


def cached_steps(world: World) -> Iterator[Figure]:
    """Mask and advance in states that were visited before, through Python."""
    for what, pattern, opening, body in (
        ("cached mask + advance: digits (narrow)", patterns.DIGITS, "", "1234567890"),
        ("cached mask + advance: JSON string interior (wide)", patterns.STRING, '"', TEXT),
    ):
        head, tokens = token_stream(world, opening, body)
        names = ("xgrammar", "llguidance", "outlines-core")
        for library in (world.ours, *world.peers(*names)):
            seconds = _steps(library, library.compile(pattern), head, tokens)
            yield figure(what, library.name, seconds, target=1e-6 if library is world.ours else None)
            if library is world.ours:
                expanded = library.compile(pattern).expand()
                yield figure(what, f"{OURS}, expanded", _steps(library, expanded, head, tokens), target=1e-6)


def unvisited_interior(world: World) -> Iterator[Figure]:
    """The mask inside a JSON string, in a state that was never visited before, when the string's fragment is known."""
    count = 60
    pattern = patterns.strings_in_different_contexts(count)
    pieces = ['{"k000":"', *(f'","k{i:03}":"' for i in range(1, count))]
    heads = [world.vocabulary.encode_greedy(piece.encode()) for piece in pieces]
    what = "mask in a JSON string, state never visited"
    overhead = clock_overhead()
    world.ours.walk(world.ours.compile(patterns.STRING)).fill()
    for library in (world.ours, *world.peers("xgrammar", "llguidance")):
        rounds = 9 if library is world.ours else 1
        seconds = []
        for _ in range(rounds):
            seconds += _fills(library.walk(library.compile(pattern)), heads)[1:]
        seconds = [max(s - overhead, 0.0) for s in seconds]
        target = 2e-6 if library is world.ours else None
        yield figure(what, library.name, seconds, target=target)
    head, tokens = token_stream(world, '"', TEXT, 60)
    bounded = rf'"{patterns.CHARACTER}{{0,600}}"'
    seconds = []
    for _ in range(9):
        walk = world.ours.walk(world.ours.compile(bounded))
        seconds += _fills(walk, [head, *([token] for token in tokens)])[2:]
    what = "mask in a JSON string of at most 600 characters, state never visited"
    yield figure(what, OURS, [max(s - overhead, 0.0) for s in seconds])


def _steps(library: Library, compiled: Any, head: Sequence[int], tokens: Sequence[int]) -> list[float]:
    """The mean seconds of a step in each of many loops over ``PER_LOOP`` tokens, each from the beginning."""
    seconds = []
    with quiet():
        for run in range(22):
            walk = library.walk(compiled)
            for token in head:
                walk.accept(token)
            fill, accept = walk.fill, walk.accept
            begin = thread_time_ns()
            for token in tokens:
                fill()
                accept(token)
            end = thread_time_ns()
            if run:
                seconds.append((end - begin) / 1e9 / len(tokens))
    return seconds


def _fills(walk: Walk, pieces: Sequence[Sequence[int]]) -> list[float]:
    """The seconds of the mask after each piece of tokens."""
    seconds = []
    with quiet():
        for piece in pieces:
            for token in piece:
                if not walk.accept(token):
                    raise AssertionError(f"token {token} was refused")
            cpu, begin = thread_time_ns(), perf_counter_ns()
            walk.fill()
            spent = perf_counter_ns() - begin
            seconds.append(min(spent, thread_time_ns() - cpu) / 1e9)
    return seconds


def token_stream(world: World, opening: str, body: str, count: int = PER_LOOP) -> tuple[list[int], list[int]]:
    """The tokens of ``opening``, and ``count`` tokens of ``body``, which is repeated."""
    encode = world.vocabulary.encode_greedy
    once = encode(body.encode())
    return encode(opening.encode()), (once * (count // len(once) + 1))[:count]
