r"""``Segmentation``: the pre-token boundaries of a text, decided token by token although the pattern looks ahead
without bound.

Where a piece of text ends may depend on the text after it, at any distance. For example, whether three spaces form one
piece with the following text depends on whether the run of spaces ends in a line break; and a capital letter after a
Chinese character belongs to the same piece if a small letter comes before the word ends. So when a position between two
tokens is passed, it may not be known whether it is a boundary. Both answers are kept, as hypotheses, and later text
refutes one of them.

A *hypothesis* after a character consists of

- ``threads``: the pattern's states in the piece that is being matched, in order of preference;
- ``barred``: states of matches that were preferred to one after which a boundary was assumed: none may ever succeed;
- ``coming``: the kinds of characters that may come next (bit 0: the end of the text): look-ahead of one character is
  decided by separate hypotheses;
- ``cut``: whether a piece ends here.

When threads match, a boundary here drops the less preferred threads, bars the more preferred ones and starts anew; no
boundary keeps only the more preferred ones. Each text has at most one sequence of hypotheses to its end, because each
piece has one preferred match. A *state* is a set of hypotheses, with the incomplete character (a node of
``CharacterKinds``); state 0 is dead. Between the characters of one token, hypotheses with a boundary are dropped,
because no token crosses a boundary.

Cost. Tokens whose characters have the same kinds behave alike: Tekken's 131,072 tokens have about 950 such readings,
and a state's row of next states is one walk over them, cached: 4 KB for each state. Rejected: to guess, and to search
back when later text refutes the guess. That could retract tokens that were sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, TokenizationError
from tokenfst.tokenizers.segmentation.character_kinds import BETWEEN, CharacterKinds
from tokenfst.tokenizers.segmentation.split_pattern import SplitPattern
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

DEAD = 0

_Set = frozenset[int]
_Reading = tuple[bytes, int]

_NO_READING: _Reading = (b"", BETWEEN)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A hypothesis about the boundaries; the module's docstring defines the fields."""

    threads: tuple[int, ...]
    barred: frozenset[int]
    coming: int
    cut: bool


class Segmentation:
    """The states of one split pattern over one vocabulary, computed on demand and cached.

    ``start``: the state before any text. Raises ``TokenizationError`` for a pattern that matches the empty text, and
    ``BudgetExceeded`` for more than ``budget.states`` states.
    """

    def __init__(self, pattern: SplitPattern, vocabulary: Vocabulary, budget: Budget) -> None:
        self._program, self._kinds = pattern.program, pattern.num_kinds
        self._budget = budget
        self._characters = CharacterKinds(pattern.kind)
        self._hypotheses: list[Hypothesis] = []
        self._numbers: dict[Hypothesis, int] = {}
        self._states: list[tuple[int, _Set]] = []
        self._state_numbers: dict[tuple[int, _Set], int] = {}
        self._steps: dict[tuple[int, int], tuple[int, ...]] = {}
        self._inner: dict[tuple[_Set, int, bool], _Set] = {}
        self._rows: dict[int, npt.NDArray[np.int32]] = {}
        self._begun = [self._closure((0,), kind) for kind in range(self._kinds)]
        if any(matched for _, matched in self._begun):
            raise TokenizationError(f"the split pattern {pattern.source!r} matches the empty text")
        self._tokens = vocabulary.tokens
        self._late = [
            (t, data) for t, data in enumerate(vocabulary.tokens) if data and 0x80 <= data[0] < 0xC0
        ]
        self._readings: dict[int, tuple[list[_Reading], npt.NDArray[np.int32]]] = {}
        self._state(BETWEEN, frozenset())
        begun = self._grouped(
            [(self._begun[kind][0], frozenset(), kind, True) for kind in range(self._kinds)]
        )
        self.start = self._state(BETWEEN, frozenset(begun))

    def __len__(self) -> int:
        return len(self._states)

    def accepting(self, state: int) -> bool:
        """Whether the text may end here."""
        pending, held = self._states[state]
        return not pending and any(self._hypotheses[h].cut and self._hypotheses[h].coming & 1 for h in held)

    def at_cut(self, state: int) -> int:
        """The state restricted to hypotheses in which a new piece begins."""
        pending, held = self._states[state]
        return self._state(pending, frozenset(h for h in held if self._hypotheses[h].cut))

    def in_piece(self, state: int) -> int:
        """The state restricted to hypotheses in which the piece continues."""
        pending, held = self._states[state]
        return self._state(pending, frozenset(h for h in held if not self._hypotheses[h].cut))

    def after(self, state: int, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The next state after each of ``tokens``; special tokens lead to state 0."""
        _, reading_of = self._readings_after(self._states[state][0])
        found: npt.NDArray[np.int32] = self._row(state)[reading_of[tokens]]
        return found

    def next(self, state: int, token: int) -> int:
        """The next state after ``token``."""
        _, reading_of = self._readings_after(self._states[state][0])
        return int(self._row(state)[reading_of[token]])

    # --- tokens ---------------------------------------------------------------------------------------------------

    def _readings_after(self, pending: int) -> tuple[list[_Reading], npt.NDArray[np.int32]]:
        """The readings of tokens that begin with the rest of an incomplete character, or with none; and the reading of
        each token.

        A reading is the kinds of the complete characters, and the incomplete one at the end. Readings are sorted.
        Reading 0 is not part of any text.
        """
        known = self._readings.get(pending)
        if known is None:
            read: dict[int, _Reading] = {}
            for token, data in self._late if pending else enumerate(self._tokens):
                reading = self._characters.read(data, pending)
                if reading is not None and data:
                    read[token] = reading
            readings = [_NO_READING, *sorted(set(read.values()))]
            numbers = {reading: number for number, reading in enumerate(readings)}
            reading_of = np.zeros(len(self._tokens), np.int32)
            reading_of[list(read)] = [numbers[reading] for reading in read.values()]
            known = self._readings[pending] = readings, reading_of
        return known

    def _row(self, state: int) -> npt.NDArray[np.int32]:
        """The next state after each reading."""
        known = self._rows.get(state)
        if known is not None:
            return known
        pending, held = self._states[state]
        readings, _ = self._readings_after(pending)
        row = np.zeros(len(readings), np.int32)
        path: list[_Set] = [held]
        previous = b""
        for number, (kinds, tail) in enumerate(readings[1:], 1):
            whole = kinds if tail else kinds[:-1]
            shared = 0
            while shared < min(len(whole), len(previous)) and whole[shared] == previous[shared]:
                shared += 1
            del path[shared + 1 :]
            for kind in whole[shared:]:
                path.append(self._on(path[-1], kind, False))
            previous = whole
            held = self._uncut(path[-1]) if tail else self._on(path[-1], kinds[-1], True)
            row[number] = self._state(tail, held)
        self._rows[state] = row
        return row

    # --- states ---------------------------------------------------------------------------------------------------

    def _state(self, pending: int, held: _Set) -> int:
        key = (pending, held) if held else (BETWEEN, held)
        known = self._state_numbers.get(key)
        if known is None:
            if len(self._states) >= self._budget.states:
                raise BudgetExceeded("states", self._budget.states, "the tokenizer's split pattern")
            known = self._state_numbers[key] = len(self._states)
            self._states.append(key)
        return known

    def _uncut(self, held: _Set) -> _Set:
        """The hypotheses inside of a token."""
        found = (self._hypotheses[h] for h in held)
        return frozenset(self._number(Hypothesis(h.threads, h.barred, h.coming, False)) for h in found)

    def _on(self, held: _Set, kind: int, last: bool) -> _Set:
        """The hypotheses after one more character, which may be the last of its token."""
        key = (held, kind, last)
        known = self._inner.get(key)
        if known is None:
            found = (n for h in held for n in self._step(h, kind) if last or not self._hypotheses[n].cut)
            known = self._inner[key] = frozenset(found)
        return known

    # --- hypotheses -----------------------------------------------------------------------------------------------

    def _number(self, hypothesis: Hypothesis) -> int:
        known = self._numbers.setdefault(hypothesis, len(self._hypotheses))
        if known == len(self._hypotheses):
            if known >= self._budget.states:
                raise BudgetExceeded("states", self._budget.states, "the tokenizer's split pattern")
            self._hypotheses.append(hypothesis)
        return known

    def _grouped(self, found: list[tuple[tuple[int, ...], frozenset[int], int, bool]]) -> tuple[int, ...]:
        """Hypotheses grouped by their contents, with all kinds that may come next; without those that no character
        can follow.
        """
        coming: dict[tuple[tuple[int, ...], frozenset[int], bool], int] = {}
        for threads, barred, kind, cut in found:
            if kind == 0:
                threads = ()
            elif not any(self._program[at].kinds >> kind & 1 for at in threads):
                continue
            key = threads, barred if threads else frozenset(), cut
            coming[key] = coming.get(key, 0) | 1 << kind
        return tuple(
            self._number(Hypothesis(threads, barred, kinds, cut))
            for (threads, barred, cut), kinds in coming.items()
        )

    def _step(self, number: int, kind: int) -> tuple[int, ...]:
        """The hypotheses after one more character."""
        known = self._steps.get((number, kind))
        if known is not None:
            return known
        held = self._hypotheses[number]
        found: list[tuple[tuple[int, ...], frozenset[int], int, bool]] = []
        if kind and held.coming >> kind & 1:
            on = self._program
            threads = tuple(to for at in held.threads if on[at].kinds >> kind & 1 for to in on[at].to)
            barred = tuple(to for at in sorted(held.barred) if on[at].kinds >> kind & 1 for to in on[at].to)
            for coming in range(self._kinds):
                still_barred, succeeded = self._closure(barred, coming)
                if succeeded:
                    continue
                preferred, matched = self._closure(threads, coming)
                if matched:
                    begun, _ = self._begun[coming]
                    found.append((begun, frozenset(still_barred + preferred), coming, True))
                if coming:
                    found.append((preferred, frozenset(still_barred), coming, False))
        made = self._steps[number, kind] = self._grouped(found)
        return made

    def _closure(self, places: tuple[int, ...], coming: int) -> tuple[tuple[int, ...], bool]:
        """The instructions that consume a character, in order of preference, up to the match; and whether there is one.

        ``coming``: the kind of the next character, 0 at the end of the text.
        """
        seen: set[int] = set()
        found: list[int] = []
        stack = list(reversed(places))
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            step = self._program[at]
            if step.op == "match":
                return tuple(found), True
            if step.op == "take":
                found.append(at)
            elif step.op == "fork" or not step.kinds >> coming & 1:
                stack.extend(reversed(step.to))
        return tuple(found), False
