"""Generation by ONNX Runtime GenAI: its loop with a mask at each step, one prompt after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tokenfst.decoding.engines.onnx_genai import genai_generate
from tokenfst.decoding.generation.hosts import LocalHost, Prompt, is_chat, pieces
from tokenfst.decoding.generation.targets import Compiled
from tokenfst.errors import ModelError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class GenAIHost(LocalHost):
    """Generation by an ``onnxruntime_genai.Model``, its ``Tokenizer`` and the ``genai_vocabulary`` of its folder."""

    def __init__(self, model: Any, tokenizer: Any, vocabulary: Vocabulary | None) -> None:
        if tokenizer is None:
            import onnxruntime_genai  # which the model is of

            tokenizer = onnxruntime_genai.Tokenizer(model)
        if vocabulary is None:
            raise ModelError(
                "Generator: the folder of a model of onnxruntime_genai is not known: give "
                "vocabulary=genai_vocabulary(folder), of tokenfst.decoding.engines.onnx_genai"
            )
        super().__init__(vocabulary)
        self._model, self._tokenizer = model, tokenizer

    def generate(
        self,
        prompts: Sequence[Prompt],
        prepared: Sequence[Compiled],
        max_new_tokens: int,
        options: Mapping[str, Any],
    ) -> list[bytes]:
        return [
            b"".join(self.stream(prompt, automaton, max_new_tokens, options))
            for prompt, automaton in zip(prompts, prepared, strict=True)
        ]

    def stream(
        self, prompt: Prompt, prepared: Compiled, max_new_tokens: int, options: Mapping[str, Any]
    ) -> Iterator[bytes]:
        others, scored = self.split_scores(options)
        tokens = genai_generate(self._model, self._ids(prompt), prepared, max_new_tokens, **scored, **others)
        return pieces(tokens, self._spelled, max_new_tokens)

    def _ids(self, prompt: Prompt) -> list[int]:
        if is_chat(prompt):
            try:
                prompt = self._tokenizer.apply_chat_template(json.dumps(prompt), add_generation_prompt=True)
            except RuntimeError as error:
                raise ModelError(
                    f"the prompt is a chat, and the tokenizer cannot format it: {error}"
                ) from error
        ids: list[int] = self._tokenizer.encode(prompt).tolist()
        if not ids:
            raise ModelError("the prompt has no tokens: give at least one character")
        return ids
