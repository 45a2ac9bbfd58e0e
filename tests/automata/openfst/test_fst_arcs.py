"""Machines cross into OpenFst and back without loss, and what cannot cross is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pynini
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenfst.automata.openfst import labels
from tokenfst.automata.openfst.fst import from_arcs, to_arcs
from tokenfst.errors import FstError, MissingDependencyError, TokenfstError

MachineData = tuple[int, int, list[int], list[tuple[int, int, int, int]]]


@st.composite
def machines(draw: st.DrawFn) -> MachineData:
    num_states = draw(st.integers(1, 6))
    state = st.integers(0, num_states - 1)
    label = st.sampled_from([0, 1, 2, 256, 257, 131_072, 2**31 - 1])
    arcs = draw(st.lists(st.tuples(state, label, label, state), max_size=12))
    return num_states, draw(state), draw(st.lists(state, unique=True)), arcs


def arc_by_arc(num_states: int, start: int, finals: list[int], arcs: Any) -> pynini.Fst:
    """The obviously right construction."""
    fst = pynini.Fst()
    fst.add_states(num_states)
    fst.set_start(start)
    for state in finals:
        fst.set_final(state)
    for source, ilabel, olabel, nextstate in arcs:
        fst.add_arc(source, pynini.Arc(ilabel, olabel, 0, nextstate))
    return fst


@settings(max_examples=150, deadline=None)
@given(machines())
def test_from_arcs_equals_arc_by_arc(machine: MachineData) -> None:
    num_states, start, finals, arcs = machine
    columns = np.array(arcs, np.int64).reshape(-1, 4).T
    made = from_arcs(num_states, start, finals, *columns)
    assert pynini.equal(made, arc_by_arc(*machine))
    assert made.verify()


@settings(max_examples=150, deadline=None)
@given(machines(), st.booleans())
def test_round_trip(machine: MachineData, symbols: bool) -> None:
    num_states, start, finals, arcs = machine
    fst = arc_by_arc(*machine)
    if symbols:
        table = pynini.SymbolTable("names")
        table.add_symbol("<ε>", 0)
        table.add_symbol("é", 2)
        fst.set_input_symbols(table).set_output_symbols(table)
    back = to_arcs(fst)
    assert (back.num_states, back.start, back.final_states.tolist()) == (num_states, start, sorted(finals))
    expected = sorted(arcs, key=lambda arc: arc[0])  # stable: arcs of one state keep their order
    assert list(zip(back.source, back.ilabel, back.olabel, back.nextstate, strict=True)) == expected
    assert (fst.input_symbols() is not None) == symbols  # the argument is left alone


def test_no_property_is_claimed_that_may_be_false() -> None:
    """Unsorted arcs compose correctly: a false ILABEL_SORTED would make the result empty."""
    acceptor = from_arcs(2, 0, [1], [0, 0, 0], [5, 3, 4], [5, 3, 4], [1, 1, 1])
    unknown = pynini.ACCEPTOR | pynini.I_LABEL_SORTED | pynini.NO_EPSILONS
    assert acceptor.properties(unknown, False).value == 0
    word = from_arcs(2, 0, [1], [0], [3], [3], [1])
    assert pynini.compose(word, acceptor.arcsort("ilabel")).num_states() == 2


def test_empty_machine() -> None:
    empty = from_arcs(0, -1, [], [], [], [], [])
    assert empty.num_states() == 0
    back = to_arcs(empty)
    assert (back.num_states, back.start, len(back.final_states), len(back.source)) == (0, -1, 0, 0)
    assert to_arcs(pynini.Fst()).num_states == 0


def test_large_machine() -> None:
    """The size of a real vocabulary's detokenizer: arrays go through whole."""
    rng = np.random.default_rng(7)
    states, arcs = 180_000, 310_000
    source, nextstate = rng.integers(0, states, arcs), rng.integers(0, states, arcs)
    ilabel, olabel = rng.integers(0, 131_073, arcs), rng.integers(0, 257, arcs)
    fst = from_arcs(states, 3, [0, states - 1], source, ilabel, olabel, nextstate)
    assert (fst.num_states(), fst.start()) == (states, 3)
    back = to_arcs(fst)
    order = np.argsort(source, kind="stable")
    for column, expected in (
        (back.source, source),
        (back.ilabel, ilabel),
        (back.olabel, olabel),
        (back.nextstate, nextstate),
    ):
        assert np.array_equal(column, expected[order])


GOOD: dict[str, Any] = {
    "num_states": 3, "start": 0, "final_states": [2],
    "source": [0, 1], "ilabel": [1, 2], "olabel": [1, 2], "nextstate": [1, 2],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ilabel": [1]}, "'ilabel': 1"),
        ({"start": 3}, "start 3 is not one of the 3 states"),
        ({"start": -1}, "start -1"),
        ({"num_states": -1}, "num_states"),
        ({"num_states": 2**31}, "num_states"),
        ({"source": [0, 3]}, r"source\[1\] is 3"),
        ({"source": [-1, 0]}, r"source\[0\] is -1"),
        ({"nextstate": [1, 3]}, r"nextstate\[1\] is 3"),
        ({"final_states": [0, 7]}, r"final_states\[1\] is 7"),
        ({"ilabel": [1, -2]}, r"ilabel\[1\] is -2"),
        ({"olabel": [2**31, 1]}, r"olabel\[0\] is 2147483648"),
        ({"ilabel": [0.5, 1.0]}, "ilabel must be a one-dimensional array of integers"),
        ({"final_states": [[1, 2]]}, "final_states must be a one-dimensional array"),
        ({"source": [1, 0], "sorted_by_source": True}, "do not ascend"),
        ({"source": np.array([1, 0], np.uint32), "sorted_by_source": True}, "do not ascend"),
    ],
)
def test_malformed_arcs(change: dict[str, Any], message: str) -> None:
    from_arcs(**GOOD)
    with pytest.raises(FstError, match=message):
        from_arcs(**(GOOD | change))


def test_weights_and_semirings_are_refused() -> None:
    with pytest.raises(FstError, match=r"arc 1 of state 0 has weight 2\.5"):
        to_arcs(arc_by_arc(2, 0, [1], [(0, 1, 1, 1)]).add_arc(0, pynini.Arc(2, 2, 2.5, 1)))
    with pytest.raises(FstError, match="state 1 has final weight 3"):
        to_arcs(pynini.accep("a", weight=3))
    log = pynini.arcmap(pynini.accep("a"), map_type="to_log")
    with pytest.raises(FstError, match="'log'"):
        to_arcs(log)
    # What the messages advise works.
    assert to_arcs(pynini.arcmap(log, map_type="to_std")).num_states == 2
    assert to_arcs(pynini.arcmap(pynini.accep("a", weight=3), map_type="rmweight")).num_states == 2


def test_without_pynini(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynini", None)
    with pytest.raises(MissingDependencyError, match=r"tokenfst\[fst\]") as caught:
        from_arcs(**GOOD)
    assert isinstance(caught.value, TokenfstError)
    assert isinstance(caught.value, ImportError)


def test_labels() -> None:
    assert (labels.EPSILON_LABEL, labels.byte_label(0), labels.byte_label(255)) == (
        0,
        1,
        labels.LAST_BYTE_LABEL,
    )
    array = np.arange(5)
    assert np.array_equal(labels.label_byte(labels.byte_label(array)), array)
    assert np.array_equal(labels.label_token(labels.token_label(array)), array)
    assert labels.byte_label(0) == labels.BYTE_ZERO_LABEL
