r"""Terminals of a Lark grammar as languages.

The idea: as in lark, a terminal is one regular expression, its parts and the terminals it names written into
it, so that look-around inside of a terminal sees all of the terminal. ``regex`` gives it its meaning,
named groups included.

A lexer asks ``re.match`` and not ``re.fullmatch``: a word of a terminal is a text that ``re.match`` takes all of. So
``/".*?"/`` ends at the first quotation mark, and ``/a|ab/`` is never "ab" (``leftmost``). Of alternatives that are
written in Lark's notation, lark tries the longer ones first, and so does ``in_order``.

With look-around, what can be told is whether each word is its own match, or whether ending always comes first; then a
word of which a shorter beginning matches too is not a word. What is neither is refused.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    UNIVERSE,
    Expr,
    complement,
    concat,
    intersect,
    union,
)
from tokenfst.automata.regex import leftmost
from tokenfst.automata.regex.named_groups import NAMES
from tokenfst.automata.regex.parse import (
    BRANCH,
    MAX_REPEAT,
    MAXREPEAT,
    MIN_REPEAT,
    SUBPATTERN,
    Pattern,
    deepest_group,
)
from tokenfst.automata.regex.translate import expression
from tokenfst.budget import Budget
from tokenfst.errors import UnsupportedPatternError

MAX_PATTERN = 1_000_000
"""Characters of a terminal with the terminals it names written out."""

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}
_OPAQUE = re.compile(r"\\[\s\S]|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]")
"""Escapes and classes of characters."""
_GROUP = re.compile(r"\([^()]*\)")


def unescape(spelled: str) -> str | int:
    """The text that the inside of a lark string stands for, or where in it an escape is malformed."""
    broken: list[int] = []

    def one(match: re.Match[str]) -> str:
        digits = match[1] or match[2] or match[3]
        if digits:
            code = int(digits, 16)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                broken.append(match.start())
                return ""
            return chr(code)
        if match[4] in "xuU":
            broken.append(match.start())
        return _PLAIN.get(match[4], match[0])

    text = _ESCAPE.sub(one, spelled)
    return broken[0] if broken else text


def grouped(alternatives: list[str]) -> str:
    """Alternatives as one pattern that can stand inside of another."""
    return f"(?:{'|'.join(alternatives)})"


def with_flags(pattern: str, flags: str) -> str:
    """A pattern under flags; a comment at the end of a verbose one does not swallow the bracket."""
    if not flags:
        return pattern
    return f"(?{''.join(sorted(set(flags)))}:{pattern}{chr(10) if 'x' in flags else ''})"


@dataclass(frozen=True, slots=True)
class Body:
    """Alternatives as patterns, those that are tried first in front; how many characters their words have at least
    and at most, and how long lark's pattern for all of them is: what it puts alternatives in order by.
    ``written``: how long it is as a part of others. ``bare``: lark writes no brackets around them, wherever it writes
    them."""

    patterns: list[str]
    low: int
    high: int
    size: int
    written: int
    bare: bool = False

    def repeated(self, low: int, high: int | None, times: str) -> Body:
        """Repetition by bounds that are written as ``times``."""
        most = MAXREPEAT if high is None else min(self.high * high, MAXREPEAT)
        size = self.written + len(times) + 4
        return Body([grouped(self.patterns) + times], min(self.low * low, MAXREPEAT), most, size, size)


EMPTY_BODY = Body([""], 0, 0, 0, 0)


def in_order(parts: Sequence[Body]) -> Body:
    """Alternatives as lark orders them: those with the longest words first."""
    if len(parts) == 1:
        return parts[0]
    ordered = sorted(parts, key=lambda each: (-each.high, -each.low, -each.size))
    patterns = [pattern for each in ordered for pattern in each.patterns]
    size = sum(each.written + 1 for each in parts) + 3
    return Body(patterns, min(each.low for each in parts), max(each.high for each in parts), size, size)


def one_after_the_other(parts: Sequence[Body]) -> Body:
    """A sequence."""
    if len(parts) == 1:
        return parts[0]
    text = "".join(grouped(each.patterns) for each in parts)
    low, high = (sum(counts) for counts in zip(*((each.low, each.high) for each in parts), strict=True))
    size = sum(each.written for each in parts)
    return Body([text], min(low, MAXREPEAT), min(high, MAXREPEAT), size, size)


def in_all(parts: Sequence[Body]) -> Body:
    """What is in all of them."""
    text = f"(?P<ALL_OF>{'|'.join(grouped(each.patterns) for each in parts)})"
    size = sum(each.written for each in parts)
    return Body([text], max(each.low for each in parts), min(each.high for each in parts), size, size)


def not_in(part: Body) -> Body:
    """The texts that are not in it."""
    return Body([f"(?P<NONE_OF>{grouped(part.patterns)})"], 0, MAXREPEAT, part.written, part.written)


def has_outer_bar(pattern: str) -> bool:
    """Whether there is a ``|`` outside of all groups."""
    plain = _OPAQUE.sub("", pattern)
    while (inner := _GROUP.sub("", plain)) != plain:
        plain = inner
    return "|" in plain


def joined(alternatives: list[str]) -> str:
    """Alternatives as one pattern."""
    return alternatives[0] if len(alternatives) == 1 else grouped(alternatives)


def expression_of(
    alternatives: list[str], parsed: MutableMapping[str, Pattern], budget: Budget | None
) -> Expr:
    """The expression of a terminal's alternatives, of which some are ``parsed`` already. Raises as ``regex`` does."""
    whole = parse_pattern(joined(alternatives), parsed, budget)
    if leftmost.is_orderly(whole):
        return _meaning(whole, budget)
    made = leftmost.read(whole, budget or Budget())
    if made is not None:
        return made.expr(budget or Budget()) if made.hides else _meaning(whole, budget)
    if leftmost.is_certain(whole, budget or Budget()):
        return _meaning(whole, budget)
    if len(alternatives) == 1:
        return _alternative(whole, budget)
    words = [expression_of([each], parsed, budget) for each in alternatives]
    if whole.reserved:
        return union(*words)
    hidden = [concat(union(*words[:k]), ANY_BYTE, UNIVERSE) for k in range(1, len(words))]
    return union(
        words[0],
        *(intersect(each, complement(over)) for each, over in zip(words[1:], hidden, strict=True)),
    )


def _alternative(pattern: Pattern, budget: Budget | None) -> Expr:
    """What is not read by ``leftmost``."""
    if pattern.reserved:
        return _shortest(pattern) if _is_lazy(pattern) else _meaning(pattern, budget)
    if leftmost.is_shortest(pattern, budget or Budget()):
        return _shortest(pattern)
    raise UnsupportedPatternError(
        "a shorter match may hide a longer one here, and beside look-around or a repetition of what may be empty it "
        "cannot be told where; write longer alternatives first, or as terminals of their own",
        pattern.text,
        0,
    )


def _meaning(pattern: Pattern, budget: Budget | None) -> Expr:
    return expression(pattern, 0, budget, named_groups=True)


def parse_pattern(text: str, parsed: MutableMapping[str, Pattern], budget: Budget | None) -> Pattern:
    """A pattern as ``re`` parses it, which is ``parsed`` then."""
    try:
        if text not in parsed:
            parsed[text] = Pattern(text, 0, budget or Budget(), reserved=NAMES)
        return parsed[text]
    except RecursionError:
        pass
    # Outside of the handler, where the stack is shallow again.
    message = "groups are nested too deeply here; flatten the terminal"
    raise UnsupportedPatternError(message, text, deepest_group(text))


def _is_lazy(pattern: Pattern) -> bool:
    stack = [pattern.tree]
    while stack:
        for op, argument in stack.pop().data:
            if op is MIN_REPEAT and argument[0] != argument[1]:
                return True
            stack += _inside(op, argument)
    return False


def _shortest(pattern: Pattern) -> Expr:
    """The words that begin with no other."""
    whole = expression(pattern)
    return intersect(whole, complement(concat(whole, ANY_BYTE, UNIVERSE)))


def _inside(op: Any, argument: Any) -> list[Any]:
    """The parts of a node that consume text."""
    if op is SUBPATTERN:
        return [argument[3]]
    if op is BRANCH:
        return list(argument[1])
    return [argument[2]] if op is MIN_REPEAT or op is MAX_REPEAT else []
