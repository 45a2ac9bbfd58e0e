"""Pictures of transducers: the text is OpenFst's."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.worlds.transducer_worlds import ours, theirs

import tokenfst.fst as fst
from reference.transducers.transducers import random_plain
from tokenfst.errors import DrawingError, FstArgError, FstIOError


def letters() -> fst.SymbolTable:
    table = fst.SymbolTable("letters")
    for label, symbol in enumerate(["ε", 'a"', "b\\"]):
        table.add_symbol(symbol, label)
    return table


def test_the_text_is_openfsts(tmp_path: Path) -> None:
    for seed in range(20):
        rng = random.Random(seed)
        machine = ours(random_plain(rng, acceptor=seed % 2 == 0), ("standard", "log", "log64")[seed % 3])
        if seed % 4 == 0:
            machine.set_input_symbols(letters()).set_output_symbols(letters())
        given = {
            "acceptor": rng.random() < 0.5,
            "title": rng.choice(("", "a title")),
            "portrait": rng.random() < 0.5,
            "vertical": rng.random() < 0.5,
            "width": 3,
            "ranksep": 1.25,
            "fontsize": rng.randint(8, 20),
            "precision": rng.randint(1, 6),
            "float_format": rng.choice("efg"),
            "show_weight_one": rng.random() < 0.5,
        }
        mine, its = tmp_path / "mine.dot", tmp_path / "its.dot"
        picture = machine.draw(mine, **given)
        theirs(machine).draw(str(its), **given)
        assert mine.read_text() == its.read_text() == picture.dot, seed


def test_weights_that_are_infinite_and_machines_of_nothing() -> None:
    machine = fst.accep("a", arc_type="minmax").set_final(1, 2)
    assert 'label = "0", shape = circle' in machine.draw().dot
    assert '-> 1 [label = "97/-Infinity"' in machine.draw(acceptor=True, show_weight_one=True).dot
    assert fst.VectorFst().draw().dot.endswith("}\n")


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(DrawingError, match="at most 200 are drawn"):
        fst.accep("a" * 300).draw()
    assert "300" in fst.accep("a" * 300).draw(max_states=400).dot
    with pytest.raises(FstArgError, match="float_format is 'e'"):
        fst.accep("a").draw(float_format="x")
    with pytest.raises(FstArgError, match="precision"):
        fst.accep("a").draw(precision=-1)
    with pytest.raises(FstIOError, match="input label 97 is not in the symbol table 'letters'"):
        fst.accep("a").draw(isymbols=letters())


def test_the_ending_of_a_file_decides_its_format(tmp_path: Path) -> None:
    machine = fst.accep("ab")
    for ending, begins in {
        "svg": b"<?xml",
        "png": b"\x89PNG",
        "html": b"<!doctype html>",
        "dot": b"digraph FST",
    }.items():
        machine.draw(tmp_path / f"m.{ending}")
        assert (tmp_path / f"m.{ending}").read_bytes().startswith(begins)
    for name in ("m.pdf", "m"):
        with pytest.raises(DrawingError, match=f"{name}.*does not end in .svg, .png, .html, .dot"):
            machine.draw(tmp_path / name)
        machine.draw(tmp_path / name, format="dot")
        assert (tmp_path / name).read_bytes().startswith(b"digraph FST")
