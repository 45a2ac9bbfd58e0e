"""Generation by llama.cpp: the loop of ``llama_cpp.Llama.generate`` with a ``LlamaConstraint``, one prompt at a time.

Tokens are taken from that loop as they arrive, so texts are their exact bytes. The loop ends at an end token or at the
last allowed token, after which the text is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import llama_cpp

from tokenfst.decoding.engines.llama_cpp import LlamaConstraint, llama_vocabulary
from tokenfst.decoding.generation.hosts import LocalHost, Prompt, is_chat, pieces
from tokenfst.decoding.generation.targets import Compiled
from tokenfst.errors import DecodingError, ModelError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_OURS = ("tokens", "stopping_criteria", "grammar", "logits_processor", "reset")


class LlamaHost(LocalHost):
    """A ``llama_cpp.Llama``."""

    def __init__(self, model: Any, vocabulary: Vocabulary | None) -> None:
        super().__init__(llama_vocabulary(model) if vocabulary is None else vocabulary)
        self._model = model

    def generate(
        self,
        prompts: Sequence[Prompt],
        prepared: Sequence[Compiled],
        max_new_tokens: int,
        options: Mapping[str, Any],
    ) -> list[bytes]:
        """As ``Host.generate``."""
        jobs = [self._begun(*each, max_new_tokens, options) for each in zip(prompts, prepared, strict=True)]
        return [b"".join(self._pieces(job, max_new_tokens)) for job in jobs]

    def stream(
        self, prompt: Prompt, prepared: Compiled, max_new_tokens: int, options: Mapping[str, Any]
    ) -> Iterator[bytes]:
        """As ``Host.stream``."""
        return self._pieces(self._begun(prompt, prepared, max_new_tokens, options), max_new_tokens)

    def _pieces(self, job: tuple[list[int], dict[str, Any]], most: int) -> Iterator[bytes]:
        tokens, options = job
        return pieces(self._model.generate(tokens, **options), self._spelled, most)

    def _begun(
        self, prompt: Prompt, automaton: Compiled, most: int, options: Mapping[str, Any]
    ) -> tuple[list[int], dict[str, Any]]:
        """The prompt's tokens, and the arguments of ``generate``; errors are raised before the model is called."""
        for name in _OURS:
            if name in options:
                raise DecodingError(
                    f"{name} cannot be given to a Generator of llama.cpp, which sets it itself"
                )
        tokens = self._ids(prompt)
        room = self._model.n_ctx()
        if not tokens or len(tokens) + most > room:
            raise ModelError(
                f"a prompt of {len(tokens):,} tokens and max_new_tokens={most:,}: the model's context has {room:,} "
                "tokens, and a prompt needs at least one"
            )
        others, scored = self.split_scores(options)
        processors = llama_cpp.LogitsProcessorList([LlamaConstraint(automaton, most, **scored)])
        return tokens, {**others, "logits_processor": processors}

    def _ids(self, prompt: Prompt) -> list[int]:
        chat = is_chat(prompt)
        if not chat:
            found: list[int] = self._model.tokenize(str(prompt).encode(), add_bos=True, special=False)
            return found
        template = self._model.metadata.get("tokenizer.chat_template")
        if template is None:
            raise ModelError("the prompt is a chat, and the GGUF file has no chat template: give a text")
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        end, begin = (
            self._model.detokenize([token], special=True).decode()
            for token in (self._model.token_eos(), self._model.token_bos())
        )
        written = Jinja2ChatFormatter(template=template, eos_token=end, bos_token=begin)(
            messages=prompt
        ).prompt
        ids: list[int] = self._model.tokenize(written.encode(), add_bos=False, special=True)
        return ids
