"""Marks of strings that must differ from each other: what no automaton remembers, and a sequence does.

An expression says where such strings end; the native core remembers what they were, for each sequence, and drops the
readings in which one comes twice (docs/decisions/005-dynamic-exclusion.md).
"""

from __future__ import annotations

from tokenfst.automata.expression import EMPTY, Expr, Op


def opened(bracket: Expr) -> Expr:
    """``bracket``, which opens a JSON array or object: ``fresh`` strings right inside of it must differ.

    What stands between here and the closing bracket must be JSON. Neither may stand under ``complement``, ``behind``
    or ``scope``, and finite automata (``Language.determinize``) cannot hold them.
    """
    return EMPTY if bracket is EMPTY else Expr(Op.OPENED, (bracket,))


def fresh(text: Expr, *, thin: bool = True) -> Expr:
    """``text``, a JSON string (a member's name, or an item), unless it has the value of a ``fresh`` one before it in
    the same array or object (docs/decisions/005-dynamic-exclusion.md).

    ``text`` must have more words than an array or object has room for: what is left when all are used is not looked
    for. ``thin``: whether it has prefixes that only some of them begin with; if there are none, masks are found a
    little faster.
    """
    return EMPTY if text is EMPTY else Expr(Op.FRESH, (text,), int(thin))
