"""The grammars that pynini ships as examples, with only their imports changed: the same outputs as under pynini."""

from __future__ import annotations

import types
from functools import cache
from pathlib import Path
from typing import Any

import pynini
import pytest
from support.worlds.transducer_worlds import theirs

import tokenfst.fst as fst

EXAMPLES = Path(pynini.__file__).parent / "examples"
IMPORTS = {
    "import pynini\n": "import tokenfst.grm as pynini\n",
    "from pynini.lib import ": "from tokenfst.grm import ",
}


@cache
def example(name: str, ported: bool) -> types.ModuleType:
    """An example as a module, with its own imports or with ours."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    made = types.ModuleType(f"{name} {'ported' if ported else 'as it is'}")
    if name == "chatspeak_model":
        source = source.replace("from pynini.examples import chatspeak\n", "")
        vars(made)["chatspeak"] = example("chatspeak", ported)
    for theirs_, ours in IMPORTS.items() if ported else ():
        source = source.replace(theirs_, ours)
    assert not ported or "pynini.lib" not in source.split('"""', 2)[2]
    exec(compile(source, made.__name__, "exec"), vars(made))
    return made


def outcome(call: Any, *given: Any) -> Any:
    """What a call returns, or that it found no output or several."""
    try:
        return call(*given)
    except Exception as error:
        kinds = ("FstOpError", "Error")
        assert type(error).__name__ in kinds, error
        return "no single output"


def agree(name: str, function: str, texts: list[str]) -> set[str]:
    """The outputs of a function of an example for some texts, the same under both imports."""
    found = [outcome(getattr(example(name, True), function), text) for text in texts]
    assert found == [outcome(getattr(example(name, False), function), text) for text in texts]
    return set(found)


def test_numbers() -> None:
    texts = [str(n) for n in (*range(130), 200, 219, 1000, 1001, 12345, 100000, 324, 2000324, 9999999)]
    found = agree("numbers", "number", texts)
    assert {"twelve thousand three hundred forty five", "two million three hundred twenty four"} <= found
    assert "no single output" in agree("numbers", "number", ["", "x", "12x"])


def test_dates() -> None:
    texts = [
        "January 1st, 1999",
        "3 mar 2001",
        "the 12th of Sept. 1970",
        "2012/9/11",
        "31/12/1999",
        "may 1984",
        "x",
    ]
    assert "no single output" in agree("dates", "match", texts)
    tagged = agree("dates", "tag", [f"it was on {text}, I think" for text in texts])
    assert any("<month>9</month>" in text for text in tagged)


def test_plurals() -> None:
    words = [
        "deer",
        "man",
        "child",
        "ox",
        "wolf",
        "spy",
        "toy",
        "box",
        "church",
        "dish",
        "buzz",
        "focus",
        "cat",
        "y",
    ]
    assert {"wolves", "spies", "toys", "boxes"} <= agree("plurals", "plural", [*words, "Cat", ""])


@pytest.mark.parametrize(
    "function", ["abessive", "ablative", "adessive", "allative", "elative", "essive", "inessive"]
)
def test_cases(function: str) -> None:
    agree("case", function, ["talo", "kesä", "tie", "pöytä", "x", "", "auto", "1"])


def test_letters_to_sounds() -> None:
    words = [
        "albañil",
        "antihéroe",
        "cantar",
        "chihuahua",
        "carro",
        "coger",
        "guitarra",
        "pollo",
        "quinqué",
        "ü",
        "k",
    ]
    assert {"albaɲil", "antieɾoe", "no single output"} <= agree("g2p", "g2p", [*words, "1"])


def test_keys_to_words() -> None:
    lexicon = ["the", "cool", "warthog", "escaped", "easily", "from", "baltimore", "zoo", "book", "cook"]
    ours, pyninis = (example("t9", ported).T9(lexicon) for ported in (True, False))
    for text in ("the cool warthog escaped easily from baltimore zoo", "book", "zoo zoo"):
        keys = ours.encode(text)
        assert keys == pyninis.encode(text)
        found = sorted(ours.decode(keys).paths().ostrings())
        assert text in found and found == sorted(pyninis.decode(keys).paths().ostrings())


def test_weather() -> None:
    for degrees, wind in ((1, 1), (25, 1), (1, 100), (-3, 20)):
        said = set()
        for ported in (True, False):
            table = example("weather", ported).WeatherTable()
            table.add_city("Lima", degrees, wind, "west", "clear")
            said.add(table.generate_report("Lima"))
        assert len(said) == 1
        assert ("1 degree " in said.pop()) is (degrees == 1)


def test_normalizing_with_a_language_model(tmp_path: Path) -> None:
    """Symbol tables, token types, files, and rules that write several texts."""
    words = ["you", "are", "cool", "what's", "up", "love", "good", "bye", "hello", "laugh", "great", "thanks"]
    table = fst.SymbolTable("words")
    table.add_symbol("<epsilon>")
    for word in words:
        table.add_symbol(word)
    model = fst.VectorFst()
    model.add_states(1)
    model.set_start(0).set_final(0)
    for word in words:
        model.add_arc(0, fst.Arc(table.find(word), table.find(word), 1.0 + len(word) / 8, 0))
    model.set_input_symbols(table).set_output_symbols(table)
    theirs(model).write(str(tmp_path / "model.fst"))
    (tmp_path / "lexicon.tsv").write_text("gr8\tgreat\nthx\tthanks\n", encoding="utf-8")
    chats = [
        example("chatspeak_model", ported).ChatspeakModel(
            str(tmp_path / "lexicon.tsv"), str(tmp_path / "model.fst")
        )
        for ported in (True, False)
    ]
    for text, wanted in {
        "uuu": "you", "coooool": "cool", "gr8": "great", "waz up": None, "lurv": "love", "thx": "thanks",
        "hello": "hello", "hllo": None,
    }.items():  # fmt: skip
        ours, pyninis = (outcome(chat.decode, text) for chat in chats)
        assert ours == pyninis
        assert wanted is None or ours == wanted
