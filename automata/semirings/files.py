"""OpenFst's binary files of machines whose weights are strings, pairs or tuples, vector and const type.

The arc type's name in the header says what a weight is made of. OpenFst's own programs know none of these types; C++
programs that use its library write them (``VectorFst<GallicArc<StdArc>>::Write``). A string is a count of labels and
the labels, with the one label -1 for Zero; a pair or tuple is its parts in order. A const file holds the structs of C++
as they lie in memory, so it exists only for weights of a fixed size.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.openfst.headers import Cursor, read_file
from tokenfst.automata.semirings.machines import SemiringFst, lifted, lowered
from tokenfst.automata.semirings.numbers import Number, SignedLog
from tokenfst.automata.semirings.protocol import Semiring
from tokenfst.automata.semirings.structured import Expectation, Gallic, Lexicographic, Power, Product, String
from tokenfst.automata.transducers import files as native
from tokenfst.automata.transducers.checks import STATE_BYTES, chosen
from tokenfst.automata.transducers.files import (
    KINDS,
    aligned,
    head,
    packed,
    symbol_tables,
    written_head,
)
from tokenfst.automata.transducers.weights import ARC_TYPES
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import BudgetExceeded, FstBadWeightError, FstIOError, FstOpError

_WORDS = {"left": "left", "right": "right", "restrict": "restricted", "min": "min"}
_KIND_OF = {word: kind for kind, word in _WORDS.items()}
_ARCS = [each.name for each in ARC_TYPES.values() if each.name != "boolean"]
_WEIGHTS = {each.weight_type: each.name for each in ARC_TYPES.values() if each.name != "boolean"}
"""The numbers that a weight may be made of."""
_INFINITE = -1
_ARC_BYTES = 200
"""The approximate memory, in bytes, of an arc as Python objects."""


def arc_type_of(semiring: Semiring) -> str:
    """OpenFst's name for arcs over a semiring. Raises ``FstOpError`` if it has none."""
    if any(each.name == "boolean" for each in getattr(semiring, "parts", ())):
        raise FstOpError(f"OpenFst has no arc type for the semiring {semiring.name!r}")
    match semiring:
        case Number():
            return semiring.kind.name
        case String():
            return f"{_WORDS[semiring.kind]}_standard_string"
        case SignedLog():
            return f"signed_log_tropical_{semiring.size.name}"
        case Gallic(parts=(_, Number() as base)):
            return f"{_WORDS[semiring.kind]}_gallic_{base.kind.name}"
        case Power(parts=(Number() as base, *_)):
            return f"{base.kind.name}_^{len(semiring.parts)}"
        case Expectation(parts=(Number() as base, Number() as value)):
            return f"expectation_{base.kind.name}_{value.name}"
        case Lexicographic(parts=(Number() as base, Number() as value)):
            return f"{base.name}_LT_{value.name}"
        case Product(parts=(Number() as base, Number() as value)):
            return f"{base.name}_X_{value.name}"
    raise FstOpError(
        f"OpenFst has no arc type for the semiring {semiring.name!r}: only strings, and Gallic, SignedLog, Power, "
        "Expectation, Lexicographic and Product over Number(...) are written to files"
    )


def semiring_named(name: str) -> Semiring:
    """The semiring of an arc type. Raises ``FstIOError`` if there is none."""
    weights, arcs = "|".join(_WEIGHTS), "|".join(_ARCS)
    rules: list[tuple[str, Callable[..., Semiring]]] = [
        ("|".join(ARC_TYPES), lambda: Number(name)),
        ("(left|right|restricted)_standard_string", lambda word: String(_KIND_OF[word])),
        ("signed_log_tropical_(log|log64)", SignedLog),
        (
            f"(left|right|restricted|min)_gallic_({arcs})",
            lambda word, base: Gallic(Number(base), _KIND_OF[word]),
        ),
        (rf"({arcs})_\^([1-9]\d{{0,3}})", lambda base, n: Power(Number(base), int(n))),
        (f"expectation_({arcs})_({weights})", lambda one, two: Expectation(Number(one), _weighted(two))),
        (f"({weights})_LT_({weights})", lambda one, two: Lexicographic(_weighted(one), _weighted(two))),
        (f"({weights})_X_({weights})", lambda one, two: Product(_weighted(one), _weighted(two))),
    ]
    for pattern, made in rules:
        if found := re.fullmatch(pattern, name):
            return made(*found.groups())
    raise FstIOError(
        f"its arcs are of type {name!r}; read are numbers ({', '.join(ARC_TYPES)}), strings and signed_log, and left, "
        "right, restricted and min gallic, _LT_, _X_, _^n and expectation over one or two types of numbers"
    )


def _weighted(weight_type: str) -> Number:
    return Number(_WEIGHTS[weight_type])


class _Form:
    """How weights are written: the parts of fixed size, after a string of labels if there is one."""

    def __init__(self, semiring: Semiring) -> None:
        self.semiring = semiring
        self.string = isinstance(semiring, String | Gallic)
        parts = () if isinstance(semiring, String) else semiring.parts[1:] if self.string else semiring.parts  # type: ignore[attr-defined]
        self.codes = "".join(np.dtype(each.kind.dtype).char for each in parts)
        self._fixed = struct.Struct(f"<{self.codes}")
        self.least = self._fixed.size + (4 if self.string else 0)

    def value(self, parts: tuple[Any, ...], labels: tuple[int, ...] | None = ()) -> Any:
        """The weight of some parts. Raises ``FstIOError`` if it is not one."""
        semiring = self.semiring
        found: Any = tuple(map(float, parts))
        if self.string:
            found = (labels, *found) if found else labels
        if isinstance(semiring, SignedLog):
            found = semiring.plain(found)
        try:
            return semiring.checked(found)
        except FstBadWeightError as error:
            raise FstIOError(f"{error}: the file is damaged") from error

    def read(self, cursor: Cursor) -> Any:
        """The weight at a position of a file."""
        labels: tuple[int, ...] | None = ()
        if self.string:
            (count,) = cursor.unpack("<i")
            if count < 0:
                raise FstIOError(f"a string announces {count} labels: the file is damaged")
            labels = cursor.unpack(f"<{count}i")
            labels = None if labels == (_INFINITE,) else labels
        return self.value(cursor.unpack(self._fixed.format), labels)

    def write(self, value: Any) -> bytes:
        """The bytes of a weight."""
        if not self.string:
            return self._fixed.pack(*value)
        labels = value if isinstance(self.semiring, String) else value[0]
        labels = (_INFINITE,) if labels is None else labels
        rest = () if isinstance(self.semiring, String) else value[1:]
        return struct.pack(f"<i{len(labels)}i", len(labels), *labels) + self._fixed.pack(*rest)

    def structs(self) -> tuple[struct.Struct, struct.Struct]:
        """A state and an arc of a const file, as C++ lays them out. Raises ``FstOpError`` for strings."""
        if self.string:
            raise FstOpError(
                f"weights of the semiring {self.semiring.name!r} differ in size: OpenFst has no const file of them; "
                "use vector"
            )
        end = "0d" if "d" in self.codes else ""
        return struct.Struct(f"@{self.codes}{end}4I{end}"), struct.Struct(f"@2i{end}{self.codes}{end}i{end}")


@checked
def read(source: str | os.PathLike[str], *, budget: Budget | None = None) -> SemiringFst:
    """The machine in an OpenFst file of type vector or const. Its arc type is one of those that ``write`` writes, or
    that of a numeric semiring.

    Raises ``FstIOError`` for an invalid file, ``OSError``, ``BudgetExceeded``. Linear.
    """
    return read_file(source, lambda data: from_bytes(data, budget=budget))


@checked
def from_bytes(data: bytes, *, budget: Budget | None = None) -> SemiringFst:
    """The machine in the bytes of an OpenFst file."""
    cursor = Cursor(data)
    header = head(cursor)
    semiring = semiring_named(header.arc_type.decode("ascii", "backslashreplace"))
    if isinstance(semiring, Number):
        numbers = native.from_bytes(data, budget=budget)
        return lifted(numbers, semiring, lambda number, _: number).set_tables(numbers.tables)
    made, form, limit = SemiringFst(semiring), _Form(semiring), budget or Budget()
    made.set_tables(symbol_tables(cursor, header))
    states = header.num_states
    if not 0 <= states * form.least <= len(data):
        raise FstIOError(f"it announces {states:,} states, for which it is too short: the file is damaged")
    if states > limit.states:
        raise BudgetExceeded("states", limit.states, "read")
    if not -1 <= header.start < states:
        raise FstIOError(f"its start is state {header.start} of {states:,}: the file is damaged")
    for _ in range(states):
        made.add_state()
    if header.kind == b"vector":
        _read_vector(cursor, made, form, limit)
    else:
        _read_const(cursor, made, form, limit, header)
    return made if header.start < 0 else made.set_start(header.start)


class _Arcs:
    """Adds the arcs of a file, checked, within a budget."""

    def __init__(self, made: SemiringFst, limit: Budget) -> None:
        self._made, self._limit, self._clock = made, limit, Deadline(limit, "read")
        self._bytes = made.num_states() * STATE_BYTES

    def add(self, state: int, ilabel: int, olabel: int, weight: Any, target: int) -> None:
        """Add an arc. Raises ``FstIOError`` for labels and states that cannot be."""
        if ilabel < 0 or olabel < 0 or not 0 <= target < self._made.num_states():
            raise FstIOError(
                f"an arc of state {state} has the labels {ilabel} and {olabel} and leads to state {target} of "
                f"{self._made.num_states():,}: the file is damaged"
            )
        self._clock.tick()
        self._bytes += _ARC_BYTES
        if self._bytes > self._limit.bytes:
            raise BudgetExceeded("bytes", self._limit.bytes, "read")
        self._made.add_arc(state, ilabel, olabel, weight, target)


def _read_vector(cursor: Cursor, made: SemiringFst, form: _Form, limit: Budget) -> None:
    arcs = _Arcs(made, limit)
    for state in made.states():
        made.set_final(state, form.read(cursor))
        (count,) = cursor.unpack("<q")
        if count < 0:
            raise FstIOError(f"state {state} announces {count} arcs: the file is damaged")
        for _ in range(count):
            ilabel, olabel = cursor.unpack("<ii")
            weight = form.read(cursor)
            arcs.add(state, ilabel, olabel, weight, *cursor.unpack("<i"))


def _read_const(cursor: Cursor, made: SemiringFst, form: _Form, limit: Budget, header: Any) -> None:
    state_form, arc_form = form.structs()
    size = made.num_states() * state_form.size
    data, at = cursor.data, cursor.at
    if aligned(header):
        data, at = packed(data, at, size), 0
    if not 0 <= header.num_arcs * arc_form.size <= len(data) - at - size:
        raise FstIOError("it ends too early: the file is damaged")
    finals = list(state_form.iter_unpack(data[at : at + size]))
    rows = list(arc_form.iter_unpack(data[at + size : at + size + header.num_arcs * arc_form.size]))
    arcs = _Arcs(made, limit)
    for state, (*final, begin, count, _, _) in enumerate(finals):
        made.set_final(state, form.value(tuple(final)))
        if begin + count > len(rows):
            raise FstIOError(f"state {state} has arcs beyond the last one: the file is damaged")
        for ilabel, olabel, *weight, target in rows[begin : begin + count]:
            arcs.add(state, ilabel, olabel, form.value(tuple(weight)), target)


@checked
def to_bytes(fst: SemiringFst, fst_type: Literal["vector", "const"] = "vector") -> bytes:
    """The bytes of an OpenFst file. Raises ``FstOpError`` if OpenFst has no arc type for the semiring, or no const file
    for it. Linear.
    """
    is_vector = chosen("write: fst_type", fst_type, KINDS) == "vector"
    name = arc_type_of(fst.semiring)
    if isinstance(fst.semiring, Number):
        return native.to_bytes(lowered(fst, name, lambda number: number).set_tables(fst.tables), fst_type)
    form = _Form(fst.semiring)
    body: list[bytes] = []
    if is_vector:
        for state in fst.states():
            body += [form.write(fst.final(state)), struct.pack("<q", fst.num_arcs(state))]
            for arc in fst.arcs(state):
                body += [struct.pack("<ii", arc.ilabel, arc.olabel), form.write(arc.weight)]
                body.append(struct.pack("<i", arc.nextstate))
    else:
        state_form, arc_form = form.structs()
        begin = 0
        for state in fst.states():
            arcs = list(fst.arcs(state))
            epsilons = [sum(not arc[side] for arc in arcs) for side in (0, 1)]
            body.append(state_form.pack(*fst.final(state), begin, len(arcs), *epsilons))
            begin += len(arcs)
        body += [
            arc_form.pack(arc.ilabel, arc.olabel, *arc.weight, arc.nextstate)
            for state in fst.states()
            for arc in fst.arcs(state)
        ]
    sizes = fst.start(), fst.num_states(), fst.num_arcs()
    return written_head(fst_type, name, sizes, fst.tables) + b"".join(body)


@checked
def write(
    fst: SemiringFst, source: str | os.PathLike[str], fst_type: Literal["vector", "const"] = "vector"
) -> None:
    """Write an OpenFst file. C++ programs that use OpenFst's library with this arc type can read it."""
    Path(source).write_bytes(to_bytes(fst, fst_type))
