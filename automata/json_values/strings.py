r"""JSON strings as languages: from the value of a string to every way to write it (RFC 8259, section 7).

The idea: escaping is a code. A character is spelled raw, as UTF-8 (unless it is a control character, a quotation
mark or a backslash); as a two-character escape, if it has one; as ``\uXXXX``, in either case; beyond U+FFFF as the
``\u`` escapes of two surrogates. ``Spelling`` determines which of these are used. No spelling of a character is a
prefix of a spelling of another one. So all texts of a language are its inverse image under the code, which keeps
the form of the expression (``images.spellings``). A length counts code points and stays one counted repetition of
one "any JSON character", whatever the spelling.

A surrogate that is escaped alone (``\ud800``) is left out: it is not a Unicode scalar value, no UTF-8 text contains
it, and parsers treat it differently (RFC 8259, section 8.2).

Cost: one small automaton for each set of characters, once in a process. In ``"any"`` spelling it has 21 states for
"any character" and 8 for ``[a-z]``; in the other spellings a set of letters is the same as in UTF-8, or its
escapes.
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
"""How strings and numbers are written.

``"plain"``: each string as ``json.dumps(text, ensure_ascii=False)`` writes it. Only ``"``, ``\\`` and control
characters are escaped, those without a two-character escape as ``\\u00xx`` in lower case; ``/``, U+007F and U+2028
are not. Numbers as in ``texts.plain_numbers``. ``"ascii"``: the same with ``ensure_ascii=True``: U+007F and all
characters beyond are ``\\uxxxx`` in lower case. ``"any"``: all spellings that JSON allows.
"""
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
    r"""One ``\u`` escape."""
    return Form(first, last, 0, (*_U, digits, digits, digits, digits))


def _pairs(digits: tuple[bytes, ...] = _LOWER) -> Form:
    r"""Two ``\u`` escapes, for a pair of surrogates."""
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
    """The JSON texts, including quotation marks, of the strings in ``content`` (a language of UTF-8 texts).

    ``content=None``: of all strings. Words of ``content`` that are not valid UTF-8 are not the value of any JSON string
    and have no text. Exact: a text is in the result if and only if it is a valid JSON string in the given ``spelling``,
    and its value is in ``content``.

    Linear in the expression of ``content``. Raises BudgetExceeded("states") if a part that is not a regular expression
    over whole characters (tables, byte patterns) must be determinized and outgrows the budget.
    """
    code = json_code(spelling)
    shown = "" if spelling == "plain" else f"spelling={spelling!r}"
    if content is None:
        return Language(_quoted(code.any_text), f"json_string({shown})")
    text = inverse_image(content.expr, code, content.budget)
    source = f"json_string({', '.join(filter(None, (content.source, shown)))})"
    return Language(_quoted(text), source, content.budget)


def json_string_of_length(low: int = 0, high: int | None = None, *, spelling: Spelling = "plain") -> Language:
    """The JSON texts of the strings of ``low`` to ``high`` code points (``None``: no upper bound).

    A character counts once in every spelling: the escapes of two surrogates are one character. O(1), because the bounds
    are expanded lazily. For strings with other contents: ``json_string(of_length(content, low, high))``. Raises
    ConstraintError unless 0 <= low <= high <= ``images.lengths.MAX_LENGTH``.
    """
    check_bounds(low, high)
    source = f"json_string_of_length({low}, {high})"
    return Language(_quoted(repeat(json_code(spelling).any_character, low, high, source)), source)


def json_literal(text: str, *, spelling: Spelling = "plain") -> Expr:
    """The JSON texts, including quotation marks, of the one string ``text``: a property's name, a constant.

    Raises ConstraintError if ``text`` contains a lone surrogate.
    """
    _refuse_surrogates(text)
    word = json_code(spelling).word(text)
    if isinstance(word.value, bytes):
        return literal(b'"' + word.value + b'"')
    return _quoted(word)


def json_literals(texts: Iterable[str], *, spelling: Spelling = "plain") -> Expr:
    """The JSON texts, including quotation marks, of each of ``texts``, as a prefix tree that is walked lazily.

    Sorts ``texts``, and is linear in their total length. Raises ConstraintError if one contains a lone surrogate.
    """
    known = list(texts)
    if not "".join(known).isascii():
        for text in known:
            _refuse_surrogates(text)
    return _quoted(json_code(spelling).words(known))


def json_content(content: Expr, *, spelling: Spelling = "plain", budget: Budget | None = None) -> Expr:
    """The texts of ``json_string`` without their quotation marks, as an expression."""
    return inverse_image(content, json_code(spelling), budget or Budget())


def _refuse_surrogates(text: str) -> None:
    if not text.isascii() and any(0xD800 <= ord(each) <= 0xDFFF for each in text):
        raise ConstraintError(f"{text!r} contains a lone surrogate, which UTF-8 cannot encode; leave it out")


def _quoted(text: Expr) -> Expr:
    return concat(_QUOTE, text, _QUOTE)


def json_code(spelling: Spelling = "plain") -> Code:
    """The code (``images.coding``) that spells the characters between the quotation marks of a string."""
    if spelling not in _CODES:
        raise ConstraintError(f"spelling must be one of 'plain', 'ascii', 'any', not {spelling!r}")
    return _CODES[spelling]
