r"""Reading of transducers over bytes from files: OpenFst's binary files, and a readable text format.

The text format is OpenFst's: one arc on each line, ``source target input output``, and a line with one state for each
final state. States are named by numbers; the machine has only those that are named, in the order of their first
mention. The first is the start. Lines that begin with ``#`` are comments. Letters take the place of
labels: a printable ASCII character for itself; ``0x0a`` for any byte; ``<eps>`` for epsilon; ``<any>`` for each byte,
one arc each; ``<other>`` for each byte that no other line of the source state names. If ``<any>`` or ``<other>`` stands
on both sides, the byte is copied.

So a transducer that changes little can copy the rest: ``0 0 <other> <other>`` is 255 arcs in one line.

Binary files are decoded here, and every size is compared with the size of the file first: OpenFst's own reader
terminates the process when a damaged file asks for more memory than there is.

Rejected: ``pywrapfst.Compiler`` with a symbol table for the text: it has no character classes, reports errors on stderr
only, and digits would be both letters and labels.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokenfst.automata.openfst import fst
from tokenfst.automata.openfst.headers import ALIGNED, ISYMBOLS, MAGIC, OSYMBOLS, VERSION, Cursor
from tokenfst.automata.openfst.label_kinds import with_byte_symbols
from tokenfst.automata.openfst.labels import BYTE_ZERO_LABEL, EPSILON_LABEL, byte_label
from tokenfst.common.plurals import counted
from tokenfst.errors import FstError

if TYPE_CHECKING:
    import pynini

_EPSILON, _ANY, _OTHER = "<eps>", "<any>", "<other>"
_CLASSES = (_ANY, _OTHER)
_HEX = re.compile("0[xX][0-9a-fA-F]{2}")
_STATE = re.compile("[0-9]{1,18}")
_COMMENT = "#"

_Ints = npt.NDArray[np.int64]


def read_fst(path: str | os.PathLike[str]) -> pynini.Fst:
    """The transducer in a file, with its symbol tables.

    Either an OpenFst file (vector or const type, standard arcs, no weights) or a text (``parse_fst``); the first bytes
    decide. Raises ``FstError`` if it is neither, ``OSError``, ``MissingDependencyError`` without pynini. Linear.
    """
    data = Path(path).read_bytes()
    if data.startswith(MAGIC):
        reader = _Reader(data)
        arcs = reader.arcs()
        columns = arcs.source, arcs.ilabel, arcs.olabel, arcs.nextstate
        states = arcs.num_states, arcs.start, arcs.final_states
        made = fst.from_arcs(*states, *columns, sorted_by_source=True)
        isymbols, osymbols = reader.tables
        made.set_input_symbols(isymbols).set_output_symbols(osymbols)
        return made
    try:
        return parse_fst(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise FstError(f"it is neither an OpenFst file nor text: byte {error.start} is no UTF-8") from error


# --- binary files -------------------------------------------------------------------------------------


class _Reader:
    """An OpenFst file, read from its beginning on. Whatever goes beyond its end raises ``FstError``."""

    def __init__(self, data: bytes) -> None:
        self._data, self._cursor = data, Cursor(data)
        self.tables: list[Any] = [None, None]
        """The symbol tables of both sides, once ``arcs`` has read them."""

    def arcs(self) -> fst.Arcs:
        kind, arc_type, version, flags, _, start, num_states, num_arcs = self._cursor.header()
        if arc_type != b"standard":
            raise FstError(
                f"its arcs are of type {arc_type.decode('ascii', 'backslashreplace')!r}, and only 'standard' is read; "
                "convert it with fstmap --map_type=to_std"
            )
        if kind not in (b"vector", b"const") or version != VERSION or flags & ALIGNED:
            raise FstError(
                f"it is an OpenFst file of type {kind.decode('ascii', 'backslashreplace')!r}, version {version}; read "
                f"are vector and const, version {VERSION}, not aligned: convert it with fstconvert --fst_type=vector"
            )
        for side, flag in enumerate((ISYMBOLS, OSYMBOLS)):
            if flags & flag:
                self.tables[side] = self._symbols()
        at = self._cursor.at
        if (len(self._data) - at) % 4:
            raise FstError("its length is not that of whole states and arcs: the file is damaged")
        body = np.frombuffer(self._data, "<i4", offset=at).astype(np.int32)
        if kind == b"const":
            return fst.const_arcs(start, num_states, num_arcs, body)
        return _vector_arcs(start, num_states, body)

    def _symbols(self) -> Any:
        name, symbols = self._cursor.symbols()
        table = fst.require_pynini().SymbolTable(name)
        for symbol, label in symbols:
            table.add_symbol(symbol, label)
        return table


def _vector_arcs(start: int, num_states: int, body: npt.NDArray[np.int32]) -> fst.Arcs:
    """Read the states of a vector file: each is its weight and 64 bits with the number of its arcs, which follow.

    A negative number of states means all states up to the file's end.
    """
    counts: list[int] = []
    places: list[int] = []
    at, size = 0, len(body)
    low, high = body.view(np.uint32), body
    while at < size and (num_states < 0 or len(counts) < num_states):
        if at + 3 > size or high[at + 2] or low[at + 1] > (size - at - 3) // 4:
            raise FstError(f"state {len(counts)} has more arcs than the file: it is damaged")
        counts.append(int(low[at + 1]))
        places.append(at)
        at += 3 + 4 * counts[-1]
    if at != size or len(counts) < num_states:
        raise FstError(f"it has {len(counts)} states and not the {num_states} of its header: it is damaged")
    count, begin = np.array(counts, np.int64), np.array(places, np.int64)
    weight = body[begin].view(np.float32)
    source = np.repeat(np.arange(len(count), dtype=np.int32), count)
    nth = np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count)
    first = np.repeat(begin + 3, count) + 4 * nth
    return fst.plain_arcs(start, weight, source, body[first[:, None] + np.arange(4)])


# --- text ---------------------------------------------------------------------------------------------


def parse_fst(text: str) -> pynini.Fst:
    """The transducer that ``text`` describes, with label b + 1 for byte b (convention 2). The module defines the
    format.

    Raises ``FstError``, which names the faulty line. Linear in the arcs.
    """
    places: dict[int, int] = {}
    finals: list[int] = []
    lines: list[tuple[int, int, int, str, str]] = []
    named: dict[int, set[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith(_COMMENT):
            continue
        states = [places.setdefault(_state(word, number), len(places)) for word in words[:2]]
        if len(words) == 1:
            finals += states
        elif len(words) == 4:
            lines.append((number, states[0], states[1], words[2], words[3]))
            named.setdefault(states[0], set()).add(words[2])
        else:
            raise FstError(
                f"line {number} has {counted(len(words), 'word')}: an arc is 'source target input output', an "
                "accepting state "
                "stands alone, and there are no weights"
            )
    if not places:
        raise FstError("there is no state in it")
    columns = [np.empty((4, 0), np.int64)]
    for number, source, target, letter, written in lines:
        apart = named[source].difference(_CLASSES) if letter == _OTHER else set()
        labels = np.setdiff1d(_labels(letter, number), [_labels(each, number)[0] for each in apart])
        if written == letter:
            outputs = labels
        elif written == _OTHER:
            raise FstError(f"line {number}: {_OTHER} is written only where it is read")
        else:
            outputs = _labels(written, number)
            labels, outputs = np.repeat(labels, len(outputs)), np.tile(outputs, len(labels))
        columns.append(
            np.stack([np.full(len(labels), source), np.full(len(labels), target), labels, outputs])
        )
    arcs = np.concatenate(columns, axis=1)
    return with_byte_symbols(fst.from_arcs(len(places), 0, finals, arcs[0], arcs[2], arcs[3], arcs[1]))


def _state(word: str, number: int) -> int:
    if not _STATE.fullmatch(word):
        raise FstError(f"line {number}: {word!r:.80} is no state; states are numbers of at most 18 digits")
    return int(word)


def _labels(letter: str, number: int) -> _Ints:
    if letter in _CLASSES:
        return np.arange(256) + BYTE_ZERO_LABEL
    if letter == _EPSILON:
        return np.array([EPSILON_LABEL])
    if _HEX.fullmatch(letter):
        return np.array([byte_label(int(letter, 16))])
    if len(letter) == 1 and letter.isascii():
        return np.array([byte_label(ord(letter))])
    raise FstError(
        f"line {number}: {letter!r:.80} is no letter; a letter is an ASCII character, a byte such as 0x0a, {_EPSILON}, "
        f"{_ANY} or {_OTHER}. Other characters are several bytes, an arc each; labels as numbers are for binary files"
    )
