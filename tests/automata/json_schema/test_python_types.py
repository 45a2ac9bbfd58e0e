"""Python types as constraints: every text that is walked is read by pydantic, and what pydantic writes is accepted."""

from __future__ import annotations

import abc
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import random
import re
import sys
import typing
import uuid
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pydantic
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict  # pydantic takes that of typing from Python 3.12 on

from reference.json.python_models import walk
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import (
    ConstraintError,
    EmptyLanguageError,
    MissingDependencyError,
    UnsupportedSchemaError,
)

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(TypedDict, total=False):
    x: int
    label: str


class Pair(NamedTuple):
    left: int
    right: str


@dataclasses.dataclass
class Card:
    name: str
    tags: list[Literal["a", "b"]] = dataclasses.field(default_factory=list)


class Address(BaseModel):
    street: Annotated[str, Field(min_length=1, max_length=5)]
    zip_code: Annotated[str, Field(pattern=r"^\d{5}$")]


class User(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    age: Annotated[int, Field(ge=0, lt=150)]
    address: Address | None = None
    color: Color = Color.RED


class Tree(BaseModel):
    model_config = ConfigDict(extra="forbid")
    value: bool
    children: Annotated[list[Tree], Field(max_length=2)] = []


class Cat(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=0, le=9)]


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["dog"]
    good: bool


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Box(BaseModel, Generic[T]):
    content: T


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    number: int = Field(0, alias="n")
    other: bool = Field(False, validation_alias=AliasChoices("o", "oo"))


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, str_strip_whitespace=True, allow_inf_nan=False)
    count: int
    text: Annotated[str, Field(min_length=2)]
    part: float


class Times(BaseModel):
    at: datetime.datetime
    day: datetime.date
    clock: datetime.time
    span: datetime.timedelta
    mark: uuid.UUID


class Numbers(BaseModel):
    price: decimal.Decimal
    digits: Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)]
    bounded: Annotated[decimal.Decimal, Field(gt=0, multiple_of=decimal.Decimal("0.25"))]
    positive: Annotated[float, Field(gt=0, lt=1)]


INSTANCES: tuple[tuple[Any, list[Any]], ...] = (
    (int, [0, -5, 10**40]),
    (float, [0.1, -1e300, 3.0]),
    (bytes, [b"", b"abc"]),
    (Color, list(Color)),
    (Level, list(Level)),
    (Literal["a", 1, None], ["a", 1, None]),
    (list[int] | None, [None, [], [1, 2]]),
    (tuple[int, str], [(1, "a")]),
    (set[int], [{1, 2}, set()]),
    (frozenset[Color], [frozenset(Color)]),
    (dict[str, int], [{}, {"a": 1, "b": 2}]),
    (dict[int, str], [{1: "a", -7: "b"}]),
    (dict[Color, int], [{Color.RED: 1}]),
    (Point, [{}, {"x": 1}, {"x": 1, "label": "a"}]),
    (Pair, [Pair(1, "a")]),
    (Card, [Card("x"), Card("y", ["a", "b"])]),
    (User, [User(name="A", age=3), User(name="é", age=149, address=Address(street="s", zip_code="12345"))]),
    (Tree, [Tree(value=True, children=[Tree(value=False)])]),
    (Owner, [Owner(pet=Cat(kind="cat", lives=9)), Owner(pet=Dog(kind="dog", good=True))]),
    (Box[int], [Box[int](content=1)]),
    (Box[Box[Color]], [Box[Box[Color]](content=Box[Color](content=Color.BLUE))]),
    (Aliased, [Aliased(n=3, o=True)]),
    (Strict, [Strict(count=1, text="ab", part=1.5)]),
    (
        Times,
        [
            Times(
                at=datetime.datetime(2024, 2, 29, 23, 59, 59, 123),
                day=datetime.date(2000, 2, 29),
                clock=datetime.time(12, 0, tzinfo=datetime.UTC),
                span=datetime.timedelta(days=-3, hours=5, microseconds=7),
                mark=uuid.UUID("5f3a7c1e-0b7d-4c7e-9a43-2f6f1d1c8e55"),
            )
        ],
    ),
    (datetime.datetime, [datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-5)))]),
    (datetime.timedelta, [datetime.timedelta(), datetime.timedelta(days=400, seconds=61)]),
    (decimal.Decimal, [decimal.Decimal("0"), decimal.Decimal("-12.50")]),
    (pydantic.AwareDatetime, [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)]),
    (pydantic.NaiveDatetime, [datetime.datetime(2024, 1, 1)]),
    (pydantic.UUID4, [uuid.UUID("5f3a7c1e-0b7d-4c7e-9a43-2f6f1d1c8e55")]),
    (
        pydantic.HttpUrl,
        [pydantic.HttpUrl("https://example.org:80/a/b?c=d#e"), pydantic.HttpUrl("http://127.0.0.1/")],
    ),
    (pydantic.AnyUrl, [pydantic.AnyUrl("https://a.example/"), pydantic.AnyUrl("mailto:me@example.org")]),
    (IPv4Address, [IPv4Address("1.2.3.4")]),
    (Path, [Path("a/b")]),
)

WALKED: tuple[Any, ...] = (
    *(kind for kind, _ in INSTANCES),
    Numbers,
    Any,
    Annotated[float, Field(multiple_of=0.01)],
    Annotated[set[bool], Field(min_length=2)],
    Annotated[decimal.Decimal, Field(max_digits=2, decimal_places=2)],
    Annotated[decimal.Decimal, Field(max_digits=3, decimal_places=0)],
    Annotated[decimal.Decimal, Field(max_digits=2, decimal_places=5)],
    Annotated[decimal.Decimal, Field(decimal_places=2)],
    dict[Annotated[str, Field(pattern="^[a-c]$")], int],
)


def shown(kind: Any) -> str:
    return re.sub(r"[^\w\[\], ]+", ".", str(kind))[:60]


@pytest.mark.parametrize("kind", WALKED, ids=shown)
def test_every_text_is_read(kind: Any) -> None:
    constraint, rng = json_schema(kind, whitespace="compact"), random.Random(0)
    texts = [walk(constraint, rng) for _ in range(20)]
    whole = [text for text in texts if text is not None]
    assert len(whole) > 10
    for text in whole:
        constraint.parse(text)


@pytest.mark.soak
@pytest.mark.parametrize("kind", WALKED, ids=shown)
def test_every_one_of_many_texts_is_read(kind: Any) -> None:
    constraint = json_schema(kind)
    for seed in range(500):
        text = walk(constraint, random.Random(seed), seed % 100)
        assert text is None or constraint.parse(text) is not Ellipsis


@pytest.mark.parametrize(("kind", "instances"), INSTANCES, ids=[shown(kind)[:30] for kind, _ in INSTANCES])
def test_what_pydantic_writes_is_accepted_and_read_back(kind: Any, instances: list[Any]) -> None:
    constraint = json_schema(kind)
    for instance in instances:
        for indent in (None, 2):
            text = TypeAdapter(kind).dump_json(instance, by_alias=True, indent=indent)
            if kind is Aliased:
                text = text.replace(b'"other"', b'"o"')
            assert constraint.accepts(text), text
            assert constraint.parse(text) == instance


def test_fields_come_in_their_order_and_other_members_only_where_they_are_allowed() -> None:
    assert json_schema(User).accepts('{"name": "A", "age": 3}')
    assert not json_schema(User).accepts('{"age": 3, "name": "A"}')
    assert not json_schema(User).accepts('{"name": "A", "age": 3, "x": 1}')
    assert json_schema(Address).accepts('{"street": "A", "zip_code": "12345", "x": 1}')


def test_a_field_is_not_hidden_under_its_other_names() -> None:
    constraint = json_schema(Aliased)
    assert constraint.accepts('{"n": 3, "o": true, "x": "?"}')
    for name in ("number", "oo", "other"):
        assert not constraint.accepts(f'{{"{name}": "?"}}'), name


# --- functions ----------------------------------------------------------------------------------------


def book(
    hotel: str, /, nights: Annotated[int, Field(gt=0)], *, color: Color = Color.RED, model_config: bool = True
) -> tuple[Any, ...]:
    return hotel, nights, color, model_config


def test_the_arguments_of_a_function() -> None:
    constraint = json_schema(book)
    bound = constraint.parse('{"hotel": "A", "nights": 2, "model_config": false}')
    assert isinstance(bound, inspect.BoundArguments)
    assert bound.arguments == {"hotel": "A", "nights": 2, "model_config": False}
    assert book(*bound.args, **bound.kwargs) == ("A", 2, Color.RED, False)
    assert constraint.accepts('{"hotel": "A", "nights": 2, "color": "blue"}')
    for text in ('{"hotel": "A"}', '{"hotel": "A", "nights": 0}', '{"hotel": "A", "nights": 1, "p0": "B"}'):
        assert not constraint.accepts(text), text
    rng = random.Random(1)
    for _ in range(20):
        text = walk(json_schema(book, whitespace="compact"), rng)
        assert text is None or isinstance(
            book(*constraint.parse(text).args, **constraint.parse(text).kwargs), tuple
        )


def test_methods_partial_functions_and_functions_without_annotations() -> None:
    class Shop:
        def buy(self, count: int) -> None: ...

    assert json_schema(Shop().buy).accepts('{"count": 1}')
    assert json_schema(functools.partial(book, "A")).accepts('{"nights": 1}')
    assert json_schema(lambda anything: anything).accepts('{"anything": [null]}')
    assert json_schema(lambda: None).accepts("{}")


@pytest.mark.parametrize(
    ("kind", "pointer", "reason"),
    [
        (lambda *args: args, "#/properties/args", "has no name"),
        (lambda **options: options, "#/properties/options", "has no name"),
    ],
)
def test_functions_with_any_number_of_arguments_are_refused(kind: Any, pointer: str, reason: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match=reason) as caught:
        json_schema(kind)
    assert caught.value.pointer == pointer


# --- what is refused ----------------------------------------------------------------------------------


class Calling(BaseModel):
    a: int
    call: Callable[[int], int] | None = None


class Nested(BaseModel):
    inner: list[Calling]


class Late(BaseModel):
    at: pydantic.PastDatetime


class Deep(BaseModel):
    x: int = Field(validation_alias=AliasPath("a", 0))


@dataclasses.dataclass
class Ranged:
    a: int
    span: range


def ranged(a: int, span: range) -> None: ...


ByFunction = Annotated[
    Annotated[Cat, pydantic.Tag("cat")] | Annotated[Dog, pydantic.Tag("dog")],
    pydantic.Discriminator(lambda _: "cat"),
]


class Mixed(enum.Enum):
    PAIR = (1, 2)
    ONE = 1


class Seconds(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float")
    span: datetime.timedelta


class Constants(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")
    x: float


class Shape(BaseModel, abc.ABC):
    sides: int

    @abc.abstractmethod
    def area(self) -> float: ...


class Square(Shape):
    def area(self) -> float:
        return 1.0


@dataclasses.dataclass
class Part(abc.ABC):
    a: int

    @abc.abstractmethod
    def weight(self) -> float: ...


class Held(BaseModel):
    any_model: BaseModel


@pytest.mark.parametrize(
    ("kind", "pointer", "reason"),
    [
        (BaseModel, "#", "BaseModel has no instances"),
        (Held, "#/$defs/BaseModel", "name a class that inherits from it"),
        (Shape, "#", "Shape has no instances"),
        (Part, "#", "Part has no instances"),
        (Calling, "#/properties/call/anyOf/0", "no JSON"),
        (Nested, "#/$defs/Calling/properties/call/anyOf/0", "no JSON"),
        (Late, "#/properties/at", "bounds of dates"),
        (Deep, "#", "path"),
        (Ranged, "#/properties/span", "range cannot be read"),
        (ranged, "#/properties/span", "range cannot be read"),
        (
            Annotated[int, Field(gt=2.5)],
            "#",
            "cannot be read: Error building .*coercible to an integer",
        ),
        (list[IPv6Network], "#/items/format", "ipv6network"),
        (complex, "#", "complex"),
        (pydantic.Json[int], "#", "holds JSON"),
        (dict[float, int], "#", "keys"),
        (type[int], "#", "no JSON for a class"),
        (ByFunction, "#", "a function says which type"),
        (Literal[Color.RED], "#", "does not read Color.RED back"),
        (Literal[b"x", 1], "#", "does not read b'x' back"),
        (Mixed, "#", "does not read Mixed.PAIR back"),
        (re.Pattern, "#", "regular expressions of Python"),
        (pydantic.ImportString, "#", "imported"),
        (typing.Hashable, "#", "after the text was read"),
        (Annotated[str | int, Field(gt=1)], "#", "beside this type"),
        (set[list[int]], "#", "take a list"),
        (Annotated[set[float], Field(min_length=2)], "#", "which items are equal"),
        (Annotated[set[Literal[1, True]], Field(min_length=2)], "#", "true and 1 are one item"),
        (Annotated[dict[decimal.Decimal, int], Field(min_length=2)], "#", "which keys are equal"),
        (dict[Level, int], "#", "keys that are listed"),
        (Seconds, "#/properties/span", "written as a number|writes it as a number"),
        (Constants, "#/properties/x", "no JSON"),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_what_is_refused_is_named(kind: Any, pointer: str, reason: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match=reason) as caught:
        json_schema(kind)
    assert caught.value.pointer == pointer


def test_the_member_that_cannot_be_read_is_named() -> None:
    class Part(TypedDict, total=False):
        a: typing.Required[int]
        b: typing.NotRequired[range]

    with pytest.raises(UnsupportedSchemaError, match="range cannot be read") as caught:
        json_schema(Part)
    assert caught.value.pointer == "#/properties/b"


def test_fields_that_are_read_from_one_name_are_refused() -> None:
    class Twice(BaseModel):
        a: int
        b: list[int] = Field(alias="a")

    class Either(BaseModel):
        a: int
        b: list[int] = Field([], validation_alias=AliasChoices("bb", "a"))

    class Named(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        a: int = Field(alias="b")
        b: list[int] = Field(alias="c")

    class Inner(BaseModel):
        inner: list[Twice]

    for model, pointer in ((Twice, "#"), (Either, "#"), (Named, "#"), (Inner, "#/$defs/Twice")):
        with pytest.raises(UnsupportedSchemaError, match=r"'a' and 'b' are both read from '[ab]'") as caught:
            json_schema(model)
        assert caught.value.pointer == pointer
        assert json_schema(model, on_unsupported="relax").relaxed

    class Apart(BaseModel):
        a: int = Field(alias="b")
        b: list[int] = Field(alias="a")

    assert json_schema(Apart).parse('{"b": 1, "a": [2]}') == Apart(b=1, a=[2])


def test_the_field_name_of_an_aliased_tag_is_no_free_member() -> None:
    class Lion(BaseModel):
        kind: Literal["lion"] = Field(alias="Kind")

    class Wolf(BaseModel):
        kind: Literal["wolf"] = Field(alias="Kind")
        pack: int = 1

    class Named(BaseModel):
        model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
        kind: Literal["named"] = Field(alias="Kind")

    adapter = pydantic.TypeAdapter(Annotated[Lion | Wolf | Named, Field(discriminator="kind")])
    for options in ({}, {"property_order": "any"}):
        constraint = json_schema(adapter, **options)
        for text in (
            '{"Kind": "wolf", "pack": 2, "free": 1}',
            '{"Kind": "lion"}',
            '{"Kind": "named", "x": 0}',
        ):
            assert constraint.accepts(text) and constraint.parse(text).kind in text
        for value in ('"lion"', '"cat"', "1", "[]"):
            for text in (f'{{"Kind": "wolf", "kind": {value}}}', f'{{"kind": {value}, "Kind": "wolf"}}'):
                assert not constraint.accepts(text)  # pydantic reads the tag from "kind"
                with pytest.raises(pydantic.ValidationError):
                    adapter.validate_json(text)


def test_a_value_in_place_of_its_type_is_refused() -> None:
    class Person(BaseModel):
        age: int = 1

    @dataclasses.dataclass
    class Point:
        x: int = 1

    for value, name in ((Person(), "Person"), (Point(), "Point"), (Color.RED, "Color")):
        with pytest.raises(
            UnsupportedSchemaError, match=f"is a value, not a type: pass its class, .*{name}$"
        ):
            json_schema(value)


def test_an_abstract_class_is_read_where_a_function_makes_its_instance() -> None:
    drawn = Annotated[Shape, pydantic.BeforeValidator(lambda value: Square(**value))]
    assert json_schema(drawn).parse('{"sides": 4}') == Square(sides=4)


def test_what_is_refused_can_be_relaxed() -> None:
    constraint = json_schema(Calling, on_unsupported="relax")
    assert [each.pointer for each in constraint.relaxed] == ["#/properties/call/anyOf/0"]
    assert constraint.accepts('{"a": 1, "call": null}') and not constraint.accepts('{"a": 1, "call": 1}')
    assert json_schema(Late, on_unsupported="relax").accepts('{"at": "9999-01-01T00:00:00"}')
    with pytest.raises(EmptyLanguageError):
        json_schema(Callable[[], int], on_unsupported="relax")


def test_a_name_that_is_not_defined_is_an_error_of_the_constraint() -> None:
    def lost(a: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # a name that is not defined is what is tested

    with pytest.raises(ConstraintError, match="Missing"):
        json_schema(lost)


def test_validators_in_python_are_left_to_parse() -> None:
    class Even(BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def even(cls, value: int) -> int:
            assert value % 2 == 0
            return value

    constraint = json_schema(Even)
    assert constraint.parse('{"n": 2}') == Even(n=2)
    assert constraint.accepts('{"n": 1}')
    with pytest.raises(pydantic.ValidationError):
        constraint.parse('{"n": 1}')


def test_without_pydantic_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(MissingDependencyError, match=r"tokenfst\[pydantic\]"):
        json_schema(int)


def test_schemas_that_are_no_types_are_read_by_json() -> None:
    assert json_schema({"type": "integer"}).parse("7") == 7
    assert json_schema('{"type": "array"}').parse(b"[1]") == [1]
