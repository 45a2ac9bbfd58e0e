"""Digests of programs: equal digests mean equal languages, and the digest does not depend on the order of composition.

``digest(program)`` is the SHA-256 of a description that determines the program up to labels, so two different languages
share a digest only in case of a SHA-256 collision. Constructs that the native core normalizes to one expression have
one description: unions, intersections and unordered members are unordered sets, unions and concatenations are
flattened, words are their bytes, and shared parts are described by their content. Labels, names of rules, and derived
facts (``assured``) are omitted.

Rules and variables may be recursive, so they have no given order. They are distinguished as states of automata are, by
partition refinement: each has a colour, at first whether it has the empty word, then the description of its body with
colours in place of calls, until the partition is stable. Rules of one colour have the same words, and count as one.
Sorted by colours, the program is traversed from its root, and rules are numbered in the order of visits. The
description is that of the numbered bodies. If the partition is not stable after 32 rounds, the program is described as
written: then one grammar written in two ways may have two digests, but two languages never share one.

Cost: a SHA-256 of a few dozen bytes for each instruction; for those above a call, one for each round.

Rejected: the native core's own numbers for expressions, which depend on the order of creation; hashing minimized
automata, which costs as much as the artifact that the digest is to save.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from weakref import WeakKeyDictionary

import numpy as np

from tokenfst.automata.expressions.expression import Dfa, Op
from tokenfst.automata.expressions.program import Program

_MOST_PARTS = 256
"""Maximum length of a union or intersection that is described inline."""
_MOST_IN_A_ROW = 8
"""Maximum length of a concatenation that is described inline."""
_MOST_ROUNDS = 32
_EPSILON, _BYTES, _LITERAL, _CONCAT, _UNION, _INTERSECT = (
    int(Op[name]) for name in ("EPSILON", "BYTES", "LITERAL", "CONCAT", "UNION", "INTERSECT")
)
_VARIABLE, _CALL, _UNORDERED = int(Op.VARIABLE), int(Op.CALL), int(Op.UNORDERED)
_MIXED = frozenset({_UNION, _INTERSECT, _UNORDERED})
_LEAVES = frozenset({_BYTES, _LITERAL, _CALL, *map(int, (Op.MACHINE, Op.WORDS, Op.TOKENS))})
_OWN = {
    int(op): count
    for op, count in (
        (Op.REPEAT, 2),
        (Op.SELECTION, 2),
        (Op.UNORDERED, 4),
        (Op.FRESH, 4),
        (Op.FEW_TOKENS, 1),
    )
}
"""The number of trailing operands that are numbers, not nodes."""
_TAGS = [op.name.encode() + b"\n" for op in Op]
_machines: WeakKeyDictionary[Dfa, bytes] = WeakKeyDictionary()

_Part = bytes | str
"""A part of a concatenation: a digest, or literal bytes as Latin-1 characters."""


def digest(program: Program) -> str:
    """The digest of a program's language, 64 hexadecimal digits; see the module."""
    return _Description(program).digest()


@dataclass(slots=True)
class _Step:
    """An instruction: its kind, its operands that are instructions, and its other data."""

    op: int
    parts: list[int]
    own: list[int]


class _Description:
    """The digests of a program's instructions."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps = list(_steps(program.code.tolist()))
        self.sets = [row.tobytes() for row in program.sets]
        self.lexicons = [_hash(b"lexicon", *map(_sized, lexicon.words())) for lexicon in program.lexicons]
        self.machines = [_of_machine(dfa) for dfa in program.machines]
        self.nested = {_UNION}
        if (
            not program.is_token_level
        ):  # otherwise x & ~y differs from the complement of y that is intersected with x later
            self.nested.add(_INTERSECT)
        self.open_steps = self._find_open()
        self.found: list[bytes] = [b""] * len(self.steps)
        self.rows: list[Sequence[_Part]] = [()] * len(self.steps)  # for concatenations and words
        self.inner: list[set[bytes]] = [set()] * len(self.steps)  # for unions and intersections
        self.bits = [0] * len(self.steps)

    def digest(self) -> str:
        """The digest of the whole program."""
        for number, step in enumerate(self.steps):
            if number not in self.open_steps:
                self._tell_one(number, step)
        root = len(self.steps) - 1
        kind = b"labelled" if self.program.labelled else b"program"
        if root not in self.open_steps:
            return _hash(kind, self.found[root]).hex()
        order = self._reached(root, None)
        colors = {name: _hash(b"color", self._kind(name)) for name in order}
        told = len(set(colors.values()))
        for _ in range(min(_MOST_ROUNDS, len(order))):
            self._tell(colors)
            colors = {name: _hash(colors[name], self.found[self._body(name)]) for name in order}
            before, told = told, len(set(colors.values()))
            if told == before:
                break
        else:  # the partition may not be stable, so no two are taken as equal
            colors = {name: _hash(colors[name], name.to_bytes(4, "little", signed=True)) for name in order}
        self._tell(colors)
        firsts: dict[bytes, int] = {}
        for name in self._reached(root, self.found):
            firsts.setdefault(colors[name], name)
        places = {color: place.to_bytes(4, "little") for place, color in enumerate(firsts)}
        self._tell({name: _hash(b"number", places[colors[name]]) for name in order})
        bodies = (
            part for name in firsts.values() for part in (self._kind(name), self.found[self._body(name)])
        )
        return _hash(kind, self.found[root], *bodies).hex()

    # --- names: rules as -1, -2, ...; variables as their instructions ---------------------------------------------

    def _kind(self, name: int) -> bytes:
        return b"variable" if name >= 0 else b"empty" if self.program.rules[-1 - name][1] else b"filled"

    def _body(self, name: int) -> int:
        return self.steps[name].parts[0] if name >= 0 else self.program.rules[-1 - name][0]

    def _name(self, step: int) -> int | None:
        """The name in a step, if it is a leaf for the steps above it."""
        op = self.steps[step].op
        return step if op == _VARIABLE else -1 - self.steps[step].own[0] if op == _CALL else None

    def _find_open(self) -> dict[int, None]:
        """The steps that contain a name, in order."""
        found: dict[int, None] = {}
        for number, step in enumerate(self.steps):
            if self._name(number) is not None or any(part >= number or part in found for part in step.parts):
                found[number] = None
        return found

    def _reached(self, root: int, order: Sequence[bytes] | None) -> list[int]:
        """The names that ``root`` reaches, in the order of visits; unordered parts in the order of ``order``."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        stack = [root]
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            name = self._name(number)
            if name is not None:
                if name not in found:
                    found[name] = None
                    stack.append(self._body(name))
                continue
            step = self.steps[number]
            parts = step.parts if order is None else self._unnested(step)
            parts = [part for part in parts if part in self.open_steps]
            if order is not None and step.op in _MIXED:
                parts.sort(key=order.__getitem__)
            stack += reversed(parts)
        return list(found)

    def _unnested(self, step: _Step) -> list[int]:
        """The parts of a step, in which parts of the same kind that are described inline (``_tell_mixed``) are
        replaced by theirs.
        """
        found: dict[int, None] = {}
        rest = step.parts[::-1]
        while rest:
            part = rest.pop()
            if part in found:
                continue
            found[part] = None
            if self._in_place(step.op, part):
                rest += self.steps[part].parts[::-1]
        return [part for part in found if not self._in_place(step.op, part)]

    # --- one step -------------------------------------------------------------------------------------------------

    def _tell(self, names: dict[int, bytes]) -> None:
        """Describe the open steps, with ``names`` for the names in them."""
        for number in self.open_steps:
            if (name := self._name(number)) is not None:
                self.found[number] = names.get(name, b"")  # nothing for a rule that the root does not reach
        for number in self.open_steps:
            if self._name(number) is None:
                self._tell_one(number, self.steps[number])

    def _tell_one(self, number: int, step: _Step) -> None:
        op = step.op
        if op == _CONCAT:
            self.rows[number] = parts = self._in_a_row(step)
            self.found[number] = _of_parts(parts)
        elif op in (_UNION, _INTERSECT):
            self._tell_mixed(number, step)
        elif op in (_EPSILON, _LITERAL) or (op == _BYTES and self._bits(number).bit_count() == 1):
            self.rows[number] = parts = [self._text(number)]
            self.found[number] = _of_parts(parts)
        else:
            self.found[number] = _hash(_TAGS[op], *self._content(step))

    def _content(self, step: _Step) -> Iterator[bytes]:
        op, own = step.op, step.own
        told = [self.found[part] for part in step.parts]
        if op == _BYTES:
            yield self.sets[own[0]]
        elif op == Op.MACHINE:
            yield self.machines[own[0]]
        elif op == Op.WORDS:
            yield self.lexicons[own[0]]
        elif op == Op.TOKENS:
            name = self.program.token_names[own[0]]
            yield _sized(repr((name.name, name.special, name.but)).encode("utf-8", "surrogatepass"))
        else:
            if (
                op == _UNORDERED
            ):  # the separator, required members, optional members, members that may be repeated
                required, last = 1 + own[2], len(told) - (own[3] > 0)
                told[1:required] = sorted(told[1:required])
                told[required:last] = sorted(told[required:last])
            yield np.array(own, "<i4").tobytes()
            yield from told

    def _in_a_row(self, step: _Step) -> list[_Part]:
        """The parts of a concatenation, with consecutive words combined into one."""
        found: list[_Part] = []
        word = ""
        for part in step.parts:
            known = self.rows[part]
            for each in known if 0 < len(known) <= _MOST_IN_A_ROW else (self.found[part],):
                if isinstance(each, str):
                    word += each
                    continue
                if word:
                    found.append(word)
                    word = ""
                found.append(each)
        return [*found, word] if word or not found else found

    def _tell_mixed(self, number: int, step: _Step) -> None:
        """Describe a union or an intersection: its distinct parts in a fixed order, with the sets of bytes of a
        union combined.
        """
        found: set[bytes] = set()
        bits = 0
        for part in step.parts:
            below = self.steps[part].op
            if step.op == _UNION and below == _BYTES:
                bits |= self._bits(part)
            elif self._in_place(step.op, part):
                found |= self.inner[part]
                bits |= self.bits[part]
            else:
                found.add(self.found[part])
        self.inner[number], self.bits[number] = found, bits
        told = sorted({*found, _of_set(bits)} if bits else found)
        self.found[number] = told[0] if len(told) == 1 else _hash(_TAGS[step.op], *told)
        same = (part for part in step.parts if self.found[part] == told[0]) if len(told) == 1 else ()
        self.rows[number] = next((self.rows[part] for part in same), ())

    def _in_place(self, op: int, part: int) -> bool:
        return self.steps[part].op == op and op in self.nested and len(self.inner[part]) <= _MOST_PARTS

    def _bits(self, number: int) -> int:
        return int.from_bytes(self.sets[self.steps[number].own[0]], "little")

    def _text(self, number: int) -> str:
        step = self.steps[number]
        if step.op == _EPSILON:
            return ""
        if step.op == _BYTES:
            return chr(self._bits(number).bit_length() - 1)
        begin, length = step.own
        return self.program.blob[begin : begin + length].decode("latin-1")


def _steps(code: list[int]) -> Iterator[_Step]:
    """The instructions of a program's code."""
    place = 0
    while place < len(code):
        op, count = code[place : place + 2]
        place += 2
        nodes = 0 if op in _LEAVES else count - _OWN.get(op, 0)
        yield _Step(op, code[place : place + nodes], code[place + nodes : place + count])
        place += count


def _of_parts(parts: Sequence[_Part]) -> bytes:
    if len(parts) == 1:
        part = parts[0]
        return part if isinstance(part, bytes) else _hash(b"word", part.encode("latin-1"))
    told = (
        b"\1" + part if isinstance(part, bytes) else b"\0" + _sized(part.encode("latin-1")) for part in parts
    )
    return _hash(_TAGS[_CONCAT], *told)


def _of_set(bits: int) -> bytes:
    if bits.bit_count() == 1:
        return _of_parts((chr(bits.bit_length() - 1),))
    return _hash(_TAGS[_BYTES], bits.to_bytes(32, "little"))


def _of_machine(dfa: Dfa) -> bytes:
    found = _machines.get(dfa)
    if found is None:
        classes, table, accepting, start, offsets = dfa.native_tables()
        arrays = (classes, table.astype("<u4"), accepting, np.array([start], "<u4"), offsets.astype("<u4"))
        shapes = np.array([size for array in arrays for size in array.shape], "<u8").tobytes()
        found = _machines[dfa] = _hash(b"machine", shapes, *(array.tobytes() for array in arrays))
    return found


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data


def _hash(*parts: bytes) -> bytes:
    """Hash a tag, which ends with a newline or is a unique word, followed by parts of known lengths."""
    return sha256(b"".join(parts)).digest()
