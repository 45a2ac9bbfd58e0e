"""docs/constraints/json-schema.md has a table of every keyword, made by trying out what is exact, what is refused, and
what is left out where that is asked for.

``python tests/automata/json_schema/test_json_schema_page.py`` writes the present tables into the page.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenfst.automata.formats.registry import FORMATS
from tokenfst.automata.json_schema.documents.keywords import KEYWORDS
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import UnsupportedSchemaError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "constraints" / "json-schema.md"


@dataclass(frozen=True)
class Case:
    """A use of a keyword: in words, a schema, a text that is valid and one that is not (where it is exact)."""

    words: str
    schema: Any
    valid: str
    invalid: str


def object_of(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", **keywords}


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def chain(length: int) -> dict[str, Any]:
    """References that pass through ``length`` schemas."""
    table: dict[str, Any] = {f"a{k}": {"allOf": [{"$ref": f"#/$defs/a{k + 1}"}]} for k in range(length)}
    return {"$defs": {**table, f"a{length}": {"type": "null"}}, "$ref": "#/$defs/a0"}


_ALTERNATIVES = [{"properties": {f"a{k}": {}}, "required": [f"a{k}"]} for k in range(9)]
_WORDS = [f"w{k}" for k in range(8)]
_PATTERNS = {f"a.*{chr(97 + k)}": {"minimum": k} for k in range(7)}

CASES: dict[str, list[Case]] = {
    "type": [Case("all types, and lists of them", {"type": ["integer", "null"]}, "null", '"a"')],
    "enum": [
        Case("any values, 10,000 of them too", {"enum": [1, "a", [1], {"a": 1}]}, '{"a": 1}', "[2]"),
        Case("strings of more than 500,000 characters in all", {"enum": ["a" * 500_001]}, "", "1"),
    ],
    "const": [
        Case(
            "any value; members in the order of the constant",
            {"const": {"b": 1, "a": 1}},
            '{"b": 1, "a": 1}',
            "{}",
        ),
        Case("arrays more than 200 deep", {"const": nested(201)}, "", "1"),
    ],
    **{
        name: [
            Case("integers and decimals", {"type": "number", name: 2.5}, valid, invalid),
            Case("numbers of more than 500 digits", f'{{"{name}": 1e501}}', "", "1"),
        ]
        for name, valid, invalid in (
            ("minimum", "2.50", "2.49"),
            ("maximum", "2.50", "2.51"),
            ("exclusiveMinimum", "2.51", "2.5"),
            ("exclusiveMaximum", "2.49", "2.5"),
        )
    },
    "multipleOf": [
        Case("integers and decimals", {"type": "number", "multipleOf": 0.01}, "1.25", "1.255"),
        Case(
            "divisors with too many remainders (123456789)",
            {"type": "integer", "multipleOf": 123456789},
            "",
            "1",
        ),
    ],
    "minLength": [
        Case(
            "code points, through escapes and surrogate pairs",
            {"type": "string", "minLength": 2},
            r'"\ud83d\ude00a"',
            '"😀"',
        ),
        Case("more than 2,147,483,647", {"minLength": 2**31}, "", "1"),
    ],
    "maxLength": [
        Case("code points; any bound", {"type": "string", "maxLength": 1}, r'"\ud83d\ude00"', '"aa"')
    ],
    "pattern": [
        Case(
            "ECMA-262: anywhere in the text, `\\d` is ASCII, `\\p{…}`, look-around",
            {"type": "string", "pattern": r"^(?!a)\p{L}\d$"},
            '"é1"',
            '"a1"',
        ),
        Case(
            "back-references to groups of few texts, modifiers (`(?i:...)`)",
            {"type": "string", "pattern": r"^(?i:(a|b)\1)$"},
            '"aA"',
            '"ab"',
        ),
        Case("other back-references", {"type": "string", "pattern": r"^(a*)\1$"}, '"aa"', '"aba"'),
        Case("more than 20,000 characters", {"type": "string", "pattern": "a" * 20_001}, "", "1"),
    ],
    "format": [
        Case(
            "the formats below; other names constrain nothing",
            {"type": "string", "format": "date"},
            '"2024-02-29"',
            '"2023-02-29"',
        ),
        Case("`idn-hostname`", {"type": "string", "format": "idn-hostname"}, '"a"', '"a b"'),
        Case(
            "the complement of `hostname`, without A-labels",
            {"type": "string", "not": {"format": "hostname"}},
            '"a b"',
            '"a"',
        ),
        Case(
            "the complement of `regex`, which leaves words out",
            {"type": "string", "not": {"format": "regex"}},
            '"(a"',
            '"a"',
        ),
    ],
    "items": [Case("all", {"type": "array", "items": {"type": "null"}}, "[null]", "[1]")],
    "prefixItems": [Case("all", {"type": "array", "prefixItems": [{"type": "null"}]}, "[null, 1]", "[1]")],
    "additionalItems": [
        Case(
            "beside an array of `items`",
            {"type": "array", "items": [{}], "additionalItems": False},
            "[1]",
            "[1, 1]",
        )
    ],
    "contains": [
        Case("all", {"type": "array", "contains": {"const": 1}}, "[0, 1]", "[0]"),
        Case("under `not`", {"type": "array", "not": {"contains": {"const": 1}}}, "[0]", "[0, 1]"),
    ],
    "minContains": [
        Case(
            "with `contains`",
            {"type": "array", "contains": {"const": 1}, "minContains": 2},
            "[1, 0, 1]",
            "[1]",
        ),
        Case(
            "more than 2,000 states of counters",
            {"type": "array", "contains": {"const": 1}, "minContains": 3000},
            "",
            "1",
        ),
    ],
    "maxContains": [
        Case(
            "with `contains`",
            {"type": "array", "contains": {"const": 1}, "maxContains": 1},
            "[1, 0]",
            "[1, 1]",
        ),
        Case(
            "more than 2,000 states of counters",
            {"type": "array", "contains": {"const": 1}, "maxContains": 3000},
            "",
            "1",
        ),
    ],
    "minItems": [Case("up to 2,147,483,647", {"type": "array", "minItems": 2}, "[1, 1]", "[1]")],
    "maxItems": [Case("any bound", {"type": "array", "maxItems": 1}, "[1]", "[1, 1]")],
    "uniqueItems": [
        Case(
            "items of up to 7 listed values",
            {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True},
            "[2, 1]",
            "[1, 1]",
        ),
        Case(
            "8 listed values",
            {"type": "array", "items": {"enum": _WORDS}, "uniqueItems": True},
            '["w7", "w1"]',
            '["w7", "w7"]',
        ),
        Case(
            "strings",
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            '["a", "b"]',
            '["a", "a"]',
        ),
        Case(
            "numbers, arrays and objects",
            {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
            "[1, 2]",
            "[1, 1]",
        ),
        Case("any values", {"type": "array", "uniqueItems": True}, "[1, [1]]", "[1, 1]"),
        Case(
            "beside `contains`",
            {"type": "array", "contains": {"const": 1}, "uniqueItems": True},
            "[2, 1]",
            "[1, 2, 1]",
        ),
        Case(
            "more items than it is known that there are values",
            {
                "type": "array",
                "items": {
                    "properties": {"a": {"type": "boolean"}},
                    "type": "object",
                    "additionalProperties": False,
                },
                "uniqueItems": True,
                "minItems": 4,
            },
            "[1, 2, 3, 4]",
            "[1]",
        ),
        Case(
            "under `not`, over listed values",
            {"type": "array", "items": {"enum": [1, 2]}, "not": {"uniqueItems": True}},
            "[1, 1]",
            "[1, 2]",
        ),
        Case(
            "under `not`, over other values",
            {"type": "array", "not": {"uniqueItems": True}},
            "[1, 1]",
            "[1, 2]",
        ),
    ],
    "unevaluatedItems": [
        Case(
            "all",
            {"type": "array", "anyOf": [{"prefixItems": [{"const": 1}]}, True], "unevaluatedItems": False},
            "[1]",
            "[2]",
        )
    ],
    "properties": [
        Case(
            "all; names never repeat",
            object_of(properties={"a": {"type": "null"}}),
            '{"a": null}',
            '{"a": 1}',
        )
    ],
    "patternProperties": [
        Case(
            "all that overlap in up to 64 ways",
            object_of(patternProperties={"^a": {"type": "null"}}),
            '{"ab": null}',
            '{"ab": 1}',
        ),
        Case(
            "more than 64 kinds of names", object_of(patternProperties=_PATTERNS), '{"abc": 9}', '{"abc": 0}'
        ),
    ],
    "additionalProperties": [
        Case(
            "all",
            object_of(properties={"a": {}}, additionalProperties={"type": "null"}),
            '{"b": null}',
            '{"b": 1}',
        )
    ],
    "propertyNames": [Case("all", object_of(propertyNames={"maxLength": 1}), '{"é": 1}', '{"ab": 1}')],
    "required": [
        Case(
            "all",
            object_of(required=["b", "a"]),
            '{"b": 1, "c": 1, "a": 1}',
            '{"b": 1}',
        )
    ],
    "minProperties": [
        Case(
            "all",
            object_of(required=["a"], minProperties=3),
            '{"a": 1, "b": 1, "c": 1}',
            '{"a": 1, "b": 1, "b": 1}',
        ),
        Case(
            "names of a finite set",
            object_of(patternProperties={"^[0-9]{3}$": {}}, additionalProperties=False, minProperties=2),
            '{"001": 1, "000": 1}',
            '{"000": 1, "000": 1}',
        ),
        Case(
            "a finite set of more than 256 names that may have no value",
            object_of(
                patternProperties={"^[0-9]{3}$": {"type": "array", "minItems": 1, "items": {}}},
                additionalProperties=False,
                minProperties=2,
            ),
            "",
            "1",
        ),
        Case(
            "more than 40,000 pairs of a listed name and a count",
            object_of(
                properties={f"a{k}": {} for k in range(300)}, minProperties=200, additionalProperties=False
            ),
            "",
            "1",
        ),
    ],
    "maxProperties": [
        Case("all", object_of(maxProperties=1), '{"a": 1}', '{"a": 1, "b": 1}'),
        Case(
            "more than 40,000 pairs of a listed name and a count",
            object_of(properties={f"a{k}": {} for k in range(300)}, maxProperties=200),
            "",
            "1",
        ),
    ],
    "dependencies": [Case("all", object_of(dependencies={"a": ["b"]}), '{"a": 1, "b": 1}', '{"a": 1}')],
    "dependentRequired": [
        Case("all", object_of(dependentRequired={"a": ["b"]}), '{"a": 1, "b": 1}', '{"a": 1}')
    ],
    "dependentSchemas": [
        Case("all", object_of(dependentSchemas={"a": {"required": ["b"]}}), '{"a": 1, "b": 1}', '{"a": 1}')
    ],
    "unevaluatedProperties": [
        Case(
            "what is evaluated is split into up to 256 cases",
            object_of(anyOf=_ALTERNATIVES[:3], unevaluatedProperties=False),
            '{"a0": 1, "a1": 1}',
            '{"a0": 1, "b": 1}',
        ),
        Case(
            "more than 256 cases",
            object_of(anyOf=_ALTERNATIVES, unevaluatedProperties=False),
            '{"a0": 1}',
            '{"b": 1}',
        ),
    ],
    "allOf": [
        Case(
            "more than 600 kinds of arrays, or of objects, in one and several in another",
            {
                "allOf": [
                    {"anyOf": [object_of(required=[f"a{k}"]) for k in range(count)]} for count in (601, 2)
                ]
            },
            '{"a0": 1}',
            "{}",
        ),
        Case("intersection", {"allOf": [{"type": "integer"}, {"minimum": 2}]}, "2", "1"),
    ],
    "anyOf": [
        Case("union", {"anyOf": [{"type": "null"}, {"minimum": 2, "type": "number"}]}, "null", "1"),
    ],
    "oneOf": [
        Case("exactly one", {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}, "2.5", "2"),
        Case(
            "branches with `uniqueItems` over listed values",
            {
                "oneOf": [
                    {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True},
                    {"type": "array", "minItems": 2},
                ]
            },
            "[1, 1]",
            "[1, 2]",
        ),
        Case(
            "branches with `uniqueItems` over other values that overlap others",
            {
                "oneOf": [
                    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
                    {"type": "array", "minItems": 2},
                ]
            },
            "[1]",
            "[1, 2]",
        ),
    ],
    "not": [
        Case(
            "complement",
            {"type": "object", "not": object_of(properties={"a": {"type": "null"}})},
            '{"a": 1}',
            '{"a": null}',
        ),
        Case(
            "a free member that must be there while members are counted",
            object_of(maxProperties=2, **{"not": {"additionalProperties": {"type": "null"}}}),
            '{"a": 1, "b": 1}',
            '{"a": null, "b": null}',
        ),
        Case(
            "more than 600 kinds of arrays, or of objects",
            {"not": {"anyOf": [object_of(required=[f"a{k}"]) for k in range(601)]}},
            "{}",
            '{"a7": 1}',
        ),
    ],
    "if": [Case("with `then` and `else`", {"if": {"type": "integer"}, "then": {"minimum": 2}}, "1.5", "1")],
    "then": [Case("with `if`", {"if": {"type": "integer"}, "then": {"minimum": 2}}, "2", "1")],
    "else": [
        Case("with `if`", {"if": {"type": "integer"}, "else": {"minimum": 2}, "type": "number"}, "1", "1.5")
    ],
    "$ref": [
        Case(
            "recursion too; other documents through `resolver`",
            {"type": "array", "items": {"$ref": "#"}},
            "[[], [[]]]",
            "[1]",
        ),
        Case(
            "more than 60 references and applicators inside of each other in one place",
            chain(80),
            "null",
            "1",
        ),
    ],
    "$dynamicRef": [
        Case("all", {"$dynamicAnchor": "a", "type": "array", "items": {"$dynamicRef": "#a"}}, "[[]]", "[1]")
    ],
    "$recursiveRef": [
        Case(
            "all",
            {
                "$schema": "https://json-schema.org/draft/2019-09/schema",
                "type": "array",
                "items": {"$recursiveRef": "#"},
            },
            "[[]]",
            "[1]",
        )
    ],
}

_DRAFTS = {4: "04", 6: "06", 7: "07", 2019: "2019-09", 2020: "2020-12"}


def keyword_table() -> str:
    lines = [
        "| keyword | drafts | exact | refused, with the place and the reason | with `relax`, left out |",
        "|---|---|---|---|---|",
    ]
    for name, (first, last, _) in KEYWORDS.items():
        exact, refused, left_out = [], [], []
        for case in CASES[name]:
            try:
                constraint = json_schema(case.schema, spelling="any")
            except UnsupportedSchemaError:
                relaxed = json_schema(case.schema, spelling="any", on_unsupported="relax")
                assert relaxed.relaxed and (not case.valid or relaxed.accepts(case.valid)), case
                refused.append(case.words)
                tokens = [each.pointer.rpartition("/")[2] for each in relaxed.relaxed]
                left_out += [
                    f"`{token}`" if token in KEYWORDS else "the schema at that place" for token in tokens
                ]
                continue
            assert not case.valid or constraint.accepts(case.valid), case
            assert not constraint.accepts(case.invalid), case
            exact.append(case.words)
        drafts = _DRAFTS[first] if first == last else f"{_DRAFTS[first]} on" if first > 4 else "all"
        cells = [
            f"`{name}`",
            drafts,
            "; ".join(exact),
            "; ".join(refused),
            ", ".join(dict.fromkeys(left_out)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def format_table() -> str:
    lines = ["| format | defined by | in doubt | left out, or why it is refused |", "|---|---|---|---|"]
    for each in FORMATS:
        without = f"refused: {each.refused}" if each.refused else each.missing
        lines.append(f"| `{each.name}` | {each.reference} | {each.note} | {without} |")
    return "\n".join(lines) + "\n"


def regenerated(page: str) -> str:
    """The page with the tables of now."""
    tables = iter((keyword_table(), format_table()))
    return re.sub(r"(<!-- generated: \w+ -->\n)(?:\|.*\n)*", lambda match: match[1] + next(tables), page)


def test_the_page_has_the_tables_of_now() -> None:
    page = PAGE.read_text()
    assert page.count("<!-- generated: ") == 2
    assert regenerated(page) == page, "run python tests/automata/json_schema/test_json_schema_page.py"


def test_every_keyword_is_tried() -> None:
    assert set(CASES) == set(KEYWORDS)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    PAGE.write_text(regenerated(PAGE.read_text()))
    print(f"wrote {os.path.relpath(PAGE, PAGE.parent.parent)}")
