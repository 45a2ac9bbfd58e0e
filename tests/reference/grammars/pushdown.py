"""The slow twins of the push-down engine: two recognizers that share nothing but the rules in Backus-Naur form.

``Recognizer`` is Earley's (CACM 1970): a chart of item sets that grows byte by byte, so that a text is read once
however many ways it is tried to go on. Rules that have no word are cut out first; then a text begins a word
exactly if its last set is not empty. Rules with the empty word are stepped over where they are predicted (Aycock
and Horspool, "Practical Earley parsing", 2002).

``least_tokens`` is Bar-Hillel's construction: for every symbol the least number of tokens on a way from state p
to state q of an automaton that reads the text so far and then any tokens; the rules are equations of such
tables, and the answer is their least solution, by iteration from nothing. It decides whether tokens can finish
a text, and in how many, whatever bytes are missing in the vocabulary.

Regular parts are deterministic tables, which the tests of languages check. Costs are those of textbooks: short
texts, small grammars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.expression import Expr, Op
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.language import Language
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

INFINITE = 1 << 20
"""More tokens than any test counts; twice of it is as much."""


# --- Backus-Naur form ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Leaf:
    """A regular part: tables in which state 0 is dead and every other state leads to acceptance."""

    start: int
    classes: list[int]
    table: list[list[int]]
    accepting: list[bool]

    @classmethod
    def of(cls, expr: Expr) -> Leaf:
        dfa = Language(expr).determinize()
        return cls(dfa.start, dfa.classes.tolist(), dfa.table.tolist(), dfa.accepting.tolist())


Symbol = str | int | Leaf
"""A rule by its name, an inner node by a number, or a regular part."""


class BackusNaur:
    """Every rule and inner node as alternatives of sequences, without those that have no word."""

    def __init__(self, rules: Mapping[str, Expr], start: str) -> None:
        self.start = start
        self.alternatives: dict[str | int, list[tuple[Symbol, ...]]] = {}
        self._symbols: dict[int, Symbol] = {}
        for name, body in rules.items():
            calling: set[int] = set()
            for node in body.walk():
                if node.op is Op.CALL or any(id(arg) in calling for arg in node.args):
                    calling.add(id(node))
            self.alternatives[name] = [(self._symbol(body, calling),)]
        productive = self._least(lambda leaf: leaf.start != 0)
        self.alternatives = {
            head: [right for right in rights if all(self._has(productive, s) for s in right)]
            for head, rights in self.alternatives.items()
            if head in productive
        }
        self.nullable = self._least(lambda leaf: leaf.accepting[leaf.start])

    def _symbol(self, node: Expr, calling: set[int]) -> Symbol:
        if id(node) not in self._symbols:
            self._symbols[id(node)] = self._made(node, calling) if id(node) in calling else Leaf.of(node)
        return self._symbols[id(node)]

    def _made(self, node: Expr, calling: set[int]) -> Symbol:
        args = [self._symbol(arg, calling) for arg in node.args]
        match node.op:
            case Op.CALL:
                assert isinstance(node.value, str)
                return node.value
            case Op.CONCAT:
                return self._new([tuple(args)])
            case Op.UNION:
                return self._new([(arg,) for arg in args])
            case Op.REPEAT:
                assert isinstance(node.value, tuple)
                (low, high), (body,) = node.value, args
                tail: tuple[Symbol, ...] = (self._new([(), (body,)]),) * (high - low)
                if high < 0:
                    more = self._new([()])
                    self.alternatives[more].append((more, body))
                    tail = (more,)
                return self._new([(body,) * low + tail])
        raise AssertionError(node.op)

    def _new(self, alternatives: list[tuple[Symbol, ...]]) -> int:
        number = len(self.alternatives)
        self.alternatives[number] = alternatives
        return number

    def _least(self, of_leaf: Callable[[Leaf], bool]) -> set[Symbol]:
        """What has an alternative all of whose parts have the property, or is a leaf that has it."""
        found: set[Symbol] = set()
        for rights in self.alternatives.values():
            found.update(s for right in rights for s in right if isinstance(s, Leaf) and of_leaf(s))
        while True:
            new = {
                head
                for head, rights in self.alternatives.items()
                if head not in found and any(found.issuperset(right) for right in rights)
            }
            if not new:
                return found
            found |= new

    @staticmethod
    def _has(found: set[Symbol], symbol: Symbol) -> bool:
        return symbol in found


# --- Earley -------------------------------------------------------------------------------------------


class Chart:
    """The item set after a text that some word begins with; it knows the sets before through its items."""

    def __init__(self, recognizer: Recognizer) -> None:
        self.recognizer = recognizer
        self.items: set[_Item] = set()
        self.waiting: dict[Symbol, list[_Item]] = {}
        self._next: dict[int, Chart | None] = {}

    @property
    def accepts(self) -> bool:
        """Whether the text is a word."""
        first = self.recognizer.first
        return first is not None and (0, 1, 0, first) in self.items

    def step(self, byte: int) -> Chart | None:
        """The set one byte further; None where no word goes on like that."""
        byte = self.recognizer.alike[byte]
        if byte not in self._next:
            sequences = self.recognizer.sequences
            moved = []
            for number, dot, state, origin in self.items:
                symbols = sequences[number][1]
                if dot < len(symbols) and isinstance(leaf := symbols[dot], Leaf):
                    state = leaf.table[state][leaf.classes[byte]]
                    if state:
                        moved.append((number, dot, state, origin))
            self._next[byte] = self.recognizer.closed(Chart(self.recognizer), moved) if moved else None
        return self._next[byte]

    def run(self, text: bytes) -> Chart | None:
        """The set after ``text``."""
        chart: Chart | None = self
        for byte in text:
            if chart is None:
                return None
            chart = chart.step(byte)
        return chart


_Item = tuple[int, int, int, Chart]
"""A sequence's number, how many of its symbols are read, the state inside of the next, and where it began."""


class Recognizer:
    """Reads texts of one grammar. ``first`` is the chart of the empty text; None where there is no word."""

    def __init__(self, rules: Mapping[str, Expr], start: str) -> None:
        form = BackusNaur(rules, start)
        self.nullable = form.nullable
        self.sequences: list[tuple[Symbol | None, tuple[Symbol, ...]]] = [(None, (start,))]
        self.of: dict[Symbol, list[int]] = {}
        for head, rights in form.alternatives.items():
            for right in rights:
                self.of.setdefault(head, []).append(len(self.sequences))
                self.sequences.append((head, right))
        leaves = {s for _, right in self.sequences for s in right if isinstance(s, Leaf)}
        firsts: dict[tuple[int, ...], int] = {}
        # Bytes that no regular part tells apart are read as the first of them.
        self.alike = [firsts.setdefault(tuple(leaf.classes[b] for leaf in leaves), b) for b in range(256)]
        self.first: Chart | None = None
        if start in self.of:
            self.first = Chart(self)
            self.closed(self.first, [(0, 0, 0, self.first)])

    def closed(self, chart: Chart, items: list[_Item]) -> Chart:
        """Adds the items and all that follows from them."""
        agenda: list[_Item] = []

        def add(item: _Item) -> None:
            if item not in chart.items:
                chart.items.add(item)
                agenda.append(item)

        def advance(item: _Item) -> None:
            number, dot, _, origin = item
            symbols = self.sequences[number][1]
            following = symbols[dot + 1] if dot + 1 < len(symbols) else None
            add((number, dot + 1, following.start if isinstance(following, Leaf) else 0, origin))

        for item in items:
            add(item)
        while agenda:
            item = agenda.pop()
            number, dot, state, origin = item
            head, symbols = self.sequences[number]
            if dot == len(symbols):
                for caller in list(origin.waiting.get(head, ())) if head is not None else ():
                    advance(caller)
                continue
            symbol = symbols[dot]
            if isinstance(symbol, Leaf):
                if symbol.accepting[state]:
                    advance(item)
                continue
            chart.waiting.setdefault(symbol, []).append(item)
            for predicted in self.of[symbol]:
                first = self.sequences[predicted][1][:1]
                begin = first[0].start if first and isinstance(first[0], Leaf) else 0
                add((predicted, 0, begin, chart))
            if symbol in self.nullable:
                advance(item)
        return chart

    def accepts(self, text: bytes) -> bool:
        """Whether ``text`` is a word."""
        chart = None if self.first is None else self.first.run(text)
        return chart is not None and chart.accepts

    def viable_prefix(self, text: bytes) -> int:
        """How many bytes of ``text`` some word begins with; -1 where there is no word."""
        chart, length = self.first, -1
        for length in range(len(text) + 1):
            if chart is None:
                return length - 1
            if length < len(text):
                chart = chart.step(text[length])
        return length

    def next_bytes(self, text: bytes) -> tuple[bytes, bool]:
        """The bytes that some word has after ``text``, and whether ``text`` is a word."""
        chart = None if self.first is None else self.first.run(text)
        if chart is None:
            return b"", False
        return bytes(byte for byte in range(256) if chart.step(byte) is not None), chart.accepts


# --- Bar-Hillel ---------------------------------------------------------------------------------------

Table = npt.NDArray[np.int32]
"""Entry p, q: the least number of tokens on the way from p to q."""


def least_tokens(form: BackusNaur, text: bytes, tokens: Sequence[bytes]) -> int:
    """The least number of ``tokens`` that make ``text`` a word; INFINITE where none do."""
    return _Costs(form, text, tokens).solve()


class _Costs:
    """The automaton of ``text`` and then any tokens: states 0 to n are places of the text, n is where tokens begin
    and end, the others are places inside of tokens.
    """

    def __init__(self, form: BackusNaur, text: bytes, tokens: Sequence[bytes]) -> None:
        self.form, self.end = form, len(text)
        arcs = [(place, byte, place + 1, 0) for place, byte in enumerate(text)]
        inside: dict[bytes, int] = {b"": self.end}
        for token in tokens:
            for cut in range(1, len(token)):
                inside.setdefault(token[:cut], self.end + len(inside))
            if token:
                arcs.append((inside[token[:-1]], token[-1], self.end, 1))
        arcs += [(inside[part[:-1]], part[-1], number, 0) for part, number in inside.items() if part]
        self.size = self.end + len(inside)
        self.steps: dict[int, Table] = {}
        for source, byte, target, cost in arcs:
            step = self.steps.setdefault(byte, self.nowhere())
            step[source, target] = min(step[source, target], cost)
        self.leaves: dict[Leaf, Table] = {}

    def nowhere(self) -> Table:
        return np.full((self.size, self.size), INFINITE, np.int32)

    def standing(self) -> Table:
        table = self.nowhere()
        np.fill_diagonal(table, 0)
        return table

    def joined(self, first: Table, second: Table) -> Table:
        """First the one way, then the other."""
        table: Table = np.minimum((first[:, :, None] + second[None, :, :]).min(axis=1), INFINITE)
        return table

    def leaf(self, leaf: Leaf) -> Table:
        if leaf not in self.leaves:
            of_class: dict[int, Table] = {}
            for byte, step in self.steps.items():
                known = of_class.get(leaf.classes[byte], step)
                of_class[leaf.classes[byte]] = np.minimum(known, step)
            reached = {leaf.start: self.standing()}
            pending = [leaf.start]
            while pending:
                state = pending.pop()
                for number, step in of_class.items():
                    target = leaf.table[state][number]
                    old = reached.get(target, self.nowhere())
                    new = np.minimum(old, self.joined(reached[state], step))
                    if target and (new < old).any():
                        reached[target] = new
                        pending.append(target)
            ends = [table for state, table in reached.items() if leaf.accepting[state]]
            self.leaves[leaf] = np.minimum.reduce([self.nowhere(), *ends])
        return self.leaves[leaf]

    def solve(self) -> int:
        values: dict[Symbol, Table] = {head: self.nowhere() for head in self.form.alternatives}
        if self.form.start not in values:
            return INFINITE
        changed = True
        while changed:
            changed = False
            for head, rights in self.form.alternatives.items():
                new = values[head]
                for right in rights:
                    way = self.standing()
                    for symbol in right:
                        table = self.leaf(symbol) if isinstance(symbol, Leaf) else values[symbol]
                        way = self.joined(way, table)
                    new = np.minimum(new, way)
                if (new < values[head]).any():
                    values[head], changed = new, True
        return int(values[self.form.start][0, self.end])


# --- tokens -------------------------------------------------------------------------------------------

Place = tuple[bytes, bool]
"""A text, and whether it has begun: a vocabulary may spell the first token in another way."""

START: Place = (b"", False)


class TokenModel:
    """What a grammar allows over a small vocabulary, by brute force over every token."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self.vocabulary, self.tokens = vocabulary, list(vocabulary.tokens)
        self.eos = vocabulary.eos_token_ids[0]
        self.form = BackusNaur(grammar.rules, grammar.start)
        self.recognizer = Recognizer(grammar.rules, grammar.start)
        self.complete = {token for token in self.tokens if len(token) == 1} == {
            bytes([byte]) for byte in range(256)
        }
        self.chart = lru_cache(None)(self._chart)
        self.least = lru_cache(None)(self._least)

    def after(self, place: Place, token: int) -> Place | None:
        """Where a token leads by its bytes alone; None where it is on no byte path (convention 4)."""
        text, begun = place
        spelled = self.tokens[token]
        if not spelled:
            return None
        if not begun and self.vocabulary.initial_tokens is not None:
            spelled = self.vocabulary.initial_tokens[token]
            if not spelled:
                return text, not self.vocabulary.start_absorbs
        return text + spelled, True

    def is_word(self, place: Place) -> bool:
        chart = self.chart(place[0])
        return chart is not None and chart.accepts

    def is_alive(self, place: Place) -> bool:
        """Whether tokens can finish the text."""
        if self.chart(place[0]) is None:
            return False
        return (self.complete and place[1]) or self.least(place) < INFINITE

    def allowed(self, place: Place, left: int | None = None) -> set[int]:
        """The tokens that leave a way to finish, in ``left`` tokens with this one; the end token at words."""
        found = {self.eos} if self.is_word(place) and left != 0 else set()
        for token in range(len(self.tokens)):
            target = self.after(place, token)
            if target is not None and self.is_alive(target) and (left is None or self.least(target) < left):
                found.add(token)
        return found

    def _chart(self, text: bytes) -> Chart | None:
        if not text:
            return self.recognizer.first
        before = self.chart(text[:-1])
        return None if before is None else before.step(text[-1])

    def _least(self, place: Place) -> int:
        text, begun = place
        if begun or self.vocabulary.initial_tokens is None:
            return least_tokens(self.form, text, [token for token in self.tokens if token])
        if self.is_word(place):
            return 0
        targets = {self.after(place, token) for token in range(len(self.tokens))} - {None, place}
        return min((1 + self.least(target) for target in targets if target is not None), default=INFINITE)
