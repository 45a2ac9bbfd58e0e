"""The texts equivalent to some text of a language: equal once each character is mapped, and marks are put in order.

The idea: let h map each character to its full decomposition, and let ~ reorder combining marks as canonical ordering
does (Unicode Standard, section 3.11, D109). A normal form is h, then that order; so the texts wanted are
h⁻¹([h(L)]~). [ ]~ is the closure under commuting neighbours (Mazurkiewicz traces): two marks commute if their combining
classes differ. It is not regular for every language ((ab)* becomes "as many a as
b"), so what needs unbounded counting is refused.

Data. A configuration is a place in h(L), and the marks *owed*: passed there, and not yet read. Reading a mark pays the
first that is owed of its class; or, if none is, passes marks of other classes until it is met. A letter of class 0
needs all debts paid. Passing is only tried where marks do not commute already (``_Marks.passable``), which is what
keeps ``.*`` and counted repetitions of any character free of debts.

A decomposition that leads where its character leads is no path of its own. Letters that no such path names are one
class with those that the language does not tell apart. Full case folding is the same without an order.

Cost: one pass over all code points for each map and process; for each state of the language one over the characters
with a decomposition; states at worst exponential, within the budget.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import Literal, get_args

import numpy as np

from tokenfst.arguments import checked_but
from tokenfst.automata.language import Language
from tokenfst.automata.letter_automata import (
    Deadline,
    Ints,
    LetterAutomaton,
    crawl,
    read_letters,
    require_language,
    write_letters,
)
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_Place = tuple[int, tuple[int, ...]]
"""A state of the language, behind the letters that are still to be read on the way to it."""
_Config = tuple[_Place, tuple[int, ...]]
"""A place, and the marks owed there: of one combining class in order, classes ascending."""
_State = frozenset[_Config]
_Path = tuple[tuple[int, ...], int]
"""A word that a character becomes, and the state where the character leads."""


@dataclass(frozen=True, eq=False)
class LetterMap:
    """A map of characters to words. ``images``: those of characters that are not mapped to themselves; the letters in
    them are. ``marks``: the combining classes other than 0 of letters."""

    images: Mapping[int, tuple[int, ...]]
    marks: Mapping[int, int]


@lru_cache(maxsize=2)
def _decompositions(form: Literal["NFD", "NFKD"]) -> LetterMap:
    codes = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
    images = {
        code: tuple(map(ord, image))
        for code in codes
        if (image := unicodedata.normalize(form, chr(code))) != chr(code)
    }
    return LetterMap(
        images,
        {code: ccc for code in codes if (ccc := unicodedata.combining(chr(code))) and code not in images},
    )


@lru_cache(maxsize=1)
def full_case_folding() -> LetterMap:
    """``str.casefold``, character by character."""
    folded = ((code, chr(code).casefold()) for code in range(sys.maxunicode + 1))
    return LetterMap({code: tuple(map(ord, image)) for code, image in folded if image != chr(code)}, {})


@checked_but("language")
def normalization_insensitive(
    language: Language, form: Form = "NFC", *, budget: Budget | None = None
) -> Language:
    """The texts whose normal form is that of some text of ``language`` (Unicode Standard Annex 15).

    NFC and NFD give the same language, that of all canonically equivalent texts; so do NFKC and NFKD, of all
    compatibility equivalent ones. Unicode data are those of the running Python. Words that are not valid UTF-8 are no
    texts, and count for nothing.

    Raises ``ConstraintError`` where marks of different combining classes can repeat without a bound between letters in
    an order that matters, as in ``(?:\\u0301\\u0323)*``: the equivalent texts may then be no regular language; for
    another form and for a grammar. ``BudgetExceeded`` where it outgrows ``budget`` (that of the language, if none is
    given).
    """
    source = require_language(language, "normalization_insensitive")
    if form not in get_args(Form):
        raise ConstraintError(f"the normal forms are {', '.join(get_args(Form))}, not {form!r}")
    letters = _decompositions("NFKD" if form.startswith("NFK") else "NFD")
    return equivalent_texts(source, letters, f"normalization_insensitive({source.source}, {form})", budget)


def equivalent_texts(
    source: Language, letter_map: LetterMap, name: str, budget: Budget | None = None
) -> Language:
    """The texts that ``letter_map``, and the order of its marks, make equal to some text of ``source``."""
    limits = budget or source.budget
    read = read_letters(source.with_budget(limits).determinize(), "characters", limits)
    if read.start == 0:
        return Language.empty()
    mapped = _Mapped(read, letter_map)
    begins, group, words = mapped.alphabet()
    marks = _Marks(mapped, Deadline(limits, name))

    def follow(state: _State) -> tuple[None, dict[int, _State]]:
        known: dict[tuple[int, ...], _State] = {(): state}
        for word in words:
            for end in range(1, len(word) + 1):
                if word[:end] not in known:
                    before = known[word[: end - 1]]
                    known[word[:end]] = marks.read(before, word[end - 1]) if before else before
        return None, {number: known[word] for word, number in words.items() if known[word]}

    def accepts(state: _State) -> bool:
        return any(not owed and not rest and read.accepting[q] for (q, rest), owed in state)

    start: _State = frozenset([((read.start, ()), ())])
    table, accepting = crawl(start, follow, accepts, len(words), limits, name)
    return Language(write_letters(begins, group, table, accepting, "characters", limits), name, limits)


class _Mapped:
    """h(L): the automaton of the language, and beside it the paths of mapped characters that lead elsewhere.

    Its letters are numbered: two are one letter if the language does not tell them apart, their combining class is the
    same, and either may stand for the other in every path.
    """

    def __init__(self, letters: LetterAutomaton, letter_map: LetterMap) -> None:
        self.letters, self.map = letters, letter_map
        self.rows: list[list[int]] = letters.table.tolist()
        paths = self._paths()
        self.named = _interchangeable(paths)
        self.numbers: dict[tuple[int, int, int], int] = {}
        codes = [*self.named, *letter_map.marks]
        self.known = dict(zip(codes, letters.class_of(codes).tolist(), strict=True))
        self.paths: list[dict[int, set[_Place]]] = []
        for each in paths:
            arcs: dict[int, set[_Place]] = {}
            for word, target in each:
                spelled = tuple([self.letter(code, self.known[code]) for code in word])
                arcs.setdefault(spelled[0], set()).add((target, spelled[1:]))
            self.paths.append(arcs)

    def _paths(self) -> list[list[_Path]]:
        """Of each state: the words that mapped characters become, and where the characters lead; no word that leads
        there anyway."""
        images = list(self.map.images.values())
        group = self.letters.class_of(list(self.map.images))
        longest = max(map(len, images))
        padded = np.array([word + (-1,) * (longest - len(word)) for word in images])
        classes = np.where(
            padded < 0, -1, self.letters.class_of(np.maximum(padded, 0).ravel()).reshape(padded.shape)
        )
        found: list[list[_Path]] = []
        for state, row in enumerate(self.letters.table):
            target = row[group]
            reached = np.full(len(images), state)
            for column in classes.T:
                reached = np.where(column < 0, reached, self.letters.table[reached, column])
            others = np.flatnonzero((target != 0) & (target != reached)).tolist()
            found.append([(images[k], int(target[k])) for k in others])
        return found

    def letter(self, code: int, group: int) -> int:
        """The number of a letter of class ``group`` that is mapped to itself."""
        key = group, self.map.marks.get(code, 0), self.named.get(code, -1)
        return self.numbers.setdefault(key, len(self.numbers))

    def alphabet(self) -> tuple[Ints, Ints, dict[tuple[int, ...], int]]:
        """Intervals of characters, their classes, and the word of letters that each class stands for."""
        cuts = np.array([*self.map.images, *self.named, *self.map.marks])
        begins = np.unique(np.concatenate([self.letters.begins, cuts, cuts + 1]))
        begins = begins[begins <= sys.maxunicode]
        own: list[int] = self.letters.class_of(begins).tolist()
        spelled = sorted({code for word in self.map.images.values() for code in word})
        classes = dict(zip(spelled, self.letters.class_of(spelled).tolist(), strict=True))
        words: dict[tuple[int, ...], int] = {}
        group: list[int] = []
        for code, number in zip(begins.tolist(), own, strict=True):
            image = self.map.images.get(code)
            if number < 0:
                group.append(-1)
                continue
            pairs = [(code, number)] if image is None else [(each, classes[each]) for each in image]
            word = tuple([self.letter(*pair) for pair in pairs])
            group.append(words.setdefault(word, len(words)))
        self.keys = list(self.numbers)
        return begins, np.array(group), words

    def step(self, place: _Place, letter: int) -> list[_Place]:
        """Where a letter leads."""
        q, rest = place
        if rest:
            return [(q, rest[1:])] if rest[0] == letter else []
        target = self.rows[q][self.keys[letter][0]]
        return [*([(target, ())] if target else []), *self.paths[q].get(letter, ())]


def _interchangeable(paths: list[list[_Path]]) -> dict[int, int]:
    """The letters of paths by what stands around them: those with the same number have the same places in all words."""
    ends: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for state, each in enumerate(paths):
        for word, target in each:
            ends.setdefault(word, []).append((state, target))
    numbers: dict[object, int] = {}
    around: dict[int, set[object]] = {}
    for word, pairs in ends.items():
        end = numbers.setdefault(tuple(pairs), len(numbers))
        for place, letter in enumerate(word):
            around.setdefault(letter, set()).add((word[:place], word[place + 1 :], end))
    return {
        letter: numbers.setdefault(frozenset(contexts), len(numbers)) for letter, contexts in around.items()
    }


class _Marks:
    """Reads letters, marks in any order that is equivalent."""

    def __init__(self, mapped: _Mapped, deadline: Deadline) -> None:
        """``mapped`` has numbered all of its letters."""
        self.mapped, self.deadline = mapped, deadline
        self.classes = [key[1] for key in mapped.keys]
        self.marks = [letter for letter, number in enumerate(self.classes) if number]
        self.arcs: dict[_Place, dict[int, frozenset[_Place]]] = {}
        self.passable = self._passable()

    def read(self, state: _State, letter: int) -> _State:
        mark = self.classes[letter]
        reached: set[_Config] = set()
        if not mark:
            for place, owed in state:
                if not owed:
                    reached.update((target, ()) for target in self.mapped.step(place, letter))
            return frozenset(reached)
        waiting: list[_Config] = []
        for place, owed in state:
            due = next((k for k, each in enumerate(owed) if self.classes[each] == mark), None)
            if due is None:
                waiting.append((place, owed))
            elif owed[due] == letter:
                reached.add((place, owed[:due] + owed[due + 1 :]))
        seen = set(waiting)
        while waiting:
            self.deadline.check()
            place, owed = waiting.pop()
            reached.update((target, owed) for target in self.mapped.step(place, letter))
            if place not in self.passable:
                continue
            for passed, targets in self.of(place).items():
                if self.classes[passed] != mark:
                    debts = tuple(sorted((*owed, passed), key=self.classes.__getitem__))
                    more = {(target, debts) for target in targets} - seen
                    seen |= more
                    waiting += more
        return frozenset(reached)

    def of(self, place: _Place) -> dict[int, frozenset[_Place]]:
        """Where marks lead from a place."""
        if place not in self.arcs:
            targets = ((mark, frozenset(self.mapped.step(place, mark))) for mark in self.marks)
            self.arcs[place] = {mark: each for mark, each in targets if each}
        return self.arcs[place]

    def _passable(self) -> set[_Place]:
        """The places from which two marks of different classes may lead elsewhere in another order, now or later.

        Raises ``ConstraintError`` where there is a circle of them.
        """
        places: list[_Place] = [(q, ()) for q in range(1, len(self.mapped.rows))]
        places += {place for arcs in self.mapped.paths for each in arcs.values() for place in each}
        following: dict[_Place, set[_Place]] = {}
        for place in places:
            self.deadline.check()
            if place not in following:
                following[place] = set().union(*self.of(place).values())
                places += following[place]
        before: dict[_Place, list[_Place]] = {}
        for place, targets in following.items():
            for target in targets:
                before.setdefault(target, []).append(place)
        found = {place for place in following if not self._commute(place)}
        stack = list(found)
        while stack:
            for place in before.get(stack.pop(), ()):
                if place not in found:
                    found.add(place)
                    stack.append(place)
        # Those without a passable one behind them are taken away until none is left, or a circle.
        count = {place: len(following[place] & found) for place in found}
        ready = [place for place, number in count.items() if not number]
        left = len(found)
        while ready:
            left -= 1
            for place in before.get(ready.pop(), ()):
                if place in count:
                    count[place] -= 1
                    if not count[place]:
                        ready.append(place)
        if left:
            raise ConstraintError(
                "marks of different combining classes repeat without a bound, in an order that matters: the equivalent "
                "texts may be no regular language. Bound the repetition, or allow the marks in any order"
            )
        return found

    def _commute(self, place: _Place) -> bool:
        """Whether every two marks of different classes lead to the same places in both orders."""
        self.deadline.check()
        arcs = self.of(place)
        if all(targets == {place} for targets in arcs.values()):
            return True
        for one, other in permutations(self.marks, 2):
            if one in arcs and self.classes[one] != self.classes[other]:
                there = {end for middle in arcs[one] for end in self.mapped.step(middle, other)}
                back = {end for middle in arcs.get(other, ()) for end in self.mapped.step(middle, one)}
                if there != back:
                    return False
        return True
