"""``tokenfst.tables``: every name is there without pynini, and the tables are those of the constraint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tokenfst
from tokenfst import tables


def test_every_name_is_there_and_none_needs_pynini() -> None:
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from tokenfst.tables import *; import tokenfst.tables as t\n"
            "print(all(name in globals() for name in t.__all__), 'pynini' in sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["True", "False"]


def test_a_program_is_that_of_the_constraint() -> None:
    language = tokenfst.regex("ab*|c")
    program = language.program()
    assert isinstance(program, tables.Program) and program.code.dtype == np.int32
    automaton = tokenfst.compile(language, tokenfst.Vocabulary([b"a", b"b", b"c", b""], 3))
    assert isinstance(automaton.program, tables.Program)
    assert automaton.program.code.tobytes() == program.code.tobytes()


def test_arcs_there_and_back(tmp_path: Path) -> None:
    pytest.importorskip("pynini")
    language = tokenfst.regex("ab*|c")
    arcs = tables.dfa_to_arcs(language.determinize())
    columns = arcs.source, arcs.ilabel, arcs.olabel, arcs.nextstate
    machine = tables.from_arcs(arcs.num_states, arcs.start, arcs.final_states, *columns)
    again = tables.to_arcs(machine)
    for name in ("final_states", "source", "ilabel", "olabel", "nextstate"):
        assert np.array_equal(getattr(again, name), getattr(arcs, name))
    file = tmp_path / "machine.fst"
    machine.write(str(file))
    for place in (file, str(file)):
        assert tokenfst.Language.from_fst(
            tables.read_fst(place), byte_zero=tables.BYTE_ZERO_LABEL
        ).equivalent(language)
    assert tables.label_byte(tables.byte_label(97)) == 97
    assert tables.label_token(tables.token_label(5)) == 5
