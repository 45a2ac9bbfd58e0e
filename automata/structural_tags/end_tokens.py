"""Tags that end with an end token of the vocabulary, which also ends the whole text.

An end token is allowed where a text is complete; it is not a letter of a language. So the words of such a tag are of
two kinds: those with another end after the content, which more text may follow, and those that consist of the beginning
and the content only, which nothing may follow. This module collects the second kind. A tag has such words only if it
can be the last part of the whole text: everything that the format requires after it must allow the empty text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenfst.automata.expressions.expression import EMPTY, Expr, concat, repeat, union
from tokenfst.automata.structural_tags.closing import OPEN
from tokenfst.automata.structural_tags.documents.formats import (
    AnyText,
    AnyTokens,
    ConstString,
    Format,
    GrammarText,
    JsonSchema,
    Or,
    Pattern,
    Repeat,
    Separated,
    Sequence,
    Tag,
    TokenTriggered,
    Triggered,
)

if TYPE_CHECKING:
    from tokenfst.automata.structural_tags.building import Builder


def stopping(builder: Builder, format: Format) -> Expr:
    """The words of a format whose last tag an end token of the vocabulary ends; EMPTY if there are none."""
    if isinstance(format, Tag):
        return builder.stopped(format)
    if isinstance(format, Or):
        return union(*(stopping(builder, each) for each in format.elements))
    if isinstance(format, Sequence):
        found = []
        for number, each in enumerate(format.elements):
            over = all(_may_be_empty(builder, rest) for rest in format.elements[number + 1 :])
            last = stopping(builder, each) if over else EMPTY
            if last is not EMPTY:
                found.append(concat(*(builder.expr(part, OPEN) for part in format.elements[:number]), last))
        return union(*found)
    if isinstance(format, Repeat):
        low, high = format.low, format.high
        last = EMPTY if high == 0 else stopping(builder, format.content)
        if last is EMPTY:
            return EMPTY
        before = builder.expr(format.content, OPEN)
        return concat(repeat(before, max(low - 1, 0), None if high is None else high - 1), last)
    if isinstance(format, Separated):
        last = union(*(stopping(builder, tag) for tag in format.tags))
        if last is EMPTY or format.stop_after_first:
            return last
        tags, separator = builder.separated(format)
        return concat(repeat(concat(tags, separator)), last)
    if isinstance(format, (Triggered, TokenTriggered)):
        return builder.stopped_behind_triggers(format)
    return EMPTY


def _may_be_empty(builder: Builder, format: Format) -> bool:
    """Whether a format has the empty word."""
    if isinstance(format, ConstString):
        return not format.value
    if isinstance(format, (JsonSchema, GrammarText, Pattern)):
        return builder.leaf(format).accepts(b"")
    if isinstance(format, Tag):
        return format.begin == "" and "" in format.ends and _may_be_empty(builder, format.content)
    if isinstance(format, Sequence):
        return all(_may_be_empty(builder, each) for each in format.elements)
    if isinstance(format, Or):
        return any(_may_be_empty(builder, each) for each in format.elements)
    if isinstance(format, Repeat):
        return format.low == 0 or _may_be_empty(builder, format.content)
    if isinstance(format, Separated):
        return not format.at_least_one or any(_may_be_empty(builder, tag) for tag in format.tags)
    if isinstance(format, (Triggered, TokenTriggered)):
        return not format.at_least_one
    return isinstance(format, AnyText) or (isinstance(format, AnyTokens) and format.low == 0)
