"""Grammars for pynini (tests/corpus), in the manner of text normalization and of letters to sounds: their outputs under
pynini, and with only their imports changed.
"""

from __future__ import annotations

import random
import types
from functools import cache
from pathlib import Path
from typing import Any

import pynini
import pytest
from pynini.lib.rewrite import Error as PyniniError

import tokenfst.fst as fst
import tokenfst.grm as grm
from tokenfst.errors import FstArgError, FstOpError

GRAMMARS = Path(__file__).resolve().parents[2] / "corpus" / "pynini_grammars"
IMPORTS = {
    "import pynini\n": "import tokenfst.grm as pynini\n",
    "from pynini.lib import ": "from tokenfst.grm import ",
    "from pynini.export import ": "from tokenfst.grm import ",
}
_RNG = random.Random(1)
NUMBERS = [
    "0",
    "7",
    "10",
    "21",
    "100",
    "101",
    "110",
    "999",
    "1000",
    "1,000",
    "12,345",
    "123456",
    "-5",
    "-1,001",
]
NUMBERS += [str(_RNG.randrange(10 ** _RNG.randint(1, 6))) for _ in range(30)]
WRONG = ["01", "", "1,00", "x", "1000000", "--1", "1.5"]
ISO = [
    "2009-03-21",
    "1999-12-31",
    "2000-01-01",
    "1905-07-20",
    "2010-10-10",
    "1800-02-30",
    "2009-13-01",
    "2009-3-2",
    "",
]
WORDS = [
    "schule",
    "stein",
    "nacht",
    "ich",
    "tag",
    "tage",
    "vase",
    "chef",
    "lang",
    "singen",
    "häuser",
    "räder",
    "rad",
]
WORDS += [
    "weiß",
    "zug",
    "zwei",
    "liebe",
    "hund",
    "heute",
    "kinder",
    "obst",
    "xyz",
    "tür",
    "a",
    "",
    "größe",
    "q!",
]
TEXTS: dict[str, dict[str, list[str]]] = {
    "cardinal": {
        "normalize": NUMBERS + WRONG,
        "readings": [number for number in NUMBERS if len(number) < 4],
        "denormalize": ["one hundred and five", "twenty-one", "minus seven", "three thousand two", "twenty one", "bla"],
        "tag": NUMBERS + WRONG,
        "tag_and_verbalize": NUMBERS,
        "sentence": ["I have 21 cats and 1,000 dogs", "x", "1 2", "a  b", "-3"],
    },
    "dates": {
        "read_iso": ISO,
        "all_iso": ISO,
        "best_iso": ISO,
        "weights": ISO[:-1],
        "read_written": ["3rd dec. 1999", "1 may", "21st feb., 2005", "31 october 1800", "32 may", "5th june of"],
        "read_time": ["at 10:30", "10:00", "  meet  at 9:00 or 11:15 ", "no:time", "", "1:2:30", "12:00 12:000"],
    },
    "sounds": {
        "say": WORDS,
        "say_all": WORDS,
        "variants": ["hart", "warm", "er", "arm", "irren", ""],
        "spell": ["taːk", "hʊnt", "tsvaɪ", "ʃɛf", "lat"],
    },
}  # fmt: skip
"""What each function of a grammar is called with."""


@cache
def grammar(name: str, ported: bool) -> Any:
    """A grammar as a module, with its own imports or with ours."""
    source = (GRAMMARS / f"{name}.py").read_text(encoding="utf-8")
    for theirs, ours in IMPORTS.items() if ported else ():
        source = source.replace(theirs, ours)
    made = types.ModuleType(f"{name} {'ported' if ported else 'as it is'}")
    exec(compile(source, made.__name__, "exec"), vars(made))
    return made


def outcome(call: Any, *given: Any) -> Any:
    """What a call returns, or that it refused the text."""
    try:
        return call(*given)
    except (FstArgError, FstOpError, pynini.FstArgError, pynini.FstOpError, PyniniError):
        return "refused"


@pytest.mark.parametrize(("name", "function"), [(name, each) for name in TEXTS for each in TEXTS[name]])
def test_a_function_of_a_grammar_gives_the_same(name: str, function: str) -> None:
    texts = TEXTS[name][function]
    found = [outcome(getattr(grammar(name, True), function), text) for text in texts]
    assert found == [outcome(getattr(grammar(name, False), function), text) for text in texts]
    assert sum(bool(each) and each != "refused" for each in found) >= len(found) / 3


def test_what_the_grammars_say() -> None:
    cardinal, dates, sounds = (grammar(name, True) for name in TEXTS)
    assert cardinal.normalize("-12,345") == "minus twelve thousand three hundred forty-five"
    assert cardinal.tag("-21") == 'cardinal { negative: "true" integer: "twenty-one" }'
    assert cardinal.tag_and_verbalize("-21") == "minus twenty-one"
    assert cardinal.sentence("21 cats") == "<twenty-one> <cats>"
    assert dates.read_iso("2009-03-21") == "two thousand nine|march|twenty first"
    assert dates.says("1905-07-20", "nineteen oh five|july|twentieth") and not dates.says("1905-07-20", "x")
    assert sounds.say("stein") == "ʃtaɪn" and sounds.say("tag") == "taːk"


def test_an_archive_of_a_grammar(tmp_path: Path) -> None:
    grammar("cardinal", True).save(tmp_path / "ours.far")
    grammar("cardinal", False).save(str(tmp_path / "theirs.far"))
    ours, theirs = (fst.FarReader.open(tmp_path / name) for name in ("ours.far", "theirs.far"))
    assert [key for key, _ in ours] == [key for key, _ in theirs] == ["CARDINAL", "TAG"]
    for key in ("CARDINAL", "TAG"):
        for text, wanted in (("1,204", "one thousand two hundred four"), ("-7", "minus seven")):
            found = {grm.one_top_rewrite(text, grm.Fst.around(each[key])) for each in (ours, theirs)}
            assert len(found) == 1 and (key == "TAG" or found == {wanted})
    assert pynini.Far(str(tmp_path / "ours.far")).far_type() == "sttable"


def test_an_archive_is_written_once(tmp_path: Path) -> None:
    exporter = grm.export.Exporter(tmp_path / "one.far")
    exporter["A"] = grm.accep("a")
    exporter.close()
    with pytest.raises(FstOpError, match="is written already: make another Exporter"):
        exporter["B"] = grm.accep("b")
    with pytest.raises(FstOpError, match="is written already"):
        exporter.close()
    with grm.export.Exporter(tmp_path / "two.far", far_type="stlist") as far:
        far["B"] = grm.accep("b")
    with pytest.raises(ZeroDivisionError), grm.export.Exporter(tmp_path / "three.far"):
        raise ZeroDivisionError
    assert [each.name for each in sorted(tmp_path.iterdir())] == ["one.far", "two.far"]
