"""OpenFst's files of strings, pairs and tuples: against files that OpenFst wrote, both ways, and damaged ones."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

import tokenfst.fst as fst
import tokenfst.semirings as sr
from tokenfst import Budget
from tokenfst.errors import BudgetExceeded, FstIOError, FstOpError

CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "openfst_arc_types.json"
FILES = {name: bytes.fromhex(data) for name, data in json.loads(CORPUS.read_text())["files"].items()}
"""What OpenFst wrote: tests/corpus/openfst_arc_types.cc made them."""
REFUSED = ("gallic_standard.vector", "reverse_left_gallic_standard.vector")
N, INF = sr.Number, math.inf


def strings(i: int) -> tuple[int, ...]:
    return tuple(10 * i + k for k in range(1, i))


def pair(i: int) -> tuple[float, float]:
    return i * 0.25, i * 0.5


def gallic(i: int) -> tuple[tuple[int, ...], float]:
    return strings(i), i * 0.25


WEIGHTS: dict[str, tuple[sr.Semiring, Any]] = {
    "left_gallic_standard": (sr.Gallic(N("standard")), gallic),
    "right_gallic_standard": (sr.Gallic(N("standard"), "right"), gallic),
    "restricted_gallic_standard": (sr.Gallic(N("standard"), "restrict"), gallic),
    "min_gallic_standard": (sr.Gallic(N("standard"), "min"), gallic),
    "left_gallic_log": (sr.Gallic(N("log")), gallic),
    "left_gallic_log64": (sr.Gallic(N("log64")), gallic),
    "left_standard_string": (sr.String("left"), strings),
    "right_standard_string": (sr.String("right"), strings),
    "restricted_standard_string": (sr.String("restrict"), strings),
    "tropical_LT_tropical": (sr.Lexicographic(N("standard"), N("standard")), pair),
    "tropical_X_log": (sr.Product(N("standard"), N("log")), pair),
    "tropical_X_log64": (sr.Product(N("standard"), N("log64")), pair),
    "standard_^3": (sr.Power(N("standard"), 3), lambda i: (i * 0.25, (i + 1) * 0.25, (i + 2) * 0.25)),
    "log64_^2": (sr.Power(N("log64"), 2), lambda i: (i * 0.25, (i + 1) * 0.25)),
    "expectation_log_log": (sr.Expectation(N("log")), pair),
    "expectation_log64_log64": (sr.Expectation(N("log64")), pair),
    "signed_log_tropical_log": (sr.SignedLog("log"), lambda i: (1.0 if i % 2 else -1.0, i * 0.25)),
    "signed_log_tropical_log64": (sr.SignedLog(), lambda i: (1.0 if i % 2 else -1.0, i * 0.25)),
    "minmax": (N("minmax"), lambda i: i * 0.25),
}
"""The semiring of each arc type, and the weights with which openfst_arc_types.cc made its machine."""


def content(machine: sr.SemiringFst) -> Any:
    arcs = [[tuple(arc) for arc in machine.arcs(state)] for state in machine.states()]
    return machine.start(), [machine.final(state) for state in machine.states()], arcs


def made(arc_type: str) -> sr.SemiringFst:
    """The machine of openfst_arc_types.cc."""
    semiring, weight = WEIGHTS[arc_type]
    machine = sr.SemiringFst(semiring)
    for _ in range(3):
        machine.add_state()
    machine.set_start(0).add_arc(0, 1, 2, weight(1), 1).add_arc(0, 0, 3, weight(2), 2)
    machine.add_arc(1, 3, 0, semiring.one, 2).add_arc(1, 2, 2, weight(3), 1)
    return machine.set_final(1).set_final(2, weight(4))


def test_all_arc_types_are_tried() -> None:
    assert {name.rsplit(".", 1)[0] for name in FILES if name not in REFUSED} == set(WEIGHTS)


@pytest.mark.parametrize("name", [name for name in FILES if name not in REFUSED])
def test_a_file_is_read_and_written_as_by_openfst(name: str) -> None:
    arc_type, fst_type = name.rsplit(".", 1)
    machine = sr.from_bytes(FILES[name])
    assert (
        content(machine) == content(made(arc_type)) and machine.semiring.name == made(arc_type).semiring.name
    )
    machine.set_tables((None, None))
    written = sr.to_bytes(made(arc_type), fst_type)  # type: ignore[arg-type]
    assert content(sr.from_bytes(written)) == content(machine)
    if arc_type != "tropical_LT_tropical":  # it has a symbol table
        head = len(FILES[name]) - len(written)
        assert head == 0
        at = (
            12 + len(fst_type) + len(arc_type) + 8 + 8 + 24
        )  # after the properties, which are hints, and the counts
        ours, theirs = written[at:], FILES[name][at:]
        padded = fst_type == "const" and "64" in arc_type  # OpenFst leaves what it finds in gaps
        assert ours == theirs or padded


def test_tables_are_kept() -> None:
    machine = sr.from_bytes(FILES["tropical_LT_tropical.const"])
    table = machine.tables[0]
    assert table is not None and list(table) == [(0, "eps"), (1, "x"), (2, "y")] and machine.tables[1] is None
    again = sr.from_bytes(sr.to_bytes(machine.copy()))
    assert again.tables[0] is not None and list(again.tables[0]) == list(table)


@pytest.mark.parametrize(
    "arc_type", ["standard", "tropical64", "log", "log64", "real64", "minmax", "boolean"]
)
def test_machines_of_numbers_are_those_of_the_core(arc_type: str, tmp_path: Path) -> None:
    native = fst.string_map([("ab", "x"), ("c", "yz")], arc_type=arc_type)
    native.write(tmp_path / "one.fst")
    machine = sr.read(tmp_path / "one.fst")
    assert machine.semiring.name == native.weight_type()
    sr.write(machine, tmp_path / "two.fst", "const")
    assert fst.equal(fst.read(tmp_path / "two.fst"), native)


@pytest.mark.parametrize("name", REFUSED)
def test_other_arc_types_are_refused_by_name(name: str) -> None:
    with pytest.raises(FstIOError, match=f"its arcs are of type '{name.split('.')[0]}'; read are"):
        sr.from_bytes(FILES[name])


def test_the_core_says_who_reads_the_others() -> None:
    with pytest.raises(FstIOError, match=r"read this file with tokenfst\.semirings\.read"):
        fst.from_bytes(FILES["left_gallic_standard.vector"])


def test_semirings_without_a_name_in_openfst_are_refused() -> None:
    for semiring in (
        sr.Reals(),
        sr.Expectation(N("real64"), sr.Reals()),
        sr.Power(N("boolean"), 2),
        sr.Power(sr.Power(N("log"), 2), 2),
    ):
        with pytest.raises(FstOpError, match="OpenFst has no arc type for the semiring"):
            sr.to_bytes(sr.SemiringFst(semiring))
    with pytest.raises(FstOpError, match="differ in size: OpenFst has no const file"):
        sr.to_bytes(made("left_gallic_log"), "const")


@pytest.mark.parametrize(
    "name", [name for name in FILES if name not in REFUSED and not name.startswith("minmax")]
)
def test_damaged_files_are_refused_and_never_more(name: str) -> None:
    data = FILES[name]
    for end in range(len(data)):
        with pytest.raises(FstIOError):
            sr.from_bytes(data[:end])
    for seed in range(300):
        rng, changed = random.Random(seed), bytearray(data)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        try:
            machine = sr.from_bytes(bytes(changed), budget=Budget(states=1000, bytes=1 << 22))
        except (FstIOError, BudgetExceeded):
            continue
        for state in machine.states():
            for arc in machine.arcs(state):
                machine.semiring.checked(arc.weight)
    with pytest.raises(FstIOError, match="other byte order"):
        sr.from_bytes(data[:4][::-1] + data[4:])


def test_files_keep_to_a_budget() -> None:
    data = FILES["standard_^3.vector"]
    with pytest.raises(BudgetExceeded, match="states"):
        sr.from_bytes(data, budget=Budget(states=2))
    with pytest.raises(BudgetExceeded, match="bytes"):
        sr.from_bytes(data, budget=Budget(bytes=300))
