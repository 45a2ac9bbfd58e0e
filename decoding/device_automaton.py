"""Token automata that live on a device: a decode step is *gather mask, apply, choose, advance*, with no word to the host.

``DeviceAutomaton`` holds the tables of one or more automata over one vocabulary as tensors (device_tables.py); the states of
a batch are int32 numbers in a tensor, and everything else is a pure function of tensors. A fork is a copy of a number, a
rollback an older one, beam reordering ``states[beams]``: nothing else belongs to a row.

Invariants. State 0 is DEAD, state 1 ENDED; both stay where they are. A mask never is empty: where nothing is allowed it holds
the end tokens, so that rows which are dead, ended or without tokens left stay finite. ``step`` returns an allowed token
whatever the logits are. What is out of range counts as DEAD and is never read behind a table; ``debug=True`` raises instead.

One dispatch: tensors in host memory go to the native kernels (native/device_kernels.hpp), CUDA tensors to Triton's where it
is installed (device_triton.py), all others, and calls that ``torch.compile`` traces, to plain torch (device_torch.py), which is
the specification of the other two, bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from tokenfst import _native
from tokenfst.budget import Budget
from tokenfst.decoding import device_torch as plain
from tokenfst.decoding.bitmask import host_threads
from tokenfst.decoding.device_pool import Pool, Tables, torch
from tokenfst.decoding.device_tables import (
    DEAD,
    DISTANCE,
    ENDED,
    FAR,
    FLAGS,
    MOST_FLIPS,
    Packed,
    pack,
    token_table,
)
from tokenfst.decoding.token_automaton import TokenAutomaton
from tokenfst.errors import (
    EmptyLanguageError,
    MaskBufferError,
    StateError,
    TokenBudgetError,
    TokenIdError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.vocabulary import Vocabulary

Tensor = torch.Tensor
Source = TokenAutomaton | str | PathLike[str]

_LOGITS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
_SIZES = (4, 2, 2)
NO_LIMIT = -1


class DeviceMemory(NamedTuple):
    """Bytes on the device: of state records and class tables, of masks with rows, flips and budgets, of token bytes."""

    automata: int
    masks: int
    vocabulary: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


class DeviceAutomaton:
    """Token automata as tensors on ``device``, and the masking loop over them.

    ``automata``: one or several, all over one vocabulary: ``TokenAutomaton`` (expanded here where it is not), or the path of
    an artifact, which needs ``vocabulary``. ``budgets``: make masks for every number of tokens left too, which takes a walk
    of the vocabulary for many a state; without, no call takes a budget. ``capacity``: the most bytes on the device, beyond
    which ``BudgetExceeded`` is raised and nothing added. ``dense``: masks are rows or lists, never rows with exceptions, which
    Triton's kernels need (by default off the host): more memory for less work. ``budget``: of the construction. ``debug``: check every state and
    token id, which waits for the device.

    Raises ``ConstraintError`` for a push-down automaton, ``VocabularyMismatchError`` for automata over several vocabularies,
    ``EmptyLanguageError`` where no token sequence spells any text.
    """

    def __init__(
        self,
        automata: Source | Iterable[Source],
        device: torch.device | str = "cpu",
        *,
        vocabulary: Vocabulary | None = None,
        budgets: bool = True,
        capacity: int | None = None,
        dense: bool | None = None,
        budget: Budget | None = None,
        debug: bool = False,
    ) -> None:
        sources = [automata] if isinstance(automata, TokenAutomaton | str | PathLike) else list(automata)
        if not sources:
            raise ValueError("automata is empty: give at least one token automaton")
        loaded = [_loaded(source, vocabulary) for source in sources]
        self.vocabulary = vocabulary or loaded[0].vocabulary
        self.budgets, self.debug = budgets, debug
        self._budget = budget or Budget()
        self._pool = Pool(torch.empty(0, device=device).device, capacity)
        self._dense = self.device.type != "cpu" if dense is None else dense
        self._starts: list[int] = []
        self._distances: list[int] = []
        self._rows: dict[bytes, int] = {}
        self._flips = len(self.vocabulary.eos_token_ids)
        self._steps = 0
        self._longest = max(1, *map(len, (*self.vocabulary.tokens, *(self.vocabulary.initial_tokens or ()))))
        self._add_ground()
        for automaton in loaded:
            self._add(automaton)
        self._publish()

    # --- what is resident ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many automata are resident."""
        return len(self._starts)

    def __repr__(self) -> str:
        return f"<DeviceAutomaton: {len(self)} automata, {self.num_states:,} states on {self.device}>"

    @property
    def device(self) -> torch.device:
        """Where the tables are."""
        return self._pool.device

    @property
    def num_states(self) -> int:
        """Of all automata, DEAD and ENDED included."""
        return self._pool.used["states"]

    @property
    def generation(self) -> int:
        """Changes where ``add`` has moved a table: a CUDA graph must then be captured anew."""
        return self._pool.generation

    @property
    def tables(self) -> Tables:
        """The tensors; see ``device_pool.Tables``. Read only."""
        return self._tables

    def memory(self) -> DeviceMemory:
        """Bytes on the device, room for more included."""
        of = self._pool.memory_of
        return DeviceMemory(
            of("states", "table", "classes"), of("masks", "rows", "flips", "layers"), of("bytes", "tokens")
        )

    def add(self, automaton: Source) -> int:
        """Make one more automaton resident; its index. The states of the others keep their numbers."""
        self._add(_loaded(automaton, self.vocabulary))
        self._publish()
        return len(self) - 1

    def start(self, index: int = 0, max_tokens: int | None = None) -> int:
        """The start state of an automaton. With ``max_tokens``, raises ``TokenBudgetError`` where no text is that short."""
        least = self._distances[index]
        if max_tokens is not None and least > max_tokens:
            raise TokenBudgetError(
                f"no accepted text fits into {max_tokens} tokens: the least number from here is {least}"
            )
        return self._starts[index]

    def start_states(self, indices: int | Sequence[int] | Tensor, max_tokens: int | None = None) -> Tensor:
        """Start states, int32 (B,): of the automata named by ``indices``, or of the only one for so many rows."""
        if isinstance(indices, int):
            if len(self) != 1:
                raise ValueError(f"there are {len(self)} automata: give the index of each row's")
            indices = [0] * indices
        chosen = [self.start(int(index), max_tokens) for index in indices]
        return torch.tensor(chosen, dtype=torch.int32, device=self.device)

    # --- what is known of states --------------------------------------------------------------------------

    def is_dead(self, states: Tensor) -> Tensor:
        """Which rows were led out of the language, bool (B,)."""
        return states == DEAD

    def is_ended(self, states: Tensor) -> Tensor:
        """Which rows took the end token, bool (B,)."""
        return states == ENDED

    def is_accepting(self, states: Tensor) -> Tensor:
        """Which rows' texts are in the language, bool (B,); ended ones are."""
        return (states == ENDED) | (self._field(states, FLAGS) % 2 == 1)

    def distance(self, states: Tensor) -> Tensor:
        """The least number of tokens, the end token not counted, that complete each text; 2³¹ - 1: none, int32 (B,)."""
        return self._field(states, DISTANCE)

    def _field(self, states: Tensor, field: int) -> Tensor:
        self._check_states(states)
        inside = (states >= 0) & (states < len(self._tables.states))
        return self._tables.states[torch.where(inside, states, DEAD), field]

    # --- the loop -----------------------------------------------------------------------------------------

    def mask_logits_(self, logits: Tensor, states: Tensor, budget: Tensor | int | None = None) -> Tensor:
        """Set what each row's state forbids, and what lies beyond the vocabulary, to -inf; returns ``logits``.

        ``logits``: floating point (B, width), rows contiguous. ``states``: int32 (B,). ``budget``: how many tokens each
        row may still take, the end token counted, int32 (B,) or one number; negative for no limit. A token then is
        allowed only if the text can be completed by the tokens left after it (``Matcher.max_tokens_left``).
        """
        self._check_states(states)
        view = self._check_logits(logits, states)
        left = self._check_budget(budget, states)
        if view is not None:
            each, all_rows = _left(left)
            kernels = self._kernels
            assert kernels is not None
            kernels.mask(states.data_ptr(), each, all_rows, *view, _threads(view))
            return logits
        if (triton := self._triton(states, logits)) is not None:
            triton.mask_logits_(self._tables, logits, states, left, self._steps)
            return logits
        return plain.mask_logits_(logits, self._allowed(states, left))

    def bitmask(self, states: Tensor, budget: Tensor | int | None = None) -> Tensor:
        """The masks as int32 (B, ceil(V / 32)), convention 6, on the device."""
        self._check_states(states)
        left = self._check_budget(budget, states)
        if self._is_native():
            kernels = self._kernels
            assert kernels is not None
            out = torch.empty((len(states), self._tables.rows.shape[1]), dtype=torch.int32)
            kernels.fill(states.data_ptr(), *_left(left), out.data_ptr(), len(states))
            return out
        return plain.bitmask(
            self._tables, plain.mask_of(self._tables, states, left, self._steps), self._flips
        )

    def advance(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The states behind one token each, int32 (B,); ``tokens``: int64 (B,). DEAD for a token that is not allowed,
        ENDED for an end token where the text is complete. O(bytes of the token) a row."""
        self._check_states(states)
        self._check_tokens(tokens, states)
        if self._is_native():
            kernels = self._kernels
            assert kernels is not None
            out = torch.empty_like(states)
            kernels.advance(states.data_ptr(), tokens.data_ptr(), out.data_ptr(), len(states))
            return out
        if (triton := self._triton(states)) is not None:
            return triton.advance(self._tables, states, tokens)
        return plain.advance(self._tables, states, tokens, self._longest)

    def step(
        self,
        logits: Tensor,
        states: Tensor,
        budget: Tensor | int | None = None,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Choose an allowed token for each row and advance by it: ``(tokens, states)``, int64 and int32 (B,).

        ``temperature`` 0 takes the first greatest logit; otherwise tokens are drawn, from the ``top_k`` greatest logits and
        the fewest tokens that together have probability ``top_p``. ``logits`` are not changed. Whatever they hold, NaN and
        -inf included, the token is an allowed one. The caller counts ``budget`` down by one a step.
        """
        if temperature < 0 or (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
            raise ValueError(
                f"temperature must not be negative, top_k at least 1, top_p in (0, 1]: {temperature}, {top_k}, {top_p}"
            )
        self._check_states(states)
        view = self._check_logits(logits, states)
        left = self._check_budget(budget, states)
        if temperature > 0:
            permitted = self._allowed(states, left)
            tokens = plain.sample(logits, permitted, temperature, top_k, top_p, generator)
            return tokens, self.advance(states, tokens)
        if view is not None:
            kernels = self._kernels
            assert kernels is not None
            tokens, reached = torch.empty(len(states), dtype=torch.int64), torch.empty_like(states)
            kernels.greedy(
                states.data_ptr(), *_left(left), *view, tokens.data_ptr(), reached.data_ptr(), _threads(view)
            )
            return tokens, reached
        if (triton := self._triton(states, logits)) is not None:
            return triton.greedy(self._tables, logits, states, left, self._steps)
        tokens = plain.greedy(logits, self._allowed(states, left))
        return tokens, plain.advance(self._tables, states, tokens, self._longest)

    # --- which implementation -----------------------------------------------------------------------------

    def _is_native(self) -> bool:
        return not torch.compiler.is_compiling() and self._kernels is not None

    def _triton(self, states: Tensor, logits: Tensor | None = None) -> Any:
        """The Triton kernels, for CUDA tensors that they know where they are installed and nothing is being traced."""
        if torch.compiler.is_compiling() or not states.is_cuda or not self._dense:
            return None
        from tokenfst.decoding import device_triton

        return device_triton if device_triton.AVAILABLE and device_triton.takes(logits) else None

    def _allowed(self, states: Tensor, left: Tensor | int | None) -> Tensor:
        masks = plain.mask_of(self._tables, states, left, self._steps)
        return plain.allowed(self._tables, masks, self._flips)

    # --- checks -------------------------------------------------------------------------------------------

    def _check_states(self, states: Tensor) -> None:
        if states.dtype is not torch.int32 or states.dim() != 1 or states.device != self._pool.device:
            raise StateError(
                f"states must be int32 (batch,) on {self.device}, not {states.dtype} {tuple(states.shape)} on "
                f"{states.device}; start_states() makes them"
            )
        if not states.is_contiguous():
            raise StateError("states must be contiguous: states.contiguous()")
        if self.debug:
            wrong = (states < 0) | (states >= self.num_states)
            if bool(wrong.any()):
                row = int(wrong.nonzero()[0])
                raise StateError(
                    f"row {row} has state {int(states[row])}, and there are {self.num_states:,} states"
                )

    def _check_tokens(self, tokens: Tensor, states: Tensor) -> None:
        if tokens.dtype is not torch.int64 or tokens.shape != states.shape or tokens.device != states.device:
            raise TokenIdError(
                f"tokens must be int64 {tuple(states.shape)} on {states.device}, not {tokens.dtype} "
                f"{tuple(tokens.shape)} on {tokens.device}"
            )
        if not tokens.is_contiguous():
            raise TokenIdError("tokens must be contiguous: tokens.contiguous()")
        if self.debug:
            wrong = (tokens < 0) | (tokens >= len(self.vocabulary))
            if bool(wrong.any()):
                row = int(wrong.nonzero()[0])
                raise TokenIdError(
                    f"token id {int(tokens[row])} of row {row} lies outside the vocabulary of "
                    f"{len(self.vocabulary)} tokens"
                )

    def _check_logits(self, logits: Tensor, states: Tensor) -> tuple[int, int, int, int, int] | None:
        """The logits as the native kernels see them; ``None`` where others take them."""
        if logits.dim() != 2 or len(logits) != len(states) or logits.device != states.device:
            raise MaskBufferError(
                f"logits must have shape ({len(states)}, width) on {states.device}, not {tuple(logits.shape)} on "
                f"{logits.device}"
            )
        rows, width = logits.shape
        if width < self._tables.tokens.shape[0]:
            raise VocabularyMismatchError(
                f"the model scores {width} tokens and the vocabulary has {len(self.vocabulary)}: use the vocabulary of "
                "the model's own tokenizer"
            )
        stride, step = logits.stride()
        if step != 1 and width > 1:
            raise MaskBufferError(
                "the rows of the logits must be contiguous in memory; .contiguous() makes them so"
            )
        if rows > 1 and stride < width:
            raise MaskBufferError(
                "the rows of the logits overlap in memory (an expanded view?); make them their own copy"
            )
        kind = _LOGITS.get(logits.dtype)
        if kind is None and not logits.dtype.is_floating_point:
            raise MaskBufferError(
                f"logits must be floating point, not {logits.dtype}; convert them by logits.float()"
            )
        if kind is None or not self._is_native():
            return None
        return logits.data_ptr(), kind, rows, width, stride * _SIZES[kind]

    def _check_budget(self, budget: Tensor | int | None, states: Tensor) -> Tensor | int | None:
        if budget is None:
            return None
        if not self.budgets:
            raise TokenBudgetError(
                "this device automaton was made with budgets=False: make it with budgets=True"
            )
        if isinstance(budget, int):
            return min(max(budget, NO_LIMIT), FAR)
        if budget.dtype is not torch.int32 or budget.shape != states.shape or budget.device != states.device:
            raise StateError(
                f"budget must be a number or int32 {tuple(states.shape)} on {states.device}, not {budget.dtype} "
                f"{tuple(budget.shape)} on {budget.device}"
            )
        return budget.contiguous()

    # --- packing ------------------------------------------------------------------------------------------

    def _add_ground(self) -> None:
        """DEAD, ENDED, the mask of the end tokens, the empty row, and the tokens."""
        text, tokens = token_table(self.vocabulary)
        ends = np.array(self.vocabulary.eos_token_ids, np.int32)
        ground = np.zeros((2, 8), np.int32)
        ground[:, DISTANCE] = FAR, 0
        self._pool.append(
            {
                "states": ground,
                "table": np.zeros(257, np.int32),
                "classes": np.zeros(256, np.uint8),
                "bytes": text if len(text) else np.zeros(1, np.uint8),
                "tokens": tokens,
                "masks": np.array([[0, 0, len(ends), len(ends)]], np.int32),
                "rows": np.zeros((1, -(-len(self.vocabulary) // 32)), np.uint32),
                "flips": ends,
                "layers": np.zeros((1, 2), np.int32),
            },
            "the vocabulary",
        )

    def _add(self, automaton: TokenAutomaton) -> None:
        if automaton.vocabulary.fingerprint != self.vocabulary.fingerprint:
            raise VocabularyMismatchError(
                "automata that are resident together must be compiled for one vocabulary; found "
                f"{self.vocabulary.fingerprint[:12]} and {automaton.vocabulary.fingerprint[:12]}"
            )
        packed = pack(automaton, budgets=self.budgets, dense=self._dense, budget=self._budget)
        if packed.start == DEAD:
            raise EmptyLanguageError("no token sequence of this vocabulary spells any string of the language")
        known, fresh = dict(self._rows), self._place_rows(packed)
        used = self._pool.used
        placed = packed.placed(
            used["states"],
            used["table"],
            used["classes"],
            used["masks"],
            used["flips"],
            used["layers"],
            fresh[0],
        )
        parts = {
            "states": placed.states,
            "table": placed.table,
            "classes": placed.classes,
            "masks": placed.masks,
            "rows": fresh[1],
            "flips": placed.flips,
            "layers": placed.layers,
        }
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

    def _place_rows(self, packed: Packed) -> tuple[Any, Any]:
        """Where the rows of masks go: equal ones are kept once, of whichever automaton. And those that are new."""
        place = np.zeros(len(packed.rows) + 1, np.int32)
        fresh = []
        for number, row in enumerate(packed.rows, 1):
            digest = blake2b(row.tobytes(), digest_size=16).digest()
            if digest not in self._rows:
                self._rows[digest] = self._pool.used["rows"] + len(fresh)
                fresh.append(row)
            place[number] = self._rows[digest]
        return place, np.array(fresh, np.uint32).reshape(len(fresh), packed.rows.shape[1])

    def _publish(self) -> None:
        self._tables = self._pool.tables()
        self._kernels: _native.DeviceTables | None = None
        if self.device.type == "cpu":
            addresses = [tensor.data_ptr() for tensor in self._tables]
            self._kernels = _native.DeviceTables(
                *addresses, len(self._tables.states), len(self._tables.tokens), self._tables.rows.shape[1]
            )


def _loaded(source: Source, vocabulary: Vocabulary | None) -> TokenAutomaton:
    if isinstance(source, TokenAutomaton):
        return source
    if isinstance(source, str | os.PathLike):
        if vocabulary is None:
            raise ValueError(
                "the path of an artifact needs the vocabulary that it was made for: vocabulary=..."
            )
        return TokenAutomaton.load(source, vocabulary)
    raise TypeError(
        f"a device automaton is made of token automata or artifacts, not of {type(source).__name__}"
    )


def _left(left: Tensor | int | None) -> tuple[int, int]:
    """Tokens left as the native kernels take them: the address of one number a row, or one for all."""
    if left is None:
        return 0, NO_LIMIT
    return (0, left) if isinstance(left, int) else (left.data_ptr(), NO_LIMIT)


def _threads(view: tuple[int, int, int, int, int]) -> int:
    return host_threads(view[2], view[2] * view[3] * _SIZES[view[1]])
