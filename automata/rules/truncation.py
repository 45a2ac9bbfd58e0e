"""The regular part of a grammar down to a depth: all calls inlined, recursion cut.

The idea. Regular parts are inlined exactly (``inlining``): left and tail recursion, and calls that are not
recursive. Cycles of other calls are cut at their heads, which come from a weak topological order
(``graph.nested_heads``). A call of a head from inside of its component uses one of the ``depth`` re-entries of that
head. Entering an inner component anew gives it all of its own re-entries. It gets one more if it is not entered by
its head, because the first call of the head is then no re-entry.

Invariant: only the cuts change the language, and a cut only removes derivations; so the result is a subset, and
more depth gives a superset. A path through a derivation that re-enters a head n times nests that rule n times in
itself, so no derivation is lost in which every rule is nested at most ``depth`` times. This also holds for the
rules that removing left recursion adds: each stands for occurrences of the rule that it is named after.

Cost: one expression per (rule, re-entries left), shared by all callers: rules × depth nodes if no component lies
inside of another, rules × depth^k for k levels of them. Rejected: one counter for all components, which is always
linear, but then a sign before a number would use up the depth of brackets.
"""

from __future__ import annotations

from collections.abc import Mapping

from tokenfst.automata.expressions.expression import EMPTY, Expr
from tokenfst.automata.rules.graph import cycles
from tokenfst.automata.rules.inlining import Inliner
from tokenfst.budget import Budget

_Key = tuple[str, tuple[int, ...]]


def hard_cycle(rules: Mapping[str, Expr], start: str, budget: Budget) -> list[str] | None:
    """The rules of one component that only a stack recognizes; ``None`` where inlining is exact."""
    inliner = Inliner(rules, start, budget)
    found = cycles(inliner.hard)
    return list(dict.fromkeys(inliner.origins.get(name, name) for name in found[0])) if found else None


def inline(rules: Mapping[str, Expr], start: str, depth: int, budget: Budget) -> Expr:
    """The words of ``start`` with heads of recursion entered again at most ``depth`` times (see above)."""
    inliner = Inliner(rules, start, budget)
    around = inliner.heads()
    if (recursive := next((name for name, heads in around.items() if heads), None)) is not None:
        # A head is entered again ``depth`` times, and each time at least one node is made.
        inliner.meter.require(depth, recursive)

    def entered(caller: _Key, callee: str) -> _Key | None:
        """The key that a call leads to; ``None`` if the call is one too deep."""
        name, left = caller
        chain, target = around[name], around[callee]
        if target and target[-1] == callee and target == chain[: len(target)]:
            last = len(target) - 1
            return None if left[last] == 0 else (callee, (*left[:last], left[last] - 1))
        common = 0
        while common < min(len(chain), len(target)) and chain[common] == target[common]:
            common += 1
        # A component that is not entered by its head has one entry of the head left besides the re-entries.
        return callee, (*left[:common], *(depth + (head != callee) for head in target[common:]))

    first: _Key = (start, (depth,) * len(around[start]))
    done: dict[_Key, Expr] = {}
    met = {first}
    stack = [first]
    while stack:
        key = stack[-1]
        if key in done:
            stack.pop()
            continue
        targets = {callee: entered(key, callee) for callee in inliner.hard[key[0]]}
        if waiting := [target for target in targets.values() if target is not None and target not in done]:
            stack += waiting
            met.update(waiting)
            inliner.meter.require(len(met), key[0])
            continue
        stack.pop()
        done[key] = inliner.expressions(
            key[0], {callee: EMPTY if at is None else done[at] for callee, at in targets.items()}
        )[key[0]]
    return done[first]
