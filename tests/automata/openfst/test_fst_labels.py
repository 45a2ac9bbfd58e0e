"""What labels stand for: a machine of pynini comes in as the language that pynini says it is, or with an error."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pynini
import pytest

from tests.support.programs.command_line import tokenfst
from tokenfst import Language, Vocabulary, regex, rewrite
from tokenfst.automata.openfst import fst
from tokenfst.automata.openfst.label_kinds import byte_symbols, fst_to_dfa
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, FstError

LETTERS = "ab\x7fé߿ࠀ€￿𐀀\U0010ffff"


def symbols(*names: str) -> pynini.SymbolTable:
    table = pynini.SymbolTable("names")
    for name in ("<eps>", *names):
        table.add_symbol(name)
    return table


def words_of(seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(LETTERS, k=rng.randrange(4))) for _ in range(rng.randrange(1, 5))]


def same(found: Language, words: list[str]) -> bool:
    return bool(found.equivalent(Language.union_of(map(Language.literal, words))))


@pytest.mark.parametrize("seed", range(12))
def test_strings_of_pynini_of_each_kind(seed: int) -> None:
    words = words_of(seed)
    for kind in ("byte", "utf8"):
        machine = pynini.union(*(pynini.accep(pynini.escape(word), token_type=kind) for word in words))
        assert same(Language.from_fst(machine, token_type=kind), words)  # type: ignore[arg-type]
        if any(words):
            with pytest.raises(FstError, match="token_type"):
                Language.from_fst(machine)
    table = symbols(*LETTERS)
    spelled = [pynini.accep(" ".join(word), token_type=table) for word in words]
    machine = pynini.union(*spelled)
    assert same(Language.from_fst(machine, token_type=table), words)
    machine.set_input_symbols(table).set_output_symbols(table)
    assert same(Language.from_fst(machine), words)


@pytest.mark.parametrize("seed", range(12))
def test_transducers_of_characters(seed: int) -> None:
    reads, writes = words_of(seed), words_of(seed + 100)
    for kind in ("byte", "utf8"):
        pairs = [
            pynini.cross(*(pynini.accep(pynini.escape(each), token_type=kind) for each in pair))
            for pair in zip(reads, writes, strict=False)
        ]
        made = rewrite(Language.any_text(), pynini.union(*pairs), token_type=kind)  # type: ignore[arg-type]
        assert same(made, writes[: len(pairs)])
        for number, pair in enumerate(pairs):
            each = rewrite(Language.literal(reads[number]), pair, token_type=kind)  # type: ignore[arg-type]
            assert same(each, [writes[number]])


def test_rewriting_is_never_silently_empty() -> None:
    with pytest.raises(FstError, match="no symbol table"):
        rewrite(regex("abc"), pynini.cross("abc", "xyz"))
    assert rewrite(regex("abc"), pynini.cross("abc", "xyz"), token_type="byte").witness() == b"xyz"
    one_side = pynini.cross("abc", "xyz").set_input_symbols(byte_symbols(0))
    with pytest.raises(FstError, match="one symbol table"):
        rewrite(regex("abc"), one_side)
    one_side.set_output_symbols(byte_symbols(0))
    assert rewrite(regex("abc"), one_side).witness() == b"xyz"


def test_what_is_written_here_says_what_its_labels_are() -> None:
    language = regex("a[^b]é|\x00{2}")
    assert Language.from_fst(language.to_fst()).equivalent(language)
    plain = regex("a[^b\x00]é")
    assert Language.from_fst(plain.to_fst(byte_zero=0)).equivalent(plain)
    assert byte_symbols().find(1) == "0x00" and byte_symbols().find(98) == "a"
    vocabulary = Vocabulary([b"a", b"bc", b""], eos_token_id=2)
    spelled = pynini.compose(vocabulary.detokenizer(), regex("(abc)+").to_fst())
    assert Language.from_fst(spelled.copy().project("output")).equivalent(regex("(abc)+"))
    with pytest.raises(FstError, match="tokens"):
        Language.from_fst(spelled.copy().project("input"))


def test_without_labels_there_is_nothing_to_say() -> None:
    assert Language.from_fst(pynini.Fst()).is_empty()
    assert Language.from_fst(pynini.accep("")).witness() == b""


def test_sides_with_different_tables_are_a_transducer() -> None:
    machine = pynini.accep("a").set_input_symbols(byte_symbols(0)).set_output_symbols(byte_symbols(1))
    with pytest.raises(FstError, match="needs an acceptor"):
        Language.from_fst(machine)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Language.from_fst(pynini.accep("a"), byte_zero=7),
            "byte_zero is the label of byte 0.*not 7",
        ),
        (lambda: Language.from_fst(pynini.accep("a"), byte_zero=-1), "byte_zero"),
        (lambda: Language.from_fst(pynini.accep("a"), byte_zero=1.5), "byte_zero"),
        (lambda: Language.from_fst(pynini.accep("a"), byte_zero=float("nan")), "byte_zero"),
        (lambda: Language.from_fst(pynini.accep("a"), byte_zero=0, token_type="byte"), "give one"),
        (lambda: Language.from_fst(pynini.accep("a"), token_type="bytes"), "token_type is"),
        (lambda: Language.from_fst(pynini.accep("a"), token_type=7), "token_type is .* not a int"),
        (
            lambda: Language.from_fst(pynini.accep("[name]"), token_type="byte"),
            "label 983040.* is not a byte",
        ),
        (lambda: Language.from_fst(pynini.accep("[name]"), token_type="utf8"), r"the symbol \[name\]"),
        (
            lambda: Language.from_fst(pynini.accep("é", token_type="utf8"), token_type=symbols("a")),
            "is not in the symbol table",
        ),
        (
            lambda: Language.from_fst(
                pynini.accep("dog", token_type=symbols("dog")), token_type=symbols("dog")
            ),
            "'dog'",
        ),
        (
            lambda: Language.from_fst(
                fst.from_arcs(2, 0, [1], [0], [0xD800], [0xD800], [1]), token_type="utf8"
            ),
            "no character",
        ),
        (
            lambda: Language.from_fst(
                fst.from_arcs(2, 0, [1], [0], [0x110000], [0x110000], [1]), token_type="utf8"
            ),
            "no character",
        ),
        (lambda: rewrite(regex("a"), pynini.accep("a"), byte_zero=2), "byte_zero"),
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(FstError, match=message):
        call()


def test_budgets_of_labels_and_determinization() -> None:
    wide = pynini.accep("€" * 1000, token_type="utf8")
    with pytest.raises(BudgetExceeded, match="bytes"):
        fst_to_dfa(wide, token_type="utf8", budget=Budget(bytes=50_000))
    late = pynini.accep("a") + pynini.union("a", "b").closure(24, 24)
    late = (pynini.union("a", "b").closure() + late).rmepsilon()  # optimize() would determinize it
    with pytest.raises(BudgetExceeded, match="seconds"):
        fst_to_dfa(late, byte_zero=0, budget=Budget(seconds=0.01, states=1 << 24))


def test_the_command_line_asks(tmp_path: Path) -> None:
    pynini.cross("abc", "xyz").write(str(tmp_path / "plain.fst"))
    assert "--byte-zero" in tokenfst("check", "abc", "--rewrite", str(tmp_path / "plain.fst"), "xyz").err
    assert (
        tokenfst("check", "abc", "--rewrite", str(tmp_path / "plain.fst"), "--byte-zero", "0", "xyz").code
        == 0
    )
    named = pynini.cross("abc", "xyz").set_input_symbols(byte_symbols(0)).set_output_symbols(byte_symbols(0))
    named.write(str(tmp_path / "named.fst"))
    assert tokenfst("check", "abc", "--rewrite", str(tmp_path / "named.fst"), "xyz").code == 0
