"""Patterns of ECMA-262 as trees of groups, and back-references to groups that match finitely many texts.

A pattern *searches*: it may match anywhere. "Any text" is added at both ends, and pushed inward through groups and
alternatives to the places where a ``^`` or ``$`` cancels it, so that ``^(a|b)$`` is as simple as ``(a|b)``.

A back-reference is not regular unless its group matches finitely many texts. In that case the alternative that
contains both is replaced by one alternative for each of these texts, in which the text replaces the group and the
references to it. This is exact if the group has always matched when the reference is reached: it precedes the
reference in the same alternative, and nothing around it that ends before the reference is repeated or has other
alternatives.

Cost: an alternative is copied once for each text of a group that is referred to, at most ``_MOST_WORDS`` times, and
all copies together have at most ``_MOST_ITEMS`` items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tokenfst.automata.expressions.expression import Dfa

PLAIN = "(?:"
BEGIN, END = r"\A", r"\Z"
_MOST_WORDS = 1_000
_MOST_ITEMS = 100_000

Piece = tuple[str, int]
"""Text for Python, and its position in the given pattern."""


@dataclass(slots=True)
class Reference:
    """A back-reference to a group, by its number or name. ``spelled`` writes a character in the form in which it is
    matched.
    """

    position: int
    group: int | str
    spelled: Callable[[str], str]
    repeated: list[Piece] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    """The content of parentheses, or the whole pattern. ``number``: of a capturing group, from 1."""

    position: int
    opening: str = PLAIN
    alternatives: list[list[list[Piece] | Group | Reference]] = field(default_factory=lambda: [[]])
    repeated: list[Piece] = field(default_factory=list)
    number: int = 0
    name: str | None = None

    def write(self, out: list[Piece], left: str, right: str) -> None:
        """Write the group for Python, with the texts ``left`` and ``right`` around it, pushed inward if possible."""
        if self.repeated or self.opening != PLAIN:
            out.append((left, self.position))
            self._write_inside(out, "", "")
            out += (*self.repeated, (right, self.position))
        else:
            self._write_inside(out, left, right)

    def _write_inside(self, out: list[Piece], left: str, right: str) -> None:
        out.append((self.opening, self.position))
        for number, alternative in enumerate(self.alternatives):
            if number:
                out.append(("|", self.position))
            if not alternative:
                out.append((left or right, self.position))
            last = len(alternative) - 1
            for k, item in enumerate(alternative):
                before, after = left if k == 0 else "", right if k == last else ""
                if isinstance(item, Group):
                    item.write(out, before, after)
                    continue
                assert not isinstance(item, Reference)
                anchor, place = item[0]
                out.append(("" if anchor == BEGIN else before, place))
                out += item
                out.append(("" if anchor == END else after, place))
        out.append((")", self.position))

    def parts(self) -> Iterator[list[Piece] | Group | Reference]:
        """The contents, at any depth."""
        waiting: list[Group] = [self]
        while waiting:
            for alternative in waiting.pop().alternatives:
                for item in alternative:
                    yield item
                    if isinstance(item, Group):
                        waiting.append(item)


Item = list[Piece] | Group | Reference


class References:
    """Removes the back-references of one pattern."""

    def __init__(self, words: Callable[[Group], list[str] | None], spelled: Callable[[str], str]) -> None:
        """``words``: the texts that a group matches, if they are few and do not depend on the surrounding text.
        ``spelled`` writes one character.
        """
        self._words, self._spelled = words, spelled
        self._items = 0

    def resolve(self, whole: Group) -> Reference | None:
        """Rewrite the pattern in place. Returns the first reference that has to remain, if there is one."""
        waiting = [(whole, False)]
        while waiting:
            group, behind = waiting.pop()
            behind |= group.opening.startswith("(?<")
            if not behind:
                group.alternatives = [self._alternative(each) for each in group.alternatives]
            waiting += [
                (item, behind) for each in group.alternatives for item in each if isinstance(item, Group)
            ]
        return next((each for each in whole.parts() if isinstance(each, Reference)), None)

    def _alternative(self, items: list[Item]) -> list[Item]:
        """The items, with the first group written out that a later reference refers to."""
        items = _flat(items)
        for k, item in enumerate(items):
            if not isinstance(item, Group) or not item.number or item.repeated:
                continue
            names = {item.number, item.name}
            rest = items[k + 1 :]
            if not any(each.group in names for each in _references(rest)):
                continue
            words = self._words(item)
            self._items += (len(words or ()) + 1) * (1 + sum(1 for _ in Group(0, PLAIN, [rest]).parts()))
            if words is None or self._items > _MOST_ITEMS:
                return items
            ways: list[list[Item]] = [
                [*_literal(word, item.position, self._spelled), *_put(rest, names, word)] for word in words
            ]
            return [*items[:k], Group(item.position, PLAIN, ways)]
        return items


def _flat(items: list[Item]) -> list[Item]:
    """The items without groups around them that have no effect."""
    found: list[Item] = []
    waiting = list(reversed(items))
    while waiting:
        item = waiting.pop()
        inside = isinstance(item, Group) and any(
            isinstance(each, Group) and each.number
            for alternative in item.alternatives
            for each in alternative
        )
        if isinstance(item, Group) and inside and _is_bare(item):
            waiting += reversed(item.alternatives[0])
        else:
            found.append(item)
    return found


def _is_bare(group: Group) -> bool:
    return not group.number and not group.repeated and group.opening == PLAIN and len(group.alternatives) == 1


def _references(items: list[Item]) -> Iterator[Reference]:
    return (each for each in Group(0, PLAIN, [items]).parts() if isinstance(each, Reference))


def _put(items: list[Item], names: set[int | str | None], word: str) -> list[Item]:
    """A copy of the items with a word in place of the references to a group."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, Reference) and item.group in names:
            literal = _literal(word, item.position, item.spelled)
            found.append(Group(item.position, PLAIN, [literal], item.repeated))
        elif isinstance(item, Group) and any(_references([item])):
            found.append(replace(item, alternatives=[_put(each, names, word) for each in item.alternatives]))
        else:
            found.append(item)
    return found


def _literal(word: str, position: int, spelled: Callable[[str], str]) -> list[Item]:
    return [[(spelled(character), position)] for character in word]


def few_words(dfa: Dfa) -> list[str] | None:
    """The words of an automaton over UTF-8, if there are at most ``_MOST_WORDS``."""
    if dfa.start == 0:
        return []
    rows, accepting = dfa.table[:, dfa.classes].tolist(), dfa.accepting.tolist()
    found: list[str] = []
    pending = [(dfa.start, b"")]
    while pending:
        state, word = pending.pop()
        if len(word) >= len(rows):  # a state occurs twice
            return None
        if accepting[state]:
            found.append(word.decode())
        pending += ((target, word + bytes([byte])) for byte, target in enumerate(rows[state]) if target)
        if len(found) + len(pending) > _MOST_WORDS:
            return None
    return sorted(found)
