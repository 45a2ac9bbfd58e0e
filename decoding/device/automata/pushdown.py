"""Push-down automata on a device: deterministic grammars with stacks of bounded depth.

``PushDownDeviceAutomaton`` is a ``DeviceAutomaton`` for automata with and without stacks, in any mixture. The state of
a row is a row of int32: a state number, the stack depth, and room for ``depth`` symbols; unused ones are 0. So a state
is still a pure value: forks, beams and rollback copy and gather rows, and nothing synchronizes with the host.

Invariants. Equal configurations are equal rows. A stack that would overflow is never truncated: the row dies, with
depth -1, and ``check_stacks`` raises on the host. Masks are those of ``Matcher``, bit for bit.

A mask takes two stages: find the state whose mask the row has (``resting``: pop as many symbols as some token
inspects), then proceed as in ``masks``. Rejected: stacks as linked lists in a shared pool, so that a row is one number
again: rows would need an allocator, and copies would share memory that one of them changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tokenfst._native as _native
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, checked_but
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import renamed
from tokenfst.decoding.device.automata import operators
from tokenfst.decoding.device.automata.automaton import DeviceAutomaton, Source
from tokenfst.decoding.device.automata.masks import NO_LIMIT, Left, first_row
from tokenfst.decoding.device.kernels import plain_stacks as plain
from tokenfst.decoding.device.kernels.plain_stacks import DEPTH, OVERFLOWN, STATE, SYMBOLS
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.stacks import PackedStacks, pack_stacks
from tokenfst.decoding.device.tables.tables import DISTANCE, FAR, Packed, StackLoops
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArgumentValueError, ConstraintError, StackDepthError, StateError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class PushDownDeviceAutomaton(DeviceAutomaton):
    """A ``DeviceAutomaton`` for grammars: states are int32 (B, 2 + ``depth``).

    ``depth``: maximum number of symbols on a stack; JSON takes one for each nesting level. The other parameters are
    those of ``DeviceAutomaton``. Raises ``NondeterministicError`` for a grammar that needs more than one stack,
    ``TokenLimitError`` if token limits do not depend on the top of the stack alone (construct it with
    ``token_limits=False``).
    """

    @renamed(budgets="token_limits")
    @checked_but("automata")
    def __init__(
        self,
        automata: Source | Iterable[Source],
        device: torch.device | str = "cpu",
        *,
        depth: int = 64,
        vocabulary: Vocabulary | None = None,
        token_limits: bool = True,
        capacity: int | None = None,
        dense: bool | None = None,
        budget: Budget | None = None,
        debug: bool = False,
    ) -> None:
        if depth < 1:
            raise ArgumentValueError(f"depth must be at least 1, not {depth}")
        self.depth, self._row = depth, (SYMBOLS + depth,)
        self._loops = StackLoops(0, 0, 0)
        super().__init__(
            automata,
            device,
            vocabulary=vocabulary,
            token_limits=token_limits,
            capacity=capacity,
            dense=dense,
            budget=budget,
            debug=debug,
        )

    @renamed(max_tokens="max_new_tokens")
    @checked
    def start_states(
        self, indices: int | Sequence[int] | Tensor, max_new_tokens: int | None = None
    ) -> Tensor:
        """Rows of start states, int32 (B, 2 + depth); see ``DeviceAutomaton.start_states``."""
        return torch.nn.functional.pad(
            super().start_states(indices, max_new_tokens)[:, None], (0, 1 + self.depth)
        )

    # --- stacks -------------------------------------------------------------------------------------------

    def is_overflown(self, states: Tensor) -> Tensor:
        """Which rows died of a stack overflow, bool (B,)."""
        self._check_states(states)
        return states[:, DEPTH] == OVERFLOWN

    def check_stacks(self, states: Tensor) -> None:
        """Raise ``StackDepthError`` if a stack overflowed. Synchronizes with the device."""
        self._check_states(states)
        if (row := first_row(self.is_overflown(states))) is not None:
            raise StackDepthError(
                f"the stack of row {row} needs more than {counted(self.depth, 'symbol')}: make the device automaton "
                f"with more room, such as depth={2 * self.depth}"
            )

    def distance(self, states: Tensor) -> Tensor:
        """A number of tokens, not counting the end token, that suffices to complete each text, int32 (B,); 2³¹ - 1 if
        none does. An upper bound, the same as ``Matcher.distance``.
        """
        above = self._field(states, DISTANCE).long()
        live = plain.known(self._tables, states)
        below = plain.length(self._tables, states, torch.where(live, states[:, DEPTH], 0))
        alone = self._tables.controls[torch.where(live, states[:, STATE], 0), 2].long()
        return torch.minimum((above + below).clamp_max(FAR), alone).int()

    def advance(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The rows after one token each; see ``DeviceAutomaton.advance``. O(bytes of the token + depth) per row."""
        self._check_states(states)
        self._check_tokens(tokens, states)
        if torch.compiler.is_compiling():
            return operators.advance(states, tokens, self.handle)
        if self._is_native():
            out = torch.empty_like(states)
            self._stacks.advance(states.data_ptr(), tokens.data_ptr(), out.data_ptr(), len(states))
            return out
        if (triton := self._triton(states)) is not None:
            return triton.advance_stacks(self._tables, states, tokens)
        return plain.advance(self._tables, states, tokens, self._longest, self._loops)

    def _tree_by_triton(
        self, triton: Any, states: Tensor, parents: Tensor, tokens: Tensor, depth: int
    ) -> Tensor:
        found: Tensor = triton.advance_tree_of_stacks(self._tables, states, parents, tokens, depth)
        return found

    def compose(self, states: Tensor) -> Tensor:
        """Not supported with stacks: whether a token is allowed may depend on the whole stack."""
        raise ConstraintError("masks of push-down automata are looked up, not composed: use bitmask()")

    # --- as device_masks.py asks for it -------------------------------------------------------------------

    def _numbers(self, states: Tensor) -> Tensor:
        return states[:, STATE]

    def _resting(self, states: Tensor, left: Left) -> tuple[Tensor, Left]:
        if self._is_native():
            found = torch.empty(len(states), dtype=torch.int32)
            lengths = None if left is None else torch.empty_like(found)
            self._stacks.resting(
                states.data_ptr(), found.data_ptr(), 0 if lengths is None else lengths.data_ptr(), len(states)
            )
        elif (triton := self._triton(states)) is not None:
            found, lengths = triton.resting(self._tables, states, left is not None)
        else:
            found, below = plain.resting(self._tables, states, self._loops.asks)
            lengths = None if left is None else plain.length(self._tables, states, below)
        if left is None or lengths is None:
            return found, None
        given = torch.full_like(lengths, left) if isinstance(left, int) else left
        return found, torch.where(given < 0, NO_LIMIT, (given - lengths).clamp_min(0))

    def _greedy(self, logits: Tensor, states: Tensor, max_new_tokens: Left) -> tuple[Tensor, Tensor]:
        self.check(logits, states, max_new_tokens)
        if (triton := self._triton(states, logits)) is not None:
            left = self._check_limit(max_new_tokens, states)
            found: tuple[Tensor, Tensor] = triton.greedy(self._tables, logits, states, left, self._steps)
            return found
        tokens = super()._greedy(logits, states, max_new_tokens)[0]
        return tokens, self.advance(states, tokens)

    def _check_states(self, states: Tensor) -> None:
        super()._check_states(states)
        if self.debug:
            wrong = (states[:, DEPTH] < OVERFLOWN) | (states[:, DEPTH] > self.depth)
            if (row := first_row(wrong)) is not None:
                raise StateError(
                    f"row {row} has a stack of {counted(int(states[row, DEPTH]), 'symbol')}, and there is room for "
                    f"{self.depth:,}"
                )

    # --- packing ------------------------------------------------------------------------------------------

    def _pack(self, automaton: TokenAutomaton) -> tuple[Packed, PackedStacks | None]:
        stacks = pack_stacks(
            automaton, token_limits=self.token_limits, dense=self._dense, budget=self._budget
        )
        self._loops = StackLoops(*map(max, zip(self._loops, stacks.loops, strict=True)))
        return stacks.packed, stacks

    def _publish(self) -> None:
        super()._publish()
        if self.device.type == "cpu":
            t = self._tables
            self._stacks = _native.DeviceStacks(
                self._kernels,
                [tensor.data_ptr() for tensor in (t.controls, t.actions, t.pushes, t.comb, t.frames)],
                min(len(t.states), len(t.controls)),
                len(t.comb),
                len(t.frames),
                self.depth,
            )
