"""Strings that must differ: names of objects, unique items. Against texts that are read again from the beginning."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.distinct import repeats, scan
from tokenfst import Vocabulary, allocate_token_bitmask, compile
from tokenfst.automata import expression as ex
from tokenfst.automata.distinct import fresh, opened
from tokenfst.automata.grammar import Grammar
from tokenfst.automata.json_schema import json_object, json_schema, json_value
from tokenfst.automata.language import Language
from tokenfst.automata.regex import regex
from tokenfst.decoding.token_automaton import TokenAutomaton
from tokenfst.errors import ConstraintError, TokenBudgetError, UnsupportedSchemaError

WORDS = [
    '","',
    '{"',
    '"a"',
    "\\u0061",
    '"a":0,"a"',
    '":0,"',
    'a":0,"a":0',
    "aa",
    'a"',
    '""',
    '"":0,"',
    '"a","',
    '","a',
]
WORDS += [
    "}}",
    '"}',
    '":{"',
    ', "a":',
    ': "',
    "[]",
    '"]',
    '"],"',
    '["a","a"]',
    '{"a":0,"\\u0061":0}',
    '","a","b"',
    "b",
]
TOKENS = [*(bytes((byte,)) for byte in range(256)), *(word.encode() for word in WORDS), b""]
END = len(TOKENS) - 1
VOCABULARY = Vocabulary(TOKENS, END)
TYPED = [*(TOKENS.index(sign.encode()) for sign in '{}[]":,a0\\'), *range(256, END)]


def allowed(matcher: Any) -> set[int]:
    mask = allocate_token_bitmask(1, len(VOCABULARY))
    matcher.fill_next_token_bitmask(mask, 0)
    return set(np.flatnonzero(np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")).tolist())


def text_of(matcher: Any) -> bytes:
    return b"".join(TOKENS[token] for token in matcher.tokens)


def compact(schema: Any, **options: Any) -> Any:
    return json_schema(schema, whitespace="compact", **options)


STRINGS = {"type": "array", "items": {"type": "string"}}
WORLDS: list[tuple[Any, Any, str]] = [
    ({"type": "object", "additionalProperties": {"const": 0}},) * 2 + ("{",),
    ({"type": "object", "properties": {"a": {"const": 0}}, "additionalProperties": {"const": 0}},) * 2
    + ("{",),
    ({"type": "object"},) * 2 + ("{",),
    ({**STRINGS, "uniqueItems": True}, STRINGS, "["),
    ({"type": "array", "items": {**STRINGS, "uniqueItems": True}}, {"type": "array", "items": STRINGS}, "["),
    (
        {"type": "object", "additionalProperties": {**STRINGS, "uniqueItems": True}},
        {"type": "object", "additionalProperties": STRINGS},
        "{[",
    ),
]
"""A schema, the same without what must differ (but for names), and the containers in which strings must differ."""


@pytest.mark.parametrize("number", range(len(WORLDS)))
def test_masks_are_those_of_texts_read_again(number: int) -> None:
    schema, plain, kinds = WORLDS[number]
    matcher = compile(compact(schema), VOCABULARY).matcher()
    free = compile(compact(plain, repeated_names="allow"), VOCABULARY).matcher()
    rng = random.Random(number)
    looked_at = differing = 0

    def visit(depth: int) -> None:
        nonlocal looked_at, differing
        before = text_of(matcher)
        anyway = allowed(free)
        wanted = {
            token for token in anyway if token not in TYPED or not repeats(before + TOKENS[token], kinds)
        }
        found = allowed(matcher)
        assert found == wanted, (before, [TOKENS[token] for token in found ^ wanted])
        looked_at += 1
        differing += wanted != anyway
        typed = [token for token in TYPED if token in found]
        for token in typed if depth < 2 else rng.sample(typed, min(len(typed), 2 if depth < 6 else 1)):
            if depth < 9:
                assert matcher.accept_token(token) and free.accept_token(token)
                visit(depth + 1)
                matcher.rollback(1)
                free.rollback(1)

    visit(0)
    assert looked_at > 80 and differing > 20, (looked_at, differing)


def listed(content: str, *, thin: bool = True) -> Language:
    """A JSON array of different strings out of a language."""
    quote = ex.literal(b'"')
    item = fresh(ex.concat(quote, regex(content).expr, quote), thin=thin)
    more = ex.repeat(ex.concat(ex.literal(b","), item))
    return Language(ex.concat(opened(ex.literal(b"[")), ex.optional(ex.concat(item, more)), ex.literal(b"]")))


NARROW = ["a|b[ab]*", "(a|aa|ab)b*|c{2}"]


@pytest.mark.parametrize("content", [*NARROW, "[ab]{0,2}[ab]*|aab", "(ab?){1,3}|[bc]+"])
def test_a_prefix_that_could_only_end_as_a_known_string_is_left_out(content: str) -> None:
    """Some prefixes have one end only: when it is used, no token may lead there."""
    inside = regex(content)
    tokens = [
        *(bytes((byte,)) for byte in range(256)),
        b"ab",
        b'"a',
        b'","',
        b'a","a',
        b'b"',
        b'","a"',
        b'b","',
        b"cc",
        b"",
    ]
    vocabulary = Vocabulary(tokens, len(tokens) - 1)
    matcher = compile(listed(content), vocabulary).matcher()
    typed = [*(tokens.index(sign.encode()) for sign in '[]",abc'), *range(256, len(tokens) - 1)]

    def viable(text: bytes) -> bool:
        if listed_without.viable_prefix(text) < len(text) or repeats(text, "["):
            return False
        containers, written = scan(text)
        if written is None:
            return True
        used = containers[0][1]
        ends = (inside & regex(f"{written.decode()}[abc]{{0,9}}")) - Language.union_of(
            map(Language.literal, used)
        )
        return not ends.is_empty()

    quote = ex.literal(b'"')
    plain = ex.concat(quote, inside.expr, quote)
    more = ex.repeat(ex.concat(ex.literal(b","), plain))
    listed_without = Language(
        ex.concat(ex.literal(b"["), ex.optional(ex.concat(plain, more)), ex.literal(b"]"))
    )
    rng = random.Random(content)
    mask = allocate_token_bitmask(1, len(vocabulary))
    narrowed = 0
    for _ in range(60):
        matcher.reset()
        for _ in range(12):
            before = b"".join(tokens[token] for token in matcher.tokens)
            matcher.fill_next_token_bitmask(mask, 0)
            bits = np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")
            found = [token for token in typed if bits[token]]
            assert found == [token for token in typed if viable(before + tokens[token])], before
            narrowed += any(
                token not in found and not repeats(before + tokens[token], "[")
                for token in typed
                if listed_without.viable_prefix(before + tokens[token]) == len(before + tokens[token])
            )
            if not found:
                break
            assert matcher.accept_token(rng.choice(found))
    assert narrowed or content not in NARROW


def test_what_has_one_way_to_go_on_is_forced() -> None:
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256)
    matcher = compile(listed("a|b[ab]*"), vocabulary).matcher()
    assert matcher.accept_tokens(list(b'["a","'))
    assert matcher.forced_tokens() == [ord("b")]
    assert bytes(matcher.tokens) == b'["a","'


@settings(max_examples=80, deadline=None)
@given(st.lists(st.text('ab"\\\n/é😀\x7f', max_size=3), max_size=6), st.randoms(use_true_random=False))
def test_names_are_compared_by_value(names: list[str], rng: random.Random) -> None:
    def spelled(name: str) -> str:
        parts = []
        for letter in name:
            units = letter.encode("utf-16-be")
            escapes = "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))
            short = json.dumps(letter, ensure_ascii=False)[1:-1]
            upper = escapes.upper().replace("\\U", "\\u")
            parts.append(rng.choice([short, escapes, upper, "\\/" if letter == "/" else short]))
        return f'"{"".join(parts)}"'

    text = "{" + ",".join(f"{spelled(name)}:0" for name in names) + "}"
    distinct = len(set(names)) == len(names)
    assert json_object().accepts(text) is distinct
    listed_text = text.replace(":0", "").replace("{", "[").replace("}", "]")
    if not any(sign in name for name in names for sign in "{}[]:"):
        assert json_schema({**STRINGS, "uniqueItems": True}).accepts(listed_text) is distinct
    matcher = compile(json_object(), VOCABULARY).matcher()
    assert matcher.accept_tokens(VOCABULARY.encode_greedy(text.encode())) is distinct


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        (
            True,
            ['{"a":{"a":[{"a":1}]}}', '[{"a":1},{"a":1}]'],
            ['{"a":1,"\\u0061":1}', '[[{"a":{},"a":{}}]]'],
        ),
        ({"minProperties": 3}, ['{"a":1,"b":1,"c":1}'], ['{"a":1,"b":1}', '{"a":1,"b":1,"b":1}']),
        ({"minProperties": 2, "properties": {"a": {}}}, ['{"x":1,"y":1}', '{"a":1,"y":1}'], ['{"y":1}']),
        ({"maxProperties": 2}, ['{"a":1,"b":1}'], ['{"a":1,"b":1,"c":1}', '{"a":1,"a":1}']),
        (
            {
                "patternProperties": {"^[ab]$": {"const": 1}},
                "additionalProperties": False,
                "minProperties": 2,
            },
            ['{"a":1,"b":1}', '{"b":1,"a":1}'],
            ['{"a":1}', '{"a":1,"a":1}', '{"c":1,"a":1}'],
        ),
        (
            {"patternProperties": {"^[a-z]{5}$": {"const": 1}}, "additionalProperties": False},
            ['{"aaaaa":1,"aaaab":1}'],
            ['{"aaaaa":1,"aaaaa":1}'],
        ),
        (
            {"patternProperties": {"^x": {"const": 1}}, "required": ["b"], "properties": {"c": {}}},
            ['{"c":1,"x":1,"b":2,"y":3}'],
            ['{"x":1,"b":2,"x":1}', '{"b":2,"b":2}', '{"b":2,"x":2}'],
        ),
        (
            {"not": {"patternProperties": {"^[ab]$": {"type": "integer"}}}},
            ['{"a":""}', '{"c":1,"b":"","a":1}'],
            ['{"a":1}', '{"a":1,"a":""}', '{"a":"","a":1}', '{"a":"","c":1,"c":1}'],
        ),
        ({**STRINGS, "uniqueItems": True, "minItems": 2}, ['["","a"]'], ['[""]', '["",""]', '["a","b","a"]']),
        (
            {"items": {"type": ["string", "null", "boolean"]}, "uniqueItems": True, "maxItems": 3},
            ['[null,"a",true]', '["null",null]'],
            ["[null,null]", '["a","a"]', '[true,"a",true]', '[null,"a",true,false]'],
        ),
        (
            {
                "prefixItems": [{"pattern": "^a"}],
                "items": {"type": "string"},
                "uniqueItems": True,
                "type": "array",
            },
            None,
            None,
        ),
        (
            {
                "prefixItems": [{"type": "string", "pattern": "^a"}],
                "items": {"type": "string"},
                "uniqueItems": True,
            },
            ['["a","b"]', '["aa","a"]'],
            ['["a","a"]', '["b"]', '["a","b","b"]'],
        ),
        (
            {"items": {"type": "string"}, "prefixItems": [{"enum": ["a", "b"]}], "uniqueItems": True},
            None,
            None,
        ),
        (
            {"items": {"enum": ["a", "b", 1]}, "uniqueItems": True},
            ['["a",1,"b"]'],
            ['["a","a"]', '["c"]'],
        ),
        (
            {"anyOf": [{**STRINGS, "uniqueItems": True}, {"items": {"maxLength": 1, "type": "string"}}]},
            ['["a","a","b"]', '["aa","a"]'],
            ['["a","a","bb"]', '["bb","a","a"]', '["bb","bb"]'],
        ),
        ({"items": {"type": "integer"}, "uniqueItems": True}, None, None),
        ({"items": {"type": "object"}, "uniqueItems": True}, None, None),
        ({"items": {"type": "string"}, "contains": {"const": "a"}, "uniqueItems": True}, None, None),
    ],
)
def test_schemas(schema: Any, accepted: list[str] | None, refused: list[str] | None) -> None:
    for options in ({}, {"property_order": "any"}):
        if accepted is None or refused is None:
            with pytest.raises(UnsupportedSchemaError) as error:
                json_schema({"type": "array", **schema}, **options)
            assert error.value.pointer == "#/uniqueItems"
            continue
        if isinstance(schema, dict):
            kind = "array" if any("tems" in str(key) or key == "anyOf" for key in schema) else "object"
            schema = {"type": kind, **schema}
        constraint = json_schema(schema, **options)
        automaton = compile(constraint, VOCABULARY)
        for text in (*accepted, *refused):
            assert constraint.accepts(text) is (text in accepted), (schema, text)
            matcher = automaton.matcher()
            end = matcher.accept_tokens(VOCABULARY.encode_greedy(text.encode())) and matcher.is_accepting()
            assert end is (text in accepted), (schema, text)
        witness = constraint.witness()
        assert witness is not None and constraint.accepts(witness)


def test_names_of_few_words_are_listed_and_may_run_out() -> None:
    """When all are used, no comma leads into a dead end."""
    schema = {
        "patternProperties": {"^[ab]$": {"const": None}},
        "additionalProperties": False,
        "type": "object",
    }
    constraint = compact(schema)
    assert constraint.next_bytes(b'{"b":null')[0] == b",}"
    assert constraint.next_bytes(b'{"b":null,"a":null')[0] == b"}"
    assert constraint.next_bytes(b'{"b":null,"')[0] == b"\\a"


@pytest.mark.parametrize(
    "schema", [{"type": "object"}, {**STRINGS, "uniqueItems": True}, {"additionalProperties": {"const": 0}}]
)
def test_going_back_and_forth(schema: Any) -> None:
    """rollback, fork, reset, validate_tokens and draft trees: always as a matcher that read the tokens once."""
    automaton = compile(compact(schema), VOCABULARY)
    rng = random.Random(7)
    matcher = automaton.matcher()
    for _ in range(40):
        while len(matcher.tokens) < 14 and (ways := sorted(allowed(matcher) & set(TYPED))):
            if matcher.num_tokens and rng.random() < 0.3:
                matcher.rollback(rng.randrange(1, min(matcher.num_tokens, 5) + 1))
            else:
                assert matcher.accept_token(rng.choice(ways))
            again = automaton.matcher()
            assert again.accept_tokens(matcher.tokens)
            assert allowed(again) == allowed(matcher)
            copy = matcher.fork()
            drafts = [rng.choice(TYPED) for _ in range(3)]
            count = copy.validate_tokens(drafts)
            assert allowed(copy) == allowed(matcher)
            for number, token in enumerate(drafts):
                assert copy.accept_token(token) is (number < count)
                if number >= count:
                    break
            assert allowed(again) == allowed(matcher)
        rows = allocate_token_bitmask(4, len(VOCABULARY))
        drafts = [0, *(rng.choice(TYPED) for _ in range(3))]
        matcher.traverse_draft_tree(
            np.array([1, 2, -1, -1]), np.array([-1, 3, -1, -1]), np.array(drafts), rows
        )
        for path, row in (([], 0), ([1], 1), ([1, 2], 2), ([3], 3)):
            copy = matcher.fork()
            fits = copy.accept_tokens([drafts[node] for node in path])
            bits = np.unpackbits(np.asarray(rows[row]).view(np.uint8), bitorder="little")
            assert set(np.flatnonzero(bits).tolist()) == (allowed(copy) if fits else set())
        matcher.reset()


def test_going_far_back() -> None:
    automaton = compile(json_object(whitespace="compact"), VOCABULARY)
    names = [f"{first}{second}" for first in "abcde" for second in "abcde"]
    text = "{" + ",".join(f'"{name}":{{"x":1,"y":2}}' for name in names)
    tokens = [TOKENS.index(bytes((byte,))) for byte in text.encode()]
    matcher = automaton.matcher()
    assert matcher.accept_tokens(tokens)
    states = {}
    for length in (len(tokens), 300, 150, 31, 33, 17, 16, 15, 1, 0):
        if length < matcher.num_tokens:
            matcher.rollback(matcher.num_tokens - length)
        else:
            assert matcher.accept_tokens(tokens[matcher.num_tokens : length])
        again = automaton.matcher()
        assert again.accept_tokens(tokens[:length])
        assert allowed(again) == allowed(matcher)
        states[length] = matcher.state
    assert len(set(states.values())) == len(states)
    assert matcher.accept_tokens(tokens)
    assert matcher.fork().accept_tokens(list(b',"f":0}'))
    assert not matcher.fork().accept_tokens(list(b',"cc":0}'))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "minProperties": 3},
        {**STRINGS, "uniqueItems": True, "minItems": 4},
        {
            "minProperties": 2,
            "additionalProperties": {"minProperties": 2, "additionalProperties": {"const": 1}},
        },
    ],
)
@pytest.mark.parametrize("expanded", [False, True])
def test_a_budget_of_tokens_always_suffices(schema: Any, *, expanded: bool) -> None:
    constraint = json_schema({"type": "object", **schema}, whitespace="compact")
    automaton = compile(constraint, VOCABULARY)
    if expanded:
        automaton = automaton.expand()
    least = automaton.matcher().distance()
    with pytest.raises(TokenBudgetError):
        automaton.matcher(max_tokens=0)
    rng = random.Random(3)
    for _ in range(25):
        matcher = automaton.matcher(max_tokens=least + rng.randrange(9))
        while not matcher.is_terminated():
            ways = sorted(allowed(matcher))
            if not ways:
                break
            few = [token for token in ways if token in TYPED or token == END]
            assert matcher.accept_token(rng.choice(few or ways))
        text = b"".join(TOKENS[token] for token in matcher.tokens if token != END)
        assert constraint.accepts(text), text


@pytest.mark.parametrize("number", range(len(WORLDS)))
def test_artifacts_hold_the_marks(number: int, tmp_path: Any) -> None:
    schema, _, _ = WORLDS[number]
    lazy = compile(compact(schema), VOCABULARY)
    lazy.expand().save(tmp_path / "schema.safetensors")
    loaded = TokenAutomaton.load(tmp_path / "schema.safetensors", VOCABULARY)
    rng = random.Random(number)
    for _ in range(40):
        ours, theirs = lazy.matcher(), loaded.matcher()
        for _ in range(12):
            ways = allowed(ours)
            assert allowed(theirs) == ways, text_of(ours)
            typed = sorted(ways & set(TYPED))
            if not typed:
                break
            token = rng.choice(typed)
            assert ours.accept_token(token) and theirs.accept_token(token)


def test_inside_of_a_larger_text() -> None:
    """Brackets and quotation marks before the JSON text do not confuse its reader."""
    inner = json_schema({"type": "object", "additionalProperties": {"const": 0}}, whitespace="compact")
    rules = {
        "start": ex.concat(ex.literal(b'say "{[ '), ex.call("call"), ex.literal(b' " and '), ex.call("call")),
        "call": inner.expr if isinstance(inner, Language) else ex.call("value"),
    }
    if isinstance(inner, Grammar):
        rules |= inner.rules
    grammar = Grammar.from_rules(rules, "start")
    for first, second, fine in (
        ('{"a":0}', '{"a":0}', True),
        ('{"a":0,"b":0}', "{}", True),
        ('{"a":0,"a":0}', "{}", False),
        ("{}", '{"a":0,"a":0}', False),
    ):
        assert grammar.accepts(f'say "{{[ {first} " and {second}') is fine


WORDPIECES = [b"", *(sign.encode() for sign in '[]{}",:ab0'), b"ab"]


def test_finite_machines_are_refused_and_say_what_helps() -> None:
    language = listed("[ab]*")
    for question in (
        lambda: language.determinize(),
        lambda: (~language).is_empty(),
        lambda: language.equivalent(language),
        lambda: json_value() & Language.any_text(),
        lambda: compile(json_value(), Vocabulary(WORDPIECES, 0)),
        lambda: compile(language, Vocabulary(WORDPIECES, 0)),
    ):
        with pytest.raises(ConstraintError, match='repeated_names="allow"'):
            question()
    allowing = json_schema({"additionalProperties": {"const": 0}, "type": "object"}, repeated_names="allow")
    assert allowing.accepts('{"a":0,"a":0}')
    with pytest.raises(ConstraintError, match="repeated_names"):
        json_schema(True, repeated_names="maybe")  # type: ignore[arg-type]


def test_any_value_at_a_depth() -> None:
    for constraint in (json_value(2), json_object(2), json_value().truncate(2)):
        assert constraint.accepts('{"a":{"b":1},"b":2}')
        assert not constraint.accepts('{"a":{"b":1,"b":1}}')
        assert not constraint.accepts('{"a":1,"a":{"b":1}}')


def test_budgets_of_names_of_few_letters(tekken: Vocabulary) -> None:
    """Bounds on completions differ from step to step: what a token was let pass for must stay allowed."""
    names = {"type": "object", "patternProperties": {"^[ab]+$": {"type": "null"}}, "minProperties": 3}
    automaton = compile(json_schema({**names, "additionalProperties": False}), tekken)
    assert automaton.distance() == automaton.matcher().distance() == 13
    bitmask = allocate_token_bitmask(1, len(tekken))
    short = [token for text in (b'"', b"a", b"b", b",", b":", b"}") for token in tekken.ids(text)]
    for seed in range(30):
        rng = random.Random(seed)
        matcher = automaton.matcher(max_tokens=rng.choice([13, 14, 16, 18]))
        while not matcher.is_terminated() and matcher.max_tokens_left:
            matcher.fill_next_token_bitmask(bitmask, 0)
            mask = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")
            some = [token for token in short if mask[token]] if rng.random() < 0.7 else []
            assert matcher.accept_token(int(rng.choice(some or np.flatnonzero(mask).tolist())))
        assert matcher.is_accepting()
        found = json.loads(tekken.decode(matcher.tokens), object_pairs_hook=list)
        assert len({name for name, _ in found}) == len(found) >= 3
