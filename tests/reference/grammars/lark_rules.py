"""The expression of a rule's body by Python alone: the twin of the core's ``SyntaxTree.rule``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenfst.automata.expressions.expression import EPSILON, Expr, concat, optional, repeat, union
from tokenfst.automata.notations.parsing.reading import Token, fold

BOUNDS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def slow_rule_body(
    tree: Any, values: dict[str, Expr], part: Callable[[str, list[Any]], Any], deadline: Any
) -> Expr:
    """As ``reading.rule_body``."""

    def build(kind: str, children: list[Any]) -> Any:
        if kind not in ("alternative", "expansions", "maybe", "quantified", "alias"):
            found = part(kind, children)
            return (found, "") if isinstance(found, Expr) else found
        if kind == "alias":
            return EPSILON, ""
        if kind == "quantified":
            return repeat(expr(children[0]), *BOUNDS[str(children[1])]), ""
        parts = [expr(each) for each in children]
        if kind == "maybe":
            return optional(*parts), ""
        return (concat if kind == "alternative" else union)(*parts), ""

    def expr(child: Any) -> Expr:
        return values[child] if isinstance(child, Token) else child[0]

    found: Expr = fold(tree, build)[0]
    return found
