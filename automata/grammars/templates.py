"""Templates: fixed text with typed holes, for infilling.

``template("My day on {word} went {rest}", word=..., rest=...)`` is the concatenation of its pieces: a language if every
hole is one, else a grammar. Braces are escaped as in ``str.format``: ``{{`` and ``}}``.

``parse`` recovers the texts of the holes. Possible boundaries between pieces are found from left to right, for each
hole only where the fixed text after it matches. Then parses are enumerated from the end, which avoids dead ends, until
there are two. Cost: linear in the template; ``parse`` queries each hole once for each of its possible starts and ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from tokenfst.automata.captures import trees
from tokenfst.automata.expressions.expression import Expr, concat, literal
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.grammars.assembly import Assembly
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.display.readable import shorten
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import encode, widest
from tokenfst.automata.regex.translate import regex
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but, shown
from tokenfst.common.remedies import remedy
from tokenfst.errors import ConstraintError, PatternError, TemplateError

_SHOWN = 80
_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<hole>[^{}]*)\}|[{}]|[^{}]+")
_Text = TypeVar("_Text", str, bytes)


class Piece(NamedTuple):
    """A part of a template: fixed text, or a named hole."""

    name: str
    text: bytes
    constraint: Constraint | None = None


class TemplateLanguage(Language):
    """A template whose holes are all languages."""

    __slots__ = ("_pieces",)

    def __init__(self, made: Language, source: str, budget: Budget | None, pieces: Sequence[Piece]) -> None:
        super().__init__(made.expr, source, budget, made.reading)
        self._pieces = pieces

    def parse(self, text: _Text) -> dict[str, _Text]:
        """The text of each hole in ``text``, by name.

        Raises ConstraintError for a text that does not match, and for an ambiguous text, naming a hole that differs;
        BudgetExceeded("seconds").
        """
        return _parse(text, self._pieces, self)


class TemplateGrammar(Grammar):
    """A template with a grammar in some hole."""

    __slots__ = ("_pieces",)

    def __init__(self, made: Grammar, source: str, budget: Budget | None, pieces: Sequence[Piece]) -> None:
        super().__init__(made.rules, made.start, source=source, budget=budget, marked=made.marked)
        self._pieces = pieces

    def parse(self, text: _Text) -> dict[str, _Text]:
        """As ``TemplateLanguage.parse``."""
        return _parse(text, self._pieces, self)


@checked_but("text")
def template(text: str, /, **holes: str | Constraint) -> TemplateLanguage | TemplateGrammar:
    """Fixed text with typed holes: ``{name}`` stands for a word of ``holes[name]``, ``{{`` and ``}}`` for braces.

    A hole is a ``Language``, a ``Grammar``, or a str: a regular expression. The result is a grammar if some hole is
    one, else a language; its budget is the widest of the holes'. The texts of holes are captured under their names.

    Raises TemplateError, with the position, for unbalanced braces, holes without a name or with a format, repeated
    holes (that two holes have equal text is not a context-free condition), and holes that are not given;
    ConstraintError for a hole that is given but not in the text, and the errors of ``regex``.
    """
    if not isinstance(text, str):
        raise ConstraintError(f"a template is a str, not {type(text).__name__}")
    pieces = pieces_of(text, {name: hole_constraint(name, hole) for name, hole in holes.items()})
    source = f"template({shorten(repr(text), _SHOWN)})"
    filled = [piece.constraint for piece in pieces if piece.constraint is not None]
    languages = [each for each in filled if isinstance(each, Language)]
    if len(languages) == len(filled):
        return _of_languages(pieces, source, widest(*(each.given_budget for each in languages)))
    assembly = Assembly()
    parts = [
        literal(piece.text) if piece.constraint is None else assembly.group(piece.name, piece.constraint)
        for piece in pieces
    ]
    made = assembly.finish(concat(*parts), source)
    assert isinstance(made, Grammar), "a hole is one"
    return TemplateGrammar(made, source, assembly.budget, pieces)


def _of_languages(pieces: Sequence[Piece], source: str, budget: Budget | None) -> TemplateLanguage:
    """A template without a grammar."""
    exprs: list[Expr] = []
    parts: list[trees.Tree] = []
    readings: list[trees.Reading] = []
    for piece in pieces:
        hole = piece.constraint
        exprs.append(hole.expr if isinstance(hole, Language) else literal(piece.text))
        parts.append(trees.Leaf(exprs[-1]))
        if hole is not None:
            parts[-1] = trees.Group(piece.name, trees.of(exprs[-1], hole.reading))
            inner = () if hole.reading is None else hole.reading.names
            refusal = "" if hole.reading is None else hole.reading.refusal
            readings.append(trees.Reading(parts[-1], (piece.name, *inner), refusal=refusal))
    made = Language(concat(*exprs), source, budget, trees.joined(trees.Sequence(tuple(parts)), readings))
    return TemplateLanguage(made, source, budget, pieces)


def hole_constraint(name: str, hole: str | Constraint) -> Constraint:
    """The constraint of a hole. Raises ConstraintError, and the errors of ``regex``."""
    if isinstance(hole, (Language, Grammar)):
        return hole
    if not isinstance(hole, str):
        wanted = "a Language, a Grammar or a pattern (str)"
        instead = remedy(wanted, hole)
        raise ConstraintError(
            f"the hole {{{name}}} must be {wanted}, not {shown(hole)}{instead and f': {instead}'}"
        )
    try:
        return regex(hole)
    except PatternError as error:
        error.add_note(f"in the hole {{{name}}} of a template")
        raise


def pieces_of(text: str, constraints: Mapping[str, Constraint]) -> list[Piece]:
    """The pieces of a template in order. Raises TemplateError, and ConstraintError for a hole that is given but not in
    the text.
    """
    pieces = list(pieces_in(text, constraints))
    named = [piece.name for piece in pieces if piece.name]
    for name in constraints:
        if name not in named:
            shown = ", ".join(f"{{{each}}}" for each in named) or "none"
            raise ConstraintError(f"the template has no hole {{{name}}}; its holes: {shown}")
    return pieces


def pieces_in(text: str, constraints: Mapping[str, Constraint], *, again: bool = False) -> Iterator[Piece]:
    """The pieces in order; adjacent fixed text is one piece. ``again``: whether a hole may be repeated."""
    fixed: list[str] = []
    seen: set[str] = set()
    for token in _TOKEN.finditer(text):
        name = token["hole"]
        if name is None:
            if token[0] in ("{", "}"):
                raise TemplateError(
                    f"this {token[0]} has no partner; write {token[0] * 2} for a brace", text, token.start()
                )
            fixed.append(token[0][0] if token[0] in ("{{", "}}") else token[0])
            continue
        if not name.isidentifier():
            wanted = "a hole is a name only, without conversion or format" if name else "a hole needs a name"
            raise TemplateError(wanted, text, token.start())
        if name in seen and not again:
            message = (
                f"the hole {{{name}}} occurs twice, and nothing could hold both to one text; use two names"
            )
            raise TemplateError(message, text, token.start())
        if name not in constraints:
            raise TemplateError(f"nothing is given for the hole {{{name}}}", text, token.start())
        seen.add(name)
        if fixed:
            yield Piece("", _encoded("".join(fixed)))
            fixed = []
        yield Piece(name, b"", constraints[name])
    if fixed:
        yield Piece("", _encoded("".join(fixed)))


def _encoded(text: str) -> bytes:
    data = encode(text)
    if data is None:
        raise ConstraintError(f"{text!r} contains a lone surrogate, which UTF-8 cannot encode")
    return data


# --- back ---------------------------------------------------------------------------------------------


def _parse(text: _Text, pieces: Sequence[Piece], whole: Constraint) -> dict[str, _Text]:
    data = encode(text, "parse", "text")
    if data is None or not whole.accepts(data):
        raise ConstraintError(f"{shorten(repr(text), _SHOWN)} is not a word of {whole.source}")
    readings = list(islice(_readings(data, pieces, whole.budget), 2))
    if len(readings) > 1:
        one, other = readings
        name = next(name for name in one if one[name] != other[name])
        ways = (each[name].decode(errors="backslashreplace") for each in readings)
        spelled = " or ".join(shorten(repr(way), _SHOWN) for way in ways)
        raise ConstraintError(
            f"{shorten(repr(text), _SHOWN)} can be read in two ways: the hole {{{name}}} is {spelled}"
        )
    if isinstance(text, bytes):
        return readings[0]
    try:
        return {name: part.decode() for name, part in readings[0].items()}
    except UnicodeDecodeError as error:
        raise ConstraintError(
            f"a hole holds a part of a character; parse the text as bytes: {error}"
        ) from None


def _readings(data: bytes, pieces: Sequence[Piece], budget: Budget) -> Iterator[dict[str, bytes]]:
    """All ways to divide a word into the pieces: the text of each hole."""
    deadline = Deadline(budget, "a template")
    before: list[dict[int, list[int]]] = []  # for each piece: where it can end, and where it then begins
    begins = [0]
    for number, piece in enumerate(pieces):
        ways: dict[int, list[int]] = {}
        for begin in begins:
            deadline.where = f"the hole {{{piece.name}}}"
            for end in _ends(data, begin, piece, pieces[number + 1 :], deadline):
                deadline.check()
                if piece.constraint is None or piece.constraint.accepts(data[begin:end]):
                    ways.setdefault(end, []).append(begin)
        before.append(ways)
        begins = sorted(ways)
    open_: list[tuple[int, int, dict[str, bytes]]] = [(len(pieces), len(data), {})]
    while open_:
        number, end, found = open_.pop()
        if number == 0:
            yield {piece.name: found[piece.name] for piece in pieces if piece.name}
            continue
        name = pieces[number - 1].name
        open_ += (
            (number - 1, begin, {**found, name: data[begin:end]} if name else found)
            for begin in before[number - 1].get(end, ())
        )


def _ends(
    data: bytes, begin: int, piece: Piece, following: Sequence[Piece], deadline: Deadline
) -> Iterator[int]:
    """The possible ends of a piece that begins at a place, as far as the fixed text determines them."""
    if piece.constraint is None:
        if data.startswith(piece.text, begin):
            yield begin + len(piece.text)
        return
    last = begin + piece.constraint.viable_prefix(data[begin:])
    for end in range(begin, last + 1) if following else (len(data),):
        deadline.tick()
        after = following[0].text if following else b""
        if data.startswith(after, end):
            yield end
