"""Token automata on a device: a decoding step is *gather mask, apply, choose, advance*, without host synchronization.

``DeviceAutomaton`` holds the tables of one or more automata over one vocabulary as tensors (``tables``). The states of
a batch are int32 numbers in a tensor, and every operation is a pure function of tensors. A fork copies a state number,
a rollback restores an older one, and beam reordering is ``states[beams]``: a row has no other data. DEAD and ENDED are
absorbing. Masks and the dispatch to kernels are in ``masks``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, TypeAlias

from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, checked_but, whole
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import renamed
from tokenfst.decoding.device.automata import operators
from tokenfst.decoding.device.automata.masks import DeviceMasks, Left, first_row
from tokenfst.decoding.device.automata.options import check_sampling
from tokenfst.decoding.device.kernels import plain
from tokenfst.decoding.device.kernels.compose import Levels, compose
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.stacks import PackedStacks
from tokenfst.decoding.device.tables.tables import DEAD, DISTANCE, FLAGS, MOST_FLIPS, Packed, pack
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    EmptyLanguageError,
    StateError,
    TokenIdError,
    TokenLimitError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Source: TypeAlias = TokenAutomaton | str | PathLike[str]
_MOST_ROWS = 1 << 24
"""Maximum number of rows in a batch."""


class DeviceAutomaton(DeviceMasks):
    """Token automata as tensors on ``device``, and the masking loop over them.

    ``automata``: one or several, all over one vocabulary: a ``TokenAutomaton`` (expanded here if necessary), or the
    path of an artifact, which needs ``vocabulary``. ``token_limits``: also build masks for every number of remaining
    tokens, which needs a walk of the vocabulary for many states; without them, a call with ``max_new_tokens`` raises
    ``TokenLimitError``. ``capacity``: maximum number of bytes on the device; beyond it ``BudgetExceeded`` is raised and
    nothing is added. ``dense``: store masks as rows or lists, never as rows with exceptions. Triton's kernels need
    this; it trades memory for speed (``None``: on every device except the CPU). ``budget``: bounds the construction.
    ``debug``: check every state and token id, which synchronizes with the device.

    Raises ``ConstraintError`` for a push-down automaton, ``VocabularyMismatchError`` for automata over several
    vocabularies, ``EmptyLanguageError`` if no token sequence spells any text.
    """

    masks = True
    can_be_captured = True
    """Whether a step never waits for the host, so that CUDA graphs can capture it."""
    _has_tree_kernel = True

    @renamed(budgets="token_limits")
    @checked_but("automata")
    def __init__(
        self,
        automata: Source | Iterable[Source],
        device: torch.device | str = "cpu",
        *,
        vocabulary: Vocabulary | None = None,
        token_limits: bool = True,
        capacity: int | None = None,
        dense: bool | None = None,
        budget: Budget | None = None,
        debug: bool = False,
    ) -> None:
        sources = [automata] if isinstance(automata, TokenAutomaton | str | PathLike) else list(automata)
        if not sources:
            raise ArgumentValueError("automata is empty: give at least one token automaton")
        loaded = [_loaded(source, vocabulary) for source in sources]
        super().__init__(vocabulary or loaded[0].vocabulary, device, capacity, dense, debug)
        self.token_limits = token_limits
        self._budget = budget or Budget()
        self._starts: list[int] = []
        self._distances: list[int] = []
        self._levels: Levels | None = None
        for automaton in loaded:
            self._add(automaton)
        self._publish()

    # --- what is resident ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many automata are resident."""
        return len(self._starts)

    def __repr__(self) -> str:
        automata = counted(len(self), "automaton", "automata")
        return f"<DeviceAutomaton: {automata}, {counted(self.num_states, 'state')} on {self.device}>"

    @checked
    def add(self, automaton: Source) -> int:
        """Make one more automaton resident and return its index. The states of the others keep their numbers.

        Raises the errors of the constructor.
        """
        self._add(_loaded(automaton, self.vocabulary))
        self._publish()
        return len(self) - 1

    @renamed(max_tokens="max_new_tokens")
    @checked
    def start(self, index: int = 0, max_new_tokens: int | None = None) -> int:
        """The start state of the automaton with this index.

        Raises ``StateError`` if there is none, and with ``max_new_tokens`` ``TokenLimitError`` if no text is that
        short.
        """
        if not 0 <= index < len(self):
            raise StateError(
                f"index is {index}, and there {'is' if len(self) == 1 else 'are'} "
                f"{counted(len(self), 'automaton', 'automata')}, numbered from 0"
            )
        least = self._distances[index]
        if max_new_tokens is not None and least > max_new_tokens:
            raise TokenLimitError(
                f"no accepted text fits into {counted(max_new_tokens, 'token')}: the least number from here is {least}"
            )
        return self._starts[index]

    @renamed(max_tokens="max_new_tokens")
    @checked
    def start_states(
        self, indices: int | Sequence[int] | Tensor, max_new_tokens: int | None = None
    ) -> Tensor:
        """Start states, int32 (B,): one for each automaton index in ``indices``; or, for an integer, that many rows of
        the only automaton.
        """
        if isinstance(indices, int):
            if len(self) != 1:
                raise ArgumentValueError(f"there are {len(self)} automata: give the index of each row's")
            indices = [0] * whole("DeviceAutomaton.start_states", "indices", indices, 0, _MOST_ROWS)
        chosen = [self.start(int(index), max_new_tokens) for index in indices]
        return torch.tensor(chosen, dtype=torch.int32, device=self.device)

    # --- states -------------------------------------------------------------------------------------------

    def is_accepting(self, states: Tensor) -> Tensor:
        """Whether the text of each row is in the language, bool (B,); True for ended rows."""
        return self.is_ended(states) | (self._field(states, FLAGS) % 2 == 1)

    def distance(self, states: Tensor) -> Tensor:
        """The least number of tokens, not counting the end token, that complete each text; 2³¹ - 1 if none do. int32
        (B,).
        """
        return self._field(states, DISTANCE)

    def _field(self, states: Tensor, field: int) -> Tensor:
        self._check_states(states)
        numbers = self._numbers(states)
        inside = (numbers >= 0) & (numbers < len(self._tables.states))
        return self._tables.states[torch.where(inside, numbers, DEAD), field]

    def check_stacks(self, states: Tensor) -> None:
        """Does nothing: finite automata have no stacks that could overflow (see ``PushDownDeviceAutomaton``)."""

    def advance(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The next states, int32 (B,), after one token for each row; ``tokens``: int64 (B,).

        DEAD for a token that is not allowed, ENDED for an end token where the text is complete. O(bytes of the token)
        per row.
        """
        self._check_states(states)
        self._check_tokens(tokens, states)
        if torch.compiler.is_compiling():
            return operators.advance(states, tokens, self.handle)
        return self._advanced(states, tokens)

    def _advanced(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The states, int32 (B,), after tokens that were checked."""
        if self._is_native():
            out = torch.empty_like(states)
            self._kernels.advance(states.data_ptr(), tokens.data_ptr(), out.data_ptr(), len(states))
            return out
        if (triton := self._triton(states)) is not None:
            return triton.advance(self._tables, states, tokens)
        return plain.advance(self._tables, states, tokens, self._longest)

    def compose(self, states: Tensor) -> Tensor:
        """The result of ``bitmask`` without a limit of tokens, recomputed without stored masks: the whole vocabulary
        runs through the class table from each state. O(nodes of the vocabulary's trie) per row.
        """
        self._check_states(states)
        words = self._composed_by_triton(states)
        return plain.packed(compose(self._tables, states, self._trie())) if words is None else words

    def _composed_by_triton(self, states: Tensor) -> Tensor | None:
        triton = self._triton(states)
        return None if triton is None else triton.compose(self._tables, states, self._only_end)

    def _trie(self) -> Levels:
        if self._levels is None:
            self._levels = Levels.of(self.vocabulary, self.device)
        return self._levels

    def advance_tree(self, states: Tensor, parents: Tensor, tokens: Tensor, depth: int) -> Tensor:
        """The states after each node of a tree of draft tokens, int32 (nodes,), for speculative decoding.

        ``parents``: int64 (nodes,), the parent of each node; a negative number -1 - r means row r of ``states``.
        ``tokens``: int64 (nodes,). ``depth``: depth of the deepest node; the first tokens have depth 1. DEAD after a
        token that is not allowed. O(nodes * depth).
        """
        self._check_states(states)
        self._check_tensor("parents", parents)
        self._check_tensor("tokens", tokens)
        depth = whole(f"{type(self).__name__}.advance_tree", "depth", depth, 1)
        if (
            parents.dtype is not torch.int64
            or parents.shape != tokens.shape
            or parents.device != states.device
        ):
            raise StateError(
                f"parents must be int64 {tuple(tokens.shape)} on {states.device}, not {parents.dtype} "
                f"{tuple(parents.shape)} on {parents.device}"
            )
        if self._is_native() and ((parents < -len(states)) | (parents >= len(parents))).any():
            raise StateError(
                f"parents must name rows, from -1 to -{len(states)}, or nodes before: {parents.tolist()}"
            )
        if (triton := self._triton(states)) is not None and self._has_tree_kernel:
            return self._tree_by_triton(triton, states, parents, tokens, depth)
        roots = states[torch.where(parents < 0, -1 - parents, 0)]
        first, above = (parents < 0).view(-1, *(1 for _ in self._row)), parents.clamp_min(0)
        reached = self.advance(torch.where(first, roots, DEAD), tokens)
        for _ in range(depth - 1):
            reached = self.advance(torch.where(first, roots, reached[above]), tokens)
        return reached

    def _tree_by_triton(
        self, triton: Any, states: Tensor, parents: Tensor, tokens: Tensor, depth: int
    ) -> Tensor:
        found: Tensor = triton.advance_tree(self._tables, states, parents, tokens, depth)
        return found

    @renamed(budget="max_new_tokens")
    def step(
        self,
        logits: Tensor,
        states: Tensor,
        max_new_tokens: Left = None,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """``choose`` an allowed token for each row and advance by it: ``(tokens, states)``, int64 and int32 (B,).

        Options are those of ``choose``; the default is greedy. The caller decrements ``max_new_tokens`` by one after
        each step.
        """
        check_sampling(temperature, top_k, top_p, generator, self.device)
        if temperature == 0:
            return self._greedily(logits, states, max_new_tokens)
        tokens = self.choose(
            logits,
            states,
            max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            generator=generator,
        )
        return tokens, self.advance(states, tokens)

    def _check_tokens(self, tokens: Tensor, states: Tensor) -> None:
        self._check_tensor("tokens", tokens)
        if (
            tokens.dtype is not torch.int64
            or tokens.shape != (states.shape[:1] if self._row else states.shape)
            or tokens.device != states.device
        ):
            raise TokenIdError(
                f"tokens must be int64 ({len(states)},) on {states.device}, not {tokens.dtype} "
                f"{tuple(tokens.shape)} on {tokens.device}"
            )
        if not tokens.is_contiguous():
            raise TokenIdError("tokens must be contiguous: tokens.contiguous()")
        if self.debug:
            wrong = (tokens < 0) | (tokens >= len(self.vocabulary))
            if (row := first_row(wrong)) is not None:
                raise TokenIdError(
                    f"token id {int(tokens[row])} of row {row} lies outside the vocabulary of "
                    f"{counted(len(self.vocabulary), 'token')}"
                )

    def _check_vocabulary(self, automaton: TokenAutomaton) -> None:
        if automaton.vocabulary.fingerprint != self.vocabulary.fingerprint:
            raise VocabularyMismatchError(
                "automata that are resident together must be compiled for one vocabulary; found "
                f"{self.vocabulary.fingerprint[:12]} and {automaton.vocabulary.fingerprint[:12]}"
            )

    def _add(self, automaton: TokenAutomaton) -> None:
        self._check_vocabulary(automaton)
        packed, stacks = self._pack(automaton)
        if packed.start == DEAD:
            raise EmptyLanguageError("no token sequence of this vocabulary spells any string of the language")
        known = dict(self._rows)
        place, fresh = self._place_rows(packed.rows)
        used = self._pool.used
        placed = packed.placed(
            used["states"],
            used["table"],
            used["classes"],
            used["masks"],
            used["flips"],
            used["layers"],
            place,
        )
        parts: dict[str, Any] = {
            "states": placed.states,
            "table": placed.table,
            "classes": placed.classes,
            "masks": placed.masks,
            "rows": fresh,
            "flips": placed.flips,
            "layers": placed.layers,
        }
        if stacks is not None:
            parts |= stacks.placed(used, placed.table)
        try:
            self._pool.append(parts, automaton.source)
        except BaseException:
            self._rows = known
            raise
        self._starts.append(placed.start)
        distance = int(packed.states[packed.start - 2, DISTANCE])
        self._distances.append(distance)
        lists = packed.masks[:, 2] - packed.masks[:, 1]
        self._flips = max(self._flips, min(MOST_FLIPS, int(lists.max(initial=0))))
        layers = packed.states[:, 4] - packed.states[:, 3]
        self._steps = max(self._steps, int(layers.max(initial=0)).bit_length())

    def _pack(self, automaton: TokenAutomaton) -> tuple[Packed, PackedStacks | None]:
        """Its tables, with its own numbers."""
        packed = pack(
            automaton,
            masks=self.masks,
            token_limits=self.token_limits,
            dense=self._dense,
            budget=self._budget,
        )
        return packed, None


def _loaded(source: Source, vocabulary: Vocabulary | None) -> TokenAutomaton:
    if isinstance(source, TokenAutomaton):
        return source
    if isinstance(source, str | os.PathLike):
        if vocabulary is None:
            raise ArgumentValueError(
                "the path of an artifact needs the vocabulary that it was made for: vocabulary=..."
            )
        return TokenAutomaton.load(source, vocabulary)
    raise ArgumentTypeError(
        f"a device automaton is made of token automata or artifacts, not of {type(source).__name__}"
    )
