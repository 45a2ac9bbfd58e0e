"""Members in any order, each at most once: command options, attributes of an element, members of an object.

A dedicated kind of expression (``expression.unordered``) creates only those sets of used members that a text reaches.
There are 2^n such sets for n members, but a text of k members visits k of them. So ``accepts``, masks and decoding are
cheap for a thousand members, while ``determinize()``, ``expand()`` and other operations that need every state raise
BudgetExceeded if there are too many sets.

In grammars, ``expression.unordered`` accepts calls of rules as members.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenfst.automata.expressions import expression
from tokenfst.automata.expressions.expression import EMPTY
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import refuse_large, widest
from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted
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
    """Sequences of members in any order, separated by words of ``separator``.

    Each of ``required`` occurs exactly once, each of ``optional`` at most once, ``other`` any number of times; there
    are ``low`` to ``high`` members in total (``None``: no upper bound). A str is the language of that one word. If a
    text is a word of several members, all readings are kept.

    O(n) to construct. Reading a byte costs at most the number of members that match so far, computed once for all sets
    of used members. Raises ConstraintError for a member that has the empty word (make the member optional instead), and
    for bounds that do not fit each other.
    """
    members = [_language(each) for each in (*required, *optional, *([] if other is None else [other]))]
    between = _language(separator)
    if low < 0 or (high is not None and high < low):
        raise ConstraintError(f"the number of members cannot be from {low} to {high}")
    refuse_large("unordered", low=low, high=high)
    if (other is None and low > len(members)) or (high is not None and high < len(required)):
        listed = f"{counted(len(required), 'required member')}, {len(optional):,} optional"
        wanted = f"{low} or more" if high is None else f"{low} to {high}"
        raise ConstraintError(f"no text has {wanted} members: there are {listed}, and no other")
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
