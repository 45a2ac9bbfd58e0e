"""The language-model interface of the decoders: rows of tokens that grow together, and scores of the next token.

A decoder (beam search, particles, speculation) needs two operations: the logits of the next token of each row, and
replacing the rows by a selection of them, possibly with repetitions, each extended by some tokens. A ``Session`` is
exactly that, so one decoder works with transformers, with a callback (image streams, n-grams, exact tests) and with
anything else that scores tokens.

    session = as_language_model(model).start([[1, 2], [1, 2, 3]])       # a prompt a row, of any lengths
    log_probs = next_log_probs(session.logits)                          # (rows, width)
    session.extend(parents, tokens)                                     # row i is now row parents[i] and tokens[i]

A ``TreeSession`` also scores trees of tokens after its rows in one call; ``tree_session`` (in its own module) makes a
tree session from any session.

Invariants: ``logits`` always belong to the current rows; rows are scored with the positions that they would have alone,
whatever the padding of other rows. Cost of an ``extend``: one call of the model over the new tokens, and one gather of
its cache if rows were reordered. If rows grow by different numbers of tokens, they are padded on the right in that
call; the padding stays in the cache, masked out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from tokenfst.common.arguments import shown
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import old_names
from tokenfst.decoding.models.token_tree import TokenTree
from tokenfst.errors import LogitsError, MissingDependencyError, ModelError, TokenIdError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error

Prompts: TypeAlias = "Sequence[Sequence[int]] | torch.Tensor"
Callback: TypeAlias = Callable[["torch.Tensor"], "torch.Tensor"]


@runtime_checkable
class Session(Protocol):
    """A batch of token sequences in decoding."""

    @property
    def logits(self) -> torch.Tensor:
        """Scores of the next token, shape (rows, width), float32; log-probabilities up to a constant per row."""

    def extend(
        self, parents: torch.Tensor, tokens: torch.Tensor, lengths: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Replace the rows: row i becomes row ``parents[i]`` followed by ``tokens[i]``.

        Parents have shape (rows',), tokens (rows',) or (rows', n), both int64. Returns the scores after each new token,
        shape (rows', n, width). ``lengths``, int64 of shape (rows',), from 1 to n: row i takes only the first
        ``lengths[i]`` of its tokens; the scores after the others are meaningless.
        """

    def rewind(self, count: int) -> None:
        """Remove the last ``count`` tokens of every row; prompts cannot be removed.

        Until the next ``extend``, ``logits`` are still those of the longer rows, so call ``extend`` next.
        """


@runtime_checkable
class TreeSession(Session, Protocol):
    """A session that can score several continuations at once: a tree of tokens after its rows, the same tree for each
    row.

    ``keep`` appends one path of the tree to the rows; until then the rows are unchanged.
    """

    def extend_tree(self, parents: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        """Add nodes; their numbers continue those of the nodes added since the last ``keep``.

        ``parents[i]``: an earlier node, or -1 for the end of the rows. Returns the scores after each new node, shape
        (rows, n, width).
        """

    def keep(self, path: Sequence[int]) -> None:
        """Append the nodes of ``path``, a path down from the end of the rows, to the rows; drop the others."""


class LanguageModel(Protocol):
    """A model to decode from. ``width``: the number of scores per row. ``device``: where the scores are."""

    @property
    def width(self) -> int: ...
    @property
    def device(self) -> torch.device: ...
    def start(self, prompts: Prompts) -> Session:
        """A session with a row for each prompt."""


class CallbackModel:
    """A model given by a function from ids of shape (rows, length), prompts included, to scores of shape (rows, width).

    Prompts may be empty, and of any lengths: the function is called with rows of equal length. It is called with the
    complete rows at every step, so it suits models without a cache, tests, and streams whose scores depend on the
    position.
    """

    def __init__(self, scores: Callback, width: int, device: torch.device | str = "cpu") -> None:
        self._scores = scores
        self.width = width
        self.device = torch.device(device)

    def start(self, prompts: Prompts) -> CallbackSession:
        return CallbackSession(self, prompt_rows(prompts))

    def score(self, ids: torch.Tensor) -> torch.Tensor:
        """The function's scores, checked for shape, as float32."""
        scores = self._scores(ids)
        if not isinstance(scores, torch.Tensor):
            raise ModelError(
                f"the callback returned {shown(scores)} for {counted(len(ids), 'row')}: expected a tensor of scores"
            )
        if scores.shape != (len(ids), self.width):
            raise ModelError(
                f"the callback returned scores of shape {tuple(scores.shape)} for {counted(len(ids), 'row')}: expected "
                f"{(len(ids), self.width)}"
            )
        return scores.to(torch.float32)


class CallbackSession:
    """The rows of a ``CallbackModel``. All end in the last column; the first ``_skip`` columns of a row are padding."""

    def __init__(self, model: CallbackModel, prompts: list[list[int]]) -> None:
        self._model = model
        longest = max(map(len, prompts))
        padded = [[0] * (longest - len(prompt)) + prompt for prompt in prompts]
        self._ids = torch.tensor(padded, dtype=torch.long, device=model.device)
        self._prompts = torch.tensor([len(prompt) for prompt in prompts])
        self._skip = longest - self._prompts
        self._tree = TokenTree()
        self._tree_scores: list[torch.Tensor] = []
        self.logits = self._score(longest)

    def extend(
        self, parents: torch.Tensor, tokens: torch.Tensor, lengths: torch.Tensor | None = None
    ) -> torch.Tensor:
        new = tokens if tokens.dim() == 2 else tokens.unsqueeze(1)
        count = new.shape[1]
        self._ids = torch.cat([self._ids[parents], new], dim=1)
        self._skip, self._prompts = self._skip[parents.cpu()], self._prompts[parents.cpu()]
        width = self._ids.shape[1]
        scores = [self._score(width - count + k + 1) for k in range(count)]
        self.logits = scores[-1]
        if lengths is not None:
            _check_lengths(lengths, len(new), count)
            self.logits = torch.stack(scores, dim=1)[torch.arange(len(new)), lengths - 1]
            self._skip = self._skip + (count - lengths).cpu()
            self._ids = torch.stack(
                [row.roll(count - length) for row, length in zip(self._ids, lengths.tolist(), strict=True)]
            )
        return torch.stack(scores, dim=1)

    def _score(self, end: int) -> torch.Tensor:
        """The scores of all rows up to column ``end``, a call for each length that rows have."""
        scores = self._ids.new_empty((len(self._ids), self._model.width), dtype=torch.float32)
        for skip in set(self._skip.tolist()):
            rows = (self._skip == skip).nonzero().squeeze(1).to(self._ids.device)
            scores[rows] = self._model.score(self._ids[rows, skip:end])
        return scores

    def rewind(self, count: int) -> None:
        _check_rewind(count, self._ids.shape[1] - int((self._skip + self._prompts).max()))
        self._ids = self._ids[:, : self._ids.shape[1] - count]

    def extend_tree(self, parents: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        ids = self._ids
        scores = []
        for node in self._tree.add(parents, tokens):
            path = torch.tensor([self._tree.path(node)], device=ids.device).expand(len(ids), -1)
            self._ids = torch.cat([ids, path], dim=1)
            scores.append(self._score(self._ids.shape[1]))
        self._ids = ids
        found = torch.stack(scores, dim=1)
        self._tree_scores.append(found)
        return found

    def keep(self, path: Sequence[int]) -> None:
        if path:
            tokens = torch.tensor([self._tree.tokens[node] for node in path], device=self._ids.device)
            self._ids = torch.cat([self._ids, tokens.expand(len(self._ids), -1)], dim=1)
            self.logits = torch.cat(self._tree_scores, dim=1)[:, path[-1]]
        self._tree, self._tree_scores = TokenTree(), []


class TransformersModel:
    """A causal language model of transformers, with its key-value cache."""

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
        rows = prompt_rows(prompts)
        if any(len(row) == 0 for row in rows):
            raise ModelError(
                "a causal model needs at least one token in each prompt, such as the one that begins its texts"
            )
        known = len(self._model.get_input_embeddings().weight)
        for row, prompt in enumerate(rows):
            for token in prompt:
                if not 0 <= token < known:
                    raise TokenIdError(
                        f"prompt {row} has token id {token}, and {type(self._model).__name__} knows "
                        f"{counted(known, 'token')}: use the model's own tokenizer"
                    )
        return TransformersSession(self._model, rows, self.device)


class TransformersSession:
    """The rows of a causal model; prompts are padded on the left."""

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
        self._tree = TokenTree()
        self._tree_scores: list[torch.Tensor] = []
        self.logits = self._run(ids.to(device), keep=1)[:, -1]

    @property
    def sees_trees(self) -> bool:
        """Whether ``extend_tree`` is exact: attention accepts a mask of any shape, and every layer keeps all keys."""
        from transformers.cache_utils import DynamicLayer

        any_mask = self._model.config._attn_implementation in ("eager", "sdpa")  # noqa: SLF001  # transformers says it nowhere else
        return any_mask and all(type(layer) is DynamicLayer for layer in self._cache.layers)

    def _run(self, ids: torch.Tensor, keep: int) -> torch.Tensor:
        if not self._padded:
            return self._call(ids, logits_to_keep=keep)
        positions = (self._attention.cumsum(1) - 1).clamp_(min=0)[:, -ids.shape[1] :]
        return self._call(ids, logits_to_keep=keep, attention_mask=self._attention, position_ids=positions)

    def _call(self, ids: torch.Tensor, **extra: Any) -> torch.Tensor:
        with torch.no_grad():
            out = self._model(input_ids=ids, past_key_values=self._cache, use_cache=True, **extra)
        scores: torch.Tensor = out.logits.to(torch.float32)
        return scores

    def extend(
        self, parents: torch.Tensor, tokens: torch.Tensor, lengths: torch.Tensor | None = None
    ) -> torch.Tensor:
        new = tokens if tokens.dim() == 2 else tokens.unsqueeze(1)
        if not torch.equal(parents, self._identity):
            self._cache.reorder_cache(parents)
            self._attention = self._attention[parents]
            self._identity = torch.arange(len(parents), device=parents.device)
        taken = torch.ones_like(new)
        if lengths is not None:
            _check_lengths(lengths, *new.shape)
            taken = (torch.arange(new.shape[1], device=new.device) < lengths.unsqueeze(1)).long()
            self._padded = True
        self._attention = torch.cat([self._attention, taken], dim=1)
        scores = self._run(new, keep=new.shape[1])
        self.logits = scores[:, -1] if lengths is None else scores[self._identity, lengths - 1]
        return scores

    def keep_past(self) -> None:
        """Let sliding-window layers keep the keys outside their window until the next ``rewind``, so that a rewind is
        possible.
        """
        self._cache.activate_past_recording()

    def rewind(self, count: int) -> None:
        length = self._attention.shape[1]
        _check_rewind(count, length - self._prompt)
        if count:
            if self._padded and not bool(self._attention[:, length - count :].all()):
                raise ModelError(
                    f"cannot rewind {counted(count, 'token')}: the rows took different numbers of tokens there"
                )
            try:
                self._cache.crop(-count)
            except RuntimeError as error:
                raise ModelError(f"{type(self._model).__name__} cannot go back: {error}") from None
            self._attention = self._attention[:, : length - count]

    def extend_tree(self, parents: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        if not self.sees_trees:
            raise ModelError(
                f"{type(self._model).__name__} takes no attention masks of trees: use tree_session"
            )
        tree, device = self._tree, self._attention.device
        new = tree.add(parents, tokens)
        rows, length = self._attention.shape
        depth = torch.tensor([len(tree.path(node)) for node in new], device=device)
        extra = {"position_ids": self._attention.sum(1, keepdim=True) + depth - 1}
        if self._padded or not tree.is_chain:
            seen = torch.zeros((len(new), length + len(tree.tokens)), dtype=torch.bool)
            for row, node in enumerate(new):
                seen[row, [length + each for each in tree.path_nodes(node)]] = True
            mask = seen.to(device).repeat(rows, 1, 1)
            mask[:, :, :length] = self._attention.bool().unsqueeze(1)
            hidden = torch.finfo(self._model.dtype).min
            bias = torch.zeros(mask.shape, dtype=self._model.dtype, device=device)
            extra["attention_mask"] = bias.masked_fill_(~mask, hidden).unsqueeze(1)
        ids = torch.tensor([tree.tokens[node] for node in new], device=device).repeat(rows, 1)
        scores = self._call(ids, **extra)
        self._tree_scores.append(scores)
        return scores

    def keep(self, path: Sequence[int]) -> None:
        added, length = len(self._tree.tokens), self._attention.shape[1]
        if list(path) == list(range(len(path))):
            self._cache.crop(len(path) - added)
        else:
            columns = torch.tensor([*range(length), *(length + node for node in path)])
            columns = columns.to(self._attention.device)
            for layer in self._cache.layers:
                layer.keys = layer.keys.index_select(-2, columns)
                layer.values = layer.values.index_select(-2, columns)
        if path:
            taken = self._attention.new_ones((len(self._attention), len(path)))
            self._attention = torch.cat([self._attention, taken], dim=1)
            self.logits = torch.cat(self._tree_scores, dim=1)[:, path[-1]]
        self._tree, self._tree_scores = TokenTree(), []


def as_language_model(model: Any, width: int | None = None) -> LanguageModel:
    """``model`` as a ``LanguageModel``: itself if it is one, a wrapped transformers model, or a wrapped function of ids
    (with the ``width`` of its scores). Raises ``ModelError`` for anything else.
    """
    if hasattr(model, "start") and hasattr(model, "width"):
        found: LanguageModel = model
        return found
    if hasattr(model, "config") and hasattr(model, "generate"):
        return TransformersModel(model)
    if callable(model):
        if width is None:
            raise ModelError(
                "a function as a model needs `width`, the number of scores that it returns for each row"
            )
        return CallbackModel(model, width)
    raise ModelError(
        f"cannot decode from {type(model).__name__}: give a causal transformers model, a function from ids to scores, "
        "or an object with `width`, `device` and `start(prompts)`"
    )


def start_after(model: LanguageModel, prompts: list[list[int]], written: list[list[int]]) -> Session:
    """A session with a row for each prompt, followed by the text already written.

    A model that distinguishes prompt and text has a method ``start_after`` (``fused``).
    """
    own = getattr(model, "start_after", None)
    if own is None and (own := getattr(model, "start_behind", None)) is not None:
        warnings.warn("start_behind() of a model is called start_after()", DeprecationWarning, stacklevel=2)
    if own is not None:
        found: Session = own(prompts, written)
        return found
    return model.start([prompt + tokens for prompt, tokens in zip(prompts, written, strict=True)])


def next_log_probs(logits: torch.Tensor) -> torch.Tensor:
    """Logits of shape (rows, width) as float32 log-probabilities.

    Raises ``LogitsError`` for a row with NaN or +inf, or without any finite value: nothing can be drawn from it.
    Synchronizes with the device.
    """
    log_probs = torch.log_softmax(logits.to(torch.float32), dim=-1)
    bad = log_probs[:, 0].isnan()  # one such value makes the sum NaN, and with it the whole row
    if bool(bad.any()):
        row = int(bad.nonzero()[0, 0])
        raise LogitsError(
            f"row {row} of the model's scores has NaN or +inf, or only -inf: no distribution. Check the model's "
            "weights and precision"
        )
    return log_probs


def prompt_rows(prompts: Prompts) -> list[list[int]]:
    """The ids of each prompt. Raises ``ModelError`` if there are no prompts."""
    rows = prompts.tolist() if isinstance(prompts, torch.Tensor) else [list(prompt) for prompt in prompts]
    if not rows:
        raise ModelError("no prompts: give at least one, which may be empty for models that need none")
    return rows


def one_prompt(prompt: Sequence[int] | torch.Tensor) -> list[int]:
    """The ids of one prompt. Raises ``ModelError`` for anything else, such as several prompts."""
    tokens = prompt.tolist() if isinstance(prompt, torch.Tensor) else list(prompt)
    if not all(isinstance(token, Integral) for token in tokens):
        raise ModelError(
            f"one prompt is a sequence of token ids, not {tokens!r:.60}: call this for each prompt"
        )
    return tokens


def _check_lengths(lengths: torch.Tensor, rows: int, most: int) -> None:
    if lengths.shape != (rows,) or not bool(((lengths >= 1) & (lengths <= most)).all()):
        raise ModelError(
            f"lengths must be one for each row ({counted(rows, 'row')}), from 1 to {most}, not {lengths.tolist()}"
        )


def _check_rewind(count: int, length: int) -> None:
    if not 0 <= count <= length:
        raise ModelError(f"cannot rewind {counted(count, 'token')}: the prompts were extended by {length:,}")


if not TYPE_CHECKING:
    __getattr__ = old_names(__name__, {"start_behind": "start_after"})
