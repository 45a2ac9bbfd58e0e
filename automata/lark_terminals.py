r"""Terminals of a Lark grammar as languages.

The idea: as in lark, a terminal is one regular expression, its parts and the terminals it names written into
it, so that look-around inside of a terminal sees all of the terminal. ``regex`` gives it its meaning,
named groups included.

One thing is not regular expressions' usual meaning: lazy quantifiers. In ``re.fullmatch`` they mean the same
as greedy ones, in a lexer they do not: ``/".*?"/`` ends at the first quotation mark. An alternative of a
terminal that holds a lazy quantifier therefore matches *as little as possible*: a word of which a shorter
beginning matches too is not a word. An alternative whose end is greedy as well wants both and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tokenfst.automata.expression import ANY_BYTE, UNIVERSE, Expr, complement, concat, intersect, union
from tokenfst.automata.named_groups import NAMES
from tokenfst.automata.pattern import BRANCH, MAX_REPEAT, MIN_REPEAT, SUBPATTERN, Pattern
from tokenfst.automata.regex import expression
from tokenfst.budget import Budget
from tokenfst.errors import UnsupportedPatternError

MAX_PATTERN = 1_000_000
"""Characters of a terminal with the terminals it names written out."""

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}
_LAZY = re.compile(r"[*+?}]\?")


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


def expression_of(alternatives: list[str], parsed: Mapping[str, Pattern], budget: Budget | None) -> Expr:
    """The expression of a terminal's alternatives, of which some are ``parsed`` already. Raises as ``regex`` does."""
    if any(_LAZY.search(each) and _is_lazy(_parsed(each, parsed, budget)) for each in alternatives):
        return union(*(_shortest(_parsed(each, parsed, budget)) for each in alternatives))
    pattern = alternatives[0] if len(alternatives) == 1 else grouped(alternatives)
    return expression(parsed.get(pattern, pattern), 0, budget, named_groups=True)


def _parsed(pattern: str, parsed: Mapping[str, Pattern], budget: Budget | None) -> Pattern:
    return parsed.get(pattern) or Pattern(pattern, 0, budget or Budget(), reserved=NAMES)


def _is_lazy(pattern: Pattern) -> bool:
    stack = [pattern.tree]
    while stack:
        for op, argument in stack.pop().data:
            if op is MIN_REPEAT and argument[0] != argument[1]:
                return True
            stack += _inside(op, argument)
    return False


def _shortest(pattern: Pattern) -> Expr:
    whole = expression(pattern)
    if not _is_lazy(pattern):
        return whole
    if _ends_greedily(pattern.tree):
        raise UnsupportedPatternError(
            "this holds a lazy quantifier, so it matches as little as possible, and a greedy one at its end; "
            "make them alternatives or terminals of their own",
            pattern.text,
            0,
        )
    return intersect(whole, complement(concat(whole, ANY_BYTE, UNIVERSE)))


def _ends_greedily(tree: Any) -> bool:
    ends = [tree]
    while ends:
        items = ends.pop().data
        if not items:
            continue
        op, argument = items[-1]
        if op is MAX_REPEAT:
            if argument[0] != argument[1]:
                return True
            ends.append(argument[2])
        elif op is BRANCH or op is SUBPATTERN:
            ends += _inside(op, argument)
    return False


def _inside(op: Any, argument: Any) -> list[Any]:
    """The parts of a node that consume text."""
    if op is SUBPATTERN:
        return [argument[3]]
    if op is BRANCH:
        return list(argument[1])
    return [argument[2]] if op is MIN_REPEAT or op is MAX_REPEAT else []
