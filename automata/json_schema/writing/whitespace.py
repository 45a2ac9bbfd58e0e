"""Where white space may stand in a JSON text, as expressions between tokens.

``"flexible"``: after an opening bracket, before a closing one and after a comma there may be nothing, one space, or a
line break and up to ``MOST_INDENT`` spaces; after a colon nothing or one space. So every text of ``json.dumps``, with
compact or default separators or an ``indent`` of up to ``MOST_INDENT`` spaces in all, is there, and no model can write
blanks without end. Empty brackets hold nothing. ``"compact"``: none. ``"pretty"``: each member and each item on a line
of its own, and one space after the colon. Anything else is a regular expression for what may stand at every place
where JSON allows white space inside of a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tokenfst.automata.expressions.expression import EPSILON, Expr, concat, literal, optional, repeat, union
from tokenfst.automata.regex.translate import regex
from tokenfst.errors import ConstraintError

MOST_INDENT = 64

_SPACE = literal(b" ")


@dataclass(frozen=True, slots=True)
class Layout:
    """``opened`` follows an opening bracket, ``closing`` precedes a closing one, ``empty`` stands between the two;
    ``comma`` and ``colon`` are those signs with what stands around them."""

    opened: Expr
    closing: Expr
    empty: Expr
    comma: Expr
    colon: Expr


@lru_cache(maxsize=16)
def layout(whitespace: str) -> Layout:
    """The layout of a policy, one object for each. ConstraintError for a pattern that matches more than JSON's white
    space, or nothing."""
    if whitespace == "compact":
        return Layout(EPSILON, EPSILON, EPSILON, literal(b","), literal(b":"))
    line = concat(literal(b"\n"), repeat(_SPACE, 0, MOST_INDENT))
    if whitespace == "pretty":
        return Layout(line, line, EPSILON, concat(literal(b","), line), literal(b": "))
    if whitespace == "flexible":
        gap = union(EPSILON, _SPACE, line)
        colon = concat(literal(b":"), optional(_SPACE))
        return Layout(gap, gap, EPSILON, concat(literal(b","), gap), colon)
    allowed = regex(whitespace)
    answer = regex(r"[ \t\n\r]*").includes(allowed)
    if not answer:
        raise ConstraintError(
            f"whitespace={whitespace!r} is none of 'flexible', 'compact', 'pretty', and as a pattern it matches "
            f"{answer.witness!r}, which is no JSON white space"
        )
    if allowed.is_empty():
        raise ConstraintError(f"whitespace={whitespace!r} matches no text, not even the empty one")
    gap = allowed.expr
    return Layout(gap, gap, gap, concat(gap, literal(b","), gap), concat(gap, literal(b":"), gap))
