"""Deterministic grammars: what is shown where one stack is not enough, and the artifacts of those for which it is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from reference.grammars.pushdown import TokenModel
from reference.grammars.random_grammars_wide import GrammarGenerator
from tests.native.stacks.test_pushdown_deep import HOSTILE
from tests.support.worlds.budget_worlds import follow
from tests.support.worlds.pushdown_worlds import crossing
from tests.support.worlds.token_worlds import allowed
from tokenfst import Budget, Matcher, TokenAutomaton, Vocabulary, compile
from tokenfst.automata.notations.bundled import bundled_grammar
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.errors import BudgetExceeded, ConstraintError

VOCABULARY = Vocabulary([bytes([byte]) for byte in range(256)] + [b"((", b"))", b"()", b")+(", b""], 260)
DETERMINISTIC = [
    'root ::= "(" root ")" | "x"',
    'root ::= "(" root? ")" | "[" root? "]"',
    'root ::= root "+" "(" root ")" | "x"',
    'root ::= "x"* "y"',
    "root ::= root root | \"x\"",
]  # fmt: skip
AMBIGUOUS = [
    ('root ::= "a" root "a" | "b" root "b" | ""', "palindromes: no deterministic automaton knows the middle"),
    ('root ::= a | b\na ::= "x" a "y" | "z"\nb ::= "x" b "w" | "z"', "what is counted is only told at the end"),
    ('root ::= a b | c d\na ::= ("x" a "y")?\nb ::= "z"*\nc ::= "x"*\nd ::= ("y" d "z")?', "inherently ambiguous"),
]  # fmt: skip


@pytest.mark.parametrize("text", DETERMINISTIC)
def test_one_stack_is_enough(text: str) -> None:
    grammar = gbnf(text)
    assert grammar.is_deterministic() and grammar.conflict() is None
    compile(grammar, VOCABULARY, deterministic=True)


@pytest.mark.parametrize(("text", "why"), AMBIGUOUS)
def test_conflicts(text: str, why: str) -> None:
    grammar = gbnf(text)
    conflict = grammar.conflict()
    assert conflict is not None and not grammar.is_deterministic(), why
    assert grammar.viable_prefix(conflict.prefix) == len(conflict.prefix)
    with pytest.raises(ConstraintError) as error:
        compile(grammar, VOCABULARY, deterministic=True)
    assert error.value.conflict == conflict and repr(conflict.prefix) in str(error.value)
    assert all(rule in grammar.rules for rule in conflict.rules)
    assert all(line >= 1 and column >= 1 for line, column in conflict.places)
    compile(grammar, VOCABULARY)  # only what is asked for


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_grammars_are_answered(name: str) -> None:
    grammar = gbnf(HOSTILE[name][0])
    conflict = grammar.conflict()
    assert conflict is None or grammar.viable_prefix(conflict.prefix) == len(conflict.prefix)


@pytest.mark.parametrize("seed", range(4))
def test_random_grammars_are_answered(seed: int) -> None:
    rng, found = random.Random(500 + seed), []
    for _ in range(40):
        grammar = GrammarGenerator(rng).grammar().with_budget(Budget(states=20_000, seconds=5))
        try:
            conflict = grammar.conflict()
        except BudgetExceeded:
            continue
        assert grammar.is_deterministic() == (conflict is None)
        assert conflict is None or not grammar.is_regular()
        assert conflict is None or grammar.viable_prefix(conflict.prefix) == len(conflict.prefix)
        found.append(conflict is None)
    assert any(found) and not all(found)


# --- artifacts ----------------------------------------------------------------------------------------


def same_walks(first: TokenAutomaton, second: TokenAutomaton, model: TokenModel, walks: int) -> None:
    size, rng = len(model.tokens), random.Random(3)
    for _ in range(walks):
        matchers = [first.matcher(), second.matcher()]
        for _ in range(20):
            masks = [allowed(matcher, size) for matcher in matchers]
            assert masks[0] == masks[1]
            assert matchers[0].distance() == matchers[1].distance()
            assert matchers[0].is_accepting() == matchers[1].is_accepting()
            token = rng.choice(sorted(masks[0]))
            assert all(matcher.accept_token(token) for matcher in matchers)
            if token == model.eos:
                break


@pytest.mark.parametrize("name", ["json", "sum"])
def test_expanded_and_loaded_walk_as_the_lazy_one(name: str, tmp_path: Path) -> None:
    grammar, vocabulary = crossing(name, complete=True)
    model = TokenModel(grammar, vocabulary)
    lazy = compile(grammar, vocabulary, deterministic=True)
    expanded = compile(grammar, vocabulary, deterministic=True).expand()
    expanded.save(tmp_path / "first")
    compile(grammar, vocabulary, deterministic=True).save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    loaded = TokenAutomaton.load(tmp_path / "first", vocabulary)
    for automaton in (expanded, loaded):
        same_walks(lazy, automaton, model, 15)
        follow(random.Random(1), automaton.matcher(automaton.distance() + 6), len(vocabulary), model)


def test_a_loaded_automaton_over_a_real_vocabulary(tekken: Vocabulary, tmp_path: Path) -> None:
    compile(bundled_grammar("json"), tekken, deterministic=True).save(tmp_path / "json")
    loaded, lazy = TokenAutomaton.load(tmp_path / "json", tekken), compile(bundled_grammar("json"), tekken)
    text = b'{"a": [1, 2.5e3, {"b": "\\u00e9 x"}], "c": [[[]]], "d": null}'
    matchers: list[Matcher] = [loaded.matcher(), lazy.matcher()]
    for token in tekken.encode_greedy(text):
        masks = [allowed(matcher, len(tekken)) for matcher in matchers]
        assert masks[0] == masks[1]
        assert all(matcher.accept_token(token) for matcher in matchers)
    assert all(matcher.is_accepting() for matcher in matchers)
    assert loaded.matcher().accept_tokens(tekken.encode_greedy(b"[" * 3000 + b"]" * 3000))


def test_there_are_no_arcs_with_a_stack() -> None:
    """It was an error of a damaged artifact, of an automaton that never was one."""
    grammar = gbnf('root ::= "(" root ")" | "x"')
    vocabulary = Vocabulary([b"(", b")", b"((", b"x", b""], eos_token_id=4)
    automaton = compile(grammar, vocabulary)
    for call in (automaton.arcs, automaton.draw, automaton.to_native_fst):
        with pytest.raises(
            ConstraintError, match=r"needs a stack.*draw the grammar itself.*truncate\(depth\)"
        ):
            call()
    assert "x" in compile(grammar.truncate(2), vocabulary).draw().dot


def test_what_cannot_be_expanded_says_so() -> None:
    grammar = gbnf(AMBIGUOUS[0][0])
    with pytest.raises(ConstraintError):
        compile(grammar, VOCABULARY).expand()
