"""Blocks that automata leave to those that come after them: nothing of what one wrote is seen by another."""

from __future__ import annotations

import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.worlds.exclusion import TOKENS

from tokenfst import Vocabulary, _native, allocate_token_bitmask, compile, json_schema

VOCABULARY = Vocabulary(TOKENS, len(TOKENS) - 1)


def schema_of(number: int) -> dict[str, object]:
    rng = random.Random(number)
    kinds = [
        {"type": "string", "maxLength": 3 + number},
        {"enum": ["a", "aa", number]},
        {"type": "integer", "minimum": number},
    ]
    names = rng.sample("abcdefgh", 4)
    return {
        "type": "object",
        "properties": {name: rng.choice(kinds) for name in names},
        "required": names[:1],
    }


def walked(number: int) -> bytes:
    """The masks along a random walk."""
    rng = random.Random(number)
    matcher = compile(json_schema(schema_of(number)), VOCABULARY).matcher()
    mask = allocate_token_bitmask(1, len(VOCABULARY))
    seen = []
    for _ in range(25):
        if matcher.is_terminated:
            break
        matcher.fill_next_token_bitmask(mask, 0)
        seen.append(mask.tobytes())
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(VOCABULARY)])
        assert matcher.accept_token(int(rng.choice(list(allowed))))
    return b"".join(seen)


@pytest.mark.parametrize("workers", [1, 4])
def test_masks_do_not_depend_on_what_was_there_before(workers: int) -> None:
    first = [walked(number) for number in range(24)]
    order = random.Random(workers).sample(range(24), 24)
    with ThreadPoolExecutor(workers) as pool:
        again = dict(zip(order, pool.map(walked, order), strict=True))
    assert [again[number] for number in range(24)] == first


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif(hasattr(_native, "stress"), reason="AddressSanitizer keeps freed memory back")
def test_what_is_left_serves_again() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for number in range(40):
        walked(number)
    before = resident()
    for number in range(400):
        walked(number % 40)
    assert resident() - before < 4 << 20
