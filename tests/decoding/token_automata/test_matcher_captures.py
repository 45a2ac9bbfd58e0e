"""``matcher.captures()``: the same however a text is cut into tokens, after ``rollback`` and in forks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tokenfst import Constraint, Vocabulary, compile, lark_grammar, load, regex, special_token
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.errors import ConstraintError

PAIRS = [b"ab", b"bc", b"a=", b"=1", b"12", b",b", b"1,", b"2,a"]
WORLD = Vocabulary([*(bytes([byte]) for byte in range(256)), *PAIRS, b""], 256 + len(PAIRS))
EOS = WORLD.eos_token_ids[0]
GRAMMAR = lark_grammar("""
    start: pair ("," pair)*
    pair[capture]: KEY "=" value
    value[capture]: NUMBER | "(" start ")"
    KEY: /(?P<key>[a-z]+)/
    NUMBER: /[0-9]+/
""")
TEXT = b"abc=12,b=(a=1,bc=2)"


def cuts(rng: random.Random, text: bytes) -> list[int]:
    """Some tokens that spell a text."""
    found, place = [], 0
    while place < len(text):
        fits = [token for token, word in enumerate(WORLD.tokens) if word and text.startswith(word, place)]
        found.append(rng.choice(fits))
        place += len(WORLD.tokens[found[-1]])
    return found


@pytest.mark.parametrize("exact", [False, True])
def test_tokens_rollback_and_forks(exact: bool) -> None:
    automaton = compile(GRAMMAR, WORLD)
    rng = random.Random(1)
    for _ in range(20):
        matcher = start_matcher(automaton, 100) if exact else automaton.matcher()
        tokens = cuts(rng, TEXT)
        seen = []
        for token in tokens:
            before = WORLD.decode(matcher.tokens)
            seen.append(matcher.captures())
            assert seen[-1] == GRAMMAR.captures(before, prefix=True)
            assert matcher.accept_token(token)
        whole = matcher.captures()
        assert whole == GRAMMAR.captures(TEXT)
        assert [each.text for each in whole["key"]] == ["abc", "b", "a", "bc"]
        fork = matcher.fork()
        back = rng.randrange(1, len(tokens))
        matcher.rollback(back)
        assert matcher.captures() == seen[len(tokens) - back]
        assert fork.accept_token(EOS) and fork.captures() == whole


def test_what_is_open_and_what_ends() -> None:
    matcher = compile(regex("(?P<a>a+)(?P<b>b*)"), WORLD).matcher()
    assert matcher.captures() == {"a": [], "b": []} or matcher.captures()["a"][0].is_open
    assert matcher.accept_tokens([97, 97])
    assert [each.end for each in matcher.captures()["a"]] == [2]  # the text may end here, and then it does
    assert matcher.accept_token(EOS) and matcher.captures()["b"][0].data == b""


def test_expanded_and_loaded(tmp_path: Path) -> None:
    expanded = compile(regex("(?P<a>a+)b"), WORLD).expand()
    matcher = expanded.matcher()
    assert matcher.accept_tokens([97, 98]) and matcher.captures()["a"][0].text == "a"
    expanded.save(tmp_path / "a.safetensors")
    with pytest.raises(ConstraintError, match="loaded from a file"):
        load(tmp_path / "a.safetensors", WORLD).matcher().captures()
    assert compile(regex("a"), WORLD).matcher().captures() == {}


THINK, DONE = 256 + len(PAIRS) + 1, 256 + len(PAIRS) + 2
SPECIAL = Vocabulary([*WORLD.tokens, b"", b""], EOS, {"<think>": THINK, "</think>": DONE})


@pytest.mark.parametrize(
    "constraint",
    [
        lark_grammar(
            "start: <think> thought </think> answer\nthought[capture]: /[a-z ]*/\nanswer[capture]: /.*/"
        ),
        special_token("<think>")
        + regex("(?P<thought>[a-z ]*)")
        + special_token("</think>")
        + regex("(?P<answer>.*)"),
    ],
)
def test_special_tokens_stand_between_the_bytes(constraint: Constraint) -> None:
    matcher = compile(constraint, SPECIAL).matcher()
    assert matcher.accept_tokens([THINK, 256, ord("c")])
    [thought] = matcher.captures()["thought"]
    assert thought.is_open and thought.text == "abc"
    assert matcher.accept_tokens([DONE, ord("d"), ord("e")])
    found = matcher.captures()
    assert [(each.begin, each.end, each.text) for each in found["thought"]] == [(0, 3, "abc")]
    assert [(each.begin, each.end, each.text) for each in found["answer"]] == [(3, 5, "de")]
    matcher.rollback(3)
    assert matcher.captures()["thought"] == [thought]


def test_tokens_of_text_are_refused_beside_captures() -> None:
    matcher = compile(regex("(?P<a>a)(?P<TEXT_TOKEN>)"), SPECIAL).matcher()
    assert matcher.accept_token(ord("a"))
    with pytest.raises(ConstraintError, match="captures beside tokens"):
        matcher.captures()
