"""Push-down automata over tokens against their specification, OpenFst's push-down transducers (``openfst_pdt``)."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reference.expressions.random_expressions import random_expression
from tests.support.worlds.pushdown_worlds import compose
from tests.support.worlds.token_worlds import allowed
from tokenfst import Matcher, Vocabulary
from tokenfst.automata.expressions.expression import (
    Expr,
    Op,
    call,
    concat,
    intersect,
    literal,
    optional,
    repeat,
    union,
)
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.language import Language
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.errors import TokenLimitError

PROGRAM = Path(__file__).parents[2] / "reference" / "grammars" / "openfst_pdt.py"
EVERY_BYTE = [bytes([byte]) for byte in range(256)]


# --- recursive transition networks, by Thompson's construction ----------------------------------------


class Network:
    """The arcs of one rule; calls are arcs too."""

    def __init__(self, body: Expr, numbers: Mapping[str, int]) -> None:
        self.arcs: list[list[int]] = []
        self.size, self.numbers = 2, numbers
        self.write(body, 0, 1)

    def state(self) -> int:
        self.size += 1
        return self.size - 1

    def write(self, node: Expr, source: int, target: int) -> None:
        if all(below.op is not Op.CALL for below in node.walk()):
            self.write_leaf(node, source, target)
        elif node.op is Op.CALL:
            assert isinstance(node.value, str)
            self.arcs.append([source, 1000 + self.numbers[node.value], target])
        elif node.op is Op.CONCAT:
            for arg in node.args:
                self.write(arg, source, following := self.state())
                source = following
            self.arcs.append([source, 0, target])
        elif node.op is Op.UNION:
            for arg in node.args:
                self.write(arg, source, target)
        else:
            assert node.op is Op.REPEAT and isinstance(node.value, tuple)
            low, high = node.value
            for count in range(max(low, high)):
                if count >= low:
                    self.arcs.append([source, 0, target])
                self.write(node.args[0], source, following := self.state())
                source = following
            if high < 0:
                loop = self.state()
                self.arcs.append([source, 0, loop])
                self.write(node.args[0], loop, loop)
                source = loop
            self.arcs.append([source, 0, target])

    def write_leaf(self, node: Expr, source: int, target: int) -> None:
        dfa = Language(node).determinize()
        states = [self.state() for _ in range(dfa.num_states)]
        self.arcs.append([source, 0, states[dfa.start]])
        for state in range(1, dfa.num_states):
            for byte in range(256):
                if following := int(dfa.table[state, dfa.classes[byte]]):
                    self.arcs.append([states[state], byte + 1, states[following]])
            if dfa.accepting[state]:
                self.arcs.append([states[state], 0, target])


def case(grammar: Grammar, tokens: list[bytes], longest: int) -> dict[str, Any]:
    names = [grammar.start, *(name for name in grammar.rules if name != grammar.start)]
    numbers = {name: number for number, name in enumerate(names)}
    rules = [Network(grammar.rules[name], numbers).arcs for name in names]
    return {"rules": rules, "tokens": [token.hex() for token in tokens], "longest": longest}


def specified(cases: list[dict[str, Any]]) -> list[set[tuple[int, ...]] | None]:
    """The token sequences of each case, or None where it has too many stacks for OpenFst."""
    ran = subprocess.run(
        [sys.executable, str(PROGRAM)],
        input="\n".join(map(json.dumps, cases)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    answers = map(json.loads, ran.stdout.splitlines())
    return [None if answer is None else {tuple(found) for found in answer} for answer in answers]


# --- the comparison -----------------------------------------------------------------------------------


def check(grammar: Grammar, tokens: list[bytes], longest: int, wanted: set[tuple[int, ...]]) -> None:
    """``tokens`` are all that the grammar can use; the vocabulary has every byte besides."""
    vocabulary = Vocabulary([*tokens, *EVERY_BYTE, b""], len(tokens) + 256)
    used, size, eos = len(tokens), len(vocabulary), len(tokens) + 256
    begun = {sequence[:n] for sequence in wanted for n in range(len(sequence) + 1)}
    automaton = compose(grammar, vocabulary, 192)
    if automaton.is_empty:
        assert not wanted
        return
    matcher, found = Matcher(automaton), set()
    pending: list[tuple[int, ...]] = [()]
    while pending:
        sequence = pending.pop()
        matcher.reset()
        assert matcher.accept_tokens(list(sequence))
        mask = allowed(matcher, size)
        assert matcher.is_accepting() == (eos in mask)
        if eos in mask:
            found.add(sequence)
        assert {token for token in range(used) if (*sequence, token) in begun} <= mask, sequence
        if len(sequence) < longest:
            pending += [(*sequence, token) for token in mask if token < used]
    assert found == wanted
    check_budget(automaton, longest, size, used, begun)


def check_budget(automaton: Any, longest: int, size: int, used: int, begun: set[tuple[int, ...]]) -> None:
    """With so many tokens left, every token of a mask is on the way to a word that is short enough."""
    try:
        matcher = Matcher(automaton, longest)
    except TokenLimitError:
        return
    pending: list[tuple[int, ...]] = [()]
    while pending:
        sequence = pending.pop()
        matcher.reset()
        assert matcher.accept_tokens(list(sequence)) and sequence in begun
        mask = allowed(matcher, size)
        assert mask or matcher.is_accepting()
        pending += [(*sequence, token) for token in mask if token < used]


def check_all(cases: list[tuple[Grammar, list[bytes], int]]) -> None:
    answers = specified([case(*each) for each in cases])
    assert len(answers) == len(cases)
    assert answers.count(None) <= len(cases) // 10
    for (grammar, tokens, longest), wanted in zip(cases, answers, strict=True):
        if wanted is not None:
            check(grammar, tokens, longest, wanted)


BY_HAND = [
    ('root ::= "a" root "b" | "c"', [b"a", b"b", b"c", b"aa", b"bb", b"ac", b"cb", b"acb"], 5),
    ('root ::= "(" root ")" root | "x"', [b"(", b")", b"x", b"(x", b"x)", b")(", b")x"], 5),
    ('root ::= "a" root "a" | "b" root "b" | "a" | "b"', [b"a", b"b", b"ab", b"ba", b"aba"], 6),
    ('root ::= "[" (item ("," item)*)? "]"\nitem ::= root | "1"', [b"[", b"]", b",", b"1", b"],[", b"[[", b"1]"], 5),
    ('root ::= "i" root | "i" root "e" root | "x"', [b"i", b"e", b"x", b"ii", b"xe", b"ex"], 5),
    ('root ::= "a" root{2,3} "b" | "c"', [b"a", b"b", b"c", b"cc", b"ac", b"cb", b"ccb"], 5),
]  # fmt: skip


def test_by_hand() -> None:
    check_all([(gbnf(text), tokens, longest) for text, tokens, longest in BY_HAND])


def random_case(rng: random.Random) -> tuple[Grammar, list[bytes], int]:
    """Every alternative begins with a letter, so that stacks grow by a byte at least."""
    names = ["s", "t", "u"][: rng.randint(1, 3)]

    def part() -> Expr:
        kind = rng.randrange(8)
        if kind < 3:
            return literal(rng.choice([b"a", b"b"]))
        if kind < 6:
            return call(rng.choice(names))
        if kind == 6:
            return optional(call(rng.choice(names)))
        low = rng.randint(0, 2)
        return repeat(concat(literal(b"a"), call(rng.choice(names))), low, rng.choice([None, low + 1]))

    def alternative() -> Expr:
        return concat(literal(rng.choice([b"a", b"b"])), *(part() for _ in range(rng.randint(0, 3))))

    text = intersect(random_expression(rng, 2), repeat(literal(b"a"), 1, 3))
    rules = {
        name: union(
            literal(rng.choice([b"a", b"b", b"ab"])), *(alternative() for _ in range(rng.randint(1, 3)))
        )
        for name in names
    }
    rules["u" if "u" in names else "s"] = union(rules["u" if "u" in names else "s"], text)
    tokens = {bytes(rng.choices(b"ab", k=rng.randint(1, 4))) for _ in range(4)} | {b"a", b"b"}
    return Grammar(rules, "s"), sorted(tokens), 4


def test_random_grammars() -> None:
    rng = random.Random(31)
    check_all([random_case(rng) for _ in range(40)])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40))
def test_random_grammars_at_length(seed: int) -> None:
    rng = random.Random(900 + seed)
    check_all([random_case(rng) for _ in range(100)])


def test_the_comparison_can_fail() -> None:
    wanted = specified([case(gbnf('root ::= "a" root "b" | "c"'), [b"a", b"b", b"c"], 5)])
    assert wanted == [{(2,), (0, 2, 1), (0, 0, 2, 1, 1)}]
    assert wanted[0] is not None
    with pytest.raises(AssertionError):
        check(gbnf('root ::= "a" root "b" | "c" | "ac"'), [b"a", b"b", b"c"], 5, wanted[0])
