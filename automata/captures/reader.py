"""``Reader``: the captures of texts of one constraint.

A ``Reader`` holds the instructions of a reading; each text is a separate ``Run``, so a reader may be shared by threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import tokenfst._native as _native
from tokenfst.automata.captures.code import Code
from tokenfst.automata.captures.run import Run, Saved, listed
from tokenfst.automata.captures.trees import Reading, Temperature
from tokenfst.automata.captures.values import Capture, Captures
from tokenfst.automata.expressions.expression import TokenName
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError

Part = bytes | Callable[[TokenName], bool] | None
"""A part of a text: bytes; a token without bytes, given as a predicate on token names; or ``None`` for the end of a
text token.
"""


class Reader:
    """The parser of captures of one constraint.

    Raises ConstraintError if the captures of the reading are not defined, BudgetExceeded.
    """

    def __init__(self, reading: Reading, budget: Budget) -> None:
        if reading.refusal:
            raise ConstraintError(reading.refusal)
        self.names = reading.names
        try:
            self.code = Code(reading, budget)
        except RecursionError:
            raise BudgetExceeded("levels of nesting", 300, "the groups around named groups") from None

    def run(self) -> Run:
        """A new run, which reads a text byte by byte."""
        return Run(self.code)

    def captures(self, parts: Sequence[Part], *, whole: bool | None = None) -> Captures | None:
        """The captures of a text that is given in parts; ``None`` if it has no parse.

        ``whole``: parse it only as a complete text (True), only as a prefix of one (False), or as a complete text if
        possible, otherwise as a prefix (None).
        """
        saved = _best(self.code, parts, whole)
        data = b"".join(part for part in parts if isinstance(part, bytes))
        if saved == ():
            return None
        found: Captures = {name: [] for name in self.names}
        for capture in _captured(self.code, saved, data, 0):  # type: ignore[arg-type]
            found[capture.name].append(capture)
        return found

    def closed(self, name: str | int, begin: int, end: int, data: bytes | bytearray) -> Iterable[Capture]:
        """The captures that a saved start and end of ``name`` in ``data`` give."""
        return _of_span(self.code, name, begin, end, data, 0)


def feed_parts(run: Run, parts: Iterable[Part]) -> None:
    """Feed parts to a run. Raises BudgetExceeded."""
    for part in parts:
        if isinstance(part, bytes):
            run.feed(part)
        elif part is None:
            run.boundary()
        else:
            run.token(part)


def _best(code: Code, parts: Sequence[Part], whole: bool | None) -> Saved | tuple[()]:
    """The saved positions of the preferred parse of a text; ``()`` if there is none."""
    run = Run(code)
    feed_parts(run, parts)
    if whole or (whole is None and run.ended != ()):
        return run.ended
    ways = run.all_saved()
    return ways[0] if ways else ()


def _captured(code: Code, saved: Saved, data: bytes, offset: int) -> Iterable[Capture]:
    """The captures of saved positions, in the order of their starts. ``offset``: the position of ``data`` in the whole
    text.
    """
    begun: list[tuple[str | int, int]] = []
    ends: list[int | None] = []
    open_: dict[str | int, list[int]] = {}
    for name, begins, place in listed(saved) or ():
        if isinstance(name, Temperature):
            continue
        if begins:
            open_.setdefault(name, []).append(len(begun))
            begun.append((name, place))
            ends.append(None)
        else:
            ends[open_[name].pop()] = place
    for (name, begin), end in zip(begun, ends, strict=True):
        yield from _of_span(code, name, begin, end, data, offset)


def _of_span(
    code: Code, name: str | int, begin: int, end: int | None, data: bytes | bytearray, offset: int
) -> Iterable[Capture]:
    """The captures of a group, or of a leaf that is parsed again, from ``begin`` to ``end``."""
    if isinstance(name, str):
        if end is not None and name in code.ignored:
            end = _without(code.leaves[code.ignored[name]], data, begin, end)
        yield Capture(name, offset + begin, None if end is None else offset + end, bytes(data[begin:end]))
        return
    part = bytes(data[begin:end])
    for inner in code.inner[name]:
        found = _best(inner, [part], end is not None)
        if found != ():
            yield from _captured(inner, found, part, offset + begin)  # type: ignore[arg-type]


def _without(ignored: _native.ByteAutomaton, data: bytes | bytearray, begin: int, end: int) -> int:
    """The end of a part without the longest ignored word at its end."""
    walk = _native.ByteWalk(ignored)
    reached: dict[int, int] = {}  # the first position that leads to each configuration
    for place in range(begin, end):
        reached.setdefault(0, place)
        onward: dict[int, int] = {}
        for at, first in reached.items():
            to = walk.advance(at, data[place])
            if to >= 0:
                onward[to] = min(first, onward.get(to, first))
        reached = onward
    return min((first for at, first in reached.items() if walk.accepting(at)), default=end)
