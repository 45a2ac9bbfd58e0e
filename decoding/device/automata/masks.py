"""``DeviceMasks``: masks on a device, applied to logits; the base class of device automata and paged matchers.

Each row of a batch has a number, its *state*, an int32 in a tensor; the tables map it to its mask (``tables``).

Invariants. State 0 is DEAD, state 1 ENDED. A mask is never empty: if nothing is allowed it contains the end tokens, so
that logits of rows that are dead, ended or without remaining tokens stay finite. A chosen token is an allowed one
whatever the logits are. A number out of range counts as DEAD and is never used as an index; with ``debug=True`` it
raises.

Dispatch: tensors in host memory go to the native kernels (native/device/kernels.hpp), CUDA tensors to Triton's if it is
installed (``kernels.triton``), all others to plain torch (``kernels.plain``), which specifies the results of the other
two bit for bit. Calls that ``torch.compile`` traces become torch operators (``operators``), which do the same when the
compiled code runs; calls without an operator are traced through plain torch.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.common.arguments import refuse
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import old_attribute, renamed
from tokenfst.common.token_ids import check_width
from tokenfst.decoding.device.automata import operators
from tokenfst.decoding.device.automata.options import check_sampling
from tokenfst.decoding.device.kernels import plain
from tokenfst.decoding.device.tables.pool import Pool, Tables, Tensor, torch
from tokenfst.decoding.device.tables.tables import DEAD, ENDED, FAR, MOST_FLIPS, ground
from tokenfst.decoding.masks.bitmask import bitmask_from_ids, host_threads
from tokenfst.errors import (
    MaskBufferError,
    StateError,
    TokenLimitError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Left: TypeAlias = "torch.Tensor | int | None"
View: TypeAlias = tuple[int, int, int, int, int]

_LOGITS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
_SIZES = (4, 2, 2)
NO_LIMIT = -1


def first_row(holds: Tensor) -> int | None:
    """The first row for which ``holds``, bool (B,), is True. Synchronizes with the device."""
    rows = holds.nonzero()
    return int(rows[0]) if len(rows) else None


class DeviceMemory(NamedTuple):
    """Bytes on the device: of state records and class tables, of masks with rows, flips and limits, of token bytes."""

    automata: int
    masks: int
    vocabulary: int

    @property
    def total(self) -> int:
        """The sum of all three."""
        return sum(self)


class DeviceMasks:
    """Tables on ``device`` and the functions that need only masks. ``dense``, ``capacity``, ``debug``: see the
    subclasses.
    """

    token_limits = False
    budgets = old_attribute("budgets", "token_limits")
    _row: tuple[int, ...] = ()
    """The shape of one row's state."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        device: torch.device | str,
        capacity: int | None,
        dense: bool | None,
        debug: bool,
    ) -> None:
        self.vocabulary, self.debug = vocabulary, debug
        self.handle = operators.handle_of(self)
        """The number by which operators of torch identify this object."""
        self._pool = Pool(torch.empty(0, device=device).device, capacity)
        self._dense = self.device.type != "cpu" if dense is None else dense
        self._rows: dict[bytes, int] = {}
        self._flips = min(MOST_FLIPS, len(vocabulary.eos_token_ids))
        self._steps = 0
        self._longest = max(1, *map(len, (*vocabulary.tokens, *(vocabulary.initial_tokens or ()))))
        self._pool.append(ground(vocabulary), "the vocabulary")
        end = bitmask_from_ids(vocabulary.eos_token_ids, len(vocabulary))
        self._only_end = torch.from_numpy(end).to(self.device)
        """The mask of the end tokens alone, int32 (words,)."""

    @property
    def device(self) -> torch.device:
        """The device of the tables."""
        return self._pool.device

    @property
    def num_states(self) -> int:
        """The number of states of all automata, including DEAD and ENDED."""
        return self._pool.used["states"]

    @property
    def generation(self) -> int:
        """A counter that changes when ``add`` has moved a table: a CUDA graph must then be captured again."""
        return self._pool.generation

    @property
    def tables(self) -> Tables:
        """The tensors; see ``tables.pool.Tables``. Read-only."""
        return self._tables

    def memory(self) -> DeviceMemory:
        """Bytes on the device, including reserved room."""
        of = self._pool.memory_of
        return DeviceMemory(
            of("states", "table", "classes", "controls", "actions", "pushes", "comb", "frames"),
            of("masks", "rows", "flips", "layers"),
            of("bytes", "tokens"),
        )

    # --- states and masks ---------------------------------------------------------------------------------

    def is_dead(self, states: Tensor) -> Tensor:
        """Which rows have left the language, bool (B,)."""
        self._check_states(states)
        return self._numbers(states) == DEAD

    def is_ended(self, states: Tensor) -> Tensor:
        """Which rows have taken the end token, bool (B,)."""
        self._check_states(states)
        return self._numbers(states) == ENDED

    @renamed(budget="max_new_tokens")
    def mask_logits_(self, logits: Tensor, states: Tensor, max_new_tokens: Left = None) -> Tensor:
        """Set logits that each row's state forbids, and those beyond the vocabulary, to -inf; returns ``logits``.

        ``logits``: floating point (B, width), rows contiguous. ``states``: int32 (B,). ``max_new_tokens``: the number
        of tokens that each row may still take, counting the end token, int32 (B,) or one number; negative for no limit.
        A token is then allowed only if the text can be completed with the tokens left after it
        (``Matcher.max_tokens_left``).
        """
        self._check_states(states)
        view = self._check_logits(logits, states)
        limit = self._check_limit(max_new_tokens, states)
        if torch.compiler.is_compiling():
            operators.mask_logits_(logits, states, *operators.limits(limit), self.handle)
            return logits
        states, left = self._resting(states, limit)
        if view is not None:
            each, all_rows = _left(left)
            self._kernels.mask(states.data_ptr(), each, all_rows, *view, _threads(view))
            return logits
        if (triton := self._triton(states, logits)) is not None:
            triton.mask_logits_(self._tables, logits, states, left, self._steps)
            return logits
        return plain.mask_logits_(logits, self._allowed(states, left))

    @renamed(budget="max_new_tokens")
    def bitmask(self, states: Tensor, max_new_tokens: Left = None) -> Tensor:
        """The masks on the device as int32 (B, ceil(V / 32)): token t is bit t mod 32 of word t div 32."""
        self._check_states(states)
        limit = self._check_limit(max_new_tokens, states)
        if torch.compiler.is_compiling():
            words = self._tables.rows.shape[1]
            return operators.bitmask(states, *operators.limits(limit), self.handle, words)
        states, left = self._resting(states, limit)
        if self._is_native():
            out = torch.empty((len(states), self._tables.rows.shape[1]), dtype=torch.int32)
            self._kernels.fill(states.data_ptr(), *_left(left), out.data_ptr(), len(states))
            return out
        return plain.packed(self._allowed(states, left))

    @renamed(budget="max_new_tokens")
    def choose(
        self,
        logits: Tensor,
        states: Tensor,
        max_new_tokens: Left = None,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """An allowed token for each row, int64 (B,); ``logits`` are not changed.

        ``temperature`` 0 takes the first greatest logit. Otherwise the token is sampled from the ``top_k`` greatest
        logits, restricted to the fewest tokens whose probabilities add up to at least ``top_p``. Whatever the logits
        are, including NaN and -inf, the token is an allowed one.
        """
        check_sampling(temperature, top_k, top_p, generator, self.device)
        if temperature == 0:
            return self._greedily(logits, states, max_new_tokens)[0]
        self._check_states(states)
        self._check_logits(logits, states)
        permitted = self._allowed(*self._resting(states, self._check_limit(max_new_tokens, states)))
        return plain.sample(logits, permitted, temperature, top_k, top_p, generator)

    def _greedily(self, logits: Tensor, states: Tensor, max_new_tokens: Left) -> tuple[Tensor, Tensor]:
        """``_greedy``, as an operator during tracing."""
        if not torch.compiler.is_compiling():
            return self._greedy(logits, states, max_new_tokens)
        self.check(logits, states, max_new_tokens)
        limit = self._check_limit(max_new_tokens, states)
        found: tuple[Tensor, Tensor] = operators.greedy(logits, states, *operators.limits(limit), self.handle)
        return found

    def _greedy(self, logits: Tensor, states: Tensor, max_new_tokens: Left) -> tuple[Tensor, Tensor]:
        """The first greatest allowed logit of each row, and the next state."""
        self._check_states(states)
        view = self._check_logits(logits, states)
        states, left = self._resting(states, self._check_limit(max_new_tokens, states))
        if view is not None:
            tokens, reached = torch.empty(len(states), dtype=torch.int64), torch.empty_like(states)
            self._kernels.greedy(
                states.data_ptr(), *_left(left), *view, tokens.data_ptr(), reached.data_ptr(), _threads(view)
            )
            return tokens, reached
        if (triton := self._triton(states, logits)) is not None:
            found: tuple[Tensor, Tensor] = triton.greedy(self._tables, logits, states, left, self._steps)
            return found
        tokens = plain.greedy(logits, self._allowed(states, left))
        return tokens, plain.advance(self._tables, states, tokens, self._longest)

    # --- which implementation -----------------------------------------------------------------------------

    def _is_native(self) -> bool:
        return not torch.compiler.is_compiling() and self._pool.device.type == "cpu"

    def _triton(self, states: Tensor, logits: Tensor | None = None) -> Any:
        """The Triton kernels, for CUDA tensors that they support, if they are installed and nothing is being traced."""
        if torch.compiler.is_compiling() or not states.is_cuda or not self._dense:
            return None
        from tokenfst.decoding.device.kernels import triton as device_triton

        return device_triton if device_triton.AVAILABLE and device_triton.takes(logits) else None

    def _allowed(self, states: Tensor, left: Left) -> Tensor:
        masks = plain.mask_of(self._tables, states, left, self._steps)
        return plain.allowed(self._tables, masks, self._flips)

    # --- what a state is: a number, or a number and a stack -------------------------------------------------

    def _numbers(self, states: Tensor) -> Tensor:
        return states

    def _resting(self, states: Tensor, left: Left) -> tuple[Tensor, Left]:
        """The numbers by which masks are found, int32 (B,), and the remaining tokens for these."""
        return states, left

    def _given(self, states: Tensor, left: Left) -> tuple[Tensor, Left]:
        """The states and remaining tokens as the kernels of a whole step take them."""
        return states, left

    def _reached(self, given: Tensor, tokens: Tensor, reached: Tensor) -> Tensor:
        """States of a batch, for those that a kernel reached from ``given`` by ``tokens``."""
        return reached

    # --- checks -------------------------------------------------------------------------------------------

    @renamed(budget="max_new_tokens")
    def check(self, logits: Tensor, states: Tensor, max_new_tokens: Left = None) -> None:
        """Raise the errors of ``mask_logits_`` if these tensors are invalid."""
        self._check_states(states)
        self._check_logits(logits, states)
        self._check_limit(max_new_tokens, states)

    def _check_states(self, states: Tensor) -> None:
        self._check_tensor("states", states)
        if (
            states.dtype is not torch.int32
            or states.dim() != 1 + len(self._row)
            or (self._row and states.shape[1:] != self._row)
            or states.device != self._pool.device
        ):
            shape = "(" + ", ".join(map(str, ("batch", *self._row))) + (")" if self._row else ",)")
            raise StateError(
                f"states must be int32 {shape} on {self.device}, not {states.dtype} {tuple(states.shape)} on "
                f"{states.device}; start_states() makes them"
            )
        if not states.is_contiguous():
            raise StateError("states must be contiguous: states.contiguous()")
        if self.debug:
            numbers = self._numbers(states)
            wrong = (numbers < 0) | (numbers >= self.num_states)
            if (row := first_row(wrong)) is not None:
                raise StateError(
                    f"row {row} has state {int(numbers[row])}, and the automata have "
                    f"{counted(self.num_states, 'state')}, from 0"
                )

    def _check_tensor(self, name: str, value: object, wanted: str = "a tensor") -> None:
        if not isinstance(value, torch.Tensor):
            refuse(type(self).__name__, name, value, wanted)

    def _check_logits(self, logits: Tensor, states: Tensor) -> View | None:
        """The logits in the form that native kernels take; ``None`` if other kernels take them."""
        self._check_tensor("logits", logits)
        if logits.dim() != 2 or len(logits) != len(states) or logits.device != states.device:
            raise MaskBufferError(
                f"logits must have shape ({len(states)}, width) on {states.device}, not {tuple(logits.shape)} on "
                f"{logits.device}"
            )
        rows, width = logits.shape
        check_width(width, self._tables.tokens.shape[0])
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
        if kind is None and logits.dtype is not torch.float64:
            raise MaskBufferError(
                f"logits must be float32, float16, bfloat16 or float64, not {logits.dtype}; convert them by "
                "logits.float()"
            )
        if kind is None or not self._is_native():
            return None
        return logits.data_ptr(), kind, rows, width, stride * _SIZES[kind]

    def _check_limit(self, max_new_tokens: Left, states: Tensor) -> Left:
        if max_new_tokens is None:
            return None
        if not self.token_limits:
            raise TokenLimitError(
                "this device automaton was made with token_limits=False: make it with token_limits=True"
            )
        if isinstance(max_new_tokens, int) and not isinstance(max_new_tokens, bool):
            return min(max(max_new_tokens, NO_LIMIT), FAR)
        self._check_tensor("max_new_tokens", max_new_tokens, "an integer, a tensor or None")
        if (
            max_new_tokens.dtype is not torch.int32
            or max_new_tokens.shape != (len(states),)
            or max_new_tokens.device != states.device
        ):
            raise StateError(
                f"max_new_tokens must be a number or int32 ({len(states)},) on {states.device}, not "
                f"{max_new_tokens.dtype} {tuple(max_new_tokens.shape)} on {max_new_tokens.device}"
            )
        return max_new_tokens.contiguous()

    # --- packing ------------------------------------------------------------------------------------------

    def _place_rows(
        self, rows: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32]]:
        """The positions of rows of masks, the empty one first, with equal ones stored once; and the new rows."""
        place = np.zeros(len(rows) + 1, np.int32)
        fresh: list[npt.NDArray[np.uint32]] = []
        for number, row in enumerate(rows, 1):
            digest = blake2b(row.tobytes(), digest_size=16).digest()
            if digest not in self._rows:
                self._rows[digest] = self._pool.used["rows"] + len(fresh)
                fresh.append(row)
            place[number] = self._rows[digest]
        return place, np.array(fresh, np.uint32).reshape(len(fresh), rows.shape[1])

    def _publish(self) -> None:
        self._tables = self._pool.tables()
        if self.device.type == "cpu":
            t = self._tables
            self._kernels = _native.DeviceTables(
                [tensor.data_ptr() for tensor in t[:9]], len(t.states), len(t.tokens), t.rows.shape[1]
            )


def _left(left: Tensor | int | None) -> tuple[int, int]:
    """The remaining tokens as the native kernels take them: the address of one number a row, or one number for all."""
    if left is None:
        return 0, NO_LIMIT
    return (0, left) if isinstance(left, int) else (left.data_ptr(), NO_LIMIT)


def _threads(view: View) -> int:
    return host_threads(view[2], view[2] * view[3] * _SIZES[view[1]])
