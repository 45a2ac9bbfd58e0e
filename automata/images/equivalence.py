"""Closure under Unicode equivalence: the texts with the same normal form, or the same full case folding, as a text of a
language.

Let h map each character to its full decomposition, and let ~ reorder combining marks as canonical ordering does
(Unicode Standard, section 3.11, D109). A normal form is h followed by that order, so the result is h⁻¹([h(L)]~). [ ]~
is the closure under a partial commutation (Mazurkiewicz traces): two marks commute if their combining classes differ.
The closure is not regular for every language ((ab)* becomes "as many a as b"), so languages that need unbounded
counting are rejected.

Data. A configuration is a position in h(L) and the marks *owed*: marks of h(L) that were passed there but not yet read.
Reading a mark pays the first owed mark of its class; if there is none, it passes marks of other classes until it finds
one. A letter of class 0 can be read only if no marks are owed. Marks are passed only where marks do not commute already
(``_Marks.passable``), so ``.*`` and counted repetitions of any character never owe marks.

A decomposition that leads to the same state as its character is not a separate path. Letters that occur in no such path
are one class with those that the language does not distinguish. Full case folding is the same without an order.

Cost: one pass over all code points for each map and process; for each state of the language one pass over the
characters with a decomposition; the number of states is exponential in the worst case, within the budget.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal, get_args

import numpy as np

from tokenfst.automata.characters.classes import changed_characters, every_character
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.letters import (
    Ints,
    LetterAutomaton,
    crawl,
    read_letters,
    require_language,
    write_letters,
)
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but
from tokenfst.errors import BudgetExceeded, ConstraintError

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_Place = tuple[int, tuple[int, ...]]
"""A state of the language, after the letters that are still to be read on the way to it."""
_Config = tuple[_Place, tuple[int, ...]]
"""A position, and the marks owed there: of one combining class in order, classes ascending."""
_State = frozenset[_Config]
_PAIR_BYTES = 200
"""Approximate memory of a state with a detour."""


@dataclass(frozen=True, eq=False)
class LetterMap:
    """A map of characters to words.

    ``images``: the images of characters that are not mapped to themselves; the letters in images are mapped to
    themselves. ``marks``: the letters with a combining class other than 0, and their classes.
    """

    images: Mapping[int, tuple[int, ...]]
    marks: Mapping[int, int]


@lru_cache(maxsize=2)
def _decompositions(form: Literal["NFD", "NFKD"]) -> LetterMap:
    images = changed_characters(partial(unicodedata.normalize, form))
    classes = enumerate(map(unicodedata.combining, every_character()))
    return LetterMap(images, {code: ccc for code, ccc in classes if ccc and code not in images})


@lru_cache(maxsize=1)
def full_case_folding() -> LetterMap:
    """``str.casefold``, character by character."""
    return LetterMap(changed_characters(str.casefold), {})


@checked_but("language")
def normalization_insensitive(
    language: Language, form: Form = "NFC", *, budget: Budget | None = None
) -> Language:
    r"""The texts whose normal form is that of some text of ``language`` (Unicode Standard Annex 15).

    NFC and NFD give the same language, all canonically equivalent texts; so do NFKC and NFKD, all compatibility
    equivalent texts. Unicode data are those of the running Python. Words that are not valid UTF-8 are ignored.

    Raises ``ConstraintError`` if marks of different combining classes can repeat without bound between letters in an
    order that matters, as in ``(?:\u0301\u0323)*``, because the equivalent texts may then not be regular; also for an
    unknown form and for a grammar. ``BudgetExceeded`` if it exceeds ``budget`` (by default that of the language).
    """
    source = require_language(language, "normalization_insensitive")
    if form not in get_args(Form):
        raise ConstraintError(f"the normal forms are {', '.join(get_args(Form))}, not {form!r}")
    letters = _decompositions("NFKD" if form.startswith("NFK") else "NFD")
    return equivalent_texts(source, letters, f"normalization_insensitive({source.source}, {form})", budget)


def equivalent_texts(
    source: Language, letter_map: LetterMap, name: str, budget: Budget | None = None
) -> Language:
    """The texts that ``letter_map`` and the reordering of marks make equal to some text of ``source``."""
    deadline = Deadline(budget or source.budget, name)
    read = read_letters(source, "characters", deadline)
    if read.start == 0:
        return Language.empty()
    mapped = _Mapped(read, letter_map, deadline)
    begins, group, words = mapped.alphabet()
    marks = _Marks(mapped, deadline)

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
    table, accepting = crawl(start, follow, accepts, len(words), deadline)
    made = write_letters(begins, group, table, accepting, "characters", deadline)
    return Language(made, name, deadline.budget)


class _Mapped:
    """h(L): the automaton of the language, together with the paths of mapped characters that lead to other states.

    Its letters are numbered. Two letters are one if the language does not distinguish them, their combining class
    is the same, and either may replace the other in every path.

    Characters of one class whose words are of the same classes lead to the same states from every state. Such a
    *detour* is computed once for all of them.
    """

    def __init__(self, letters: LetterAutomaton, letter_map: LetterMap, deadline: Deadline) -> None:
        self.letters, self.map, self.deadline = letters, letter_map, deadline
        self.rows: list[list[int]] = letters.table.tolist()
        detours, of_images = self._detours()
        words: dict[tuple[int, ...], set[int]] = {}
        for word, detour in zip(letter_map.images.values(), of_images, strict=True):
            if detours[detour]:
                words.setdefault(word, set()).add(detour)
        self.named = _interchangeable(words)
        self.numbers: dict[tuple[int, int, int], int] = {}
        codes = [*self.named, *letter_map.marks]
        self.known = dict(zip(codes, letters.class_of(codes).tolist(), strict=True))
        rests: list[dict[int, set[tuple[int, ...]]]] = [{} for _ in detours]
        """For each detour: by the first letter of its words, the letters after it."""
        for word, numbers in words.items():
            deadline.tick(len(word))
            spelled = tuple([self.letter(code, self.known[code]) for code in word])
            for number in numbers:
                rests[number].setdefault(spelled[0], set()).add(spelled[1:])
        self.rests = [{letter: tuple(each) for letter, each in found.items()} for found in rests]
        self.detours: list[list[tuple[int, int]]] = [[] for _ in self.rows]
        """For each state: its detours, and the states that they lead to."""
        for number, ends in enumerate(detours):
            for state, target in ends:
                self.detours[state].append((number, target))

    def _detours(self) -> tuple[list[list[tuple[int, int]]], list[int]]:
        """Where words of mapped characters lead, from the states in which they lead elsewhere than the character;
        and the detour of each mapped character.
        """
        images = list(self.map.images.values())
        longest = max(map(len, images))
        padded = np.array([word + (-1,) * (longest - len(word)) for word in images])
        classes = np.where(
            padded < 0, -2, self.letters.class_of(np.maximum(padded, 0).ravel()).reshape(padded.shape)
        )
        keys = np.column_stack([self.letters.class_of(list(self.map.images)), classes])
        distinct, which = np.unique(keys, axis=0, return_inverse=True)
        table, states = self.letters.table, np.arange(len(self.rows))
        found: dict[bytes, int] = {}
        detours: list[list[tuple[int, int]]] = []
        numbers: list[int] = []
        held = 0
        for character, *word in distinct.tolist():
            reached = states
            for letter in word:
                reached = reached if letter == -2 else table[reached, letter]
            target = table[:, character]
            others = np.flatnonzero((target != 0) & (target != reached))
            pairs = np.column_stack([others, target[others]])
            number = found.setdefault(pairs.tobytes(), len(found))
            if number == len(detours):
                detours.append([(state, to) for state, to in pairs.tolist()])
                held += len(pairs) * _PAIR_BYTES
                if held > self.deadline.budget.bytes:
                    raise BudgetExceeded("bytes", self.deadline.budget.bytes, self.deadline.where)
            numbers.append(number)
            self.deadline.tick(20 + len(states) // 20)
        return detours, [numbers[each] for each in which.ravel().tolist()]

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
            self.deadline.tick()
            image = self.map.images.get(code)
            if number < 0:
                group.append(-1)
                continue
            pairs = [(code, number)] if image is None else [(each, classes[each]) for each in image]
            word = tuple([self.letter(*pair) for pair in pairs])
            group.append(words.setdefault(word, len(words)))
        self.keys = list(self.numbers)
        return begins, np.array(group), words

    def ends(self) -> dict[int, set[int]]:
        """For each detour: the states that it leads to."""
        found: dict[int, set[int]] = {}
        for each in self.detours:
            for number, end in each:
                found.setdefault(number, set()).add(end)
        return found

    def step(self, place: _Place, letter: int) -> list[_Place]:
        """The places that a letter leads to."""
        q, rest = place
        if rest:
            return [(q, rest[1:])] if rest[0] == letter else []
        target = self.rows[q][self.keys[letter][0]]
        found: list[_Place] = [(target, ())] if target else []
        for number, end in self.detours[q]:
            found += [(end, more) for more in self.rests[number].get(letter, ())]
        return found


def _interchangeable(words: Mapping[tuple[int, ...], set[int]]) -> dict[int, int]:
    """The letters of words with their detours, grouped by their surroundings: letters with the same number occur at
    the same places in all words.
    """
    numbers: dict[object, int] = {}
    around: dict[int, set[object]] = {}
    for word, detours in words.items():
        end = numbers.setdefault(frozenset(detours), len(numbers))
        for place, letter in enumerate(word):
            around.setdefault(letter, set()).add((word[:place], word[place + 1 :], end))
    return {
        letter: numbers.setdefault(frozenset(contexts), len(numbers)) for letter, contexts in around.items()
    }


class _Marks:
    """Reads letters, and marks in any equivalent order."""

    def __init__(self, mapped: _Mapped, deadline: Deadline) -> None:
        """``mapped`` must have numbered all of its letters."""
        self.mapped, self.deadline = mapped, deadline
        self.classes = [key[1] for key in mapped.keys]
        self.marks = [letter for letter, number in enumerate(self.classes) if number]
        self.arcs: dict[_Place, dict[int, frozenset[_Place]]] = {}
        self.passable = self._passable()

    def read(self, state: _State, letter: int) -> _State:
        self.deadline.tick(1 + len(state))
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
            place, owed = waiting.pop()
            self.deadline.tick(8 + (4 * len(self.of(place)) if place in self.passable else 0))
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
        """The places that marks lead to from a place."""
        if place not in self.arcs:
            _, rest = place
            marks = self.marks if not rest else rest[:1] if self.classes[rest[0]] else ()
            self.deadline.tick(1 + 4 * len(marks))
            targets = ((mark, frozenset(self.mapped.step(place, mark))) for mark in marks)
            self.arcs[place] = {mark: each for mark, each in targets if each}
        return self.arcs[place]

    def _passable(self) -> set[_Place]:
        """The places from which two marks of different classes may lead elsewhere in another order, now or later.

        Raises ``ConstraintError`` if there is a cycle of them.
        """
        places: list[_Place] = [(q, ()) for q in range(1, len(self.mapped.rows))]
        for number, ends in self.mapped.ends().items():
            after = {rest for rests in self.mapped.rests[number].values() for rest in rests}
            self.deadline.tick(len(ends) * len(after))
            places += [(end, rest) for end in ends for rest in after]
        following: dict[_Place, set[_Place]] = {}
        for place in places:
            self.deadline.tick(4)
            if place not in following:
                following[place] = set().union(*self.of(place).values())
                places += following[place]
        before: dict[_Place, list[_Place]] = {}
        for place, targets in following.items():
            self.deadline.tick(1 + len(targets))
            for target in targets:
                before.setdefault(target, []).append(place)
        found = {place for place in following if not self._commute(place)}
        stack = list(found)
        while stack:
            self.deadline.tick()
            for place in before.get(stack.pop(), ()):
                if place not in found:
                    found.add(place)
                    stack.append(place)
        self._check_no_circle(found, following, before)
        return found

    def _check_no_circle(
        self, found: set[_Place], following: dict[_Place, set[_Place]], before: dict[_Place, list[_Place]]
    ) -> None:
        """Remove places without a successor in ``found`` until none is left, or a cycle, for which this raises."""
        count: dict[_Place, int] = {}
        for place in found:
            self.deadline.tick(1 + len(following[place]) // 8)
            count[place] = len(following[place] & found)
        ready = [place for place, number in count.items() if not number]
        left = len(found)
        while ready:
            self.deadline.tick()
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

    def _commute(self, place: _Place) -> bool:
        """Whether every two marks of different classes lead to the same places in both orders."""
        arcs = self.of(place)
        if all(targets == {place} for targets in arcs.values()):
            return True
        for one, middles in arcs.items():
            there: dict[int, set[_Place]] = {}
            for middle in middles:
                for other, targets in self.of(middle).items():
                    if self.classes[one] != self.classes[other]:
                        there.setdefault(other, set()).update(targets)
            self.deadline.tick(len(middles) + len(there))
            for other, targets_there in there.items():
                back = [self.of(middle).get(one, ()) for middle in arcs.get(other, ())]
                if targets_there != set().union(*back):
                    return False
        return True
