"""Whether a pattern of Python's ``re`` is ambiguous in a loop.

A text that it does not match can then take it exponential or quadratic time (Weber and Seidl, "On the degree of
ambiguity of finite automata", 1991).

The pattern becomes its position automaton: a state for each place of the pattern that reads a character. It is
exponentially ambiguous if some state leads back to itself by one text on two ways. It is polynomially ambiguous if a
text leads from a state back to it, from there to another state, and from that back to it; here only texts of one
repeated character are looked for. Look-around and anchors count as the empty word. Counted repetitions are cut off
after three copies.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reference.grammars.rule_graphs import components

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_constants as op
    import sre_parse

_CHARACTERS = [*map(chr, range(9, 127)), *"\0\u00a0²éǅ中😀"]
_COPIES = 3
_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


def ambiguity(pattern: str, flags: int = 0) -> str | None:
    """``"exponential"``, ``"polynomial"``, or None."""
    parsed = sre_parse.parse(pattern, flags)
    found = {_Positions(part, parsed.state.flags).ambiguity() for part in (parsed, *_looks(parsed))}
    return next((kind for kind in ("exponential", "polynomial") if kind in found), None)


def _looks(tree: Any) -> Iterator[Any]:
    """The patterns inside of look-around."""
    for kind, value in tree:
        if kind in (op.ASSERT, op.ASSERT_NOT):
            yield value[1]
            yield from _looks(value[1])
        elif kind is op.BRANCH:
            for part in value[1]:
                yield from _looks(part)
        elif kind in (op.SUBPATTERN, op.MAX_REPEAT, op.MIN_REPEAT):
            yield from _looks(value[-1])


def _read_by(kind: Any, value: Any, flags: int) -> frozenset[str]:
    """Those of ``_CHARACTERS`` that one place of a pattern reads."""
    tests: list[Callable[[str], bool]] = []
    negated = kind is op.NOT_LITERAL
    if kind is op.ANY:
        tests.append(lambda each: bool(flags & re.DOTALL) or each != "\n")
    else:
        for one, what in value if kind is op.IN else [(op.LITERAL, value)]:
            if one is op.NEGATE:
                negated = True
            elif one is op.LITERAL:
                tests.append(lambda each, what=what: ord(each) == what)
            elif one is op.RANGE:
                tests.append(lambda each, what=what: what[0] <= ord(each) <= what[1])
            else:
                tests.append(lambda each, what=what: re.match(_CATEGORIES[what], each) is not None)
    folds = [str, str.lower, str.upper] if flags & re.IGNORECASE else [str]
    return frozenset(
        each for each in _CHARACTERS if any(test(fold(each)) for test in tests for fold in folds) != negated
    )


class _Positions:
    """A position automaton.

    ``reads[p]``: the characters that place p reads; ``after[p]``: the places that may come next; ``twice[p]``: those
    that come next in more than one way.
    """

    def __init__(self, tree: Any, flags: int) -> None:
        self.reads: list[frozenset[str]] = []
        self._ends: list[int] = []  # of each place, the node after it
        self._empty: list[list[int]] = []
        self._places: list[list[int]] = []  # of each node, the places that begin there
        self._build(tree, flags, self._node())
        self.after, self.twice = [], []
        for end in self._ends:
            ways = self._ways(end)
            self.after.append(sorted(ways))
            self.twice.append({place for place, count in ways.items() if count > 1})

    def _node(self) -> int:
        self._empty.append([])
        self._places.append([])
        return len(self._empty) - 1

    def _build(self, tree: Any, flags: int, at: int) -> int:
        for kind, value in tree:
            if kind in (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN):
                self._places[at].append(len(self.reads))
                self.reads.append(_read_by(kind, value, flags))
                at = self._node()
                self._ends.append(at)
            elif kind is op.BRANCH:
                at = self._branches(value[1], flags, at)
            elif kind is op.SUBPATTERN:
                at = self._build(value[3], (flags | value[1]) & ~value[2], at)
            elif kind in (op.MAX_REPEAT, op.MIN_REPEAT):
                at = self._repeat(*value, flags, at)
            else:
                assert kind in (op.AT, op.ASSERT, op.ASSERT_NOT), kind
        return at

    def _branches(self, parts: list[Any], flags: int, at: int) -> int:
        end = self._node()
        for part in parts:
            begin = self._node()
            self._empty[at].append(begin)
            self._empty[self._build(part, flags, begin)].append(end)
        return end

    def _repeat(self, low: int, high: Any, body: Any, flags: int, at: int) -> int:
        for _ in range(min(low, _COPIES)):
            at = self._build(body, flags, at)
        end = self._node()
        if high is op.MAXREPEAT:
            loop, begin = self._node(), self._node()
            self._empty[at].append(loop)
            self._empty[loop] += [end, begin]
            self._empty[self._build(body, flags, begin)].append(loop)
        else:
            self._empty[at].append(end)
            for _ in range(min(high - low, _COPIES)):
                at = self._build(body, flags, at)
                self._empty[at].append(end)
        return end

    def _ways(self, node: int) -> dict[int, int]:
        """The places that come next after a node, with the number of ways there; 2 stands for more."""
        graph, stack = {}, [node]
        while stack:
            at = stack.pop()
            if at not in graph:
                graph[at] = self._empty[at]
                stack += self._empty[at]
        ways, found = dict.fromkeys(graph, 0), dict[int, int]()
        ways[node] = 1
        for group in reversed(components(graph)):
            for at in group:
                if len(group) > 1 or at in graph[at]:
                    ways[at] = 2
                for each in graph[at]:
                    ways[each] = min(2, ways[each] + ways[at])
                for place in self._places[at]:
                    found[place] = min(2, found.get(place, 0) + ways[at])
        return found

    def ambiguity(self) -> str | None:
        loops = _loops(dict(enumerate(self.after)))
        if any(self._is_exponential(loop) for loop in loops):
            return "exponential"
        characters = {tuple(each in reads for reads in self.reads): each for each in _CHARACTERS}
        return "polynomial" if any(map(self._is_polynomial, characters.values())) else None

    def _is_exponential(self, loop: set[int]) -> bool:
        if any(self.twice[place] & loop and self.reads[place] for place in loop):
            return True
        inner = {place: [each for each in self.after[place] if each in loop] for place in loop}
        pairs = {
            (one, other): [(p, q) for p in inner[one] for q in inner[other] if self.reads[p] & self.reads[q]]
            for one in loop
            for other in loop
        }
        return any(len({one == other for one, other in group}) == 2 for group in components(pairs))

    def _is_polynomial(self, character: str) -> bool:
        reading = {place for place, reads in enumerate(self.reads) if character in reads}
        graph = {place: [each for each in self.after[place] if each in reading] for place in reading}
        loops = _loops(graph)
        for loop in loops:
            beyond, stack = set(loop), list(loop)
            while stack:
                new = set(graph[stack.pop()]) - beyond
                beyond |= new
                stack += new
            if any(other is not loop and other & beyond for other in loops):
                return True
        return False


def _loops(graph: Mapping[int, list[int]]) -> list[set[int]]:
    """The strongly connected components with a cycle."""
    return [set(group) for group in components(graph) if len(group) > 1 or group[0] in graph[group[0]]]
