"""The two labels of a byte: machines that have different ones never meet, and the converted machine is the right one.

The twin composes by enumeration: all pairs of short words, joined in the middle.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import tokenfst.fst as fst
from tokenfst import Language, Vocabulary, grm, regex
from tokenfst.automata.transducers.byte_labels import byte_table
from tokenfst.errors import FstArgError, FstOpError

VOCABULARY = Vocabulary([b"a", b"b", b"ab", b""], eos_token_id=3)
LONGEST = 3
Machine = fst.VectorFst


def star() -> Machine:
    return fst.string_map(["a", "b", "x"]).closure()


STRINGS: dict[str, Callable[[], Machine]] = {
    "accep": lambda: fst.accep("ab"),
    "cross": lambda: fst.cross("ab", "xa"),
    "cross of machines": lambda: fst.cross(fst.accep("a").union(fst.accep("ab")), fst.accep("b")),
    "string_map": lambda: fst.string_map([("a", "x"), ("b", "b"), ("ab", "")]).closure(),
    "cdrewrite": lambda: fst.cdrewrite(fst.cross("a", "x"), "", "b", star()),
    "grm": lambda: grm.cross("a", "x").star,
    "grm.cdrewrite": lambda: grm.cdrewrite(grm.cross("b", "x"), "a", "[EOS]", star()),
}


def pairs(machine: Any, reads: int, writes: int) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The pairs of label words of a machine up to some lengths, walked path by path."""
    found, seen = set(), set()
    waiting = [(machine.start(), (), ())] if machine.start() >= 0 else []
    while waiting:
        here = waiting.pop()
        state, read, written = here
        if here in seen or len(read) > reads or len(written) > writes:
            continue
        seen.add(here)
        if float(machine.final(state)) != float("inf"):
            found.add((read, written))
        for arc in machine.arcs(state):
            left = (*read, arc.ilabel) if arc.ilabel else read
            right = (*written, arc.olabel) if arc.olabel else written
            waiting.append((arc.nextstate, left, right))
    return found


def texts(machine: Machine, begin: int) -> set[tuple[bytes, bytes]]:
    """The pairs of texts of a machine in which byte b has label b + ``begin``."""
    spelled = pairs(machine, 2 * LONGEST, 2 * LONGEST)
    return {(bytes(x - begin for x in left), bytes(x - begin for x in right)) for left, right in spelled}


@pytest.mark.parametrize("name", STRINGS)
def test_a_detokenizer_meets_machines_of_strings_only_converted(name: str) -> None:
    detokenizer, given = VOCABULARY.native_detokenizer(), STRINGS[name]()
    for lazily in (fst.compose, fst.lazy.compose):
        with pytest.raises(
            FstOpError, match=r"label b \+ 1.*machine 2.*label b\..*fst\.with_byte_labels\(machine\)"
        ):
            lazily(detokenizer, given)
        with pytest.raises(FstOpError, match=r"machine 1 has no table.*with_byte_labels"):
            lazily(given, detokenizer.copy().invert())
    relation = texts(given, 0)
    wanted = set()
    for length in range(LONGEST + 1):
        for ids in itertools.product(range(3), repeat=length):
            text = VOCABULARY.decode(ids)
            wanted |= {(ids, after) for before, after in relation if before == text}
    converted = fst.with_byte_labels(given)
    assert texts(converted, 1) == relation
    found = pairs(fst.compose(detokenizer, converted), LONGEST, 2 * LONGEST)
    assert {(tuple(x - 1 for x in left), bytes(x - 1 for x in right)) for left, right in found} == wanted
    assert wanted


OTHERS: dict[str, Callable[[Machine, Machine], object]] = {
    "union": lambda one, other: one.copy().union(other),
    "concat": lambda one, other: one.copy().concat(other),
    "intersect": fst.intersect,
    "difference": fst.difference,
    "equivalent": fst.equivalent,
    "randequivalent": fst.randequivalent,
    "replace": lambda one, other: fst.replace([(300, one), (301, other)]),
    "lazy.union": fst.lazy.union,
    "lazy.concat": fst.lazy.concat,
    "lazy.intersect": fst.lazy.intersect,
    "lazy.difference": fst.lazy.difference,
    "lazy.replace": lambda one, other: fst.lazy.replace([(300, one), (301, other)]),
    "cdrewrite": lambda one, other: fst.cdrewrite(
        fst.cross(one, one), "", "", fst.optimize(other.copy().closure())
    ),
    "grm.union": grm.union,
    "grm.compose": grm.compose,
}


@pytest.mark.parametrize("name", OTHERS)
def test_machines_whose_bytes_have_different_labels_are_not_combined(name: str) -> None:
    ours, theirs = regex("ab").to_native_fst(), fst.accep("ab")
    for first, second in ((ours, theirs), (theirs, ours)):
        with pytest.raises(FstOpError, match=r"b \+ 1.*with_byte_labels"):
            OTHERS[name](first, second)
    with pytest.raises(FstOpError, match=r"b \+ 1 in one machine and label b in the other.*with_byte_labels"):
        OTHERS[name](ours, regex("ab").to_native_fst(byte_zero=0))
    OTHERS[name](ours, fst.with_byte_labels(theirs))
    OTHERS[name](regex("ab").to_native_fst(byte_zero=0), theirs)


def test_epsilon_needs_no_table_and_takes_that_of_bytes() -> None:
    language, nothing = regex("ab").to_native_fst(), fst.accep("")
    made = [
        nothing.copy().union(language),
        nothing.copy().concat(language),
        fst.lazy.union(nothing, language).expand(),
    ]
    assert [Language.from_fst(each).accepts(b"ab") for each in made] == [True] * 3
    assert [Language.from_fst(each).accepts(b"") for each in made] == [True, False, True]
    assert fst.compose(VOCABULARY.native_detokenizer(), nothing).num_states() == 1


def test_strings_are_read_by_the_labels_that_the_table_names() -> None:
    rewritten = fst.cdrewrite(
        fst.with_byte_labels(fst.cross("a", "x")), "b", "", fst.with_byte_labels(star())
    )
    shown = fst.with_byte_labels(fst.string_map(["b", ("a", "xy")]).closure())
    found = fst.compose(regex("baé?").to_native_fst(), shown)
    assert fst.string(found) == "bxy" and fst.string(found, side="input") == "ba"
    assert fst.string(fst.compose(fst.with_byte_labels(fst.accep("aba")), rewritten)) == "abx"
    assert grm.Fst.around(regex("[é]").to_native_fst()).string() == "é"
    assert list(grm.Fst.around(regex("é|b").to_native_fst()).paths().istrings()) == ["b", "é"]
    with pytest.raises(FstOpError, match=r"'utf8'.*bytes"):
        fst.string(found, "utf8")


def test_the_ends_of_bytes() -> None:
    every = fst.VectorFst()
    every.set_start(every.add_state()).set_final(every.add_state())
    for label in range(1, 256):
        every.add_arc(0, fst.Arc(label, label, 0, 1))
    assert Language.from_fst(fst.with_byte_labels(every)).equivalent(Language.byte_range(1, 255))
    every.add_arc(0, fst.Arc(256, 256, 0, 1))
    with pytest.raises(FstOpError, match=r"input label 256 is no byte.*last has label 255"):
        fst.with_byte_labels(every)
    assert Language.from_fst(fst.with_byte_labels(every, 1)).equivalent(Language.byte_range(0, 255))


def test_one_side_and_other_tables() -> None:
    tokens = fst.compose(fst.accep("a"), fst.with_byte_labels(fst.cross("a", "é"), side="output"))
    assert tokens.input_symbols() is None and tokens.output_symbols() == byte_table(1)
    assert fst.string(tokens) == "é"
    again = fst.with_byte_labels(tokens, side="output")
    assert fst.equal(again, tokens)
    pynini = regex("ab").to_native_fst(byte_zero=0)
    assert fst.equal(fst.with_byte_labels(pynini), regex("ab").to_native_fst())
    words = fst.SymbolTable("words")
    words.add_symbol("<eps>")
    words.add_symbol("yes")
    with pytest.raises(FstOpError, match=r"table 'words'.*spells"):
        fst.with_byte_labels(fst.accep("yes", token_type=words).set_input_symbols(words))
    with pytest.raises(FstArgError, match="byte_zero"):
        fst.with_byte_labels(pynini, 2)
    with pytest.raises(FstOpError, match=r"symbol table 'bytes'"):
        fst.with_byte_labels(pynini, 1)
