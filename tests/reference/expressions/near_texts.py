"""Texts near a pattern: words sampled from its parse tree, blind to conditions, then damaged a little."""

from __future__ import annotations

import random
import re
from importlib import import_module
from typing import Any

_parser: Any = import_module("re._parser")
_codes: Any = import_module("re._constants")

LETTERS = "ab-_0 \n\tkKsS.éÉſİıßΣσςю中\u0345\u2028𐐀𐐨😀"
_EXAMPLES = {
    _codes.CATEGORY_DIGIT: "09٣𝟗",
    _codes.CATEGORY_SPACE: " \n\u00a0\u2003",
    _codes.CATEGORY_WORD: "a_9é中𐐀",
}


def near(pattern: str, flags: int, rng: random.Random, count: int, longest: int = 14) -> list[str]:
    """``count`` texts of at most ``longest`` characters, some of which ``pattern`` should match."""
    tree = _parser.parse(pattern, int(flags))
    texts = []
    for _ in range(count):
        text = _sample(tree, rng)[:longest]
        if tree.state.flags & re.IGNORECASE and rng.random() < 0.5:
            text = "".join(rng.choice([c, c.upper(), c.lower()]) for c in text)[:longest]
        for _ in range(rng.choice([0, 0, 1, 2])):
            text = _damage(text, rng)[:longest]
        texts.append(text.encode("utf-8", "replace").decode())
    return texts


def _damage(text: str, rng: random.Random) -> str:
    at = rng.randint(0, len(text))
    end = at + rng.randint(0, 1)
    return text[:at] + rng.choice(["", rng.choice(LETTERS), text[at:end] * 2]) + text[end:]


def _sample(tree: Any, rng: random.Random) -> str:
    return "".join(_one(op, argument, rng) for op, argument in tree)


def _one(op: Any, argument: Any, rng: random.Random) -> str:
    if op is _codes.LITERAL:
        return chr(argument)
    if op is _codes.NOT_LITERAL or op is _codes.ANY:
        return rng.choice(LETTERS)
    if op is _codes.IN:
        return rng.choice(LETTERS) if argument[0][0] is _codes.NEGATE else _member(*rng.choice(argument), rng)
    if op is _codes.BRANCH:
        return _sample(rng.choice(argument[1]), rng)
    if op is _codes.SUBPATTERN:
        return _sample(argument[3], rng)
    if op in (_codes.MAX_REPEAT, _codes.MIN_REPEAT):
        low, high, body = argument
        return "".join(_sample(body, rng) for _ in range(rng.randint(low, min(high, low + 2))))
    if op is _codes.ASSERT and rng.random() < 0.3:
        return _sample(argument[1], rng)
    return ""


def _member(op: Any, argument: Any, rng: random.Random) -> str:
    if op is _codes.LITERAL:
        return chr(argument)
    if op is _codes.RANGE:
        return chr(rng.choice([*argument, rng.randint(*argument)]))
    return rng.choice(_EXAMPLES.get(argument, LETTERS))
