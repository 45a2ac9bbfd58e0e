"""Types of pydantic and random models: what pydantic writes and reads is in the language, and what is in it is read."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import ipaddress
import random
import re
import warnings
from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from reference.json.python_models import LEAVES, Typed, random_type, walk
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import EmptyLanguageError, UnsupportedSchemaError


def shown(kind: Any) -> str:
    return re.sub(r"[^\w\[\], ]+", ".", str(kind))[:60]


def check_both_ways(typed: Typed, rng: random.Random, count: int) -> bool:
    """Whether a type is read: then what pydantic writes and reads back is accepted, and what is walked is read."""
    kind, make = typed
    try:
        adapter = TypeAdapter(kind)
        constraint = json_schema(kind, whitespace="compact")
    except (
        UnsupportedSchemaError,
        EmptyLanguageError,
        TypeError,
    ):  # TypeError: pydantic makes no adapter of it
        return False
    for _ in range(count):
        with contextlib.suppress(pydantic.ValidationError, ValueError, TypeError, OverflowError):
            text = adapter.dump_json(adapter.validate_python(make(rng)), by_alias=True, warnings=False)
            adapter.validate_json(text)
            assert constraint.accepts(text), (kind, text)
        text = walk(constraint, rng, rng.randrange(50))
        assert text is None or constraint.parse(text) is not Ellipsis
    return True


@pytest.mark.parametrize("typed", LEAVES, ids=[shown(kind) for kind, _ in LEAVES])
def test_types_of_pydantic_both_ways(typed: Typed) -> None:
    check_both_ways(typed, random.Random(0), 20)


def of_random_types(seeds: range) -> int:
    read = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            rng = random.Random(seed)
            with contextlib.suppress(TypeError):  # some unions of these cannot be written
                read += check_both_ways(random_type(rng), rng, 8)
    return read


def test_random_models_both_ways() -> None:
    assert of_random_types(range(60)) > 30


@pytest.mark.soak
@pytest.mark.parametrize("part", range(40))
def test_random_models_both_ways_at_length(part: int) -> None:
    assert of_random_types(range(1_000 + 100 * part, 1_100 + 100 * part)) > 50


@pytest.mark.parametrize("kind", [kind for kind, _ in LEAVES if "networks" in str(kind)], ids=shown)
def test_strict_urls(kind: Any) -> None:
    strict = pydantic.create_model("Strict", __config__=ConfigDict(strict=True), url=(kind, ...))
    try:
        constraint, rng = json_schema(strict, whitespace="compact"), random.Random(0)
    except UnsupportedSchemaError:
        return
    for _ in range(10):
        text = walk(constraint, rng)
        assert text is None or constraint.parse(text) is not Ellipsis


class One(BaseModel):
    kind: Literal["a"] = "a"
    u: int


class Two(BaseModel):
    kind: Literal["b"] = "b"
    v: int


Tagged = One | Two


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=False, extra="forbid")
    name: int = Field(alias="NAME")


@pytest.mark.parametrize(
    ("kind", "accepted", "left_out"),
    [
        (
            Annotated[Tagged, Field(discriminator="kind")],
            ['{"kind":"b","v":1}'],
            ['{"v":1}', '{"kind":"a","v":1}'],
        ),
        (ByName, ['{"name":1}'], ['{"NAME":1}']),
        (Annotated[bytes, Field(max_length=2)], ['"é"', '"ab"'], ['"éé"', '"abc"']),
        (Annotated[str, StringConstraints(ascii_only=True)], ['"e"'], ['"é"']),
        (Annotated[str, Field(pattern=re.compile("a", re.IGNORECASE))], ['"Ab"'], ['"ba"']),
        (pydantic.MySQLDsn, ['"mysql+pymysql://h"'], ['"mysqlpymysql://h"']),
        (pydantic.FileUrl, ['"file:///a"'], ['"file://h:1/a"']),
        (
            pydantic.HttpUrl,
            ['"http://u:p@h:65535/?{}"'],
            ['"http://h:65536"', '"http://1.2.3.4.5"', '"http://xn--a"'],
        ),
        (pydantic.PostgresDsn, ['"postgres://a:1,b@c:2/d"'], ['"postgres:///d"']),
        (decimal.Decimal, ['"1E+5"', '"0E-10"', '"-12.50"'], ['"1E+1000000000000000000"', '"NaN"', "1"]),
        (
            Annotated[decimal.Decimal, Field(gt=0, max_digits=3)],
            ['"1.20000"', '"1E+2"'],
            ['"0"', '"1.234"', '"1E+3"'],
        ),
        (datetime.timedelta, ['"P2739726Y9DT1S"'], ['"P2739726Y10D"', '"-P2739726Y9DT1S"']),
        (ipaddress.IPv4Network, ['"1.2.3.0/24"'], ['"1.2.3.4/24"']),
        (ipaddress.IPv6Address, ['"fe80::1%eth0"'], ['"1::2::3"']),
        (dict[pydantic.HttpUrl, int], ['{"http://h/":1}'], ['{"h":1}']),
    ],
    ids=shown,
)
def test_texts_that_were_read_otherwise(kind: Any, accepted: list[str], left_out: list[str]) -> None:
    constraint = json_schema(kind)
    for text in accepted:
        assert constraint.accepts(text), text
        constraint.parse(text)
    for text in left_out:
        assert not constraint.accepts(text), text


@pytest.mark.parametrize("kind", [float, Any, list[float]], ids=str)
def test_all_floats_that_pydantic_writes(kind: Any) -> None:
    """Pydantic writes ``2e-6``, which is the text of neither Python (``2e-06``) nor JavaScript (``0.000002``)."""
    rng = random.Random(6)
    numbers = [rng.uniform(1, 10) * 10.0**power for power in range(-30, 31)]
    numbers += [10.0**power for power in range(-12, 25)] + [round(rng.uniform(1, 9), 3) * 1e-6]
    constraint, adapter = json_schema(kind), TypeAdapter(kind)
    for number in numbers:
        written = adapter.dump_json([number] if kind == list[float] else number)
        assert constraint.accepts(written), written
    assert constraint.accepts(b"[2e-6]" if kind == list[float] else b"2e-6")


def test_names_with_look_around_in_a_repetition() -> None:
    schema = {"propertyNames": {"pattern": "^(?:(?!ab)[a-c])+$"}}
    assert json_schema(schema).accepts('{"acb": 1, "b": 2}') and not json_schema(schema).accepts('{"cab": 1}')


def test_email_addresses() -> None:
    pytest.importorskip("email_validator")
    constraint, rng = json_schema(pydantic.EmailStr), random.Random(0)
    for text in ('"a@b.co"', '"A.B+c@x-y.org"', '"!#$%@a.b.c.example"'):
        assert constraint.accepts(text) and constraint.parse(text)
    for text in (
        '"a@localhost"',
        '"a@x.test"',
        '"a..b@c.de"',
        '"a@b.c1"',
        '"a@[1.2.3.4]"',
        '"a@ab--c.co"',
        '"a"',
    ):
        assert not constraint.accepts(text), text
    for _ in range(40):
        walked = walk(constraint, rng, rng.randrange(60))
        assert walked is None or constraint.parse(walked)
