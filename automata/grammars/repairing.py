"""``repair``: the text of a constraint that is nearest to a given text, by an Earley-style search for grammars.

A grammar is a network for each rule (``network``), whose edges are calls and automata over letters. An item says that a
rule was started at position i of the text and is in a state of its network at position j; the cost of the edits since i
is its *inside* cost. Items are created as by Earley (1970): a call predicts the rule at j, and a rule that is complete
from i to j advances every item that waited at i for it. Edits are transitions of the letters' automata, as in
``images/repair`` (Aho and Peterson 1972 add rules to the grammar instead). Items are processed in the order of their
*prefix* cost, the least cost of all edits from the beginning of the text (Nederhof, "Weighted deductive parsing and
Knuth's algorithm", 2003). Among items of one rule at one position that is the order of inside costs. So the first path
to an item is its best one, left recursion and empty words are handled, and a text that is nearly correct costs little
more than its parse.

Cost: in the worst case (length of the text)² x (states of all networks and their automata) items, and the length times
as many completions; a heap. ``BudgetExceeded`` bounds items and seconds.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

from tokenfst.automata.expressions.expression import Expr, Op, below
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.grammars.network import Network, network
from tokenfst.automata.images.letters import LetterAutomaton, read_letters
from tokenfst.automata.images.repair import (
    CHANGED,
    Kind,
    LetterMoves,
    Repair,
    charge,
    prices_of,
    repair_language,
    written,
)
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.rules.graph import COMPOSED
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but
from tokenfst.errors import BudgetExceeded, ConstraintError, DrawingError, EmptyLanguageError

_Cost = tuple[float, int]
"""The cost of the edits, and the number of letters they change."""
_Item = tuple[int, int, int]
"""The number of a frame, a state, and a position in the text."""
_NETWORK_STATES = 5_000


@checked_but("constraint")
def repair(
    text: str,
    constraint: Constraint,
    costs: Mapping[str, float] | None = None,
    *,
    budget: Budget | None = None,
) -> Repair:
    """The text of ``constraint`` that is reached from ``text`` by the cheapest edits of single characters.

    ``costs``: non-negative costs of "insert", "delete" and "replace", 1 by default; infinity forbids an edit. Among
    equally cheap results one that changes the fewest letters is chosen, deterministically. Computes all states of a
    regular constraint; for a grammar that needs a stack, those of its terminals.

    If strings must differ (names of an object, unique items), the search ignores that. If they differ in the result, it
    is the nearest text; otherwise ``ConstraintError``.

    Raises ``ConstraintError`` for invalid costs, if no allowed edits lead to a text of the constraint, and for grammars
    with parts that constrain tokens or split characters; ``EmptyLanguageError`` if it has no text; ``BudgetExceeded``.
    """
    if not isinstance(constraint, Grammar):
        return repair_language(text, constraint, costs, budget)
    if constraint.is_empty():
        raise EmptyLanguageError("repair: the constraint has no text")
    differs = any(node.op in _MARKS for node in below(*constraint.rules.values()))
    if constraint.is_regular() and not differs:
        return repair_language(text, constraint.to_language(), costs, budget)
    deadline = Deadline(budget or constraint.budget, "the search for the nearest text")
    prices = prices_of(costs or {})
    found = _Search(text, _Machine(constraint, text, prices, deadline), deadline).run()
    if differs and not constraint.accepts(found.text):
        raise ConstraintError(
            f"repair: the nearest text, {found.text!r:.200}, repeats a name or an item that must differ from the "
            "others, and the search finds no other text. Remove the repetition from the text, or allow repeated names: "
            'json_schema(..., repeated_names="allow")'
        )
    return found


_MARKS = (Op.OPENED, Op.FRESH)


def _unmarked(body: Expr) -> Expr:
    """The body of a rule without the marks of strings that must differ. ``ConstraintError`` if one stands under an
    operator other than concatenation, union and repetition.
    """
    nodes = below(body)
    if not any(node.op in _MARKS for node in nodes):
        return body
    made: dict[int, Expr] = {}
    for node in nodes:
        args = [made[id(arg)] for arg in node.args]
        if node.op in _MARKS:
            made[id(node)] = args[0]
        elif all(arg is old for arg, old in zip(args, node.args, strict=True)):
            made[id(node)] = node
        elif node.op in COMPOSED:
            made[id(node)] = rebuilt(node, args)
        else:
            raise ConstraintError(
                f"repair: strings that must differ stand under the operator {node.op.name}, which is not supported"
            )
    return made[id(body)]


class _Leaf(NamedTuple):
    """An automaton over letters on an edge: its states count from ``base``, and it leads to ``target``."""

    automaton: LetterAutomaton
    moves: LetterMoves
    base: int
    target: int


class _Machine:
    """The networks of all rules, with one number for each state. States of networks come first."""

    def __init__(self, grammar: Grammar, text: str, prices: Mapping[Kind, float], deadline: Deadline) -> None:
        self.prices, self.start, self.starts = prices, grammar.start, dict[str, int]()
        self.entries: list[list[int]] = []
        """For each state of a network, the states of automata with which its edges begin."""
        self.calls: list[list[tuple[str, int]]] = []
        self.final: list[bool] = []
        edges: list[tuple[int, int, Expr]] = []
        for rule, body in grammar.rules.items():
            base = self.starts[rule] = len(self.final)
            made = _network(rule, _unmarked(body))
            self.final += [state in made.accepting for state in range(made.num_states)]
            self.calls += [[] for _ in range(made.num_states)]
            for arc in made.arcs:
                if arc.label.op is Op.CALL:
                    self.calls[base + arc.source].append((str(arc.label.value), base + arc.target))
                else:
                    edges.append((base + arc.source, base + arc.target, arc.label))
        self.entries = [[] for _ in self.final]
        self.leaves: list[_Leaf] = []
        known: dict[int, tuple[LetterAutomaton, LetterMoves]] = {}
        size = len(self.final)
        for source, target, label in edges:
            if id(label) not in known:
                automaton = _letters(label, deadline)
                known[id(label)] = automaton, LetterMoves(text, automaton, prices)
            automaton, moves = known[id(label)]
            if automaton.start:
                self.leaves.append(_Leaf(automaton, moves, size, target))
                self.entries[source].append(size + automaton.start)
                size += len(automaton.table)
            charge(size // 4, deadline)
        self._bases = [leaf.base for leaf in self.leaves]

    def leaf(self, state: int) -> _Leaf:
        """Whose state it is."""
        return self.leaves[bisect_right(self._bases, state) - 1]


def _network(rule: str, body: Expr) -> Network:
    try:
        return network(rule, body, _NETWORK_STATES)
    except DrawingError:
        raise BudgetExceeded("states", 10 * _NETWORK_STATES, f"the rule {rule!r} to repair by") from None


def _letters(label: Expr, deadline: Deadline) -> LetterAutomaton:
    """A part without calls, by characters. Raises ``ConstraintError`` if it does not consist of characters."""
    language = Language(label, label.source or "a part of a grammar")
    language.program().refuse_tokens()
    with deadline.part() as budget:
        if not (language.with_budget(budget) - _CHARACTERS).is_empty():
            raise ConstraintError(
                f"repair: a part of the grammar, {language.source!r:.80}, has words that are no UTF-8 by themselves: "
                "edits are of characters"
            )
    return read_letters(language, "characters", deadline)


_CHARACTERS = regex(r"[\s\S]*")


class _Frame:
    """A rule that was begun at a place.

    ``prefix``: the least cost of everything before it. ``waiting``: items and the states in which they continue
    after it. ``ends``: the places at which it is complete, with the inside cost and the item.
    """

    __slots__ = ("ends", "prefix", "waiting")

    def __init__(self, prefix: _Cost) -> None:
        self.prefix = prefix
        self.waiting: list[tuple[_Item, int]] = []
        self.ends: dict[int, tuple[_Cost, _Item]] = {}


_Came = tuple[_Item, _Item | None, Kind | None, int]
"""The previous item; for a completed call, the item that completed it; for a letter its edit and its output, or -2 if
nothing was read.
"""


class _Search:
    def __init__(self, text: str, machine: _Machine, deadline: Deadline) -> None:
        self._text, self._machine, self._deadline = text, machine, deadline
        self._frames: list[_Frame] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._best: dict[_Item, _Cost] = {}
        self._came: dict[_Item, _Came] = {}
        self._done: set[_Item] = set()
        self._heap: list[tuple[float, int, int, int, int]] = []

    def run(self) -> Repair:
        """Process items in the order of their prefix costs; at equal cost, the item that is furthest in the text
        first.
        """
        machine, root = self._machine, self._begin(self._machine.start, 0, (0.0, 0))
        while self._heap:
            _, _, after, frame, state = heapq.heappop(self._heap)
            item = (frame, state, -after)
            if item in self._done:
                continue
            self._done.add(item)
            charge(len(self._best) + len(self._frames), self._deadline)
            if state >= len(machine.final):
                self._read(item)
                continue
            if machine.final[state]:
                self._complete(item)
                if frame == root and item[2] == len(self._text):
                    return self._read_back(item)
            for entry in machine.entries[state]:
                self._reach((frame, entry, item[2]), self._best[item], (item, None, None, -2))
            for rule, target in machine.calls[state]:
                self._call(item, rule, target)
            if frame == root:
                self._delete(item)
        raise ConstraintError(
            "repair: the edits that are allowed make no text of the constraint out of this one"
        )

    def _begin(self, rule: str, at: int, prefix: _Cost) -> int:
        """The number of the frame of a rule at a place."""
        number = self._numbers.setdefault((rule, at), len(self._frames))
        if number == len(self._frames):
            self._frames.append(_Frame(prefix))
            item = (number, self._machine.starts[rule], at)
            self._best[item] = (0.0, 0)
            heapq.heappush(self._heap, (*prefix, -at, number, item[1]))
        return number

    def _reach(self, item: _Item, inside: _Cost, came: _Came) -> None:
        if item in self._done or (item in self._best and self._best[item] <= inside):
            return
        self._best[item], self._came[item] = inside, came
        prefix = self._frames[item[0]].prefix
        entry = (prefix[0] + inside[0], prefix[1] + inside[1], -item[2], item[0], item[1])
        heapq.heappush(self._heap, entry)

    def _read(self, item: _Item) -> None:
        """An item inside of an automaton: an edit or a copy of a letter, or the end of the edge."""
        frame, state, at = item
        leaf, (cost, changed) = self._machine.leaf(state), self._best[item]
        if leaf.automaton.accepting[state - leaf.base]:
            self._reach((frame, leaf.target, at), (cost, changed), (item, None, None, -2))
        for (place, target), price, kind, letter in leaf.moves.steps(at, state - leaf.base):
            inside = cost + price, changed + CHANGED[kind]
            self._reach((frame, leaf.base + target, place), inside, (item, None, kind, letter))

    def _delete(self, item: _Item) -> None:
        """One letter less at the outermost rule: if the empty text is the nearest, no automaton is passed."""
        (frame, state, at), (cost, changed) = item, self._best[item]
        price = self._machine.prices["delete"]
        if at < len(self._text) and price < math.inf:
            inside = cost + price, changed + CHANGED["delete"]
            self._reach((frame, state, at + 1), inside, (item, None, "delete", -1))

    def _call(self, item: _Item, rule: str, target: int) -> None:
        cost, prefix = self._best[item], self._frames[item[0]].prefix
        frame = self._frames[self._begin(rule, item[2], (prefix[0] + cost[0], prefix[1] + cost[1]))]
        frame.waiting.append((item, target))
        for place, (inside, done) in frame.ends.items():
            self._go_on(item, target, place, inside, done)

    def _complete(self, item: _Item) -> None:
        frame, inside = self._frames[item[0]], self._best[item]
        if item[2] not in frame.ends:  # another state of the rule may have been complete before
            frame.ends[item[2]] = inside, item
            for waiting, target in frame.waiting:
                self._go_on(waiting, target, item[2], inside, item)

    def _go_on(self, waiting: _Item, target: int, place: int, inside: _Cost, done: _Item) -> None:
        self._deadline.tick(3)
        cost, changed = self._best[waiting]
        total = cost + inside[0], changed + inside[1]
        self._reach((waiting[0], target, place), total, (waiting, done, None, -2))

    def _read_back(self, item: _Item) -> Repair:
        """The edits on the best path, last one first; items that wait for a call that is read backwards are on a
        stack.
        """
        cost, steps, waiting = self._best[item][0], list[tuple[int, Kind | None, int]](), list[_Item]()
        while True:
            while item not in self._came:  # at the start of a rule
                if not waiting:
                    return written(self._text, cost, reversed(steps))
                item = waiting.pop()
            before, done, kind, letter = self._came[item]
            if letter != -2:
                steps.append((before[2], kind, letter))
            if done is not None:
                waiting.append(before)
                before = done
            item = before
