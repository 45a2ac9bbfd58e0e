"""What notebooks show: facts of every kind of value, escaped, and pictures where they are small."""

from __future__ import annotations

import shutil
import time

import pytest

import tokenfst
from tokenfst import Budget, Language, Vocabulary, compile, gbnf, json_schema, lark_grammar, regex
from tokenfst.notebook import SMALL, card

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
    assert "Schema" in shown(json_schema({"type": "integer"}))


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
