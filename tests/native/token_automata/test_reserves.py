"""Limits of tokens: far off the mask is the plain one and nothing is explored; nearer, it is what brute force says."""

from __future__ import annotations

import functools
import json
import operator
import random
from typing import Any

import pytest

from reference.expressions.random_expressions import random_expression
from reference.grammars.random_grammars_wide import Patience
from reference.tokens.token_automaton import INFINITE
from tests.support.worlds.budget_worlds import follow, random_case
from tests.support.worlds.pushdown_worlds import compose as compose_grammar
from tests.support.worlds.token_worlds import EVERY_BYTE, allowed, brute_force, compose, random_vocabulary
from tokenfst import Budget, Matcher, Vocabulary, _native, compile, json_schema, regex
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.formats.registry import FORMATS
from tokenfst.automata.regex.translate import expression
from tokenfst.decoding.token_automata.token_automaton import UNREACHABLE

SLOWER = 20 if hasattr(_native, "stress") else 1
"""How many times as long a core that is built for sanitizers may take."""
TOKENS = [
    *EVERY_BYTE,
    b'{"',
    b'":',
    b'": ',
    b'", "',
    b'"}',
    b'[{"',
    b"]}",
    b"}}",
    b"aa",
    b"name",
    b'":{"',
    b"\\u00",
    b"",
]
VOCABULARY = Vocabulary(TOKENS, len(TOKENS) - 1)
SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 300, "pattern": "^(ab)*c$"}},
        "required": ["a"],
    },
    {
        "$ref": "#/$defs/t",
        "$defs": {
            "t": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "of": {"$ref": "#/$defs/t"}},
                "required": ["name"],
                "additionalProperties": False,
            }
        },
    },
    {
        "type": "object",
        "properties": {"ab": {"type": "integer"}, "b": {"format": "date-time", "type": "string"}},
        "required": ["b"],
    },
    {
        "type": "object",
        "properties": {
            "a": {"enum": ["x", "yy"]},
            "b": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        },
    },
    {
        "type": "object",
        "properties": {"b": {"type": "integer"}},
        "patternProperties": {"^[ab]{1,20}$": {"type": ["string", "null"]}},
    },
]


def compare_limits(rng: random.Random, expr: Expr, vocabulary: Vocabulary) -> None:
    """The masks along one random text, with limits from the least that fits on, are those of brute force."""
    slow = brute_force(expr, vocabulary)
    if slow is None or slow.distances[slow.start] == INFINITE:
        return
    matcher, node, size = Matcher(compose(expr, vocabulary)), slow.start, len(slow.tokens)
    for _ in range(5):
        for left in range(slow.distances[node], slow.distances[node] + 12):
            matcher.max_tokens_left = left
            assert allowed(matcher, size) == slow.allowed(node, left)
        matcher.max_tokens_left = None
        choices = sorted(slow.allowed(node) - {slow.eos})
        if not choices:
            return
        token = rng.choice(choices)
        assert matcher.accept_token(token)
        node = slow.arcs[node][token]


@pytest.mark.parametrize("seed", range(4))
def test_any_limit_of_regular_languages(seed: int) -> None:
    rng = random.Random(5000 + seed)
    for _ in range(12):
        compare_limits(rng, random_expression(rng, rng.randint(1, 4)), random_vocabulary(rng))


def random_looks(rng: random.Random, depth: int) -> str:
    """A pattern over a, b and c in which looks ahead and behind stand in loops and in each other."""
    if depth == 0:
        return rng.choice(["a", "b", "c", ".", "[ab]", "[^a]"])
    one, other = random_looks(rng, depth - 1), random_looks(rng, depth - 1)
    look = rng.choice(["(?={})", "(?!{})", "(?<=[ab])", "(?<![bc])", "(?!(?<!a){})", "(?=(?<=b){}|c)"])
    return rng.choice(
        [f"(?:{look}{{}})*", f"{{}}{look}", f"(?:{{}}{look})+{{}}", "(?:{}|{})", "{}{}"]
    ).format(*(rng.choice([one, other]) for _ in range(3)))


@pytest.mark.parametrize("seed", range(4))
def test_any_limit_of_patterns_with_looks(seed: int) -> None:
    rng = random.Random(7000 + seed)
    patterns = [random_looks(rng, rng.randint(1, 3)) for _ in range(12)]
    for pattern in ["(?:(?!(?<!a)(?:)).)*b(?:(?!c).)*", *patterns]:
        compare_limits(rng, expression(pattern), random_vocabulary(rng))


@pytest.mark.parametrize("seed", range(2))
def test_any_limit_of_grammars(seed: int) -> None:
    rng = random.Random(6000 + seed)
    for _ in range(4):
        with Patience(1)():
            grammar, vocabulary, model = random_case(rng)
            automaton = compose_grammar(grammar, vocabulary, 192)
            least = Matcher(automaton).distance()
            for extra in (0, 3, 8) if least != UNREACHABLE else ():
                follow(rng, Matcher(automaton, least + extra), len(vocabulary), model)


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
@pytest.mark.parametrize("order", ["schema", "any"])
def test_schemas_end_within_any_limit(number: int, order: str) -> None:
    rng, schema = random.Random(number), json_schema(SCHEMAS[number], property_order=order)
    automaton = compile(schema, VOCABULARY)
    least = automaton.distance()
    for limit in (least, least + 2, least + 7, least + 25):
        matcher = automaton.matcher(limit)
        while matcher.max_tokens_left and not matcher.is_terminated():
            mask = allowed(matcher, len(VOCABULARY))
            assert mask
            long = [token for token in mask if len(TOKENS[token]) > 1]
            token = rng.choice(sorted(long if long and rng.random() < 0.5 else mask))
            assert matcher.fork().accept_token(token)
            assert matcher.accept_token(token)
        assert matcher.is_accepting() or matcher.is_terminated()
        json.loads(VOCABULARY.decode(matcher.tokens))


def test_the_distance_of_a_text_that_may_end_needs_no_search() -> None:
    """Many thousand states can follow, and none is visited."""
    language = functools.reduce(operator.and_, (~regex(f"(?s).*x{k}.*") for k in range(40)))
    automaton = compile(language, VOCABULARY, budget=Budget(states=1000))
    assert automaton.matcher().distance() == 0


@pytest.mark.parametrize("name", [each.name for each in FORMATS if each.build])
@pytest.mark.parametrize("lengths", [{}, {"minLength": 2}, {"maxLength": 100}], ids=["any", "least", "most"])
def test_far_from_a_limit_formats_have_their_plain_masks(
    name: str, lengths: dict[str, int], tekken: Vocabulary
) -> None:
    """Within little time and memory: some of these languages have half a million states."""
    schema = json_schema({"type": "string", "format": name, **lengths})
    automaton = compile(schema, tekken, budget=Budget(seconds=20, bytes=256 << 20))
    plain, limited = automaton.matcher(), automaton.matcher(500)
    for token in tekken.encode_greedy(schema.shortest()):
        assert allowed(limited, len(tekken)) == allowed(plain, len(tekken))
        assert plain.accept_token(token) and limited.accept_token(token)
    assert limited.is_accepting()


@pytest.mark.parametrize("more", [0, 1, 4, 30, 300])
def test_limits_where_the_form_gives_no_bound(more: int, tekken: Vocabulary) -> None:
    """An intersection with thousands of states: each token that is allowed can be completed, and no other."""
    language = (
        regex(r"([a-z]+[ ,]+){0,40}[a-z]{2,}!") & regex(r"(?s:.){30,250}") & regex(r"(?s:.*)q(?s:.*)z(?s:.*)")
    )
    automaton = compile(language, tekken, budget=Budget(seconds=30 * SLOWER))
    rng = random.Random(more)
    least = automaton.distance()
    limited = automaton.matcher(least + more)
    plain = automaton.matcher()
    for _ in range(4):
        left, mask, every = (
            limited.max_tokens_left,
            allowed(limited, len(tekken)),
            allowed(plain, len(tekken)),
        )
        assert left is not None and mask and mask <= every
        for token in [
            *rng.sample(sorted(mask), min(40, len(mask))),
            *rng.sample(sorted(every - mask), min(40, len(every - mask))),
        ]:
            after = plain.fork()
            assert after.accept_token(token)
            assert (after.distance() < left) == (token in mask)
        token = rng.choice(sorted(mask))
        assert limited.accept_token(token) and plain.accept_token(token)


def test_a_near_limit_walks_the_vocabulary_once_for_a_mask(tekken: Vocabulary) -> None:
    """Tokens lead to thousands of states, and the form of none of them gives a bound. With a walk of the vocabulary
    for each, this mask took 27 s.
    """
    pattern = {"type": "string", "format": "regex", "maxLength": 30}
    schema = json_schema({"type": "object", "properties": {"p": pattern}, "required": ["p"]})
    automaton = compile(schema, tekken, budget=Budget(seconds=10 * SLOWER))
    limited, plain = automaton.matcher(16), automaton.matcher()
    for token in tekken.encode_greedy(b'{"p": "(a|b)*[c-d'):
        assert limited.accept_token(token) and plain.accept_token(token)
    mask, every = allowed(limited, len(tekken)), allowed(plain, len(tekken))
    assert mask < every and limited.max_tokens_left == 6
    rng = random.Random(16)
    cut_off = sorted(every - mask)
    for token in (*rng.sample(sorted(mask), 30), *rng.sample(cut_off, min(30, len(cut_off)))):
        after = plain.fork()
        assert after.accept_token(token)
        assert (after.distance() < 6) == (token in mask), tekken.tokens[token]


@pytest.mark.parametrize("number", [0, 1, 3])
def test_what_is_far_off_explores_nothing(number: int) -> None:
    schema = json_schema(
        SCHEMAS[number] if "$ref" in SCHEMAS[number] else {**SCHEMAS[number], "additionalProperties": False}
    )
    plain, limited = compile(schema, VOCABULARY), compile(schema, VOCABULARY)
    texts = [
        b'{"a": "ababc"}',
        b'{"name": "aa", "of": {"name": ""}}',
        b'{"b": "2020-01-01T00:00:00Z"}',
        b'{"a": "x", "b": [1, 2]}',
    ]
    for automaton, limit in ((plain, None), (limited, 1500)):
        matcher = automaton.matcher(limit)
        for token in VOCABULARY.encode_greedy(texts[number]):
            allowed(matcher, len(VOCABULARY))
            assert matcher.accept_token(token)
        assert matcher.is_accepting()
    assert limited.native.stats["states"] == plain.native.stats["states"]


COUNTED = [
    ("[ab ]*", "[ab]{1,9}"),
    ("[ab]*", "[ab]{1,9}"),  # what is taken away ends what is begun: longer words alone are left
    ("([ab]|\\\\[ab])*c", "[ab]{2,12}c"),
    ("[ab]{0,3}(cc[ab]*)?", "[ab]{0,30}"),
    ("[ab]*(c{9}|d)", "[ab]{1,20}d"),
    ("([ab]{2})*|a*c", "(a|b){0,40}"),
    ("(a|b ?)*", "a{0,50}|[ab]{3,70}"),
]


@pytest.mark.parametrize(("kept", "gone"), COUNTED)
def test_words_of_a_count_taken_away(kept: str, gone: str) -> None:
    """Within any limit each token of a mask leads to whole texts; the masks are those that brute force has."""
    short = Vocabulary([b"a", b"b", b"c", b"d", b" ", b"\\", b"ab", b"bab", b""], 8)
    left = regex(kept) - regex(gone)
    automaton = compile(left, short)
    least = automaton.distance()
    rng = random.Random(kept)
    for limit in [least, least + 1, least + 3, *range(least + 6, least + 90, 7)]:
        for _ in range(4):
            matcher = automaton.matcher(limit)
            while matcher.max_tokens_left and not matcher.is_terminated():
                mask = allowed(matcher, len(short))
                assert mask, (limit, matcher.tokens)
                for token in mask - {8}:
                    assert automaton_distance(automaton, [*matcher.tokens, token]) < matcher.max_tokens_left
                assert matcher.accept_token(rng.choice(sorted(mask)))
            assert matcher.is_accepting() or matcher.is_terminated()


def automaton_distance(automaton: Any, tokens: list[int]) -> int:
    """The least number of tokens after these."""
    plain = automaton.matcher()
    assert plain.accept_tokens(tokens)
    return plain.distance()
