"""What a digest of a program stands for, by brute force: descriptions that are equal where the digests must be.

A description is nested text. Unions and intersections are sorted and flat, concatenations flat and their words spelled
byte by byte. Of rules, the least description over all ways to number them, once those that cannot be told apart are
one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from tokenfst.automata.expressions.expression import Expr, Op


def of_expression(expr: Expr, names: Mapping[object, int]) -> str:
    """The description of an expression without variables; ``names``: the numbers of rules."""
    if expr.op is Op.CALL:
        return f"<{names[expr.value]}>"
    if expr.op is Op.CONCAT:
        return f"({' '.join(_row(expr, names))})"
    if expr.op in (Op.UNION, Op.INTERSECT):
        parts = _mixed(expr, expr.op, names)
        return next(iter(parts)) if len(parts) == 1 else f"{expr.op.name}{{{' '.join(sorted(parts))}}}"
    if expr.op in (Op.LITERAL, Op.EPSILON) or _byte(expr) is not None:
        row = _row(expr, names)
        return row[0] if len(row) == 1 else f"({' '.join(row)})"
    if expr.op is Op.BYTES:
        return f"[{expr.value:x}]"
    value = expr.value.words() if expr.op is Op.WORDS else expr.value
    if expr.op is Op.MACHINE:
        value = [array.tolist() for array in (value.classes, value.table, value.accepting)] + [value.start]
    return f"{expr.op.name}{value}({', '.join(of_expression(part, names) for part in expr.args)})"


def of_rules(rules: Mapping[str, Expr], empty: Mapping[str, bool], start: str) -> str:
    """The least description of rules over all ways to number those that ``start`` reaches."""
    reached = _reached(rules, start)
    classes = dict.fromkeys(reached, 0)
    for _ in reached:  # as states of an automaton are told apart
        said = {name: (classes[name], empty[name], of_expression(rules[name], classes)) for name in reached}
        order = sorted(set(said.values()))
        classes = {name: order.index(said[name]) for name in reached}
    kept = {number: name for name, number in reversed(classes.items())}
    found = []
    for order in itertools.permutations(kept):
        numbers = {name: order.index(classes[name]) for name in reached}
        bodies = [f"{empty[kept[one]]} {of_expression(rules[kept[one]], numbers)}" for one in order]
        found.append(f"{numbers[start]}: {'; '.join(bodies)}")
    return min(found)


def _byte(expr: Expr) -> int | None:
    if expr.op is Op.BYTES and expr.value.bit_count() == 1:
        return expr.value.bit_length() - 1
    return None


def _row(expr: Expr, names: Mapping[object, int]) -> list[str]:
    if expr.op is Op.CONCAT:
        return [each for part in expr.args for each in _row(part, names)]
    if expr.op is Op.EPSILON:
        return []
    if expr.op is Op.LITERAL:
        return [f"{byte:02x}" for byte in expr.value]
    if expr.op in (Op.UNION, Op.INTERSECT) and len(_mixed(expr, expr.op, names)) == 1:
        same = of_expression(expr, names)
        return next(_row(part, names) for part in expr.args if of_expression(part, names) == same)
    return [f"{byte:02x}"] if (byte := _byte(expr)) is not None else [of_expression(expr, names)]


def _mixed(expr: Expr, op: Op, names: Mapping[object, int]) -> set[str]:
    parts, bits = _parts(expr, op, names)
    if bits:
        byte = bits.bit_length() - 1
        parts.add(f"{byte:02x}" if bits.bit_count() == 1 else f"[{bits:x}]")
    return parts


def _parts(expr: Expr, op: Op, names: Mapping[object, int]) -> tuple[set[str], int]:
    if expr.op is op:
        found, bits = set(), 0
        for part in expr.args:
            inner = _parts(part, op, names)
            found, bits = found | inner[0], bits | inner[1]
        return found, bits
    if op is Op.UNION and expr.op is Op.BYTES:
        return set(), expr.value
    return {of_expression(expr, names)}, 0


def _reached(rules: Mapping[str, Expr], start: str) -> list[str]:
    found = [start]
    for name in found:
        for node in rules[name].walk():
            if node.op is Op.CALL and node.value not in found:
                found.append(node.value)
    return found
