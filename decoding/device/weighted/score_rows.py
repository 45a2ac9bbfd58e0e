"""``ScoreRows``: adding rows of scores to logits on a device; the base class of ``DeviceScores`` and
``DeviceScoreMatchers``.

Each row of a batch has a number, its *state*, an int32 in a tensor, which says whose scores are added. Results equal
``ScoreMatcher.scores_into`` on torch tensors, except that NaN in logits is not detected. A number out of range counts
as DEAD, which takes end tokens only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec
from typing import Any

import numpy as np

from tokenfst.common.arguments import checked, refuse
from tokenfst.common.token_ids import check_width
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.errors import ArgumentValueError, MaskBufferError, StateError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class ScoreRows(ABC):
    """Rows of scores of the tokens of ``vocabulary``, on ``device``."""

    vocabulary: Vocabulary
    device: torch.device

    @checked
    def scores(self, states: Tensor) -> Tensor:
        """The score of each token, -inf where it is forbidden: float32 (B, V)."""
        self._check_states(states)
        found = torch.zeros((len(states), len(self.vocabulary)), device=self.device)
        return self.scores_into(found, states)

    @checked
    def scores_into(self, logits: Tensor, states: Tensor, weight: float = 1.0) -> Tensor:
        """Add ``weight`` times the scores at each row's state in place. Returns ``logits``.

        The logits of forbidden tokens, and those beyond the vocabulary, become -inf, whatever the weight is.
        ``logits``: floating point (B, width), rows contiguous; ``states``: int32 (B,).
        """
        self._check_states(states)
        self._check_logits(logits, states)
        if not abs(weight) < np.inf:
            refuse(f"{type(self).__name__}.scores_into", "weight", weight, "finite", ArgumentValueError)
        return self._add(logits, states, float(weight))

    @abstractmethod
    def _add(self, logits: Tensor, states: Tensor, weight: float) -> Tensor:
        """``scores_into`` for checked arguments."""

    def _triton(self, states: Tensor) -> Any:
        """The Triton kernels, for CUDA tensors, if they are installed and nothing is being traced."""
        if not states.is_cuda or torch.compiler.is_compiling() or find_spec("triton") is None:
            return None
        from tokenfst.decoding.device.kernels.scores import triton as triton_scores

        return triton_scores

    def _check_states(self, states: Tensor) -> None:
        if states.dtype is not torch.int32 or states.dim() != 1 or states.device != self.device:
            raise StateError(
                f"states must be int32 (batch,) on {self.device}, not {states.dtype} {tuple(states.shape)} on "
                f"{states.device}; start_states() or states() makes them"
            )
        if not states.is_contiguous():
            raise StateError("states must be contiguous: states.contiguous()")

    def _check_logits(self, logits: Tensor, states: Tensor) -> None:
        if logits.dim() != 2 or len(logits) != len(states) or logits.device != states.device:
            raise MaskBufferError(
                f"logits must have shape ({len(states)}, width) on {states.device}, not {tuple(logits.shape)} on "
                f"{logits.device}"
            )
        if not logits.dtype.is_floating_point:
            raise MaskBufferError(
                f"logits must be floating point, not {logits.dtype}; convert them by logits.float()"
            )
        rows, width = logits.shape
        check_width(width, len(self.vocabulary))
        if (width > 1 and logits.stride(1) != 1) or (rows > 1 and logits.stride(0) < width):
            raise MaskBufferError(
                "the rows of the logits must be contiguous in memory and must not overlap; .contiguous() makes them so"
            )
