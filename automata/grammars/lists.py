"""The named groups of Koo, Liu and He (2024), table 1, as functions: pieces of text that are hard to write as patterns.

Each is an exact language over bytes that composes with all others. Where a part is an argument, a str stands for that
text itself, and a ``Language`` or ``Grammar`` for its words; if a part of a list is a grammar, the list is a grammar.
Inside a pattern the same pieces are written ``(?P<QUOTED_TEXT>)`` and so on (``named_groups``).
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenfst.automata.grammars.assembly import Assembly
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.display.readable import shorten
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import refuse_large
from tokenfst.automata.pieces import text as text_groups
from tokenfst.automata.pieces.substrings import substring_of
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import ConstraintError

__all__ = [
    "delimited_list",
    "delimited_subsequence_of",
    "quoted_text",
    "substring_of",
    "text_until",
    "unquoted_text",
]

_SHOWN = 60


@checked
def quoted_text(quotes: str = '"') -> Language:
    r"""A quoted string with backslash escapes, on one line.

    It is a quotation mark, characters, and the same mark. A mark or a backslash among the characters must be escaped by
    a backslash; a backslash may precede any character but a line break. ``quotes`` lists the allowed marks (``"'\""``).
    """
    if not quotes or any(mark in "\\\n\r" or "\ud800" <= mark <= "\udfff" for mark in quotes):
        raise ConstraintError(
            f"quotes={quotes!r} must be quotation marks, at least one: no backslash or line break"
        )
    strings = (Language(text_groups.quoted(mark)) for mark in dict.fromkeys(quotes))
    return Language(Language.union_of(strings).expr, f"quoted_text({quotes!r})")


def unquoted_text() -> Language:
    """A YAML-style string without quotes: a plain scalar of YAML 1.2.2 on one line, outside ``[]`` and ``{}``.

    It neither starts nor ends with white space, does not start with an indicator (but ``- ? :`` may precede a visible
    character), and contains neither ``": "`` nor ``" #"``.
    """
    return Language(text_groups.unquoted(), "unquoted_text()")


@checked
def text_until(stop: str | Language, *, budget: Budget | None = None) -> Language:
    """Text up to and including the first occurrence of ``stop``.

    For a text of n bytes, a deterministic automaton with a few states for each byte. Raises ConstraintError if ``stop``
    is the empty text.
    """
    part = stop if isinstance(stop, Language) else Language.literal(stop)
    if stop in ("", b""):
        raise ConstraintError(
            "an empty stop phrase has appeared before anything is read: give one with characters"
        )
    expr = text_groups.until(part.expr, budget or part.budget)
    return Language(expr, f"text_until({_shown(stop)})", budget or part.given_budget)


@checked
def delimited_list(
    item: str | Constraint, separator: str | Constraint, low: int = 1, high: int | None = None
) -> Language | Grammar:
    """``low`` to ``high`` words of ``item`` (``None``: any number), with ``separator`` between each two.

    Returns a Grammar if ``item`` or ``separator`` is one, else a Language. O(1) for languages; linear in the rules of
    grammars. Raises ConstraintError unless 0 <= ``low`` <= ``high``.
    """
    if low < 0 or (high is not None and high < low):
        raise ConstraintError(f"a list cannot have {low} to {high} items")
    refuse_large("delimited_list", low=low, high=high)
    source = f"delimited_list({_shown(item)}, {_shown(separator)}, {low}, {high})"
    parts = Assembly()
    made = text_groups.listed(
        parts.expr(_language(item)), parts.expr(_language(separator)), low, high, source
    )
    return parts.finish(made, source)


@checked
def delimited_subsequence_of(
    items: Iterable[str | Constraint], separator: str | Constraint
) -> Language | Grammar:
    """A non-empty subsequence of ``items``, each at most once and in their order, with ``separator`` between each two.

    Returns a Grammar if any part is one, else a Language. Linear in the items; a state considers all items that may
    come next. Raises ConstraintError if there are no items.
    """
    given = list(items)
    if not given:
        raise ConstraintError("delimited_subsequence_of needs at least one item")
    parts = Assembly()
    made = text_groups.subsequence(
        [parts.expr(_language(item)) for item in given], parts.expr(_language(separator))
    )
    shown = ", ".join(map(_shown, given[:4])) + (", ..." if len(given) > 4 else "")
    return parts.finish(made, f"delimited_subsequence_of([{shown}], {_shown(separator)})")


def _language(part: str | Constraint) -> Constraint:
    return Language.literal(part) if isinstance(part, (str, bytes)) else part


def _shown(part: str | Constraint) -> str:
    return shorten(repr(part) if isinstance(part, (str, bytes)) else part.source, _SHOWN)
