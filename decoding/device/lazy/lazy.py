"""Lazy automata on a device: their states and masks are copied there as decoding meets them.

A ``LazyDeviceAutomaton`` needs no expansion: any JSON Schema and any grammar, deterministic or not, decodes as soon as
it is compiled. States of grammars include the stack, so a nested text meets a new state at each new depth.

A row of a batch is int32 (3,): a state number and, while the row waits for the host, its last state and a token. Tokens
walk through the class table on the device, as in ``DeviceAutomaton``. A row whose token leads to a state that is not on
the device becomes ``MISSING`` (``residents``), and keeps its last state and the token. ``settle`` walks the token again
on the host. It copies the states on the token's way, and the masks that the rows of the batch need, to the device.
Every call that needs states or masks settles its rows first: the host then waits for the device, usually only for flags
that say that nothing is missing.

Invariants. ``settle`` changes how a row is written, never what it means. A state keeps its number, so rows that were
kept for a fork or a rollback remain valid. Masks may be evicted: their states are then marked, so that a row never
uses an overwritten mask.

A mask that is not on the device is composed there, one launch for all rows, if all states that bytes lead to are on the
device. Otherwise the lazy automaton computes the mask on the host, where it may be known already, and the mask is
copied.

Cost: on the device 1,060 bytes for a state (its arcs and its record) and ceil(V / 8) for a mask; the bytes of a state
also on the host. Settling a new state takes one pass over its byte classes. Rejected: arcs by tokens (a token that is
new in a state would wait for the host even if its bytes are known); recycling the numbers of states (a kept row would
then mean another state).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenfst.common.arguments import checked, checked_but
from tokenfst.common.locks import fork_safe_lock
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import renamed
from tokenfst.decoding.device.automata import operators
from tokenfst.decoding.device.automata.automaton import DeviceAutomaton, Source
from tokenfst.decoding.device.automata.masks import Left
from tokenfst.decoding.device.kernels import plain
from tokenfst.decoding.device.kernels.compose import compose
from tokenfst.decoding.device.lazy.byte_states import ByteStates
from tokenfst.decoding.device.lazy.residents import MISSING, NUMBER, Residents
from tokenfst.decoding.device.paged.paging import Overflow
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.tables import DEAD, DISTANCE, ENDED, FAR
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArgumentValueError, ConstraintError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class Residence(NamedTuple):
    """Counters: ``states`` on the device; ``copied``, the masks that were copied there; ``composed``, the masks that
    were composed there; ``evictions`` of masks; ``waits``, the calls that found something missing.
    """

    states: int
    copied: int
    composed: int
    evictions: int
    waits: int


class LazyDeviceAutomaton(DeviceAutomaton):
    """A ``DeviceAutomaton`` whose states and masks are copied to the device when they are first needed.

    States are int32 (B, 3).

    ``automata``: lazy token automata, with or without stacks, deterministic or not. ``slots``: the initial number of
    masks on the device. ``overflow``: what happens when all slots are taken: their number grows (``"grow"``), the
    oldest masks are evicted (``"evict"``), or ``BudgetExceeded`` is raised (``"raise"``). ``capacity``: maximum bytes
    of all tables. ``ahead``: how many states of each automaton are copied when it is added, before any text.
    ``composes``: whether masks may be composed on the device (``None``: on every device except the CPU). The other
    parameters are those of ``DeviceAutomaton``.

    Raises the errors of ``ByteStates`` for automata that cannot be computed lazily, and ``BudgetExceeded`` if the masks
    of one batch do not fit into the slots. Each call settles its rows first (``settle``). Not thread-safe, except
    ``settle`` itself.
    """

    can_be_captured = False
    _has_tree_kernel = False
    _row = (3,)

    @checked_but("automata")
    def __init__(
        self,
        automata: Source | Iterable[Source],
        device: torch.device | str = "cpu",
        *,
        vocabulary: Vocabulary | None = None,
        token_limits: bool = True,
        slots: int = 256,
        overflow: Overflow = "grow",
        capacity: int | None = None,
        ahead: int = 64,
        composes: bool | None = None,
        debug: bool = False,
    ) -> None:
        if ahead < 0:
            raise ArgumentValueError(f"ahead must not be negative: {ahead}")
        self._ahead, self._composes = ahead, composes
        self._lock = fork_safe_lock()
        self._slots, self._overflow = slots, overflow
        self._begun: Residents | None = None
        self._waits = self._composed = 0
        self._published = -1
        self._early: tuple[Tensor, int, Tensor, Any] | None = None
        super().__init__(
            automata,
            device,
            vocabulary=vocabulary,
            token_limits=token_limits,
            capacity=capacity,
            debug=debug,
        )

    def __repr__(self) -> str:
        automata = counted(len(self), "automaton", "automata")
        return f"<LazyDeviceAutomaton: {automata}, {counted(self.residence.states, 'state')} so far on {self.device}>"

    @property
    def _residents(self) -> Residents:
        assert self._begun is not None  # there is an automaton
        return self._begun

    @property
    def residence(self) -> Residence:
        """The counters so far."""
        pages = self._residents.pages
        return Residence(len(self._residents), pages.copied, self._composed, pages.evictions, self._waits)

    @renamed(max_tokens="max_new_tokens")
    @checked
    def start(self, index: int = 0, max_new_tokens: int | None = None) -> int:
        """The start state of an automaton; see ``DeviceAutomaton.start``."""
        if max_new_tokens is not None and 0 <= index < len(self):
            source = self._residents.sources[index]
            self._distances[index] = source.distance(source.start)
        return super().start(index, max_new_tokens)

    @renamed(max_tokens="max_new_tokens")
    @checked
    def start_states(
        self, indices: int | Sequence[int] | Tensor, max_new_tokens: int | None = None
    ) -> Tensor:
        """Rows of start states, int32 (B, 3); see ``DeviceAutomaton.start_states``."""
        return torch.nn.functional.pad(super().start_states(indices, max_new_tokens)[:, None], (0, 2))

    # --- what is there ------------------------------------------------------------------------------------

    @renamed(budget="max_new_tokens")
    def settle(self, states: Tensor, max_new_tokens: Left = None) -> Tensor:
        """Copy what these rows need to the device, and rewrite in place those that wait for the host; returns
        ``states``.

        Raises ``BudgetExceeded``; the rows are then as they were.
        """
        self._check_states(states)
        return self._settled(states, self._check_limit(max_new_tokens, states))

    def _settled(self, states: Tensor, left: Left, *, masks: bool = True) -> Tensor:
        if torch.compiler.is_compiling():
            raise ConstraintError(
                "this call of a LazyDeviceAutomaton waits for the host, which torch.compile cannot trace: use advance, "
                "bitmask, mask_logits_, a greedy step or a DeviceSampler there"
            )
        if self._surely_settled(states, left, masks):
            return states
        numbers = self._known(states)
        lacking = numbers == MISSING
        if masks:
            needs = self._tables.states[numbers, DISTANCE]
            lacking = lacking | (needs == FAR)
            if left is not None:
                given = torch.full_like(needs, left) if isinstance(left, int) else left
                lacking = lacking | ((given > 0) & (given <= needs))
        if bool(lacking.any()):
            self._waits += 1
            rows = states.cpu().numpy().copy()
            limits = np.full(len(rows), -1, np.int32)
            if left is not None:
                limits[:] = left if isinstance(left, int) else left.cpu().numpy()
            with self._lock:
                self._brought(rows, limits if masks else None)
            states.copy_(torch.from_numpy(rows))
        return states

    def _known(self, states: Tensor) -> Tensor:
        """The numbers of rows; DEAD for those out of range."""
        numbers = states[:, NUMBER]
        return torch.where((numbers >= 0) & (numbers < len(self._tables.states)), numbers, DEAD)

    def _surely_settled(self, states: Tensor, left: Left, masks: bool) -> bool:
        """Whether the flags that ``advance`` sent to the host say that nothing is missing; waits for these only."""
        if self._early is None:
            return False
        of, version, flags, arrived = self._early
        if of is not states or states.is_inference() or version != _version(states):
            return False
        arrived.synchronize()
        missing, unmasked, limited = flags.tolist()
        return not missing and not (masks and unmasked) and not (masks and left is not None and limited)

    def _send_flags(self, states: Tensor) -> None:
        """Send to the host whether rows are missing, have no mask, or have masks for some limits only.

        The flags hold until the rows are changed in place, or masks are brought, which may evict others. In inference
        mode torch does not count changes, so nothing is sent, and settling looks at the rows.
        """
        if states.is_inference():
            return
        needs = self._tables.states[self._known(states), DISTANCE]
        flags = torch.stack([(states[:, NUMBER] == MISSING).any(), (needs == FAR).any(), (needs > 0).any()])
        sent = torch.empty(3, dtype=torch.bool, pin_memory=True)
        sent.copy_(flags, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record()
        self._early = states, _version(states), sent, arrived

    def _brought(self, rows: npt.NDArray[np.int32], limits: npt.NDArray[np.int32] | None) -> None:
        """Copy what is missing to the device, and rewrite rows. ``limits``: the tokens left of each row; ``None``: no
        masks.
        """
        self._early = None
        composes = self.device.type != "cpu" if self._composes is None else self._composes
        try:
            self._residents.bring(rows, limits, composes=composes)
        finally:
            self._write()

    def _write(self) -> None:
        """Copy what has changed to the device, and compose the masks that are composed there."""
        residents = self._residents
        residents.write()
        self._steps = residents.steps
        if self._pool.generation != self._published:
            self._publish()
        if residents.fresh:
            states, places = zip(*residents.fresh, strict=True)
            residents.fresh.clear()
            words = self._composed_words(torch.tensor(states, dtype=torch.int32, device=self.device))
            self._tables.rows.index_copy_(0, torch.tensor(places, device=self.device), words)
            self._composed += len(states)

    # --- the loop -----------------------------------------------------------------------------------------

    def advance(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The rows after one token each; see ``DeviceAutomaton.advance``. Rows that wait for the host are settled by
        the next call that needs them.
        """
        self._check_states(states)
        self._check_tokens(tokens, states)
        if torch.compiler.is_compiling():
            return operators.advance(states, tokens, self.handle)
        numbers = self._settled(states, None, masks=False)[:, NUMBER].contiguous()
        return self._reached(numbers, tokens, self._advanced(numbers, tokens))

    def _greedy(self, logits: Tensor, states: Tensor, max_new_tokens: Left) -> tuple[Tensor, Tensor]:
        tokens, reached = super()._greedy(logits, states, max_new_tokens)
        return tokens, self._reached(states[:, NUMBER], tokens, reached)

    def is_dead(self, states: Tensor) -> Tensor:
        """Which rows have left the language, bool (B,)."""
        self._check_states(states)
        return self._settled(states, None, masks=False)[:, NUMBER] == DEAD

    def is_ended(self, states: Tensor) -> Tensor:
        """Which rows have taken the end token, bool (B,)."""
        self._check_states(states)
        return self._settled(states, None, masks=False)[:, NUMBER] == ENDED

    def distance(self, states: Tensor) -> Tensor:
        """A number of tokens, not counting the end token, that suffices to complete each text, int32 (B,): that of
        ``Matcher.distance``; 2³¹ - 1 if none does. Computed on the host.
        """
        self._check_states(states)
        found = []
        for number in self._settled(states, None, masks=False)[:, NUMBER].tolist():
            key = self._residents.key(number)
            if key is None:
                found.append(0 if number == ENDED else FAR)
            else:
                found.append(min(self._residents.sources[key[0]].distance(key[1]), FAR))
        return torch.tensor(found, dtype=torch.int32, device=self.device)

    def compose(self, states: Tensor) -> Tensor:
        """The masks recomputed on the device; see ``DeviceAutomaton.compose``.

        Raises ``ConstraintError`` while some state that bytes lead to is not on the device.
        """
        self._check_states(states)
        if any(self._residents.open):
            raise ConstraintError(
                f"the device lacks {counted(sum(self._residents.open), 'state')} that bytes lead to, so masks cannot "
                "be composed there yet: use bitmask()"
            )
        return self._composed_words(self._settled(states, None, masks=False)[:, NUMBER].contiguous())

    # --- as masks.py and sampling.py ask for it -----------------------------------------------------------

    def _numbers(self, states: Tensor) -> Tensor:
        return states[:, NUMBER]

    def _field(self, states: Tensor, field: int) -> Tensor:
        self._check_states(states)
        return super()._field(self._settled(states, None, masks=False), field)

    def _resting(self, states: Tensor, left: Left) -> tuple[Tensor, Left]:
        return self._settled(states, left)[:, NUMBER].contiguous(), left

    def _given(self, states: Tensor, left: Left) -> tuple[Tensor, Left]:
        return self._resting(states, left)

    def _reached(self, numbers: Tensor, tokens: Tensor, reached: Tensor) -> Tensor:
        waits = reached == MISSING
        rows = [reached, torch.where(waits, numbers, 0), torch.where(waits, tokens, 0).int()]
        states = torch.stack(rows, 1)
        if states.is_cuda:
            self._send_flags(states)
        return states

    # --- packing ------------------------------------------------------------------------------------------

    def _composed_words(self, numbers: Tensor) -> Tensor:
        words = self._composed_by_triton(numbers)
        return plain.packed(compose(self._tables, numbers, self._trie())) if words is None else words

    def _publish(self) -> None:
        super()._publish()
        self._published = self._pool.generation

    def _add(self, automaton: TokenAutomaton) -> None:
        self._check_vocabulary(automaton)
        source = ByteStates(automaton)
        if self._begun is None:
            self._begun = Residents(
                self._pool,
                self._slots,
                self._overflow,
                token_limits=self.token_limits,
                absorbs=self.vocabulary.start_absorbs,
            )
        try:
            start = self._residents.add(source, self._ahead)
        finally:
            self._write()
        self._starts.append(start)
        self._distances.append(0)


def _version(states: Tensor) -> int:
    """How often a tensor was changed in place."""
    return int(states._version)  # noqa: SLF001  # torch documents it in its notes on in-place changes
