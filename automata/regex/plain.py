r"""Plain patterns, which the native core reads: characters, classes, groups without names, which may have flags,
alternatives and counts.

The core makes the nodes that ``translate`` would make, and answers the questions of ``leftmost`` for terminals of
grammars, without a tree of ``re._parser``. All other patterns are left to ``parse`` and ``translate``: those with flags
of the whole pattern, named groups, look-around, and all errors.

A class (``[a-z]``, ``\d``, ``.``) is read by ``re._parser`` when it first occurs, so its meaning is that of the running
Python; the result is kept. So is a class under flags, ``(?i:[a-z])``, and a character whose case is ignored.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tokenfst._native import PlainPattern, read_pattern
from tokenfst.automata.characters.classes import IN, LITERAL, NEGATE, is_cased, leaf, members
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.regex.parse import Pattern, combine_flags, shorten
from tokenfst.budget import Budget
from tokenfst.errors import PatternError

MOST_COUNTED = 1 << 40
"""The greatest number of positions that the core counts. Python, whose integers have no bound, counts more."""
_MOST_KEPT = 4096
_DEFAULT = Budget()

_Class = tuple[int, bool, object, Expr | None, bytes, str]
"""A class: its code point if it is a single character, else -1; whether ``re._parser`` merges it with alternatives that
are classes too; its tree, one object for equal trees; its expression; its ranges as pairs of uint32; and its text.
"""


class _Classes(dict[str, _Class | None]):
    """Classes by their texts; None for a text that ``re`` or ``Pattern`` refuses, which names the place."""

    def __init__(self) -> None:
        super().__init__()
        self.trees: dict[Any, Any] = {}

    def __missing__(self, text: str) -> _Class | None:
        if len(self) >= _MOST_KEPT:
            self.clear()
            self.trees.clear()
        try:
            pattern = Pattern(text, 0, _DEFAULT)
        except PatternError:
            return None
        found = self[text] = self.read(pattern, text)
        return found

    def read(self, pattern: Pattern, text: str) -> _Class | None:
        """The class that is the whole pattern, or all of a group with flags."""
        items, flags = pattern.tree.data, pattern.flags
        if text.startswith("(?"):
            [(_, (_, added, removed, body))] = items
            items, flags = body.data, combine_flags(flags, added, removed)
            text = text[text.index(":") + 1 : -1]
        if len(items) != 1:
            return None
        [(op, argument)] = items
        if op is LITERAL and not (flags & re.IGNORECASE and is_cased(argument, flags)):
            return argument, True, None, None, b"", text
        key = (op, tuple(argument) if op is IN else argument)
        ranges = np.array(members(op, argument, flags), np.uint32).tobytes()
        is_positive = op is LITERAL or (op is IN and argument[0][0] is not NEGATE)
        return (
            -1,
            is_positive,
            self.trees.setdefault(key, key),
            leaf(op, argument, flags),
            ranges,
            text,
        )


_classes = _Classes()


def read_plain(pattern: str, budget: Budget | None) -> PlainPattern | None:
    """A plain pattern; None for others, and for those with more positions than the budget allows."""
    return read_pattern(pattern, _classes, shorten, min((budget or _DEFAULT).positions, MOST_COUNTED))
