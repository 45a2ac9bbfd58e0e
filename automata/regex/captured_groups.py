"""How texts of patterns with named groups are parsed: ``(?P<year>[0-9]{4})-(?P<month>[0-9]{2})``.

The result is a ``Reading`` (``captures.trees``), by which the texts of the groups are found.

The order among parses is that of ``re``, so the groups have the spans that ``re.fullmatch`` gives them; all matches of
a repeated group are captured, not only the last. A part without alternatives becomes one leaf, repeated or not; all
other parts keep their form.

Look-around and anchors inside a pattern depend on the surrounding text, which a reading does not see: they are rejected
when captures are requested. Anchors at both ends of the whole pattern have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tokenfst.automata.captures.trees import Choice, Group, Leaf, Reading, Repeat, Sequence, Tree
from tokenfst.automata.expressions.expression import EPSILON, Expr
from tokenfst.automata.regex.parse import (
    ASSERT,
    ASSERT_NOT,
    AT,
    BRANCH,
    MAX_REPEAT,
    MAXREPEAT,
    MIN_REPEAT,
    SUBPATTERN,
    Pattern,
    combine_flags,
)

_constants: Any = import_module("re._constants")
_AT_BEGINNING = (_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING)
_AT_END = (_constants.AT_END, _constants.AT_END_STRING)
_COMPOSED = (SUBPATTERN, BRANCH, MAX_REPEAT, MIN_REPEAT, AT, ASSERT, ASSERT_NOT)


def captured_groups(pattern: Pattern, plain: Callable[[list[tuple[Any, Any]], int], Expr]) -> Reading | None:
    """The reading of a pattern; None if it has no named groups. ``plain`` translates items without assertions."""
    numbers = {
        int(number): name
        for name, number in pattern.tree.state.groupdict.items()
        if int(number) not in pattern.reserved
    }
    if not numbers:
        return None
    items = list(pattern.tree.data)
    if items and items[0][0] is AT and items[0][1] in _AT_BEGINNING:
        items = items[1:]
    if items and items[-1][0] is AT and items[-1][1] in _AT_END:
        items = items[:-1]
    try:
        start = _Reader(pattern, numbers, plain).sequence(items, pattern.flags)
    except _LooksAround:
        refusal = (
            f"the captures of {pattern.text!r} cannot be told: it looks around (anchors, look-ahead, look-behind). "
            "Intersect a pattern that has the groups with one that looks around: regex(groups) & regex(conditions)"
        )
        return Reading(Leaf(EPSILON), tuple(numbers.values()), refusal=refusal)
    return Reading(start, tuple(numbers.values()))


class _LooksAround(Exception):
    """A part of a pattern depends on the text around it."""


class _Reader:
    def __init__(
        self,
        pattern: Pattern,
        names: dict[int, str],
        plain: Callable[[list[tuple[Any, Any]], int], Expr],
    ) -> None:
        self.pattern, self.names, self.plain = pattern, names, plain

    def sequence(self, items: list[tuple[Any, Any]], flags: int) -> Tree:
        """The items in sequence. Adjacent items without a choice are one leaf."""
        parts: list[Tree] = []
        run: list[tuple[Any, Any]] = []
        for item in items:
            if item[0] not in _COMPOSED:
                run.append(item)
                continue
            if run:
                parts.append(Leaf(self.plain(run, flags)))
                run = []
            parts.append(self.item(*item, flags))
        if run:
            parts.append(Leaf(self.plain(run, flags)))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def item(self, op: Any, argument: Any, flags: int) -> Tree:
        """An item that is composed of others."""
        if op is SUBPATTERN:
            number, added, removed, body = argument
            if number in self.pattern.reserved:
                return Leaf(self.plain([(op, argument)], flags))
            part = self.sequence(body.data, combine_flags(flags, added, removed))
            return Group(self.names[number], part) if number in self.names else part
        if op is BRANCH:
            return Choice(tuple(self.sequence(each.data, flags) for each in argument[1]))
        if op is MAX_REPEAT or op is MIN_REPEAT:
            low, high, body = argument
            greedy = op is MAX_REPEAT
            if body.data and not any(each[0] in _COMPOSED for each in body.data):
                return Leaf(self.plain([(op, argument)], flags), greedy)
            part = self.sequence(body.data, flags)
            return Repeat(part, low, None if high is MAXREPEAT else high, greedy)
        raise _LooksAround
