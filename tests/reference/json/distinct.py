"""Strings that must differ, by reading the text again from its beginning."""

from __future__ import annotations

import json


def scan(text: bytes) -> tuple[list[tuple[str, list[str]]], bytes | None]:
    """The containers of a prefix of a JSON text, open and closed, each with its kind and the values of its finished
    names or string items; and what is written of the string at the end, if that is a name or an item.
    """
    containers: list[tuple[str, list[str]]] = []
    open_: list[int] = []
    place, name_next = 0, False
    while place < len(text):
        sign = text[place : place + 1]
        if sign in b"{[":
            open_.append(len(containers))
            containers.append((sign.decode(), []))
            name_next = sign == b"{"
        elif sign in b"}]":
            open_.pop()
        elif sign == b",":
            name_next = bool(open_) and containers[open_[-1]][0] == "{"
        elif sign == b":":
            name_next = False
        elif sign == b'"':
            end = place + 1
            while end < len(text) and text[end : end + 1] != b'"':
                end += 2 if text[end : end + 1] == b"\\" else 1
            counts = bool(open_) and (name_next or containers[open_[-1]][0] == "[")
            if end >= len(text):
                return containers, text[place + 1 :] if counts else None
            if counts:
                containers[open_[-1]][1].append(json.loads(text[place : end + 1]))
            place = end
        place += 1
    return containers, None


def repeats(text: bytes, kinds: str) -> bool:
    """Whether a container of one of the ``kinds`` ("{", "[" or both) has a string twice."""
    containers, _ = scan(text)
    return any(kind in kinds and len(set(found)) < len(found) for kind, found in containers)
