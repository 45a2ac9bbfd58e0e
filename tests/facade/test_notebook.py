"""What notebooks show: facts of every kind of value, escaped, and pictures where they are small."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import tokenfst
from tokenfst import Budget, Language, Vocabulary, compile, gbnf, json_schema, lark_grammar, regex
from tokenfst.common.notebook import SMALL, card
from tokenfst.common.plurals import counted

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], 256)
drawn = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def shown(value: object) -> str:
    text = value._repr_html_()  # type: ignore[attr-defined]
    assert isinstance(text, str) and text.startswith("<div>") and text.endswith("</div>")
    return text


def test_text_is_escaped_and_cut() -> None:
    text = card("<b>", [("<i>", "<script>&" + "x" * 10_000)], "<svg></svg>")
    assert "&lt;b&gt;" in text and "&lt;script&gt;&amp;" in text and "<script>" not in text
    assert "<svg></svg>" in text and len(text) < 2_000


@drawn
def test_small_languages_have_a_picture() -> None:
    text = shown(regex("yes|no"))
    assert "<svg" in text and "no" in text and "yes" in text
    assert text.count("<svg") == 1 and "<?xml" not in text


def test_empty_and_large_languages_have_none() -> None:
    assert "it is empty" in shown(Language.empty()) and "<svg" not in shown(Language.empty())
    begun = time.process_time()
    for pattern in ("(?s:.*)a(?s:.{40})", "[a-z]{5000}", "(a|b)*c{90000}"):
        text = shown(regex(pattern))
        assert f"more than {SMALL}" in text and "<svg" not in text
    assert time.process_time() - begun < 5


def test_grammars() -> None:
    small = shown(gbnf('root ::= "(" root ")" | "x"'))
    assert "Grammar" in small and "begins with" in small and "root" in small
    assert (
        "<svg" not in shown(tokenfst.bundled_grammar("json"))
        or len(tokenfst.bundled_grammar("json").rules) <= SMALL
    )
    assert "Grammar" in shown(lark_grammar('start: start start | "<"'))


def test_the_card_has_the_name_of_repr() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#"}}}
    call = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    for value in (
        regex("a"),
        gbnf('root ::= "x"'),
        json_schema({"type": "integer"}),
        json_schema(tree),
        tokenfst.tools([call], format="hermes"),
        tokenfst.template("{a}", a="b+"),
    ):
        name = repr(value)[1:].split()[0]
        assert name in ("Language", "Grammar") and f"<strong>{name}</strong>" in shown(value)


@drawn
def test_token_automata() -> None:
    lazy = compile(regex("yes|no"), BYTES)
    assert "so far" in shown(lazy) and "<svg" not in shown(lazy)
    assert "<svg" in shown(lazy.expand()) and "257 tokens" in shown(lazy.expand())
    assert "with a stack" in shown(compile(gbnf('root ::= "(" root ")" | "x"'), BYTES))


def test_automata_are_drawn() -> None:
    automaton = compile(regex("yes|no"), BYTES)
    assert '"\\"y\\""' in automaton.draw().dot and "doublecircle" in automaton.draw().dot
    with pytest.raises(tokenfst.TokenfstError, match="at most 2 are drawn"):
        automaton.draw(max_states=2)


def test_vocabularies_answers_budgets() -> None:
    assert BYTES.fingerprint in shown(BYTES) and "257" in shown(BYTES)
    one, other = regex("a|b"), regex("a|<b>")
    assert "<strong>yes</strong>" in shown(one.equivalent(one))
    refused = shown(one.equivalent(other))
    assert "<strong>no</strong>" in refused and ("left" in refused or "right" in refused)
    assert "1,000,000" in shown(Budget()) and shown(Budget.unlimited()).count("no bound") == 4


def test_calls_of_tools() -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = {"type": "function", "function": {"name": "weather", "parameters": parameters}}
    reply = tokenfst.tools([tool], format="hermes").parse(
        'Well. <tool_call>\n{"name": "weather", "arguments": {"city": "<Oslo>"}}\n</tool_call>'
    )
    call = shown(reply.calls[0])
    assert "ToolCall" in call and "weather" in call and "city" in call and "&quot;&lt;Oslo&gt;&quot;" in call
    assert call in shown(reply) and "Well." in shown(reply) and "reasoning" not in shown(reply)


def test_matchers() -> None:
    matcher = compile(regex("yes|<no>"), BYTES).matcher(max_new_tokens=5)
    assert repr(matcher) == "<Matcher of regex('yes|<no>'): 0 tokens, it must go on, 5 tokens left>"
    matcher.accept_tokens([*b"yes"])
    assert repr(matcher) == "<Matcher of regex('yes|<no>'): 3 tokens, it may end, 2 tokens left>"
    text = shown(matcher)
    assert "&quot;yes&quot;" in text and "3: 121, 101, 115" in text and "&lt;no&gt;" in text
    assert matcher.accept_token(256) and "it has ended" in repr(matcher) and "it has ended" in shown(matcher)
    long = compile(regex("a+"), BYTES).matcher()
    long.accept_tokens([97] * 2_000)
    assert "2,000: … 97" in shown(long) and len(shown(long)) < 2_500
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b""]
    merging = Vocabulary(tokens, 257, split_pattern=r"\S+|\s+")
    other = compile(regex("[ab]+"), merging, tokenization="canonical").matcher()
    assert repr(other) == "<CanonicalMatcher of regex('[ab]+'): 0 tokens, it must go on>"
    assert "<strong>CanonicalMatcher</strong>" in shown(other)


def test_a_matcher_of_an_artifact(tmp_path: Path) -> None:
    compile(regex("a|b"), BYTES).save(tmp_path / "it.safetensors")
    matcher = tokenfst.load(tmp_path / "it.safetensors", BYTES).matcher()
    assert repr(matcher) == "<Matcher of a constraint from a file: 0 tokens, it must go on>"
    assert "a constraint from a file" in shown(matcher)


def test_one_is_singular() -> None:
    assert repr(gbnf('root ::= "x"')).endswith(": 1 rule>")
    assert repr(tokenfst.fst.accep("a")).endswith("of 2 states and 1 arc>")
    assert [counted(number, "entry") for number in (0, 1, 2_000)] == ["0 entries", "1 entry", "2,000 entries"]
