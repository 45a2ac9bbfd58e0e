"""Scores on a device: beside their definition and the host's matchers, in plain torch and by Triton's interpreter."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from reference.transducers.random_arpa import arpa
from reference.transducers.weighted import token_scores
from tests.decoding.scores.test_token_scores import random_language
from tests.support.running.interpreted import interpreted
from tokenfst import (
    Budget,
    NGramModel,
    Vocabulary,
    WeightedGrammar,
    WeightedLanguage,
    boost,
    compile,
    prefer,
    regex,
)
from tokenfst.errors import (
    ArgumentValueError,
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    MaskBufferError,
    StateError,
    TokenIdError,
    VocabularyMismatchError,
)

torch = pytest.importorskip("torch")
scores = pytest.importorskip("tokenfst.decoding.device.weighted.scores")

PIECES = [b"a", b"b", b"ab", b"c", b"ba", b"abc", b"a", b"", b"", b"\xc3", b"bb"]
END, SPECIAL, WIDTH = 7, 8, 13
PLAIN = Vocabulary(PIECES, END)
INITIAL = [b"b" if piece == b"ab" else b"" if piece == b"c" else piece for piece in PIECES]
VOCABULARIES = [
    PLAIN,
    Vocabulary(PIECES, END, initial_tokens=INITIAL),
    Vocabulary(PIECES, [END], initial_tokens=INITIAL, start_absorbs=True),
]


def languages() -> list[WeightedLanguage]:
    return [
        prefer(regex("(ab|c)*b"), by=1.5),
        boost({"abc": 2.0, "ba": -1.0, "cab": 0.5}),
        NGramModel.from_arpa(arpa(["a", "b", "c"], 3, 1), unit="character").to_weighted(),
        WeightedLanguage.alternatives({"ab": 1, "abc": 2, "": 3}).determinize().normalized(),
    ]


def check(kind: Any, seed: int, steps: int = 5, layout: str = "auto") -> None:
    """Random walks of a batch beside the host's matchers; some rows resident, some not."""
    draw = random.Random(seed)
    for vocabulary in VOCABULARIES:
        for language in languages():
            device = kind(language, vocabulary, layout=layout)
            host = [compile(language, vocabulary).matcher() for _ in range(4)]
            states, totals = device.start_states(4), torch.zeros(4)
            for step in range(steps):
                weight, dtype = (
                    draw.choice([1.0, 0.3, -2.0, 0.0]),
                    draw.choice([torch.float32, torch.bfloat16]),
                )
                logits = torch.randn((4, WIDTH), generator=torch.Generator().manual_seed(step)).to(dtype)
                wanted = logits.clone()
                for row, matcher in enumerate(host):
                    matcher.scores_into(wanted, weight, row)
                found = device.scores_into(logits.clone(), states, weight)
                torch.testing.assert_close(
                    found, wanted, rtol=2e-2 if dtype is torch.bfloat16 else 1e-5, atol=1e-5
                )
                if step == 2:
                    device.keep(states[:2])
                tokens = [draw.randrange(len(PIECES)) for _ in host]
                states, gained = device.advance(states, torch.tensor(tokens))
                totals += gained
                for row, matcher in enumerate(host):
                    if matcher.is_terminated():
                        assert bool(device.is_ended(states)[row])
                        continue
                    if matcher.accept_token(tokens[row]):
                        weighs = matcher.log_weight - language.machine.initial
                        assert float(totals[row]) == pytest.approx(weighs, abs=1e-4)
                    else:
                        assert bool(device.is_dead(states)[row])
                        dead = [0.0 if token == END else -math.inf for token in range(len(PIECES))]
                        assert device.scores(states)[row].tolist() == dead
                        host[row], totals[row] = compile(language, vocabulary).matcher(), 0.0
                        states[row] = device.start


@pytest.mark.parametrize("layout", ["table", "arcs"])
@pytest.mark.parametrize("seed", range(4))
def test_as_matchers(seed: int, layout: str) -> None:
    check(scores.DeviceScores, seed, layout=layout)


def test_by_triton() -> None:
    pytest.importorskip("triton", reason="Triton is not installed: pip install triton")
    interpreted("""
from tests.decoding.device.weighted.test_device_scores import check, scores
from tokenfst.decoding.device.kernels.scores import triton as triton_scores

class Interpreted(scores.DeviceScores):
    def _triton(self, states):
        return triton_scores

check(Interpreted, 0, 4, "table")
check(Interpreted, 1, 4, "arcs")
""")


@pytest.mark.parametrize("language", languages(), ids=lambda language: language.source[:12])
@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize("layout", ["table", "arcs"])
def test_as_the_definition(language: WeightedLanguage, layout: str, resident: bool) -> None:
    device = scores.DeviceScores(language, PLAIN, layout=layout)
    if resident:
        assert device.keep() == device.num_states == device.resident
    pending = [(b"", device.start_states(1))]
    while pending:
        text, states = pending.pop()
        due = token_scores(language.machine, text, PIECES, (END,), language.special_weight)
        assert device.scores(states)[0].tolist() == pytest.approx(due, abs=1e-5)
        for token, score in enumerate(due):
            reached, found = device.advance(states, torch.tensor([token]))
            assert float(found[0]) == pytest.approx(score, abs=1e-5)
            if score > -math.inf and PIECES[token] and len(text) < 3 and token in (0, 1, 3):
                pending.append((text + PIECES[token], reached))


@pytest.mark.parametrize("seed", range(20))
def test_failures_of_random_models(seed: int) -> None:
    """Each way of up to four characters, with chains of failures of several lengths, beside the model itself."""
    symbols = ["a", "b", "c", "\u00e9"]
    model = NGramModel.from_arpa(arpa(symbols, 4, seed), unit="character")
    device = scores.DeviceScores(
        model, Vocabulary([*(each.encode() for each in symbols), b""], 4), layout="arcs"
    )
    pending, places = [(model.start, 0)], device.start_states(1)
    for _ in range(4):
        due = [[model.log_prob(at, each) for each in [*symbols, "</s>"]] for at, _ in pending]
        torch.testing.assert_close(device.scores(places), torch.tensor(due), rtol=1e-5, atol=1e-5)
        steps = [
            (row, token) for row, scored in enumerate(due) for token in range(4) if scored[token] > -math.inf
        ]
        rows, tokens = (torch.tensor(each) for each in zip(*steps, strict=True))
        places, gained = device.advance(places[rows], tokens)
        torch.testing.assert_close(
            gained, torch.tensor([due[row][token] for row, token in steps]), rtol=1e-5, atol=1e-5
        )
        pending = [(model.after(pending[row][0], symbols[token]), 0) for row, token in steps]


def test_the_layout_that_fits() -> None:
    draw = random.Random(0)
    letters = [chr(code) for code in range(97, 123)]
    text = "".join(draw.choices(letters, k=400))
    grams = sorted({text[at : at + 3] for at in range(398)})
    pairs, single = sorted({gram[:2] for gram in grams}), letters
    lines = ["\\data\\", f"ngram 1={len(single) + 2}", f"ngram 2={len(pairs)}", f"ngram 3={len(grams)}"]
    lines += ["\\1-grams:", "-9 <s> -1", "-1 </s>", *(f"-1.5 {each} -0.5" for each in single)]
    lines += ["\\2-grams:", *(f"-1 {' '.join(each)} -0.25" for each in pairs)]
    lines += ["\\3-grams:", *(f"-0.5 {' '.join(each)}" for each in grams), "\\end\\"]
    model = NGramModel.from_arpa("\n".join(lines), unit="character")
    vocabulary = Vocabulary([*map(str.encode, letters), b""], 26)
    table, arcs = (scores.DeviceScores(model, vocabulary, layout=each) for each in ("table", "arcs"))
    assert scores.DeviceScores(model, vocabulary).memory == table.memory > 3 * arcs.memory
    small = scores.DeviceScores(model, vocabulary, capacity=table.memory // 2)
    assert small.memory == arcs.memory
    states = torch.arange(3, dtype=torch.int32)
    torch.testing.assert_close(small.scores(states), table.scores(states))
    with pytest.raises(BudgetExceeded):
        scores.DeviceScores(model, vocabulary, capacity=table.memory // 2, layout="table")
    with pytest.raises(BudgetExceeded):
        scores.DeviceScores(model, vocabulary, capacity=100)
    with pytest.raises(ArgumentValueError, match="layout"):
        scores.DeviceScores(model, vocabulary, layout="list")


def test_bits_are_counted() -> None:
    from tokenfst.decoding.device.kernels.scores.plain import ones

    words = [
        0,
        1,
        -1,
        1 << 30,
        -(1 << 31),
        0x55555555,
        0x7FFFFFFF,
        *random.Random(0).choices(range(1 << 31), k=99),
    ]
    found = ones(torch.tensor(words, dtype=torch.int32))
    assert found.tolist() == [(word & 0xFFFFFFFF).bit_count() for word in words]


def test_a_number_that_is_no_state() -> None:
    device = scores.DeviceScores(boost(["ab"]), PLAIN)
    states = torch.tensor([-5, 10_000, 0, 1], dtype=torch.int32)
    assert (device.scores(states)[:, END] == 0).all()
    assert int((device.scores(states) > -math.inf).sum()) == 4
    reached, gained = device.advance(states, torch.tensor([0, 0, 99, -1]))
    assert reached.tolist() == [0, 0, 0, 1]
    assert gained.tolist() == [-math.inf, -math.inf, -math.inf, 0]


def test_room() -> None:
    language = boost(["abc", "bca"])
    device = scores.DeviceScores(language, PLAIN, capacity=2000)
    start, before = device.start_states(3), device.memory
    assert device.keep(start) == 1
    assert device.memory == before + 4 * len(PLAIN)
    with pytest.raises(BudgetExceeded):
        device.keep(torch.arange(1_000, dtype=torch.int32))
        scores.DeviceScores(language, PLAIN, capacity=device.memory).keep()
    with pytest.raises(BudgetExceeded):
        scores.DeviceScores(language, PLAIN, capacity=100)
    assert "states" in repr(device)


def test_what_is_refused() -> None:
    ambiguous = random_language(5)
    assert not ambiguous.is_deterministic
    with pytest.raises(ConstraintError, match="determinize"):
        scores.DeviceScores(ambiguous, PLAIN)
    with pytest.raises(ConstraintError, match="DeviceScoreMatchers"):
        scores.DeviceScores(WeightedGrammar({"start": {"a": 1}}), PLAIN)
    with pytest.raises(EmptyLanguageError):
        scores.DeviceScores(WeightedLanguage.alternatives({}), PLAIN)
    with pytest.raises(ArgumentValueError):
        scores.DeviceScores(boost(["a"]), PLAIN, capacity=-1)
    device = scores.DeviceScores(boost(["a"], budget=Budget()), PLAIN)
    states = device.start_states(2)
    with pytest.raises(StateError):
        device.scores(states.long())
    with pytest.raises(MaskBufferError, match="shape"):
        device.scores_into(torch.zeros(3, WIDTH), states)
    with pytest.raises(MaskBufferError, match="floating"):
        device.scores_into(torch.zeros((2, WIDTH), dtype=torch.int32), states)
    with pytest.raises(MaskBufferError, match="overlap"):
        device.scores_into(torch.zeros(1, WIDTH).expand(2, -1), states)
    with pytest.raises(VocabularyMismatchError):
        device.scores_into(torch.zeros(2, 3), states)
    with pytest.raises(ArgumentValueError, match="weight"):
        device.scores_into(torch.zeros(2, WIDTH), states, np.inf)
    with pytest.raises(TokenIdError):
        device.advance(states, torch.tensor([1]))
