"""The regular part of a grammar down to a depth: all calls inlined, recursion cut.

The idea. What is regular as it stands is inlined exactly (``inlining``): left and tail recursion, and calls that
come back to nothing. Cycles of other calls are cut at their heads, which come from a weak topological order
(``graph.nested_heads``). A call of a head from inside of its component takes one of the ``depth`` re-entries
of that head; entering an inner component anew gives it all of its own, and one more where it is not entered by its
head: the first call of the head is no re-entry then.

Invariant: no step changes the language but the cuts, and a cut only removes derivations; so the result is a
subset, and more depth a superset. A path through a derivation that re-enters a head n times nests that rule
n times in itself, so nothing is lost of derivations in which every rule is nested at most ``depth`` times. That
holds of the rules that removing left recursion adds as well: each stands for occurrences of the rule it is named
after.

Cost: an expression per (rule, re-entries left), shared by all that call it: rules × depth nodes where no
component lies inside of another, rules × depth^k for k levels of them. Rejected: one counter for all
components, which is always linear, but then a sign in front of a number would use up the depth of brackets.
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
        # A head is entered again as often as ``depth`` says, and each time a node is made at least.
        inliner.meter.require(depth, recursive)

    def entered(caller: _Key, callee: str) -> _Key | None:
        """What a call leads to; ``None`` if it is one too deep."""
        name, left = caller
        chain, target = around[name], around[callee]
        if target and target[-1] == callee and target == chain[: len(target)]:
            last = len(target) - 1
            return None if left[last] == 0 else (callee, (*left[:last], left[last] - 1))
        common = 0
        while common < min(len(chain), len(target)) and chain[common] == target[common]:
            common += 1
        # A component that is not entered by its head has an entry of it left beside the re-entries.
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
