"""Device automata without stored masks: each step computes the masks of its rows on the device.

Only the class table of the byte automaton is built ahead of time, and every state in it is live. So an automaton is
resident as soon as its bytes are determinized, and its masks take no memory. In exchange, each step does a table
look-up for every byte of every token and row. On a CPU this costs a hundred times as much as a mask of the lazy engine
(docs/decisions/006-device-layout.md); it is meant for devices with thousands of threads.

Limitations: every byte must be a token of the vocabulary. Distances are not known, so token limits are not supported.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenfst.common.arguments import checked, checked_but
from tokenfst.common.renamed import renamed
from tokenfst.decoding.device.automata.automaton import DeviceAutomaton, Source
from tokenfst.decoding.device.automata.masks import Left, View
from tokenfst.decoding.device.kernels.compose import compose
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.errors import TokenLimitError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class ComposingDeviceAutomaton(DeviceAutomaton):
    """A ``DeviceAutomaton`` that computes its masks at each step. Parameters are those of ``DeviceAutomaton``, but
    ``automata`` are not expanded.

    Raises ``ConstraintError`` if some byte is not a token, ``TokenLimitError`` for token limits and distances.
    """

    masks = False

    @checked_but("automata")
    def __init__(
        self,
        automata: Source | Iterable[Source],
        device: torch.device | str = "cpu",
        *,
        vocabulary: Vocabulary | None = None,
        capacity: int | None = None,
        debug: bool = False,
    ) -> None:
        super().__init__(
            automata, device, vocabulary=vocabulary, token_limits=False, capacity=capacity, debug=debug
        )

    @renamed(budget="max_new_tokens")
    def bitmask(self, states: Tensor, max_new_tokens: Left = None) -> Tensor:
        """The masks as int32 (B, ceil(V / 32)), computed by ``compose``; see ``DeviceAutomaton.bitmask``."""
        self._check_limit(max_new_tokens, states)
        return self.compose(states)

    def distance(self, states: Tensor) -> Tensor:
        """Not supported: raises ``TokenLimitError``, because distances are not known without masks."""
        raise TokenLimitError("distances are found with masks: use DeviceAutomaton")

    @renamed(max_tokens="max_new_tokens")
    @checked
    def start(self, index: int = 0, max_new_tokens: int | None = None) -> int:
        """The start state of an automaton. Raises ``TokenLimitError`` for ``max_new_tokens``."""
        if max_new_tokens is not None:
            raise TokenLimitError("distances are found with masks: use DeviceAutomaton")
        return super().start(index)

    def _allowed(self, states: Tensor, left: Left) -> Tensor:
        words = self._composed_by_triton(states)
        if words is None:
            return compose(self._tables, states, self._trie())
        place = torch.arange(32, dtype=torch.int32, device=states.device)
        bits = (words[:, :, None] >> place) & 1
        return bits.flatten(1)[:, : len(self.vocabulary)] != 0

    def _check_logits(self, logits: Tensor, states: Tensor) -> View | None:
        """Checked for plain torch, because other kernels look masks up."""
        super()._check_logits(logits, states)
        return None

    def _triton(self, states: Tensor, logits: Tensor | None = None) -> object:
        """As in the base class, but not for masking logits."""
        return super()._triton(states) if logits is None else None
