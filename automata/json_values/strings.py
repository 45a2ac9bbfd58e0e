r"""JSON strings as languages: from what a string *means* to every way to write it down (RFC 8259, section 7).

The idea: escaping is a code. A character is spelled raw, as UTF-8 (unless it is a control character, a quotation
mark or a backslash); as a two-character escape, where it has one; as ``\uXXXX``, in either case; beyond U+FFFF as the
``\u`` escapes of two surrogates. ``Spelling`` says which of these are used. Spellings of one character are no prefixes
of those of another, so all texts of a language are its inverse image under the code, which keeps the expression as it
is (``images.spellings``). A length counts code points and stays one counted repetition of one "any JSON character",
whatever the spelling.

A surrogate escaped on its own (``\ud800``) is left out: it is no Unicode scalar value, no UTF-8 text holds it, and
parsers disagree on it (RFC 8259, section 8.2).

Cost: one small automaton for each set of characters, once for the life of the process. In ``"any"`` spelling 21
states for "any character" and 8 for ``[a-z]``; in the others a set of letters is what it is in UTF-8, or its escapes.
"""

from __future__ import annotations

from collections.abc import Iterable
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Literal

from tokenfst.automata.characters.codes import Form
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, MULTIBYTE
from tokenfst.automata.expressions.expression import Expr, concat, literal, repeat
from tokenfst.automata.images.coding import Code
from tokenfst.automata.images.lengths import check_bounds
from tokenfst.automata.images.spellings import inverse_image
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError

Spelling = Literal["plain", "ascii", "any"]
"""How strings and numbers are written. ``"plain"``: each string in the one way of ``json.dumps(text,
ensure_ascii=False)``: escaped are ``"``, ``\\`` and control characters only, those without a two-character escape as
``\\u00xx`` in lower case; neither ``/`` nor U+007F nor U+2028 is. Numbers as ``texts.plain_numbers`` says. ``"ascii"``:
the same with ``ensure_ascii=True``: U+007F and all characters beyond are ``\\uxxxx`` in lower case. ``"any"``: all
spellings that JSON allows."""
SPELLINGS: tuple[Spelling, ...] = ("plain", "ascii", "any")

_QUOTE = literal(b'"')
_SHORT = {0x08: b"b", 0x09: b"t", 0x0A: b"n", 0x0C: b"f", 0x0D: b"r", 0x22: b'"', 0x2F: b"/", 0x5C: b"\\"}
_RAW = tuple(b"" if code < 0x20 or code in (0x22, 0x5C) else bytes([code]) for code in range(0x80))
_LOWER = tuple(b"%x" % digit for digit in range(16))
_HEX = tuple(bytes({digit[0], digit.upper()[0]}) for digit in _LOWER)
_U = ((b"\\",), (b"u",))


def _short(code: int) -> Form:
    return Form(code, code, code, ((b"\\",), (_SHORT[code],)))


def _units(first: int, last: int, digits: tuple[bytes, ...] = _LOWER) -> Form:
    """One ``\\u``."""
    return Form(first, last, 0, (*_U, digits, digits, digits, digits))


def _pairs(digits: tuple[bytes, ...] = _LOWER) -> Form:
    """Two, of surrogates."""
    high, low = (digits[13:14], digits[8:12]), (digits[13:14], digits[12:])
    return Form(0x10000, MAX_CODE_POINT, 0x10000, (*_U, *high, digits, digits, *_U, *low, digits, digits))


_BYTES = Form(0, 0x7F, 0, (_RAW,))
_ESCAPED = (
    *(_short(code) for code in _SHORT if code != ord("/")),
    *(_units(first, last) for first, last in ((0x00, 0x07), (0x0B, 0x0B), (0x0E, 0x1F))),
)
_CODES: dict[Spelling, Code] = {
    "plain": Code((_BYTES, *MULTIBYTE, *_ESCAPED), lambda text: encode_basestring(text)[1:-1].encode()),
    "ascii": Code(
        (Form(0, 0x7E, 0, (_RAW[:-1],)), *_ESCAPED, _units(0x7F, 0xFFFF), _pairs()),
        lambda text: encode_basestring_ascii(text)[1:-1].encode(),
    ),
    "any": Code(
        (
            _BYTES,
            *MULTIBYTE,
            *map(_short, _SHORT),
            _units(0, 0xFFFF, _HEX),
            _pairs(_HEX),
        )
    ),
}


def json_string(content: Language | None = None, *, spelling: Spelling = "plain") -> Language:
    """The JSON texts, quotation marks included, of the strings in ``content`` (text in UTF-8); ``None``: of all.

    Words of ``content`` that are not valid UTF-8 are the value of no JSON string and have no text. Exact: ``"t"`` is in
    the result if and only if it is valid JSON, written as ``spelling`` says, and its value is in ``content``.

    Linear in the expression of ``content``. Raises BudgetExceeded("states") where a part that is no regular
    expression over whole characters (tables, byte patterns) has to be determinized and outgrows the budget.
    """
    code = json_code(spelling)
    shown = "" if spelling == "plain" else f"spelling={spelling!r}"
    if content is None:
        return Language(_quoted(code.any_text), f"json_string({shown})")
    text = inverse_image(content.expr, code, content.budget)
    source = f"json_string({', '.join(filter(None, (content.source, shown)))})"
    return Language(_quoted(text), source, content.budget)


def json_string_of_length(low: int = 0, high: int | None = None, *, spelling: Spelling = "plain") -> Language:
    """The JSON texts of the strings of ``low`` to ``high`` code points; ``None``: of ``low`` or more.

    However a character is spelled, it counts once: the escapes of two surrogates are one character. O(1), and lazy
    in the bounds. (For strings of other contents too: ``json_string(of_length(content, low, high))``.) Raises
    ConstraintError unless 0 <= low <= high <= ``images.lengths.MAX_LENGTH``.
    """
    check_bounds(low, high)
    source = f"json_string_of_length({low}, {high})"
    return Language(_quoted(repeat(json_code(spelling).any_character, low, high, source)), source)


def json_literal(text: str, *, spelling: Spelling = "plain") -> Expr:
    """The JSON texts, quotation marks included, of the one string ``text``: a property's name, a constant.

    ConstraintError if ``text`` holds a lone surrogate.
    """
    _refuse_surrogates(text)
    word = json_code(spelling).word(text)
    if isinstance(word.value, bytes):
        return literal(b'"' + word.value + b'"')
    return _quoted(word)


def json_literals(texts: Iterable[str], *, spelling: Spelling = "plain") -> Expr:
    """The JSON texts, quotation marks included, of each of ``texts``: an enumeration. A prefix tree, walked lazily.

    Sorts ``texts``, and is linear in their total length. ConstraintError if one holds a lone surrogate.
    """
    known = list(texts)
    for text in known:
        _refuse_surrogates(text)
    return _quoted(json_code(spelling).words(known))


def json_content(content: Expr, *, spelling: Spelling = "plain", budget: Budget | None = None) -> Expr:
    """What ``json_string`` has between its quotation marks, as an expression."""
    return inverse_image(content, json_code(spelling), budget or Budget())


def _refuse_surrogates(text: str) -> None:
    if not text.isascii() and any(0xD800 <= ord(each) <= 0xDFFF for each in text):
        raise ConstraintError(f"{text!r} contains a lone surrogate, which UTF-8 cannot encode; leave it out")


def _quoted(text: Expr) -> Expr:
    return concat(_QUOTE, text, _QUOTE)


def json_code(spelling: Spelling = "plain") -> Code:
    """How characters stand between the quotation marks of a string."""
    if spelling not in _CODES:
        raise ConstraintError(f"spelling must be one of 'plain', 'ascii', 'any', not {spelling!r}")
    return _CODES[spelling]
