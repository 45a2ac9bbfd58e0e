r"""Translation of Python's ``re`` patterns to languages over bytes.

The language of a pattern is the set of UTF-8 encodings of the texts that ``re.fullmatch`` accepts (the bytes
themselves, for a bytes pattern). ``re._parser`` parses it; this module translates the parse tree to an expression, node
by node. ``lookaround`` does the same for the parts that contain ``^ $ \b (?=...) (?<=...)``. The native core reads
plain patterns without a tree (``plain``), to the same nodes.

Invariant: every leaf matches complete characters of valid UTF-8, so every word of the language is valid UTF-8. A
complement inside may contain invalid words, because it is only ever intersected with valid ones.

Complexity: linear in the pattern; counted repetitions stay counted. The native core determinizes on demand. Rejected:
Thompson's construction in Python, which costs more than the derivatives that it saves.
"""

from __future__ import annotations

import re
from typing import Any

from tokenfst.automata.captures.trees import Reading
from tokenfst.automata.characters.classes import TEXT, is_cased, leaf
from tokenfst.automata.expressions.expression import EMPTY, EPSILON, Expr, concat, literal, repeat, union
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.captured_groups import captured_groups
from tokenfst.automata.regex.lookaround import Lookaround
from tokenfst.automata.regex.named_groups import NAMES, NamedGroup
from tokenfst.automata.regex.parse import (
    BRANCH,
    FAILURE,
    LITERAL,
    MAX_REPEAT,
    MAXREPEAT,
    MIN_REPEAT,
    SUBPATTERN,
    Pattern,
    Tree,
    combine_flags,
    deepest_group,
    shorten,
)
from tokenfst.automata.regex.plain import read_plain
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but
from tokenfst.errors import UnsupportedPatternError

_IGNORECASE = int(re.IGNORECASE)
_LETTERS = ((re.ASCII, "a"), (re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.VERBOSE, "x"))
_DEFAULT = Budget()
_LABELLED = 8
"""A repetition with a bound above this carries its source, so that an error can name it."""


@checked_but("pattern")
def regex(pattern: str | bytes, flags: int = 0, budget: Budget | None = None) -> Language:
    r"""The language of the texts that ``re.fullmatch(pattern, text, flags)`` accepts, in UTF-8.

    A str pattern matches Unicode text (``\d``, ``\w``, ranges and ignoring case as in ``re``); a bytes pattern matches
    bytes. ``flags`` are those of ``re``. Look-around and anchors are exact; greedy and lazy quantifiers mean the same.
    The translation uses ``positions`` and ``seconds`` of the budget; the rest bounds queries about the language.

    Raises PatternSyntaxError if ``re.compile`` fails; UnsupportedPatternError for back-references, conditionals, atomic
    groups, possessive quantifiers, LOCALE, and look-behind that contains look-ahead beyond its end, or too many
    conditions (position and caret in the message); BudgetExceeded("positions" or "seconds") if counted repetitions
    multiply beyond the budget, or if the translation takes too long.

    Groups with the names in ``named_groups.NAMES`` stand for languages: ``(?P<QUOTED_TEXT>)``,
    ``(?P<SUBSTRING_OF>abc)``. All other named groups are captured (``Constraint.captures``), as in ``re``.
    """
    expr = expression(pattern, flags, budget, named_groups=True)
    shown = f", {re.RegexFlag(flags)!r}" if flags else ""
    made_of = with_flags(pattern, flags) if isinstance(pattern, str) else None
    return Language(
        expr, f"regex({pattern!r}{shown})", budget, reading(pattern, flags, budget), pattern=made_of
    )


def with_flags(pattern: str, flags: int) -> str:
    """The pattern with those of the flags in front that change its meaning: ``with_flags("a", re.I)`` is ``(?i)a``."""
    letters = "".join(letter for flag, letter in _LETTERS if flags & flag)
    return f"(?{letters}){pattern}" if letters else pattern


def reading(pattern: str | bytes | Pattern, flags: int = 0, budget: Budget | None = None) -> Reading | None:
    """The capture reading of a pattern that has an expression; None if it has no named groups."""
    text = pattern.text if isinstance(pattern, Pattern) else pattern
    if (b"(?P<" if isinstance(text, bytes) else "(?P<") not in text:  # type: ignore[operator]
        return None
    limits = budget or _DEFAULT
    if not isinstance(pattern, Pattern):
        pattern = Pattern(pattern, flags, limits, reserved=NAMES if isinstance(text, str) else ())
    return captured_groups(pattern, _Translator(pattern, Deadline(limits, shorten(str(text)))).plain)


def expression(
    pattern: str | bytes | Pattern,
    flags: int = 0,
    budget: Budget | None = None,
    *,
    any_width: bool = False,
    named_groups: bool = False,
) -> Expr:
    """The expression of ``regex(pattern, flags, budget)``, or of a parsed pattern.

    With ``any_width``, look-behind need not have a fixed width, as in ECMA-262; only the part between a condition
    inside it and its end must have one. ``named_groups``: whether names in ``named_groups.NAMES`` stand for languages.
    """
    text = pattern.text if isinstance(pattern, Pattern) else pattern
    limits = budget or _DEFAULT
    deadline = Deadline(limits, shorten(str(text)))
    if isinstance(pattern, str) and not flags and (plain := read_plain(pattern, limits)) is not None:
        deadline.check()
        return plain.expr()
    try:
        if not isinstance(pattern, Pattern):
            reserved = NAMES if named_groups else ()
            pattern = Pattern(pattern, flags, limits, any_width=any_width, reserved=reserved)
            deadline.check()
        translator = _Translator(pattern, deadline)
        if not pattern.asserting[id(pattern.tree)]:
            return translator.plain(pattern.tree.data, pattern.flags)
        return Lookaround(pattern, translator.plain).translate()
    except RecursionError:
        pass
    # Outside of the handler, where the stack is shallow again.
    message = "groups are nested too deeply here; flatten the pattern"
    raise UnsupportedPatternError(message, text, deepest_group(text))


class _Translator:
    """Turns parts of a pattern without assertions into expressions."""

    def __init__(self, pattern: Pattern, deadline: Deadline) -> None:
        self.pattern, self.deadline = pattern, deadline

    def plain(self, items: list[tuple[Any, Any]], flags: int) -> Expr:
        """The items in sequence. Adjacent literals become one word."""
        parts: list[Expr] = []
        word: list[int] = []
        ignoring_case = flags & _IGNORECASE
        self.deadline.tick(len(items))
        for op, argument in items:
            if op is LITERAL and not (ignoring_case and is_cased(argument, flags)):
                word.append(argument)
                continue
            if word:
                parts.append(_literal(word, flags))
                word = []
            if op is MAX_REPEAT or op is MIN_REPEAT:
                low, high, body = argument
                parts.append(self._repeat(low, high, body, flags))
            elif op is SUBPATTERN:
                number, added, removed, body = argument
                if number in self.pattern.reserved:
                    parts.append(NamedGroup(self.pattern, number, flags).expr(expression))
                else:
                    parts.append(self.plain(body.data, combine_flags(flags, added, removed)))
            elif op is BRANCH:
                parts.append(union(*[self.plain(each.data, flags) for each in argument[1]]))
            elif op is FAILURE:
                parts.append(EMPTY)
            else:
                self.deadline.check()
                parts.append(leaf(op, argument, flags))
        if word:
            parts.append(_literal(word, flags))
        return concat(*parts)

    def _repeat(self, low: int, high: int, body: Tree, flags: int) -> Expr:
        part = self.plain(body.data, flags)
        if part is EMPTY:
            return EMPTY if low else EPSILON
        bounded = high is not MAXREPEAT
        source = self.pattern.quantified(body) if (high if bounded else low) > _LABELLED else None
        return repeat(part, low, high if bounded else None, source)


def _literal(codes: list[int], flags: int) -> Expr:
    return literal("".join(map(chr, codes)).encode() if flags & TEXT else bytes(codes))
