"""From the texts of arguments to Python values: JSON, and Python literals.

Literals in the layout of ``repr`` differ from JSON only in quotation marks, escapes and three words. ``read_python``
rewrites them as JSON in one pass over their strings and words, ``PythonText`` does the same for a text that arrives in
pieces, and one parser reads the values. Values that Python cannot represent are rejected: integers with too many
digits, brackets that are nested too deeply, and numbers that are not a finite float, such as ``1e999``.

Invariant: the texts are in the language of ``python_arguments``; other texts are not detected here. Cost: linear.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

_HEX = "[0-9a-fA-F]"
_ESCAPE = rf"\\(?:[^xuU]|x{_HEX}{{2}}|u{_HEX}{{4}}|U{_HEX}{{8}})"
_ESCAPED = re.compile(_ESCAPE + '|"', re.DOTALL)
"""The escapes of a Python string, and the quotation mark that JSON must escape."""
_TOKEN = re.compile(
    r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"|[^\s'\"=,:()\[\]{}]+=|True|False|None", re.DOTALL
)
"""A string, a name with the ``=`` after it, or one of the three words."""
_PLAIN = {"'": re.compile(r"[^'\\\"]*"), '"': re.compile(r'[^"\\]*')}
_WORDS = {"True": "true", "False": "false", "None": "null"}
_SHORT = {"a": "\\u0007", "v": "\\u000b", "'": "'", "x": "\\u00"}
"""The beginnings of escapes that JSON writes differently, by their letter; two digits follow an ``x``."""


def finite(text: str) -> float:
    """The float that a number denotes. Raises ValueError if it is not finite."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is beyond the range of a float")
    return value


_READ = json.JSONDecoder(parse_float=finite)
_scan: Callable[[str, int], tuple[Any, int]] = _READ.scan_once  # type: ignore[attr-defined]  # documented by its use


def read_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError or RecursionError if Python cannot represent it."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:  # white space, which the decoder does not skip
        end = -1
    return value if end == len(text) else _READ.decode(text)


def read_python(text: str) -> dict[str, Any]:
    """The values of keyword arguments, by name. Raises ValueError or RecursionError, as ``read_json`` does."""
    found: dict[str, Any] = read_json(f"{{{_TOKEN.sub(_token, text)}}}")
    return found


def _token(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] in "'\"":
        inner = token[1:-1]
        if "\\" in inner or '"' in inner:
            inner = _ESCAPED.sub(_escape, inner)
        return f'"{inner}"'
    return f'"{token[:-1]}": ' if token[-1] == "=" else _WORDS[token]


def _escape(match: re.Match[str]) -> str:
    r"""An escape in JSON's spelling; also a bare quotation mark."""
    escape = match[0]
    if escape == '"':
        return '\\"'
    if escape[1] == "U":
        return json.dumps(chr(int(escape[2:], 16)))[1:-1]
    return _SHORT[escape[1]] + escape[2:] if escape[1] in _SHORT else escape


class PythonText:
    """Converts keyword arguments that arrive in pieces to a JSON object.

    ``is_done``: whether the bracket that closes the call was read; nothing after it is converted.
    """

    def __init__(self) -> None:
        self.is_done = False
        self._state: Callable[[str, int, list[str]], int] = self._between
        self._quote = self._held = ""
        self._begun = self._number = False

    def feed(self, text: str) -> str:
        """The JSON text that the next piece adds to the object."""
        found = [] if self._begun else ["{"]
        self._begun = True
        at = 0
        while at < len(text) and not self.is_done:
            at = self._state(text, at, found)
        return "".join(found)

    def _between(self, text: str, at: int, found: list[str]) -> int:
        """Convert from a position after a token, or inside of a number."""
        letter = text[at]
        if letter in "'\"":
            self._quote, self._state = letter, self._string
            found.append('"')
        elif letter.isidentifier() and not self._number:
            self._held, self._state = letter, self._word
        elif letter == ")":
            self.is_done = True
            found.append("}")
        else:
            self._number = letter.isalnum() or letter in ".+-"
            found.append(letter)
        return at + 1

    def _word(self, text: str, at: int, found: list[str]) -> int:
        letter = text[at]
        if letter not in "=,)]}":
            self._held += letter
            return at + 1
        named = letter == "="
        found.append(f'"{self._held}": ' if named else _WORDS[self._held])
        self._state = self._between
        return at + 1 if named else at

    def _string(self, text: str, at: int, found: list[str]) -> int:
        match = _PLAIN[self._quote].match(text, at)
        assert match is not None, "which matches everywhere"
        end = match.end()
        found.append(match[0])
        if end == len(text):
            return end
        letter = text[end]
        if letter == self._quote:
            found.append('"')
            self._state = self._between
        elif letter == "\\":
            self._held, self._state = letter, self._escaped
        else:
            found.append('\\"')
        return end + 1

    def _escaped(self, text: str, at: int, found: list[str]) -> int:
        self._held += text[at]
        match = _ESCAPED.fullmatch(self._held)
        if match is not None:
            found.append(_escape(match))
            self._state = self._string
        return at + 1
