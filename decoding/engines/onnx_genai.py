"""ONNX Runtime GenAI: masks for its generation loop, and a small loop with them.

Its own guidance accepts only its own kinds of grammars, and there is no interface for logits processors. But the caller
runs the loop, and can read and write the logits of each step:

    generator.append_tokens(prompt)
    while not generator.is_done():
        constraint.mask(generator)              # get_logits, set_logits
        generator.generate_next_token()

The generated tokens are read from the generator (``get_sequence``), so ``rewind_to`` needs no call of the constraint;
the engine then has no logits until tokens are appended. Logits that are NaN, or all -inf after masking, raise an error,
because the engine would take an arbitrary token. Beam search is not supported, because the generator's sequences may
then not be those that the next logits belong to.

Cost: a copy of the logits in both directions, and a mask for each row, on the CPU. Checked with onnxruntime-genai
0.18.0 (docs/engines/onnx-genai.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tokenfst.common.arguments import checked, shown
from tokenfst.common.plurals import counted
from tokenfst.decoding.engines.shared.text_rows import Automaton, TextRows
from tokenfst.decoding.scores.matcher import ScoreSource
from tokenfst.errors import (
    ArgumentValueError,
    DecodingError,
    MissingDependencyError,
    ModelError,
    VocabularyError,
)
from tokenfst.tokenizers.adapters.huggingface import from_huggingface
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import onnxruntime_genai as genai
except ImportError as error:
    raise MissingDependencyError(
        'GenAIConstraint needs onnxruntime-genai: pip install "tokenfst[onnx-genai]"'
    ) from error

_OURS = {
    "max_length": "give max_new_tokens",
    "min_length": "the text could not end where the constraint says; make its length a part of the constraint",
    "batch_size": "one prompt is generated",
    "num_beams": "masks go with rows, and beams change them",
    "num_return_sequences": "one text is given back",
}


@checked
def genai_vocabulary(folder: str | PathLike[str]) -> Vocabulary:
    """The vocabulary of a model's folder: its ``tokenizer.json``, and the end tokens of ``genai_config.json``.

    Raises the errors of ``Vocabulary.from_huggingface``, and VocabularyError for a missing or invalid file.
    """
    path = Path(folder) / "genai_config.json"
    try:
        ends = json.loads(path.read_bytes())["model"]["eos_token_id"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise VocabularyError(f"{path} does not say what the end tokens are: {error!r}") from error
    return from_huggingface(Path(folder) / "tokenizer.json", eos_token_id=ends)


class GenAIConstraint:
    """Masks for the texts of one ``onnxruntime_genai.Generator``: an automaton, or one for each prompt of its batch.

    ``max_new_tokens``: the texts are complete within this many tokens; set ``max_length`` to the prompt's length plus
    this number. Raises TokenLimitError if no text is short enough. The tokens at the first call are the prompt.
    ``scores``: a compiled weighted language, grammar or n-gram model over the same vocabulary, whose scores are added
    ``scores_weight`` times; tokens without a score are forbidden.
    """

    @checked
    def __init__(
        self,
        automata: Automaton | Sequence[Automaton],
        max_new_tokens: int | None = None,
        *,
        scores: ScoreSource | None = None,
        scores_weight: float = 1.0,
    ) -> None:
        listed = list(automata) if isinstance(automata, Sequence) else [automata]
        self._rows = len(listed)
        self._texts = TextRows(
            listed,
            max_new_tokens,
            name="GenAIConstraint",
            remedy="use the vocabulary of the tokenizer.json beside the model",
            scores=scores,
            weight=scores_weight,
        )

    def mask(self, generator: Any) -> None:
        """Mask the logits of the generator's next token.

        Raises VocabularyMismatchError, LogitsError if no finite logit is left or a logit is NaN, MatcherError for
        another generator than that of the first call, and ModelError if the batch has another number of rows.
        """
        logits = generator.get_logits()
        if logits.shape[:-1] != (self._rows, 1):
            raise ModelError(
                f"GenAIConstraint: the generator has logits of shape {logits.shape}, and for "
                f"{counted(self._rows, 'text')} it must be ({self._rows}, 1, V): give one automaton for each prompt of "
                "the batch, and no num_beams"
            )
        self._texts.check_width(logits.shape[-1])
        ids = [generator.get_sequence(row) for row in range(self._rows)]
        masks = self._texts.masks_after_prompts(np.stack(ids))
        self._texts.apply(logits[:, 0], masks)
        generator.set_logits(logits)


@checked
def genai_generate(
    model: Any,
    prompt: Sequence[int],
    automaton: Automaton,
    max_new_tokens: int,
    *,
    scores: ScoreSource | None = None,
    scores_weight: float = 1.0,
    **search: Any,
) -> Iterator[int]:
    """The tokens after a prompt, one by one, without the end token; their text is in the automaton's language.

    ``model``: an ``onnxruntime_genai.Model``. ``search``: options of ``set_search_options`` (do_sample, temperature,
    top_k, top_p, random_seed, ...). ``scores``, ``scores_weight``: as in ``GenAIConstraint``. Raises before the first
    step: DecodingError for options, TokenLimitError, ArgumentValueError for an empty prompt.
    """
    if not isinstance(model, genai.Model):
        raise ModelError(f"genai_generate: model must be an onnxruntime_genai.Model, not {shown(model)}")
    if len(prompt) == 0:
        raise ArgumentValueError("genai_generate: prompt has no tokens: give at least one")
    for name in search:
        if name in _OURS:
            raise DecodingError(f"{name} cannot be given to genai_generate: {_OURS[name]}")
    constraint = GenAIConstraint(automaton, max_new_tokens, scores=scores, scores_weight=scores_weight)
    params = genai.GeneratorParams(model)
    params.set_search_options(**search, batch_size=1, num_beams=1, max_length=len(prompt) + max_new_tokens)
    generator = genai.Generator(model, params)
    generator.append_tokens(np.array(prompt, np.int32))
    return _tokens(generator, constraint, automaton.vocabulary.eos_token_ids)


def _tokens(generator: Any, constraint: GenAIConstraint, ends: Sequence[int]) -> Iterator[int]:
    while not generator.is_done():
        constraint.mask(generator)
        generator.generate_next_token()
        token = int(generator.get_next_tokens()[0])
        if token in ends:
            return
        yield token
