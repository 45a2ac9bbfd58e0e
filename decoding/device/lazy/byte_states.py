"""``ByteStates``: the states of a lazy automaton that bytes lead to, numbered as they are met, on the host.

``LazyDeviceAutomaton`` asks here for what it copies to the device: the arcs of a state, whether it accepts, and the
tokens that it allows. Nothing is expanded: the states are those of a ``ByteWalk``, which computes them on demand, and
a mask is computed by the lazy token automaton itself.

``ByteWalk`` and the token automaton number their configurations differently. So each byte state is mapped to a
configuration of the token automaton: the one that its bytes lead to if each byte is read as one token. Therefore every
byte must be a token. Then every state also leads to acceptance, because single bytes complete any text that bytes can
complete.

``START`` is the state before the first token, if tokens have other forms there; otherwise the start is state 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.decoding.masks.bitmask import bitmask_from_ids
from tokenfst.errors import ConstraintError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton

START = -1
"""The state before the first token of a text, where tokens have their initial forms."""
Words = npt.NDArray[np.int32]


class ByteStates:
    """The byte states of ``automaton`` that were met so far. ``start``: the start state. Not thread-safe.

    Raises ``ConstraintError`` for an automaton that was loaded with finished tables, constrains special tokens or has
    strings that must differ, and if not every byte is a token; ``EmptyLanguageError`` if no token sequence spells a
    text. Later calls raise ``BudgetExceeded`` by the automaton's own budget.
    """

    def __init__(self, automaton: TokenAutomaton) -> None:
        program, self._vocabulary = automaton.program, automaton.vocabulary
        name = automaton.source
        if program is None:
            raise ConstraintError(
                f"{name} has finished tables, and states are met one by one only in a lazy automaton: use "
                "DeviceAutomaton or PushDownDeviceAutomaton"
            )
        if program.is_token_level or automaton.native.is_token_level:
            raise ConstraintError(f"{name} constrains tokens, not only bytes: use DeviceMatchers")
        if automaton.native.has_marks:
            raise ConstraintError(
                f"{name} has strings that must differ from each other (names of a JSON object, unique items), which "
                'device tables do not remember: use DeviceMatchers, or json_schema(..., repeated_names="allow")'
            )
        if not self._vocabulary.native.complete:
            raise ConstraintError(
                f"states of {name} cannot be met on a device: not every byte is a token of the vocabulary, so a text "
                "of bytes may not be one of tokens. Use DeviceAutomaton"
            )
        budget = automaton.budget
        self._configurations = _native.Configurations(automaton.native)
        self._bytes = _native.ByteAutomaton(program.native(), budget.states, budget.bytes, budget.seconds)
        self._walk = _native.ByteWalk(self._bytes)
        self._inside, self._first, self._silent = _tokens_of_bytes(self._vocabulary)
        self.start = 0 if self._vocabulary.initial_tokens is None else START
        self._of: dict[int, int] = {self.start: 0}
        self._before: dict[int, tuple[int, int]] = {}
        self._ends = bitmask_from_ids(self._vocabulary.eos_token_ids, len(self._vocabulary))
        is_silent = self._silent >= 0 and not self._vocabulary.start_absorbs
        if self.start == START and len(self._first) < 256 and not is_silent:
            raise ConstraintError(
                f"states of {name} cannot be met on a device: not every byte is a token at the start of a text. Use "
                "DeviceAutomaton"
            )

    def arcs(self, state: int) -> list[tuple[int, bytes]]:
        """The arcs of a state: each target state with the bytes that lead to it."""
        found = self._walk.arcs(max(state, 0))
        for target, letters in found:
            if target not in self._of and target not in self._before:
                self._before[target] = state, letters[0]
        return found

    def step(self, state: int, byte: int) -> int | None:
        """The state that a byte leads to, after ``arcs`` of this state; ``None`` if there is none."""
        found = self._walk.advance(max(state, 0), byte)
        return None if found < 0 else found

    def accepting(self, state: int) -> bool:
        """Whether the text so far is complete."""
        return self._walk.accepting(max(state, 0))

    def mask(self, state: int) -> Words:
        """The tokens that a state allows, int32 (ceil(V / 32),)."""
        found = self._configurations.mask(self._configuration(state), None)
        assert found is not None  # bounds decide it if there is no limit
        return found

    def enough(self, state: int, left: int) -> int | None:
        """The least number of tokens left, from 1 to ``left``, under which all allowed tokens remain allowed.

        ``None`` if ``left`` itself is not enough. O(log(left)) masks.
        """
        at = self._configuration(state)
        if self._configurations.mask(at, left) is None:
            return None
        low, high = 1, left
        while low < high:
            middle = (low + high) // 2
            if self._configurations.mask(at, middle) is None:
                low = middle + 1
            else:
                high = middle
        return low

    def layers(self, state: int) -> list[tuple[int, Words]]:
        """The masks of a state by the number of tokens left, as pairs of a distance and a mask, int32 (words,).

        Distances ascend. The mask that holds is the last one whose distance is less than the number of tokens left.
        O(walk of the vocabulary).
        """
        at = self._configuration(state)
        targets, offsets, tokens = self._configurations.arcs(at)
        distances = [self._configurations.distance(target) for target in targets.tolist()]
        mask = self._ends.copy() if self.accepting(state) else np.zeros_like(self._ends)
        found = [(0, mask)] if self.accepting(state) else []
        for distance in sorted(set(distances)):
            for place in np.flatnonzero(np.array(distances) == distance).tolist():
                ids = tokens[offsets[place] : offsets[place + 1]]
                mask = mask | bitmask_from_ids(ids, len(self._vocabulary))
            if found and found[-1][0] == distance:
                found.pop()
            found.append((distance, mask))
        return found

    def distance(self, state: int) -> int:
        """The number of tokens that complete the text, without the end token; an upper bound if there are stacks."""
        return self._configurations.distance(self._configuration(state))

    @property
    def has_silent(self) -> bool:
        """Whether some token has no bytes at the start of a text, but has bytes inside."""
        return self._silent >= 0

    def after(self, state: int, token: int) -> bytes:
        """The bytes of a token at a state."""
        initial = self._vocabulary.initial_tokens
        return self._vocabulary.tokens[token] if state != START or initial is None else initial[token]

    def _configuration(self, state: int) -> int:
        """The token automaton's configuration of a byte state."""
        path, at = [], state
        while at not in self._of:
            path.append(at)
            at = self._before.get(at, (START, -1))[0]
        for one in reversed(path):
            before, byte = self._before.get(one, (START, -1))
            tokens = self._tokens(before, byte)
            at = self._of[before]
            for token in tokens:
                at = self._configurations.advance(at, token)
            self._of[one] = at
        return self._of[state]

    def _tokens(self, state: int, byte: int) -> tuple[int, ...]:
        """Tokens that spell one byte at a state; -1: no byte, from ``START`` to 0."""
        if state != START:
            return (self._inside[byte],)
        if byte < 0:
            return (self._silent,)
        return (self._first[byte],) if byte in self._first else (self._silent, self._inside[byte])


def _tokens_of_bytes(vocabulary: Vocabulary) -> tuple[dict[int, int], dict[int, int], int]:
    """The tokens of single bytes, inside and at the start of a text, and one without bytes only there, or -1."""
    inside = {text[0]: token for token, text in enumerate(vocabulary.tokens) if len(text) == 1}
    initial = vocabulary.initial_tokens
    if initial is None:
        return inside, inside, -1
    first = {text[0]: token for token, text in enumerate(initial) if len(text) == 1}
    silent = (token for token, text in enumerate(initial) if not text and vocabulary.tokens[token])
    return inside, first, next(silent, -1)
