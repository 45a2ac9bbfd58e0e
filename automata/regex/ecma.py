r"""ECMA-262 regular expressions with the semantics of the ``u`` flag, for JSON Schema's ``pattern``.

A pattern is rewritten, token by token, to a Python pattern with the same meaning, which ``regex`` translates. Every
character set is computed here and written as ranges, so ``re``'s own definitions of ``.``, ``\d``, ``\w``, ``\s``,
``\b`` or ``$`` are never used: ``\d`` and ``\w`` are ASCII, ``.`` stops at four line ends, ``$`` is only the very end.
Each piece of the result records its source position, so errors show the original pattern.

Beyond the ``u`` flag, additions of Annex B.1.2 of the standard are accepted that would otherwise be syntax errors and
have only one possible meaning: a backslash before any character that is neither letter nor digit (``\-``, ``\@``), an
unmatched brace or closing bracket, and a hyphen beside a class in a class (``[\w-.]``).

Modifiers are those of ECMA-262 2025, ``(?i:...)``, ``(?s-m:...)``. ``(?i)`` without a colon is not valid there; in
.NET, Java and Perl it holds to the end of the enclosing group, and it is read so here, with a PatternWarning.

Rejected: back-references to groups that match many texts (not regular, if these are infinitely many; ``ecma_tree``),
and ``\p{...}`` of an unknown property (``characters.properties``). A lone surrogate matches nothing: UTF-8 text cannot
contain one.

Plain patterns, which most are, are read by the native core (``plain_pattern``): the nodes are the same.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NoReturn

from tokenfst._native import plain_pattern
from tokenfst.automata.characters.case import with_other_case
from tokenfst.automata.characters.classes import character_set
from tokenfst.automata.characters.properties import binary_property, general_category, script
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges, negate, normalize, without_surrogates
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.ecma_tree import (
    BEGIN,
    END,
    PLAIN,
    Group,
    Piece,
    Reference,
    References,
    few_words,
)
from tokenfst.automata.regex.parse import deepest_group, shorten
from tokenfst.automata.regex.plain import MOST_COUNTED
from tokenfst.automata.regex.translate import expression
from tokenfst.budget import QUICK, Budget
from tokenfst.common.digits import natural
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    PatternError,
    PatternSyntaxError,
    PatternWarning,
    UnsupportedPatternError,
)

_DIGIT: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = (
    *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
_LINE_ENDS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_NOT_ECMA = {"A": "^", "Z": "$", "z": "$", "a": r"\x07", "e": r"\x1b", "h": r"[ \t]", "Q": "a backslash each"}

_DEFAULT = Budget()
_LONGEST_QUANTIFIER = 40
_QUANTIFIER = re.compile(r"(?:[*+?]|\{([0-9]+)(?:,([0-9]*))?\})\??")
_OPENING = re.compile(r"\((?:\?(?::|<?[=!]|<([^>]*)>))?")
_HEX = re.compile(r"u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_REFERENCE = re.compile(r"\\(?:([1-9][0-9]*)|k<([^>]*)>)")
_PROPERTY = re.compile(r"[pP]\{(?:(\w+)=)?(\w+)\}", re.ASCII)

_MODIFIERS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_LINE_BEGIN, _LINE_END = (
    f"(?:{edge}|(?{look}{'[' + chr(10) + chr(13) + chr(0x2028) + chr(0x2029) + ']'}))"
    for edge, look in ((BEGIN, "<="), (END, "="))
)


@dataclass(frozen=True, slots=True)
class _Flags:
    """The effect of modifiers: ignore case, ``^`` and ``$`` match at lines, ``.`` matches any character."""

    i: bool = False
    m: bool = False
    s: bool = False


def ecma_pattern(pattern: str, budget: Budget | None = None) -> Language:
    """The texts (in UTF-8) in which the ECMA-262 pattern matches somewhere, as by ``RegExp(pattern, "u").test``.

    Linear in the pattern. Raises PatternSyntaxError for an invalid pattern, UnsupportedPatternError for constructs that
    are not regular or need data that Python lacks (both with the position and a caret), and BudgetExceeded("positions")
    if counted repetitions multiply beyond the budget.
    """
    if not isinstance(pattern, str):
        raise ConstraintError(f"an ECMA-262 pattern is a str, not {type(pattern).__name__}")
    limits = budget or _DEFAULT
    expr = plain_pattern(pattern, _leaf, _named, min(limits.positions, MOST_COUNTED))
    if expr is None:
        expr = _translated(pattern, budget)
    return Language(expr, f"ecma_pattern({pattern!r})", budget)


def _translated(pattern: str, budget: Budget | None) -> Expr:
    """The expression of any pattern."""
    pieces: list[Piece] = []
    nested = False
    reader = _Reader(pattern)
    whole = reader.read()
    try:
        if reader.refers:
            reader.resolve(whole, budget)
        whole.write(pieces, _ANY_TEXT, _ANY_TEXT)
    except RecursionError:
        nested = True
    if nested:
        # Outside of the handler, where the stack is not deep any more.
        message = "groups are nested too deeply here; flatten the pattern"
        raise UnsupportedPatternError(message, pattern, deepest_group(pattern))
    try:
        return expression("".join(text for text, _ in pieces), 0, budget, any_width=True)
    except PatternError as error:
        raise type(error)(error.message, pattern, _origin(pieces, error.position)) from None
    except BudgetExceeded as error:
        raise BudgetExceeded(error.resource, error.limit, f"the pattern {shorten(pattern)}") from None


def _leaf(ranges: Ranges) -> Expr:
    """One character out of a set."""
    return character_set(ranges, True)


def _named(ranges: Ranges, quantifier: str) -> str:
    """The text of a repetition in Python's notation, for messages."""
    return shorten(_spelled(ranges) + quantifier)


def _origin(pieces: list[Piece], position: int) -> int:
    """The position in the given pattern that corresponds to ``position`` in the rewritten one."""
    begins = [0]
    for text, _ in pieces:
        begins.append(begins[-1] + len(text))
    return pieces[min(bisect_right(begins, position), len(pieces)) - 1][1]


class _Reader:
    """Reads a pattern, left to right and without recursion."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags = _Flags()
        self.groups: list[Group] = []
        """The groups that capture."""
        self.refers = False
        """Whether there is a back-reference."""

    def refuse(self, message: str, position: int, kind: type[PatternError] = PatternSyntaxError) -> NoReturn:
        raise kind(message, self.text, position)

    def read(self) -> Group:
        groups, flags = [Group(0)], [self.flags]
        while self.at < len(self.text):
            begin, character = self.at, self.text[self.at]
            if character == "(":
                outside = self.flags
                group = self.opened()
                if group is not None:
                    groups.append(group)
                    flags.append(outside)
            elif character == ")":
                if len(groups) == 1:
                    self.refuse("this parenthesis closes nothing; escape it as \\)", begin)
                self.at += 1
                self.flags = flags.pop()
                groups[-2].alternatives[-1].append(self.closed(groups.pop()))
            elif character == "|":
                self.at += 1
                groups[-1].alternatives.append([])
            elif _QUANTIFIER.match(self.text, begin):
                self.refuse("there is nothing to repeat before this quantifier", begin)
            elif character in "^$" or self.text[begin : begin + 2] in (r"\b", r"\B"):
                groups[-1].alternatives[-1].append([(self.condition(), begin)])
            elif (reference := self.reference()) is not None:
                reference.repeated = self.quantifier()
                groups[-1].alternatives[-1].append(reference)
            else:
                atom = self.atom()
                groups[-1].alternatives[-1].append([(atom, begin), *self.quantifier()])
        if len(groups) > 1:
            self.refuse("this group is never closed", groups[-1].position)
        return groups[0]

    # --- back-references ------------------------------------------------------------------------------

    def reference(self) -> Reference | None:
        """A back-reference, if there is one at this position."""
        begin = self.at
        found = _REFERENCE.match(self.text, begin)
        if found is None:
            return None
        self.at, self.refers = found.end(), True
        group = found[2] if found[1] is None else natural(found[1], len(self.text))
        folded = self.flags.i
        return Reference(begin, group, lambda character: _letter(character, folded=folded))

    def resolve(self, whole: Group, budget: Budget | None) -> None:
        """Replace back-references by the texts that they match. Raises UnsupportedPatternError if these are not
        finitely many.
        """
        known = {each.number for each in self.groups} | {each.name for each in self.groups}
        for each in whole.parts():
            if isinstance(each, Reference) and each.group not in known:
                self.refuse("this back-reference names a group that is not there", each.position)

        def words(group: Group) -> list[str] | None:
            pieces: list[Piece] = []
            for part in group.parts():
                conditional = isinstance(part, list) and part[0][0] in _CONDITIONS
                if (
                    conditional
                    or isinstance(part, Reference)
                    or (isinstance(part, Group) and part.opening != PLAIN)
                ):
                    return None
            Group(group.position, PLAIN, group.alternatives).write(pieces, "", "")
            try:
                expr = expression("".join(text for text, _ in pieces), 0, budget, any_width=True)
                return few_words(Language(expr, "", QUICK).determinize())
            except (PatternError, BudgetExceeded):
                return None

        left = References(words, lambda letter: _character(ord(letter))).resolve(whole)
        if left is not None:
            message = (
                "a back-reference makes the language irregular where its group matches many texts, or may not have "
                "matched; write out what the group may match"
            )
            self.refuse(message, left.position, UnsupportedPatternError)

    # --- parts ----------------------------------------------------------------------------------------

    def opened(self) -> Group | None:
        """The group that a parenthesis opens; ``None`` for modifiers that apply to the end of the enclosing group."""
        begin = self.at
        match = _OPENING.match(self.text, begin)
        assert match is not None
        if match[0] == "(" and self.text.startswith("?", match.end()):
            return self.modified(begin)
        self.at = match.end()
        name = match[1]
        if name is not None and not name.replace("$", "_").isidentifier():
            self.refuse(f"{name!r} is no name for a group", begin)
        if match[0][-1] in "=!":
            return Group(begin, match[0])
        group = Group(begin, name=name)
        if match[0] == "(" or name is not None:
            self.groups.append(group)
            group.number = len(self.groups)
        return group

    def modified(self, begin: int) -> Group | None:
        """A group of modifiers."""
        found = _MODIFIERS.match(self.text, begin)
        if found is None:
            if self.text.startswith("(?P<", begin):
                self.refuse("(?P<name>...) is Python's; ECMA-262 writes (?<name>...)", begin)
            self.refuse("this is no group of ECMA-262", begin)
        on, off = found[1], found[2] or ""
        letters = on + off
        others = [each for each in letters if each not in "ims"]
        if others:
            message = f"the modifier {others[0]!r} is not supported; ECMA-262 has i, m and s"
            self.refuse(message, begin, UnsupportedPatternError)
        if len(set(letters)) < len(letters) or not letters:
            self.refuse("modifiers are i, m and s, each once", begin)
        self.at = found.end()
        self.flags = replace(self.flags, **dict.fromkeys(on, True), **dict.fromkeys(off, False))
        if found[3] == ":":
            return Group(begin)
        warnings.warn(
            f"{found[0]} is no group of ECMA-262; it is read as in .NET and Java, to the end of the group around it: "
            f"{shorten(self.text)}",
            PatternWarning,
            stacklevel=2,
        )
        return None

    def closed(self, group: Group) -> Group:
        group.repeated = self.quantifier()
        if group.repeated and group.opening != PLAIN:
            self.refuse("a look-around cannot be repeated", group.repeated[0][1])
        return group

    def quantifier(self) -> list[Piece]:
        match = _QUANTIFIER.match(self.text, self.at)
        if match is None:
            if re.compile(r"\{,[0-9]+\}").match(self.text, self.at):
                self.refuse("a quantifier needs its lower bound, as in {0,5}", self.at)
            return []
        begin, self.at = self.at, match.end()
        if len(match[0]) > _LONGEST_QUANTIFIER:
            self.refuse("the bounds of this quantifier are too large", begin)
        if match[1] and match[2] and int(match[2]) < int(match[1]):
            self.refuse("the bounds of this quantifier are out of order", begin)
        return [(match[0], begin)]

    def condition(self) -> str:
        character = self.text[self.at]
        if character in "^$":
            self.at += 1
            if self.flags.m:
                return _LINE_BEGIN if character == "^" else _LINE_END
            return BEGIN if character == "^" else END
        self.at += 2
        border = _FOLDED_BORDER if self.flags.i else r"(?a:\b)"
        # Not Python's \B, which did not match in an empty text before 3.14.
        return border if self.text[self.at - 1] == "b" else f"(?!{border})"

    def atom(self) -> str:
        character = self.text[self.at]
        if character == "[":
            return _spelled(self.character_class())
        if character == "\\":
            return _spelled(self.cased(self.escape(in_class=False)))
        self.at += 1
        if character == ".":
            return _spelled(_EVERY if self.flags.s else negate(_LINE_ENDS))
        return _letter(character, folded=self.flags.i)

    def cased(self, ranges: Ranges) -> Ranges:
        """A set of characters; if case is ignored, including those that differ only in case."""
        return with_other_case(ranges) if self.flags.i else ranges

    # --- sets of characters ---------------------------------------------------------------------------

    def character_class(self) -> Ranges:
        begin = self.at
        negated = self.text.startswith("^", begin + 1)
        self.at += 1 + negated
        pairs: list[tuple[int, int]] = []
        while not self.text.startswith("]", self.at):
            place = self.at
            first = self.member(begin)
            ranged = self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in (
                "]",
                "",
            )
            if not ranged or not _is_one(first):
                pairs += first
                continue
            self.at += 1
            last = self.member(begin)
            if not _is_one(last):
                pairs += (*first, (0x2D, 0x2D), *last)
            elif last < first:
                self.refuse("this range is out of order", place)
            else:
                pairs.append((first[0][0], last[0][0]))
        self.at += 1
        ranges = self.cased(normalize(pairs))
        return negate(ranges) if negated else ranges

    def member(self, begin: int) -> Ranges:
        """One character or escape inside the class that opens at ``begin``."""
        if self.at >= len(self.text):
            self.refuse("this class is never closed", begin)
        if self.text[self.at] == "\\":
            return self.escape(in_class=True)
        code = ord(self.text[self.at])
        self.at += 1
        return ((code, code),)

    def escape(self, *, in_class: bool) -> Ranges:
        begin = self.at
        letter = self.text[begin + 1 : begin + 2]
        self.at += 2
        if not letter:
            self.refuse("there is nothing to escape at the end", begin)
        if letter.lower() in _CLASSES:
            ranges = _CLASSES[letter.lower()]
            ranges = self.cased(ranges) if letter in "wW" else ranges
            return ranges if letter.islower() else negate(ranges)
        if letter in "pP":
            return self.property(begin)
        code = self.code(letter, begin, in_class)
        return ((code, code),)

    def code(self, letter: str, begin: int, in_class: bool) -> int:
        """The character that an escape denotes, which begins with ``letter``."""
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "b" and in_class:
            return 0x08
        if letter == "c":
            control = self.text[self.at : self.at + 1]
            if not (control.isascii() and control.isalpha()):
                self.refuse(r"\c needs a letter from A to Z after it", begin)
            self.at += 1
            return ord(control) % 32
        if letter in "ux":
            return self.hexadecimal(begin)
        if letter == "k" or letter in "123456789":
            self.refuse(f"\\{letter} names no group here", begin)
        if letter == "0" and not self.text[self.at : self.at + 1].isdecimal():
            return 0x00
        if letter.isascii() and letter.isalnum():
            instead = f"; write {_NOT_ECMA[letter]}" if letter in _NOT_ECMA else ""
            self.refuse(f"\\{letter} is no escape of ECMA-262{instead}", begin)
        return ord(letter)

    def hexadecimal(self, begin: int) -> int:
        match = _HEX.match(self.text, begin + 1)
        if match is None:
            self.refuse("this escape needs hexadecimal digits: \\xHH, \\uHHHH or \\u{H...}", begin)
        code = int(match[match.lastindex or 0], 16)
        if code > MAX_CODE_POINT:
            self.refuse("there is no such code point; the last is \\u{10FFFF}", begin)
        self.at = match.end()
        low = _LOW_SURROGATE.match(self.text, self.at)
        if match[2] and 0xD800 <= code <= 0xDBFF and low is not None:
            self.at = low.end()
            code = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        return code

    def property(self, begin: int) -> Ranges:
        match = _PROPERTY.match(self.text, begin + 1)
        if match is None:
            self.refuse(r"a property is written \p{Name} or \p{Name=Value}", begin)
        self.at = match.end()
        name, value = match.groups()
        ranges: Ranges | None = None
        if name is None:
            ranges = general_category(value)
            ranges = binary_property(value) if ranges is None else ranges
        elif name in ("General_Category", "gc"):
            ranges = general_category(value)
        elif name in ("Script", "sc", "Script_Extensions", "scx"):
            ranges = script(value, extensions=name in ("Script_Extensions", "scx"))
        if ranges is None:
            shown = value if name is None else f"{name}={value}"
            message = f"the Unicode data has no property {shown!r}; write its characters out as ranges"
            self.refuse(message, begin, UnsupportedPatternError)
        return negate(ranges) if self.text[begin + 1] == "P" else ranges


def _is_one(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


@lru_cache(maxsize=1024)
def _spelled(ranges: Ranges) -> str:
    """A set of characters in Python's notation: one character, a class, or a pattern that never matches."""
    ranges = without_surrogates(ranges)
    if not ranges:
        return "(?!)"
    if _is_one(ranges):
        return _character(ranges[0][0])
    spans = (
        _character(low) if low == high else f"{_character(low)}-{_character(high)}" for low, high in ranges
    )
    return f"[{''.join(spans)}]"


def _character(code: int) -> str:
    character = chr(code)
    if not character.isprintable():
        return f"\\U{code:08x}"
    return (
        f"\\{character}"
        if character.isascii() and not character.isalnum() and character != "_"
        else character
    )


def _letter(character: str, *, folded: bool) -> str:
    """One character; ``folded``: or one that differs only in case."""
    code = ord(character)
    ranges = ((code, code),)
    return _spelled(with_other_case(ranges) if folded else ranges)


_EVERY: Ranges = ((0, MAX_CODE_POINT),)
_FOLDED_WORD = _spelled((*_WORD, (0x17F, 0x17F), (0x212A, 0x212A)))
_FOLDED_BORDER = rf"(?:(?<={_FOLDED_WORD})(?!{_FOLDED_WORD})|(?<!{_FOLDED_WORD})(?={_FOLDED_WORD}))"
_BORDERS = (r"(?a:\b)", _FOLDED_BORDER)
_CONDITIONS = frozenset(
    (BEGIN, END, _LINE_BEGIN, _LINE_END, *_BORDERS, *(f"(?!{each})" for each in _BORDERS))
)
_ANY_TEXT = f"{_spelled(((0, MAX_CODE_POINT),))}*"
