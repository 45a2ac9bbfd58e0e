"""Digests of programs: equal digests mean equal languages, and the digest does not depend on the order of composition.

``digest(program)`` is the SHA-256 of a description that determines the program up to labels, so two different languages
share a digest only in case of a SHA-256 collision. Constructs that the native core normalizes to one expression have
one description: unions, intersections and unordered members are unordered sets, unions and concatenations are
flattened, words are their bytes, and shared parts are described by their content. (One case is missing: one-byte words
in a union are combined neither with each other nor with its sets of bytes.) Labels, names of rules, and derived facts
(``assured``) are omitted.

Rules and variables may be recursive, so they have no given order. They are distinguished as states of automata are, by
partition refinement. Each rule has a colour. The first colour says whether the rule has the empty word. Each round
replaces it by the description of the rule's body with colours in place of calls, until the partition is stable. Rules
of one colour have the same words, and count as one. The program is then traversed from its root, with unordered parts
sorted by their colours, and rules are numbered in the order of visits. The description is that of the numbered bodies.
If the partition is not stable after 32 rounds, the program is described as written: then one grammar written in two
ways may have two digests, but two languages never share one.

Cost: a SHA-256 of a few dozen bytes for each instruction; for those above a call, one for each round. Constraints of
one kind have most of their parts in common, so descriptions are cached: the key is the kind of an instruction, its own
data and the descriptions of its operands.

Rejected: the native core's own numbers for expressions, which depend on the order of creation; hashing minimized
automata, which costs as much as the artifact that the digest is to save.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tokenfst.automata.expressions.expression import Dfa, Op
from tokenfst.automata.expressions.program import Program, instructions

_MOST_PARTS = 256
"""Maximum length of a union or intersection that is described inline."""
_MOST_IN_A_ROW = 8
"""Maximum length of a concatenation that is described inline."""
_MOST_ROUNDS = 32
_EPSILON, _BYTES, _LITERAL, _CONCAT, _UNION, _INTERSECT = (
    int(Op[name]) for name in ("EPSILON", "BYTES", "LITERAL", "CONCAT", "UNION", "INTERSECT")
)
_VARIABLE, _CALL, _UNORDERED = int(Op.VARIABLE), int(Op.CALL), int(Op.UNORDERED)
_NAMES = frozenset({_VARIABLE, _CALL})
_MIXED_NODES = frozenset({_UNION, _INTERSECT})
_MIXED = _MIXED_NODES | {_UNORDERED}
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
_MOST_REMEMBERED = 1 << 16
"""Maximum number of cached descriptions: 20 MB at about 300 bytes each. When it is reached, the cache is cleared."""
_machines: WeakKeyDictionary[Dfa, bytes] = WeakKeyDictionary()

_Part = bytes | str
"""A part of a concatenation: a digest, or literal bytes as Latin-1 characters."""


def digest(program: Program) -> str:
    """The digest of a program's language, 64 hexadecimal digits; see the module."""
    return _Description(program).digest()


class _Told:
    """The description of an instruction, which never changes."""

    __slots__ = ("bits", "found", "inner", "row")

    def __init__(
        self, found: bytes, row: Sequence[_Part] = (), inner: frozenset[bytes] = frozenset(), bits: int = 0
    ) -> None:
        self.found = found
        self.row = row
        """The parts of a concatenation or a word."""
        self.inner = inner
        """The parts of a union or an intersection but for sets of bytes."""
        self.bits = bits
        """Its sets of bytes, combined; of a set itself the bytes."""


_NOTHING = _Told(b"")
_Remembered = dict[tuple[Any, ...], _Told]
_remembered: dict[bool, _Remembered] = {False: {}, True: {}}
"""Cached descriptions, by the kind of an instruction, its own data and the descriptions of its operands. Programs that
constrain tokens (True) have a cache of their own, because their intersections are described differently.
"""


class _Description:
    """The digests of a program's instructions."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ops, self.parts, self.own = _instructions(tuple(program.code.tolist()))
        """Of each instruction its kind, its operands that are instructions, and its other data."""
        self.sets = [row.tobytes() for row in program.sets]
        self.lexicons = [_hash(b"lexicon", *map(_sized, lexicon.words())) for lexicon in program.lexicons]
        self.machines = [_of_machine(dfa) for dfa in program.machines]
        self.nested = {_UNION}
        if (
            not program.is_token_level
        ):  # otherwise x & ~y differs from the complement of y that is intersected with x later
            self.nested.add(_INTERSECT)
        self.remembered = _remembered[program.is_token_level]
        if len(self.remembered) > _MOST_REMEMBERED:
            self.remembered.clear()
        self.open_steps = self._find_open()
        self.told: list[_Told] = [_NOTHING] * len(self.ops)

    def digest(self) -> str:
        """The digest of the whole program."""
        for number in range(len(self.ops)):
            if number not in self.open_steps:
                self.told[number] = self._told_of(number, self.remembered)
        root = len(self.ops) - 1
        kind = b"labelled" if self.program.labelled else b"program"
        if root not in self.open_steps:
            return _hash(kind, self.told[root].found).hex()
        order = self._reached(root, None)
        if len(order) == 1:  # it is the first one, whatever its colour
            (name,) = order
            self._tell({name: _hash(b"number", bytes(4))}, self.remembered)
            return _hash(
                kind, self.told[root].found, self._kind(name), self.told[self._body(name)].found
            ).hex()
        colors = {name: _hash(b"color", self._kind(name)) for name in order}
        told = len(set(colors.values()))
        for _ in range(min(_MOST_ROUNDS, len(order))):
            self._tell(colors, {})
            colors = {name: _hash(colors[name], self.told[self._body(name)].found) for name in order}
            before, told = told, len(set(colors.values()))
            if told == before:
                break
        else:  # the partition may not be stable, so no two are taken as equal
            colors = {name: _hash(colors[name], name.to_bytes(4, "little", signed=True)) for name in order}
        self._tell(colors, {})
        firsts: dict[bytes, int] = {}
        for name in self._reached(root, self.told):
            firsts.setdefault(colors[name], name)
        places = {color: place.to_bytes(4, "little") for place, color in enumerate(firsts)}
        self._tell({name: _hash(b"number", places[colors[name]]) for name in order}, self.remembered)
        bodies = (
            part for name in firsts.values() for part in (self._kind(name), self.told[self._body(name)].found)
        )
        return _hash(kind, self.told[root].found, *bodies).hex()

    # --- names: rules as -1, -2, ...; variables as their instructions ---------------------------------------------

    def _kind(self, name: int) -> bytes:
        return b"variable" if name >= 0 else b"empty" if self.program.rules[-1 - name][1] else b"filled"

    def _body(self, name: int) -> int:
        return self.parts[name][0] if name >= 0 else self.program.rules[-1 - name][0]

    def _name(self, step: int) -> int | None:
        """The name in a step, if it is a leaf for the steps above it."""
        op = self.ops[step]
        return step if op == _VARIABLE else -1 - self.own[step][0] if op == _CALL else None

    def _find_open(self) -> dict[int, None]:
        """The steps that contain a name, in order."""
        found: dict[int, None] = {}
        inside = found.keys()
        for number, (op, parts) in enumerate(zip(self.ops, self.parts, strict=True)):
            if op in _NAMES or (parts and (max(parts) >= number or not inside.isdisjoint(parts))):
                found[number] = None
        return found

    def _reached(self, root: int, order: Sequence[_Told] | None) -> list[int]:
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
            parts = self.parts[number] if order is None else self._unnested(number)
            inside = [part for part in parts if part in self.open_steps]
            if order is not None and self.ops[number] in _MIXED:
                inside.sort(key=lambda part: order[part].found)
            stack += reversed(inside)
        return list(found)

    def _unnested(self, number: int) -> Sequence[int]:
        """The parts of a step, in which parts of the same kind that are described inline (``_of_mixed``) are replaced
        by theirs.
        """
        op = self.ops[number]
        found: dict[int, None] = {}
        rest = list(reversed(self.parts[number]))
        while rest:
            part = rest.pop()
            if part in found:
                continue
            found[part] = None
            if self._in_place(op, part):
                rest += reversed(self.parts[part])
        return [part for part in found if not self._in_place(op, part)]

    # --- one step -------------------------------------------------------------------------------------------------

    def _tell(self, names: dict[int, bytes], remembered: _Remembered) -> None:
        """Describe the open steps, with ``names`` for the names in them."""
        for number in self.open_steps:
            if (name := self._name(number)) is not None:  # nothing for a rule that the root does not reach
                self.told[number] = _kept(remembered, (_CALL, names.get(name, b"")), _Told)
        for number in self.open_steps:
            if self.ops[number] not in _NAMES:
                self.told[number] = self._told_of(number, remembered)

    def _told_of(self, number: int, remembered: _Remembered) -> _Told:
        op, own = self.ops[number], self.own[number]
        if op in (_LITERAL, _EPSILON):
            return _kept(remembered, (_LITERAL, self._text(own)), _of_text)
        if op == _BYTES:
            return _kept(remembered, (op, self.sets[own[0]]), _of_bytes)
        if op in _LEAVES:
            return _kept(remembered, (op, self._leaf(op, own[0])), lambda leaf: _Told(_hash(_TAGS[op], leaf)))
        parts = [self.told[part] for part in self.parts[number]]
        key = (op, *own, *parts)
        known = remembered.get(key)
        if known is None:
            if op == _CONCAT:
                row = _in_a_row(parts)
                known = _Told(_of_parts(row), row)
            elif op in _MIXED_NODES:
                known = self._of_mixed(op, number, parts)
            else:
                known = _Told(_hash(_TAGS[op], *_content(op, own, parts)))
            remembered[key] = known
        return known

    def _leaf(self, op: int, index: int) -> bytes:
        """What determines a leaf that is neither bytes nor a name."""
        if op == Op.MACHINE:
            return self.machines[index]
        if op == Op.WORDS:
            return self.lexicons[index]
        name = self.program.token_names[index]
        return _sized(repr((name.name, name.special, name.but)).encode("utf-8", "surrogatepass"))

    def _of_mixed(self, op: int, number: int, parts: list[_Told]) -> _Told:
        """A union or an intersection: its distinct parts in a fixed order, with the sets of bytes of a union
        combined.
        """
        found: set[bytes] = set()
        bits = 0
        for place, part in zip(self.parts[number], parts, strict=True):
            if op == _UNION and self.ops[place] == _BYTES:
                bits |= part.bits
            elif self._in_place(op, place):
                found |= part.inner
                bits |= part.bits
            else:
                found.add(part.found)
        told = sorted({*found, _of_set(bits)} if bits else found)
        if len(told) > 1:
            return _Told(_hash(_TAGS[op], *told), (), frozenset(found), bits)
        row = next((part.row for part in parts if part.found == told[0]), ())
        return _Told(told[0], row, frozenset(found), bits)

    def _in_place(self, op: int, part: int) -> bool:
        return self.ops[part] == op and op in self.nested and len(self.told[part].inner) <= _MOST_PARTS

    def _text(self, own: tuple[int, ...]) -> str:
        """The letters of a word; the empty word has no data."""
        if not own:
            return ""
        begin, length = own
        return self.program.blob[begin : begin + length].decode("latin-1")


def _content(op: int, own: tuple[int, ...], parts: list[_Told]) -> Iterator[bytes]:
    """What determines an operation that is none of those above."""
    told = [part.found for part in parts]
    if op == _UNORDERED:  # the separator, required members, optional members, members that may be repeated
        required, last = 1 + own[2], len(told) - (own[3] > 0)
        told[1:required] = sorted(told[1:required])
        told[required:last] = sorted(told[required:last])
    yield np.array(own, "<i4").tobytes()
    yield from told


def _in_a_row(parts: list[_Told]) -> list[_Part]:
    """The parts of a concatenation, with consecutive words combined into one."""
    found: list[_Part] = []
    word = ""
    for part in parts:
        known = part.row
        for each in known if 0 < len(known) <= _MOST_IN_A_ROW else (part.found,):
            if isinstance(each, str):
                word += each
                continue
            if word:
                found.append(word)
                word = ""
            found.append(each)
    return [*found, word] if word or not found else found


def _instructions(
    code: tuple[int, ...],
) -> tuple[list[int], list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Of each instruction of a program's code its kind, its operands that are instructions, and its other data."""
    ops, parts, own = list[int](), list[tuple[int, ...]](), list[tuple[int, ...]]()
    for op, first, end in instructions(code):
        middle = first if op in _LEAVES else end - _OWN.get(op, 0)
        ops.append(op)
        parts.append(code[first:middle])
        own.append(code[middle:end])
    return ops, parts, own


def _kept(remembered: _Remembered, key: tuple[int, Any], make: Callable[[Any], _Told]) -> _Told:
    """The description of a leaf: what is remembered, or what ``make`` makes of its content."""
    known = remembered.get(key)
    if known is None:
        known = remembered[key] = make(key[1])
    return known


def _of_text(text: str) -> _Told:
    return _Told(_of_parts((text,)), (text,))


def _of_bytes(row: bytes) -> _Told:
    bits = int.from_bytes(row, "little")
    if bits.bit_count() == 1:
        letter = chr(bits.bit_length() - 1)
        return _Told(_of_parts((letter,)), (letter,), bits=bits)
    return _Told(_hash(_TAGS[_BYTES], row), bits=bits)


def _of_parts(parts: Sequence[_Part]) -> bytes:
    if len(parts) == 1:
        part = parts[0]
        return part if isinstance(part, bytes) else _hash(b"word", part.encode("latin-1"))
    told = [_TAGS[_CONCAT]]
    for part in parts:
        if isinstance(part, bytes):
            told += b"\1", part
        else:
            told += b"\0", len(part).to_bytes(8, "little"), part.encode("latin-1")
    return sha256(b"".join(told)).digest()


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
