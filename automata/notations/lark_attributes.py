r"""The attributes that llguidance writes in square brackets after a rule's name: ``word[capture, suffix="\n"]: /.*/``.

``capture``: the name under which ``captures`` reports the text of the rule. ``temperature``: the value that
``matcher.temperature`` reports inside of it. The others are allowed for terminals only. ``lazy`` and ``suffix`` end the
terminal as early as possible: no word is a proper prefix of another word. A ``suffix`` is a part of the text but not of
the capture; ``stop_capture`` captures it under a name. ``stop`` ends the terminal at the same place, but is not a part
of the text: llguidance removes it after it was generated. ``max_tokens``: the greatest number of tokens that have bytes
of the terminal. ``max_chars`` (from xgrammar): the greatest number of characters, without the suffix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from tokenfst.automata.captures.trees import Group, Leaf, Reading, Sequence, names_of
from tokenfst.automata.characters.classes import character_set
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    UNIVERSE,
    Expr,
    complement,
    concat,
    few_tokens,
    intersect,
    repeat,
)
from tokenfst.automata.languages.quotients import before
from tokenfst.automata.notations.parsing.reading import Token
from tokenfst.budget import Budget
from tokenfst.errors import PatternSyntaxError

MOST_TOKENS = 1_000_000
MOST_CHARACTERS = 999_999_999
_KNOWN = {
    "capture": "a name in quotation marks",
    "lazy": "no value",
    "suffix": "a string, a regular expression or a terminal",
    "stop": "a string, a regular expression or a terminal",
    "stop_capture": "a name in quotation marks",
    "max_tokens": f"a number from 1 to {MOST_TOKENS}",
    "max_chars": f"a number from 0 to {MOST_CHARACTERS}",
    "temperature": "a number that is not negative",
}
_OF_TEXTS = ("STRING", "REGEXP", "TERMINAL")
_Fail = Callable[..., NoReturn]


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of one rule.

    ``capture``: the name of its capture. ``lazy``: no word is a proper prefix of another word. ``suffix``: the text
    that ends it; ``stop_capture``: the name of the suffix's capture. ``stop``: a text that would end it, and is left
    out. ``max_tokens``: the greatest number of tokens that have bytes of it. ``max_chars``: the greatest number of
    characters of its terminal. ``temperature``: the temperature of the tokens in it.
    """

    capture: str | None = None
    lazy: bool = False
    suffix: Token | None = None
    stop: Token | None = None
    stop_capture: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    max_chars: int | None = None

    @property
    def end(self) -> Token | None:
        """The suffix or stop that ends a word; None if there is neither."""
        return self.suffix if self.suffix is not None else self.stop

    @property
    def ends_early(self) -> bool:
        """Whether a word ends at the first place where it can."""
        return self.lazy or self.end is not None

    @property
    def of_terminal(self) -> bool:
        """Whether the rule must be a terminal."""
        return self.ends_early or self.max_tokens is not None or self.max_chars is not None


def read_attributes(rule: Token, tree: Any | None, place: Callable[[Token], int], fail: _Fail) -> Attributes:
    """The attributes of a rule. ``fail`` raises the error for a position."""
    given: dict[str, Token | None] = {}
    for attribute in tree.children if tree is not None else ():
        name, *value = attribute.children
        at = place(name)
        if str(name) not in _KNOWN:
            fail(
                f"unknown rule attribute {str(name)!r}; expected one of {', '.join(_KNOWN)}",
                at,
                PatternSyntaxError,
            )
        if str(name) in given:
            fail(f"the attribute {str(name)!r} is given twice", at, PatternSyntaxError)
        given[str(name)] = value[0] if value else None
        if not _fits(str(name), given[str(name)]):
            fail(f"{str(name)!r} takes {_KNOWN[str(name)]}", at, PatternSyntaxError)
        if str(name) == "suffix" and str(value[0]).rstrip("i") == '""':
            fail("the suffix is empty: write lazy instead, or remove it", at, PatternSyntaxError)
    if "stop" in given and "suffix" in given:
        message = "'stop' and 'suffix' are given together: use 'stop' to leave the ending out, or 'suffix' to keep it"
        fail(message, place(rule), PatternSyntaxError)
    if "stop_capture" in given and "suffix" not in given:
        message = (
            "'stop_capture' needs a 'suffix': add one, or remove 'stop_capture'"
            if "stop" not in given
            else "'stop_capture' names what 'stop' leaves out of the text: write suffix=... for a text that has it"
        )
        fail(message, place(rule), PatternSyntaxError)
    stop = given.get("stop")
    return Attributes(
        _name(given["capture"], rule) if "capture" in given else None,
        "lazy" in given,
        given.get("suffix"),
        None
        if stop is None or stop == '""'
        else stop,  # an empty stop means the end of the text, which bounds nothing
        _name(given["stop_capture"], rule) if "stop_capture" in given else None,
        int(given["max_tokens"] or 0) if "max_tokens" in given else None,
        float(given["temperature"] or 0) if "temperature" in given else None,
        int(given["max_chars"] or 0) if "max_chars" in given else None,
    )


def _fits(name: str, value: Token | None) -> bool:
    """Whether a value is valid for an attribute."""
    kind = None if value is None else value.type
    if name == "lazy":
        return value is None
    if name in ("suffix", "stop"):
        return kind in _OF_TEXTS
    if name == "max_tokens":
        return kind == "NUMBER" and len(str(value)) < 10 and 1 <= int(str(value)) <= MOST_TOKENS
    if name == "max_chars":
        return kind == "NUMBER" and len(str(value)) < 10 and int(str(value)) >= 0
    if name == "temperature":
        return kind in ("NUMBER", "DECIMAL") and 0 <= float(str(value)) < float("inf")
    return kind == "STRING" or (name == "capture" and value is None)


def _name(value: Token | None, rule: Token) -> str:
    return str(rule) if value is None else str(value)[1 : value.rindex('"')]


def with_attributes(
    attributes: Attributes, words: Expr, end: Expr | None, read: Reading | None, budget: Budget | None
) -> tuple[Expr, Reading | None]:
    """The words of a terminal with its attributes, as a new object, and how they are parsed for captures. ``end``: the
    words of its suffix or stop; ``read``: how the terminal's own words are parsed.
    """
    if (most := attributes.max_chars) is not None:
        character = character_set(((0, MAX_CODE_POINT),), True)
        words = intersect(words, repeat(character, 0, most, f"max_chars={most}"))
    found = words
    if attributes.ends_early:
        whole = words if end is None else concat(words, end)
        found = intersect(whole, complement(concat(whole, ANY_BYTE, UNIVERSE)))
    if attributes.stop is not None and end is not None:
        found = intersect(words, before(found, end, budget))
    if attributes.max_tokens is not None:
        found = few_tokens(found, attributes.max_tokens)
    inner = () if read is None else (read,)
    body = Leaf(words, longest=not attributes.lazy and attributes.suffix is None, inner=inner)
    start = Group(attributes.capture, body) if attributes.capture is not None else body
    tree: Any = start
    if attributes.suffix is not None and end is not None:
        name = attributes.stop_capture
        tree = Sequence((start, Leaf(end) if name is None else Group(name, Leaf(end))))
    names = names_of(tree, {})
    return found, Reading(tree, names, refusal=read.refusal if read else "") if names else None
