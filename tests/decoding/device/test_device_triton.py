"""The Triton kernels: by the interpreter against matchers and against plain torch, and compiled for a GPU that need
not be there. The interpreter is chosen when Triton is imported, so it runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running.interpreted import TESTS, interpreted
from tests.support.worlds.devices.device_kernels import KERNELS

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="Triton is not installed: pip install triton")

BEGIN = """
import random
import torch
from tests.decoding.device.test_device_automaton import DeviceAutomaton, check, automaton
from tokenfst.decoding.device.kernels import triton as device_triton

class Triton:
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, dense=True, **options)
    def _is_native(self):
        return False
    def _triton(self, states, logits=None):
        return device_triton if device_triton.takes(logits) else None

class Interpreted(Triton, DeviceAutomaton):
    pass
"""
STACKS = """
import tests.decoding.device.test_device_stacks as stacks

class WithStacks(Triton, stacks.PushDownDeviceAutomaton):
    pass
"""


def test_as_matchers() -> None:
    interpreted(BEGIN + "check(Interpreted, 0, 2)")


AGREE = """
import numpy as np
rng = np.random.default_rng(0)
automata = [automaton(p, vocabulary) for p in (r'"([^"\\\\]|\\\\.)*"', "[0-9]{3}-[0-9]{4}", "(yes|no) [a-z]{2,9}")]
ours, native = Interpreted(automata), DeviceAutomaton(automata)
states = torch.from_numpy(rng.integers(-3, native.num_states + 5, 80).astype(np.int32))
tokens = torch.from_numpy(rng.integers(-2, len(vocabulary) + 2, 80))
assert torch.equal(ours.advance(states, tokens), native.advance(states, tokens))
few = torch.cat([native.start_states([0, 1, 2]), states[:2]])
few[0] = native.advance(few[:1], torch.tensor(vocabulary.ids(b'"')[:1]))[0]
budget = torch.tensor([-1, 8, 3, 0, 2], dtype=torch.int32)
for dtype, left in ((torch.float32, None), (torch.float16, 4), (torch.bfloat16, budget)):
    logits = torch.from_numpy(rng.standard_normal((5, len(vocabulary) + 9)).astype(np.float32)).to(dtype)
    for one, other in zip(ours.step(logits, few, left), native.step(logits, few, left)):
        assert torch.equal(one, other)
    masked = [device.mask_logits_(logits.clone(), few, left) for device in (ours, native)]
    assert torch.equal(*masked)
assert torch.equal(ours.compose(few), native.bitmask(few))
empty = few[:0]
assert len(ours.advance(empty, tokens[:0])) == 0 and len(ours.step(logits[:0], empty)[0]) == 0
"""


def test_as_the_native_kernels() -> None:
    """Rows and lists, several blocks of columns, any states, tokens and budgets."""
    interpreted(
        BEGIN + "from tokenfst import Vocabulary\n"
        "rng = random.Random(0)\n"
        "words = [bytes(rng.choices(b'abcdefgh 0123456789-yesno\"', k=rng.randint(2, 5))) for _ in range(9000)]\n"
        "vocabulary = Vocabulary([*(bytes([b]) for b in range(256)), *words, b''], 9256)\n" + AGREE
    )


@pytest.mark.soak
def test_as_the_native_kernels_on_a_real_vocabulary() -> None:
    interpreted(
        BEGIN
        + "from tokenfst import load_vocabulary\nvocabulary = load_vocabulary('mistral:tekken_240911')\n"
        + AGREE
    )


TREES = """
import numpy as np
from tests.support.worlds.devices import drafted_worlds, sampled_worlds
from tests.decoding.device.test_device_verification import PATTERNS, VOCABULARY
from tokenfst import compile, gbnf, regex

automata = [compile(regex(pattern), VOCABULARY) for pattern in PATTERNS]
nested = compile(gbnf('root ::= "(" root ")" | [a-b]'), VOCABULARY)
pairs = [
    (Interpreted(automata), DeviceAutomaton(automata)),
    (WithStacks([nested, *automata], depth=2), stacks.PushDownDeviceAutomaton([nested, *automata], depth=2)),
]
rng = np.random.default_rng(0)
for ours, native in pairs:
    for depth in (1, 2, 5):
        for _ in range(6):
            states = native.start_states(rng.integers(0, 3, 4).tolist())
            count = int(rng.integers(0, 70))
            parents = torch.tensor([int(rng.integers(-4, n)) for n in range(count)], dtype=torch.int64)
            tokens = torch.from_numpy(rng.choice([*b"ab()0123456789-", 256, 257, -1], count))
            found = ours.advance_tree(states, parents, tokens, depth)
            assert torch.equal(found, native.advance_tree(states, parents, tokens, depth))
    # Parents that name no node and no row lead to DEAD; so do parents in a circle.
    wrong = torch.tensor([7, -5, 2, 4, 3])
    assert ours.is_dead(ours.advance_tree(states, wrong, torch.full((5,), 97), 3)).all()
sampled_worlds.numpys_exp2()
for seed, (ours, _) in enumerate(pairs):
    options = {"temperature": 0.7, "top_k": 3, "presence_penalty": 0.5, "seeds": seed}
    assert drafted_worlds.check(random.Random(seed), ours, ours.start_states([0, 1]), options, 2)
"""


def test_trees_of_drafts() -> None:
    """One launch for all nodes gives the states of a launch for each level; drafts do not change what is drawn."""
    interpreted(BEGIN + STACKS + TREES)


def test_stacks_as_matchers() -> None:
    """Masks, budgets and advances of grammars, with stacks that outgrow their room."""
    interpreted(
        BEGIN + STACKS + "made = stacks.automata()\n"
        "stacks.walk(random.Random(0), WithStacks(made, depth=9), made, stacks.VOCABULARY, 7, 5)\n"
        "assert stacks.check_random(3, WithStacks, 3, depth=2)  # some outgrow their room\n"
    )


@pytest.mark.soak
def test_stacks_of_random_grammars() -> None:
    interpreted(
        BEGIN + STACKS + "for seed in range(100, 102): stacks.check_random(seed, WithStacks, 15, depth=4)"
    )


def test_stacks_of_any_rows() -> None:
    """Rows of garbage as by the native kernels; values, overflow, batches of no rows."""
    interpreted(
        BEGIN + STACKS + "stacks.test_anything_in_a_row_is_harmless(WithStacks)\n"
        "stacks.test_rows_are_values(WithStacks)\n"
        "stacks.test_a_stack_without_room(WithStacks)\n"
        "device = WithStacks(stacks.automata()[:1], depth=5)\n"
        "none = device.start_states([])\n"
        "assert device.advance(none, torch.zeros(0, dtype=torch.int64)).shape == (0, 7)\n"
        "assert len(device.bitmask(none, 3)) == 0\n"
    )


SAMPLED = """
import numpy as np
from tests.decoding.device.test_device_automaton import Plain
from tests.support.worlds.devices import sampled_worlds
from tokenfst import Vocabulary
sampled_worlds.numpys_exp2()
rng = random.Random({seed})

def worlds(vocabulary, count, made=Interpreted, other=Plain, **options):
    patterns = (r'"([^"]|\\\\.)*"', "[0-9]{{2}}-[0-9]", "(yes|no) [a-z]{{2,4}}", "[^x]+")
    automata = [automaton(pattern, vocabulary) for pattern in patterns]
    ours, plain = made(automata, **options), other(automata, **options)
    states = ours.start_states([3, 2, 1, 0])
    quoted = ours.advance(states[3:], torch.tensor(vocabulary.ids(b'"')[:1]))
    sampled_worlds.check(rng, ours, plain, torch.cat([states[:3], quoted]), count)
    return ours

words = [bytes(rng.choices(b'abcdefgh 0123456789-yesno"', k=rng.randint(2, 5))) for _ in range({words})]
vocabulary = Vocabulary([*(bytes([b]) for b in range(256)), *words, b""], 256 + {words})
"""


def test_samplers_as_plain_torch() -> None:
    """Rows and lists, several blocks, ties, all filters and penalties: equal draws, and log-probabilities."""
    interpreted(
        BEGIN + SAMPLED.format(seed=0, words=50) + "sampled_worlds.small_blocks(64)\n"
        "device = worlds(vocabulary, 2)\n"
        "empty = device.start_states([])\n"
        "none = sampled_worlds.DeviceSampler(device, 0)\n"
        "assert len(none.step(torch.zeros(0, len(vocabulary)), empty)[0]) == 0\n"
    )


STACKED = (
    STACKS
    + SAMPLED
    + """
def stacked(count, texts, depth):
    made = stacks.automata()
    ours, plain = (kind(made, depth=depth) for kind in (WithStacks, stacks.Plain))
    states = ours.start_states([rng.randrange(len(made)) for _ in range(texts)])
    for _ in range(4):  # some are dead, ended or without room by then
        states = ours.step(torch.rand((texts, len(stacks.VOCABULARY))), states)[1]
        sampled_worlds.check(rng, ours, plain, states, count)
        garbage = torch.randint(-2, 5, states.shape, dtype=torch.int32)
        sampled_worlds.check(rng, ours, plain, garbage, count)
"""
)


def test_samplers_with_stacks_as_plain_torch() -> None:
    """Masks of stacks, limits, draws and advances in the two launches of the sampled step, rows of garbage too."""
    interpreted(
        BEGIN + STACKED.format(seed=5, words=0) + "sampled_worlds.small_blocks(64)\nstacked(1, 3, 3)\n"
    )


@pytest.mark.soak
def test_samplers_with_stacks_in_many_worlds() -> None:
    interpreted(
        BEGIN + STACKED.format(seed=6, words=0) + "sampled_worlds.small_blocks(64)\nstacked(4, 6, 9)\n"
    )


LAZY = """
import tests.decoding.device.test_device_lazy as lazy
from tests.support.worlds.devices import sampled_worlds
from tests.support.worlds.devices.implementations import in_plain_torch
from tokenfst import DeviceSampler, compile, gbnf, regex

Plain = in_plain_torch(lazy.LazyDeviceAutomaton)

class Lazy(lazy.LazyDeviceAutomaton):
    _is_native, _triton = Triton._is_native, Triton._triton
"""
LAZY_SAMPLERS = """
sampled_worlds.numpys_exp2()
grammar = gbnf('root ::= "a" root "a" | "b"?')
automata = [compile(each, lazy.VOCABULARY) for each in (regex("[a-f]{2,5}"), grammar)]
pair = [kind(automata, ahead=0) for kind in (Lazy, Plain)]
samplers = [DeviceSampler(one, 2, temperature=0.7, top_k=9, presence_penalty=0.3, seeds=[5, 6]) for one in pair]
states = [one.start_states([0, 1]) for one in pair]
for left in range(8, 3, -1):
    logits = torch.randn(2, len(lazy.VOCABULARY))
    steps = [sampler.step(logits, rows, left) for sampler, rows in zip(samplers, states)]
    assert torch.equal(steps[0][0], steps[1][0])
    states = [step[1] for step in steps]
"""


def test_lazy_automata_as_matchers() -> None:
    """States and masks that come as they are met, composed by Triton or copied; rows that wait."""
    interpreted(
        BEGIN + LAZY + "lazy.test_rows_are_values(Lazy)\nlazy.check(Lazy, 1, 1)\n"
        "made = compile(regex('[0-9]{2}-(yes|no)'), lazy.VOCABULARY)\n"
        "near, far = Lazy(made, ahead=99, composes=True), Plain(made, ahead=0)\n"
        "one, other = near.start_states(1), far.start_states(1)\n"
        "for token in lazy.VOCABULARY.encode_greedy(b'12-yes'):\n"
        "    assert torch.equal(near.bitmask(one), far.bitmask(other))\n"
        "    taken = torch.tensor([token])\n"
        "    one, other = near.advance(one, taken), far.advance(other, taken)\n"
        "assert near.residence.composed > 2 and near.residence.copied == 0\n"
    )


def test_samplers_of_lazy_automata_as_plain_torch() -> None:
    interpreted(BEGIN + LAZY + LAZY_SAMPLERS)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 4))
def test_samplers_in_many_worlds(seed: int) -> None:
    interpreted(
        BEGIN
        + SAMPLED.format(seed=seed, words=50)
        + "sampled_worlds.small_blocks(64)\nworlds(vocabulary, 12)\n"
    )


@pytest.mark.soak
def test_samplers_of_many_columns() -> None:
    """Blocks as they are launched, two of them."""
    interpreted(BEGIN + SAMPLED.format(seed=9, words=9000) + "worlds(vocabulary, 4)\n")


@pytest.mark.parametrize(
    "target",
    ["cuda:90", *(pytest.param(target, marks=pytest.mark.soak) for target in ("cuda:100", "hip:gfx942"))],
)
def test_kernels_compile_for_a_gpu(tmp_path: Path, target: str) -> None:
    """Types and shapes that the interpreter does not look at; no GPU takes part. The kernels that read rows of logits
    do so in 16 bytes a lane. Nothing spills but where all of sampling is asked for at once, or where the kernel that
    draws a token also walks a stack.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.worlds.devices.device_kernels", target],
        env=os.environ | {"TRITON_CACHE_DIR": str(tmp_path), "TRITON_INTERPRET": "0"},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(KERNELS)
    for kernel in found:
        spilled = kernel.get("spills", 0) + kernel.get("stack", 0)
        assert {"filtered", "stacked"} & {*kernel["with"]} or not spilled, kernel
        if kernel["kernel"] in ("mass_kernel", "greatest_kernel"):
            assert kernel["loads"].get("16", 0) >= 2, kernel
