"""Attributes of rules, read off their definitions: what ``stop`` leaves of a terminal's words, and the temperatures at
which the bytes of a grammar's words are read.

A grammar is a dictionary of rules, each a temperature (or None) and a body: bytes, the name of a rule, or a tuple that
begins with "cat", "alt" or "star". ``lark`` writes it in Lark's notation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

Body = Any
Rules = Mapping[str, tuple[float | None, Body]]
Heated = tuple[tuple[int, float | None], ...]
"""The bytes of a word, each with the temperature that it is read at."""


def texts(alphabet: str, longest: int) -> list[str]:
    """All texts of at most so many letters."""
    return ["".join(word) for size in range(longest + 1) for word in product(alphabet, repeat=size)]


def stopped(words: str, stop: str, alphabet: str, longest: int) -> set[str]:
    """The words, of at most so many letters, after which a stop makes a text that no stop ended before."""
    some = texts(alphabet, longest)
    ended = {
        text
        for text in texts(alphabet, longest + 3)
        if any(
            re.fullmatch(words, text[:cut], re.DOTALL) and re.fullmatch(stop, text[cut:], re.DOTALL)
            for cut in range(len(text) + 1)
        )
    }
    stops = [end for end in texts(alphabet, 3) if re.fullmatch(stop, end, re.DOTALL)]
    return {
        word
        for word in some
        if re.fullmatch(words, word, re.DOTALL)
        and any(
            all((word + end)[:size] not in ended for size in range(len(word + end))) and word + end in ended
            for end in stops
        )
    }


def heated_words(rules: Rules, start: str, longest: int) -> set[Heated]:
    """All readings of all words, of each its first bytes, at most so many. All rules must have a word."""

    def read(body: Body, heat: float | None, room: int) -> set[Heated]:
        if room == 0:
            return {()}
        if isinstance(body, bytes):
            return {tuple((byte, heat) for byte in body)[:room]}
        if isinstance(body, str):
            own, inner = rules[body]
            return read(inner, heat if own is None else own, room)
        kind, *parts = body
        if kind == "alt":
            return {word for part in parts for word in read(part, heat, room)}
        if kind == "cat":
            return sequence(parts, heat, room)
        found: set[Heated] = {()}  # a star
        grown = {()}
        while grown:
            grown = {
                (*word, *more) for word in grown for more in read(parts[0], heat, room - len(word))
            } - found
            found |= grown
        return found

    def sequence(parts: Sequence[Body], heat: float | None, room: int) -> set[Heated]:
        if not parts:
            return {()}
        return {
            (*word, *more)
            for word in read(parts[0], heat, room)
            for more in sequence(parts[1:], heat, room - len(word))
        }

    return read(start, None, longest)


def temperatures(words: set[Heated]) -> dict[bytes, float | None]:
    """Of each beginning of a word that goes on, the highest temperature that its next byte may be read at."""
    found: dict[bytes, float | None] = {}
    for word in words:
        for size, (_, heat) in enumerate(word):
            before = bytes(byte for byte, _ in word[:size])
            known = found.setdefault(before, None)
            if heat is not None:
                found[before] = heat if known is None else max(known, heat)
    return found


def lark(rules: Rules) -> str:
    """The grammar in Lark's notation."""

    def written(body: Body) -> str:
        if isinstance(body, bytes):
            return f'"{body.decode()}"'
        if isinstance(body, str):
            return body
        kind, *parts = body
        inner = (" | " if kind == "alt" else " ").join(map(written, parts))
        return f"({inner}){'*' if kind == 'star' else ''}"

    return "\n".join(
        f"{name}{'' if heat is None else f'[temperature={heat}]'}: {written(body)}"
        for name, (heat, body) in rules.items()
    )
