"""A shortest word of each rule of a grammar.

Every rule's word is improved until none changes. Words of callees are first found for short bodies, so the number of
passes is at most the depth of the shortest derivation tree, and a pass is linear in the bodies that call a changed
rule. This is a least fixed point of Knuth's kind (Knuth, "A generalization of Dijkstra's algorithm", 1977), computed by
iteration, because words are few and byte order decides between equally long ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cmp_to_key

from tokenfst.automata.expressions.expression import Expr, Op, Unordered, bounds_of
from tokenfst.automata.languages.language import Language
from tokenfst.automata.rules.graph import COMPOSED, called, inner_nodes, name_of
from tokenfst.budget import Budget


def shortest_words(rules: Mapping[str, Expr], budget: Budget | None) -> dict[str, bytes]:
    """The shortest word of each rule that has a word; of several, the first in byte order."""
    leaves: dict[int, bytes | None] = {}
    callers: dict[str, list[str]] = {}
    for name, body in rules.items():
        for callee in called(body):
            callers.setdefault(callee, []).append(name)
    words: dict[str, bytes] = {}
    waiting = dict.fromkeys(rules)
    while waiting:
        name = next(iter(waiting))
        del waiting[name]
        found = _word(rules[name], words, leaves, budget)
        if found is not None and (name not in words or _key(found) < _key(words[name])):
            words[name] = found
            waiting.update(dict.fromkeys(callers.get(name, ())))
    return words


def _key(word: bytes) -> tuple[int, bytes]:
    return len(word), word


def _word(
    body: Expr, words: Mapping[str, bytes], leaves: dict[int, bytes | None], budget: Budget | None
) -> bytes | None:
    found: dict[int, bytes | None] = {}
    for node in inner_nodes(body):
        parts = [found[id(arg)] for arg in node.args] if node.op in COMPOSED else []
        there = [part for part in parts if part is not None]
        word: bytes | None
        if node.op is Op.CONCAT:
            word = b"".join(there) if len(there) == len(parts) else None
        elif node.op is Op.UNION:
            word = min(there, key=_key, default=None)
        elif isinstance(node.value, Unordered):
            word = _unordered(node.value, parts[0], parts[1:])
        elif node.op is Op.REPEAT:
            low, _ = bounds_of(node)
            word = b"" if low == 0 else there[0] * low if there else None
        elif node.op is Op.CALL:
            word = words.get(name_of(node))
        else:
            if id(node) not in leaves:
                leaves[id(node)] = Language(node, budget=budget).witness()
            word = leaves[id(node)]
        found[id(node)] = word
    return found[id(body)]


def _unordered(value: Unordered, separator: bytes | None, parts: list[bytes | None]) -> bytes | None:
    """The required members and the shortest others that are needed, in the order that gives the least word.

    With the separator after each, x comes before y if xy is less than yx.
    """
    low, _, required, repeats = value
    if low == 0:
        return b""
    if low > 1 and separator is None:
        return None
    after = separator or b""
    words = [None if part is None else part + after for part in parts]
    chosen = [word for word in words[:required] if word is not None]
    if len(chosen) < required:
        return None
    again = words.pop() if repeats else None
    if repeats == 2:
        again = None
    others = sorted((word for word in words[required:] if word is not None), key=_key)
    if again is not None:
        others = [word for word in others if _key(word) < _key(again)]
    chosen += others[: low - required]
    if len(chosen) < low:
        if again is None:
            return None
        chosen += [again] * (low - len(chosen))
    chosen.sort(key=cmp_to_key(_order))
    whole = b"".join(chosen)
    return whole[: len(whole) - len(after)]


def _order(x: bytes, y: bytes) -> int:
    return (x + y > y + x) - (x + y < y + x)
