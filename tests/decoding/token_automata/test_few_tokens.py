"""Parts that have bytes of few tokens (``expression.few_tokens``), against the definition, mask by mask.

In a world of a few tokens every sequence of up to three is tried. Without stacks masks are exact. In a grammar that
needs a stack a token is only taken where so many are left as the shortest rest has bytes; what is accepted then is
that, exactly.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

import tokenfst
from reference.tokens.token_groups import SlowTokens
from tests.decoding.token_automata.test_token_groups import (
    COMPLETE,
    EOS,
    NAMES,
    TOKENS,
    check,
    check_grammar,
    checked,
    compiled,
    random_expr,
)
from tokenfst import EmptyLanguageError, Grammar, Language, Vocabulary, regex
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.languages.display.readable import readable
from tokenfst.errors import ConstraintError


def random_few(rng: random.Random, depth: int) -> Expr:
    """A random expression with bounded parts."""
    if depth == 0 or rng.random() < 0.3:
        inner = random_expr(rng, rng.choice([1, 2]), tokens=False)
        return ex.few_tokens(inner, rng.choice([1, 1, 2, 2, 3]))
    parts = [random_few(rng, depth - 1), random_expr(rng, 1, tokens=rng.random() < 0.3)]
    rng.shuffle(parts)
    match rng.choice(["concat", "concat", "union", "repeat", "and"]):
        case "concat":
            return ex.concat(*parts, *[random_few(rng, 0)] * rng.choice([0, 1]))
        case "union":
            return ex.union(*parts)
        case "repeat":
            low = rng.choice([0, 0, 1, 2])
            return ex.repeat(random_few(rng, depth - 1), low, rng.choice([None, None, low + 1]))
    return ex.intersect(*parts)


def check_random(rng: random.Random, longest: int) -> None:
    made = checked(random_few(rng, rng.choice([1, 2, 2])), longest)
    if made is not None and rng.random() < 0.2:
        automaton, words = made
        check(automaton.expand(), words, longest)


@pytest.mark.parametrize("seed", range(80))
def test_random_parts(seed: int) -> None:
    check_random(random.Random(seed), 3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(80, 400))
def test_random_parts_soak(seed: int) -> None:
    check_random(random.Random(seed), 4)


@pytest.mark.parametrize("seed", range(40))
def test_where_every_byte_is_a_token(seed: int) -> None:
    """There it is seen without a search that many states lead to an end."""
    expr = random_few(random.Random(seed), 2)
    twin = SlowTokens(TOKENS, EOS, NAMES)
    if not twin.language(expr, 3):
        return
    check_grammar(compiled(Language(expr, "random"), COMPLETE), twin, expr)


WORD = ex.repeat(ex.union(ex.literal(b"a"), ex.literal(b"b")), 1)
SOME = ex.repeat(ex.literal(b"ab"), 0, 2)
RULES: Mapping[str, Mapping[str, Expr]] = {
    "inside": {
        "s": ex.union(ex.concat(ex.literal(b"a"), ex.call("s"), ex.literal(b"\n")), ex.few_tokens(WORD, 2))
    },
    "one token": {
        "s": ex.concat(ex.few_tokens(WORD, 1), ex.optional(ex.concat(ex.call("s"), ex.literal(b"\n"))))
    },
    "after a call": {
        "s": ex.union(ex.concat(ex.literal(b"a"), ex.call("s"), ex.few_tokens(SOME, 2)), ex.literal(b"b"))
    },
    "two of them": {
        "s": ex.union(
            ex.concat(ex.few_tokens(WORD, 2), ex.call("s"), ex.few_tokens(SOME, 3), ex.literal(b"\n")),
            ex.EPSILON,
        )
    },
    "with a shortest rest": {
        "s": ex.concat(
            ex.few_tokens(
                ex.concat(ex.literal(b"a"), ex.repeat(ex.literal(b"b"), 0, 1), ex.literal(b"ab")), 3
            ),
            ex.optional(ex.concat(ex.call("s"), ex.literal(b"b"))),
        )
    },
}


@pytest.mark.parametrize("name", RULES)
def test_beside_stacks(name: str) -> None:
    rules = RULES[name]
    tokens = [TOKENS[token] for token in (0, 1, 3, 2)]
    others = [bytes([byte]) for byte in range(256) if bytes([byte]) not in tokens]
    vocabulary = Vocabulary([*tokens, b"", *others], 4)
    automaton = tokenfst.compile(Grammar(rules, "s"), vocabulary)
    assert automaton.is_pushdown
    check_grammar(automaton, SlowTokens([*tokens, b""], 4, {}, rules, stacks=True), rules["s"])


def test_what_cannot_be_bounded() -> None:
    rules = {
        "s": ex.union(
            ex.concat(ex.literal(b"("), ex.call("s"), ex.literal(b")")), ex.few_tokens(ex.literal(b"abc"), 2)
        )
    }
    with pytest.raises(ConstraintError, match="more bytes than that, and is in a grammar that needs a stack"):
        tokenfst.compile(Grammar(rules, "s"), COMPLETE)
    for inner in (tokenfst.one_token().expr, tokenfst.special_token("<t>").expr):
        with pytest.raises(ConstraintError, match="a text with a limit of tokens"):
            compiled(Language(ex.few_tokens(inner, 2), "bounded"))
    bounded = Language(ex.few_tokens(regex("[ab]+").expr, 1), "bounded")
    with pytest.raises(ConstraintError, match="constrains tokens"):
        bounded.accepts("ab")
    with pytest.raises(EmptyLanguageError):
        compiled(Language(ex.few_tokens(ex.literal(b"abab"), 1), "bounded"))
    assert "in at most 1 token" in readable(bounded.expr)
