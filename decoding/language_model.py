"""Language models as the decoders see them: rows of tokens that grow in step, and what may come next.

A decoder (beam search, particles, speculation) asks a model for two things: logits for the token after each of its
rows, and to go on with some rows, chosen and repeated at will, each longer by some tokens. A ``Session`` is that and no
more, so a decoder is written once for transformers, for a callback (image streams, n-grams, exact tests) and for
whatever else can score tokens.

    session = as_language_model(model).start([[1, 2], [1, 2, 3]])       # a prompt a row, of any lengths
    log_probs = next_log_probs(session.logits)                          # (rows, width)
    session.extend(parents, tokens)                                     # row i is now row parents[i] and tokens[i]

Invariants: ``logits`` always belong to the rows as they are; rows are scored with the positions that they would have
alone, whatever the padding of their neighbours. Cost of an ``extend``: one call of the model over the new tokens, and
one gather of its cache where rows were reordered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tokenfst.errors import LogitsError, MissingDependencyError, ModelError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error

Prompts: TypeAlias = "Sequence[Sequence[int]] | torch.Tensor"
Callback: TypeAlias = Callable[["torch.Tensor"], "torch.Tensor"]


@runtime_checkable
class Session(Protocol):
    """Rows of token sequences in decoding."""

    @property
    def logits(self) -> torch.Tensor:
        """Scores of the next token, shape (rows, width), float32; log-probabilities up to a constant per row."""

    def extend(self, parents: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Row i becomes row ``parents[i]`` followed by ``tokens[i]``: parents of shape (rows',), tokens of shape
        (rows',) or (rows', n), both int64. Returns the scores after each new token, shape (rows', n, width)."""

    def rewind(self, count: int) -> None:
        """Take the last ``count`` tokens of every row back, none of the prompts'. Until the next ``extend``, ``logits``
        are those of the longer rows: a caller that rewinds extends next."""


class LanguageModel(Protocol):
    """What can be decoded from. ``width`` is the number of scores per row."""

    @property
    def width(self) -> int: ...
    @property
    def device(self) -> torch.device: ...
    def start(self, prompts: Prompts) -> Session:
        """A session with a row for each prompt."""


class CallbackModel:
    """A model given by a function from ids of shape (rows, length), prompts included, to scores of shape (rows, width).

    The prompts of a session must have one length, zero allowed. The function is called anew with the whole rows at
    every step, so it is for models without memory, for tests and for streams whose scores depend on the position.
    """

    def __init__(self, scores: Callback, width: int, device: torch.device | str = "cpu") -> None:
        self._scores = scores
        self.width = width
        self.device = torch.device(device)

    def start(self, prompts: Prompts) -> CallbackSession:
        rows = _rows(prompts)
        if len({len(row) for row in rows}) != 1:
            lengths = sorted({len(row) for row in rows})
            raise ModelError(
                f"the prompts of a callback model must have one length; these have {lengths}. Pad them as the "
                "function expects, or decode them one by one"
            )
        return CallbackSession(self, torch.tensor(rows, dtype=torch.long, device=self.device))

    def score(self, ids: torch.Tensor) -> torch.Tensor:
        """The function's scores, checked for shape, as float32."""
        scores = self._scores(ids)
        if scores.shape != (len(ids), self.width):
            raise ModelError(
                f"the callback returned scores of shape {tuple(scores.shape)} for {len(ids)} rows: expected "
                f"{(len(ids), self.width)}"
            )
        return scores.to(torch.float32)


class CallbackSession:
    """Rows over a ``CallbackModel``."""

    def __init__(self, model: CallbackModel, ids: torch.Tensor) -> None:
        self._model = model
        self._prompt = ids.shape[1]
        self.ids = ids
        self.logits = model.score(ids)

    def extend(self, parents: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        base = self.ids[parents]
        new = tokens if tokens.dim() == 2 else tokens.unsqueeze(1)
        self.ids = torch.cat([base, new], dim=1)
        width = base.shape[1]
        scores = [self._model.score(self.ids[:, : width + k + 1]) for k in range(new.shape[1])]
        self.logits = scores[-1]
        return torch.stack(scores, dim=1)

    def rewind(self, count: int) -> None:
        _check_rewind(count, self.ids.shape[1] - self._prompt)
        self.ids = self.ids[:, : self.ids.shape[1] - count]


class TransformersModel:
    """A causal language model of transformers, with its cache of keys and values."""

    def __init__(self, model: Any) -> None:
        if getattr(model.config, "is_encoder_decoder", False):
            raise ModelError(
                f"{type(model).__name__} is an encoder-decoder model: decoders here continue prompts of causal models. "
                "Wrap it in a CallbackModel"
            )
        self._model = model
        self.width = int(model.config.get_text_config().vocab_size)

    @property
    def device(self) -> torch.device:
        return torch.device(self._model.device)

    def start(self, prompts: Prompts) -> TransformersSession:
        rows = _rows(prompts)
        if any(len(row) == 0 for row in rows):
            raise ModelError(
                "a causal model needs at least one token of prompt a row, such as its first token"
            )
        return TransformersSession(self._model, rows, self.device)


class TransformersSession:
    """Rows over a causal model; prompts are padded on the left."""

    def __init__(self, model: Any, prompts: list[list[int]], device: torch.device) -> None:
        from transformers import DynamicCache

        longest = max(map(len, prompts))
        ids = torch.zeros((len(prompts), longest), dtype=torch.long)
        self._attention = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt) :] = torch.tensor(prompt, dtype=torch.long)
            self._attention[row, longest - len(prompt) :] = 1
        self._model = model
        self._prompt = longest
        self._padded = any(len(prompt) != longest for prompt in prompts)
        self._attention = self._attention.to(device)
        self._cache = DynamicCache(config=model.config)
        self._identity = torch.arange(len(prompts), device=device)
        self.logits = self._run(ids.to(device), keep=1)[:, -1]

    def _run(self, ids: torch.Tensor, keep: int) -> torch.Tensor:
        extra: dict[str, Any] = {}
        if self._padded:
            positions = (self._attention.cumsum(1) - 1).clamp_(min=0)[:, -ids.shape[1] :]
            extra = {"attention_mask": self._attention, "position_ids": positions}
        with torch.no_grad():
            out = self._model(
                input_ids=ids, past_key_values=self._cache, use_cache=True, logits_to_keep=keep, **extra
            )
        scores: torch.Tensor = out.logits.to(torch.float32)
        return scores

    def extend(self, parents: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        new = tokens if tokens.dim() == 2 else tokens.unsqueeze(1)
        if not torch.equal(parents, self._identity):
            self._cache.reorder_cache(parents)
            self._attention = self._attention[parents]
            self._identity = torch.arange(len(parents), device=parents.device)
        self._attention = torch.cat([self._attention, torch.ones_like(new)], dim=1)
        scores = self._run(new, keep=new.shape[1])
        self.logits = scores[:, -1]
        return scores

    def rewind(self, count: int) -> None:
        length = self._attention.shape[1]
        _check_rewind(count, length - self._prompt)
        if count:
            self._cache.crop(-count)
            self._attention = self._attention[:, : length - count]


def as_language_model(model: Any, width: int | None = None) -> LanguageModel:
    """``model`` itself where it is a ``LanguageModel``, a transformers model wrapped, or a function of ids (with the
    ``width`` of its scores). Raises ``ModelError`` for anything else."""
    if hasattr(model, "start") and hasattr(model, "width"):
        found: LanguageModel = model
        return found
    if hasattr(model, "config") and hasattr(model, "generate"):
        return TransformersModel(model)
    if callable(model):
        if width is None:
            raise ModelError(
                "a function as a model needs `width`, the number of scores that it returns a row"
            )
        return CallbackModel(model, width)
    raise ModelError(
        f"cannot decode from {type(model).__name__}: give a causal transformers model, a function from ids to scores, "
        "or an object with `width`, `device` and `start(prompts)`"
    )


def next_log_probs(logits: torch.Tensor) -> torch.Tensor:
    """Logits of shape (rows, width) as float32 log-probabilities. Raises ``LogitsError`` where a row has NaN or +inf,
    or no finite value at all: nothing can be drawn from it. Waits for the device."""
    log_probs = torch.log_softmax(logits.to(torch.float32), dim=-1)
    bad = log_probs.isnan().any(dim=-1)
    if bool(bad.any()):
        row = int(bad.nonzero()[0, 0])
        raise LogitsError(
            f"row {row} of the model's scores has NaN or +inf, or only -inf: no distribution. Check the model's "
            "weights and precision"
        )
    return log_probs


def _rows(prompts: Prompts) -> list[list[int]]:
    rows = prompts.tolist() if isinstance(prompts, torch.Tensor) else [list(prompt) for prompt in prompts]
    if not rows:
        raise ModelError("no prompts: give at least one, which may be empty for models that need none")
    return rows


def _check_rewind(count: int, length: int) -> None:
    if not 0 <= count <= length:
        raise ModelError(f"cannot rewind {count} tokens: {length} were added to the prompts")
