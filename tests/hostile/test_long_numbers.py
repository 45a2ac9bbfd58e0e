"""Numbers of more digits than Python reads, or with zeros before them, and ranges in the wrong order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tokenfst
from tokenfst import Vocabulary, compile, ebnf, gbnf, json_schema, lark_grammar
from tokenfst.automata.weights.arpa import read_arpa
from tokenfst.common.digits import natural
from tokenfst.errors import ConstraintError, TokenfstError
from tokenfst.fst import Compiler, SymbolTable

LONG, ZEROS = "7" * 5_000, "0" * 5_000
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], 256)
RULE = 'a::_ : "x" b::set_bit(1) | "y"\nb::_ : "z"'
FORMS: dict[str, Callable[[str], object]] = {
    "gbnf, token": lambda number: gbnf(f"root ::= <[{number}]>"),
    "gbnf, count": lambda number: gbnf(f'root ::= "a"{{{number}}}'),
    "gbnf, greatest count": lambda number: gbnf(f'root ::= "a"{{0,{number}}}'),
    "ebnf, token": lambda number: ebnf(f"root ::= Token({number})"),
    "ebnf, excluded token": lambda number: ebnf(f"root ::= ExcludeToken({number})"),
    "ebnf, trigger": lambda number: ebnf(f'root ::= TokenTagDispatch(({number}, a))\na ::= "b"'),
    "lark, token": lambda number: compile(lark_grammar(f"start: <[{number}]>"), VOCABULARY),
    "lark, range of tokens": lambda number: compile(lark_grammar(f"start: <[^0-{number}]>"), VOCABULARY),
    "lark, parameter": lambda number: lark_grammar(f"start: a::{number}\n{RULE}"),
    "lark, hexadecimal parameter": lambda number: lark_grammar(f"start: a::0x{number}\n{RULE}"),
    "lark, bit": lambda number: lark_grammar(f"start: a::0\n{RULE.replace('1', number)}"),
    "lark, range of bits": lambda number: lark_grammar(
        f'start: a::0\na::_ : "x" %if eq([0:{number}], 0) | "y"'
    ),
    "pattern of a schema": lambda number: json_schema({"pattern": rf"(a)\{number}"}),
    "reference of a schema": lambda number: json_schema({"$ref": f"#/allOf/{number}", "allOf": [True] * 4}),
    "arcs of a machine": lambda number: compiled(f"0 1 {number} 1\n1\n"),
    "states of a machine": lambda number: compiled(f"0 {number} 1 1\n{number}\n"),
    "counts of n-grams": lambda number: read_arpa(f"\\data\\\nngram 1={number}\n\\1-grams:\n\\end\\\n"),
    "orders of n-grams": lambda number: read_arpa(f"\\data\\\nngram {number}=0\n\\end\\\n"),
}
ALSO_WITH_ZEROS = FORMS.keys() - {
    "pattern of a schema",
    "reference of a schema",
    "counts of n-grams",
    "orders of n-grams",
}


def compiled(text: str) -> object:
    compiler = Compiler()
    compiler.write(text)
    return compiler.compile()


@pytest.mark.parametrize("form", FORMS)
def test_long_numbers_are_refused(form: str) -> None:
    with pytest.raises(TokenfstError) as caught:
        FORMS[form](LONG)
    assert "integer string conversion" not in str(caught.value)


@pytest.mark.parametrize("form", sorted(ALSO_WITH_ZEROS))
def test_zeros_before_a_number_mean_nothing(form: str) -> None:
    FORMS[form](f"{ZEROS}3")
    FORMS[form]("03")


def test_pointers_have_no_zeros_before_a_place() -> None:
    """RFC 6901, section 4."""
    for place in ("01", "٣", ZEROS):
        with pytest.raises(tokenfst.SchemaError, match="leads nowhere"):
            FORMS["reference of a schema"](place)


def test_symbol_tables(tmp_path: Path) -> None:
    path = tmp_path / "symbols.txt"
    for label in (LONG, str(2**63 - 1)):
        path.write_text(f"a {label}\n")
        with pytest.raises(TokenfstError, match="line 1"):
            SymbolTable.read_text(str(path))
    with pytest.raises(TokenfstError):
        SymbolTable().add_symbol("a", 2**63 - 1)
    path.write_text(f"a {2**63 - 2}\n")
    table = SymbolTable.read_text(str(path))
    assert SymbolTable.read(str(written(table, tmp_path))) == table


def written(table: SymbolTable, folder: Path) -> Path:
    table.write(str(folder / "symbols"))
    return folder / "symbols"


@pytest.mark.parametrize("listed", ["9-7", "^9-7", "65,9-7"])
def test_ranges_of_tokens_in_the_wrong_order(listed: str) -> None:
    with pytest.raises(ConstraintError, match="wrong order"):
        compile(lark_grammar(f'start: "a" <[{listed}]>'), VOCABULARY)


def test_natural_numbers() -> None:
    for number in range(300):
        for most in (0, 9, 10, 99, 254, 255):
            assert natural(str(number), most) == min(number, most + 1)
            assert natural(f"00{number}", most) == min(number, most + 1)
