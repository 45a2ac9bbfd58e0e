"""What errors say about how to make what is wanted: each remedy of the table is written out and works."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenfst
import tokenfst.fst as fst
from tokenfst import Budget, Language, Vocabulary, json_schema, lark_grammar, regex
from tokenfst.common.remedies import ROWS, remedy
from tokenfst.errors import ArgumentTypeError, ConstraintError, PatternError, VocabularyError

VOCABULARY = Vocabulary([b"a", b"b", b"ab", b""], eos_token_id=3)
AB = regex("a*b")
GRAMMAR = lark_grammar('start: "(" start ")" | ""')
MATCHER = tokenfst.compile(AB, VOCABULARY).matcher()


class _Tokenizer:
    """In place of one of transformers, known by its module."""

    __module__ = "transformers.tokenization_utils_fast"


class _Encoding:
    __module__ = "tiktoken.core"


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "pattern": (lambda: tokenfst.compile("a*b", VOCABULARY), "tokenfst.regex"),
    "schema": (lambda: tokenfst.compile({"type": "string"}, VOCABULARY), "tokenfst.json_schema"),
    "type": (lambda: tokenfst.compile(int, VOCABULARY), "Python type"),
    "list of types": (lambda: tokenfst.compile(list[int], VOCABULARY), "Python type"),
    "texts": (lambda: tokenfst.compile(["a", "b"], VOCABULARY), "tokenfst.choices"),
    "compiled": (lambda: AB.includes(re.compile("a")), "pattern.pattern"),
    "machine": (lambda: AB.includes(fst.accep("a")), "Language.from_fst"),
    "compiled in place of a pattern": (lambda: regex(re.compile("a")), "pattern.pattern"),
    "schema in place of a pattern": (lambda: regex({"type": "string"}), "tokenfst.json_schema"),
    "and": (lambda: AB & "a", "&: .*tokenfst.regex"),
    "from the left": (lambda: "a" | AB, r"\|: .*tokenfst.regex"),
    "or": (lambda: AB | {"type": "string"}, r"\|: .*tokenfst.json_schema"),
    "add": (lambda: AB + "a", r"\+: .*Language.literal"),
    "add from the left": (lambda: "a" + AB, r"\+: .*Language.literal"),
    "minus": (lambda: AB - ["a"], "-: .*tokenfst.choices"),
    "grammar and": (lambda: GRAMMAR & "a", "&: .*tokenfst.regex"),
    "grammar or": (lambda: "a" | GRAMMAR, r"\|: .*tokenfst.regex"),
    "grammar minus": (lambda: GRAMMAR - "a", "-: .*tokenfst.regex"),
    "weighted": (lambda: tokenfst.WeightedLanguage.of(AB) & "a", "&: .*tokenfst.regex"),
    "name": (lambda: tokenfst.compile(AB, "gpt2"), 'load_vocabulary.*"hf:gpt2"'),
    "path": (lambda: tokenfst.compile(AB, Path("tokenizer.json")), "load_vocabulary"),
    "tokenizer": (lambda: tokenfst.compile(AB, _Tokenizer()), "Vocabulary.from_huggingface"),
    "encoding": (lambda: tokenfst.compile(AB, _Encoding()), "Vocabulary.from_tiktoken"),
    "tokens": (lambda: tokenfst.compile(AB, [b"a"]), r"Vocabulary\(tokens, eos_token_id=\.\.\.\)"),
    "constraint": (
        lambda: tokenfst.ConstraintLogitsProcessor(AB),
        r"tokenfst.compile\(constraint, vocabulary\)",
    ),
    "several constraints": (
        lambda: tokenfst.ConstraintLogitsProcessor([AB]),
        r"tokenfst.compile\(constraint",
    ),
    "artifact": (lambda: tokenfst.ConstraintLogitsProcessor(["x.safetensors"]), "tokenfst.load"),
    "text": (lambda: MATCHER.accept_token("a"), "encode_greedy"),
    "texts of tokens": (lambda: MATCHER.accept_tokens("ab"), "encode_greedy"),
    "decoded": (lambda: VOCABULARY.decode("ab"), "encode_greedy"),
    "tokens of one": (lambda: MATCHER.accept_token([0, 1]), "accept_tokens"),
    "array of one": (lambda: MATCHER.accept_token(np.array([0])), r"value\.item\(\)"),
    "bytes": (lambda: VOCABULARY.ids("ab"), r"text\.encode\(\)"),
    "no bytes": (lambda: tokenfst.repair(b"ab", AB), r"data\.decode\(\)"),
    "seed": (lambda: AB.sample(10), r"random\.Random\(\.\.\.\).*several times"),
    "budget": (lambda: regex("a", budget=5), r"Budget\(seconds="),
    "budget as a dict": (lambda: regex("a", budget={"seconds": 5}), r"Budget\(\*\*fields\)"),
    "matcher": (
        lambda: tokenfst.ConstraintLogitsProcessor(MATCHER),
        "the automaton that the matcher was made of",
    ),
    "prompts": (lambda: tokenfst.generate(None, "a", MATCHER), "Generator"),
    "prompt of a list": (lambda: tokenfst.generate(None, ["a"], MATCHER), r"tokenizer\(text\)\.input_ids"),
    "tokenizer in place of prompts": (lambda: tokenfst.generate(None, _Tokenizer(), MATCHER), "Generator"),
    "tokenizer to load": (lambda: tokenfst.load_vocabulary(_Tokenizer()), "Vocabulary.from_huggingface"),
    "name without a kind": (lambda: tokenfst.load_vocabulary("gpt2"), "'hf:gpt2'"),
    "one tool": (lambda: tokenfst.tools(print, format="hermes"), "put it in a list"),
    "one tool of a dict": (lambda: tokenfst.tools({"type": "function"}, format="hermes"), "put it in a list"),
    "one text as several": (
        lambda: tokenfst.unordered("ab"),
        "^unordered: optional .*put one text in a list",
    ),
    "one constraint as several": (lambda: tokenfst.unordered(AB), "put it in a list"),
    "letters as symbols": (lambda: tokenfst.ltlf("F a").accepts("a"), r"list\(\.\.\.\)"),
    "letters as items": (lambda: tokenfst.delimited_subsequence_of("ab", ","), "not 'ab'"),
    "hole of a list": (lambda: tokenfst.template("{a}", a=["x", "y"]), r"\{a\}.*tokenfst\.choices"),
    "versions of a schema": (lambda: tokenfst.schema_changes({}, {}), r"tokenfst\.json_schema"),
    "tuple in a schema": (lambda: json_schema({"enum": ("a", "b")}), "^#/enum: .*write a list, not a tuple"),
    "schema in bytes": (lambda: json_schema(b"{}"), r"data\.decode\(\)"),
    "grammar in bytes": (lambda: lark_grammar(b""), r"data\.decode\(\)"),
    "repair": (lambda: tokenfst.repair("ab", "a*"), "tokenfst.regex"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_says_what_makes_the_thing_that_is_wanted(name: str) -> None:
    call, said = CASES[name]
    with pytest.raises((ArgumentTypeError, ConstraintError, VocabularyError), match=said):
        call()


def test_every_remedy_is_public_and_does_what_it_says() -> None:
    schema, text = {"type": "string"}, "ab"
    made = [
        regex("a*b"), Language.literal(text), json_schema('{"type": "string"}'), lark_grammar('start: "a"'),
        json_schema(schema), json_schema(int), json_schema(list[int]), tokenfst.choices(["a", "b"]),
        regex(re.compile("a").pattern), Language.from_fst(fst.with_byte_labels(fst.accep("a"))),
    ]  # fmt: skip
    assert all(each.witness() is not None for each in made)
    assert MATCHER.fork().accept_tokens(VOCABULARY.encode_greedy(text.encode()))
    assert MATCHER.fork().accept_token(np.array([0]).item())
    assert AB.sample(random.Random(10)) == AB.sample(random.Random(10))
    assert regex("a", budget=Budget(seconds=5)).budget == Budget(seconds=5, bytes=Budget().bytes)
    for row in ROWS:
        for name in re.findall(r"tokenfst\.([\w.]+)", row.remedy):
            found: Any = tokenfst
            for part in name.split("."):
                found = getattr(found, part)
            assert callable(found), name


def test_an_error_names_the_call_and_the_argument() -> None:
    calls = tokenfst.tools([], format="hermes")
    for call, said in (
        (lambda: MATCHER.explain("a"), "^Matcher.explain: token_id"),
        (lambda: calls.parser().feed(None), "^reading calls: the text must be text or bytes, not None$"),
        (lambda: tokenfst.template("{a}", a="x").parse(5), "^parse: text must be"),
        (lambda: json_schema({}, separators=(",",)), "separators must be two texts, such as"),
        (lambda: lark_grammar(None), "^lark_grammar: a grammar must be a str, not NoneType$"),
    ):
        with pytest.raises((ArgumentTypeError, ConstraintError), match=said):
            call()


def test_a_pattern_in_another_argument_says_in_which() -> None:
    with pytest.raises(PatternError) as caught:
        json_schema({}, whitespace="[ ")
    assert caught.value.__notes__ == [
        "in whitespace='[ ', which is none of 'flexible', 'compact' and 'pretty'"
    ]


def test_a_value_without_a_remedy_gets_none() -> None:
    assert remedy("a Constraint", object()) == remedy("a Constraint", None) == remedy("an integer", 1.5) == ""
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = AB & object()


def test_a_size_as_on_the_command_line() -> None:
    for text, size in {"1M": 1 << 20, "500M": 500 << 20, "2G": 2 << 30, "1.5KiB": 1536, "7": 7}.items():
        with pytest.raises(ArgumentTypeError, match=f"not {text!r}.*: write bytes=") as caught:
            Budget(bytes=text)
        said = str(caught.value).partition("write bytes=")[2].split(", or ")
        assert [eval(each) for each in said] == [size, size]
    for text in ("much", "0", ""):
        with pytest.raises(ArgumentTypeError, match="Budget: bytes must be an integer, not"):
            Budget(bytes=text)
