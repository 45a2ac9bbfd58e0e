"""The slow twin of JSON strings: the standard library reads a text, and writes every spelling of one."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator

SHORT = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "/": "/", "\\": "\\"}


def value_of(text: bytes) -> str | None:
    """What a JSON string with quotation marks means, if it is one and holds no lone surrogate."""
    if len(text) < 2 or text[:1] != b'"' or text[-1:] != b'"':
        return None
    try:
        value = json.loads(text)
        value.encode()
    except ValueError:
        return None
    assert isinstance(value, str)
    return value


def is_written(text: bytes, spelling: str = "plain") -> bool:
    """Whether a string is spelled so: in the two spellings but ``"any"``, as ``json.dumps`` does."""
    value = value_of(text)
    if value is None or spelling == "any":
        return value is not None
    return json.dumps(value, ensure_ascii=spelling == "ascii").encode() == text


def spellings(text: str) -> Iterator[bytes]:
    """Every JSON text of ``text``, quotation marks included."""
    for parts in itertools.product(*map(_spellings_of_one, text)):
        yield b'"' + b"".join(parts) + b'"'


def escape(text: str, rng: random.Random) -> bytes:
    """One of them at random, each way to write a character as likely as the others."""
    parts = (rng.choice(rng.choice(_ways(character))) for character in text)
    return b'"' + b"".join(parts) + b'"'


def _spellings_of_one(character: str) -> list[bytes]:
    return [spelled for way in _ways(character) for spelled in way]


def _ways(character: str) -> list[list[bytes]]:
    r"""Raw, as a two-character escape, and as one or two ``\u``, in all mixtures of upper and lower case."""
    ways = []
    if character >= " " and character not in '"\\':
        ways.append([character.encode()])
    if character in SHORT:
        ways.append([b"\\" + SHORT[character].encode()])
    units = character.encode("utf-16-be").hex()
    digits = ["\\u" if k % 4 == 0 else "" for k in range(len(units))]
    choices = [sorted({prefix + d, prefix + d.upper()}) for prefix, d in zip(digits, units, strict=True)]
    ways.append(["".join(each).encode() for each in itertools.product(*choices)])
    return ways
