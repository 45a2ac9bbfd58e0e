"""How models write the parameters of a call: the delimiters around a name and a value, and the types of values.

Strings are bare: they have no quotation marks. Other values are JSON or, in ``nested`` styles, elements. The first
``stop`` ends a bare string.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS = ("string", "number", "boolean", "null", "array", "object")
"""The types of values that styles distinguish."""

_MINIMAX = "]<]minimax[>["


@dataclass(frozen=True, slots=True)
class Style:
    """One style.

    An element is ``before``, the name, ``after`` (for each kind of value; white space is allowed between its parts),
    the value, ``stop``, and ``close``, in which ``{}`` is the name again. ``unnamed``: the beginning of an array's
    item, which has no name; ``None`` in styles whose arrays are JSON. ``escapes``: the spelling of certain characters
    of names; ``barred``: the characters that no name may contain. ``padded``: whether white space is allowed around
    strings, unless the schema allows any string; ``spaced``: whether it is allowed around other values. ``free_names``:
    whether parameters that the schema does not list can be written.
    """

    before: str
    after: Mapping[str, tuple[str, ...]]
    stop: str
    close: str = ""
    unnamed: str | None = None
    escapes: Mapping[str, str] | None = None
    barred: str = ""
    padded: bool = True
    spaced: bool = True
    free_names: bool = True
    closing: str = field(init=False)
    """The first character after a name, which is the same for all kinds of values."""
    unescapes: tuple[tuple[str, str], ...] = field(init=False)
    """Pairs of an escape and its character, in the order in which escapes are undone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "closing", next(iter(self.after.values()))[0][0])
        pairs = [(escape, character) for character, escape in (self.escapes or {}).items()]
        object.__setattr__(self, "unescapes", tuple(reversed(pairs)))

    @property
    def nested(self) -> bool:
        """Whether arrays and objects are elements, too."""
        return self.unnamed is not None

    def name(self, name: str) -> str | None:
        """The spelling of a parameter's name; ``None`` if this style cannot write it."""
        if not name or any(character in self.barred or character < " " for character in name):
            return None
        return "".join((self.escapes or {}).get(character, character) for character in name)


def _alike(*after: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(KINDS, after)


def _typed(before: str, types: Mapping[str, str], after: str) -> dict[str, tuple[str, ...]]:
    return {kind: (f"{before}{types[kind]}{after}",) for kind in KINDS}


def _deepseek(gap: str) -> Style:
    types = {kind: "true" if kind == "string" else "false" for kind in KINDS}
    return Style(
        f'<｜DSML｜{gap}parameter name="',
        _typed('" string="', types, '">'),
        f"</｜DSML｜{gap}parameter>",
        barred='"',
        padded=False,
    )


STYLES: dict[str, Style] = {
    "qwen_xml": Style("<parameter=", _alike(">"), "</parameter>", barred="<>"),
    "minimax_xml": Style('<parameter name="', _alike('">'), "</parameter>", barred='"'),
    "minimax_m3_xml": Style(
        f"{_MINIMAX}<",
        _alike(">"),
        _MINIMAX,
        "</{}>",
        unnamed=f"{_MINIMAX}<item",
        barred="<>/]",
        padded=False,
        spaced=False,
        free_names=False,
    ),
    "deepseek_xml": _deepseek(""),
    "deepseek_v4_1_xml": _deepseek(" "),
    "glm_xml": Style("<arg_key>", _alike("</arg_key>", "<arg_value>"), "</arg_value>", barred="<>"),
    "cohere_xml": Style(
        '<cofl:value name="',
        _typed(
            '" type="',
            {**dict.fromkeys(KINDS, "json"), "string": "raw", "array": "list", "object": "dict"},
            '">',
        ),
        "</cofl:value>",
        unnamed="<cofl:value",
        escapes={"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"},
    ),
    "kimi_k3_xml": Style(
        '<|open|>argument key="',
        _typed('" type="', {kind: kind for kind in KINDS}, '"<|sep|>'),
        "<|close|>argument<|sep|>",
        escapes={"&": "&amp;", '"': "&quot;"},
    ),
}
