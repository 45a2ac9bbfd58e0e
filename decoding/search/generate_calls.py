"""Identification of the call of transformers' ``generate`` that invokes a logits processor, and of its prompt.

``generate`` passes only the ids of the rows to a logits processor, and ids do not show where a prompt ends: a second
prompt may be the first one plus one token, or plus the generated text. But the frame of the calling ``generate`` is on
the stack of the thread, and contains the prompt and a ``GenerationConfig``, a private copy that lives as long as the
call. So this module inspects the stack.

The relevant call is the innermost one, with one exception: an assistant's ``generate`` writes drafts for the model that
it assists. Then it is the call of the assisted model, as long as the rows start with that model's prompt (an assistant
may have another tokenizer).

Cost: the frames up to ``generate`` (three, in transformers' own loops) each time, and all frames for a new call. Only
the frame of ``generate`` itself is asked for its variables: reading those of a frame may keep them alive (Python 3.12
and older), and the loops below it drop the model's outputs on purpose. Rejected: requiring a new processor for each
prompt, which cannot be enforced; guessing by the ids.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from tokenfst.common.plurals import counted
from tokenfst.decoding.matchers.prefixes import Ids, PrefixStates, RowStates
from tokenfst.errors import ArgumentValueError, MissingDependencyError

try:
    from transformers import GenerationMixin
except ImportError as error:
    raise MissingDependencyError(
        'ConstraintLogitsProcessor needs transformers: pip install "tokenfst[transformers]"'
    ) from error

_GENERATE = inspect.unwrap(GenerationMixin.generate).__code__
_ASSISTED = inspect.unwrap(GenerationMixin._assisted_decoding).__code__  # noqa: SLF001  # a frame is known by its code


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of ``generate``: its own config, and its prompts."""

    config: Any
    prompts: Ids

    @property
    def beams(self) -> int:
        """The number of rows for each prompt, of which the search keeps the best."""
        return int(self.config.num_beams or 1)

    def begins(self, ids: Ids) -> bool:
        """Whether the rows begin with the prompts."""
        return np.array_equal(ids[:, : self.prompts.shape[1]], self.prompts)

    def check_length(self, most: int | None) -> None:
        """Raise ArgumentValueError if it stops before a text of ``most`` tokens is complete."""
        steps = int(self.config.max_length) - self.prompts.shape[1]
        if most is not None and steps < most:
            raise ArgumentValueError(
                f"generate() stops after {counted(steps, 'token')}, and ConstraintLogitsProcessor has "
                f"max_new_tokens={most}: the text might be cut off. Give both the same max_new_tokens"
            )


def states_of_call(states: PrefixStates, ids: Ids, most: int | None = None) -> RowStates | None:
    """The states of the calling ``generate``, advanced to the rows ``ids``; None if there is no such call.

    Raises ArgumentValueError if the call stops before a text of ``most`` tokens is complete, and the errors of
    ``RowStates.follow``.
    """
    frame = _outward(sys._getframe(1), _GENERATE)  # noqa: SLF001  # the documented way to a frame
    if frame is None:
        return None
    found = states.of_call(id(frame))
    if found is None:
        inner = _call(frame)
        if inner is None:
            return None
        found = _assisted(states, frame, ids, most)
        if found is None:
            if _outward(frame.f_back, _ASSISTED) is None:  # a draft is short
                inner.check_length(most)
            found = states.new(inner.prompts.shape[1] if inner.begins(ids) else ids.shape[1], inner.beams)
        states.add_call(id(frame), inner.config, found)
    found.follow(ids)
    return found


def _assisted(states: PrefixStates, frame: FrameType, ids: Ids, most: int | None) -> RowStates | None:
    """The states of the call for which a draft is written, if ``frame`` writes one."""
    found = None
    at = _outward(_outward(frame.f_back, _ASSISTED), _GENERATE)
    while at is not None:
        outer = _call(at)
        if outer is not None and outer.begins(ids):
            found = states.of_call(id(at))
            if found is None:
                outer.check_length(most)
                found = states.new(outer.prompts.shape[1], outer.beams)
                states.add_call(id(at), outer.config, found)
        at = _outward(_outward(at.f_back, _ASSISTED), _GENERATE)
    return found


def _outward(frame: FrameType | None, code: Any) -> FrameType | None:
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame


def _call(frame: FrameType) -> _Call | None:
    """The data of a frame of ``generate``; None if it only loads another loop, by name."""
    found = frame.f_locals
    config, prompts = found.get("generation_config"), found.get("input_ids")
    if config is None or prompts is None or isinstance(found.get("custom_generate"), str):
        return None
    return _Call(config, prompts.detach().cpu().numpy())
