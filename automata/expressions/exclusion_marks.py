"""Marks for strings and other items that must differ from each other, which an automaton cannot remember but a sequence
can.

An expression marks where such strings end. The native core remembers their values for each sequence, and drops the
parses in which a value occurs twice (docs/decisions/005-dynamic-exclusion.md).
"""

from __future__ import annotations

from tokenfst.automata.expressions.expression import EMPTY, Differing, Expr, Op

NEAR, FAR = 64, 1 << 20
"""Numbers of words whose lengths are bounded by ``Differing.near`` and ``far``."""


def opened(bracket: Expr) -> Expr:
    """``bracket``, which opens a JSON array or object: ``fresh`` strings directly inside it must differ.

    The text between here and the closing bracket must be JSON. Neither may stand under ``complement``, ``behind`` or
    ``scope``, and finite automata (``Language.determinize``) cannot represent them.
    """
    return EMPTY if bracket is EMPTY else Expr(Op.OPENED, (bracket,))


def fresh(text: Expr, *, thin: bool = True, fewest: int = 0, near: int = 0, far: int = 0) -> Expr:
    """``text``, a JSON string (a member's name, or an item), unless its value equals that of an earlier ``fresh``
    string in the same array or object (docs/decisions/005-dynamic-exclusion.md).

    ``thin``: whether some prefixes are shared by only some of its words; if not, masks are found slightly faster.
    ``fewest``: a lower bound on the number of values, if they may run out; then no more may be required than there are,
    and after all are used none is started. 0: more values than an array or object can hold. ``near`` and ``far``:
    numbers of bytes within which, after any prefix, ``NEAR`` and ``FAR`` values end, or all that are left; 0: unknown.
    """
    return EMPTY if text is EMPTY else Expr(Op.FRESH, (text,), Differing(thin, fewest, near, far))


def fresh_value(end: Expr, *, alone: bool = False) -> Expr:
    """``end``, the end of an array item that is not a string, unless the item equals an earlier item that ended with
    such a mark.

    ``end`` is the closing bracket of an object or array, a number, or a word (``true``). ``alone``: the array requires
    at most one item, so that after a complete item a shortest text starts no further one; then masks for few remaining
    tokens need not inspect every token.
    """
    known = int(alone)
    return EMPTY if end is EMPTY else Expr(Op.FRESH, (end,), Differing(values=True, near=known, far=known))
