"""What generates: the little that ``Generator`` asks of a model, wherever it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tokenfst.arguments import shown
from tokenfst.decoding.generation.targets import Compiled
from tokenfst.errors import ModelError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Prompt: TypeAlias = "str | Sequence[Mapping[str, Any]]"
"""A text, or the messages of a chat, which the tokenizer's chat template writes."""


class Host(Protocol):
    """A model that generates text under compiled constraints, complete within the number of tokens."""

    @property
    def vocabulary(self) -> Vocabulary:
        """What the model's tokens spell."""

    def generate(
        self,
        prompts: Sequence[Prompt],
        automata: Sequence[Compiled],
        max_new_tokens: int,
        options: Mapping[str, Any],
    ) -> list[bytes]:
        """The text after each prompt, under its constraint."""

    def stream(
        self, prompt: Prompt, automaton: Compiled, max_new_tokens: int, options: Mapping[str, Any]
    ) -> Iterator[bytes]:
        """The same for one prompt, in pieces."""


def find_host(model: Any, tokenizer: Any, vocabulary: Vocabulary | None) -> Host:
    """The host of a model, or of a pipeline of one. ModelError for what is none."""
    if type(model).__module__.partition(".")[0] == "llama_cpp":
        from tokenfst.decoding.generation.llama_host import LlamaHost

        return LlamaHost(model, vocabulary)
    if tokenizer is None and hasattr(model, "model") and hasattr(model, "tokenizer"):
        model, tokenizer = model.model, model.tokenizer
    if hasattr(model, "generate") and hasattr(model, "config"):
        from tokenfst.decoding.generation.transformers_host import TransformersHost

        return TransformersHost(model, tokenizer, vocabulary)
    raise ModelError(
        "Generator: model must be a causal model of transformers, a pipeline of one, or a llama_cpp.Llama, not "
        f"{shown(model)}"
    )


def is_chat(prompt: object) -> bool:
    """Whether a prompt is a chat. ModelError for what is neither text nor chat."""
    if isinstance(prompt, str):
        return False
    if isinstance(prompt, list | tuple) and prompt and all(isinstance(each, Mapping) for each in prompt):
        return True
    raise ModelError(
        f"a prompt must be text, or a list of messages with role and content, not {shown(prompt)}"
    )
