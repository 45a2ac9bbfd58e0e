r"""The split patterns of tokenizers as prioritized automata over kinds of characters.

A tokenizer first splits a text into pieces, match by match of one pattern (``pat_str`` of tiktoken, ``pattern`` of
Tekken), leftmost first, with alternatives and greedy repetitions by preference, as in Perl. Such a match is a list of
threads in order of preference (Pike's simulation): the boundaries depend on the order, so a set of states does not
suffice.

Characters that no class of the pattern distinguishes are one *kind*; Tekken's pattern has ten. Kind 0 consists of the
code points that are unassigned in Python's Unicode tables, and of surrogates. A tokenizer built on later tables may
treat unassigned code points as letters, so texts that contain one are not supported.

Supported are: literals, ``\r \n \t \s \S \p{..} \P{..}``, classes, groups, ``(?i:...)`` of ASCII, ``?  *  +  {m,n}``,
lazy quantifiers, possessive ones of single characters, ``$`` at the end of the text, and ``(?!x)`` for a single
character x. A possessive ``x*+`` is ``x*(?!x)``. Everything else is rejected with ``TokenizationError``; nothing is
guessed. So are repetitions of what may be empty, which backtracking ends after an empty round, and properties where
case is ignored.

Source: Thompson (1968), Pike's simulation as in R. Cox, "Regular expression matching: the virtual machine approach"
(2009); the semantics is that of Rust's ``fancy-regex``, which tiktoken uses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from tokenfst.automata.characters.properties import binary_property, general_category
from tokenfst.errors import TokenizationError

CODE_POINTS = 0x110000
MAX_INSTRUCTIONS = 4096
"""Maximum length of a pattern's program; counted repetitions are expanded."""

_Set = npt.NDArray[np.bool_]
_LETTER = re.compile(r"\\([pP])\{([A-Za-z_]+)\}|\\([pP])([A-Z])")
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}", re.ASCII)
_ESCAPES = {"r": "\r", "n": "\n", "t": "\t"}
_SIMPLE_FOLDS = {"s": "\u017f", "k": "\u212a"}
"""Characters beyond ASCII that equal an ASCII letter if case is ignored."""


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a pattern's program.

    ``kinds``: as bits, the kinds that are consumed, or for ``op`` ``"not"`` those that must not come next. ``to``: the
    next instructions, in order of preference.
    """

    op: str
    kinds: int = 0
    to: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitPattern:
    """A compiled pattern. ``source``: the pattern; ``kind``: the kind of each code point, uint8 (0x110000,);
    ``num_kinds``: the number of kinds, kind 0 included; ``program``: its instructions, from the start to the match.
    """

    source: str
    kind: npt.NDArray[np.uint8]
    num_kinds: int
    program: tuple[Step, ...]


@lru_cache(maxsize=8)
def split_pattern(source: str) -> SplitPattern:
    """Compile a pattern; linear in its length and in the number of code points. Raises ``TokenizationError``."""
    reader = _Reader(source)
    tree = reader.alternatives(False)
    if reader.at < len(source):
        reader.refuse("a ) too many")
    unassigned = np.zeros(CODE_POINTS, np.bool_)
    _add(unassigned, general_category("Cn") or ())
    _add(unassigned, [(0xD800, 0xDFFF)])
    if len(reader.sets) > 60:
        raise TokenizationError(f"the split pattern {source!r} has more than 60 classes of characters")
    signature = np.zeros(CODE_POINTS, np.int64)
    for index, members in enumerate(reader.sets):
        signature |= members.astype(np.int64) << index
    found, kind = np.unique(signature[~unassigned], return_inverse=True)
    if len(found) > 250:
        raise TokenizationError(
            f"the split pattern {source!r} tells {len(found)} kinds of characters apart, over 250"
        )
    kinds = np.zeros(CODE_POINTS, np.uint8)
    kinds[~unassigned] = kind + 1
    bits = [sum(2 << k for k in np.flatnonzero(found >> i & 1).tolist()) for i in range(len(reader.sets))]
    return SplitPattern(source, kinds, len(found) + 1, _program(tree, bits, source))


# --- reading --------------------------------------------------------------------------------------------------------

_Tree = tuple[str, tuple["_Tree", ...], int, int, bool]
"""A parsed node: its kind, its parts, two numbers (a set; or least and most), and whether it is greedy."""


def _node(op: str, parts: Sequence[_Tree] = (), low: int = 0, high: int = 0, greedy: bool = True) -> _Tree:
    return op, tuple(parts), low, high, greedy


def _may_be_empty(tree: _Tree) -> bool:
    op, parts, low, *_ = tree
    if op in ("set", "not"):
        return op == "not"
    if op == "repeat" and low == 0:
        return True
    return (any if op == "either" else all)(map(_may_be_empty, parts))


class _Reader:
    def __init__(self, source: str) -> None:
        self.source, self.at, self.depth = source, 0, 0
        self.sets: list[_Set] = []

    def refuse(self, what: str) -> NoReturn:
        raise TokenizationError(
            f"the tokenizer's split pattern has {what} at position {self.at}, for which there is no exact automaton "
            f"here: {self.source!r}"
        )

    def take(self, text: str) -> bool:
        if self.source.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def next(self) -> str:
        if self.at >= len(self.source):
            self.refuse("an end too early")
        self.at += 1
        return self.source[self.at - 1]

    def alternatives(self, folded: bool) -> _Tree:
        self.depth += 1
        if self.depth > 50:
            self.refuse("groups nested too deeply")
        branches = [self.sequence(folded)]
        while self.take("|"):
            branches.append(self.sequence(folded))
        self.depth -= 1
        return branches[0] if len(branches) == 1 else _node("either", branches)

    def sequence(self, folded: bool) -> _Tree:
        parts = []
        while self.at < len(self.source) and self.source[self.at] not in "|)":
            parts.append(self.repeated(self.atom(folded)))
        return _node("all", parts)

    def repeated(self, atom: _Tree) -> _Tree:
        count = _COUNT.match(self.source, self.at)
        if count:
            self.at = count.end()
            low = int(count[1])
            high = low if not count[2] else int(count[3]) if count[3] else -1
        elif self.at < len(self.source) and self.source[self.at] in "?*+":
            low, high = {"?": (0, 1), "*": (0, -1), "+": (1, -1)}[self.next()]
        else:
            return atom
        if low > 100 or high > 100 or -1 < high < low:
            self.refuse("such a count")
        if atom[0] == "not":
            self.refuse("a repeated look-ahead")
        if high != 1 and _may_be_empty(atom):
            self.refuse("a repetition of what may be empty")
        if self.take("?"):
            return _node("repeat", [atom], low, high, False)
        if not self.take("+"):
            return _node("repeat", [atom], low, high)
        if atom[0] != "set":
            self.refuse("a possessive repetition of more than one character")
        barred = _node("not", low=atom[2])
        if high < 0:
            return _node("all", [_node("repeat", [atom], low, high), barred])
        # Fewer than the maximum only if no further one follows.
        exact = [
            _node("all", [*[atom] * n, *([barred] if n < high else [])]) for n in range(high, low - 1, -1)
        ]
        return _node("either", exact)

    def atom(self, folded: bool) -> _Tree:
        if self.take("(?i:"):
            return self.closed(self.alternatives(True))
        if self.take("(?:"):
            return self.closed(self.alternatives(folded))
        if self.take("(?!"):
            inner = self.closed(self.sequence(folded))
            if inner[0] != "all" or len(inner[1]) != 1 or inner[1][0][0] != "set":
                self.refuse("a look-ahead for more than one character")
            return _node("not", low=inner[1][0][2])
        if self.source.startswith("(?", self.at):
            self.refuse("a group of an unknown kind")
        if self.take("("):
            return self.closed(self.alternatives(folded))
        if self.take("$"):
            return self.of_set(np.ones(CODE_POINTS, np.bool_), "not")
        members = self.members(folded) if self.take("[") else self.one(folded, in_class=False)
        return self.of_set(members, "set")

    def closed(self, tree: _Tree) -> _Tree:
        if not self.take(")"):
            self.refuse("no ) where one belongs")
        return tree

    def of_set(self, members: _Set, op: str) -> _Tree:
        for index, known in enumerate(self.sets):
            if np.array_equal(known, members):
                return _node(op, low=index)
        self.sets.append(members)
        return _node(op, low=len(self.sets) - 1)

    def members(self, folded: bool) -> _Set:
        found = np.zeros(CODE_POINTS, np.bool_)
        negated = self.take("^")
        first = True
        while first or not self.take("]"):
            if self.source[self.at : self.at + 1] in ("[", "]", "^") or self.source[
                self.at : self.at + 2
            ] in (
                "&&",
                "--",
                "~~",
            ):
                self.refuse("an operation on classes")
            first = False
            part = self.one(folded, in_class=True)
            if self.source[self.at : self.at + 1] == "-" and self.source[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                last = self.one(False, in_class=True)
                if part.sum() != 1 or last.sum() != 1 or part.argmax() > last.argmax():
                    self.refuse("an invalid range")
                low, part = int(part.argmax()), np.zeros(CODE_POINTS, np.bool_)
                part[low : int(last.argmax()) + 1] = True
            found |= part
        return ~found if negated else found

    def one(self, folded: bool, in_class: bool) -> _Set:
        """One character, or a named class."""
        found = np.zeros(CODE_POINTS, np.bool_)
        named = _LETTER.match(self.source, self.at)
        if named:
            if folded:
                self.refuse("a property where case is ignored")
            name = named[2] or named[4]
            ranges = general_category(name)
            if ranges is None:
                self.refuse(f"the property {name}")
            self.at = named.end()
            _add(found, ranges)
            return ~found if (named[1] or named[3]) == "P" else found
        if self.take("\\s") or self.take("\\S"):
            _add(found, binary_property("White_Space") or ())
            return ~found if self.source[self.at - 1] == "S" else found
        character = self.next()
        if character == "\\":
            character = self.next()
            if character.isalnum() and character not in _ESCAPES:
                self.refuse(f"the escape \\{character}")
            character = _ESCAPES.get(character, character)
        elif not in_class and character in ".*+?{}^]":
            self.at -= 1
            self.refuse(f"{character!r}")
        found[ord(character)] = True
        if folded:
            if not character.isascii():
                self.refuse("case ignored beyond ASCII")
            for other in (
                character.upper(),
                character.lower(),
                _SIMPLE_FOLDS.get(character.lower(), character),
            ):
                found[ord(other)] = True
        return found


def _add(members: _Set, ranges: Sequence[tuple[int, int]]) -> None:
    for low, high in ranges:
        members[low : high + 1] = True


# --- the program ----------------------------------------------------------------------------------------------------


def _program(tree: _Tree, bits: list[int], source: str) -> tuple[Step, ...]:
    """Instructions, written from the end of the pattern to its start, then reversed."""
    steps: list[Step] = [Step("match")]

    def emit(step: Step) -> int:
        if len(steps) >= MAX_INSTRUCTIONS:
            raise TokenizationError(
                f"the split pattern {source!r} needs more than {MAX_INSTRUCTIONS} instructions"
            )
        steps.append(step)
        return len(steps) - 1

    def write(node: _Tree, then: int) -> int:
        op, parts, low, high, greedy = node
        if op in ("set", "not"):
            return emit(Step("take" if op == "set" else "not", bits[low], (then,)))
        if op == "either":
            return emit(Step("fork", to=tuple(write(part, then) for part in parts)))
        if op == "all":
            for part in reversed(parts):
                then = write(part, then)
            return then
        if high < 0:
            loop = emit(Step("fork"))
            body = write(parts[0], loop)
            steps[loop] = Step("fork", to=(body, then) if greedy else (then, body))
            then = loop
        else:
            after = then
            for _ in range(high - low):
                body = write(parts[0], then)
                then = emit(Step("fork", to=(body, after) if greedy else (after, body)))
        for _ in range(low):
            then = write(parts[0], then)
        return then

    start = write(tree, 0)
    emit(Step("fork", to=(start,)))
    last = len(steps) - 1
    return tuple(Step(s.op, s.kinds, tuple(last - to for to in s.to)) for s in reversed(steps))
