"""Marks of strings and other items that must differ from each other.

No finite automaton can remember such items, so they are kept for each sequence.

An expression marks where such strings end. The native core remembers their values for each sequence, and drops the
parses in which a value occurs twice (docs/decisions/005-dynamic-exclusion.md).
"""

from __future__ import annotations

from tokenfst.automata.expressions.expression import EMPTY, Differing, Expr, Op

FEW_VALUES, MANY_VALUES = 64, 1 << 20
"""The numbers of values to which ``Differing.few_bytes`` and ``Differing.many_bytes`` refer (see ``fresh``)."""


def opened(bracket: Expr) -> Expr:
    """``bracket``, which opens a JSON array or object: ``fresh`` strings directly inside it must differ.

    The text between here and the closing bracket must be JSON. Neither ``opened`` nor ``fresh`` may stand under
    ``complement``, ``behind`` or ``scope``, and finite automata (``Language.determinize``) cannot represent them.
    """
    return EMPTY if bracket is EMPTY else Expr(Op.OPENED, (bracket,))


def fresh(
    text: Expr, *, few_endings: bool = True, fewest: int = 0, few_bytes: int = 0, many_bytes: int = 0
) -> Expr:
    """``text``, a JSON string (a member's name, or an item), unless its value equals that of an earlier ``fresh``
    string in the same array or object (docs/decisions/005-dynamic-exclusion.md).

    ``few_endings``: whether some prefix of a value has only few endings; if none has, masks are found slightly faster.
    ``fewest``: a lower bound on the number of values if there are finitely many; 0 if there are more than an array or
    object can hold. Where it is not 0, the expression must not require more values than there are; once all values are
    used, no further string begins. ``few_bytes``: a number of bytes within which, after any prefix, ``FEW_VALUES``
    values end, or all that are left; 0: unknown. ``many_bytes``: the same for ``MANY_VALUES``.
    """
    if text is EMPTY:
        return EMPTY
    return Expr(Op.FRESH, (text,), Differing(few_endings, fewest, few_bytes, many_bytes))


def fresh_value(end: Expr, *, alone: bool = False) -> Expr:
    """``end``, the end of an array item that is not a string, unless the item equals an earlier item that ended with
    such a mark.

    ``end`` is the closing bracket of an object or array, a number, or a word (``true``). ``alone``: the array requires
    at most one item, so a shortest text begins no further item after a complete one. Masks for few remaining tokens
    then need not inspect every token.
    """
    known = int(alone)
    return (
        EMPTY
        if end is EMPTY
        else Expr(Op.FRESH, (end,), Differing(values=True, few_bytes=known, many_bytes=known))
    )
