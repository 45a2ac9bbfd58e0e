"""What llguidance writes in square brackets behind a rule's name: ``word[capture, suffix="\\n"]: /.*/``.

``capture`` names what ``captures`` tells. ``lazy`` and ``suffix`` read a terminal as soon as it can end: no word begins
with another one. ``suffix`` is a part of the text and not of the capture; ``stop_capture`` names it. What cannot be
said of texts is refused, with what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from tokenfst.automata.captures.trees import Group, Leaf, Reading, Sequence, names_of
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    UNIVERSE,
    Expr,
    complement,
    concat,
    intersect,
)
from tokenfst.automata.notations.reading import Token
from tokenfst.errors import PatternSyntaxError, UnsupportedPatternError

_REFUSED = {
    "stop": "takes text back that was written, which no constraint can: write suffix=... for text that ends the "
    "rule and stays",
    "max_tokens": "depends on how a text is cut into tokens: bound the characters, /.{0,100}/, or count tokens with "
    "one_token().repeat(0, n), or give the matcher max_new_tokens",
    "temperature": "says how tokens are drawn, and not which texts there are: leave it out, and set the temperature "
    "where you sample",
}
_KNOWN = ("capture", "lazy", "suffix", "stop_capture")
_Fail = Callable[..., NoReturn]


@dataclass(frozen=True, slots=True)
class Attributes:
    """``capture``: the name to capture the rule under. ``lazy``: no word of it begins with another one. ``suffix``:
    what ends it; ``stop_capture``: the name to capture that under."""

    capture: str | None = None
    lazy: bool = False
    suffix: Token | None = None
    stop_capture: str | None = None

    @property
    def ends_early(self) -> bool:
        """Whether words end as soon as they can."""
        return self.lazy or self.suffix is not None


def read_attributes(rule: Token, tree: Any | None, place: Callable[[Token], int], fail: _Fail) -> Attributes:
    """The attributes of a rule; ``fail`` raises for a place."""
    given: dict[str, Token | None] = {}
    for attribute in tree.children if tree is not None else ():
        name, *value = attribute.children
        at = place(name)
        if str(name) in _REFUSED:
            fail(f"{str(name)!r} {_REFUSED[str(name)]}", at, UnsupportedPatternError)
        if str(name) not in _KNOWN:
            fail(
                f"there is no rule attribute {str(name)!r}; there are {', '.join(_KNOWN)}",
                at,
                PatternSyntaxError,
            )
        if str(name) in given:
            fail(f"the attribute {str(name)!r} stands twice", at, PatternSyntaxError)
        given[str(name)] = value[0] if value else None
        wanted = {"lazy": "no value", "suffix": "a string, a regular expression or a terminal"}
        fits = {
            "lazy": not value,
            "suffix": bool(value) and value[0].type in ("STRING", "REGEXP", "TERMINAL"),
            "capture": not value or value[0].type == "STRING",
            "stop_capture": bool(value) and value[0].type == "STRING",
        }
        if not fits[str(name)]:
            fail(
                f"{str(name)!r} takes {wanted.get(str(name), 'a name in quotation marks')}",
                at,
                PatternSyntaxError,
            )
        if str(name) == "suffix" and value and str(value[0]).rstrip("i") == '""':
            fail("an empty suffix ends nothing: write lazy, or leave it out", at, PatternSyntaxError)
    if "stop_capture" in given and "suffix" not in given:
        fail("'stop_capture' names a suffix, and there is none", place(rule), PatternSyntaxError)
    return Attributes(
        _name(given["capture"], rule) if "capture" in given else None,
        "lazy" in given,
        given.get("suffix"),
        _name(given["stop_capture"], rule) if "stop_capture" in given else None,
    )


def _name(value: Token | None, rule: Token) -> str:
    return str(rule) if value is None else str(value)[1 : value.rindex('"')]


def ending_early(
    attributes: Attributes, words: Expr, suffix: Expr | None, read: Reading | None
) -> tuple[Expr, Reading | None]:
    """The words of a terminal that ends as soon as it can, as an object of its own, and how they are read. ``read``:
    how those of the terminal are."""
    whole = words if suffix is None else concat(words, suffix)
    found = intersect(whole, complement(concat(whole, ANY_BYTE, UNIVERSE)))
    inner = () if read is None else (read,)
    body = Leaf(words, longest=False, inner=inner)
    start = Group(attributes.capture, body) if attributes.capture is not None else body
    if suffix is None:
        tree: Any = start
    else:
        end = Leaf(suffix)
        tree = Sequence(
            (start, Group(attributes.stop_capture, end) if attributes.stop_capture is not None else end)
        )
    names = names_of(tree, {})
    return found, Reading(tree, names, refusal=read.refusal if read else "") if names else None
