"""The rules that a push-down automaton calls: a grammar in which every part that needs no stack is inlined.

The idea. A call that is walked costs a frame on a stack. A call that is inlined costs only the callee's expression,
which all callers share. Only heads of hard recursion must be called (``inlining``), so they and the start remain
rules. Every other call is replaced, as long as the resulting expression stays small: an expression is walked by its
derivatives, of which there are as many as it has positions, and more if they overlap.

Invariant: the rules keep their words, and none reaches itself at its left edge (``left_recursion``). Cost: one
expression per rule of the grammar. Rejected: keeping every rule of the grammar. It would push frames for rules that
only name a part, and these names would keep equal masks apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.rules.inlining import Inliner
from tokenfst.automata.rules.left_recursion import Rewritten
from tokenfst.budget import Budget

_LARGE = 20_000
"""If a rule's expression has more positions than this, its largest callees stay calls."""

_DOUBLINGS = 8
"""If a rule calls another one twice in a row, as in ``a: b b``, the callee is doubled. The doubled callees on a path
with at least this number of doublings stay calls.

Inlining would double the copies with each of them, and in an ambiguous grammar also the derivatives. Calls share their
return states.
"""


def pushdown_rules(rules: Mapping[str, Expr] | Rewritten, start: str, budget: Budget) -> dict[str, Expr]:
    """Rules with the same words of ``start``, which comes first, followed by the rules that must be called.

    Left recursion is removed from ``rules`` unless that has been done already.

    Calls remain for heads of recursion, for chains of rules that call the next one twice in a row (``_DOUBLINGS``), and
    for rules that would make their callers larger than about 20,000 positions. Rules that call each other as their last
    part become VARIABLEs, below which calls may occur. All other calls are replaced.

    The names are those of the grammar and those that ``rewrite_left_recursion`` adds. Linear in the rules; raises
    BudgetExceeded("positions" or "seconds") naming the rule.
    """
    return Inliner(rules, start, budget).called(_LARGE, _DOUBLINGS)
