"""Matchers on the host with masks that stay on the device: the masks are the matchers', whatever is paged in and
out.
"""

from __future__ import annotations

import random
import sys
import threading
from typing import Any

import pytest
from support.worlds.devices.device_worlds import Row, ids, random_automata

from tests.support.worlds.token_worlds import random_vocabulary
from tokenfst import Vocabulary, compile, lark_grammar, regex
from tokenfst.errors import BudgetExceeded, TokenIdError

torch = pytest.importorskip("torch")
DeviceMatchers = pytest.importorskip("tokenfst.decoding.device.paged.matchers").DeviceMatchers

VOCABULARY = Vocabulary([bytes([byte]) for byte in range(256)] + [b"((", b"))", b""], 258)


@pytest.mark.parametrize("overflow", ["grow", "evict"])
@pytest.mark.parametrize("seed", range(3))
def test_as_matchers(overflow: Any, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(8):
        vocabulary = random_vocabulary(rng)
        automata = random_automata(rng, vocabulary, 2)
        rows = [
            Row(rng.choice(automata), vocabulary, rng.choice([None, 9])) for _ in range(rng.randint(1, 5))
        ]
        paged = DeviceMatchers(
            [row.matcher.fork() for row in rows], vocabulary, slots=len(rows), overflow=overflow
        )
        for _ in range(7):
            states = paged.states()
            wanted = [row.allowed() for row in rows]
            assert [ids(words, len(vocabulary)) for words in paged.bitmask(states).numpy()] == wanted
            logits = torch.randn(len(rows), len(vocabulary) + 1)
            tokens = paged.choose(logits, states)
            masked = paged.mask_logits_(logits.clone(), states)
            assert torch.equal(masked.argmax(1), tokens)
            assert [set(row.isfinite().nonzero()[:, 0].tolist()) for row in masked] == wanted
            if rng.random() < 0.2:
                tokens[0] = rng.randrange(len(vocabulary))
            paged.follow(tokens)
            for row, token in zip(rows, tokens.tolist(), strict=True):
                row.accept(token)
        assert paged.paging.steps == 7 and paged.paging.pages <= 7 * len(rows)


def test_stacks_stay_on_the_host_and_masks_recur() -> None:
    grammar = compile(lark_grammar('start: "(" start ")" | /[0-9]/'), VOCABULARY)
    paged = DeviceMatchers([grammar.matcher(), grammar.matcher()], VOCABULARY, slots=2)
    for byte in b"(((((((((7)))))))))":
        paged.states()
        paged.follow(torch.tensor([byte, byte]))
    paged.states()
    assert all(matcher.is_accepting() for matcher in paged.matchers)
    assert paged.paging.pages <= 5 < paged.paging.steps
    assert paged.memory().total > 0


def test_rows_in_equal_states_share_one_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[int] = []
    module = sys.modules[DeviceMatchers.__module__]
    fill = module.fill_bitmasks

    def counted(matchers: Any, words: Any) -> None:
        filled.append(len(matchers))
        fill(matchers, words)

    monkeypatch.setattr(module, "fill_bitmasks", counted)
    automaton = compile(regex("[ab]*c"), VOCABULARY)
    paged = DeviceMatchers([automaton.matcher() for _ in range(5)], VOCABULARY)
    assert len(set(paged.states().tolist())) == 1
    paged.follow(torch.tensor(list(b"abcab")))
    states = paged.states()
    wanted = torch.zeros((5, 9), dtype=torch.int32)
    for row, matcher in enumerate(paged.matchers):
        matcher.fill_next_token_bitmask(wanted, row)
    assert torch.equal(paged.bitmask(states), wanted)
    assert filled == [1, 1]  # the second step: one row after "c"; the others are in the first state


def test_canonical_tokenizations_and_many_end_tokens() -> None:
    vocabulary = Vocabulary([b"a", *[b""] * 600, b"b"], list(range(1, 601)))
    paged = DeviceMatchers([compile(regex("ab"), vocabulary).matcher() for _ in range(2)], vocabulary)
    for tokens, allowed in (([0, 601], [1, 1]), ([601, 601], [1, 600]), ([5, 5], [600, 600])):
        logits = paged.mask_logits_(torch.zeros(2, 602), paged.states())
        assert logits.isfinite().sum(1).tolist() == allowed
        paged.follow(torch.tensor(tokens))
    tiktoken = Vocabulary([*(bytes([b]) for b in range(256)), b"ab", b""], 257, split_pattern=r"\p{L}+")
    canonical = compile(regex("ab+"), tiktoken, tokenization="canonical")
    paged = DeviceMatchers([canonical.matcher()], tiktoken)
    logits = paged.mask_logits_(torch.zeros(1, 258), paged.states())
    assert logits.isfinite().nonzero()[:, 1].tolist() == [256]


def test_a_full_pool() -> None:
    automaton = compile(regex("abcdefgh"), VOCABULARY)
    raising = DeviceMatchers([automaton.matcher()], VOCABULARY, slots=2, overflow="raise")
    evicting = DeviceMatchers([automaton.matcher()], VOCABULARY, slots=2, overflow="evict")
    for step, byte in enumerate(b"abcdefgh"):
        assert evicting.bitmask(evicting.states()).sum() != 0
        if step < 2:
            raising.states()
        else:
            with pytest.raises(BudgetExceeded, match="more than 2 slots"):
                raising.states()
        for paged in (raising, evicting):
            paged.follow(torch.tensor([byte]))
    assert evicting.paging.evictions == 6
    several = [compile(regex(text), VOCABULARY).matcher() for text in "abc"]
    with pytest.raises(BudgetExceeded, match="one step"):
        DeviceMatchers(several, VOCABULARY, slots=2, overflow="evict").states()
    growing = DeviceMatchers(several, VOCABULARY, slots=1, capacity=20_000)
    assert len(set(growing.states().tolist())) == 3
    with pytest.raises(BudgetExceeded, match="bytes"):
        DeviceMatchers(several, VOCABULARY, slots=10_000, capacity=20_000)


def test_waiting_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    automaton = compile(regex("a*"), VOCABULARY)
    paged = DeviceMatchers([automaton.matcher()], VOCABULARY)
    paged.states()
    before = paged.paging.stalls
    gate, look = threading.Event(), DeviceMatchers._look

    def slow(self: Any, *arguments: Any) -> Any:
        gate.wait(10)
        return look(self, *arguments)

    monkeypatch.setattr(DeviceMatchers, "_look", slow)
    paged.follow(torch.tensor([97]))
    threading.Timer(0.05, gate.set).start()
    paged.states()
    assert paged.paging.stalls == before + 1
    paged.follow(torch.tensor([97]))
    paged._pending.result()
    paged.states()
    assert paged.paging.stalls == before + 1


def test_what_is_refused() -> None:
    matcher = compile(regex("a*"), VOCABULARY).matcher()
    with pytest.raises(ValueError, match="twice"):
        DeviceMatchers([matcher, matcher], VOCABULARY)
    with pytest.raises(ValueError, match="overflow"):
        DeviceMatchers([matcher], VOCABULARY, overflow="forget")  # type: ignore[arg-type]
    paged = DeviceMatchers([matcher], VOCABULARY)
    for bad in (torch.tensor([97], dtype=torch.int32), torch.tensor([97, 97])):
        with pytest.raises(TokenIdError, match="tokens must be int64"):
            paged.follow(bad)


def test_a_token_outside_the_vocabulary_moves_no_row() -> None:
    matchers = [compile(regex("(ab)*"), VOCABULARY).matcher() for _ in range(3)]
    paged = DeviceMatchers(matchers, VOCABULARY)
    before = paged.states()
    for ask in (paged.states, lambda: paged.follow(torch.tensor([97, 97, 97]))):
        paged.follow(torch.tensor([97, 999, 97]))
        with pytest.raises(TokenIdError, match="token id 999 lies outside"):
            ask()
        assert torch.equal(paged.states(), before) and not any(matcher.tokens for matcher in matchers)
    paged.follow(torch.tensor([97, 98, 97]))
    paged.states()
    assert [matcher.tokens for matcher in matchers] == [[97], [], [97]] and paged.dead == [False, True, False]
    paged.follow(torch.tensor([98, 999, 98]))  # a dead row has no token
    paged.states()
    assert [matcher.tokens for matcher in matchers] == [[97, 98], [], [97, 98]]
