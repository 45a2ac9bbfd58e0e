"""Files of OpenFst both ways, symbol tables, AT&T text, pynini's objects; and files that are damaged."""

from __future__ import annotations

import math
import pickle
import random
import re
import struct
from pathlib import Path
from typing import Any

import pynini
import pytest
import pywrapfst
from support.worlds.transducer_worlds import damaged, ours, theirs

import tokenfst.fst as fst
from reference.transducers.transducers import random_plain
from tokenfst import Budget
from tokenfst.automata.openfst.headers import Cursor
from tokenfst.errors import BudgetExceeded, FstError, FstIOError

ARC_TYPES = ("standard", "tropical64", "log", "log64", "real", "real64", "minmax", "minmax64", "boolean")


def letters() -> fst.SymbolTable:
    table = fst.SymbolTable("letters")
    for symbol in ("<eps>", "a", "ö"):
        table.add_symbol(symbol)
    return table


def a_machine(seed: int = 0, arc_type: str = "standard", **shape: object) -> fst.VectorFst:
    made = ours(random_plain(random.Random(seed), **shape), "standard")  # type: ignore[arg-type]
    return fst.arcmap(made) if arc_type == "standard" else with_type(made, arc_type)


def with_type(machine: fst.VectorFst, arc_type: str) -> fst.VectorFst:
    if "minmax" in arc_type:
        return fst.convert(fst.convert(machine, "boolean"), arc_type)
    return fst.convert(machine, arc_type)


@pytest.mark.parametrize("kind", ["vector", "const"])
@pytest.mark.parametrize("arc_type", ARC_TYPES)
def test_what_is_written_is_read(arc_type: str, kind: str, tmp_path: Path) -> None:
    for seed in range(5):
        machine = a_machine(seed, arc_type)
        if seed % 2:
            machine.set_input_symbols(letters()).set_output_symbols(letters())
        path = tmp_path / "machine.fst"
        machine.write(path, kind)  # type: ignore[arg-type]
        found = fst.read(path)
        assert found.arc_type() == arc_type
        assert fst.equal(found, machine, 1e-12)
        assert found.tables == machine.tables
        assert fst.equal(pickle.loads(pickle.dumps(machine)), machine, 1e-12)
    empty = fst.VectorFst(arc_type)
    assert fst.from_bytes(fst.to_bytes(empty, kind)).num_states() == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["vector", "const"])
@pytest.mark.parametrize("arc_type", ["standard", "log", "log64"])
def test_openfst_reads_what_is_written_and_the_other_way_round(arc_type: str, kind: str) -> None:
    for seed in range(10):
        machine = a_machine(seed, arc_type).set_input_symbols(letters())
        data = fst.to_bytes(machine, kind)  # type: ignore[arg-type]
        other = pywrapfst.Fst.read_from_string(data)
        assert pywrapfst.equal(other, theirs(machine), 1e-12)
        assert dict(other.input_symbols()) == dict(letters())
        assert other.fst_type() == kind
        back = pywrapfst.convert(theirs(machine), kind).write_to_string()
        assert fst.equal(fst.from_bytes(back), machine, 1e-12)


def test_pynini_objects_both_ways() -> None:
    machine = pynini.union(pynini.cross("ab", pynini.accep("c", weight=0.5)), "d").optimize()
    found = fst.from_pynini(machine)
    assert fst.string(fst.compose(fst.accep("ab"), found)) == "c"
    assert pynini.equal(fst.to_pynini(found), machine)
    table = fst.table_of(pynini.SymbolTable("x"))
    assert (table.name(), len(table)) == ("x", 0)
    with pytest.raises(fst.FstArgError, match="not a str"):
        fst.from_pynini("ab")
    with pytest.raises(fst.FstArgError, match="'real'"):
        fst.to_pynini(fst.VectorFst("real"))


@pytest.mark.parametrize("kind", ["vector", "const"])
def test_damaged_files_are_refused_or_are_machines(kind: str) -> None:
    rng = random.Random(1)
    machine = a_machine(3, states=6, arcs=12).set_input_symbols(letters())
    whole = fst.to_bytes(machine, kind)  # type: ignore[arg-type]
    refused = 0
    for _ in range(1000):
        data = damaged(rng, whole)
        try:
            made = fst.from_bytes(data)
        except FstError:
            refused += 1
            continue
        made.copy().rmepsilon().connect()
        fst.to_bytes(made)
    assert refused > 200
    for length in range(len(whole)):
        with pytest.raises(FstIOError):
            fst.from_bytes(whole[:length])


def test_files_of_other_kinds_are_named(tmp_path: Path) -> None:
    compact = pywrapfst.convert(pynini.accep("ab"), "compact_string").write_to_string()
    with pytest.raises(FstIOError, match=r"'compact_string'.*fstconvert --fst_type=vector"):
        fst.from_bytes(compact)
    whole = fst.to_bytes(a_machine())
    with pytest.raises(FstIOError, match="other byte order"):
        fst.from_bytes(whole[:4][::-1] + whole[4:])
    with pytest.raises(FstIOError, match="no OpenFst file"):
        fst.from_bytes(b"0 1 2 3\n")
    with pytest.raises(FstIOError, match="'signed_log'"):
        fst.from_bytes(
            whole.replace(struct.pack("<i", 8) + b"standard", struct.pack("<i", 10) + b"signed_log")
        )
    path = tmp_path / "nothing.fst"
    path.write_bytes(b"")
    with pytest.raises(FstIOError, match=r"nothing\.fst.*ends too early"):
        fst.read(path)
    with pytest.raises(OSError, match="missing"):
        fst.read(tmp_path / "missing")
    with pytest.raises(BudgetExceeded):
        fst.from_bytes(fst.to_bytes(a_machine(2, states=5)), budget=Budget(bytes=10))


@pytest.mark.parametrize("arc_type", ["standard", "log", "log64"])
def test_aligned_const_files_are_read(arc_type: str, tmp_path: Path) -> None:
    machine = a_machine(3, arc_type, states=7)
    plain = machine.write_to_string("const")
    cursor = Cursor(plain)
    cursor.header()
    at = cursor.at
    head = bytearray(plain[:at])
    struct.pack_into("<ii", head, at - 40, 1, 4)  # version 1, aligned
    states = machine.num_states() * (16 + (8 if arc_type == "log64" else 4))
    parts = b""
    for part in (bytes(head), plain[at : at + states], plain[at + states :]):
        parts += bytes(-len(parts) % 16 if parts else 0) + part
    path = tmp_path / "aligned.fst"
    path.write_bytes(parts)
    assert fst.equal(fst.read(path), machine)
    assert fst.equal(fst.from_pynini(pywrapfst.convert(pywrapfst.Fst.read(str(path)), "vector")), machine)
    for length in range(at, len(parts), 7):
        with pytest.raises(FstIOError):
            fst.from_bytes(parts[:length])


@pytest.mark.parametrize(
    "name",
    [
        "left_gallic_standard",
        "min_gallic_log",
        "tropical_LT_tropical",
        "expectation_standard_real",
        "standard_^3",
    ],
)
def test_arcs_of_no_single_number_are_refused(name: str) -> None:
    old = struct.pack("<i", 8) + b"standard"
    data = fst.to_bytes(a_machine()).replace(old, struct.pack("<i", len(name)) + name.encode())
    with pytest.raises(
        FstIOError, match=rf"{re.escape(repr(name))}, whose weights are not single numbers.*semirings"
    ):
        fst.from_bytes(data)


def test_a_weight_in_a_file_must_be_one() -> None:
    machine = fst.accep("a", weight=0.5)
    data = fst.to_bytes(machine)
    for bad in (math.nan, -math.inf):
        with pytest.raises(FstIOError, match="no weight of its semiring"):
            fst.from_bytes(data.replace(struct.pack("<f", 0.5), struct.pack("<f", bad)))


# --- text ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arc_type", ARC_TYPES)
def test_text_both_ways(arc_type: str) -> None:
    for seed in range(8):
        machine = a_machine(seed, arc_type)
        compiler = fst.Compiler(arc_type=arc_type, keep_state_numbering=True)
        compiler.write(machine.print())
        assert fst.equal(compiler.compile(), machine, 0.0)


def test_text_is_openfsts() -> None:
    for seed in range(10):
        machine = a_machine(seed)
        compiler = pywrapfst.Compiler(keep_state_numbering=True)
        compiler.write(machine.print(show_weight_one=True))
        found = compiler.compile()
        assert fst.from_pynini(found).print() == machine.print()
        theirs = pywrapfst.VectorFst.read_from_string(machine.write_to_string()).print()
        assert [line.split("\t")[:4] for line in theirs.splitlines() if line.count("\t") > 1] == [
            line.split("\t")[:4] for line in machine.print().splitlines() if line.count("\t") > 1
        ]
        assert [line.split("\t")[0] for line in theirs.splitlines()] == [
            line.split("\t")[0] for line in machine.print().splitlines()
        ]


@pytest.mark.parametrize("arc_type", ARC_TYPES)
def test_text_names_states_that_lead_nowhere(arc_type: str) -> None:
    """A dead start, too: else the next state would be the start when the text is read."""
    machine = fst.VectorFst(arc_type).add_states(4).set_start(0).set_final(2)
    machine.add_arc(1, fst.Arc(1, 1, machine.final(2), 2)).add_arc(1, fst.Arc(1, 1, machine.final(2), 3))
    zero = fst.Weight.zero(machine.weight_type())
    assert machine.print() == f"0\t{zero}\n1\t2\t1\t1\n1\t3\t1\t1\n2\n3\t{zero}\n"
    for keeps in (False, True):
        compiler = fst.Compiler(arc_type=arc_type, keep_state_numbering=keeps)
        compiler.write(machine.print())
        assert fst.equal(compiler.compile(), machine, 0.0)
    if arc_type in ("standard", "log", "log64"):
        assert pywrapfst.VectorFst.read_from_string(machine.write_to_string()).print() == machine.print()


def test_text_with_symbols() -> None:
    compiler = fst.Compiler(isymbols=letters(), osymbols=letters(), keep_isymbols=True, keep_osymbols=True)
    compiler.write("7 3 a ö 0.5\n3 Infinity\n3\n")
    made = compiler.compile()
    assert made.print() == "0\t1\ta\tö\t0.5\n1\n"
    assert fst.Compiler().compile().num_states() == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1 a", "line 1: the input 'a' is not a number|line 1 has 3 words"),
        ("0 1 1 x", "line 1: the output 'x' is not a number"),
        ("\n0 1 1 2 nan", "line 2: .*no weight"),
        ("0 1 1 2 a", "line 1: .*'a' is not a number"),
        ("0 1 1 2 3 4", "line 1 has 6 words"),
        ("-1 1 1 2", "line 1: the state '-1'"),
        ("0 1 4294967296 1", "line 1: the input '4294967296'"),
    ],
)
def test_text_that_cannot_be_read(text: str, message: str) -> None:
    compiler = fst.Compiler()
    compiler.write(text)
    with pytest.raises(FstIOError, match=message):
        compiler.compile()


# --- symbol tables ------------------------------------------------------------------------------------


def test_symbol_tables(tmp_path: Path) -> None:
    table = letters()
    assert (table.find("a"), table.find(2), table.find("z"), table.find(9)) == (1, "ö", -1, "")
    assert table.add_symbol("a", 7) == 1
    assert table.add_symbol("c", 7) == 7
    assert table.available_key() == 8
    with pytest.raises(fst.FstArgError, match="label 7 stands for 'c'"):
        table.add_symbol("d", 7)
    path = tmp_path / "table.txt"
    table.write_text(path)
    assert fst.SymbolTable.read_text(path) == table
    table.write(tmp_path / "table.syms")
    assert fst.SymbolTable.read(tmp_path / "table.syms") == table
    assert dict(pywrapfst.SymbolTable.read(str(tmp_path / "table.syms"))) == dict(table)
    path.write_text("a 1\nb\n")
    with pytest.raises(FstIOError, match="line 2"):
        fst.SymbolTable.read_text(path)
    machine = fst.VectorFst()
    machine.set_start(machine.add_state())
    machine.add_arc(0, fst.Arc(99, 0, 0.0, 0)).set_input_symbols(table)
    with pytest.raises(FstIOError, match="label 99 is not in the symbol table 'letters'"):
        machine.print()


def test_tables_are_merged_and_made_compact_as_by_openfst() -> None:
    def table(made: Any, symbols: dict[str, int]) -> Any:
        for symbol, label in symbols.items():
            made.add_symbol(symbol, label)
        return made

    one, other = {"e": 0, "a": 5, "b": 9, "c": 2}, {"e": 0, "a": 3, "d": 9, "g": 12, "f": 2}
    for left, right in ((one, other), (other, one), (one, {}), ({}, one)):
        ours = [table(fst.SymbolTable(), each) for each in (left, right)]
        its = [table(pywrapfst.SymbolTable(), each) for each in (left, right)]
        assert dict(fst.merge_symbol_table(*ours)) == dict(pywrapfst.merge_symbol_table(*its))
        assert dict(fst.compact_symbol_table(ours[0])) == dict(pywrapfst.compact_symbol_table(its[0]))
        assert [ours[0].get_nth_key(at) for at in range(5)] == [its[0].get_nth_key(at) for at in range(5)]


def test_names_of_properties_are_openfsts() -> None:
    for bit in fst.FstProperties:
        assert getattr(fst, bit.name) == bit == getattr(pywrapfst, bit.name).value
    assert fst.accep("ab").properties(fst.ACYCLIC | fst.CYCLIC) == fst.ACYCLIC
