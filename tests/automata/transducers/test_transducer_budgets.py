"""Every operation that makes a machine takes a budget, and ends with it."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tokenfst.fst as fst
from tokenfst import Budget
from tokenfst.errors import BudgetExceeded

ROOT = Path(__file__).resolve().parents[3]
PAGES = runpy.run_path(str(ROOT / "docs" / "operations.py"))["operations"]()
NONE = {
    "arrays", "equal", "verify", "properties", "print", "draw", "string", "table_of", "write", "to_bytes",
    "from_pynini", "to_pynini", "Far", "read_from_string", "write_to_string", "merge_symbol_table",
    "compact_symbol_table",
}  # fmt: skip
"""Answers and files: linear in what there is already. What reads a file is tried as ``from_bytes`` and ``read``."""
IN_PLACE = {
    "machine.arcsort", "machine.invert", "machine.project", "machine.reweight", "machine.topsort",
}  # fmt: skip
"""The result has the states and arcs that there were, or is an answer: only the seconds of a budget are looked at."""
NOT_MORE = {
    "fst.equivalent", "fst.isomorphic", "fst.prune", "fst.shortestdistance", "machine.connect", "machine.minimize",
    "machine.prune", "machine.push",
}  # fmt: skip
"""The result has no more states than there were: bytes, for what is kept on the way, and seconds."""

ACCEPTOR = fst.accep("ab", 1).union(fst.accep("ac", 2), fst.accep("ab", 3))
PLAIN = ACCEPTOR.copy().rmepsilon()
CROSS = fst.cross("abab", "xyz")
TABLE = fst.SymbolTable("t")
for _label, _name in enumerate(["<eps>", *"abc"]):
    TABLE.add_symbol(_name, _label)
OLD = fst.SymbolTable("old")
for _name in ("<eps>", "a", "b", "c"):
    OLD.add_symbol(_name, 0 if _name == "<eps>" else ord(_name))
MAPPER = fst.EncodeMapper("standard", True, True)
ENCODED = fst.encode(PLAIN, MAPPER)

Call = Callable[[Budget], Any]
CALLS: dict[str, Call] = {
    "fst.accep": lambda b: fst.accep("abc", budget=b),
    "fst.arcmap": lambda b: fst.arcmap(PLAIN, map_type="superfinal", budget=b),
    "fst.cdrewrite": lambda b: fst.cdrewrite(
        fst.cross("a", "b"), "", "", fst.accep("a").union(fst.accep("b")).closure(), budget=b
    ),
    "fst.compose": lambda b: fst.compose(CROSS, fst.cross("xyz", "1"), budget=b),
    "fst.convert": lambda b: fst.convert(PLAIN, "log64", budget=b),
    "fst.cross": lambda b: fst.cross("abc", "d", budget=b),
    "fst.decode": lambda b: fst.decode(ENCODED, MAPPER, budget=b),
    "fst.determinize": lambda b: fst.determinize(PLAIN, budget=b),
    "fst.difference": lambda b: fst.difference(PLAIN, fst.accep("ac"), budget=b),
    "fst.disambiguate": lambda b: fst.disambiguate(PLAIN, budget=b),
    "fst.encode": lambda b: fst.encode(PLAIN, MAPPER, budget=b),
    "fst.from_arrays": lambda b: fst.from_arrays(PLAIN.start(), *PLAIN.arrays(), budget=b),
    "fst.epsnormalize": lambda b: fst.epsnormalize(CROSS, budget=b),
    "fst.equivalent": lambda b: fst.equivalent(fst.determinize(PLAIN), fst.determinize(PLAIN), budget=b),
    "fst.from_bytes": lambda b: fst.from_bytes(CROSS.write_to_string(), budget=b),
    "fst.intersect": lambda b: fst.intersect(PLAIN, PLAIN, budget=b),
    "fst.isomorphic": lambda b: fst.isomorphic(CROSS, CROSS, budget=b),
    "fst.optimize": lambda b: fst.optimize(ACCEPTOR, budget=b),
    "fst.prune": lambda b: fst.prune(PLAIN, weight=1, budget=b),
    "fst.push": lambda b: fst.push(CROSS.copy().invert(), push_labels=True, budget=b),
    "fst.randequivalent": lambda b: fst.randequivalent(PLAIN, PLAIN, budget=b),
    "fst.randgen": lambda b: fst.randgen(PLAIN, npath=5, budget=b),
    "fst.read": lambda b: fst.read("x.fst", budget=b),
    "fst.replace": lambda b: fst.replace([(1, CROSS), (ord("x"), PLAIN)], budget=b),
    "fst.reverse": lambda b: fst.reverse(PLAIN, budget=b),
    "fst.shortestdistance": lambda b: fst.shortestdistance(PLAIN, budget=b),
    "fst.shortestpath": lambda b: fst.shortestpath(PLAIN, nshortest=3, budget=b),
    "fst.statemap": lambda b: fst.statemap(PLAIN, "arc_sum", budget=b),
    "fst.string_map": lambda b: fst.string_map(["abc", "abd"], budget=b),
    "fst.synchronize": lambda b: fst.synchronize(CROSS, budget=b),
    "fst.with_byte_labels": lambda b: fst.with_byte_labels(PLAIN, budget=b),
    "machine.arcsort": lambda b: PLAIN.copy().arcsort(budget=b),
    "machine.closure": lambda b: PLAIN.copy().closure(budget=b),
    "machine.concat": lambda b: PLAIN.copy().concat(PLAIN, budget=b),
    "machine.connect": lambda b: PLAIN.copy().connect(budget=b),
    "machine.decode": lambda b: ENCODED.copy().decode(MAPPER, budget=b),
    "machine.encode": lambda b: PLAIN.copy().encode(MAPPER, budget=b),
    "machine.invert": lambda b: CROSS.copy().invert(budget=b),
    "machine.minimize": lambda b: fst.determinize(PLAIN).minimize(budget=b),
    "machine.project": lambda b: CROSS.copy().project("input", budget=b),
    "machine.prune": lambda b: PLAIN.copy().prune(weight=1, budget=b),
    "machine.push": lambda b: PLAIN.copy().push(budget=b),
    "machine.relabel_pairs": lambda b: PLAIN.copy().relabel_pairs([(ord("a"), 7)], budget=b),
    "machine.relabel_tables": lambda b: PLAIN.copy().relabel_tables(OLD, TABLE, budget=b),
    "machine.reweight": lambda b: PLAIN.copy().reweight([0.0] * PLAIN.num_states(), budget=b),
    "machine.rmepsilon": lambda b: ACCEPTOR.copy().rmepsilon(budget=b),
    "machine.topsort": lambda b: PLAIN.copy().topsort(budget=b),
    "machine.union": lambda b: PLAIN.copy().union(PLAIN, budget=b),
    "fst.VectorFst.read": lambda b: fst.VectorFst.read("x.fst", budget=b),
    "fst.lazy.arcmap": lambda b: fst.lazy.arcmap(PLAIN, budget=b).expand(),
    "fst.lazy.closure": lambda b: fst.lazy.closure(PLAIN, budget=b).expand(),
    "fst.lazy.compose": lambda b: fst.lazy.compose(CROSS, fst.cross("xyz", "1"), budget=b).expand(),
    "fst.lazy.concat": lambda b: fst.lazy.concat(PLAIN, PLAIN, budget=b).expand(),
    "fst.lazy.determinize": lambda b: fst.lazy.determinize(PLAIN, budget=b).expand(),
    "fst.lazy.difference": lambda b: fst.lazy.difference(PLAIN, fst.accep("ac"), budget=b).expand(),
    "fst.lazy.intersect": lambda b: fst.lazy.intersect(PLAIN, PLAIN, budget=b).expand(),
    "fst.lazy.replace": lambda b: fst.lazy.replace([(1, CROSS)], budget=b).expand(),
    "fst.lazy.rmepsilon": lambda b: fst.lazy.rmepsilon(ACCEPTOR, budget=b).expand(),
    "fst.lazy.union": lambda b: fst.lazy.union(PLAIN, PLAIN, budget=b).expand(),
}


def test_every_operation_is_tried() -> None:
    shown = {call: function for page in PAGES.values() for call, function in page}
    assert CALLS.keys() == {call for call in shown if call.rsplit(".", 1)[1] not in NONE}
    for call in CALLS:
        assert "budget" in inspect.signature(shown[call]).parameters, call


@pytest.mark.parametrize("name", sorted(CALLS.keys() - IN_PLACE))
def test_an_operation_keeps_to_its_budget(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    CROSS.write("x.fst")
    CALLS[name](Budget())
    with pytest.raises(BudgetExceeded):
        CALLS[name](Budget(bytes=1))


@pytest.mark.parametrize("name", sorted(CALLS.keys() - IN_PLACE - NOT_MORE))
def test_states_are_counted(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    CROSS.write("x.fst")
    with pytest.raises(BudgetExceeded):
        CALLS[name](Budget(states=1))


def test_text_keeps_to_its_budget() -> None:
    for budget in (Budget(states=3), Budget(bytes=40)):
        compiler = fst.Compiler(keep_state_numbering=True)
        compiler.write("0 99999999 1 1\n")
        with pytest.raises(BudgetExceeded):
            compiler.compile(budget=budget)
