"""Expansion of unordered members into concatenations and unions, for constructions that follow words part by part.

The idea: there is one expression for each set of used options and, if the number of members matters, for each
number of them; expressions share their ends. So n options need 2^n expressions, and more than ``_MOST`` options are
refused, because such a construction would need all of these expressions.
"""

from __future__ import annotations

from collections.abc import Callable

from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    Op,
    Unordered,
    concat,
    repeat,
    union,
)
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.rules.graph import inner_nodes
from tokenfst.errors import ConstraintError

_MOST = 6
"""The largest number of options."""
_MOST_COUNT = 64
"""The largest number of members that are counted one by one."""


def written_out(body: Expr, wanted: Callable[[Expr], bool], purpose: str) -> Expr:
    """``body`` with each UNORDERED node for which ``wanted`` is true expanded; the same object if there is none.

    Raises ConstraintError, with the ``purpose``, for a node with too many options or too large bounds.
    """
    done: dict[int, Expr] = {}
    for node in inner_nodes(body):
        args = [done.get(id(arg), arg) for arg in node.args]
        same = all(new is old for new, old in zip(args, node.args, strict=True))
        made = node if same else rebuilt(node, args)
        if node.op is Op.UNORDERED and wanted(node) and made.op is Op.UNORDERED:
            made = _orders(made, purpose)
        done[id(node)] = made
    return done[id(body)]


def _orders(node: Expr, purpose: str) -> Expr:
    assert isinstance(node.value, Unordered)
    low, high, required, repeats = node.value
    separator, *options = node.args
    other = options.pop() if repeats else EMPTY
    options_only = repeats != 1
    counted = repeats > 0 and (high >= 0 or (low > required and not options_only))
    cap = max(0 if options_only else low, high) if counted else 0
    if len(options) > _MOST or cap > _MOST_COUNT:
        raise ConstraintError(
            f"{purpose} follows members in any order through every set and number of them: at most {_MOST} options "
            f"and, where others may be repeated, bounds up to {_MOST_COUNT}; not {len(options)} options, and "
            f"{low} to {'any number' if high < 0 else high} members"
        )
    needed = (1 << required) - 1
    known: dict[tuple[int, int], Expr] = {}

    def after(used: int, count: int) -> Expr:
        """What follows ``count`` members, at least one. Counts from ``cap`` on are equivalent."""
        count = min(count, cap) if counted and high < 0 else count
        key = used, count if counted else 0
        if key not in known:
            known[key] = EMPTY  # not read while this entry is made, because sets and counts only grow
            enough = (used.bit_count() if options_only else count) >= low
            ended = EPSILON if used & needed == needed and enough else EMPTY
            more = concat(separator, member(used, count))
            if repeats and (not counted or (high < 0 and count == cap)):
                known[key] = concat(repeat(concat(separator, other)), union(ended, more))
            else:
                known[key] = union(ended, more)
        return known[key]

    def member(used: int, count: int) -> Expr:
        """The member after ``count`` others, and what follows it; without ``other`` if its copies lead back here."""
        if 0 <= high <= count:
            return EMPTY
        parts = [
            concat(option, after(used | 1 << k, count + 1))
            for k, option in enumerate(options)
            if not used >> k & 1
        ]
        loops = not counted or (high < 0 and min(count, cap) == cap)
        if repeats and (count == 0 or not loops):
            parts.append(concat(other, after(used, count + 1)))
        return union(*parts)

    whole = union(EPSILON if low == 0 else EMPTY, member(0, 0))
    return whole.named(node.source) if node.source and whole.args else whole
