"""Languages as machines of ``tokenfst.fst`` and back, against OpenFst's."""

from __future__ import annotations

import pynini
import pytest

import tokenfst.fst as fst
from tokenfst import Language, regex
from tokenfst.errors import FstError


@pytest.mark.parametrize("pattern", ["a", "", "(ab|c)*", "[é-ü]+x?", r"\x00|\xff", "(a|b)*a(a|b){3}"])
@pytest.mark.parametrize("byte_zero", [0, 1])
def test_languages_both_ways(pattern: str, byte_zero: int) -> None:
    language = regex(pattern)
    if byte_zero == 0 and "x00" in pattern:
        with pytest.raises(FstError, match="byte 0"):
            language.to_native_fst(byte_zero=0)
        return
    machine = language.to_native_fst(byte_zero=byte_zero)
    assert pynini.equal(fst.to_pynini(machine), language.to_fst(byte_zero=byte_zero))
    assert Language.from_fst(machine).equivalent(language)
    assert Language.from_fst(
        machine.set_input_symbols(None).set_output_symbols(None), byte_zero=byte_zero
    ).equivalent(language)


def test_the_empty_language() -> None:
    empty = regex("a") & regex("b")
    assert empty.to_native_fst().num_states() == 0
    assert Language.from_fst(empty.to_native_fst()).is_empty()


def test_labels_that_no_machine_has() -> None:
    for byte_zero in (-98, 2**31, 2**32 + 1):
        for make in (regex("a").to_fst, regex("a").to_native_fst):
            with pytest.raises(FstError, match="outside 0"):
                make(byte_zero=byte_zero)


def test_machines_that_are_no_languages() -> None:
    machine = regex("ab").to_native_fst()
    with pytest.raises(FstError, match="weight 2"):
        Language.from_fst(machine.copy().set_final(2, 2.0))
    with pytest.raises(FstError, match="'log'"):
        Language.from_fst(fst.convert(machine, "log"))
    with pytest.raises(FstError, match="acceptor"):
        Language.from_fst(machine.copy().relabel_pairs(opairs=[(ord("a") + 1, ord("c") + 1)]))
    weighted = fst.convert(machine.copy().set_final(2, 2.0), "boolean")
    assert Language.from_fst(weighted).equivalent(regex("ab"))
    nondeterministic = machine.union(regex("a.").to_native_fst()).concat(regex("c*").to_native_fst())
    assert Language.from_fst(nondeterministic).equivalent(regex("(ab|a.)c*"))
