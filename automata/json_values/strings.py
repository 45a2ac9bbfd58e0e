r"""JSON strings as languages: from what a string *means* to every way to write it down (RFC 8259, section 7).

The idea: escaping is a code. A character is spelled raw, as UTF-8 (unless it is a control character, a quotation
mark or a backslash); as a two-character escape, where it has one; as ``\uXXXX``, in either case; beyond U+FFFF as the
``\u`` escapes of two surrogates. Spellings of one character are no prefixes of those of another, so all texts of a
language are its inverse image under the code, which keeps the expression as it is (``inverse_image``). A length
counts code points and stays one counted repetition of one "any JSON character", whatever the spelling.

A surrogate escaped on its own (``\ud800``) is left out: it is no Unicode scalar value, no UTF-8 text holds it, and
parsers disagree on it (RFC 8259, section 8.2).

Cost: one small automaton for each set of characters, once for the life of the process: 21 states for "any
character", 8 for ``[a-z]``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tokenfst.automata.characters.codes import Form
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, MULTIBYTE
from tokenfst.automata.expressions.expression import Expr, concat, literal, repeat
from tokenfst.automata.images.lengths import check_bounds
from tokenfst.automata.images.spellings import Code, inverse_image
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError

Escapes = Literal["any", "minimal"]
"""``"any"``: all spellings that JSON allows. ``"minimal"``: the one that ``json.dumps(text, ensure_ascii=False)``
writes: escaped are ``"``, ``\\`` and control characters only, those without a two-character escape as ``\\u00xx`` in
lower case; neither ``/`` nor U+007F nor U+2028 is."""

_QUOTE = literal(b'"')
_SHORT = {0x08: b"b", 0x09: b"t", 0x0A: b"n", 0x0C: b"f", 0x0D: b"r", 0x22: b'"', 0x2F: b"/", 0x5C: b"\\"}
_RAW = tuple(b"" if code < 0x20 or code in (0x22, 0x5C) else bytes([code]) for code in range(0x80))
_LOWER = tuple(b"%x" % digit for digit in range(16))
_HEX = tuple(bytes({digit[0], digit.upper()[0]}) for digit in _LOWER)
_U = ((b"\\",), (b"u",))


def _short(code: int) -> Form:
    return Form(code, code, code, ((b"\\",), (_SHORT[code],)))


def _control(first: int, last: int) -> Form:
    return Form(first, last, 0, (*_U, (b"0",), (b"0",), _LOWER[:2], _LOWER))


_PLAIN = (Form(0, 0x7F, 0, (_RAW,)), *MULTIBYTE)
_CODES: dict[Escapes, Code] = {
    "any": Code(
        (
            *_PLAIN,
            *map(_short, _SHORT),
            Form(0, 0xFFFF, 0, (*_U, _HEX, _HEX, _HEX, _HEX)),
            Form(
                0x10000,
                MAX_CODE_POINT,
                0x10000,
                (*_U, _HEX[13:14], _HEX[8:12], _HEX, _HEX, *_U, _HEX[13:14], _HEX[12:], _HEX, _HEX),
            ),
        )
    ),
    "minimal": Code(
        (
            *_PLAIN,
            *(_short(code) for code in _SHORT if code != ord("/")),
            *(_control(first, last) for first, last in ((0x00, 0x07), (0x0B, 0x0B), (0x0E, 0x1F))),
        )
    ),
}


def json_string(content: Language | None = None, *, escapes: Escapes = "any") -> Language:
    """The JSON texts, quotation marks included, of the strings in ``content`` (text in UTF-8); ``None``: of all.

    Words of ``content`` that are not valid UTF-8 are the value of no JSON string and have no text. Exact: ``"t"`` is in
    the result if and only if it is valid JSON, spelled as ``escapes`` allows, and its value is in ``content``.

    Linear in the expression of ``content``. Raises BudgetExceeded("states") where a part that is no regular
    expression over whole characters (tables, byte patterns) has to be determinized and outgrows the budget.
    """
    code = _code(escapes)
    shown = "" if escapes == "any" else f"escapes={escapes!r}"
    if content is None:
        return Language(_quoted(code.any_text), f"json_string({shown})")
    text = inverse_image(content.expr, code, content.budget)
    source = f"json_string({', '.join(filter(None, (content.source, shown)))})"
    return Language(_quoted(text), source, content.budget)


def json_string_of_length(low: int = 0, high: int | None = None, *, escapes: Escapes = "any") -> Language:
    """The JSON texts of the strings of ``low`` to ``high`` code points; ``None``: of ``low`` or more.

    However a character is spelled, it counts once: the escapes of two surrogates are one character. O(1), and lazy
    in the bounds. (For strings of other contents too: ``json_string(of_length(content, low, high))``.) Raises
    ConstraintError unless 0 <= low <= high <= ``text_lengths.MAX_LENGTH``.
    """
    check_bounds(low, high)
    source = f"json_string_of_length({low}, {high})"
    return Language(_quoted(repeat(_code(escapes).any_character, low, high, source)), source)


def json_literal(text: str, *, escapes: Escapes = "any") -> Expr:
    """The JSON texts, quotation marks included, of the one string ``text``: a property's name, a constant.

    ConstraintError if ``text`` holds a lone surrogate.
    """
    _refuse_surrogates(text)
    return _quoted(_code(escapes).word(text))


def json_literals(texts: Iterable[str], *, escapes: Escapes = "any") -> Expr:
    """The JSON texts, quotation marks included, of each of ``texts``: an enumeration. A prefix tree, walked lazily.

    Sorts ``texts``, and is linear in their total length. ConstraintError if one holds a lone surrogate.
    """
    known = list(texts)
    for text in known:
        _refuse_surrogates(text)
    return _quoted(_code(escapes).words(known))


def json_content(content: Expr, *, escapes: Escapes = "any", budget: Budget | None = None) -> Expr:
    """What ``json_string`` has between its quotation marks, as an expression."""
    return inverse_image(content, _code(escapes), budget or Budget())


def _refuse_surrogates(text: str) -> None:
    if not text.isascii() and any(0xD800 <= ord(each) <= 0xDFFF for each in text):
        raise ConstraintError(f"{text!r} holds a lone surrogate, which no UTF-8 text does; leave it out")


def _quoted(text: Expr) -> Expr:
    return concat(_QUOTE, text, _QUOTE)


def _code(escapes: Escapes) -> Code:
    if escapes not in _CODES:
        raise ConstraintError(f"escapes={escapes!r} is neither 'any' nor 'minimal'")
    return _CODES[escapes]
