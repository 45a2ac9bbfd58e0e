"""Generation by llama.cpp: the loop of ``llama_cpp.Llama.generate`` with a ``LlamaConstraint``, one prompt at a time.

Tokens are taken from that loop as they arrive, so texts are their exact bytes. The loop ends at an end token or at the
last allowed token, after which the text is complete. Options are those of ``Llama.generate``, and ``temperature`` and
``seed`` as ``Llama.create_completion`` has them. Without ``seed`` each text has a different seed, drawn from the
model's own.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import llama_cpp

from tokenfst.common.plurals import counted
from tokenfst.decoding.engines.llama_cpp import LlamaConstraint, llama_vocabulary
from tokenfst.decoding.generation.hosts import SCORES, LocalHost, Prompt, is_chat, pieces
from tokenfst.decoding.generation.targets import Compiled
from tokenfst.errors import DecodingError, ModelError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_OURS = ("tokens", "stopping_criteria", "grammar", "logits_processor", "reset")


class LlamaHost(LocalHost):
    """Generation by a ``llama_cpp.Llama``."""

    def __init__(self, model: Any, vocabulary: Vocabulary | None) -> None:
        super().__init__(llama_vocabulary(model) if vocabulary is None else vocabulary)
        self._model = model
        self._seeds = random.Random(getattr(model, "_seed", None))

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
        seed = options.pop("seed", None)
        self._model.set_seed(self._seeds.getrandbits(32) if seed is None else seed)
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
        known = [name for name in inspect.signature(self._model.generate).parameters if name not in _OURS]
        for name in options:
            if name not in (*known, "temperature", "seed", *SCORES):
                raise DecodingError(
                    f"{name} cannot be given to a Generator of llama.cpp: its options are {', '.join(known)}, "
                    "temperature and seed"
                )
        if "temp" in options and "temperature" in options:
            raise DecodingError("temp and temperature are one option of llama.cpp: give one of them")
        tokens = self._ids(prompt)
        room = self._model.n_ctx()
        if not tokens or len(tokens) + most > room:
            raise ModelError(
                f"a prompt of {counted(len(tokens), 'token')} and max_new_tokens={most:,}: the model's context has "
                f"{counted(room, 'token')}, and a prompt needs at least one"
            )
        others, scored = self.split_scores(options)
        if "temperature" in others:
            others["temp"] = others.pop("temperature")
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
