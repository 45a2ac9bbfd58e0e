"""Automata on a device against matchers, one row each: masks, budgets, advances, choices; and what is refused."""

from __future__ import annotations

import math
import random
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.worlds.devices.device_worlds import Row, ids, random_automata
from support.worlds.devices.implementations import implementations, in_plain_torch

from tests.support.worlds.token_worlds import random_vocabulary
from tokenfst import (
    TokenAutomaton,
    Vocabulary,
    compile,
    json_schema,
    lark_grammar,
    regex,
    special_token,
)
from tokenfst.errors import (
    ArgumentValueError,
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    MaskBufferError,
    StateError,
    TokenfstError,
    TokenIdError,
    TokenLimitError,
    UnspellableWarning,
    VocabularyMismatchError,
)

torch = pytest.importorskip("torch")
device_automaton = pytest.importorskip("tokenfst.decoding.device.automata.automaton")
plain = pytest.importorskip("tokenfst.decoding.device.kernels.plain")
options_of_sampling = pytest.importorskip("tokenfst.decoding.device.automata.options")
DeviceAutomaton = device_automaton.DeviceAutomaton
DeviceSampler = pytest.importorskip("tokenfst.decoding.device.automata.sampling").DeviceSampler
ComposingDeviceAutomaton = pytest.importorskip(
    "tokenfst.decoding.device.automata.composing"
).ComposingDeviceAutomaton

EVERY_BYTE = Vocabulary([*(bytes([byte]) for byte in range(256)), b"ab", b""], 257)
ABC = Vocabulary([b"a", b"b", b"ab", b"c", b"", b""], 4)


def automaton(pattern: str, vocabulary: Vocabulary = ABC) -> TokenAutomaton:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnspellableWarning)
        return compile(regex(pattern), vocabulary)


Plain = in_plain_torch(DeviceAutomaton)
make = implementations(DeviceAutomaton)


def check(make: Any, seed: int, count: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        vocabulary = random_vocabulary(rng)
        automata = random_automata(rng, vocabulary, rng.randint(1, 3))
        device = make(automata)
        which = [rng.randrange(len(automata)) for _ in range(rng.randint(1, 6))]
        rows = []
        for index in which:
            least = automata[index].distance()
            left = None if rng.random() < 0.3 else least + rng.choice([0, 0, 1, 2, 5])
            rows.append(Row(automata[index], vocabulary, left))
        states = device.start_states(which)
        for _ in range(8):
            walk(rng, device, rows, states, vocabulary)
            tokens = []
            for row in rows:
                choices = sorted(row.allowed())
                tokens.append(rng.choice(choices) if rng.random() < 0.9 else rng.randrange(len(vocabulary)))
                row.accept(tokens[-1], unbounded=True)
            composed = device.compose(states)
            assert torch.equal(composed, device.bitmask(states))
            states = device.advance(states, torch.tensor(tokens))
            assert device.is_dead(states).tolist() == [row.dead for row in rows]


def walk(rng: random.Random, device: Any, rows: list[Row], states: Any, vocabulary: Vocabulary) -> None:
    """One look at a batch: every function that does not advance."""
    size, width = len(vocabulary), len(vocabulary) + rng.choice([0, 1, 40])
    wanted = [row.allowed() for row in rows]
    left = [-1 if row.over or row.left is None else row.left for row in rows]
    budget: Any = torch.tensor(left, dtype=torch.int32)
    if max(left) < 0 and rng.random() < 0.5:
        budget = rng.choice([None, -1])
    bitmask = device.bitmask(states, budget).numpy()
    assert [ids(words, size) for words in bitmask] == wanted
    live = [row for row in rows if not row.over]
    distances = [d for row, d in zip(rows, device.distance(states).tolist(), strict=True) if not row.over]
    assert distances == [row.matcher.distance() for row in live]
    accepting = [row.matcher.is_accepting() or row.matcher.is_terminated() for row in rows]
    assert device.is_accepting(states).tolist() == [
        a and not r.dead for a, r in zip(accepting, rows, strict=True)
    ]

    dtype = rng.choice([torch.float32, torch.float16, torch.bfloat16])
    values = torch.tensor(
        [[rng.choice([0.0, 1.5, -2.0, float("inf"), -float("inf")]) for _ in range(width)] for _ in rows]
    )
    values[torch.rand(values.shape) < 0.03] = torch.nan
    logits = values.to(dtype)
    expected = logits.clone()
    forbidden = torch.ones(logits.shape, dtype=torch.bool)
    for r, tokens in enumerate(wanted):
        forbidden[r, sorted(tokens)] = False
    expected[forbidden] = -torch.inf
    before = logits.clone()
    tokens, reached = device.step(logits, states, budget)
    assert torch.equal(logits.view(torch.int8), before.view(torch.int8))
    assert torch.equal(
        device.mask_logits_(logits, states, budget).view(torch.int8), expected.view(torch.int8)
    )
    for r, token in enumerate(tokens.tolist()):
        finite = expected[r, sorted(wanted[r])]
        assert token in wanted[r]
        first = sorted(wanted[r])[int(finite.argmax())]
        assert token == first
    assert torch.equal(reached, device.advance(states, tokens))
    drawn, _ = device.step(
        before, states, budget, temperature=0.7, top_k=rng.choice([None, 1, 2]), top_p=rng.choice([None, 0.5])
    )
    assert all(token in wanted[r] for r, token in enumerate(drawn.tolist()))


@pytest.mark.parametrize("seed", range(4))
def test_as_matchers(make: Any, seed: int) -> None:
    check(make, seed, 7)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 200))
def test_as_matchers_at_length(make: Any, seed: int) -> None:
    check(make, seed, 60)


def test_implementations_agree_on_anything(tekken: Vocabulary) -> None:
    """Any states and tokens, out of range ones too, on a real vocabulary."""
    rng = np.random.default_rng(0)
    automata = [
        automaton(p, tekken) for p in (r'"([^"\\]|\\.)*"', r"[0-9]{3}-[0-9]{4}", r"(yes|no) [a-z]{2,9}")
    ]
    native = DeviceAutomaton(automata)
    states = torch.from_numpy(rng.integers(-3, native.num_states + 5, 300).astype(np.int32))
    states[:2] = torch.tensor([2**31 - 1, -(2**31)])
    tokens = torch.from_numpy(rng.integers(-2, len(tekken) + 2, 300))
    tokens[2:4] = torch.tensor([2**62, -(2**62)])
    tokens[4:60] = torch.from_numpy(
        rng.choice([t for t in range(len(tekken)) if tekken.tokens[t].isdigit()], 56)
    )
    budget = torch.from_numpy(rng.integers(-1, 6, 300).astype(np.int32))
    logits = torch.from_numpy(rng.standard_normal((300, len(tekken) + 7)).astype(np.float32))[:24]
    results = []
    for device in (native, Plain(automata)):
        some = states[:24]
        results.append(
            [
                device.advance(states, tokens),
                device.bitmask(some, budget[:24]),
                device.compose(some),
                device.mask_logits_(logits.clone(), some, 3),
                *device.step(logits, some, budget[:24]),
                *device.step(
                    logits,
                    some,
                    temperature=1.3,
                    top_k=50,
                    top_p=0.9,
                    generator=torch.Generator().manual_seed(3),
                ),
            ]
        )
    for ours, reference in zip(*results, strict=True):
        assert ours.dtype == reference.dtype and torch.equal(ours, reference)


def test_an_object_over_a_real_vocabulary(tekken: Vocabulary) -> None:
    """Texts of JSON objects to their ends, under budgets, against matchers: every mask, every state."""
    pattern = (
        r'\{"name": "[^"\\]{0,20}"(, "age": (0|[1-9][0-9]{0,2}))?(, "tags": \["[a-z]+"(, "[a-z]+")*\])?\}'
    )
    made = automaton(pattern, tekken).expand()
    device = DeviceAutomaton(made)
    rows = [Row(made, tekken, left) for left in (made.distance(), made.distance() + 1, 18, 30)]
    states = device.start_states([0] * 4)
    torch.manual_seed(0)
    for _ in range(30):
        budget = torch.tensor([-1 if row.over else row.left for row in rows], dtype=torch.int32)
        masks = device.bitmask(states, budget).numpy()
        assert [ids(words, len(tekken)) for words in masks] == [row.allowed() for row in rows]
        tokens, states = device.step(torch.randn(4, len(tekken)), states, budget)
        for row, token in zip(rows, tokens.tolist(), strict=True):
            row.accept(token)
        assert not device.is_dead(states).any()
    assert all(row.matcher.is_accepting() or row.over for row in rows)


def test_many_rows_are_shared_by_threads(tekken: Vocabulary) -> None:
    device = DeviceAutomaton(automaton("[0-9]+", tekken))
    logits = torch.randn(40, len(tekken))
    whole, states = logits.clone(), device.start_states(40)
    device.mask_logits_(whole, states)
    for row in range(40):
        assert torch.equal(device.mask_logits_(logits[row : row + 1].clone(), states[:1])[0], whole[row])


@pytest.mark.parametrize("seed", range(2))
def test_masks_composed_at_each_step(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(6):
        vocabulary = random_vocabulary(rng)
        automata = random_automata(rng, vocabulary, 2)
        if not vocabulary.native.complete:
            with pytest.raises(ConstraintError, match="not every byte"):
                ComposingDeviceAutomaton(automata)
            continue
        device = ComposingDeviceAutomaton(automata)
        rows = [Row(automaton, vocabulary, None) for automaton in automata]
        states = device.start_states([0, 1])
        for _ in range(7):
            wanted = [row.allowed() for row in rows]
            assert [ids(words, len(vocabulary)) for words in device.bitmask(states).numpy()] == wanted
            logits = torch.randn(2, len(vocabulary) + 3)
            tokens, reached = device.step(logits, states, temperature=rng.choice([0.0, 1.0]))
            assert all(token in wanted[row] for row, token in enumerate(tokens.tolist()))
            masked = device.mask_logits_(logits, states).isfinite()
            assert [set(row.nonzero()[:, 0].tolist()) for row in masked] == wanted
            states = device.advance(states, tokens)
            assert torch.equal(states, reached)
            for row, token in zip(rows, tokens.tolist(), strict=True):
                row.accept(token)
            assert device.is_accepting(states).tolist() == [
                row.over or row.matcher.is_accepting() for row in rows
            ]
        for refused in (
            lambda device=device, states=states: device.bitmask(states, 3),
            lambda device=device, states=states: device.distance(states),
            lambda device=device: device.start(0, 3),
        ):
            with pytest.raises(TokenLimitError):
                refused()


# --- forks, beams, drafts: gathers ---


def test_rows_are_numbers(make: Any) -> None:
    device = make(automaton("(ab|c)+"))
    states = device.start_states(2)
    steps = [states]
    for token in ([2, 0], [3, 1], [4, 4]):
        states = device.advance(states, torch.tensor(token))
        steps.append(states)
    assert device.is_ended(states).tolist() == [True, True]
    beams = steps[1][torch.tensor([1, 1, 0])]
    assert device.is_accepting(beams).tolist() == [False, False, True]
    assert torch.equal(device.advance(steps[0], torch.tensor([2, 0])), steps[1])


def test_rows_without_any_weight(make: Any) -> None:
    """Greedy choices are those of ``argmax``, for which NaN is greatest; samplers take the first allowed token."""
    device = make(automaton("(b|c)+"))  # tokens 1 and 3
    states, logits = device.start_states(3), torch.full((3, 6), -math.inf)
    logits[1] = math.nan
    logits[2, 3] = math.nan
    logits[:, 0] = 1.0  # a token that is not allowed
    assert device.step(logits, states)[0].tolist() == [1, 1, 3]
    for heat in (0.0, 1.0):
        sampler = DeviceSampler(device, 3, temperature=heat)
        assert sampler.choose(logits, states).tolist() == [1, 1, 1] and sampler.forced.tolist() == [1, 1, 1]
    for options in ({}, {"top_k": 1}, {"top_p": 0.5}):
        assert set(device.choose(logits, states, temperature=1.0, **options).tolist()) <= {1, 3}


# --- what is refused ---


def test_bad_tensors(make: Any) -> None:
    device = make(automaton("ab"))
    states, logits, tokens = device.start_states(2), torch.zeros(2, 6), torch.zeros(2, dtype=torch.int64)
    for bad in (states.long(), states[None], states.to("meta"), torch.zeros(4, dtype=torch.int32)[::2]):
        with pytest.raises(StateError, match="states must be"):
            device.advance(bad, tokens)
    for bad in (tokens.int(), tokens[:1], tokens.to("meta"), torch.zeros(4, dtype=torch.int64)[::2]):
        with pytest.raises(TokenIdError, match="tokens must be"):
            device.advance(states, bad)
    for bad, message in (
        (logits[0], "must have shape"),
        (logits[:1], "must have shape"),
        (logits.to("meta"), "meta"),
        (torch.zeros(6, 2).T, "contiguous"),
        (torch.zeros(1, 6).expand(2, 6), "overlap"),
        (logits.int(), "logits must be float32"),
    ):
        with pytest.raises(MaskBufferError, match=message):
            device.mask_logits_(bad, states)
    with pytest.raises(VocabularyMismatchError, match="scores 5 tokens, and the vocabulary has 6"):
        device.mask_logits_(torch.zeros(2, 5), states)
    for bad in (torch.zeros(2), torch.zeros(3, dtype=torch.int32)):
        with pytest.raises(StateError, match="max_new_tokens must be"):
            device.mask_logits_(logits, states, bad)
    for options in ({"temperature": -1.0}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}):
        with pytest.raises(ArgumentValueError, match=next(iter(options))):
            device.step(logits, states, **options)
    wide = torch.zeros(2, 20)[:, :9]
    assert device.mask_logits_(wide, states).isfinite().sum(1).tolist() == [2, 2]
    assert device.mask_logits_(torch.zeros(2, 6, dtype=torch.float64), states).isfinite().sum() == 4


def test_out_of_range_is_dead_or_told(make: Any) -> None:
    device = make(automaton("ab"))
    states = torch.tensor([2, 99, -1, 1, 2], dtype=torch.int32)
    tokens = torch.tensor([6, 0, 0, 77, -1])
    assert device.advance(states, tokens).tolist() == [0, 0, 0, 1, 0]
    assert device.mask_logits_(torch.zeros(5, 6), states).isfinite().sum(1).tolist() == [2, 1, 1, 1, 2]
    wide = torch.tensor([2**31, 2**32, 2**32 + 1, 2**63 - 1, -(2**63)])
    assert device.advance(torch.full((5,), 2, dtype=torch.int32), wide).tolist() == [0] * 5
    checked = make(automaton("ab"), debug=True)
    with pytest.raises(StateError, match="row 1 has state 99, and the automata have 5 states, from 0"):
        checked.advance(states, tokens)
    with pytest.raises(StateError, match="row 2 has state -1"):
        checked.mask_logits_(torch.zeros(1, 6).repeat(3, 1), torch.tensor([2, 2, -1], dtype=torch.int32))
    with pytest.raises(TokenIdError, match="token id 6 of row 0 lies outside the vocabulary of 6 tokens"):
        checked.advance(states[:1], tokens[:1])


@pytest.mark.parametrize(
    "pattern", ["(?P<TEXT_TOKEN>){2,3}", "a(?P<TEXT_TOKEN>)b?", "ac|(?P<TEXT_TOKEN>){2}b"]
)
def test_languages_that_speak_of_tokens(make: Any, pattern: str) -> None:
    made = automaton(pattern, EVERY_BYTE)
    device, rng = make(made), random.Random(0)
    for left in (None, None, 4):
        row, states = Row(made, EVERY_BYTE, left), device.start_states(1)
        for _ in range(5):
            budget = -1 if row.over or row.left is None else row.left
            assert ids(device.bitmask(states, budget).numpy()[0], len(EVERY_BYTE)) == row.allowed()
            token = rng.choice(sorted(row.allowed() & set(b"abc") | {256, 257}))
            row.accept(token)
            states = device.advance(states, torch.tensor([token]))
            assert bool(device.is_dead(states)) == row.dead or budget >= 0
            if bool(device.is_dead(states)) or row.dead:
                break


def test_special_tokens_in_a_language_are_refused() -> None:
    special = Vocabulary([*EVERY_BYTE.tokens, b""], 257, {"<tool>": 258})
    with pytest.raises(ConstraintError, match="special tokens"):
        DeviceAutomaton(compile(special_token("<tool>") + regex("a"), special))
    with pytest.raises(ConstraintError, match="constrains tokens"):
        ComposingDeviceAutomaton(automaton("(?P<TEXT_TOKEN>)", EVERY_BYTE))


def test_bad_automata(tmp_path: Path) -> None:
    other = Vocabulary([b"a", b"b", b""], 2)
    with pytest.raises(VocabularyMismatchError, match="one vocabulary"):
        DeviceAutomaton([automaton("ab"), automaton("ab", other)])
    with pytest.raises(ValueError, match="empty"):
        DeviceAutomaton([])
    with pytest.raises(TypeError, match="not of int"):
        DeviceAutomaton([3])  # type: ignore[list-item]
    path = tmp_path / "ab.safetensors"
    automaton("ab").save(path)
    with pytest.raises(ValueError, match="needs the vocabulary"):
        DeviceAutomaton(path)
    with pytest.raises(VocabularyMismatchError, match="was compiled for the vocabulary"):
        DeviceAutomaton(str(path), vocabulary=other)
    assert DeviceAutomaton(path, vocabulary=ABC).num_states == 5
    nested = compile(lark_grammar('start: "a" start "b" | "c"'), ABC)
    with pytest.raises(ConstraintError, match=r"truncate\(depth\)"):
        DeviceAutomaton(nested)
    with pytest.raises(EmptyLanguageError):
        DeviceAutomaton(automaton("d"))


def test_strings_that_must_differ_are_refused() -> None:
    """Device tables remember no names: with them alone a name could come twice."""
    schema = {"type": "object", "additionalProperties": {"type": "boolean"}}
    bytes_alone = Vocabulary([bytes([byte]) for byte in range(256)] + [b""], 256)
    with pytest.raises(ConstraintError, match=r"must differ.*DeviceMatchers, or .*repeated_names=\"allow\""):
        DeviceAutomaton(compile(json_schema(schema), bytes_alone))
    assert DeviceAutomaton(compile(json_schema(schema, repeated_names="allow"), bytes_alone)).num_states > 2


def test_budgets_are_asked_for(make: Any) -> None:
    device = make(automaton("a*b"), token_limits=False)
    with pytest.raises(TokenLimitError, match="token_limits=True"):
        device.step(torch.zeros(1, 6), device.start_states(1), 3)
    with pytest.raises(TokenLimitError, match="0 tokens: the least number from here is 1"):
        device.start(0, max_new_tokens=0)
    assert device.start(0, max_new_tokens=1) == 2


def test_capacity_bounds_what_is_resident() -> None:
    first, second = automaton("(ab|c){2,5}"), automaton("c+b")
    size = DeviceAutomaton(first).memory().total
    with pytest.raises(BudgetExceeded, match=r"device tables, when regex\('c\+b'\) was added"):
        DeviceAutomaton([first, second], capacity=size)
    device = DeviceAutomaton(first, capacity=size)
    states = device.start_states(1)
    with pytest.raises(BudgetExceeded):
        device.add(second)
    assert len(device) == 1 and device.memory().total == size
    assert device.mask_logits_(torch.zeros(1, 6), states).isfinite().nonzero()[:, 1].tolist() == [0, 2, 3]


def test_automata_come_later(make: Any) -> None:
    patterns = ["(ab|c){2,5}", "c+b", "a*", "b(ab)?", "[abc]{7}"]
    device, alone = make(automaton(patterns[0])), []
    states = [device.start_states(1)]
    for pattern in patterns[1:]:
        index = device.add(automaton(pattern))
        states.append(device.start_states([index]))
    assert len(device) == 5 and device.generation > 0
    together = device.bitmask(torch.cat(states), 8)
    for pattern in patterns:
        single = make(automaton(pattern))
        alone.append(single.bitmask(single.start_states(1), 8))
    assert torch.equal(together, torch.cat(alone))
    before = device.memory()
    again = device.add(automaton(patterns[0]))
    assert again == 5 and device.memory().total >= before.total


def test_equal_rows_are_kept_once(tekken: Vocabulary) -> None:
    automata = [automaton(f'"([^"\\\\]|\\\\.)*"{suffix}', tekken) for suffix in ("", "!", "[0-9]")]
    rows = [DeviceAutomaton(automata[:count], token_limits=False).tables.rows.shape[0] for count in (1, 2, 3)]
    assert all(later - earlier < rows[0] - 1 for earlier, later in pairwise(rows))


def test_many_end_tokens(make: Any) -> None:
    vocabulary = Vocabulary([b"a", *[b""] * 600, b"b"], list(range(1, 601)))
    device = make(automaton("ab", vocabulary))
    states = torch.tensor([0, 1, 2], dtype=torch.int32)
    assert device.mask_logits_(torch.zeros(3, 602), states).isfinite().sum(1).tolist() == [600, 600, 1]
    states = device.advance(device.start_states(3), torch.tensor([0, 0, 300]))
    states = device.advance(states, torch.tensor([601, 600, 0]))
    assert device.advance(states, torch.tensor([300, 300, 300])).tolist() == [1, 0, 0]


def test_long_lists_of_flips_become_rows() -> None:
    """A file of another writer may hold any list."""
    vocabulary = Vocabulary(
        [*(b"a" + bytes([i // 250 + 1, i % 250 + 1]) for i in range(1500)), b"a", b""], 1501
    )
    made = automaton("(?s:a..)", vocabulary).expand()
    arrays = dict(made.arrays())
    bits = np.unpackbits(arrays["rows"].view(np.uint8), axis=1, bitorder="little")
    assert len(bits) == 1
    arrays |= {
        "rows": np.zeros((0, arrays["rows"].shape[1]), np.uint32),
        "mask_row": np.zeros_like(arrays["mask_row"]),
    }
    row = int(np.flatnonzero(made.arrays()["mask_row"])[0])
    lists = [made.arrays()["flips"][b:e] for b, e in pairwise(made.arrays()["flip_offsets"].tolist())]
    assert len(lists[row]) == 0
    lists[row] = np.flatnonzero(bits[0]).astype(np.uint32)
    arrays["flips"] = np.concatenate(lists)
    arrays["flip_offsets"] = np.concatenate([[0], np.cumsum([len(part) for part in lists])]).astype(np.uint32)
    other = TokenAutomaton._from_arrays(arrays, vocabulary, "other writer", made.budget)
    for budgets in (False, True):
        device = DeviceAutomaton([made, other], token_limits=budgets)
        masks = device.bitmask(device.start_states([0, 1]))
        assert torch.equal(masks[0], masks[1]) and device._flips <= 512


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "int32", "bool", "complex64"])
def test_dtypes_without_kernels_are_refused(make: Any, dtype: str) -> None:
    device = make(automaton("ab"))
    states, logits = device.start_states(1), torch.zeros(1, len(ABC)).to(getattr(torch, dtype))
    for call in (device.mask_logits_, device.choose, device.step, device.check):
        with pytest.raises(MaskBufferError, match=f"float64, not torch.{dtype}"):
            call(logits, states)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"temperature": t}, "temperature must not be negative") for t in (-1.0, math.nan, math.inf)),
        *(({"top_k": k}, "top_k must be at least 1") for k in (0, -3)),
        *(({"top_p": p}, "top_p must be more than 0") for p in (0.0, 1.1, math.nan)),
        ({"generator": torch.Generator("cpu")}, None),
        ({"generator": 5}, "generator must be a torch.Generator"),
    ],
)
def test_options_of_sampling(options: dict[str, Any], message: str | None) -> None:
    device = DeviceAutomaton(automaton("ab"))
    logits, given = torch.zeros(1, len(ABC)), {"temperature": 1.0} | options
    for call in (device.choose, device.step):
        if message is None:
            call(logits, device.start_states(1), **given)
            continue
        with pytest.raises(TokenfstError, match=message):
            call(logits, device.start_states(1), **given)
    with pytest.raises(ArgumentValueError, match="generator must be on meta, not on cpu"):
        options_of_sampling.check_sampling(1.0, None, None, torch.Generator("cpu"), torch.device("meta"))
