"""Archives of machines, both ways with pynini's ``Far``; broken ones."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pynini
import pytest
import pywrapfst
from support.worlds.transducer_worlds import adopted, ours, theirs

import tokenfst.fst as fst
from reference.transducers.transducers import random_plain
from tokenfst.automata.transducers.weights import ARC_TYPES
from tokenfst.errors import FstArgError, FstIOError, FstOpError

TYPES = ("sttable", "stlist")


def machines(arc_type: str = "standard", count: int = 6) -> dict[str, fst.VectorFst]:
    rng = random.Random(7)
    found = {f"key {k:02} é": ours(random_plain(rng), arc_type) for k in range(count)}
    table = fst.SymbolTable("names")
    table.add_symbol("<eps>", 0)
    found["key 00 é"].set_input_symbols(table)
    return found


@pytest.mark.parametrize("far_type", TYPES)
@pytest.mark.parametrize("arc_type", ["standard", "log", "log64"])
def test_pynini_reads_what_we_write(tmp_path: Path, far_type: str, arc_type: str) -> None:
    path = tmp_path / "one.far"
    given = machines(arc_type)
    with fst.FarWriter.create(path, arc_type, far_type) as far:
        for key, machine in given.items():
            far[key] = machine
    read = pynini.Far(path, mode="r")
    assert read.far_type() == far_type and read.arc_type() == arc_type
    for key, machine in read:
        assert fst.equal(adopted(machine), given.pop(key))
    assert not given


@pytest.mark.parametrize("far_type", TYPES)
def test_we_read_what_pynini_writes(tmp_path: Path, far_type: str) -> None:
    path = tmp_path / "one.far"
    given = machines()
    with pynini.Far(path, mode="w", far_type=far_type) as far:
        for key, machine in given.items():
            far.add(key, pynini.Fst.from_pywrapfst(theirs(machine)))
    read = fst.FarReader.open(path)
    assert read.far_type() == far_type and read.arc_type() == "standard"
    assert [key for key, _ in read] == list(given)
    read.reset()
    assert all(fst.equal(machine, given[key]) for key, machine in read)
    assert read["key 00 é"].input_symbols() is not None
    assert read.find("key 03 é") and read.get_key() == "key 03 é"
    assert not read.find("key 02 é and more") and read.get_key() == "key 03 é"
    with pytest.raises(KeyError):
        read["nothing"]


@pytest.mark.parametrize("far_type", TYPES)
@pytest.mark.parametrize("arc_type", ARC_TYPES)
def test_every_arc_type_comes_back(tmp_path: Path, far_type: str, arc_type: str) -> None:
    path = tmp_path / "one.far"
    with fst.Far(path, "w", arc_type, far_type) as far:
        far.add("a", fst.accep("ab", arc_type=arc_type))
        far.add("b", fst.VectorFst(arc_type))
    read = fst.Far(path)
    assert fst.equal(read["a"], fst.accep("ab", arc_type=arc_type)) and read["b"].num_states() == 0


@pytest.mark.parametrize("arc_type", ARC_TYPES)
def test_const_files_of_every_arc_type(tmp_path: Path, arc_type: str) -> None:
    machine = fst.accep("ab", arc_type=arc_type).closure()
    machine.write(tmp_path / "const.fst", "const")
    assert fst.equal(fst.read(tmp_path / "const.fst"), machine)
    if arc_type in ("standard", "log", "log64"):
        other = pywrapfst.Fst.read(str(tmp_path / "const.fst"))
        assert other.fst_type() == "const"
        assert fst.equal(adopted(pywrapfst.convert(other, "vector")), machine)


def test_several_archives_are_read_as_one(tmp_path: Path) -> None:
    for name in "ba":
        with fst.FarWriter.create(tmp_path / name, far_type="stlist") as far:
            far.add(name, fst.accep(name))
    read = fst.FarReader.open(tmp_path / "b", tmp_path / "a")
    assert [(key, fst.string(machine)) for key, machine in read] == [("a", "a"), ("b", "b")]
    assert read.done()
    with pytest.raises(FstOpError, match="after its last entry"):
        read.get_fst()


def test_a_machines_own_file_is_an_archive_of_one(tmp_path: Path) -> None:
    path = tmp_path / "one.fst"
    with fst.FarWriter.create(path, "log64", "fst") as far:
        far["any key"] = fst.accep("ab", 0.5, "log64")
        with pytest.raises(FstOpError, match="file of one machine, which it has"):
            far["key two"] = fst.accep("ab", arc_type="log64")
    assert fst.equal(fst.read(path), fst.accep("ab", 0.5, "log64"))
    ours, theirs_ = fst.FarReader.open(path, path), pywrapfst.FarReader.open(str(path), str(path))
    assert (ours.far_type(), ours.arc_type()) == (theirs_.far_type(), theirs_.arc_type()) == ("fst", "log64")
    assert [key for key, _ in ours] == [str(path)] * 2 == [key for key, _ in theirs_]
    with (
        pytest.raises(FstOpError, match="none was added"),
        fst.FarWriter.create(tmp_path / "none", far_type="fst"),
    ):
        pass
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(FstIOError, match="ends too early"):
        fst.FarReader.open(path)


def test_const_machines_stand_in_archives(tmp_path: Path) -> None:
    data = fst.accep("ab").write_to_string("const")
    key = struct.pack("<i", 1) + b"k"
    whole = struct.pack("<ii", 5656924, 1) + key + data + struct.pack("<i", 0)
    (tmp_path / "c").write_bytes(whole)
    assert fst.string(fst.Far(tmp_path / "c")["k"]) == "ab"


@pytest.mark.parametrize("far_type", TYPES)
def test_broken_archives_are_refused(tmp_path: Path, far_type: str) -> None:
    path = tmp_path / "one.far"
    with fst.FarWriter.create(path, far_type=far_type) as far:
        for key, machine in machines(count=2).items():
            far[key] = machine
    whole = path.read_bytes()
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(FstIOError):
            fst.FarReader.open(path)
    rng = random.Random(0)
    for _ in range(80):
        broken = bytearray(whole)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        try:
            for _, machine in fst.FarReader.open(path):
                assert machine.num_states() < 100
        except FstIOError as error:
            assert str(path) in str(error) or "entry" in str(error)


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    word = fst.accep("a")
    far = fst.FarWriter.create(tmp_path / "x")
    far.add("b", word)
    with pytest.raises(FstArgError, match="ascend"):
        far.add("a", word)
    with pytest.raises(FstArgError, match="not empty"):
        far.add("", word)
    with pytest.raises(FstOpError, match="arcs of type"):
        far.add("c", fst.accep("a", arc_type="log"))
    far.close()
    with pytest.raises(FstOpError, match="closed"):
        far.add("c", word)
    with pytest.raises(FstArgError, match="far_type"):
        fst.Far(tmp_path / "x", "w", far_type="stable")
    with pytest.raises(FstArgError, match="mode"):
        fst.Far(tmp_path / "x", "a")
    with pytest.raises(RuntimeError), fst.FarWriter.create(tmp_path / "never"):
        raise RuntimeError
    assert not (tmp_path / "never").exists()
