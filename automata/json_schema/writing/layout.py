"""How a JSON text is written: its spelling, and where white space may occur in it, as expressions between tokens.

A ``Layout`` describes all of this. The values of ``whitespace``:

``"flexible"``: after an opening bracket, before a closing one and after a comma there may be nothing, one space, or a
line break and up to ``MOST_INDENT`` spaces; after a colon nothing or one space. So it includes every text of
``json.dumps``, with compact or default separators or an ``indent`` of up to ``MOST_INDENT`` spaces in all, and no model
can write white space without end. Empty brackets contain nothing. ``"compact"``: no white space. ``"pretty"``: each
member and each item on a line of its own, and one space after the colon. Anything else is a regular expression for the
white space at every place inside of a value where JSON allows it.

``separators`` and ``indent`` are exactly those of ``json.dumps``. With ``indent`` the indentation of a line depends on
its depth, which no finite set of rules expresses for all depths: each level has its own layout, and below
``MOST_LEVELS`` levels an array or object is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    concat,
    literal,
    optional,
    repeat,
    union,
)
from tokenfst.automata.json_values.strings import Spelling
from tokenfst.automata.regex.translate import regex
from tokenfst.common.plurals import counted
from tokenfst.errors import ConstraintError, PatternError

MOST_INDENT = 64

_SPACE = literal(b" ")


MOST_LEVELS = 32

Surrounding = Literal["none", "flexible"]
Differs = Literal["", "alone", "one of several"]
"""Whether a value must differ from the other items of its array: ``""`` if not; ``"alone"`` if it must, and the array
requires at most one item; otherwise ``"one of several"``.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The spelling, and the white space at each place of a text.

    ``opened`` follows an opening bracket, ``closing`` precedes a closing one, ``empty`` is between the brackets of an
    empty array or object; ``comma`` and ``colon`` are these characters with the white space around them. ``around``:
    what may precede and follow the whole value. ``inner``: the layout inside of an array or object; ``None`` if it is
    the same. Layouts are compared by identity.
    """

    spelling: Spelling
    opened: Expr
    closing: Expr
    empty: Expr
    comma: Expr
    colon: Expr
    around: Expr = EPSILON
    inner: Layout | None = None


@lru_cache(maxsize=64)
def layout(
    whitespace: str = "flexible",
    *,
    spelling: Spelling = "plain",
    separators: tuple[str, str] | None = None,
    indent: int | None = None,
    surrounding: Surrounding = "none",
) -> Layout:
    """The layout of these settings; equal settings share one object.

    Raises ConstraintError for a pattern that matches other texts than JSON's white space or no text at all, and for
    settings that contradict each other.
    """
    line = concat(literal(b"\n"), repeat(_SPACE, 0, MOST_INDENT))
    gap = union(EPSILON, _SPACE, line)
    make = partial(Layout, spelling, around=gap if surrounding == "flexible" else EPSILON)
    if separators is not None or indent is not None:
        if whitespace != "flexible":
            given = "separators" if indent is None else "indent"
            raise ConstraintError(
                f"whitespace={whitespace!r} and {given} both say what stands between tokens"
            )
        default = (", ", ": ") if indent is None else (",", ": ")
        comma, colon = _separators(default if separators is None else separators)
        if indent is None:
            return make(EPSILON, EPSILON, EPSILON, comma, colon)
        return _indented(make, indent, comma, colon)
    if whitespace == "compact":
        return make(EPSILON, EPSILON, EPSILON, literal(b","), literal(b":"))
    if whitespace == "pretty":
        return make(line, line, EPSILON, concat(literal(b","), line), literal(b": "))
    if whitespace == "flexible":
        return make(gap, gap, EPSILON, concat(literal(b","), gap), concat(literal(b":"), optional(_SPACE)))
    try:
        allowed = regex(whitespace)
    except PatternError as error:
        error.add_note(f"in whitespace={whitespace!r}, which is none of 'flexible', 'compact' and 'pretty'")
        raise
    answer = regex(r"[ \t\n\r]*").includes(allowed)
    if not answer:
        raise ConstraintError(
            f"whitespace must be 'flexible', 'compact', 'pretty', or a pattern of JSON white space; the pattern "
            f"{whitespace!r} matches {answer.witness!r}"
        )
    if allowed.is_empty():
        raise ConstraintError(f"whitespace={whitespace!r} matches no text, not even the empty one")
    gap = allowed.expr
    return make(gap, gap, gap, concat(gap, literal(b","), gap), concat(gap, literal(b":"), gap))


def _separators(given: tuple[str, str]) -> list[Expr]:
    """The comma and the colon with the given white space around them."""
    for text, sign in zip(given, (",", ":"), strict=True):
        if len(text) > MOST_INDENT:
            raise ConstraintError(
                f"a separator of {counted(len(text), 'character')}: {MOST_INDENT} are the most"
            )
        if text.strip(" \t\n\r") != sign:
            raise ConstraintError(
                f"separators={given!r}: {text!r} must be {sign!r} and JSON white space around it"
            )
    return [literal(text.encode()) for text in given]


def _indented(make: Callable[..., Layout], indent: int, comma: Expr, colon: Expr) -> Layout:
    """The layout of ``json.dumps(indent=indent)``, level by level, innermost first."""
    if not 0 <= indent <= MOST_INDENT:
        raise ConstraintError(f"indent={indent} must be from 0 to {MOST_INDENT}")

    def line(level: int) -> Expr:
        return literal(b"\n" + b" " * (indent * level))

    if indent == 0:
        return make(line(0), line(0), EPSILON, concat(comma, line(0)), colon)
    found = make(EMPTY, EMPTY, EPSILON, EMPTY, colon)
    for level in reversed(range(MOST_LEVELS)):
        found = make(
            line(level + 1), line(level), EPSILON, concat(comma, line(level + 1)), colon, inner=found
        )
    return found
