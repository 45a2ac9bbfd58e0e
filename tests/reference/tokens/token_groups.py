"""Membership of a token sequence in a token-level language, by the definition.

A sequence is laid out as items, one for each byte and one for each special token, with the places between two tokens
marked. ``matches(expr, i, j)`` says whether the items from i to j are a word, trying every way to split them. Calls are
followed through ``rules``, whose recursion must read something first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from tokenfst.automata.expressions.expression import Expr, Op, TokenBound

SPECIAL = 1_000
"""Item of special token t: this plus t."""


class SlowTokens:
    """``tokens``: the bytes of each id, none for special ones; ``classes``: token ids by the names in expressions.
    ``stacks``: what is bounded to few tokens goes on only if so many tokens are left as the shortest rest has bytes.
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        eos: int,
        classes: Mapping[str, Sequence[int]],
        rules: Mapping[str, Expr] | None = None,
        *,
        stacks: bool = False,
    ) -> None:
        self.tokens, self.eos, self.classes, self.rules = tokens, eos, classes, rules or {}
        self.stacks = stacks
        self.rests: dict[tuple[int, bytes], int] = {}

    def shortest_rest(self, expr: Expr, begun: bytes, most: int) -> int:
        """The least number of bytes that complete what has ``begun``; more than ``most`` if it takes more."""
        key = id(expr), begun
        if key not in self.rests:
            alphabet = sorted({byte for token in self.tokens for byte in token})
            self.rests[key] = next(
                (
                    length
                    for length in range(most + 1)
                    for more in product(alphabet, repeat=length)
                    if _Layout([*begun, *more], set(), (), self).matches(expr, 0, len(begun) + length)
                ),
                most + 1,
            )
        return self.rests[key]

    def accepts(self, expr: Expr, sequence: Sequence[int]) -> bool:
        """Whether the tokens, none of them the end token, are a word."""
        items: list[int] = []
        places = {0}
        for token in sequence:
            items += self.tokens[token] or [SPECIAL + token]
            places.add(len(items))
        return _Layout(items, places, sequence, self).matches(expr, 0, len(items))

    def language(self, expr: Expr, longest: int) -> set[tuple[int, ...]]:
        """All words of at most ``longest`` tokens."""
        ids = [token for token in range(len(self.tokens)) if token != self.eos]
        return {
            word
            for length in range(longest + 1)
            for word in product(ids, repeat=length)
            if self.accepts(expr, word)
        }


class _Layout:
    def __init__(
        self, items: list[int], places: set[int], sequence: Sequence[int], world: SlowTokens
    ) -> None:
        self.items, self.places, self.world = items, places, world
        self.token_at = dict(zip(sorted(places), sequence, strict=False))
        self.known: dict[tuple[int, int, int], bool] = {}

    def matches(self, expr: Expr, i: int, j: int) -> bool:
        key = id(expr), i, j
        if key not in self.known:
            self.known[key] = False
            self.known[key] = self._matches(expr, i, j)
        return self.known[key]

    def _matches(self, expr: Expr, i: int, j: int) -> bool:
        value, args = expr.value, expr.args
        text = self.items[i:j]
        match expr.op:
            case Op.EMPTY:
                return False
            case Op.EPSILON:
                return i == j
            case Op.BYTES:
                assert isinstance(value, int)
                return j == i + 1 and text[0] < 256 and bool(value >> text[0] & 1)
            case Op.LITERAL:
                assert isinstance(value, bytes)
                return text == list(value)
            case Op.CONCAT:
                return self._sequence(args, i, j)
            case Op.UNION:
                return any(self.matches(arg, i, j) for arg in args)
            case Op.INTERSECT:
                # "x & ~y" is x without y; "~y" alone is about texts.
                positive = [arg for arg in args if arg.op is not Op.COMPLEMENT]
                negative = [arg.args[0] for arg in args if arg.op is Op.COMPLEMENT] if positive else []
                return all(self.matches(arg, i, j) for arg in positive or args) and not any(
                    self.matches(arg, i, j) for arg in negative
                )
            case Op.COMPLEMENT:
                return all(item < 256 for item in text) and not self.matches(args[0], i, j)
            case Op.REPEAT:
                assert isinstance(value, tuple)
                low, high = value
                return self._repeat(args[0], low, len(text) + low if high < 0 else high, i, j)
            case Op.ONE_TOKEN:
                return i < j and self._is_one(i, j) and text[0] < 256 and self.matches(args[0], i, j)
            case Op.TOKENS:
                assert value is not None
                ids = self.world.classes[value.name]  # type: ignore[union-attr]
                return i < j and self._is_one(i, j) and self.token_at[i] in ids
            case Op.FEW_TOKENS:
                assert isinstance(value, TokenBound)
                inside = [place for place in sorted(self.places) if i < place < j]
                return (
                    len(inside) < value.most
                    and self.matches(args[0], i, j)
                    and (not self.world.stacks or self._goes_on(args[0], value.most, i, inside))
                )
            case Op.CALL:
                return self.matches(self.world.rules[str(value)], i, j)
        raise ValueError(f"these worlds have no {expr.op!r}")

    def _goes_on(self, expr: Expr, most: int, begin: int, inside: Sequence[int]) -> bool:
        """Whether after each token enough are left for the shortest rest, a byte each."""
        return all(
            self.world.shortest_rest(expr, bytes(self.items[begin:place]), most) <= most - used
            for used, place in enumerate(inside, 1)
        )

    def _is_one(self, i: int, j: int) -> bool:
        return i in self.places and j in self.places and not any(i < place < j for place in self.places)

    def _sequence(self, parts: Sequence[Expr], i: int, j: int) -> bool:
        ends = {i}
        for part in parts:
            ends = {end for start in ends for end in range(start, j + 1) if self.matches(part, start, end)}
        return j in ends

    def _repeat(self, part: Expr, low: int, high: int, i: int, j: int) -> bool:
        ends, count = {i}, 0
        found = low == 0 and i == j
        while count < high and ends and not found:
            ends = {end for start in ends for end in range(start, j + 1) if self.matches(part, start, end)}
            count += 1
            found = count >= low and j in ends
        return found
