"""Scores that are paged in: beside brute force over derivations, and bit for bit beside the host's matchers."""

from __future__ import annotations

import math
import random
import threading
from typing import Any

import numpy as np
import pytest

from reference.grammars.derivations import as_templates, derived, prefix_weight
from reference.transducers.random_arpa import arpa
from tests.automata.weighted_grammars.test_weighted_grammar import log, random_rules
from tests.decoding.scores.test_token_scores import random_language
from tests.support.running.interpreted import interpreted
from tokenfst import NGramModel, Vocabulary, WeightedGrammar, boost, compile
from tokenfst.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BudgetExceeded,
    MaskBufferError,
    StateError,
    TokenIdError,
    VocabularyMismatchError,
)

torch = pytest.importorskip("torch")
score_matchers = pytest.importorskip("tokenfst.decoding.device.weighted.score_matchers")
DeviceScoreMatchers = score_matchers.DeviceScoreMatchers

PIECES = [b"a", b"b", b"ab", b"ba", b"aab", b"abba", b"a", b"", b"", b"bb", b"c"]
END, SPECIAL, WIDTH = 7, 8, 13
INITIAL = [b"b" if piece == b"ab" else b"" if piece == b"bb" else piece for piece in PIECES]
VOCABULARIES = [
    Vocabulary(PIECES, END),
    Vocabulary(PIECES, [END], initial_tokens=INITIAL),
    Vocabulary(PIECES, [END], initial_tokens=INITIAL, start_absorbs=True),
]
PLAIN = VOCABULARIES[0]


def scorers(vocabulary: Vocabulary, seed: int) -> list[Any]:
    """What ``DeviceScores`` cannot hold, and something that it can."""
    rules = random_rules(seed, recursive=seed % 2 == 1)
    ambiguous = next(found for at in range(99) if not (found := random_language(seed + at)).is_empty())
    return [
        compile(WeightedGrammar(as_templates(rules)), vocabulary),
        compile(ambiguous, vocabulary),
        compile(NGramModel.from_arpa(arpa(["0", "1", "4"], 3, seed), unit="token"), vocabulary),
        compile(boost({"ab": 2.0, "bba": -1.0}), vocabulary),
    ]


def check(kind: Any, seed: int, steps: int = 6) -> None:
    """Random walks of a batch, in each way to make room, beside the host's matchers: equal bit for bit."""
    draw = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    for vocabulary, overflow in zip(VOCABULARIES, ("evict", "grow", "evict"), strict=True):
        kinds = scorers(vocabulary, seed)
        host = [draw.choice(kinds).matcher() for _ in range(5)]
        paged = kind([each.fork() for each in host], vocabulary, slots=5, overflow=overflow)
        dead = [False] * len(host)
        for _ in range(steps):
            states = paged.states()
            weight = draw.choice([1.0, 0.3, -2.0, 0.0])
            dtype = draw.choice([torch.float32, torch.bfloat16, torch.float16])
            logits = torch.randn((5, WIDTH), generator=generator).to(dtype)
            wanted = logits.clone()
            for row, matcher in enumerate(host):
                if dead[row]:
                    wanted[row] = torch.where(torch.arange(WIDTH) == END, wanted[row], -torch.inf)
                else:
                    matcher.scores_into(wanted, weight, row)
            found = paged.scores_into(logits.clone(), states, weight)
            if kind is DeviceScoreMatchers:
                assert torch.equal(found, wanted)
            else:
                torch.testing.assert_close(found, wanted)
            weights = [
                -math.inf if ended else each.log_weight for ended, each in zip(dead, host, strict=True)
            ]
            assert paged.log_weights() == weights
            likely = [int(row.float().exp().multinomial(1, generator=generator)) for row in found]
            tokens = [draw.randrange(len(PIECES)) if draw.random() < 0.2 else token for token in likely]
            paged.follow(torch.tensor(tokens))
            for row, token in enumerate(tokens):
                if not dead[row] and not host[row].is_terminated():
                    dead[row] = not host[row].accept_token(token)
        assert paged.paging.steps == steps


@pytest.mark.parametrize("seed", range(12))
def test_as_matchers(seed: int) -> None:
    check(DeviceScoreMatchers, seed)


def test_by_triton() -> None:
    pytest.importorskip("triton", reason="Triton is not installed: pip install triton")
    interpreted("""
from tests.decoding.device.weighted.test_device_score_matchers import DeviceScoreMatchers, check
from tokenfst.decoding.device.kernels.scores import triton as triton_scores

class Interpreted(DeviceScoreMatchers):
    def _triton(self, states):
        return triton_scores

for seed in range(3):
    check(Interpreted, seed, 4)
""")


@pytest.mark.parametrize("seed", range(20))
def test_grammars_as_their_derivations(seed: int) -> None:
    """Every text of a small grammar, up to three tokens, in one batch."""
    rules = random_rules(seed, recursive=False)
    texts, lost = derived(rules, "start")
    assert lost == 0
    automaton = compile(WeightedGrammar(as_templates(rules)), PLAIN)
    pending: list[list[int]] = [[]]
    for _ in range(3):
        matchers = [automaton.matcher() for _ in pending]
        for matcher, tokens in zip(matchers, pending, strict=True):
            assert matcher.accept_tokens(tokens)
        paged = DeviceScoreMatchers(matchers, PLAIN)
        rows = paged.scores(paged.states()).tolist()
        longer = []
        for tokens, row in zip(pending, rows, strict=True):
            text = b"".join(PIECES[token] for token in tokens)
            before = prefix_weight(texts, text)
            due = [
                log(texts.get(text, 0) / before) if token == END
                else -math.inf if not data
                else log(prefix_weight(texts, text + data) / before)
                for token, data in enumerate(PIECES)
            ]  # fmt: skip
            assert row == pytest.approx(due, abs=1e-5)
            longer += [[*tokens, token] for token, one in enumerate(due) if one > -math.inf and token != END]
        pending = longer[:40]


def test_equal_places_have_one_row() -> None:
    """As on the host: after "[[a" and "[[aa" the same may follow."""
    nested = {"start": {"[{start}]": 0.3, "[]": 0.2, "{word}": 0.4}, "word": {"{word}a": 0.5, "a": 0.25}}
    vocabulary = Vocabulary([b"[", b"]", b"a", b""], 3)
    automaton = compile(WeightedGrammar(nested), vocabulary)
    paged = DeviceScoreMatchers([automaton.matcher(), automaton.matcher()], vocabulary, slots=4)
    for token in (0, 0, 2, 2, 2, 2):
        assert len(set(paged.states().tolist())) == 1
        paged.follow(torch.tensor([token, token]))
    paged.states()
    assert automaton.rows_made == paged.paging.pages == 4
    assert paged.paging.evictions == 0 and paged.memory == 6 * 4 * 4 and paged.generation == 1
    assert "2 matchers, 4 rows" in repr(paged)


def test_a_full_table() -> None:
    automaton = compile(WeightedGrammar({"start": {"abba": 1}}), PLAIN)
    kept = {
        way: DeviceScoreMatchers([automaton.matcher()], PLAIN, slots=2, overflow=way)
        for way in ("evict", "raise")
    }
    for step, token in enumerate((0, 1, 1, 0)):
        kept["evict"].states()
        if step < 2:
            kept["raise"].states()
        else:
            with pytest.raises(BudgetExceeded, match="more than 2 slots"):
                kept["raise"].states()
        for paged in kept.values():
            paged.follow(torch.tensor([token]))
    assert kept["evict"].scores(kept["evict"].states())[0].tolist() == [
        0.0 if token == END else -math.inf for token in range(len(PIECES))
    ]
    assert kept["evict"].paging.evictions == 3
    size = 4 * len(PIECES)
    growing = DeviceScoreMatchers([automaton.matcher()], PLAIN, slots=1, overflow="grow", capacity=4 * size)
    growing.states()
    growing.follow(torch.tensor([0]))
    growing.states()
    assert growing.memory == 4 * size and growing.generation == 2
    growing.follow(torch.tensor([1]))
    with pytest.raises(BudgetExceeded, match=r"scores on the device .* rows"):
        growing.states()
    with pytest.raises(BudgetExceeded, match=r"scores on the device .* rows"):
        DeviceScoreMatchers([automaton.matcher()], PLAIN, capacity=size)
    matchers = [automaton.matcher() for _ in range(3)]
    for count, matcher in enumerate(matchers):
        matcher.accept_tokens([0, 1][:count])
    with pytest.raises(BudgetExceeded, match="one step"):
        DeviceScoreMatchers(matchers, PLAIN, slots=2).states()


def test_numbers_that_are_no_state() -> None:
    paged = DeviceScoreMatchers([compile(boost(["ab"]), PLAIN).matcher()], PLAIN, slots=1)
    states = torch.tensor([-5, 10_000, 0, 1], dtype=torch.int32)
    end_only = [0.0 if token == END else -math.inf for token in range(len(PIECES))]
    assert paged.scores(states).tolist() == [end_only] * 4
    assert paged.scores_into(torch.zeros((0, WIDTH)), states[:0]).shape == (0, WIDTH)


def test_errors_of_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails on the thread is raised by the next call, whatever it is; then the rows are where they were."""
    automaton = compile(WeightedGrammar({"start": {"a{start}": 0.5, "b": 0.5}}), PLAIN)
    paged = DeviceScoreMatchers([automaton.matcher()], PLAIN)
    before = paged.log_weights()
    for call in (paged.states, paged.log_weights, lambda: paged.follow(torch.tensor([0]))):
        paged.follow(torch.tensor([999]))
        with pytest.raises(TokenIdError, match="999"):
            call()
        assert paged.log_weights() == before
    gate, row = threading.Event(), type(automaton).row

    def slow(self: Any, node: Any) -> Any:
        gate.wait(10)
        return row(self, node)

    monkeypatch.setattr(type(automaton), "row", slow)
    waiting = DeviceScoreMatchers([automaton.matcher()], PLAIN)
    threading.Timer(0.05, gate.set).start()
    waiting.states()
    assert waiting.paging.stalls == 1


def test_what_is_refused() -> None:
    matcher = compile(boost(["a"]), PLAIN).matcher()
    with pytest.raises(ArgumentTypeError, match=r"matchers\[0\]"):
        DeviceScoreMatchers([compile(boost(["a"]), PLAIN)], PLAIN)
    with pytest.raises(VocabularyMismatchError, match=r"matchers\[0\]"):
        DeviceScoreMatchers([matcher], Vocabulary([b"a", b""], 1))
    with pytest.raises(ValueError, match="twice"):
        DeviceScoreMatchers([matcher, matcher], PLAIN)
    with pytest.raises(ValueError, match="overflow"):
        DeviceScoreMatchers([matcher], PLAIN, overflow="forget")
    with pytest.raises(ArgumentValueError, match="capacity"):
        DeviceScoreMatchers([matcher], PLAIN, capacity=-1)
    paged = DeviceScoreMatchers([matcher], PLAIN)
    for bad in (torch.tensor([0], dtype=torch.int32), torch.tensor([0, 0])):
        with pytest.raises(TokenIdError, match="tokens must be int64"):
            paged.follow(bad)
    states = paged.states()
    with pytest.raises(StateError):
        paged.scores(states.long())
    with pytest.raises(MaskBufferError, match="floating"):
        paged.scores_into(torch.zeros((1, WIDTH), dtype=torch.int32), states)
    with pytest.raises(ArgumentValueError, match="weight"):
        paged.scores_into(torch.zeros(1, WIDTH), states, np.nan)
