"""Transducers from files: OpenFst's own, against what pynini wrote; the text, against arcs written out; damage."""

from __future__ import annotations

import random
from pathlib import Path

import pynini
import pytest
import pywrapfst
from support.worlds.transducer_worlds import damaged

from tokenfst import Language, regex, rewrite
from tokenfst.automata.openfst import fst
from tokenfst.automata.openfst.files import parse_fst, read_fst
from tokenfst.errors import FstError


def a_transducer() -> pynini.Fst:
    return pynini.union(pynini.cross("ab", "c"), pynini.closure(pynini.union(*"abc"))).optimize()


def named(machine: pynini.Fst) -> pynini.Fst:
    """With tables of symbols."""
    table = pynini.SymbolTable("letters")
    table.add_symbol("<eps>", 0)
    for letter in "abc":
        table.add_symbol(letter, ord(letter))
    return machine.copy().set_input_symbols(table).set_output_symbols(table)


@pytest.mark.parametrize("kind", ["vector", "const"])
@pytest.mark.parametrize("symbols", [False, True])
def test_files_of_openfst(kind: str, symbols: bool, tmp_path: Path) -> None:
    for number, machine in enumerate([a_transducer(), pynini.Fst(), pynini.accep("")]):
        path = tmp_path / f"{number}.fst"
        pywrapfst.convert(named(machine) if symbols else machine, kind).write(str(path))
        found = read_fst(path)
        assert pynini.equal(found, machine)
        tables = found.input_symbols(), found.output_symbols()
        if symbols:
            wanted = named(machine)
            assert [dict(table) for table in tables] == [
                dict(wanted.input_symbols()),
                dict(wanted.output_symbols()),
            ]
        else:
            assert tables == (None, None)


def test_a_file_without_a_number_of_states_is_read_to_its_end(tmp_path: Path) -> None:
    machine, path = a_transducer(), tmp_path / "streamed.fst"
    data = bytearray(machine.write_to_string())
    place = 4 + (4 + len("vector")) + (4 + len("standard")) + 4 + 4 + 8 + 8
    assert int.from_bytes(data[place : place + 8], "little") == machine.num_states()
    data[place : place + 8] = (-1).to_bytes(8, "little", signed=True)
    path.write_bytes(data)
    assert pynini.equal(read_fst(path), machine)


@pytest.mark.parametrize("kind", ["vector", "const"])
def test_damaged_files_are_refused_or_are_machines(kind: str, tmp_path: Path) -> None:
    rng, path = random.Random(1), tmp_path / "damaged.fst"
    whole = pywrapfst.convert(named(a_transducer()), kind).write_to_string()
    refused = 0
    for _ in range(1500):
        path.write_bytes(damaged(rng, whole))
        try:
            made = read_fst(path)
        except FstError:
            refused += 1
            continue
        assert fst.to_arcs(made).nextstate.max(initial=0) < max(made.num_states(), 1)
    assert refused > 300


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (lambda machine: pynini.arcmap(machine, map_type="to_log"), "type 'log'.*to_std"),
        (lambda machine: machine + pynini.accep("x", weight=2.0), "weight 2"),
    ],
)
def test_other_semirings_and_weights_are_refused(convert: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "other.fst"
    convert(a_transducer()).write(str(path))  # type: ignore[operator]
    with pytest.raises(FstError, match=message):
        read_fst(path)


def test_other_types_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "compact.fst"
    pywrapfst.convert(pynini.accep("ab"), "compact_string").write(str(path))
    with pytest.raises(FstError, match="fstconvert --fst_type=vector"):
        read_fst(path)


# --- text ---------------------------------------------------------------------------------------------

ESCAPE = """
# a line break becomes a backslash and an n
0 0 <other> <other>
0 1 0x0A \\
1 0 <eps> n
0
"""


def test_text_is_the_arcs_that_it_stands_for() -> None:
    copied = [byte + 1 for byte in range(256) if byte != 10]
    wanted = fst.from_arcs(
        2,
        0,
        [0],
        [0] * 256 + [1],
        [*copied, 11, 0],
        [*copied, ord("\\") + 1, ord("n") + 1],
        [0] * 255 + [1, 0],
    )
    assert pynini.isomorphic(parse_fst(ESCAPE), wanted)


def test_states_are_names(tmp_path: Path) -> None:
    """A large number does not make states: seven bytes took 1.6 GB, and ``Language.from_fst`` of them half a minute."""
    found = parse_fst("9292912 123456789012345678 a b\n7 9292912 c <eps>\n123456789012345678")
    assert found.num_states() == 3
    assert found.start() == 0
    assert pynini.isomorphic(found, parse_fst("0 1 a b\n2 0 c <eps>\n1"))
    assert parse_fst("9292912").num_states() == 1


def test_text_is_read_as_such(tmp_path: Path) -> None:
    path = tmp_path / "escape.txt"
    path.write_text(ESCAPE, encoding="utf-8-sig")
    found = read_fst(path)
    assert rewrite(regex("a\nb"), found).equivalent(Language.literal(r"a\nb"))


@pytest.mark.parametrize(
    ("text", "reads", "written"),
    [
        ("0 1 a b\n1", "a", ["b"]),
        ("3 1 a b\n1", "a", ["b"]),
        ("0 0 <any> <any>\n0", "xy", ["xy"]),
        ("0 0 <any> <eps>\n0", "xy", [""]),
        ("0 1 a <any>\n1", "a", [bytes([byte]) for byte in range(256)]),
        ("0 1 <other> -\n0 1 a <eps>\n1", "a", [""]),
        ("0 1 <other> -\n0 1 a <eps>\n1", "b", ["-"]),
        ("0 1 1 0x32\n1 2 # 0\n2", "1#", ["20"]),
        ("0", "", [""]),
    ],
)
def test_what_is_written(text: str, reads: str, written: list[str | bytes]) -> None:
    made = rewrite(Language.literal(reads), parse_fst(text))
    assert made.equivalent(Language.union_of(map(Language.literal, written)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no state"),
        ("# nothing\n\n", "no state"),
        ("0 1 a", "line 1 has 3 words"),
        ("0 1 a b 0.5", "line 1 has 5 words.*no weights"),
        ("0 1 a b\nx", "line 2: 'x' is no state"),
        ("0 1234567890123456789 a b", "'1234567890123456789' is no state"),
        ("[" * 100_000, r"line 1: '\[{79} is no state"),
        ("0 1 98 b", "line 1: '98' is no letter"),
        (f"0 1 a {'b' * 100_000}", r"line 1: 'b{79} is no letter"),
        ("0 1 é b", "'é' is no letter"),
        ("0 1 a 0x100", "'0x100' is no letter"),
        ("0 1 a <other>", "written only where it is read"),
        ("0 1 <any> <other>", "written only where it is read"),
    ],
)
def test_text_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(FstError, match=message):
        parse_fst(text)


def test_bytes_that_are_neither(tmp_path: Path) -> None:
    path = tmp_path / "neither"
    path.write_bytes(b"0 1 a \xff")
    with pytest.raises(FstError, match="neither an OpenFst file nor text: byte 6"):
        read_fst(path)
