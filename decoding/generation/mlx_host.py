"""Generation by MLX-LM: ``generate_step`` for one prompt and for streams, its batch generator for several prompts.

Tokens are taken from those loops as they arrive, so texts are their exact bytes. Both compute one token ahead, with an
``MLXConstraint`` for each prompt, so every returned token was accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tokenfst.decoding.engines.mlx import MLXConstraint, mlx_vocabulary
from tokenfst.decoding.generation.hosts import SCORES, LocalHost, Prompt, is_chat, pieces
from tokenfst.decoding.generation.targets import Compiled
from tokenfst.errors import DecodingError, MissingDependencyError, ModelError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import mlx.core as mx
    from mlx_lm.generate import BatchGenerator, generate_step
    from mlx_lm.tokenizer_utils import TokenizerWrapper
except ImportError as error:
    raise MissingDependencyError('a model of MLX needs mlx-lm: pip install "tokenfst[mlx]"') from error

_OPTIONS = ("sampler", "logits_processors", "prefill_step_size", "max_kv_size")


class MLXHost(LocalHost):
    """Generation by a model and a tokenizer as ``mlx_lm.load`` returns them."""

    def __init__(self, model: Any, tokenizer: Any, vocabulary: Vocabulary | None) -> None:
        if tokenizer is None:
            raise ModelError("Generator: give the model's tokenizer too: Generator(*mlx_lm.load(name))")
        if not isinstance(tokenizer, TokenizerWrapper):
            tokenizer = TokenizerWrapper(tokenizer)
        super().__init__(mlx_vocabulary(tokenizer) if vocabulary is None else vocabulary)
        self._model, self._tokenizer = model, tokenizer

    def generate(
        self,
        prompts: Sequence[Prompt],
        prepared: Sequence[Compiled],
        max_new_tokens: int,
        options: Mapping[str, Any],
    ) -> list[bytes]:
        if len(prompts) == 1:
            return [b"".join(self.stream(prompts[0], prepared[0], max_new_tokens, options))]
        rows = [self._ids(prompt) for prompt in prompts]
        others, processors = self._call(prepared, max_new_tokens, options)
        ends = [[end] for end in self.vocabulary.eos_token_ids]
        batches = BatchGenerator(self._model, stop_tokens=ends, **others)
        try:
            names = batches.insert(rows, [max_new_tokens] * len(rows), logits_processors=processors)
            tokens: dict[int, list[int]] = {name: [] for name in names}
            while responses := batches.next_generated():
                for each in responses:
                    tokens[each.uid].append(each.token)
        finally:
            batches.close()
        return [b"".join(pieces(tokens[name], self._spelled, max_new_tokens)) for name in names]

    def stream(
        self, prompt: Prompt, prepared: Compiled, max_new_tokens: int, options: Mapping[str, Any]
    ) -> Iterator[bytes]:
        others, (processors,) = self._call([prepared], max_new_tokens, options)
        call = {**others, "logits_processors": processors, "max_tokens": max_new_tokens}
        steps = generate_step(mx.array(self._ids(prompt)), self._model, **call)
        return pieces((token for token, _ in steps), self._spelled, max_new_tokens)

    def _call(
        self, automata: Sequence[Compiled], most: int, options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[list[Any]]]:
        """The options for MLX-LM, and for each automaton the logits processors: the given ones, then the constraint."""
        allowed = (*_OPTIONS, *SCORES)
        for name in options:
            if name not in allowed:
                raise DecodingError(
                    f"{name} cannot be given to a Generator of MLX-LM: its options are {', '.join(allowed)} (for "
                    "temperature and top_p: sampler=mlx_lm.sample_utils.make_sampler(...))"
                )
        others, scored = self.split_scores(options)
        given = list(others.pop("logits_processors", ()))
        return others, [[*given, MLXConstraint(automaton, most, **scored)] for automaton in automata]

    def _ids(self, prompt: Prompt) -> list[int]:
        if is_chat(prompt):
            if not self._tokenizer.has_chat_template:
                raise ModelError("the prompt is a chat, and the tokenizer has no chat template: give a text")
            ids = self._tokenizer.apply_chat_template(prompt, add_generation_prompt=True)
        else:
            ids = self._tokenizer.encode(prompt)
        if not ids:
            raise ModelError("the prompt has no tokens: give at least one character")
        return list(ids)
