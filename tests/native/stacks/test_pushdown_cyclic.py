"""Rules that repeat themselves without reading, and rules that are called in very many ways: answered, at a cost
that is counted, and without a deep stack of the machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.support.worlds.token_worlds import allowed
from tokenfst import Budget, Vocabulary, compile
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.gbnf import gbnf

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], 256)
CYCLIC = {
    'root ::= x "("\nx ::= x* | "c" root': True,
    'root ::= x "("\nx ::= ("b" | x)* | y\ny ::= "c" root': True,
    'root ::= "b" x | x\nx ::= x x | ("a" | root)? "ab"': False,
}


T = TypeVar("T")


def with_a_small_stack(ask: Callable[[], T]) -> T:
    """What ``ask`` returns in a thread with 256 KiB."""
    found: list[T] = []
    before = threading.stack_size(1 << 18)
    try:
        thread = threading.Thread(target=lambda: found.append(ask()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return found[0]


@pytest.mark.parametrize("text", CYCLIC)
def test_cyclic_rules_are_answered(text: str) -> None:
    grammar = gbnf(text).with_budget(Budget(states=1000))
    assert with_a_small_stack(grammar.is_deterministic) == CYCLIC[text]
    if CYCLIC[text]:
        automaton = compile(grammar, VOCABULARY, deterministic=True)
        with_a_small_stack(automaton.expand)
        matcher = automaton.matcher()
        assert matcher.accept_tokens(list(b"ccc(((")) and allowed(matcher, 257) == set(
            grammar.next_bytes(b"ccc(((")[0]
        )


def doubling(levels: int) -> Grammar:
    """Each rule calls the next one once or twice: 2 to the power of ``levels`` words of one letter each."""
    rules = [f"r{k} ::= r{k + 1} r{k + 1} | r{k + 1}" for k in range(levels)]
    return gbnf("\n".join(["root ::= r0", *rules, f'r{levels} ::= "a"']))


@pytest.mark.parametrize("levels", [30, 300])
def test_what_can_be_read_is_found_once_for_each_rule(levels: int) -> None:
    """Its ways to the first letter are 2 to the power of the levels."""
    matcher = compile(doubling(levels), VOCABULARY).matcher()
    begin = time.process_time()
    assert allowed(matcher, 257) == {97}
    assert time.process_time() - begin < 5
