"""Members in any order, each at most once: options of a command, attributes of an element, members of an object.

The idea: one expression kind of its own (``expression.unordered``), of which only those sets of used members are ever
made that a text leads to: 2^n of them exist for n members, and a text of k members meets k. So ``accepts``, masks and
decoding are cheap for a thousand members, while ``determinize()``, ``expand()`` and other questions that need every
state raise BudgetExceeded where there are too many sets.

In grammars, ``expression.unordered`` takes calls of rules as members.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenfst.arguments import checked
from tokenfst.automata.expressions import expression
from tokenfst.automata.expressions.expression import EMPTY
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import widest
from tokenfst.errors import ConstraintError


@checked
def unordered(
    optional: Sequence[Language | str] = (),
    *,
    required: Sequence[Language | str] = (),
    other: Language | str | None = None,
    separator: Language | str = "",
    low: int = 0,
    high: int | None = None,
) -> Language:
    """Sequences of members in any order, with a word of ``separator`` between any two that follow each other.

    Each of ``required`` comes exactly once, each of ``optional`` at most once, ``other`` any number of times;
    ``low`` to ``high`` members in all (``None``: any number). Text stands for the language of that one word.

    No member may have the empty word (ConstraintError): an optional one is left out instead. Where one text is a word
    of several members, every reading is kept. O(n) to make; each byte that is read costs at most the members that
    still begin like it, found once for all sets of used members.
    """
    members = [_language(each) for each in (*required, *optional, *([] if other is None else [other]))]
    between = _language(separator)
    if low < 0 or (high is not None and high < low):
        raise ConstraintError(f"the number of members cannot be from {low} to {high}")
    for each in members:
        if each.accepts(b""):
            raise ConstraintError(f"the member {each!r} has the empty word: leave it out of the member")
    named = members if other is None else members[:-1]
    shown = ", ".join(each.source for each in members[:8]) + (", ..." if len(members) > 8 else "")
    source = f"unordered({shown})"
    expr = expression.unordered(
        [each.expr for each in named],
        between.expr,
        required=len(required),
        other=EMPTY if other is None else members[-1].expr,
        low=low,
        high=high,
        source=source,
    )
    return Language(expr, source, widest(*(each.given_budget for each in (*members, between))))


def _language(value: Language | str) -> Language:
    return Language.literal(value) if isinstance(value, str) else value
