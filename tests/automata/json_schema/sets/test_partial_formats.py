"""Formats whose language leaves words out: narrowed and complemented, and never with a text that is not valid.

``jsonschema`` judges by a table of words of which it is known whether they are host names.
"""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import EmptyLanguageError, UnsupportedSchemaError

HOSTS = {
    **dict.fromkeys(("a", "a.com", "xn--nxasmq6b", "xn--ihqwcrb4cv8a8dqg056pqjye", "q"), True),
    **dict.fromkeys(("", "a b", "-a", "xn--X", "xn--a-", "x--", "a_b"), False),
}
A_LABELS = {"xn--nxasmq6b", "xn--ihqwcrb4cv8a8dqg056pqjye", "xn--X"}
CHECKER = jsonschema.FormatChecker(())
CHECKER.checks("hostname")(lambda value: not isinstance(value, str) or HOSTS.get(value, False))
INSTANCES: list[Any] = [1, {}, *HOSTS, *({name: 1} for name in HOSTS), {"a": 1, "a b": 1}]


def strings(rng: random.Random, depth: int) -> Any:
    """A schema of strings around the format."""
    kind = rng.randrange(7) if depth else rng.randrange(3)
    if kind < 2:
        return {"format": "hostname"}
    if kind == 2:
        return rng.choice(
            ({"const": "q"}, {"maxLength": 3}, {"pattern": "^x"}, {"type": "string"}, {"enum": list(HOSTS)})
        )
    if kind == 3:
        return {"not": strings(rng, depth - 1)}
    if kind == 4:
        names = ("if", "then", "else")
        return {name: strings(rng, depth - 1) for name in names}
    keyword = rng.choice(("oneOf", "anyOf", "allOf"))
    return {keyword: [strings(rng, depth - 1) for _ in range(rng.randrange(1, 4))]}


@pytest.mark.parametrize("seed", range(120))
def test_nothing_invalid_is_accepted(seed: int) -> None:
    rng = random.Random(seed)
    inner = strings(rng, 2)
    schema = {"propertyNames": inner} if seed % 3 == 0 else inner
    validator = jsonschema.Draft202012Validator(schema, format_checker=CHECKER)
    valid = [each for each in INSTANCES if validator.is_valid(each)]
    try:
        constraint = json_schema(schema)
    except EmptyLanguageError:
        assert not [each for each in valid if not_about_a_labels(each)], schema
        return
    for each in INSTANCES:
        accepted = constraint.accepts(json.dumps(each))
        assert not accepted or each in valid, (schema, each)
        assert accepted or each not in valid or not not_about_a_labels(each), (schema, each)


def not_about_a_labels(value: Any) -> bool:
    return A_LABELS.isdisjoint(value if isinstance(value, dict) else [value])


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"not": {"propertyNames": {"format": "hostname"}}}, "#/not"),
        ({"oneOf": [{"propertyNames": {"format": "hostname"}}, {"required": ["a"]}]}, "#/oneOf/0"),
        ({"if": {"propertyNames": {"format": "hostname"}}, "then": {"required": ["a"]}}, "#/if"),
        ({"not": {"format": "regex"}}, "#/not"),
        ({"propertyNames": {"not": {"format": "regex"}}}, "#/propertyNames/not"),
    ],
)
def test_what_is_not_known_is_not_complemented(schema: Any, pointer: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match="the complement of a format that leaves out") as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer
