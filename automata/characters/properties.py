"""Unicode properties by name, as sets of code points: all properties that ECMA-262 names, except one.

``unicodedata`` has the general category of every character; ``str`` knows upper and lower case and the characters
of identifiers; some properties never change. Scripts, emoji and the others are data of Unicode 17.0,
``unicode_properties.json`` (``tests/support/unicode_data.py`` makes it), which is read on first use.
Changes_When_NFKC_Casefolded is missing.

Cost: about 0.2 s for all general categories, once, on first use; 0.1 s for each of the properties of ``str``.
"""

from __future__ import annotations

import importlib.resources
import json
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from typing import Final

from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges, negate, normalize, without_surrogates

GENERAL_CATEGORIES: Final[dict[str, str]] = {
    name: category
    for category, names in {
        "C": "Other",
        "Cc": "Control cntrl",
        "Cf": "Format",
        "Cn": "Unassigned",
        "Co": "Private_Use",
        "Cs": "Surrogate",
        "L": "Letter",
        "LC": "Cased_Letter",
        "Ll": "Lowercase_Letter",
        "Lm": "Modifier_Letter",
        "Lo": "Other_Letter",
        "Lt": "Titlecase_Letter",
        "Lu": "Uppercase_Letter",
        "M": "Mark Combining_Mark",
        "Mc": "Spacing_Mark",
        "Me": "Enclosing_Mark",
        "Mn": "Nonspacing_Mark",
        "N": "Number",
        "Nd": "Decimal_Number digit",
        "Nl": "Letter_Number",
        "No": "Other_Number",
        "P": "Punctuation punct",
        "Pc": "Connector_Punctuation",
        "Pd": "Dash_Punctuation",
        "Pe": "Close_Punctuation",
        "Pf": "Final_Punctuation",
        "Pi": "Initial_Punctuation",
        "Po": "Other_Punctuation",
        "Ps": "Open_Punctuation",
        "S": "Symbol",
        "Sc": "Currency_Symbol",
        "Sk": "Modifier_Symbol",
        "Sm": "Math_Symbol",
        "So": "Other_Symbol",
        "Z": "Separator",
        "Zl": "Line_Separator",
        "Zp": "Paragraph_Separator",
        "Zs": "Space_Separator",
    }.items()
    for name in (category, *names.split())
}
"""For each name of a general category, its short name (Unicode's PropertyValueAliases.txt)."""

_FIXED: dict[str, Ranges] = {
    "Any": ((0, MAX_CODE_POINT),),
    "ASCII": ((0, 0x7F),),
    "ASCII_Hex_Digit AHex": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "Hex_Digit Hex": (
        *((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
        *((0xFF10, 0xFF19), (0xFF21, 0xFF26), (0xFF41, 0xFF46)),
    ),
    "Join_Control Join_C": ((0x200C, 0x200D),),
    "Noncharacter_Code_Point NChar": (
        (0xFDD0, 0xFDEF),
        *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, MAX_CODE_POINT, 0x10000)),
    ),
    "Pattern_White_Space Pat_WS": (
        *((0x09, 0x0D), (0x20, 0x20), (0x85, 0x85), (0x200E, 0x200F), (0x2028, 0x2029)),
    ),
    "Regional_Indicator RI": ((0x1F1E6, 0x1F1FF),),
    "White_Space space": (
        *((0x09, 0x0D), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
        *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)),
    ),
}
_TOLD: dict[str, Callable[[str], bool]] = {
    "Bidi_Mirrored Bidi_M": lambda character: bool(unicodedata.mirrored(character)),
    "Cased": lambda character: character.islower() or character.isupper() or character.istitle(),
    "Lowercase Lower": str.islower,
    "Uppercase Upper": str.isupper,
    "XID_Continue XIDC": lambda character: ("a" + character).isidentifier(),
    "XID_Start XIDS": lambda character: character.isidentifier() and character != "_",
}
_FILE = importlib.resources.files("tokenfst.automata.characters").joinpath("unicode_properties.json")
_RANGE = re.compile(r"([0-9a-f]+)(?:\.| ([0-9a-f]+) ?)")
_SCRIPT = re.compile(r"[A-Z][A-Za-z]*(?:_[A-Z][A-Za-z]*)*")
_NAMED = {name: names for names in (*_FIXED, *_TOLD) for name in names.split()}


@lru_cache(maxsize=1)
def _by_category() -> dict[str, Ranges]:
    runs: dict[str, list[tuple[int, int]]] = {}
    at = 0
    for category, run in groupby(map(unicodedata.category, map(chr, range(MAX_CODE_POINT + 1)))):
        end = at + sum(1 for _ in run)
        runs.setdefault(category, []).append((at, end - 1))
        at = end
    return {category: tuple(ranges) for category, ranges in runs.items()}


@lru_cache(maxsize=64)
def general_category(name: str) -> Ranges | None:
    """The characters of a general category, or of a group of categories such as ``L``; ``None`` for an unknown name."""
    category = GENERAL_CATEGORIES.get(name)
    if category is None:
        return None
    wanted = ("Ll", "Lt", "Lu") if category == "LC" else (category,)
    parts = (ranges for each, ranges in _by_category().items() if each.startswith(wanted))
    return without_surrogates(normalize(pair for ranges in parts for pair in ranges))


@lru_cache(maxsize=64)
def binary_property(name: str) -> Ranges | None:
    """The characters of a binary property; ``None`` for an unknown name."""
    if name == "Assigned":
        unassigned = general_category("Cn")
        return without_surrogates(negate(unassigned or ()))
    names = _NAMED.get(name)
    if names is None:
        coded = _tables()["binary"].get(name)
        return None if coded is None else _ranges(coded)
    if names in _FIXED:
        return without_surrogates(_FIXED[names])
    has = _TOLD[names]
    return without_surrogates(normalize((code, code) for code in range(MAX_CODE_POINT + 1) if has(chr(code))))


@lru_cache(maxsize=64)
def script(name: str, *, extensions: bool = False) -> Ranges | None:
    """The characters of a script, by its long or short name; ``None`` for an unknown name.

    ``extensions``: also the characters that the script uses besides its own (Script_Extensions). Underscores are
    ignored.
    """
    if _SCRIPT.fullmatch(name) is None:
        return None
    name = name.replace("_", "").upper()
    coded = _tables()["extensions"].get(name) if extensions else None
    coded = coded or _tables()["scripts"].get(name)
    return None if coded is None else _ranges(coded)


@lru_cache(maxsize=1)
def _tables() -> dict[str, dict[str, str]]:
    """The file's tables, by each of the names."""
    tables = json.loads(_FILE.read_text("utf-8"))
    return {
        kind: {name: coded for names, coded in tables[kind].items() for name in names.split()}
        for kind in ("binary", "scripts", "extensions")
    }


def _ranges(coded: str) -> Ranges:
    """The ranges that the file writes as differences."""
    at, found = 0, []
    for low, length in _RANGE.findall(coded):
        begin = at + int(low, 16)
        at = begin + int(length or "0", 16)
        found.append((begin, at))
    return without_surrogates(tuple(found))
