r"""ECMAScript patterns as a language: the part of ECMA-262's ``Pattern`` that an automaton can read.

The set of valid patterns is not even context-free: parentheses balance, names of groups are unique and referred to,
ranges and counted repetitions ascend. So this is an approximation from below: every word is a valid pattern, with the
``u`` flag and without (section 22.2.1; what only Annex B allows is left out). These are missing:

- groups and look-around nested more than three deep;
- more than one named group, and a named group inside of another one;
- references, other than ``\k<x>`` after a group of that one-letter name, with nothing nested in a nested part
  of that group and from there on;
- ranges that end in escapes (but ``\uXXXX-\uYYYY`` with different first digits), and those beyond ASCII whose ends
  begin with the same byte of UTF-8;
- ``{m,n}`` with more than four digits a number, or numbers of the same length that begin with the same digit
  (but equal ones of one digit);
- ``\0``, property escapes but general categories, a few binary ones and scripts, inline flags ``(?i:...)``.

A disjunction is any sequence of terms and bars, because alternatives may be empty: so each level of nesting is one
star, and the expression grows linearly with the depth (the automaton doubles with each level: a group may be repeated,
look-around may not). Names that are referred to are written out, one alternative for each letter. So no intersection is
needed, and the form of the expression bounds the length of what completes a pattern. Rejected: to refuse the format, so
that schemas that describe schemas could not be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from string import ascii_letters

from tokenfst.automata.expressions.expression import (
    Expr,
    byte_range,
    byte_set,
    concat,
    intersect,
    literal,
    repeat,
    union,
)
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import expression, regex

_DEPTH = 3
_BINARY = "Alphabetic ASCII Any Emoji ID_Continue ID_Start Lowercase Uppercase White_Space"
_CATEGORIES = "L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
_SCRIPTS = "Arabic Cyrillic Devanagari Greek Han Hangul Hebrew Hiragana Katakana Latin Thai"
_PROPERTY = "|".join(
    (*_BINARY.split(), *_CATEGORIES.split(), rf"(?:Script|sc)=(?:{'|'.join(_SCRIPTS.split())})")
)
_CODE_POINT = r"u(?:[0-9A-Fa-f]{4}|\{(?:[0-9A-Fa-f]{1,5}|10[0-9A-Fa-f]{4})\})"
_SYNTAX = r"\^$.*+?()\[\]{}|\\"
_ESCAPED = rf"[dDsSwWfnrtv/{_SYNTAX}]|c[A-Za-z]|x[0-9A-Fa-f]{{2}}|{_CODE_POINT}|[pP]\{{(?:{_PROPERTY})\}}"


def ecma_regex() -> Language:
    """The patterns that are valid by ECMA-262, except for those that the module's docstring lists as missing."""
    atom = regex(rf"[^{_SYNTAX}]|\.|\\(?:{_ESCAPED})") | _character_class()
    quantifier = regex(_QUANTIFIED)
    close = Language.literal(")") + quantifier
    plain, shallow = _disjunction(atom, quantifier, _DEPTH), _disjunction(atom, quantifier, 1)
    named = regex(r"\(\?<[A-Za-z_$][A-Za-z0-9_$]*>")
    referred = Language.union_of(
        Language.literal(f"(?<{name}>")
        + shallow
        + close
        + _disjunction(atom | Language.literal(rf"\k<{name}>"), quantifier, 1)
        for name in ascii_letters
    )
    return plain + (named + plain + close + plain | referred).optional()


_COUNT = r"[0-9]|[1-9][0-9]{1,3}"
_ASCENDING = "|".join(
    (
        *(rf"{low},{low}" for low in range(10)),
        *(rf"{low}[0-9]{{{more}}},[{low + 1}-9][0-9]{{{more}}}" for low in range(9) for more in range(4)),
        r"[0-9],[1-9][0-9]{1,3}|[1-9][0-9],[1-9][0-9]{2,3}|[1-9][0-9]{2},[1-9][0-9]{3}",
    )
)
_QUANTIFIED = rf"(?:(?:[*+?]|\{{(?:(?:{_COUNT}),?|{_ASCENDING})\}})\??)?"


def _disjunction(atom: Language, quantifier: Language, depth: int) -> Language:
    """``Disjunction`` with groups nested to ``depth``."""
    simple = atom + quantifier | regex(r"[\^$|]|\\[bB]")
    inner = simple.star()
    for _ in range(depth):
        inside = inner + Language.literal(")")
        group = regex(r"\((?:\?:)?") + inside + quantifier
        assertion = regex(r"\(\?<?[=!]") + inside
        inner = (simple | group | assertion).star()
    return inner


def _character_class() -> Language:
    """``CharacterClass``: single members and ascending ranges; a hyphen by itself first or last."""
    single = expression(rf"[^\\\]\-]|\\(?:[\-b]|{_ESCAPED})")
    item = union(single, *_ascii_ranges(), *_wide_ranges(), *_hexadecimal_ranges())
    return Language(concat(expression(r"\[\^?-?"), repeat(item), expression(r"-?\]")))


_HYPHEN = literal(b"-")
_BEYOND_ASCII = r"[\x80-\U0010ffff]"


def _one_of(codes: Iterable[int]) -> Expr:
    return byte_set(sum(1 << code for code in codes))


def _ascii_ranges() -> Iterator[Expr]:
    """Ranges from a printable character that needs no escape to one that is not before it, or to any beyond ASCII."""
    ends = [code for code in range(0x20, 0x7F) if chr(code) not in "\\]-"]
    yield concat(_one_of(ends), _HYPHEN, expression(_BEYOND_ASCII))
    for place, low in enumerate(ends):
        yield concat(_one_of((low,)), _HYPHEN, _one_of(ends[place:]))


def _wide_ranges() -> Iterator[Expr]:
    """Ranges beyond ASCII in which the first bytes of UTF-8 ascend; then the code points ascend."""
    rest = repeat(byte_range(0x80, 0xBF), 1, 3)
    characters = expression(f"{_BEYOND_ASCII}-{_BEYOND_ASCII}")
    ascending = [
        concat(_one_of((lead,)), rest, _HYPHEN, byte_range(lead + 1, 0xF4), rest)
        for lead in range(0xC2, 0xF4)
    ]
    yield intersect(characters, union(*ascending))


def _hexadecimal_ranges() -> Iterator[Expr]:
    r"""Ranges ``\uXXXX-\uYYYY`` in which the first digits ascend. Surrogates are left out: two of them may form one
    character.
    """
    digits = "0123456789abcef"
    escape, rest = literal(b"\\u"), expression("[0-9A-Fa-f]{3}")
    for place, low in enumerate(digits[:-1], 1):
        first, last = (_one_of(map(ord, each + each.upper())) for each in (low, digits[place:]))
        yield concat(escape, first, rest, _HYPHEN, escape, last, rest)
