"""The fuzz targets' seeds, what fuzzing has found, and mutations of them: a few, or for ten minutes (``make soak``).

``make fuzz`` looks for more.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.__main__ import mutated
from fuzz.targets import TARGETS, seeds
from support.running.shards import ROOT, commit

MINUTES = 10
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


@pytest.mark.soak
@pytest.mark.parametrize("name", TARGETS)
def test_a_target_at_length(name: str) -> None:
    """All targets together take ten minutes. A commit gets the same mutations each time, another commit gets others;
    where atheris is installed, coverage guides them.
    """
    seconds, seed = MINUTES * 60 / len(TARGETS), int(commit()[:8], 16)
    command = [sys.executable, "-m", "tests.fuzz", name, f"--seconds={seconds:.0f}", f"--seed={seed}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout + done.stderr
