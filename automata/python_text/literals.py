r"""Python's literals as languages of their source text: numbers, strings, bytes.

Numbers are written as ``repr`` writes them, with any number of digits: no underscores, no other bases, no leading
zeros. A string is in ``'`` or ``"``; each character is written as itself (unless it is a control character, the
quotation mark or a backslash), as ``\n`` and the like, or as ``\xhh``, ``\uhhhh`` or ``\Uhhhhhhhh``, so that the texts
of a language are its inverse image under that code (``images.spellings``). Left out, since ``repr`` writes none of
them: octal escapes, ``\N{...}``, triple quotes, prefixes, concatenation. Surrogates are left out too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tokenfst.automata.characters.codes import Form
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, MULTIBYTE
from tokenfst.automata.expressions.expression import Expr, byte_set, concat, literal, repeat, union
from tokenfst.automata.images.coding import Code
from tokenfst.automata.images.spellings import inverse_image
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import expression
from tokenfst.budget import Budget

_QUOTES = "'\""
_SHORT = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 39: b"'", 92: b"\\"}
_HEX = tuple(bytes({digit[0], digit.upper()[0]}) for digit in (b"%x" % value for value in range(16)))


@cache
def integer() -> Expr:
    """The literals of an ``int``, in decimal digits."""
    return expression("0|-?[1-9][0-9]*")


@cache
def number() -> Expr:
    """The literals of a ``float``, or of the ``int`` that may replace it: ``-1.5``, ``1e-07``, ``3``. Infinities have
    none.
    """
    return expression(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def string(content: Language | None = None) -> Expr:
    """The literals of the texts in ``content``; ``None``: of all texts."""
    budget = Budget() if content is None else content.budget
    return union(
        *(
            _quoted(
                q,
                string_code(q).any_text
                if content is None
                else inverse_image(content.expr, string_code(q), budget),
            )
            for q in _QUOTES
        )
    )


def string_of(text: str) -> Expr:
    """The literals of one text, which must not contain a surrogate."""
    return union(*(_quoted(quote, string_code(quote).word(text)) for quote in _QUOTES))


@cache
def byte_string() -> Expr:
    """The literals of all ``bytes`` objects."""
    return _bytes(lambda quote: repeat(union(*(_byte(byte, quote) for byte in range(256)))))


def byte_string_of(data: bytes) -> Expr:
    """The literals of one ``bytes`` object."""
    return _bytes(lambda quote: concat(*(_byte(byte, quote) for byte in data)))


@cache
def string_code(quote: str) -> Code:
    """The code (``images.coding``) that spells the characters between two quotation marks ``quote``."""
    raw = tuple(b"" if code < 0x20 or chr(code) in ("\\", quote) else bytes([code]) for code in range(0x80))
    escape, zero = (b"\\",), (b"0",)
    return Code(
        (
            Form(0, 0x7F, 0, (raw,)),
            *MULTIBYTE,
            *(Form(code, code, code, (escape, (letter,))) for code, letter in _SHORT.items()),
            Form(0, 0xFF, 0, (escape, (b"x",), _HEX, _HEX)),
            Form(0, 0xFFFF, 0, (escape, (b"u",), *[_HEX] * 4)),
            Form(0, MAX_CODE_POINT, 0, (escape, (b"U",), zero, zero, _HEX[:2], *[_HEX] * 5)),
        )
    )


def _quoted(quote: str, content: Expr) -> Expr:
    mark = literal(quote.encode())
    return concat(mark, content, mark)


def _bytes(content: Callable[[str], Expr]) -> Expr:
    return union(*(concat(literal(b"b"), _quoted(quote, content(quote))) for quote in _QUOTES))


def _byte(byte: int, quote: str) -> Expr:
    """One byte in a ``bytes`` literal."""
    digits = (byte_set(sum(1 << each for each in _HEX[half])) for half in divmod(byte, 16))
    ways = [concat(literal(b"\\x"), *digits)]
    if 0x20 <= byte < 0x7F and chr(byte) not in ("\\", quote):
        ways.append(literal(bytes([byte])))
    if byte in _SHORT:
        ways.append(literal(b"\\" + _SHORT[byte]))
    return union(*ways)
