"""How texts are cut into parts: the readings that constraints with named groups or rules bring with them.

The idea: a reading is a pattern with an order among the ways to read a text. Of several ways the first one counts, as
in Perl and Python: the first alternative before the second, greedy repetitions go on before they stop, lazy ones stop
before they go on, decisions further left come first. A part in which nothing is named is one ``Leaf``, which takes as
much as it can, and as little as it can where it is lazy; so what it holds need not be known.

Invariant: the words of a reading are those of its constraint; or more, where it is only asked about those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.expressions.program import Program


class HasProgram(Protocol):
    """A constraint, as the native core reads it."""

    def program(self) -> Program:
        """The program."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A word of an expression, or of a constraint. ``longest``: which of several lengths comes first. ``inner``: how
    that word is read in its turn, each by itself."""

    words: Expr | HasProgram
    longest: bool = True
    inner: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """One part after the other."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of the parts, the first one first."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """``low`` to ``high`` times a part; ``greedy``: rather once more than not."""

    part: Tree
    low: int = 0
    high: int | None = None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Heat:
    """What stands for a name where a part is not captured, but says the temperature of the tokens that it reads."""

    temperature: float


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A part with a name. ``ignored``: what is left out where the part ends with it."""

    name: str | Heat
    part: Tree
    ignored: Leaf | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A rule of the reading."""

    rule: str


Tree = Leaf | Sequence | Choice | Repeat | Group | Call


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """``start`` is the tree of whole texts, ``rules`` what it calls, ``names`` the groups in it, in their order.
    ``refusal``: why texts cannot be read; the names are all that is known then, and whether some part that cannot be
    read says a temperature: ``heated``."""

    start: Tree
    names: tuple[str, ...]
    rules: Mapping[str, Tree] = field(default_factory=dict)
    refusal: str = ""
    heated: bool = False


def of(words: Expr, reading: Reading | None) -> Tree:
    """The tree of a part that may have a reading, which has no rules then."""
    return Leaf(words) if reading is None else reading.start


def joined(start: Tree, readings: Iterable[Reading | None]) -> Reading | None:
    """A tree made of the trees of readings without rules; None if no part has one."""
    known = [reading for reading in readings if reading is not None]
    if not known:
        return None
    names = dict.fromkeys(name for reading in known for name in reading.names)
    refusal = next((reading.refusal for reading in known if reading.refusal), "")
    heated = any(reading.heated for reading in known)
    return Reading(start, tuple(names), refusal=refusal, heated=heated)


def within(words: Expr | HasProgram, readings: Iterable[Reading | None]) -> Reading | None:
    """The reading of a constraint whose words are among those of others (an intersection, a difference): each reads the
    whole text."""
    known = tuple(reading for reading in readings if reading is not None)
    return joined(Leaf(words, inner=known), known)


def names_of(start: Tree, rules: Mapping[str, Tree]) -> tuple[str, ...]:
    """The names in a tree and in the rules that it calls, in the order in which they stand."""
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


def is_heated(start: Tree, rules: Mapping[str, Tree]) -> bool:
    """Whether a part of the tree, or of the rules that it calls, says a temperature."""
    entered: set[str] = set()
    stack = [start]
    while stack:
        match stack.pop():
            case Leaf(inner=inner):
                if any(is_heated(reading.start, reading.rules) for reading in inner):
                    return True
            case Sequence(parts) | Choice(parts):
                stack += parts
            case Repeat(part):
                stack.append(part)
            case Group(name, part):
                if isinstance(name, Heat):
                    return True
                stack.append(part)
            case Call(rule):
                if rule not in entered:
                    entered.add(rule)
                    stack.append(rules[rule])
    return False
