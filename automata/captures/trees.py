"""Capture readings: trees that define how the texts of a constraint with named groups or rules are parsed.

A reading is a pattern with an order on parses. The first parse counts, as in Perl and Python: earlier alternatives
before later ones, greedy repetitions prefer to continue, lazy ones prefer to stop, decisions on the left come first. A
part without names is one ``Leaf``, which matches as much as possible, or as little as possible if it is lazy; its inner
structure is irrelevant.

Invariant: the words of a reading are those of its constraint; or a superset, if it only parses texts of the constraint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.expressions.program import Program


class HasProgram(Protocol):
    """A constraint with a serialized form for the native core."""

    def program(self) -> Program:
        """The constraint as a program, which the native core reads."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A word of an expression or of a constraint, as one part without names.

    ``longest``: whether longer words are preferred; otherwise shorter ones are. ``inner``: readings by which the word
    is parsed again, each independently.
    """

    words: Expr | HasProgram
    longest: bool = True
    inner: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """A concatenation of parts."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of the parts, of which earlier ones are preferred."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """``low`` to ``high`` repetitions of a part (``None``: no upper bound). ``greedy``: whether more are preferred."""

    part: Tree
    low: int = 0
    high: int | None = None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Temperature:
    """A temperature in place of a group's name: the part is not captured, but its tokens are sampled at this
    temperature.
    """

    temperature: float


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A named part. ``ignored``: if the part ends with a word of this leaf, the capture ends before that word."""

    name: str | Temperature
    part: Tree
    ignored: Leaf | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of a rule of the reading."""

    rule: str


Tree = Leaf | Sequence | Choice | Repeat | Group | Call


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """How the texts of a constraint are parsed.

    ``start``: the tree of complete texts. ``rules``: the trees that it calls, by name. ``names``: the names of captures
    in order. ``refusal``: why texts cannot be parsed, or empty; if it is not empty, only the names and
    ``has_temperature`` (whether some part sets a temperature) are known.
    """

    start: Tree
    names: tuple[str, ...]
    rules: Mapping[str, Tree] = field(default_factory=dict)
    refusal: str = ""
    has_temperature: bool = False


def of(words: Expr, reading: Reading | None) -> Tree:
    """The tree of a part: that of its reading, which has no rules, or a ``Leaf`` if it has no reading."""
    return Leaf(words) if reading is None else reading.start


def joined(start: Tree, readings: Iterable[Reading | None]) -> Reading | None:
    """The reading of ``start``, which consists of the trees of ``readings`` without rules; ``None`` if no part has a
    reading.
    """
    known = [reading for reading in readings if reading is not None]
    if not known:
        return None
    names = dict.fromkeys(name for reading in known for name in reading.names)
    refusal = next((reading.refusal for reading in known if reading.refusal), "")
    some = any(reading.has_temperature for reading in known)
    return Reading(start, tuple(names), refusal=refusal, has_temperature=some)


def within(words: Expr | HasProgram, readings: Iterable[Reading | None]) -> Reading | None:
    """The reading of an intersection or a difference: each of ``readings`` parses the whole text independently."""
    known = tuple(reading for reading in readings if reading is not None)
    return joined(Leaf(words, inner=known), known)


def names_of(start: Tree, rules: Mapping[str, Tree]) -> tuple[str, ...]:
    """The names of captures in a tree and in the rules that it calls, in order of occurrence."""
    found: dict[str, None] = {}
    entered: set[str] = set()
    stack = [start]
    while stack:
        match stack.pop():
            case Leaf(inner=inner):
                found.update(dict.fromkeys(name for reading in inner for name in reading.names))
            case Sequence(parts) | Choice(parts):
                stack += reversed(parts)
            case Repeat(part):
                stack.append(part)
            case Group(name, part):
                if isinstance(name, str):
                    found[name] = None
                stack.append(part)
            case Call(rule):
                if rule not in entered:
                    entered.add(rule)
                    stack.append(rules[rule])
    return tuple(found)


def has_temperature(start: Tree, rules: Mapping[str, Tree]) -> bool:
    """Whether a part of the tree, or of the rules that it calls, sets a temperature."""
    entered: set[str] = set()
    stack = [start]
    while stack:
        match stack.pop():
            case Leaf(inner=inner):
                if any(has_temperature(reading.start, reading.rules) for reading in inner):
                    return True
            case Sequence(parts) | Choice(parts):
                stack += parts
            case Repeat(part):
                stack.append(part)
            case Group(name, part):
                if isinstance(name, Temperature):
                    return True
                stack.append(part)
            case Call(rule):
                if rule not in entered:
                    entered.add(rule)
                    stack.append(rules[rule])
    return False
