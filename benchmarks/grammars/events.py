"""Events of JSON and of captures while tokens arrive, and captures of a complete text."""

from __future__ import annotations

import json
from collections.abc import Iterator

import tokenfst
from benchmarks.measuring.libraries import World
from benchmarks.measuring.measure import OURS, Figure, figure, sample
from tokenfst.automata.events.json_events import JsonEvents

_ITEMS = 400
_TARGET = 2e-6
"""The target for an event and for a token, in seconds."""


def events(world: World) -> Iterator[Figure]:
    """The figures of a document of many thousand tokens that is read token by token, and of captures."""
    document = [
        {"name": "a longer text with\nlines in it " * 3, "n": number, "tags": ["x", "yy"], "ok": True}
        for number in range(_ITEMS)
    ]
    vocabulary = world.vocabulary
    tokens = vocabulary.encode_greedy(json.dumps(document).encode())
    parts = [vocabulary.token_bytes(token) for token in tokens]

    def read() -> int:
        stream = JsonEvents()
        return sum(len(stream.feed(part)) for part in parts)

    number = read()
    times = sample(read, runs=15)
    what = f"events of JSON: {len(parts):,} tokens, {number:,} events"
    for unit, count in (("a token", len(parts)), ("an event", number)):
        yield figure(f"{what}: {unit}", OURS, _each(times, count), target=_TARGET)

    def grow() -> None:
        for _ in tokenfst.stream_json(parts):
            pass

    times = sample(grow, runs=15)
    yield figure("stream_json of it: a token", OURS, _each(times, len(parts)))

    lines = tokenfst.regex(r"(?:(?P<key>[a-z]+)=(?P<value>[^;\n]*);\n)*")
    text = b"".join(b"name=some value with words;\n" for _ in range(200))
    times = sample(lambda: lines.captures(text), runs=9)
    yield figure(
        f"captures of {len(text):,} bytes by two groups that repeat: a byte", OURS, _each(times, len(text))
    )


def _each(seconds: list[float], count: int) -> list[float]:
    """The seconds of one of ``count`` parts, for each sample."""
    return [each / count for each in seconds]
