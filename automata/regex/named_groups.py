r"""Named groups that stand for a language inside a pattern: ``(?P<QUOTED_TEXT>)``, ``(?P<SUBSTRING_OF>abc)``, ...

The names are those of Koo, Liu and He (2024), table 1. Additions are WORDS_OF and CHUNKS_OF (substrings that end at the
end of a word or a chunk), ALL_OF and NONE_OF (the texts in all of several patterns, and in none of them). The text
between a group's brackets is its arguments: patterns, separated by ``|``. SUBSTRING_OF, WORDS_OF and CHUNKS_OF take
texts, written as patterns without operators, such as the result of ``re.escape``. These groups are hidden from the
parser of ``re`` (``pattern``); the translator of ``regex`` resolves them here.

Flags of the surrounding group apply to the patterns in it. Look-around in arguments is rejected, because it would need
the text outside the group. Three groups are one token of a class (``pieces.tokens``); IMAGE is rejected beside
look-around, which is defined for text only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from tokenfst.automata.characters.classes import TEXT, is_cased
from tokenfst.automata.expressions.expression import EPSILON, Expr, TokenName, tokens
from tokenfst.automata.pieces import text as text_groups
from tokenfst.automata.pieces import tokens as token_groups
from tokenfst.automata.pieces.substrings import substring_of
from tokenfst.automata.regex.parse import LITERAL, Pattern, ReservedGroup
from tokenfst.errors import PatternError, PatternSyntaxError, UnsupportedPatternError

_COUNTS = {
    "QUOTED_TEXT": (0, 0, "nothing"),
    "UNQUOTED_TEXT": (0, 0, "nothing"),
    "TEXT_UNTIL": (1, None, "the pattern of the stop phrase"),
    "SUBSTRING_OF": (1, None, "a text, as re.escape writes it"),
    "WORDS_OF": (1, None, "a text, as re.escape writes it"),
    "CHUNKS_OF": (1, None, "texts: one|another"),
    "ALL_OF": (1, None, "patterns: one|another"),
    "NONE_OF": (1, None, "patterns: one|another"),
    "DELIMITED_LIST": (2, 2, "two patterns: item|separator"),
    "DELIMITED_SUBSEQUENCE_OF": (2, None, "at least two patterns: item|item|...|separator"),
}
_TOKEN_CLASSES = {
    "TEXT_TOKEN": token_groups.TEXT_TOKEN,
    "PARAGRAPH_TOKEN": token_groups.PARAGRAPH_TOKEN,
    "IMAGE": tokens(TokenName("IMAGE", special=False)),
}
NAMES = (*_COUNTS, *_TOKEN_CLASSES)
"""The names that are reserved for these groups."""

_PLAIN_TEXT = re.compile(r"(?:[^\\.^$*+?{}\[\]|()#\s]|[ \n]|\\[^0-9A-Za-z])*")


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """The group ``number`` of a pattern, with the ``flags`` that apply to it."""

    pattern: Pattern
    number: int
    flags: int

    def expr(self, translate: Callable[..., Expr]) -> Expr:
        """The expression of the group's language. ``translate`` is ``translate.expression``.

        Raises PatternSyntaxError for arguments of the wrong number or form, UnsupportedPatternError for look-around in
        them and around IMAGE, with the position in the whole pattern.
        """
        name, parts = self._group.name, self._group.parts()
        if name in _TOKEN_CLASSES:
            if parts:
                self._fail(f"between its brackets {name} takes nothing")
            if name == "IMAGE" and self.pattern.asserting[id(self.pattern.tree)]:
                self._fail(
                    "look-around and anchors read on over text, and an image is none; leave them out beside IMAGE",
                    UnsupportedPatternError,
                )
            return _TOKEN_CLASSES[name]
        low, high, wanted = _COUNTS[name]
        if len(parts) < low or (high is not None and len(parts) > high):
            self._fail(f"between its brackets {name} takes {wanted}")
        if name in ("SUBSTRING_OF", "WORDS_OF", "CHUNKS_OF"):
            return self._substrings(name)
        if name == "TEXT_UNTIL":
            stop = self._pattern(*self._inside, translate)
            if stop is EPSILON:
                self._fail("TEXT_UNTIL needs a stop phrase that has characters")
            return text_groups.until(stop, self.pattern.budget)
        return self._combined(name, [self._pattern(*part, translate) for part in parts])

    def _substrings(self, name: str) -> Expr:
        """The language of a group whose arguments are texts."""
        if name == "CHUNKS_OF":
            return text_groups.chunks([self._text(*part) for part in self._group.parts()])
        text = self._text(*self._inside)
        return substring_of(text, words=name == "WORDS_OF", budget=self.pattern.budget).expr

    def _combined(self, name: str, parts: list[Expr]) -> Expr:
        """The language of a group whose arguments are patterns, or which has none."""
        match name:
            case "QUOTED_TEXT":
                return text_groups.quoted('"')
            case "UNQUOTED_TEXT":
                return text_groups.unquoted()
            case "ALL_OF":
                return text_groups.all_of(parts)
            case "NONE_OF":
                return text_groups.none_of(parts)
            case "DELIMITED_LIST":
                source = self._shown[self._group.begin : self._group.end]
                return text_groups.listed(parts[0], parts[1], 1, None, source)
        *items, separator = parts
        return text_groups.subsequence(items, separator)

    @property
    def _group(self) -> ReservedGroup:
        return self.pattern.reserved[self.number]

    @property
    def _inside(self) -> tuple[int, int]:
        """The start and end of the content of the brackets."""
        return self._group.begin, self._group.end

    @property
    def _shown(self) -> str:
        assert isinstance(self.pattern.text, str), "reserved groups stand in str patterns only"
        return self.pattern.text

    def _pattern(self, begin: int, end: int, translate: Callable[..., Expr]) -> Expr:
        """An argument that is a pattern."""
        part = self._parsed(begin, end)
        if part.asserting[id(part.tree)]:
            self._fail(
                f"look-around in an argument of {self._group.name} cannot see what follows the group; put it outside",
                UnsupportedPatternError,
                begin,
            )
        try:
            return translate(part)
        except PatternError as error:
            raise self._moved(error, begin) from None

    def _parsed(self, begin: int, end: int) -> Pattern:
        """An argument as ``re`` parses it."""
        flags = self.flags & ~TEXT
        try:
            return Pattern(self._shown[begin:end], flags, self.pattern.budget, reserved=NAMES)
        except PatternError as error:
            raise self._moved(error, begin) from None

    def _text(self, begin: int, end: int) -> str:
        """An argument that is a text."""
        if not self.flags & re.VERBOSE and _PLAIN_TEXT.fullmatch(self._shown, begin, end):
            text = re.sub(r"\\(.)", r"\1", self._shown[begin:end], flags=re.DOTALL)
        else:
            items = self._parsed(begin, end).tree.data
            if any(op is not LITERAL for op, _ in items):
                self._fail(
                    f"{self._group.name} takes a text, and this pattern has operators; write it as re.escape does"
                )
            text = "".join(chr(code) for _, code in items)
        if self.flags & re.IGNORECASE and any(is_cased(ord(each), self.flags) for each in text):
            self._fail(
                f"ignoring case does not reach into {self._group.name}; write (?-i:...) around it",
                UnsupportedPatternError,
            )
        return text

    def _moved(self, error: PatternError, begin: int) -> PatternError:
        """An error of an argument, with its place in the whole pattern."""
        return type(error)(error.message, self._shown, begin + error.position)

    def _fail(
        self, message: str, kind: type[PatternError] = PatternSyntaxError, at: int | None = None
    ) -> NoReturn:
        """Raise for this group, at its opening bracket or at a place in it."""
        opening = self._group.begin - len(f"(?P<{self._group.name}>")
        raise kind(message, self._shown, opening if at is None else at)
