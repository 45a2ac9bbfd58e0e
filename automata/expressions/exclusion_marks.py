"""Marks of strings and other items that must differ from each other: what no automaton remembers, and a sequence does.

An expression says where such strings end; the native core remembers what they were, for each sequence, and drops the
readings in which one comes twice (docs/decisions/005-dynamic-exclusion.md).
"""

from __future__ import annotations

from tokenfst.automata.expressions.expression import EMPTY, Differing, Expr, Op

NEAR, FAR = 64, 1 << 20
"""Numbers of words for which it is known how long they are: ``Differing.near`` and ``far``."""


def opened(bracket: Expr) -> Expr:
    """``bracket``, which opens a JSON array or object: ``fresh`` strings right inside of it must differ.

    What stands between here and the closing bracket must be JSON. Neither may stand under ``complement``, ``behind``
    or ``scope``, and finite automata (``Language.determinize``) cannot hold them.
    """
    return EMPTY if bracket is EMPTY else Expr(Op.OPENED, (bracket,))


def fresh(text: Expr, *, thin: bool = True, fewest: int = 0, near: int = 0, far: int = 0) -> Expr:
    """``text``, a JSON string (a member's name, or an item), unless it has the value of a ``fresh`` one before it in
    the same array or object (docs/decisions/005-dynamic-exclusion.md).

    ``thin``: whether it has prefixes that only some of them begin with; if there are none, masks are found a little
    faster. ``fewest``: if they may run out, how many values there are at least; then no more may be asked for than
    there are, and where all are used, none is begun. 0: more values than an array or object has room for. ``near`` and
    ``far``: bytes within which, behind any prefix, ``NEAR`` and ``FAR`` values end, or all that are left; 0: unknown.
    """
    return EMPTY if text is EMPTY else Expr(Op.FRESH, (text,), Differing(thin, fewest, near, far))


def fresh_value(end: Expr, *, alone: bool = False) -> Expr:
    """``end``, with which an item of an array ends, unless that is equal to an item before it that ended so. It is the
    closing bracket of an object or array, or a number, or a word (``true``), and not a string.

    ``alone``: the array asks for one item at most, so that behind a whole item a shortest text begins no other one;
    then masks within few tokens are found without a look at every token."""
    known = int(alone)
    return EMPTY if end is EMPTY else Expr(Op.FRESH, (end,), Differing(values=True, near=known, far=known))
