"""Random Python types that pydantic knows, with random instances, and random texts of a constraint."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import ipaddress
import math
import operator
import random
import string
import uuid
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import pydantic
from pydantic import ConfigDict, Field, StringConstraints, create_model, networks

Decimal = decimal.Decimal
Maker = Callable[[random.Random], Any]
Typed = tuple[Any, Maker]
"""An annotation, and a maker of values that its validation in Python takes, mostly."""


def walk(constraint: Any, rng: random.Random, limit: int = 40) -> bytes | None:
    """A text of the constraint, byte by byte; after ``limit`` bytes it heads for an end, or gives up."""
    text = b""
    while len(text) < 2_000:
        live, ends = constraint.next_bytes(text)
        if ends and (not live or len(text) > limit or rng.random() < 0.3):
            return text
        closing = [byte for byte in b'"}]0:n' if byte in live]
        plain = [byte for byte in live if 32 <= byte < 127 and byte != 92]
        if len(text) > limit and closing and rng.random() < 0.9:
            text += bytes(closing[:1])
        else:
            text += bytes([rng.choice(plain if plain and rng.random() < 0.9 else live)])
    return None


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 10


class Mixed(enum.Enum):
    ONE = 1
    PAIR = (1, 2)


class Word(enum.StrEnum):
    A = "a"
    B = "b"


class Pair(NamedTuple):
    left: int
    right: str = "x"


def _text(rng: random.Random) -> str:
    letters = string.ascii_letters + ' "\\/é😀\n\x01-_.,'
    return "".join(rng.choice(letters) for _ in range(rng.randrange(6)))


def _decimal(rng: random.Random) -> Decimal:
    digits = "".join(rng.choice("00123456789") for _ in range(rng.randint(1, 6)))
    return Decimal(f"{rng.choice(['', '', '-'])}{digits}E{rng.choice([0, 0, -1, -2, -3, -9, 1, 2, 5, 30])}")


def _float(rng: random.Random) -> float:
    return rng.choice(
        [0.0, -0.0, 0.1, 1e300, 5e-324, 2.5, -3.25, rng.uniform(-9, 9), math.inf, -math.inf, math.nan]
    )


def _bytes(rng: random.Random) -> bytes:
    return rng.choice([b"", b"a", b"ab", b"abc", "é".encode(), "é€".encode(), b"\xff", bytes(range(5))])


def _zone(rng: random.Random) -> dt.timezone | None:
    minutes = rng.choice([0, 60, -330, 1439, -1439])
    return rng.choice([None, dt.UTC, dt.timezone(dt.timedelta(minutes=minutes))])


def _instant(rng: random.Random) -> dt.datetime:
    year = rng.choice([1, 999, 2000, 2024, 9999])
    return dt.datetime(
        year,
        rng.randint(1, 12),
        rng.randint(1, 28),
        23,
        59,
        rng.randrange(60),
        rng.choice([0, 7, 123_400]),
        _zone(rng),
    )


def _duration(rng: random.Random) -> dt.timedelta:
    days = rng.choice([0, 1, 364, 365, 400, -1, -400, 10**8, 999_999_999, 999_999_990, -999_999_999])
    return dt.timedelta(days, rng.choice([0, 1, 59, 3600, 86_399]), rng.choice([0, 1, 500_000, 999_999]))


def _uuid(version: int) -> Maker:
    return lambda rng: uuid.UUID(int=rng.getrandbits(128), version=version)


_HOSTS = (
    "h",
    "example.org",
    "a_b.c",
    "xn",
    "1.2.3.4",
    "[::1]",
    "[1:2::3]",
    "a-b.",
    "a.b.c.d",
    "1a",
    "a.1b",
    "0xg",
)
_TAILS = (
    "",
    "/",
    "/a/b",
    "/a//b",
    "/%41%zz",
    "?",
    "?a=b&c",
    "/?x[]={y}|`^'",
    "#",
    "/#f?a/#b",
    "/|^[]",
    "/a b",
    "/é",
    "/..",
)
_USERS = ("", "", "", "u@", "u:p@", ":p@", "u%40:@")
_PORTS = ("", "", ":80", ":0", ":65535", ":8080", ":443", ":07")


def _url(*schemes: str) -> Maker:
    def make(rng: random.Random) -> str:
        scheme = rng.choice(schemes)
        if scheme == "file":
            return f"file://{rng.choice(['', *_HOSTS])}{rng.choice(_TAILS)}"
        if scheme not in ("http", "https", "ws", "wss", "ftp") and rng.random() < 0.4:
            return scheme + rng.choice(
                [":", ":a", ":a b/c", "://", ":///x", ":/x", ":a?b#c", "://?q", ":x%20|<>"]
            )
        return f"{scheme}://{rng.choice(_USERS)}{rng.choice(_HOSTS)}{rng.choice(_PORTS)}{rng.choice(_TAILS)}"

    return make


def _address(*kinds: Any) -> Maker:
    def make(rng: random.Random) -> Any:
        kind = rng.choice(kinds)
        if kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
            bits = 32 if kind is ipaddress.IPv4Address else 128
            return kind(
                rng.choice([0, 1, 2**bits - 1, rng.getrandbits(bits), 1 << (bits - 1), 0xFFFF << bits // 2])
            )
        four = kind in (ipaddress.IPv4Network, ipaddress.IPv4Interface)
        number = rng.getrandbits(32 if four else 128)
        if kind in (ipaddress.IPv4Network, ipaddress.IPv6Network):
            return kind((number, rng.randint(0, 32 if four else 128)), strict=False)
        return kind((number, rng.randint(0, 32 if four else 128)))

    return make


def _one_of(*values: Any) -> Maker:
    return lambda rng: rng.choice(values)


def _limited_decimal(**limits: Any) -> Typed:
    return Annotated[Decimal, Field(**limits)], _decimal


LEAVES: tuple[Typed, ...] = (
    (int, lambda rng: rng.choice([0, -1, 7, 10**25])),
    (bool, _one_of(True, False)),
    (type(None), _one_of(None)),
    (str, _text),
    (float, _float),
    (Annotated[float, Field(gt=0, lt=2.5)], _float),
    (pydantic.FiniteFloat, _float),
    (Annotated[int, Field(gt=-3, le=10, multiple_of=2)], lambda rng: rng.randint(-4, 12)),
    (Annotated[str, Field(min_length=1, max_length=3)], _text),
    (Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)], _text),
    (Annotated[str, StringConstraints(to_lower=True)], _text),
    (Annotated[str, StringConstraints(ascii_only=True)], _text),
    (Annotated[str, Field(pattern="^[a-c]+$")], _one_of("a", "abc", "")),
    (Decimal, _decimal),
    *(_limited_decimal(max_digits=digits) for digits in (1, 2, 9)),
    *(_limited_decimal(decimal_places=places) for places in (0, 1, 3, 9)),
    *(_limited_decimal(max_digits=d, decimal_places=p) for d, p in ((3, 1), (3, 3), (2, 5), (12, 9))),
    _limited_decimal(ge=0),
    _limited_decimal(gt=Decimal("-1.5"), lt=1000),
    _limited_decimal(le=Decimal("0.25"), max_digits=4),
    _limited_decimal(multiple_of=Decimal("0.01")),
    _limited_decimal(multiple_of=Decimal("0.1"), gt=0),
    (
        Annotated[Decimal, Field(allow_inf_nan=True)],
        _one_of(Decimal("NaN"), Decimal("-Infinity"), Decimal(1)),
    ),
    (Annotated[Decimal, Field(allow_inf_nan=True, ge=0)], _one_of(Decimal("Infinity"), Decimal(1))),
    (bytes, _bytes),
    (Annotated[bytes, Field(min_length=2, max_length=3)], _bytes),
    (dt.date, lambda rng: _instant(rng).date()),
    (dt.time, lambda rng: _instant(rng).timetz()),
    (dt.datetime, _instant),
    (pydantic.AwareDatetime, _instant),
    (pydantic.NaiveDatetime, _instant),
    (dt.timedelta, _duration),
    (uuid.UUID, _uuid(4)),
    (pydantic.UUID1, _uuid(1)),
    (pydantic.UUID4, _uuid(4)),
    (Color, _one_of(*Color)),
    (Size, _one_of(*Size)),
    (Word, _one_of(*Word)),
    (Mixed, _one_of(*Mixed)),
    (Literal["a", 1, None, True], _one_of("a", 1, None, True)),
    (Literal[Color.RED, "x"], _one_of(Color.RED, "x")),
    (Literal[Word.A, b"x"], _one_of(Word.A)),
    (Pair, lambda rng: Pair(rng.randrange(9), _text(rng))),
    (pydantic.AnyUrl, _url("http", "file", "a", "mailto", "a+b", "ftp", "wss")),
    (pydantic.HttpUrl, _url("http", "https")),
    (pydantic.AnyWebsocketUrl, _url("ws", "wss")),
    (pydantic.FtpUrl, _url("ftp")),
    (pydantic.FileUrl, _url("file")),
    (pydantic.MySQLDsn, _url("mysql", "mysql+pymysql")),
    (pydantic.ClickHouseDsn, _url("clickhouse", "clickhouse+http")),
    (pydantic.CockroachDsn, _url("cockroachdb", "cockroachdb+asyncpg")),
    (pydantic.SnowflakeDsn, _url("snowflake")),
    (pydantic.RedisDsn, _url("redis", "rediss")),
    (pydantic.AmqpDsn, _url("amqp")),
    (pydantic.KafkaDsn, _url("kafka")),
    (pydantic.PostgresDsn, _url("postgres", "postgresql+psycopg")),
    (pydantic.MongoDsn, _url("mongodb", "mongodb+srv")),
    (pydantic.NatsDsn, _url("nats", "ws")),
    (ipaddress.IPv4Address, _address(ipaddress.IPv4Address)),
    (ipaddress.IPv6Address, _address(ipaddress.IPv6Address)),
    (ipaddress.IPv4Network, _address(ipaddress.IPv4Network)),
    (ipaddress.IPv6Network, _address(ipaddress.IPv6Network)),
    (ipaddress.IPv4Interface, _address(ipaddress.IPv4Interface)),
    (ipaddress.IPv6Interface, _address(ipaddress.IPv6Interface)),
    (pydantic.IPvAnyAddress, _address(ipaddress.IPv4Address, ipaddress.IPv6Address)),
    (pydantic.IPvAnyNetwork, _address(ipaddress.IPv4Network)),
    (pydantic.IPvAnyInterface, _address(ipaddress.IPv4Interface, ipaddress.IPv6Interface)),
    (pydantic.ByteSize, _one_of(0, 10, "1KB")),
    (type[int], _one_of(int)),
    (Any, _one_of(1, [2], {"a": None})),
)
CONFIGS: tuple[ConfigDict, ...] = (
    ConfigDict(),
    ConfigDict(extra="forbid"),
    ConfigDict(extra="allow"),
    ConfigDict(strict=True, allow_inf_nan=False),
    ConfigDict(validate_by_name=True, validate_by_alias=False),
    ConfigDict(populate_by_name=True, str_max_length=4),
    ConfigDict(ser_json_bytes="base64", val_json_bytes="base64"),
    ConfigDict(ser_json_bytes="hex", val_json_bytes="hex", ser_json_inf_nan="strings"),
    ConfigDict(ser_json_timedelta="float"),
    ConfigDict(ser_json_inf_nan="constants", frozen=True),
    ConfigDict(str_strip_whitespace=True, str_to_upper=True, use_enum_values=True),
)


def random_type(rng: random.Random, depth: int = 2) -> Typed:
    """A type, and a maker of its instances."""
    if depth == 0:
        return rng.choice(LEAVES)
    kind, make = random_type(rng, rng.randrange(depth))
    form = rng.randrange(12)
    if form == 0:
        return list[kind], lambda rng: [make(rng) for _ in range(rng.randrange(3))]
    if form == 1:
        low = rng.randrange(3)
        return Annotated[set[kind], Field(min_length=low)], lambda rng: [
            make(rng) for _ in range(rng.randrange(4))
        ]
    if form == 2:
        other, make_other = random_type(rng, rng.randrange(depth))
        return tuple[kind, other], lambda rng: (make(rng), make_other(rng))
    if form == 3:
        low = rng.randrange(3)
        return Annotated[dict[kind, int], Field(min_length=low)], lambda rng: {
            make(rng): 1 for _ in range(rng.randrange(4))
        }
    if form == 4:
        return dict[str, kind], lambda rng: {_text(rng): make(rng) for _ in range(rng.randrange(3))}
    if form == 5:
        other, make_other = random_type(rng, rng.randrange(depth))
        union = kind | other if not isinstance(kind, type(None)) or other is not None else kind
        return _writers_of_any_value_last(union), _either(make, make_other)
    if form == 6:
        return _tagged(rng, kind, make)
    if form == 7:
        made = dataclasses.make_dataclass("Record", [("a", kind), ("b", int, dataclasses.field(default=1))])
        return made, lambda rng: {"a": make(rng)}
    return _model(rng, depth)


def _writers_of_any_value_last(kind: Any) -> Any:
    """A union in which each value is written as its own type: these types write any value, by ``str``, where they come
    before the value's own type.
    """
    if get_origin(kind) not in (Union, UnionType):
        return kind
    writers = (networks.IPvAnyAddress, networks.IPvAnyInterface, networks.IPvAnyNetwork, networks.NameEmail)
    return functools.reduce(operator.or_, sorted(get_args(kind), key=lambda member: member in writers))


def _either(left: Maker, right: Maker) -> Maker:
    return lambda rng: rng.choice([left, right])(rng)


def _model(rng: random.Random, depth: int) -> Typed:
    fields: dict[str, Any] = {}
    makers: dict[str, Maker] = {}
    config = rng.choice(CONFIGS)
    for name in "abc"[: rng.randint(1, 3)]:
        kind, make = random_type(rng, rng.randrange(depth))
        alias = rng.choice([None, None, "A"]) if name == "a" else None
        hidden = alias is not None and config.get("validate_by_alias") is False
        optional = rng.random() < 0.3 and not hidden  # or an alias that is not read could be left out
        fields[name] = (
            kind | None if optional and kind is not None else kind,
            Field(None if optional else ..., alias=alias),
        )
        by_name = alias is None or config.get("validate_by_alias") is False
        makers[name if by_name else alias or name] = make
    return create_model("Model", __config__=config, **fields), lambda rng: {
        name: make(rng) for name, make in makers.items()
    }


def _tagged(rng: random.Random, kind: Any, make: Maker) -> Typed:
    alias = rng.choice([None, "type"])
    tags = rng.choice([("x", "y"), (1, "1"), (Word.A, Word.B), (True, 1), ("a", None)])
    default = rng.random() < 0.5
    choices = [
        create_model(
            f"Choice{k}",
            kind=(Literal[tag], Field(tag if default else ..., alias=alias)),
            **{f"v{k}": (kind if k else int, ...)},
        )
        for k, tag in enumerate(tags)
    ]
    name = alias or "kind"

    def instance(rng: random.Random) -> Any:
        k = rng.randrange(2)
        return {name: tags[k], f"v{k}": make(rng) if k else 3}

    return Annotated[choices[0] | choices[1], Field(discriminator="kind")], instance
