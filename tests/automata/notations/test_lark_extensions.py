"""What Lark's notation has here beside lark's own: special tokens, JSON Schemas, named groups in terminals."""

from __future__ import annotations

import pytest

import tokenfst
from tokenfst import EmptyLanguageError, SchemaError, Vocabulary, lark_grammar
from tokenfst.errors import PatternError, PatternSyntaxError, UnsupportedPatternError, VocabularyMismatchError

VOCABULARY = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"", b"", b""], 256, {"</s>": 256, "<|tool|>": 257, "[T]": 258}
)
TOOL, NAMED, END = 257, 258, 256


def test_special_tokens() -> None:
    grammar = lark_grammar('start: "a" (<|tool|> start | %special "[T]")\n%ignore " "')
    matcher = tokenfst.compile(grammar, VOCABULARY).matcher()
    assert matcher.accept_tokens([*b"a ", TOOL, *b" a", NAMED, *b"  ", END])
    matcher.reset()
    assert not matcher.accept_tokens([*b"a<|tool|>"])
    with pytest.raises(VocabularyMismatchError, match="'<other>'"):
        tokenfst.compile(lark_grammar("start: <other>"), VOCABULARY)


SCHEMA = """
start: "call " NAME %json {
  "type": "object", "properties": {"a": {"enum": ["}", 1]}}, // no comment: JSON ends before
  "required": ["a"], "additionalProperties": false
} ";" | again{%json {"type": "array", "items": {"$ref": "#"}}}
again{x}: x x
NAME: /%json[a-z]*/  // %json {
"""


def test_schemas_inside_of_rules() -> None:
    grammar = lark_grammar(SCHEMA.replace("// no comment: JSON ends before", ""))
    for text in ('call %jsonx{"a": "}"};', 'call %json{"a":1};', "[][[]]", "[[], []] []"):
        assert grammar.accepts(text.replace("] []", "][]")), text
    for text in ('call %json{"a": 2};', 'call %json{"a":1}', "[]", "call {};"):
        assert not grammar.accepts(text), text


def test_schemas_of_a_grammar_are_apart() -> None:
    grammar = lark_grammar('start: %json {"type": "integer"} "," %json {"type": "array", "maxItems": 1}')
    assert grammar.accepts("1,[[2]]") and not grammar.accepts("1,[1,2]")


def test_named_groups_in_terminals() -> None:
    grammar = lark_grammar(
        'start: QUOTED ("," QUOTED)* SUB\nQUOTED: /(?P<QUOTED_TEXT>)/ | "x"\nSUB: ":" /(?P<SUBSTRING_OF>abc)/'
    )
    assert grammar.accepts('"a",x,"b":bc') and not grammar.accepts('"a":ac')
    tokens = tokenfst.compile(lark_grammar('start: "a" T "b"\nT: /(?P<PARAGRAPH_TOKEN>){2}/'), VOCABULARY)
    assert tokens.matcher().accept_tokens([*b"axyb", END])
    assert not tokens.matcher().accept_tokens([*b"a\n"])


@pytest.mark.parametrize(
    ("text", "error", "place", "match"),
    [
        ('start: %json {"a": ', PatternSyntaxError, (1, 20), "%json must be followed by a JSON Schema"),
        ("start: %json", PatternSyntaxError, (1, 13), "%json must be followed by"),
        ("start: %json " + "[" * 100_000, PatternSyntaxError, (1, 14), "nested too deeply"),
        ('start: %json {"const": ' + "1" * 5_000 + "}", PatternSyntaxError, (1, 14), "4300 digits"),
        ('start: A\nA: <x> "b"', PatternSyntaxError, (2, 4), "is allowed in rules only"),
        ("start: A\nA: %json {}", PatternSyntaxError, (2, 4), "is allowed in rules only"),
        ('start: A\nA: %special "x"', PatternSyntaxError, (2, 13), "is allowed in rules only"),
        ('start: "a"\n%ignore <x>', PatternSyntaxError, (2, 9), "is allowed in rules only"),
        ("start: %regex {}", PatternSyntaxError, (1, 8), "one of substring_chars"),
        ("start: /(?P<QUOTED_TEXT>x)/", PatternSyntaxError, (1, 8), "nothing"),
        ("start: /a(?P<IMAGE>)$/", UnsupportedPatternError, (1, 8), "beside IMAGE"),
        ('start: %special ""', PatternSyntaxError, (1, 17), "empty string"),
    ],
)
def test_refused(text: str, error: type[PatternError], place: tuple[int, int], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        lark_grammar(text)
    assert str(caught.value).startswith(f"line {place[0]}, column {place[1]}: "), caught.value


def test_schemas_are_checked() -> None:
    with pytest.raises(SchemaError, match="#/type"):
        lark_grammar('start: %json {"type": "foo"}')
    with pytest.raises(EmptyLanguageError):
        lark_grammar('start: %json {"type": "string", "minLength": 2, "maxLength": 1}')
