"""``ConstrainedBatches``: continuous batching of transformers, with a constraint for each request.

The engine keeps many requests in flight, admits new ones while others decode, and packs all of their tokens into one
row. A plain logits processor receives that row and cannot assign tokens to requests. The engine's own kind of processor
may send one number per request to the device, and nothing else. Here that number is a row of a table of masks. Before
each step, on the host, every request's matcher accepts the new tokens, and the masks of all requests are filled in one
native call.

    batches = ConstrainedBatches(manager, vocabulary)              # before manager.start()
    batches.add_request(ids, automaton, max_new_tokens=40)

The matcher is stored with the request (``_Request``), so it is freed with it, whether the request ends, is cancelled or
fails. If the engine forks or restarts a request, to make room, a new matcher is created from its tokens.

Invariant: after each chosen token the text can be completed within ``max_new_tokens``. The processor runs before all
others, so top-k and top-p choose among allowed tokens. Requests that are added in other ways are unconstrained.

An error in one request's matcher ends that request alone. An exception inside of a step would stop the engine and fail
all of its requests, so none is raised there: the request's next token is an end token, and its output has the reason as
its ``error``.

Not supported: asynchronous batching, where a step is prepared before the last step's tokens are known; an end token
that the request does not have. Cost of a step: an accepted token and a mask for each request, one copy of the masks to
the device. Checked with transformers 5.23.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.common.arguments import checked, shown
from tokenfst.common.plurals import counted
from tokenfst.common.token_ids import check_width
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.masks.bitmask import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_from_ids,
    fill_bitmasks,
)
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import (
    ArgumentValueError,
    LogitsError,
    MissingDependencyError,
    ModelError,
    TokenfstError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
    from transformers.generation.continuous_batching.cb_logits_processors import (
        ContinuousBatchingLogitsProcessor,
    )
except ImportError as error:
    raise MissingDependencyError(
        'ConstrainedBatches needs transformers 5.23 or later: pip install -U "tokenfst[transformers]"'
    ) from error

_log = logging.getLogger(__name__)

_FREE = 0
"""The row of the table for unconstrained requests."""


class ConstrainedBatches:
    """Constraints for the requests of a ``ContinuousBatchingManager`` that has not started.

    ``vocabulary``: the model's. Raises ModelError for a manager that is running, or uses asynchronous batching.
    """

    @checked
    def __init__(self, manager: Any, vocabulary: Vocabulary) -> None:
        for name in ("logit_processor", "continuous_batching_config", "add_request", "is_running"):
            if not hasattr(manager, name):
                raise ModelError(
                    f"ConstrainedBatches: manager must be what model.init_continuous_batching() returns, not "
                    f"{shown(manager)}"
                )
        config, processors = manager.continuous_batching_config, manager.logit_processor
        if manager.is_running() or getattr(manager, "batch_processor", None) is not None:
            raise ModelError("ConstrainedBatches: the manager has started already; make them before start()")
        if config.use_async_batching:
            raise ModelError(
                "ConstrainedBatches: asynchronous batching prepares a step before the last one's tokens are known, and "
                "masks need them; pass ContinuousBatchingConfig(use_async_batching=False)"
            )
        width = int(manager.model.config.get_text_config().vocab_size)
        check_width(width, len(vocabulary))
        processor = _MaskRows(vocabulary, int(config.max_requests_per_batch or 1024), manager.model.device)
        processors.logits_processor.insert(0, processor)
        processors.tensors_required += 1
        processors.supported_keys.update(processor.supported_kwargs)
        processors.do_processing = True
        self._manager, self._vocabulary = manager, vocabulary

    @checked
    def add_request(
        self,
        input_ids: Any,
        automaton: TokenAutomaton | CanonicalAutomaton,
        *,
        max_new_tokens: int | None = None,
        eos_token_id: Any = None,
        **options: Any,
    ) -> str | None:
        """``manager.add_request`` for a request whose text is in the automaton's language and complete within
        ``max_new_tokens`` (by default the generation config's).

        Raises, before the request is queued: TokenLimitError if no text is short enough, VocabularyMismatchError, and
        ArgumentValueError for end tokens that are not the vocabulary's.
        """
        if automaton.vocabulary != self._vocabulary:
            raise VocabularyMismatchError(
                f"{automaton!r} was compiled for another vocabulary than the manager's"
            )
        config = self._manager.generation_config
        most = config.max_new_tokens if max_new_tokens is None else max_new_tokens
        known = config.eos_token_id if eos_token_id is None else eos_token_id
        ends = {known} if isinstance(known, int) else set(known or ())
        missing = set(self._vocabulary.eos_token_ids) - ends
        if missing:
            raise ArgumentValueError(
                f"add_request: eos_token_id must hold the vocabulary's end tokens, and {sorted(missing)} are missing: "
                "the text would go on after its end"
            )
        request = _Request(automaton, most)
        request.matcher()
        found: str | None = self._manager.add_request(
            input_ids, max_new_tokens=most, eos_token_id=eos_token_id, constraint=request, **options
        )
        return found


class _Request:
    """The data of a request: its constraint, and its matcher as long as no other request shares it.

    ``failure``: why the request ends early, if its matcher raised an error.
    """

    def __init__(self, automaton: TokenAutomaton | CanonicalAutomaton, max_tokens: int | None) -> None:
        self._automaton, self._max_tokens = automaton, max_tokens
        self._matcher: AnyMatcher | None = None
        self.failure = ""

    def matcher(self) -> AnyMatcher:
        """The state of the constraint in the text."""
        if self._matcher is None:
            self._matcher = start_matcher(self._automaton, self._max_tokens)
        return self._matcher

    def follow(self, tokens: list[int]) -> AnyMatcher:
        """The matcher after all tokens that were generated. LogitsError for one that is not allowed."""
        matcher = self.matcher()
        if not matcher.accept_tokens(tokens[matcher.num_tokens :]):
            raise LogitsError(
                "a token was chosen that the constraint does not allow, after "
                f"{counted(matcher.num_tokens, 'token')}: look for "
                "NaN in the model's logits, or a logits processor that forbids what the constraint allows"
            )
        return matcher

    def fail(self, state: Any, error: Exception) -> None:
        """End the request with this reason. The engine delivers ``state.error`` with the request's output."""
        self.failure = state.error = str(error) or repr(error)
        trace = None if isinstance(error, TokenfstError) else error
        _log.error("a constraint failed, and its request ends: %s", self.failure, exc_info=trace)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Request:
        """The engine copies a request to fork it, or to start it again: the copy keeps the tokens that it has."""
        return _Request(self._automaton, self._max_tokens)

    def __reduce__(self) -> tuple[type[_Request], tuple[Any, int | None]]:
        return _Request, (self._automaton, self._max_tokens)


class _MaskRows(ContinuousBatchingLogitsProcessor):  # type: ignore[misc]
    """The table of masks, and the row of it that each request has in this step."""

    def __init__(self, vocabulary: Vocabulary, requests: int, device: Any) -> None:
        self.supported_kwargs = {"constraint": _Request}
        self.ignored_kwargs = ()
        self._only_end = bitmask_from_ids(vocabulary.eos_token_ids, len(vocabulary))
        self._vocab_size = len(vocabulary)
        self._host = allocate_token_bitmask(1 + requests, len(vocabulary))
        self._rows = torch.from_numpy(self._host).to(device)  # of a CPU: the same memory

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Requests are free unless they say otherwise."""
        int32_tensor.fill_(_FREE)

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """The row of each request, after the masks were filled."""
        rows: list[int] = []
        states: list[Any] = []
        for future in requests_with_new_token:
            constrained = future.state.logit_processor_kwargs.get("constraint") is not None
            if constrained:
                states.append(future.state)
            rows.append(len(states) if constrained else _FREE)
        self._fill(states, self._host[1 : 1 + len(states)])
        if not self._rows.is_cpu:
            self._rows[1 : 1 + len(states)].copy_(torch.from_numpy(self._host[1 : 1 + len(states)]))
        return torch.tensor(rows, dtype=torch.int32)

    def _fill(self, states: list[Any], used: npt.NDArray[np.int32]) -> None:
        """Write the mask of each request's next token into its row. A request whose matcher raises may only end."""
        matchers: list[AnyMatcher] = []
        alive: list[int] = []
        for row, state in enumerate(states):
            matcher = _matcher_after(state)
            if matcher is not None:
                matchers.append(matcher)
                alive.append(row)
        # The native call takes rows that follow each other.
        filled = used if len(alive) == len(states) else allocate_token_bitmask(len(alive), self._vocab_size)
        try:
            fill_bitmasks(matchers, filled)
            going = [True] * len(alive)
        except Exception:
            going = [_fills(states[row], filled, place) for place, row in enumerate(alive)]
        if filled is not used:
            used[:] = self._only_end
            used[alive] = filled
        for row, goes, matcher in zip(alive, going, matchers, strict=True):
            if not goes or matcher.max_tokens_left == 0:
                used[row] = self._only_end

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """The scores of the tokens to come, those that are forbidden at -inf."""
        rows = tensor_arg[: len(scores)].long()
        masked = scores.clone(memory_format=torch.contiguous_format)
        # NaN is not looked for: that would wait for the device. A token that is not allowed is found when it comes.
        apply_token_bitmask_inplace(masked, self._masks(rows), vocab_size=self._vocab_size, check_nan=False)
        free = (rows == _FREE).unsqueeze(1)
        return torch.where(free, scores, masked)

    def _masks(self, rows: torch.Tensor) -> Any:
        found = self._rows[rows]
        return found.numpy() if found.is_cpu else found


def _matcher_after(state: Any) -> AnyMatcher | None:
    """The matcher of a request after all of its tokens; None if the request has failed."""
    request: _Request = state.logit_processor_kwargs["constraint"]
    if request.failure:
        return None
    try:
        return request.follow(_generated(state))
    except Exception as error:  # whatever it is, the other requests go on
        request.fail(state, error)
        return None


def _fills(state: Any, bitmask: npt.NDArray[np.int32], row: int) -> bool:
    """Fill one row; False if the matcher raises, so that its request has failed."""
    request: _Request = state.logit_processor_kwargs["constraint"]
    try:
        request.matcher().fill_next_token_bitmask(bitmask, row)
    except Exception as error:
        request.fail(state, error)
        return False
    return True


def _generated(state: Any) -> list[int]:
    """All tokens generated for a request, including those from before it was started again."""
    begun = state._true_initial_tokens  # noqa: SLF001  # vllm-like engines of transformers say it nowhere else
    earlier: list[int] = state.initial_tokens[begun:] if begun else []
    return earlier + list(state.generated_tokens)
