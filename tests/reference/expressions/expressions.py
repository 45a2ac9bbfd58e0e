"""The slow twin of the native core: what an expression means, read off its definition, on one given word.

A language is restricted to the word and becomes a relation between places: ``relation[i]`` is a bit set of
the places j such that word[i:j] belongs to it. Every operator is then its definition in relations, and
recursion is the least fixed point by iteration from nothing. O(n³) a node at best: for short words.
"""

from __future__ import annotations

import itertools

from tokenfst._native import Lexicon
from tokenfst.automata.expressions.expression import Dfa, Expr, Op, Unordered

Relation = tuple[int, ...]


def matches(expr: Expr, word: bytes) -> bool:
    """Whether ``word`` is in the language of ``expr``."""
    return bool(_Reader(word).relation(expr, 0, {})[0] >> len(word) & 1)


class _Reader:
    def __init__(self, word: bytes) -> None:
        self.word = word
        self.size = len(word) + 1
        self.pairs: Relation = tuple((1 << self.size) - (1 << i) for i in range(self.size))
        self.empty: Relation = tuple(1 << i for i in range(self.size))
        self.known: dict[object, Relation] = {}
        self.free: dict[int, frozenset[int]] = {}

    def relation(self, node: Expr, start: int, values: dict[int, Relation]) -> Relation:
        """``start`` is where the scope begins; ``values`` what the variables around are taken for."""
        key = (id(node), start, tuple(sorted((v, values[v]) for v in self.variables(node) if v in values)))
        if key not in self.known:
            self.known[key] = self.compute(node, start, values)
        return self.known[key]

    def compute(self, node: Expr, start: int, values: dict[int, Relation]) -> Relation:
        places = range(self.size)
        if node.op is Op.VARIABLE and id(node) in values:
            return values[id(node)]
        if node.op is Op.VARIABLE:
            value: Relation = (0,) * self.size
            while True:
                following = self.relation(node.args[0], start, {**values, id(node): value})
                if following == value:
                    return value
                value = following
        if node.op is Op.SCOPE:
            return tuple(self.relation(node.args[0], i, values)[i] for i in places)
        args = [self.relation(arg, start, values) for arg in node.args]
        match node.op:
            case Op.EMPTY:
                return (0,) * self.size
            case Op.EPSILON:
                return self.empty
            case Op.BYTES:
                assert isinstance(node.value, int)
                return (*(1 << i + 1 if node.value >> byte & 1 else 0 for i, byte in enumerate(self.word)), 0)
            case Op.LITERAL:
                assert isinstance(node.value, bytes)
                return self.words([node.value])
            case Op.CONCAT:
                result = self.empty
                for arg in args:
                    result = self.compose(result, arg)
                return result
            case Op.UNION:
                return tuple(_or(rows) for rows in zip(*args, strict=True))
            case Op.INTERSECT:
                return tuple(_and(rows) for rows in zip(*args, strict=True))
            case Op.COMPLEMENT:
                return tuple(pair & ~row for pair, row in zip(self.pairs, args[0], strict=True))
            case Op.REPEAT:
                assert isinstance(node.value, tuple)
                return self.power(args[0], *node.value)
            case Op.UNORDERED:
                assert isinstance(node.value, Unordered)
                return self.orders(node.value, args[0], args[1:])
            case Op.MACHINE:
                assert isinstance(node.value, Dfa)
                return tuple(self.run(node.value, i) for i in places)
            case Op.WORDS:
                assert isinstance(node.value, Lexicon)
                return self.words(node.value.words())
            case Op.SELECTION:
                assert isinstance(node.value, tuple)
                low, high = node.value
                assert isinstance(node.args[0].value, Lexicon)
                words = node.args[0].value.words()
                result = (0,) * self.size
                for count in range(low, (len(words) if high < 0 else min(high, len(words))) + 1):
                    for chosen in itertools.permutations(words, count):
                        row = self.empty
                        for k, word in enumerate(chosen):
                            row = self.compose(row, args[1]) if k else row
                            row = self.compose(row, self.words([word]))
                        result = tuple(a | b for a, b in zip(result, row, strict=True))
                return result
            case Op.BEHIND:
                return tuple((args[0][start] >> i & 1) << i for i in places)
        raise AssertionError(node.op)

    def words(self, words: list[bytes]) -> Relation:
        return tuple(
            _or([1 << i + len(word) for word in words if self.word[i:].startswith(word)])
            for i in range(self.size)
        )

    def compose(self, left: Relation, right: Relation) -> Relation:
        return tuple(_or([right[j] for j in range(self.size) if row >> j & 1]) for row in left)

    def power(self, body: Relation, low: int, high: int) -> Relation:
        result = self.empty
        for _ in range(low):
            result = self.compose(result, body)
        total, step = result, low
        while high < 0 or step < high:
            result = self.compose(result, body)
            step += 1
            united = tuple(a | b for a, b in zip(total, result, strict=True))
            if united == total and step > low + self.size:
                break
            total = united
        return total

    def orders(self, value: Unordered, separator: Relation, members: list[Relation]) -> Relation:
        """Every sequence of members that are not empty, by the options that it uses and their number."""
        low, high, required, repeats = value
        last = len(members) - (repeats > 0)
        total = [0] * self.size
        stack = [(self.empty, frozenset[int](), 0)]
        while stack:
            way, used, count = stack.pop()
            if (len(used) if repeats == 2 else count) >= low and used.issuperset(range(required)):
                total = [old | new for old, new in zip(total, way, strict=True)]
            if count in (high, self.size) or not any(way):
                continue
            if count:
                way = self.compose(way, separator)
            for k in range(len(members)):
                if k not in used:
                    following = self.compose(way, members[k])
                    stack.append((following, used | {k} if k < last else used, count + 1))
        return tuple(total)

    def run(self, dfa: Dfa, begin: int) -> int:
        state, ends = dfa.start, 0
        for j in range(begin, self.size):
            ends |= int(dfa.accepting[state]) << j
            if j < len(self.word):
                state = int(dfa.table[state, dfa.classes[self.word[j]]])
        return ends

    def variables(self, node: Expr) -> frozenset[int]:
        """The variables below ``node``, bound ones included: a harmless excess."""
        if id(node) not in self.free:
            self.free[id(node)] = frozenset(id(each) for each in node.walk() if each.op is Op.VARIABLE)
        return self.free[id(node)]


def _or(rows: list[int] | tuple[int, ...]) -> int:
    total = 0
    for row in rows:
        total |= row
    return total


def _and(rows: tuple[int, ...]) -> int:
    total = rows[0]
    for row in rows[1:]:
        total &= row
    return total
