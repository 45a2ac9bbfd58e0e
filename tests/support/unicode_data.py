"""Makes ``automata/characters/unicode_properties.json`` of what the ``regex`` package knows.

python -m tests.support.unicode_data
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "automata" / "characters" / "unicode_properties.json"
BINARY = [
    "Alphabetic Alpha",
    "Bidi_Control Bidi_C",
    "Case_Ignorable CI",
    "Changes_When_Casefolded CWCF",
    "Changes_When_Casemapped CWCM",
    "Changes_When_Lowercased CWL",
    "Changes_When_Titlecased CWT",
    "Changes_When_Uppercased CWU",
    "Dash",
    "Default_Ignorable_Code_Point DI",
    "Deprecated Dep",
    "Diacritic Dia",
    "Emoji",
    "Emoji_Component EComp",
    "Emoji_Modifier EMod",
    "Emoji_Modifier_Base EBase",
    "Emoji_Presentation EPres",
    "Extended_Pictographic ExtPict",
    "Extender Ext",
    "Grapheme_Base Gr_Base",
    "Grapheme_Extend Gr_Ext",
    "IDS_Binary_Operator IDSB",
    "IDS_Trinary_Operator IDST",
    "ID_Continue IDC",
    "ID_Start IDS",
    "Ideographic Ideo",
    "Logical_Order_Exception LOE",
    "Math",
    "Pattern_Syntax Pat_Syn",
    "Quotation_Mark QMark",
    "Radical",
    "Sentence_Terminal STerm",
    "Soft_Dotted SD",
    "Terminal_Punctuation Term",
    "Unified_Ideograph UIdeo",
    "Variation_Selector VS",
]
"""The binary properties of ECMA-262 that Python does not know, with their short names."""


def ranges(prop: str) -> list[tuple[int, int]]:
    """The characters of a property."""
    import regex

    text = "".join(map(chr, range(0x110000)))
    return [(found.start(), found.end() - 1) for found in regex.finditer(rf"\p{{{prop}}}+", text)]


def coded(pairs: list[tuple[int, int]]) -> str:
    """Ranges as differences, in hexadecimal."""
    at, words = 0, []
    for low, high in pairs:
        words += [f"{low - at:x}", f"{high - low:x}"] if high > low else [f"{low - at:x}."]
        at = high
    return " ".join(words).replace(". ", ".")


def script_names() -> dict[int, list[str]]:
    """The names of each script, as ``regex`` has them: in capitals, without underscores."""
    from regex import _regex_core

    values: dict[int, list[str]] = {}
    for name, number in _regex_core.PROPERTIES["SCRIPT"][1].items():
        values.setdefault(number, []).append(name)
    return values


def make() -> dict[str, Any]:
    scripts, extensions = {}, {}
    for names in script_names().values():
        key = " ".join(sorted(set(names)))
        own = ranges(f"Script={names[0]}")
        if not own:
            continue
        scripts[key] = coded(own)
        if (more := ranges(f"Script_Extensions={names[0]}")) != own:
            extensions[key] = coded(more)
    return {
        "source": "Unicode Character Database 17.0 (https://www.unicode.org/license.txt), as the regex package has it",
        "binary": {each: coded(ranges(each.split()[0])) for each in BINARY},
        "scripts": dict(sorted(scripts.items())),
        "extensions": dict(sorted(extensions.items())),
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(make(), indent=0) + "\n")
