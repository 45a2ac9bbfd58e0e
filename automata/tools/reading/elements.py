"""From parameters in a model's style to values: parses the text between sentinels.

Sentinels mark where an element's value begins and where the element ends, and whether the value is a string, JSON, or
made of elements (``structural_tags.sentinels``). So a name is the text between the style's own delimiters, and the type
of a value is never guessed: a bare text that could be a string or a value of another type is the other value.

A bare string is the text as it is written. If the schema lists the allowed strings, and white space may surround them,
the value is the shortest text that the schema allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tokenfst.automata.structural_tags.documents.xml_styles import Style
from tokenfst.automata.structural_tags.sentinels import ElementEnd
from tokenfst.automata.tools.reading.values import read_json

_SPACE = " \t\n\r"


@dataclass(slots=True)
class Element:
    """An open element.

    ``written``: its name as in the text; ``name``: the name without escapes. ``after``: the text that follows the name.
    ``parts``: the names and values of the elements inside of it.
    """

    written: str
    name: str
    after: str
    parts: list[tuple[str, Any]] = field(default_factory=list)


class Elements:
    """The elements of one call. ``newlines``: a line break around a bare string is not a part of the string."""

    def __init__(self, style: Style, *, newlines: bool) -> None:
        self.style, self.newlines = style, newlines
        self._open = [Element("", "", "")]

    @property
    def last(self) -> Element:
        """The open element that was opened last."""
        return self._open[-1]

    def begin(self, text: str) -> None:
        """Open an element. ``text``: the text from the last sentinel to the element's value."""
        style, text = self.style, text.strip(_SPACE)
        if style.unnamed is not None and not text.startswith(style.before):
            self._open.append(Element("item", "item", text.removeprefix(style.unnamed)))
            return
        written, found, rest = text[len(style.before) :].partition(style.closing)
        name = written
        for escape, character in style.unescapes:
            name = name.replace(escape, character)
        self._open.append(Element(written, name, found + rest))

    def end(self, text: str, sentinel: ElementEnd) -> Any:
        """Close the last element and return its value. ``text``: the text since the last sentinel.

        Raises ValueError or RecursionError for JSON that Python cannot read.
        """
        element = self._open.pop()
        value: Any
        if sentinel.kind == "array":
            value = [each for _, each in element.parts]
        elif sentinel.kind == "object":
            value = dict(element.parts)
        else:
            style = self.style
            text = text.removesuffix(style.stop + (style.close and style.close.format(element.written)))
            value = self._string(text, sentinel) if sentinel.kind == "string" else read_json(text)
        self._open[-1].parts.append((element.name, value))
        return value

    def values(self) -> dict[str, Any]:
        """The values of the call's parameters so far, by name."""
        return dict(self._open[0].parts)

    def _string(self, text: str, sentinel: ElementEnd) -> str:
        if sentinel.strings is None or not self.style.padded:
            return text.removeprefix("\n").removesuffix("\n") if self.newlines else text
        left, right = len(text) - len(text.lstrip(_SPACE)), len(text.rstrip(_SPACE))
        if left >= right:  # only white space
            begins, ends = range(len(text), -1, -1), range(len(text) + 1)
        else:
            begins, ends = range(left, -1, -1), range(right, len(text) + 1)
        return next(
            (
                text[begin:end]
                for begin in begins
                for end in ends
                if begin <= end and sentinel.allows(text[begin:end])
            ),
            text,
        )
