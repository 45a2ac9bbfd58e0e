"""llama.cpp through llama-cpp-python: its vocabulary, and a logits processor for its loops.

A GGUF file stores tokens in the notation of the original tokenizer; the bytes of a token are those that llama.cpp
writes for it. So the vocabulary is read from llama.cpp token by token (``llama_token_to_piece``), for all kinds of
tokenizers alike; tokens that end a generation there are the end tokens here. Checked with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.common.arguments import checked, shown
from tokenfst.common.renamed import renamed
from tokenfst.decoding.engines.shared.text_rows import Automaton, TextRows
from tokenfst.decoding.scores.matcher import ScoreSource
from tokenfst.errors import MissingDependencyError, ModelError
from tokenfst.tokenizers.vocabulary.tables import pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import llama_cpp
except ImportError as error:
    raise MissingDependencyError(
        "llama.cpp is reached through llama-cpp-python: pip install llama-cpp-python"
    ) from error

_ROOM = 256


def llama_vocabulary(model: Any) -> Vocabulary:
    """The vocabulary of a ``llama_cpp.Llama``. Linear in its tokens. Raises ModelError for another object."""
    if not isinstance(model, llama_cpp.Llama):
        raise ModelError(f"llama_vocabulary: model must be a llama_cpp.Llama, not {shown(model)}")
    return vocabulary_of(llama_cpp.llama_model_get_vocab(model.model), name=f"llama.cpp: {model.model_path}")


def vocabulary_of(
    vocab: Any, *, size: int | None = None, ends: Sequence[int] | None = None, name: str = "llama.cpp"
) -> Vocabulary:
    """The vocabulary of a ``llama_vocab_p``. ``size``: the width of the model's scores; ``ends``: overrides the end
    tokens.
    """
    known = llama_cpp.llama_vocab_n_tokens(vocab)
    tokens = pad_tokens([_piece(vocab, token) for token in range(known)], size)
    if ends is None:
        ends = [token for token in range(known) if llama_cpp.llama_vocab_is_eog(vocab, token)]
    return Vocabulary(
        [b"" if token in set(ends) else each for token, each in enumerate(tokens)], ends, name=name
    )


def _piece(vocab: Any, token: int) -> bytes:
    """The bytes that a token writes inside of a text; empty for control tokens."""
    room = _ROOM
    while True:
        buffer = ctypes.create_string_buffer(room)
        length = llama_cpp.llama_token_to_piece(vocab, token, buffer, room, 0, False)
        if length >= 0:
            return buffer.raw[:length]
        room = -length


class LlamaConstraint:
    """A logits processor for one completion, whose text, without the prompt, is in the automaton's language.

    ``max_new_tokens``: the text is complete within this many tokens; pass the same ``max_tokens`` to the completion.
    Raises TokenLimitError if no text is short enough. The ids of the first call are the prompt; each later call adds
    one token. ``scores``: a compiled weighted language, grammar or n-gram model over the same vocabulary, whose scores
    are added ``scores_weight`` times; tokens without a score are forbidden.
    """

    @renamed(max_tokens="max_new_tokens")
    @checked
    def __init__(
        self,
        automaton: Automaton,
        max_new_tokens: int | None = None,
        *,
        scores: ScoreSource | None = None,
        scores_weight: float = 1.0,
    ) -> None:
        self._texts = TextRows(
            [automaton],
            max_new_tokens,
            name="LlamaConstraint",
            remedy="use llama_vocabulary(model)",
            goes_back=False,
            scores=scores,
            weight=scores_weight,
        )

    def __call__(
        self, input_ids: npt.NDArray[np.intc], scores: npt.NDArray[np.single]
    ) -> npt.NDArray[np.single]:
        """The scores, those of forbidden tokens at -inf."""
        self._texts.check_width(len(scores))
        masks = self._texts.masks_after_prompts(input_ids[None])
        masked = np.array(scores, np.float32)
        self._texts.apply(masked, masks)
        return masked
