"""Emptiness of expressions without calls, cached for the lifetime of the expression.

Most expressions have a word by their form: a union if one part has, a concatenation if all have. Only intersections,
complements, recursions and look-behind need a search, and only if the rest does not decide. Front ends share
expressions, so each is searched once in a process.

Invariant: a cached answer depends on the expression only; a search that exceeds its budget is not cached.
"""

from __future__ import annotations

from tokenfst.automata.expressions.expression import Dfa, Expr, Op, Unordered, below, body_of, bounds_of
from tokenfst.automata.languages.engine import make_automaton
from tokenfst.budget import Budget

SEARCHED = frozenset((Op.INTERSECT, Op.COMPLEMENT, Op.VARIABLE, Op.BEHIND, Op.SCOPE))
"""Operators whose emptiness is decided by a search."""

_WORD, _NO_WORD = 1, 2
"""The values of ``Expr.known``."""
_CONCAT, _UNION, _REPEAT, _EMPTY = Op.CONCAT, Op.UNION, Op.REPEAT, Op.EMPTY


def has_word(root: Expr, budget: Budget | None) -> bool:
    """Whether an expression has a word. Linear in it if its form decides, or if the answer is cached.

    If it has one, the parts that every word needs are cached too. Raises BudgetExceeded.
    """
    by_form = _by_form(root, budget)
    if by_form is not None:
        return by_form
    found = make_automaton(root, budget or Budget()).viable_prefix(b"") >= 0
    if not found:
        root.known = _NO_WORD
        return False
    root.known = _WORD
    return record_word(root)


def record_word(root: Expr) -> bool:
    """Record that an expression has a word, which the caller knows without a search. Returns True."""
    needed = [root]
    while needed:
        node = needed.pop()
        if node.op is Op.CONCAT:
            needed += node.args
        elif node.op in SEARCHED or node.op is _UNION:
            node.known = _WORD
    return True


def is_known_to_have_word(node: Expr) -> bool:
    """Whether an expression is known to have a word."""
    return node.known == _WORD


def _by_form(root: Expr, budget: Budget | None) -> bool | None:
    """Whether there is a word, if form and memory decide it."""
    if root.size:
        return True
    facts: dict[int, bool | None] = {}
    for node in below(root, inner=lambda node: not node.size):
        found: bool | None
        op = node.op
        if node.size:
            found = True
        elif op is _UNION:
            inner = [facts.get(id(arg)) for arg in node.args]
            found = True if True in inner or node.known == _WORD else None if None in inner else False
        elif op is _CONCAT:
            inner = [facts.get(id(arg)) for arg in node.args]
            found = False if False in inner else None if None in inner else True
        elif op is _REPEAT:
            low, _ = bounds_of(node)
            found = True if low == 0 else facts.get(id(body_of(node)))
        elif isinstance(node.value, Unordered):
            found = _some_order(node.value, [facts.get(id(arg)) for arg in node.args])
        elif op in SEARCHED:
            found = node.known == _WORD if node.known else None
        elif op in (Op.OPENED, Op.FRESH, Op.FEW_TOKENS):
            found = facts.get(id(body_of(node)))
            if found is None and op is Op.FEW_TOKENS:  # a search needs bytes, and this is token-level
                found = has_word(body_of(node), budget)
        elif isinstance(node.value, Dfa):
            found = node.value.start != 0
        else:
            found = op is not _EMPTY
        facts[id(node)] = found
    return facts[id(root)]


def _some_order(value: Unordered, inner: list[bool | None]) -> bool | None:
    """The same for members in any order, of whose parts it is given."""
    low, _, required, repeats = value
    separator, *members = inner
    if low == 0:
        return True
    others = members.pop() if repeats else False
    again = others if repeats == 1 else False
    needed = [*members[:required], *([separator] if low > 1 else [])]
    if False in needed or (again is False and len(members) - members.count(False) < low):
        return False
    return True if all(needed) and (again or members.count(True) >= low) else None


def has_empty_word(root: Expr, budget: Budget | None) -> bool:
    """Whether the empty word is in an expression: decided by its form, except for recursion and look-behind."""
    facts: dict[int, bool] = {}
    for node in root.walk():
        if node.op in (Op.VARIABLE, Op.BEHIND, Op.SCOPE):
            return make_automaton(root, budget or Budget()).accepts(b"")
        inner = [facts.get(id(arg), False) for arg in node.args]
        if node.op in (Op.CONCAT, Op.INTERSECT):
            facts[id(node)] = all(inner)
        elif node.op is Op.UNION:
            facts[id(node)] = any(inner)
        elif node.op is Op.COMPLEMENT:
            facts[id(node)] = not inner[0]
        elif isinstance(node.value, Unordered):
            facts[id(node)] = node.value.low == 0
        elif node.op is Op.REPEAT:
            facts[id(node)] = bounds_of(node)[0] == 0 or inner[0]
        elif node.op is Op.FEW_TOKENS:
            facts[id(node)] = inner[0]
        elif isinstance(node.value, Dfa):
            facts[id(node)] = bool(node.value.accepting[node.value.start])
        else:
            facts[id(node)] = node.op is Op.EPSILON
    return facts[id(root)]
