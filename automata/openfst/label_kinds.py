"""The meaning of an OpenFst machine's labels: bytes, characters, or symbols of a table.

A label is a number, and the machine alone does not define its meaning: pynini's strings have label b for byte b, or
with ``token_type="utf8"`` the code point; machines made here have b + 1 (convention 2); tokens have numbers too. With
the wrong interpretation a machine is another language, so nothing is guessed. The machine's symbol tables or the caller
must define the meaning; otherwise ``FstError`` is raised. Machines that are written here have tables
(``byte_symbols``).

The result is arcs in convention 2. A character beyond ASCII is several bytes, with an arc for each.

Cost: linear in the arcs; each distinct label is looked up once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tokenfst.automata.characters.utf8 import MAX_CODE_POINT
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.openfst.byte_automata import arcs_to_dfa, native_arcs_to_dfa
from tokenfst.automata.openfst.fst import Arcs, arc_name, is_native, require_pynini, to_arcs
from tokenfst.automata.openfst.labels import BYTE_ZERO_LABEL, EPSILON_LABEL, byte_label, symbol_bytes
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, FstError

if TYPE_CHECKING:
    import pynini
    from pywrapfst import SymbolTable

TokenType = Literal["byte", "utf8"]

_ARC_BYTES = 40
_Speller = Callable[[int], bytes]


@lru_cache(maxsize=2)
def byte_symbols(byte_zero: int = BYTE_ZERO_LABEL) -> Any:
    """The symbol table of machines over bytes: a printable ASCII character for itself, other bytes as ``0x0a``."""
    return filled_with_bytes(require_pynini().SymbolTable("bytes"), byte_zero)


def filled_with_bytes(table: Any, byte_zero: int) -> Any:
    """An empty table, filled with the symbols of ``byte_symbols``."""
    table.add_symbol("<eps>", EPSILON_LABEL)
    for byte in range(EPSILON_LABEL + 1 - byte_zero, 256):
        table.add_symbol(chr(byte) if 0x20 < byte < 0x7F else f"{byte:#04x}", byte + byte_zero)
    return table


def with_byte_symbols(fst: pynini.Fst, byte_zero: int = BYTE_ZERO_LABEL) -> pynini.Fst:
    """``fst`` itself, a machine over bytes, with symbol tables attached."""
    table = byte_symbols(byte_zero)
    fst.set_input_symbols(table).set_output_symbols(table)
    return fst


def fst_to_dfa(
    fst: pynini.Fst | Any,
    *,
    byte_zero: int | None = None,
    token_type: TokenType | SymbolTable | None = None,
    budget: Budget | None = None,
) -> Dfa:
    """The ``Dfa`` of any unweighted acceptor over bytes, by ``rmepsilon`` and ``determinize``.

    ``byte_zero``, ``token_type``: see ``byte_arcs``. Exponential in the number of states in the worst case. Raises
    ``FstError`` for a transducer (project it first), the errors of ``byte_arcs``, and ``BudgetExceeded``.
    """
    limits = budget or Budget()
    deadline = Deadline(limits, "the determinization of an OpenFst machine")
    arcs = byte_arcs(fst, byte_zero=byte_zero, token_type=token_type, budget=limits, acceptor=True)
    return native_arcs_to_dfa(arcs, deadline) if is_native(fst) else arcs_to_dfa(arcs, deadline)


def byte_arcs(
    fst: pynini.Fst,
    *,
    byte_zero: int | None,
    token_type: TokenType | SymbolTable | None,
    budget: Budget,
    acceptor: bool = False,
) -> Arcs:
    """The arcs of an unweighted machine over bytes, in convention 2.

    ``byte_zero``: the label of byte 0, 1 or 0; with 0, label 0 stays ε and byte 0 cannot occur. ``token_type``: as in
    pynini: "byte" is the same as ``byte_zero=0``; "utf8": labels are code points; a symbol table: its symbols, each a
    single character or a byte such as ``0x0a``. If neither is given, the machine's own tables are used. ``acceptor``:
    both sides must be the same.

    Raises ``FstError`` if the meaning of labels is not defined, for labels that are not bytes or characters (including
    pynini's generated symbols), weights, and a transducer where an acceptor is required; ``BudgetExceeded("bytes")``.
    """
    arcs = to_arcs(fst)
    sides = _spellers(fst, arcs, byte_zero, token_type)
    words = [
        _words(labels, arcs.source, speller, side)
        for labels, speller, side in zip((arcs.ilabel, arcs.olabel), sides, ("input", "output"), strict=True)
    ]
    if acceptor:
        _require_acceptor(arcs, words)
    return _spelled(arcs, words, budget)


def _spellers(
    fst: pynini.Fst, arcs: Arcs, byte_zero: int | None, token_type: object
) -> tuple[_Speller, _Speller]:
    """For each side, what gives the bytes of a label other than ε."""
    if byte_zero is not None and token_type is not None:
        raise FstError(
            f"byte_zero={byte_zero!r} and token_type={token_type!r} both say what labels mean: give one"
        )
    if byte_zero is not None:
        if not isinstance(byte_zero, int) or byte_zero not in (0, 1):
            raise FstError(
                f"byte_zero is the label of byte 0: 1, or 0 as in what pynini makes of strings; not {byte_zero!r}"
            )
        return (_byte_speller(byte_zero),) * 2
    if isinstance(token_type, str):
        spellers = {"byte": _byte_speller(0), "utf8": _character}
        if token_type not in spellers:
            raise FstError(f'token_type is "byte", "utf8" or a symbol table, not {token_type!r}')
        return (spellers[token_type],) * 2
    if token_type is not None:
        if not callable(getattr(token_type, "member", None)):
            raise FstError(
                f'token_type is "byte", "utf8" or a symbol table, not a {type(token_type).__name__}'
            )
        return (_symbol_speller(token_type),) * 2
    tables = fst.input_symbols(), fst.output_symbols()
    if tables[0] is None and tables[1] is None and not (arcs.ilabel.any() or arcs.olabel.any()):
        return (_byte_speller(BYTE_ZERO_LABEL),) * 2  # ε alone needs no reading
    if tables[0] is None or tables[1] is None:
        which = "machine has no symbol table" if tables[0] is tables[1] else "machine has one symbol table"
        raise FstError(
            f"the {which}, so its labels may be bytes, characters or tokens: say which. pynini's strings are "
            'token_type="byte", or "utf8" where they were made so; byte_zero=1 is for label b + 1 for byte b; '
            "or set input and output symbols"
        )
    return _symbol_speller(tables[0]), _symbol_speller(tables[1])


def _byte_speller(byte_zero: int) -> _Speller:
    def spell(label: int) -> bytes:
        if not byte_zero <= label <= byte_zero + 255:
            raise ValueError(
                f"is not a byte: byte b has label b + {byte_zero}, so labels are {max(byte_zero, 1)}.."
                f"{byte_zero + 255}, and 0 for ε"
            )
        return bytes([label - byte_zero])

    return spell


def _character(label: int) -> bytes:
    if label > MAX_CODE_POINT or 0xD800 <= label <= 0xDFFF:
        raise ValueError("is no character: with token_type='utf8' labels are code points")
    if require_pynini().generated_symbols().member(label):
        name = require_pynini().generated_symbols().find(label)
        raise ValueError(f"is the symbol [{name}] that pynini made, and no character")
    return chr(label).encode()


def _symbol_speller(table: Any) -> _Speller:
    def spell(label: int) -> bytes:
        if not table.member(label):
            raise ValueError(f"is not in the symbol table {table.name()!r}")
        symbol: str = table.find(label)
        data = symbol_bytes(symbol)
        if data is not None:
            return data
        raise ValueError(
            f"is the symbol {symbol!r}; a symbol is one character, or a byte such as 0x0a. Of others, compose the "
            "machine with a transducer that spells them"
        )

    return spell


_Words = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""For each arc: the labels of its bytes, padded with ε, (arcs, 4); and their number."""


def _words(
    labels: npt.NDArray[np.int32], source: npt.NDArray[np.int32], spell: _Speller, side: str
) -> _Words:
    distinct, first, which = np.unique(labels, return_index=True, return_inverse=True)
    table = np.full((len(distinct), 4), EPSILON_LABEL, np.int64)
    lengths = np.zeros(len(distinct), np.int64)
    for number, label in enumerate(distinct.tolist()):
        if label == EPSILON_LABEL:
            continue
        try:
            word = spell(label)
        except ValueError as error:
            arc = arc_name(source, first[number])
            raise FstError(f"{side} label {label} on arc {arc} {error}") from None
        table[number, : len(word)] = [byte_label(byte) for byte in word]
        lengths[number] = len(word)
    which = which.ravel()
    return table[which], lengths[which]


def _require_acceptor(arcs: Arcs, words: list[_Words]) -> None:
    differ = np.flatnonzero((words[0][0] != words[1][0]).any(axis=1))
    if len(differ):
        at = differ[0]
        raise FstError(
            f"a language needs an acceptor, but arc {arc_name(arcs.source, at)} maps label {arcs.ilabel[at]} to "
            f'{arcs.olabel[at]}; take one side of it with fst.copy().project("input") or ("output")'
        )


def _spelled(arcs: Arcs, words: list[_Words], budget: Budget) -> Arcs:
    """With an arc for each byte."""
    (reads, read), (writes, written) = words
    length = np.maximum(np.maximum(read, written), 1)
    total = int(length.sum())
    if total * _ARC_BYTES > budget.bytes:
        raise BudgetExceeded("bytes", budget.bytes, "the bytes of an OpenFst machine's labels")
    if total == len(length):
        ilabel, olabel = reads[:, 0].astype(np.int32), writes[:, 0].astype(np.int32)
        return Arcs(
            arcs.num_states, arcs.start, arcs.final_states, arcs.source, ilabel, olabel, arcs.nextstate
        )
    arc = np.repeat(np.arange(len(length)), length)
    before = np.cumsum(length) - length
    nth = np.arange(total) - before[arc]
    inner = arcs.num_states + before[arc] - arc + nth  # the state after this byte, if another one follows
    source = np.where(nth == 0, arcs.source[arc], inner - 1)
    target = np.where(nth + 1 == length[arc], arcs.nextstate[arc], inner)
    order = np.argsort(source, kind="stable")
    return Arcs(
        arcs.num_states + total - len(length),
        arcs.start,
        arcs.final_states,
        *(each[order].astype(np.int32) for each in (source, reads[arc, nth], writes[arc, nth], target)),
    )
