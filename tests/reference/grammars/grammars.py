"""The slow twin of grammars: what a rule means on one given word, read off the definitions.

Every rule restricted to the word is a relation between places (see ``reference.expressions.expressions``), and the
rules together are the least solution of their bodies, by iteration from nothing. ``nested`` is the same for
derivations in which no rule stands inside itself more than so many times: a rule is then a relation for each
way of having been entered before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reference.expressions.expressions import Relation, _Reader
from tokenfst.automata.expressions.expression import Expr, Op


def accepts(rules: Mapping[str, Expr], start: str, word: bytes) -> bool:
    """Whether ``word`` is a word of the rule ``start``."""
    values: dict[str, Relation] = {name: (0,) * (len(word) + 1) for name in rules}
    while True:
        following = {
            name: _Rule(word, values.__getitem__).relation(body, 0, {}) for name, body in rules.items()
        }
        if following == values:
            return bool(values[start][0] >> len(word) & 1)
        values = following


def nested(rules: Mapping[str, Expr], start: str, word: bytes, depth: int) -> bool:
    """Whether ``word`` has a derivation on no path of which a rule occurs more than ``depth`` + 1 times."""
    known: dict[tuple[str, tuple[tuple[str, int], ...]], Relation] = {}

    def relation(name: str, left: dict[str, int]) -> Relation:
        if left[name] == 0:
            return (0,) * (len(word) + 1)
        left = {**left, name: left[name] - 1}
        key = (name, tuple(sorted(left.items())))
        if key not in known:
            known[key] = _Rule(word, lambda callee: relation(callee, left)).relation(rules[name], 0, {})
        return known[key]

    return bool(relation(start, dict.fromkeys(rules, depth + 1))[0] >> len(word) & 1)


class _Rule(_Reader):
    def __init__(self, word: bytes, value: Callable[[str], Relation]) -> None:
        super().__init__(word)
        self.value = value

    def compute(self, node: Expr, start: int, values: dict[int, Relation]) -> Relation:
        if node.op is Op.CALL:
            assert isinstance(node.value, str)
            return self.value(node.value)
        return super().compute(node, start, values)
