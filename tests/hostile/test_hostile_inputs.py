"""The fuzz targets' seeds, what fuzzing has found, and a few blind mutations of them. ``make fuzz`` looks for more."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fuzz.__main__ import mutated
from fuzz.targets import TARGETS, seeds

INPUTS = Path(__file__).parent / "inputs"


def known(name: str) -> list[bytes]:
    return seeds(name) + [path.read_bytes() for path in sorted((INPUTS / name).glob("*"))]


@pytest.mark.parametrize("name", TARGETS)
def test_known_inputs_keep_the_promise(name: str) -> None:
    for data in known(name):
        TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
def test_some_mutations_keep_the_promise(name: str) -> None:
    rng, inputs = random.Random(7), known(name)
    for _ in range(30):
        TARGETS[name](mutated(rng, rng.choice(inputs), rng.choice(inputs)))


def test_every_folder_of_inputs_has_a_target() -> None:
    assert {path.name for path in INPUTS.glob("*/")} <= set(TARGETS)
