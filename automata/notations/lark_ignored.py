r"""What a Lark grammar ignores: where a piece of ignored text ends, and what may follow it.

Lark matches ignored text with ``re.match``, which prefers the longest match in most patterns. So a comment
``/#[^\n]*/`` never ends before its line does, and no terminal can begin inside of it. Here one automaton reads a run,
a sequence of ignored pieces. Its state says which piece is being read and, for each piece that has ended, whether a
longer match was still possible (``leftmost``). A run is rejected if one of its pieces had a longer match. At the end of
a run, the longer matches that are still possible say which characters must not follow.

This gives three sets of runs: those that every terminal may follow (``between``), those that a terminal may follow only
if it begins with certain characters, and those that only the end of the text may follow. In most grammars all runs are
of the first kind; then they are plain repetitions of the pieces. A terminal that itself accepts ignored text (a blank
where blanks are ignored) is no exception if the run before it may also come after it.

Not supported: pieces with look-around, and terminals whose first character does not decide whether a piece continues
with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst._native import PlainPattern
from tokenfst.automata.characters.classes import character_set
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges, normalize
from tokenfst.automata.expressions.expression import EPSILON, UNIVERSE, Expr, concat, intersect, union
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.letters import crawl, write_letters
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.leftmost import Leftmost, cut
from tokenfst.budget import Budget
from tokenfst.errors import UnsupportedPatternError

_Waiting = frozenset[tuple[int, int]]
"""States of pieces that have ended although a longer match was still possible."""
_State = frozenset[tuple[tuple[int, int] | None, _Waiting]]
"""All ways to read a run. Each way: the piece that is being read, with its state (None between two pieces), and the
longer matches that are still possible.
"""
Terminals = Mapping[str, tuple[Expr, Ranges]]
"""By key: the words of a terminal, and the characters that they begin with."""
_YES, _NO, _OPEN = 0, 1, 2
_NAME = "what is ignored"


@dataclass(frozen=True)
class Runs:
    """The ignored text of a grammar.

    ``between``: the runs that may follow every terminal. ``before``: by the first characters of a terminal, the runs
    that may come between such a run and the terminal (see ``led``). ``end``: the same for the end of the text.
    ``free``: the keys of terminals before which a forbidden run does not matter, because it may also come after them.
    ``plain``: all runs are allowed between terminals and at the end.
    """

    between: Expr
    end: Expr
    before: tuple[tuple[Ranges, Expr | None], ...]
    plain: bool
    free: frozenset[str] = frozenset()

    def led(self, terminal: Expr, key: str, words: Expr, first: Ranges) -> Expr:
        """The terminal ``key`` together with the additional runs that may come before it. ``words``: its expression
        without calls; ``first``: the characters that the words begin with.
        """
        if key in self.free:
            return terminal
        met = [(ranges, run) for ranges, run in self.before if _meet(ranges, first)]
        if all(run is None for _, run in met):
            return terminal
        if len(met) == 1:
            return concat(met[0][1] or EPSILON, terminal)
        return union(
            *(
                concat(run or EPSILON, intersect(words, concat(character_set(ranges, True), UNIVERSE)))
                for ranges, run in met
            )
        )


def runs_of(pieces: Sequence[Leftmost], terminals: Terminals, budget: Budget) -> Runs:
    """The ignored text, for the grammar's terminals and their first characters.

    Raises UnsupportedPatternError, and BudgetExceeded("states", "bytes" or "seconds").
    """
    return _Reader(pieces, terminals, budget).runs()


def may_end_anywhere(pieces: Sequence[tuple[Expr, PlainPattern | None]], terminals: Terminals) -> bool:
    """Whether every sequence of pieces is ignored text that every terminal may follow. Sufficient, not necessary; if it
    is True, ``runs_of`` would find the same. ``pieces``: the words of each piece and, if it is plain, its pattern.

    The condition: no piece and no terminal begins with a character with which the match of a piece before it could
    become longer. It need not hold for a piece after itself, or before a terminal with the same words, if the piece is
    a repetition, because its words in sequence are then one word of it.
    """
    for words, plain in pieces:
        longer = None if plain is None else plain.longer_by()
        if plain is None or longer is None:
            return False
        joins = plain.is_repetition()
        followers = [(other, pattern.first() if pattern else None) for other, pattern in pieces]
        for other, first in (*followers, *terminals.values()) if longer else ():
            if (first is None or _meet(longer, first)) and not (joins and other is words):
                return False
    return True


def _meet(left: Ranges, right: Ranges) -> bool:
    return any(a <= d and c <= b for a, b in left for c, d in right)


class _Reader:
    def __init__(self, pieces: Sequence[Leftmost], terminals: Terminals, budget: Budget) -> None:
        self.pieces, self.terminals, self.budget = pieces, terminals, budget
        firsts = dict.fromkeys(first for _, first in terminals.values())
        begins, group, inside = cut({each: k for k, each in enumerate(firsts)})
        self.begins = np.unique(np.concatenate([begins, *(piece.begins for piece in pieces)]))
        known = group[np.searchsorted(begins, self.begins, side="right") - 1]
        columns = [
            piece.group[np.searchsorted(piece.begins, self.begins, side="right") - 1] for piece in pieces
        ]
        numbers: dict[tuple[int, ...], int] = {}
        self.group = np.full(len(self.begins), -1, np.int64)
        self.classes: list[list[int]] = []
        for k, each in enumerate(zip(known.tolist(), *(column.tolist() for column in columns), strict=True)):
            if each[0] >= 0:
                number = numbers.setdefault(each, len(numbers))
                if number == len(self.classes):
                    self.classes.append([])
                self.classes[number].append(k)
                self.group[k] = number
        # next state of each piece by its state and the class of a character
        self.steps = [
            piece.table[:, [key[1 + k] for key in numbers]].tolist() for k, piece in enumerate(pieces)
        ]
        met: list[list[int]] = [[] for _ in firsts]
        for number, (known_class, *_) in enumerate(numbers):
            for k in inside[known_class]:
                met[k].append(number)
        place = {each: k for k, each in enumerate(firsts)}
        self.first = {key: met[place[first]] for key, (_, first) in terminals.items()}

    def characters(self, classes: Sequence[int]) -> Ranges:
        """The characters of classes."""
        ends = [*(self.begins[1:] - 1).tolist(), MAX_CODE_POINT]
        return normalize((int(self.begins[k]), ends[k]) for each in classes for k in self.classes[each])

    def runs(self) -> Runs:
        order: list[_State] = []

        def follow(state: _State) -> tuple[None, dict[int, _State]]:
            order.append(state)
            found = {k: self.step(state, k) for k in range(len(self.classes))}
            return None, {k: each for k, each in found.items() if each}

        start: _State = frozenset([(None, frozenset())])
        table, ends = crawl(
            start,
            follow,
            lambda state: any(piece is None for piece, _ in state),
            len(self.classes),
            Deadline(self.budget, _NAME),
        )
        used = sorted({k for classes in self.first.values() for k in classes})
        verdicts = {k: [_NO, *(self.verdict(state, k) for state in order)] for k in used}
        allowed = {k: ends & (np.array(each) == _YES) for k, each in verdicts.items()}
        doubtful = {k for k in used if _OPEN in verdicts[k]}
        narrow = [
            key for key, classes in self.first.items() if any((allowed[k] != ends).any() for k in classes)
        ]
        free = self.absorbing(narrow, ends, allowed, table)
        strict = {k for key, classes in self.first.items() if key not in free for k in classes}
        if strict & doubtful:
            low = self.characters([min(strict & doubtful)])[0][0]
            raise UnsupportedPatternError(
                f"a terminal begins with {chr(low)!r}, and ignored text (%ignore) may continue with it: the two "
                "cannot be distinguished there; change the %ignore pattern so that it ends before this character, or "
                "put it into the rules",
                "",
                0,
            )
        everywhere = self.common(ends, (allowed[k] for k in strict))
        between = self.expr(table, everywhere)
        if (everywhere == ends).all():
            return Runs(between, EPSILON, (), True)
        before: dict[bytes, list[int]] = {}
        for k in sorted(strict):
            before.setdefault(allowed[k].tobytes(), []).append(k)
        more: list[tuple[Ranges, Expr | None]] = []
        for classes in before.values():
            states = allowed[classes[0]]
            same = bool((states == everywhere).all())
            more.append((self.characters(classes), None if same else self.more(between, table, states)))
        return Runs(between, self.more(between, table, ends), tuple(more), False, frozenset(free))

    def absorbing(
        self,
        narrow: Iterable[str],
        ends: npt.NDArray[np.bool_],
        allowed: Mapping[int, npt.NDArray[np.bool_]],
        table: npt.NDArray[Any],
    ) -> set[str]:
        """Terminals before which a forbidden run does not matter, because it may also come after them."""
        free = set(narrow)
        everywhere = ends
        while free:
            between = self.expr(table, everywhere)
            keep = set()
            for key in free:
                terminal = self.terminals[key][0]
                states = self.common(ends, (allowed[k] for k in self.first[key]))
                right = concat(self.expr(table, states), terminal, between)
                if not (states & ~everywhere).any() and self.holds(right, concat(between, terminal, between)):
                    keep.add(key)
            strict = [k for each, classes in self.first.items() if each not in keep for k in classes]
            following = self.common(ends, (allowed[k] for k in strict))
            if keep == free and (following == everywhere).all():
                break
            free, everywhere = keep, following
        return free

    def common(
        self, ends: npt.NDArray[np.bool_], sets: Iterable[npt.NDArray[np.bool_]]
    ) -> npt.NDArray[np.bool_]:
        found = ends.copy()
        for each in sets:
            found &= each
        return found

    def holds(self, large: Expr, small: Expr) -> bool:
        return bool(Language(large, _NAME, self.budget).includes(Language(small, _NAME, self.budget)))

    def more(self, between: Expr, table: npt.NDArray[Any], states: npt.NDArray[np.bool_]) -> Expr:
        """The runs that end in some states. What follows a run in ``between`` must again be a run of these, since the
        text does not show where one ends and the next begins.
        """
        made = self.expr(table, states)
        if not self.holds(made, concat(between, made)):
            raise UnsupportedPatternError(
                "the end of ignored text (%ignore) cannot be decided; write one pattern instead of several",
                "",
                0,
            )
        return made

    def expr(self, table: npt.NDArray[Any], states: npt.NDArray[np.bool_]) -> Expr:
        return write_letters(
            self.begins, self.group, table, states, "characters", Deadline(self.budget, _NAME)
        )

    def step(self, state: _State, k: int) -> _State:
        """The state of a run after a character of class ``k``."""
        found: set[tuple[tuple[int, int] | None, _Waiting]] = set()
        for piece, waiting in state:
            left = self.waited(waiting, k)
            if left is None:
                continue
            begun = [(each, 1) for each in range(len(self.pieces))] if piece is None else [piece]
            for number, at in begun:
                following = self.steps[number][at][k]
                if not following:
                    continue
                found.add(((number, following), left))
                if self.pieces[number].accepting[following]:
                    goes_on = any(self.steps[number][following])
                    found.add((None, left | {(number, following)} if goes_on else left))
        return frozenset(found)

    def waited(self, waiting: _Waiting, k: int) -> _Waiting | None:
        """The longer matches that are still possible after a character; None if a piece that had ended continues."""
        following = [(number, self.steps[number][at][k]) for number, at in waiting]
        if any(self.pieces[number].accepting[at] for number, at in following):
            return None
        return frozenset(each for each in following if each[1])

    def verdict(self, state: _State, k: int) -> int:
        """Whether a terminal that begins with a character of class ``k`` may follow."""
        found = {_NO}
        for piece, waiting in state:
            if piece is None:
                left = self.waited(waiting, k)
                found.add(_NO if left is None else _OPEN if left else _YES)
        return _YES if _YES in found else _OPEN if _OPEN in found else _NO
