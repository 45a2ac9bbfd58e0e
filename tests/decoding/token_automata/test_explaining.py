"""Why a token is not allowed: the place and what was expected, by the definition, over every token of small worlds."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.worlds.token_worlds import allowed
from tokenfst import (
    Language,
    Vocabulary,
    compile,
    json_schema,
    lark_grammar,
    load,
    load_vocabulary,
    one_token,
    regex,
    special_token,
)
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.token_automata.explaining import TokenExplanation
from tokenfst.errors import TokenIdError

WORDS = [b"aa", b"ab", b"ba", b"abc", b"cab", b"\xc3\xa9", b"a\xc3", b"((", b"))", b"()", b"(a", b"a)"]
EOS, TOOL = 256 + len(WORDS), 257 + len(WORDS)
WORLD = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), *WORDS, b"", b""],
    EOS,
    {"<tool>": TOOL},
    split_pattern=r"[a-z]+|[^a-z]",
)
NESTED = lark_grammar('start: "(" start ")" | "a"')


def check_place(constraint: Any, text: bytes, token: int, found: TokenExplanation) -> None:
    """By the definition: the longest beginning of the token with which some text begins, and what may follow it."""
    word = WORLD.tokens[token]
    place = max(k for k in range(len(word) + 1) if constraint.viable_prefix(text + word[:k]) == len(text) + k)
    assert found.reason == "text" and found.place == place < len(word)
    assert found.text is not None and found.text.expected is not None
    live, ends = constraint.next_bytes(text + word[:place])
    assert found.text.expected.ends == ends
    ascii_bytes = {byte for byte in live if byte < 128}
    shown = {code for low, high in found.text.expected.characters for code in range(low, high + 1)}
    if found.text.place == len(text) + place:
        assert {code for code in shown if code < 128} == ascii_bytes


@pytest.mark.parametrize("constraint", [regex("(ab|aab|(ca?)+é)*"), NESTED, regex("a{2,3}|é") | NESTED])
@pytest.mark.parametrize("loaded", [False, True])
def test_every_token_at_every_place(constraint: Any, loaded: bool, tmp_path: Path) -> None:
    automaton = compile(constraint, WORLD)
    if loaded:
        automaton.save(tmp_path / "a.safetensors")
        automaton = load(tmp_path / "a.safetensors", WORLD)
    matchers, seen = [automaton.matcher()], {b""}
    while matchers and len(seen) < 30:
        matcher = matchers.pop()
        text = WORLD.decode(matcher.tokens)
        mask = allowed(matcher, len(WORLD))
        for token in range(len(WORLD)):
            found = matcher.explain(token)
            assert bool(found) == (token in mask), found
            if token == EOS:
                assert found.reason == ("allowed" if constraint.accepts(text) else "end")
            elif token == TOOL:
                assert found.reason == "special"
            elif not found:
                check_place(constraint, text, token, found)
            else:
                onward = matcher.fork()
                onward.accept_token(token)
                key = WORLD.decode(onward.tokens)
                if len(key) < 5 and key not in seen:
                    seen.add(key)
                    matchers.append(onward)
        assert WORLD.decode(matcher.tokens) == text


def test_a_caret_and_the_open_rules() -> None:
    grammar = lark_grammar('start: "[" NUMBER ("," NUMBER)* "]"\nNUMBER: /[0-9]+/')
    matcher = compile(grammar, WORLD).matcher()
    assert matcher.accept_tokens(list(b"[1,"))
    assert str(matcher.explain(ord("x"))) == (
        "token 120 (b'x') is not allowed: its byte 0 leaves the language\n"
        "the text leaves the language at byte 3: expected [0-9]\n"
        "  [1,x\n"
        "     ^\n"
        "open rules: start"
    )
    assert str(matcher.explain(ord("7"))) == "token 55 (b'7') is allowed"
    early = matcher.explain(EOS)
    assert early.reason == "end" and early.text is not None and early.text.ending == b"0]"
    assert "stops too early" in str(early)


def test_budgets_and_ends() -> None:
    matcher = compile(NESTED, WORLD).matcher(3)
    assert matcher.accept_token(ord("("))
    found = matcher.explain(WORLD.ids(b"((")[0])
    assert found.reason == "limit" and found.max_tokens_left == 2 and "within 2 tokens" in str(found)
    exact = start_matcher(compile(NESTED, WORLD), 2)
    assert exact.explain(WORLD.ids(b"((")[0]).reason == "limit"
    assert exact.explain(ord("x")).reason == "text"
    assert matcher.accept_tokens([ord("a"), ord(")")])
    assert matcher.explain(EOS).reason == "limit"  # no token is left
    matcher.max_tokens_left = None
    assert matcher.accept_token(EOS)
    found = matcher.explain(ord("a"))
    assert found.reason == "terminated" and "end token" in str(found)


def test_constraints_that_speak_of_tokens() -> None:
    matcher = compile(special_token("<tool>") + one_token(regex("ab?")) + regex("[bc]"), WORLD).matcher()
    assert matcher.explain(ord("a")).reason == "text"
    assert matcher.explain(TOOL).allowed and matcher.accept_token(TOOL)
    assert matcher.explain(TOOL).reason == "special"
    whole = matcher.explain(WORLD.ids(b"abc")[0])
    assert whole.reason == "tokens" or whole.place == 2
    assert matcher.explain(ord("b")).place == 0


def test_canonical_tokens() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        automaton = compile(regex("ab"), WORLD, tokenization="canonical")
    matcher = automaton.matcher()
    found = matcher.explain(ord("a"))
    assert found.reason == "tokens" and "not as this token" in str(found)
    assert matcher.explain(ord("b")).reason == "text"


def test_symbols() -> None:
    from tokenfst import ltlf

    vocabulary = Vocabulary.of_symbols(["open", "read", "close"])
    formula = ltlf("open & X(close)", symbols=["open", "read", "close"])
    matcher = compile(formula, vocabulary).matcher()
    found = matcher.explain(1)
    assert found.symbol == "read" and found.expected_symbols == ("'open'",)
    assert str(found) == "token 1 ('read') is not allowed: expected 'open'"


def test_bad_arguments_and_other_processes() -> None:
    matcher = compile(Language.literal("ab"), WORLD).matcher()
    for token in (-1, len(WORLD)):
        with pytest.raises(TokenIdError, match="outside"):
            matcher.explain(token)
    with pytest.raises(TypeError):
        matcher.explain("a")  # type: ignore[arg-type]
    there = pickle.loads(pickle.dumps(matcher))
    assert there.explain(ord("x")) == matcher.explain(ord("x"))


def test_other_processes_need_not_know_a_python_type() -> None:
    @dataclass
    class Local:
        name: str

    matcher = compile(json_schema(Local), WORLD).matcher()
    there = pickle.loads(pickle.dumps(matcher))
    assert there.explain(ord("x")).text.expected == matcher.explain(ord("x")).text.expected
    grammar = NESTED.capturing("start")
    there = pickle.loads(pickle.dumps(compile(grammar, WORLD).matcher()))
    assert there.accept_tokens(list(b"(a)")) and there.captures() == grammar.captures("(a)")
    expanded = compile(NESTED, WORLD).expand().matcher()
    assert expanded.explain(ord("x")).text.rules == ("start",)


def test_real_vocabulary() -> None:
    vocabulary = load_vocabulary("mistral:tekken_240911")
    schema = json_schema({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]})
    matcher = compile(schema, vocabulary).matcher()
    assert matcher.accept_tokens(vocabulary.encode_greedy(b'{"age": '))
    found = matcher.explain(vocabulary.ids(b"true")[0])
    assert found.place == 0 and found.text is not None and str(found.text.expected) == r"[\-0-9]"
