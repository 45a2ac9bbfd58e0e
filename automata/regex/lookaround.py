r"""Anchors, word boundaries, look-ahead and look-behind of a pattern as boolean operations on languages.

The translation has three steps.

1. *Context.* The characters to the left and right of a place are of a few kinds (a word character, a newline, ...,
   or the edge of the text), which are computed from the first and last characters of the surrounding parts. A
   zero-width condition such as ``\b`` is a relation between the two kinds. Usually the context decides it: ``^`` at
   the beginning, ``$`` at the end, ``\b`` between ``foo`` and a space cost nothing.
2. *Continuation.* Look-ahead reads all of the remaining text, so it restricts the language K of what follows:
   ``(?=X)`` before K is (X·Σ*) ∩ K, ``(?!X)`` is ¬(X·Σ*) ∩ K. Parts with look-ahead are therefore written in
   continuation-passing style, r before K; a loop of them is the least X with X = K ∪ (body before X), a counted one
   is expanded. All other parts are unchanged and are concatenated with K. A complement contains invalid UTF-8 too,
   but K does not, so the intersection is exact.
3. *Look-behind* reads the text back to its beginning: ``(?<=X)`` is ``behind(Σ*·X)`` and ``(?<!X)``
   ``behind(¬(Σ*·X))``. Conditions inside of it must be at fixed distances from its end, and become further
   restrictions of the same prefix; those at the very end are conditions at the place itself.

Cost: linear in the pattern, apart from expanded loops (bounded by ``Budget.positions``, ``_COPY`` positions a node)
and alternatives inside a look-behind that contain conditions (at most ``_MAX_ALTERNATIVES``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tokenfst.automata.characters.classes import TEXT, members
from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    UNIVERSE,
    Expr,
    behind,
    complement,
    concat,
    intersect,
    repeat,
    scope,
    union,
)
from tokenfst.automata.regex.conditions import (
    EDGE,
    LAST_NEWLINE,
    LEFT,
    NEWLINE,
    RIGHT,
    grouped,
    kinds_of,
    of_kinds,
    relation_of,
    texts_after,
    texts_before,
)
from tokenfst.automata.regex.continuation import Ahead, Loop, Part, before, choice, sequence
from tokenfst.automata.regex.parse import (
    ASSERT,
    ASSERT_NOT,
    AT,
    BRANCH,
    FAILURE,
    LITERAL,
    MAX_REPEAT,
    MAXREPEAT,
    MIN_REPEAT,
    SUBPATTERN,
    Pattern,
    Tree,
    combine_flags,
)
from tokenfst.errors import BudgetExceeded

_Item = tuple[Any, Any]
_Plain = Callable[[list[_Item], int], Expr]
_Way = list[tuple[Expr | _Item, int, int | None]]
"""One alternative of a look-behind, as a sequence of (plain expression or condition, flags, width if it is fixed)."""

_COPY = 64
"""The number of positions that a node of an expanded loop counts as, because it is a node in memory."""
_MAX_ALTERNATIVES = 1000


class _Edge(NamedTuple):
    """Kinds of the first, the last, and all characters of a part's words; and whether the empty word is one of them."""

    first: int
    last: int
    empty: bool
    inside: int


class Lookaround:
    """Translates a pattern with assertions; ``plain`` translates parts without assertions."""

    def __init__(self, pattern: Pattern, plain: _Plain) -> None:
        self.pattern, self.plain = pattern, plain
        self.text = bool(pattern.flags & TEXT)
        self.looks_behind = False
        self.edges: dict[tuple[int, int], _Edge] = {}
        self.letters: dict[tuple[int, int], _Edge] = {}

    def translate(self) -> Expr:
        """The pattern as an expression."""
        part = self.sequence(self.pattern.tree, self.pattern.flags, EDGE, EDGE, EDGE)
        result = before(part, EPSILON)
        return scope(result) if self.looks_behind else result

    # --- what a part begins and ends with ---

    def edge(self, tree: Tree, flags: int) -> _Edge:
        """What the words of ``tree`` begin with, end with, and contain."""
        key = (id(tree), flags)
        if key not in self.edges:
            first, last, empty, inside = 0, 0, True, 0
            for op, argument in tree.data:
                item = self.item_edge(op, argument, flags)
                first |= item.first if empty else 0
                last = item.last | (last if item.empty else 0)
                empty &= item.empty
                inside |= item.inside
            self.edges[key] = _Edge(first, last, empty, inside)
        return self.edges[key]

    def item_edge(self, op: Any, argument: Any, flags: int) -> _Edge:
        """The same for one item of a tree."""
        if op is AT or op is ASSERT or op is ASSERT_NOT:
            return _Edge(0, 0, True, 0)
        if op is FAILURE:
            return _Edge(0, 0, False, 0)
        if op is SUBPATTERN:
            _, added, removed, body = argument
            return self.edge(body, combine_flags(flags, added, removed))
        if op is MAX_REPEAT or op is MIN_REPEAT:
            low, high, body = argument
            edge = self.edge(body, flags)
            return edge._replace(empty=edge.empty or low == 0) if high else _Edge(0, 0, True, 0)
        if op is BRANCH:
            edges = [self.edge(each, flags) for each in argument[1]]
            firsts, lasts, empties, insides = zip(*edges, strict=True)
            return _Edge(_any(firsts), _any(lasts), any(empties), _any(insides))
        if op is not LITERAL:
            return self.character_edge(op, argument, flags)
        key = (argument, flags)
        if key not in self.letters:
            self.letters[key] = self.character_edge(op, argument, flags)
        return self.letters[key]

    def character_edge(self, op: Any, argument: Any, flags: int) -> _Edge:
        """The same for an item that is one character."""
        found = kinds_of(members(op, argument, flags), self.text)
        first = found | (LAST_NEWLINE if found & NEWLINE else 0)
        return _Edge(first, found, False, first)

    # --- in a context: ``left`` and ``right`` are the kinds that may stand there, ``beyond`` all that follow ---

    def sequence(self, tree: Tree, flags: int, left: int, right: int, beyond: int) -> Part:
        """Items in sequence, each with its neighbours as context."""
        if not self.pattern.asserting.get(id(tree), True):
            return self.plain(tree.data, flags)
        edges = [self.item_edge(op, argument, flags) for op, argument in tree.data]
        contexts = [(right, beyond)]
        for edge in reversed(edges[1:]):
            right, beyond = contexts[-1]
            contexts.append((edge.first | (right if edge.empty else 0), edge.inside | beyond))
        parts: list[Part] = []
        run: list[_Item] = []
        for item, (right, beyond), edge in zip(tree.data, reversed(contexts), edges, strict=True):
            if self.asserts(item):
                parts += (self.plain(run, flags), self.item(item, flags, left, right, beyond))
                run = []
            else:
                run.append(item)
            left = edge.last | (left if edge.empty else 0)
        return sequence([*parts, self.plain(run, flags)])

    def asserts(self, item: _Item) -> bool:
        """Whether ``item`` contains a zero-width condition."""
        op, argument = item
        if op is SUBPATTERN:
            return self.pattern.asserting[id(argument[3])]
        if op is MAX_REPEAT or op is MIN_REPEAT:
            return self.pattern.asserting[id(argument[2])]
        if op is BRANCH:
            return any(self.pattern.asserting[id(each)] for each in argument[1])
        return op is AT or op is ASSERT or op is ASSERT_NOT

    def item(self, item: _Item, flags: int, left: int, right: int, beyond: int) -> Part:
        """One item of a tree."""
        op, argument = item
        if op is AT:
            return self.condition(relation_of(argument, flags), left, right)
        if op is SUBPATTERN:
            _, added, removed, body = argument
            return self.sequence(body, combine_flags(flags, added, removed), left, right, beyond)
        if op is BRANCH:
            return choice([self.sequence(each, flags, left, right, beyond) for each in argument[1]])
        if op is MAX_REPEAT or op is MIN_REPEAT:
            low, high, body = argument
            return self.loop(low, high, body, flags, left, right, beyond)
        direction, body = argument
        if len(body.data) == 1 and body.data[0][0] is AT:
            relation = relation_of(body.data[0][1], flags)
            if op is ASSERT_NOT:
                relation = {kind: RIGHT & ~follows for kind, follows in relation.items()}
            return self.condition(relation, left, right)
        if direction > 0:
            return self.look_ahead(op is ASSERT_NOT, body, flags, left, right, beyond)
        return self.look_behind(op is ASSERT_NOT, body, flags, left, right)

    def loop(self, low: int, high: int, body: Tree, flags: int, left: int, right: int, beyond: int) -> Part:
        """A repetition, whose rounds may be adjacent to each other."""
        if high == 0:
            return EPSILON
        if body.getwidth()[1] == 0:
            # A condition is true or false at a place, however often it is tested.
            return self.sequence(body, flags, left, right, beyond) if low else EPSILON
        if high == 1:
            part = self.sequence(body, flags, left, right, beyond)
            return part if low else choice([part, EPSILON])
        edge = self.edge(body, flags)
        part = self.sequence(body, flags, left | edge.last, right | edge.first, beyond | edge.inside)
        bound = None if high is MAXREPEAT else high
        if part is EMPTY:
            return EMPTY if low else EPSILON
        if isinstance(part, Expr):
            return repeat(part, low, bound, self.pattern.quantified(body) if bound else None)
        weight = part.weight * (low + 1 if bound is None else bound)
        if weight * _COPY > self.pattern.budget.positions:
            raise BudgetExceeded("positions", self.pattern.budget.positions, self.pattern.quantified(body))
        return Loop(part, low, bound, weight)

    def condition(self, relation: dict[int, int], left: int, right: int) -> Part:
        """A condition on the neighbours of a place, simplified by the context."""
        parts: list[Part] = []
        for follows, kinds in grouped(relation, left, right).items():
            before_here = self.behind(texts_before(kinds, left, self.text))
            ahead: Part = EPSILON if follows == right else Ahead(texts_after(follows, right, self.text))
            parts.append(sequence([before_here, ahead]))
        return choice(parts)

    def behind(self, past: Expr) -> Expr:
        """The empty word, if the text before it is in ``past``."""
        if past is UNIVERSE:
            return EPSILON
        if past is EMPTY:
            return EMPTY
        self.looks_behind = True
        return behind(past)

    def look_ahead(self, negated: bool, body: Tree, flags: int, left: int, right: int, beyond: int) -> Part:
        """An assertion about the following text."""
        first, _, empty, _ = self.edge(body, flags)
        part = EMPTY if not empty and not first & right else self.sequence(body, flags, left, beyond, beyond)
        if part is EMPTY or part is EPSILON:
            return EPSILON if negated == (part is EMPTY) else EMPTY
        seen = before(part, UNIVERSE)
        return Ahead(complement(seen) if negated else seen)

    def look_behind(self, negated: bool, body: Tree, flags: int, left: int, right: int) -> Part:
        """An assertion about the preceding text."""
        _, last, empty, _ = self.edge(body, flags)
        if not empty and not last & left:
            return EPSILON if negated else EMPTY
        pasts, here = self.prefixes(body, flags, left, right)
        if not negated:
            return choice(
                [self.behind(union(*pasts)), *(sequence([self.behind(p), part]) for p, part in here)]
            )
        parts: list[Part] = [self.behind(_complement(union(*pasts)))]
        for past, part in here:
            failing = Ahead(complement(before(part, UNIVERSE)))
            parts.append(choice([self.behind(_complement(past)), failing]))
        return sequence(parts)

    # --- inside a look-behind ---

    def prefixes(
        self, body: Tree, flags: int, left: int, right: int
    ) -> tuple[list[Expr], list[tuple[Expr, Part]]]:
        """Languages of the whole text before the place; then those with a condition on the place itself."""
        pasts: list[Expr] = []
        here: list[tuple[Expr, Part]] = []
        for alternative in self.flatten(body, body, flags):
            characters: list[Expr] = []
            conditions: list[Expr] = []
            final: list[Part] = []
            width: int | None = 0
            for item, inner, size in reversed(alternative):
                if isinstance(item, Expr):
                    characters.insert(0, item)
                    width = None if width is None or size is None else width + size
                elif width is None:
                    self.pattern.refuse_assertion(
                        body, "a condition in a look-behind needs a fixed width between itself and the end"
                    )
                elif width == 0:
                    final.insert(0, self.item(item, inner, left, right, RIGHT))
                else:
                    conditions.append(self.condition_inside(body, item, inner, width))
            past = UNIVERSE if not characters else concat(UNIVERSE, *characters)
            past = intersect(past, *conditions)
            if final:
                here.append((past, sequence(final)))
            else:
                pasts.append(past)
        return pasts, here

    def flatten(self, whole: Tree, tree: Tree, flags: int) -> list[_Way]:
        """The alternatives of ``tree``."""
        if not self.pattern.asserting[id(tree)]:
            return [[(self.plain(tree.data, flags), flags, _fixed_width(tree))]]
        ways: list[_Way] = [[]]
        inner: list[_Way]
        for number, (op, argument) in enumerate(tree.data):
            if not self.asserts((op, argument)):
                single = tree[number : number + 1]
                inner = [[(self.plain(single.data, flags), flags, _fixed_width(single))]]
            elif op is SUBPATTERN:
                _, added, removed, body = argument
                inner = self.flatten(whole, body, combine_flags(flags, added, removed))
            elif op is BRANCH:
                inner = [way for each in argument[1] for way in self.flatten(whole, each, flags)]
            elif op is MAX_REPEAT or op is MIN_REPEAT:
                low, high, body = argument
                inner = [[]]
                once = self.flatten(whole, body, flags)
                if low < high and body.getwidth()[1]:
                    self.pattern.refuse_assertion(
                        whole, "a condition that is repeated any number of times in a look-behind"
                    )
                for _ in range(low if body.getwidth()[1] else min(low, 1)):
                    inner = self.product(whole, inner, once)
            else:
                inner = [[((op, argument), flags, 0)]]
            ways = self.product(whole, ways, inner)
        return ways

    def product(self, whole: Tree, xs: list[_Way], ys: list[_Way]) -> list[_Way]:
        """Every alternative of ``xs`` followed by one of ``ys``."""
        if len(xs) * len(ys) > _MAX_ALTERNATIVES or len(xs[0]) > _MAX_ALTERNATIVES:
            self.pattern.refuse_assertion(whole, "too many conditions inside this look-behind; write fewer")
        return [x + y for x in xs for y in ys]

    def condition_inside(self, whole: Tree, item: _Item, flags: int, width: int) -> Expr:
        """Texts with the condition ``item`` at the place ``width`` characters before their end."""
        op, argument = item
        character = of_kinds(LEFT & ~EDGE, self.text)
        span = repeat(character, width, width)
        if op is AT:
            inside = RIGHT & ~EDGE & ~(LAST_NEWLINE if width > 1 else 0)
            groups = grouped(relation_of(argument, flags), LEFT, inside)
            if any(follows & LAST_NEWLINE and not follows & NEWLINE for follows in groups):
                self.pattern.refuse_assertion(
                    whole, "$ before the last character of a look-behind; use \\Z after it"
                )
            after = repeat(character, width - 1, width - 1)
            return union(
                *[
                    concat(texts_before(kinds, LEFT, self.text), of_kinds(follows, self.text), after)
                    for follows, kinds in groups.items()
                ]
            )
        direction, body = argument
        if direction < 0:
            pasts, here = self.prefixes(body, flags, LEFT, RIGHT)
            if here:
                self.pattern.refuse_assertion(body, "a condition at the end of a look-behind in another one")
            past = union(*pasts)
            return concat(_complement(past) if op is ASSERT_NOT else past, span)
        if self.pattern.asserting[id(body)] or body.getwidth()[1] > width:
            self.pattern.refuse_assertion(body, "look-ahead beyond the end of the look-behind around it")
        seen = concat(self.plain(body.data, flags), UNIVERSE)
        return concat(UNIVERSE, intersect(complement(seen) if op is ASSERT_NOT else seen, span))


def _fixed_width(tree: Tree) -> int | None:
    """The number of characters of every word of ``tree``; None if it differs."""
    low, high = tree.getwidth()
    return int(low) if low == high else None


def _any(masks: Sequence[int]) -> int:
    total = 0
    for mask in masks:
        total |= mask
    return total


def _complement(past: Expr) -> Expr:
    return EMPTY if past is UNIVERSE else UNIVERSE if past is EMPTY else complement(past)
