"""The captures of a reading by trying one way after the other, as Perl's matchers do: slow and obviously right.

``first`` yields the ways to read a text from a place, the preferred one first; a way is where it ends and what it has
captured. A body that was empty is not read once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tokenfst import Language
from tokenfst.automata.captures.trees import Call, Choice, Group, Leaf, Reading, Repeat, Sequence, Tree
from tokenfst.automata.expressions.expression import Expr

Span = tuple[str, int, int]
Way = tuple[int, tuple[Span, ...]]


def first(tree: Tree, rules: Mapping[str, Tree], data: bytes, at: int) -> Iterator[Way]:
    """All ways to read from a place, in their order."""
    match tree:
        case Leaf(words, longest, inner):
            assert isinstance(words, Expr)
            ends = [end for end in range(at, len(data) + 1) if Language(words).accepts(data[at:end])]
            for end in reversed(ends) if longest else ends:
                spans = []
                for reading in inner:
                    found = captures(reading, data[at:end])
                    assert found is not None
                    spans += [(name, begin + at, stop + at) for name, begin, stop in found]
                yield end, tuple(spans)
        case Sequence(parts):
            yield from _sequence(parts, rules, data, at)
        case Choice(parts):
            for part in parts:
                yield from first(part, rules, data, at)
        case Group(name, part):
            for end, spans in first(part, rules, data, at):
                yield end, ((name, at, end), *spans)
        case Call(rule):
            yield from first(rules[rule], rules, data, at)
        case Repeat(part, low, high, greedy):
            yield from _repeat(part, low, high, greedy, rules, data, at)


def _sequence(parts: tuple[Tree, ...], rules: Mapping[str, Tree], data: bytes, at: int) -> Iterator[Way]:
    if not parts:
        yield at, ()
        return
    for middle, spans in first(parts[0], rules, data, at):
        for end, others in _sequence(parts[1:], rules, data, middle):
            yield end, spans + others


def _repeat(
    part: Tree, low: int, high: int | None, greedy: bool, rules: Mapping[str, Tree], data: bytes, at: int
) -> Iterator[Way]:
    if low:
        for middle, spans in first(part, rules, data, at):
            rest = _repeat(part, low - 1, None if high is None else high - 1, greedy, rules, data, middle)
            for end, others in rest:
                yield end, spans + others
        return

    def again() -> Iterator[Way]:
        if high == 0:
            return
        for middle, spans in first(part, rules, data, at):
            if middle == at:
                yield at, spans
                continue
            rest = _repeat(part, 0, None if high is None else high - 1, greedy, rules, data, middle)
            for end, others in rest:
                yield end, spans + others

    if greedy:
        yield from again()
        yield at, ()
    else:
        yield at, ()
        yield from again()


def captures(reading: Reading, data: bytes) -> tuple[Span, ...] | None:
    """What the first way to read all of a text captures, as it begins; None if there is no way."""
    return next(
        (spans for end, spans in first(reading.start, reading.rules, data, 0) if end == len(data)), None
    )


# --- beginnings of texts --------------------------------------------------------------------------------

Open = tuple[str, int, int | None]
Begun = tuple[int | None, tuple[Open, ...]]
"""Where a way ends, ``None`` if it goes on after the text, and what it has captured; what is open has no end."""


def begun(tree: Tree, data: bytes, at: int) -> Iterator[Begun]:
    """All ways to read the beginning of a text from a place, in their order. For trees without rules."""
    match tree:
        case Leaf(words, longest, _):
            assert isinstance(words, Expr)
            language, rest = Language(words), data[at:]
            ends: list[int | None] = [
                end for end in range(at, len(data) + 1) if language.accepts(data[at:end])
            ]
            if language.viable_prefix(rest) == len(rest) and language.next_bytes(rest)[0]:
                ends.append(None)
            for end in reversed(ends) if longest else ends:
                yield end, ()
        case Sequence(parts):
            yield from _begun_sequence(parts, data, at)
        case Choice(parts):
            for part in parts:
                yield from begun(part, data, at)
        case Group(name, part):
            for end, spans in begun(part, data, at):
                yield end, ((name, at, end), *spans)
        case Repeat(part, low, high, greedy):
            yield from _begun_repeat(part, low, high, greedy, data, at)
        case _:
            raise AssertionError("a tree without rules")


def _begun_sequence(parts: tuple[Tree, ...], data: bytes, at: int) -> Iterator[Begun]:
    if not parts:
        yield at, ()
        return
    for middle, spans in begun(parts[0], data, at):
        if middle is None:
            yield None, spans
            continue
        for end, others in _begun_sequence(parts[1:], data, middle):
            yield end, spans + others


def _begun_repeat(
    part: Tree, low: int, high: int | None, greedy: bool, data: bytes, at: int
) -> Iterator[Begun]:
    def again() -> Iterator[Begun]:
        if high == 0:
            return
        for middle, spans in begun(part, data, at):
            if middle is None or (middle == at and not low):
                yield middle, spans
                continue
            fewer = None if high is None else high - 1
            for end, others in _begun_repeat(part, max(low - 1, 0), fewer, greedy, data, middle):
                yield end, spans + others

    if low:
        yield from again()
    elif greedy:
        yield from again()
        yield at, ()
    else:
        yield at, ()
        yield from again()


def captures_of_beginning(reading: Reading, data: bytes) -> tuple[Open, ...] | None:
    """What the first way that goes on after the text has captured."""
    return next((spans for end, spans in begun(reading.start, data, 0) if end is None), None)
