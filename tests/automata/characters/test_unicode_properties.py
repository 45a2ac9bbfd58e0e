"""Unicode properties out of the data file: against ``regex``, where it is installed, and against what Python knows."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.unicode_data import BINARY, ranges, script_names

from tokenfst.automata.characters.properties import binary_property, general_category, script
from tokenfst.automata.characters.utf8 import without_surrogates
from tokenfst.automata.regex.ecma import ecma_pattern


def codes(found: Any) -> set[int]:
    assert found is not None
    return {code for low, high in found for code in range(low, high + 1)}


@pytest.mark.parametrize("seed", range(4))
def test_the_file_says_what_regex_says(seed: int) -> None:
    pytest.importorskip("regex")
    rng = random.Random(seed)
    for names in rng.sample(BINARY, 4):
        for name in names.split():
            assert binary_property(name) == without_surrogates(tuple(ranges(names.split()[0])))
    for names in rng.sample(list(script_names().values()), 4):
        for name in names:
            for extensions, prop in ((False, "Script"), (True, "Script_Extensions")):
                expected = without_surrogates(tuple(ranges(f"{prop}={names[0]}")))
                assert (script(name, extensions=extensions) or ()) == expected, name


def test_what_python_knows_of_the_same_characters() -> None:
    """Python's Unicode may be older: of the characters that it knows."""
    known = codes(binary_property("Assigned"))
    assert codes(general_category("L")) <= codes(binary_property("Alphabetic"))
    starts = {code for code in known if chr(code).isidentifier() and chr(code) != "_"}
    assert starts <= codes(binary_property("ID_Start"))
    assert codes(script("Greek")) >= set(range(0x3B1, 0x3CA))
    assert script("Grek") == script("Greek") and script("Old_Italic") == script("Ital")
    assert codes(script("Greek")) < codes(script("Greek", extensions=True))
    assert script("greek") is None and script("No_Script") is None and binary_property("Nothing") is None


def test_patterns_of_scripts() -> None:
    han = ecma_pattern(r"^\p{Script=Han}+\P{sc=Han}$")
    assert han.accepts("漢字a") and not han.accepts("漢字")
    assert ecma_pattern(r"^[\p{scx=Greek}\p{Emoji_Presentation}]$").accepts("😀")
