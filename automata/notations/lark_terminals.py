r"""Terminals of a Lark grammar as languages.

As in lark, a terminal is one regular expression, with its parts and the terminals that it uses inserted, so that
look-around inside of a terminal sees all of it. ``regex`` translates it, named groups included.

A lexer calls ``re.match``, not ``re.fullmatch``: a word of a terminal is a text that ``re.match`` consumes completely.
So ``/".*?"/`` ends at the first quotation mark, and ``/a|ab/`` never matches "ab" (``leftmost``). Of alternatives in
Lark's notation, lark tries those with longer words first; ``in_order`` does the same.

With look-around, only two cases are decided: each word is its own match, or the shortest match always comes first; then
a text with a shorter match is not a word. Look-around in the shorter match sees the whole text, as in ``re.match``.
Other cases are refused.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from tokenfst._native import PlainPattern
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges
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
    ASSERT,
    ASSERT_NOT,
    AT,
    BRANCH,
    MAX_REPEAT,
    MAXREPEAT,
    MIN_REPEAT,
    SUBPATTERN,
    Pattern,
    deepest_group,
)
from tokenfst.automata.regex.plain import read_plain
from tokenfst.automata.regex.translate import expression
from tokenfst.budget import DEFAULT, Budget
from tokenfst.errors import UnsupportedPatternError

_constants: Any = import_module("re._constants")

MAX_PATTERN = 1_000_000
"""The greatest number of characters of a terminal, with the terminals that it uses inserted."""

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}
_OPAQUE = re.compile(r"\\[\s\S]|\[\^?\]?(?:\\[\s\S]|[^\]\\])*\]")
"""Escapes and character classes."""
_GROUP = re.compile(r"\([^()]*\)")
_GLOBAL_FLAGS = re.compile(r"(?:\(\?[aimsux]+\))*")
_AROUND = ("(?=", "(?!", "(?<", "\\b", "\\B")
"""What a pattern that asks about the text around it contains."""
_BOUNDARIES = (_constants.AT_BOUNDARY, _constants.AT_NON_BOUNDARY)


def unescape(spelled: str) -> str | int:
    """The text of a lark string literal, or the position of a malformed escape in it."""
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
    """Alternatives as one pattern that can be used inside of another."""
    return f"(?:{'|'.join(alternatives)})"


def with_flags(pattern: str, flags: str) -> str:
    """A pattern with flags. A comment at the end of a verbose pattern does not hide the closing bracket."""
    if not flags:
        return pattern
    return f"(?{''.join(sorted(set(flags)))}:{pattern}{chr(10) if 'x' in flags else ''})"


class Body(NamedTuple):
    """Alternatives as patterns, in the order in which they are tried.

    Further: the least and greatest number of characters of their words, and the length of lark's pattern for all of
    them, by which lark orders alternatives. ``written``: their length as a part of another pattern. ``bare``: the
    position of a regular expression around which lark puts no brackets, if it is all of them.
    """

    patterns: list[str]
    low: int
    high: int
    size: int
    written: int
    bare: int | None = None

    def repeated(self, low: int, high: int | None, times: str) -> Body:
        """Repetition by bounds that are written as ``times``."""
        most = MAXREPEAT if high is None else min(self.high * high, MAXREPEAT)
        size = self.written + len(times) + 4
        return Body([grouped(self.patterns) + times], min(self.low * low, MAXREPEAT), most, size, size)


EMPTY_BODY = Body([""], 0, 0, 0, 0)


def in_order(parts: Sequence[Body]) -> Body:
    """Alternatives in lark's order: those with the longest words first."""
    if len(parts) == 1:
        return parts[0]
    ordered = sorted(parts, key=lambda each: (-each.high, -each.low, -each.size))
    patterns = [pattern for each in ordered for pattern in each.patterns]
    size = sum(each.written + 1 for each in parts) + 3
    return Body(patterns, min(each.low for each in parts), max(each.high for each in parts), size, size)


def of_words(words: Sequence[str]) -> Body:
    """``in_order`` of strings without flags."""
    patterns = [re.escape(word) for word in sorted(words, key=len, reverse=True)]
    written = sum(map(len, patterns))
    low, high = len(min(words, key=len)), len(max(words, key=len))
    if len(words) == 1:
        return Body(patterns, low, high, low, written)
    size = written + len(words) + 3
    return Body(patterns, low, high, size, size)


def one_after_the_other(parts: Sequence[Body]) -> Body:
    """A sequence."""
    if len(parts) == 1:
        return parts[0]
    text = "".join(grouped(each.patterns) for each in parts)
    low, high = (sum(counts) for counts in zip(*((each.low, each.high) for each in parts), strict=True))
    size = sum(each.written for each in parts)
    return Body([text], min(low, MAXREPEAT), min(high, MAXREPEAT), size, size)


def in_all(parts: Sequence[Body]) -> Body:
    """The texts that match all parts."""
    text = f"(?P<ALL_OF>{'|'.join(grouped(each.patterns) for each in parts)})"
    size = sum(each.written for each in parts)
    return Body([text], max(each.low for each in parts), min(each.high for each in parts), size, size)


def not_in(part: Body) -> Body:
    """The texts that do not match."""
    return Body([f"(?P<NONE_OF>{grouped(part.patterns)})"], 0, MAXREPEAT, part.written, part.written)


def has_outer_bar(pattern: str) -> bool:
    """Whether there is a ``|`` outside of all groups."""
    if "|" not in pattern:
        return False
    plain = _OPAQUE.sub("", pattern)
    while (inner := _GROUP.sub("", plain)) != plain:
        plain = inner
    return "|" in plain


def joined(alternatives: list[str]) -> str:
    """Alternatives as one pattern."""
    return alternatives[0] if len(alternatives) == 1 else grouped(alternatives)


class Patterns:
    """The regular expressions of one grammar by their texts; each is read once."""

    def __init__(self, budget: Budget | None) -> None:
        self.budget = budget
        self._plain: dict[str, PlainPattern | None] = {}
        self._trees: dict[str, Pattern] = {}

    def plain(self, text: str) -> PlainPattern | None:
        """The pattern if it is plain, else None."""
        if text not in self._plain:
            self._plain[text] = read_plain(text, self.budget)
        return self._plain[text]

    def parsed(self, text: str) -> Pattern:
        """The pattern as ``re`` parses it."""
        try:
            return self._tree(text)
        except RecursionError:
            pass
        # Outside of the handler, where the stack is shallow again.
        message = "groups are nested too deeply here; flatten the terminal"
        raise UnsupportedPatternError(message, text, deepest_group(text))

    def _tree(self, text: str) -> Pattern:
        if text not in self._trees:
            self._trees[text] = Pattern(text, 0, self.budget or DEFAULT, reserved=NAMES)
        return self._trees[text]

    def width(self, text: str) -> tuple[int, int]:
        """The least and the greatest number of characters. RecursionError for deeply nested groups."""
        plain = self.plain(text)
        low, high = self._tree(text).tree.getwidth() if plain is None else plain.width()
        return low, min(high, MAXREPEAT)

    def asks_around(self, text: str) -> bool:
        """Whether the pattern asks about the text around the terminal (``asks_around``)."""
        return any(each in text for each in _AROUND) and asks_around(self.parsed(text))

    def first(self, text: str) -> Ranges:
        """The first characters of its words; possibly a superset."""
        plain = self.plain(text)
        if plain is not None and (found := plain.first()) is not None:
            return found
        pattern = self.parsed(text)
        return ((0, MAX_CODE_POINT),) if pattern.reserved else leftmost.Places(pattern, folded=True).first


def expression_of(alternatives: list[str], patterns: Patterns) -> Expr:
    """The expression of a terminal's alternatives. Raises the errors of ``regex``."""
    budget = patterns.budget
    text = joined(alternatives)
    plain = patterns.plain(text)
    is_orderly = None if plain is None else plain.is_orderly()
    if plain is not None and (is_orderly or plain.longer_by() is not None):
        return plain.expr()
    whole = patterns.parsed(text)
    if is_orderly is None and leftmost.is_orderly(whole):
        return _meaning(whole, budget)
    made = leftmost.read(whole, budget or DEFAULT)
    if made is not None:
        return made.expr(budget or DEFAULT) if made.hides else _meaning(whole, budget)
    if leftmost.is_certain(whole, budget or DEFAULT):
        return _meaning(whole, budget)
    if len(alternatives) == 1:
        return _alternative(whole, budget)
    words = [expression_of([each], patterns) for each in alternatives]
    if whole.reserved:
        return union(*words)
    before = itertools.accumulate(alternatives[:-1], "{}|{}".format)
    hidden = [_longer(each, budget) for each in before]
    return union(
        words[0],
        *(intersect(each, complement(over)) for each, over in zip(words[1:], hidden, strict=True)),
    )


def _alternative(pattern: Pattern, budget: Budget | None) -> Expr:
    """An alternative that ``leftmost`` does not support."""
    if pattern.reserved:
        return _shortest(pattern, budget) if _is_lazy(pattern) else _meaning(pattern, budget)
    if leftmost.is_shortest(pattern, budget or DEFAULT):
        return _shortest(pattern, budget)
    raise UnsupportedPatternError(
        "a shorter match may hide a longer one here; with look-around or a repetition of what may be empty this "
        "cannot be decided; write longer alternatives first, or as separate terminals",
        pattern.text,
        0,
    )


def asks_around(pattern: Pattern) -> bool:
    r"""Whether some match ends with look-ahead, begins with look-behind, or does either with ``\b`` or ``\B``: there it
    asks about the text around the terminal, and a terminal sees only its own text. What repeats is passed over, since
    it may ask about its next copy.
    """
    for ahead in (True, False):
        stack = [pattern.tree]
        while stack:
            items = stack.pop().data
            for op, argument in reversed(items) if ahead else items:
                if op is ASSERT or op is ASSERT_NOT:
                    if (argument[0] > 0) == ahead:
                        return True
                    continue
                if op is AT:
                    if argument in _BOUNDARIES:
                        return True
                    continue
                inner, repeats = _inside(op, argument), op is MIN_REPEAT or op is MAX_REPEAT
                if not repeats or argument[1] == 1:
                    stack += inner
                optional = repeats and argument[0] == 0
                if not optional and not any(each.getwidth()[0] == 0 for each in inner):
                    break
    return False


def _meaning(pattern: Pattern, budget: Budget | None) -> Expr:
    return expression(pattern, 0, budget, named_groups=True)


def _is_lazy(pattern: Pattern) -> bool:
    stack = [pattern.tree]
    while stack:
        for op, argument in stack.pop().data:
            if op is MIN_REPEAT and argument[0] != argument[1]:
                return True
            stack += _inside(op, argument)
    return False


def _shortest(pattern: Pattern, budget: Budget | None) -> Expr:
    """The words of which no proper prefix is a match: the shortest match comes first."""
    whole = _meaning(pattern, budget)
    longer = concat(whole, ANY_BYTE, UNIVERSE) if pattern.reserved else _longer(str(pattern.text), budget)
    return intersect(whole, complement(longer))


def _longer(text: str, budget: Budget | None) -> Expr:
    """The texts of which a proper prefix is a match. Look-around in it sees the whole text, not the prefix alone."""
    flags = _GLOBAL_FLAGS.match(text)[0]  # type: ignore[index]  # it matches everywhere
    end = "\n" if "x" in flags else ""
    return expression(f"{flags}(?:{text[len(flags) :]}{end})(?s:.)+", 0, budget)


def _inside(op: Any, argument: Any) -> list[Any]:
    """The parts of a node that consume text."""
    if op is SUBPATTERN:
        return [argument[3]]
    if op is BRANCH:
        return list(argument[1])
    return [argument[2]] if op is MIN_REPEAT or op is MAX_REPEAT else []
