"""Generation by transformers: ``model.generate`` with ``ConstraintLogitsProcessor``, in every mode with one result.

Invariant: the constraint accepts a text token by token before it is returned. If something else ended the text
(``stop_strings`` of a generation config, a stopping criterion), DecodingError says so.

``generate`` calls a streamer from inside of its loop, so a stream runs it in a separate thread and takes the tokens
from a queue. Closing the stream early stops the loop at its next token.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tokenfst.common.arguments import refuse, shown
from tokenfst.common.plurals import counted
from tokenfst.common.token_ids import check_width
from tokenfst.decoding.generation.hosts import LocalHost, Prompt, is_chat
from tokenfst.decoding.generation.targets import Compiled
from tokenfst.decoding.search.logits_processor import ConstraintLogitsProcessor
from tokenfst.decoding.search.scores_processor import ScoresLogitsProcessor
from tokenfst.errors import DecodingError, ModelError
from tokenfst.tokenizers.adapters.huggingface import from_huggingface
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    from tokenfst.errors import MissingDependencyError

    raise MissingDependencyError(
        'a model of transformers needs transformers: pip install "tokenfst[transformers]"'
    ) from error

_OURS = {
    "input_ids": "the prompt is the first argument",
    "inputs": "the prompt is the first argument",
    "attention_mask": "it is made here",
    "max_length": "give max_new_tokens",
    "max_tokens": "give max_new_tokens",
    "streamer": "use Generator.stream",
    "stopping_criteria": "the text could end before it is complete; make the end a part of the constraint",
    "stop_strings": "the text could end before it is complete; make the end a part of the constraint",
    "max_time": "the text could end before it is complete; give max_new_tokens",
    "eos_token_id": "it is the vocabulary's; give Generator(..., vocabulary=...)",
    "stop": "the text could end before it is complete; make the end a part of the constraint",
    "seed": "call transformers.set_seed(...) before",
    "return_dict_in_generate": "one text is given back",
}


class TransformersHost(LocalHost):
    """Generation by a causal model of transformers with its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, vocabulary: Vocabulary | None) -> None:
        if getattr(model.config, "is_encoder_decoder", False):
            raise ModelError(
                f"Generator: {type(model).__name__} is an encoder-decoder model; causal models are supported. Call "
                "its generate() with a ConstraintLogitsProcessor"
            )
        if not callable(tokenizer):
            refuse("Generator", "tokenizer", tokenizer, "the model's tokenizer of transformers", ModelError)
        ends = getattr(model.generation_config, "eos_token_id", None)
        super().__init__(from_huggingface(tokenizer, eos_token_id=ends) if vocabulary is None else vocabulary)
        config = model.config.get_text_config()
        remedy = "give the tokenizer that the model was trained with"
        name = f"Generator: {type(model).__name__}"
        check_width(config.vocab_size, len(self.vocabulary), name, "the tokenizer", remedy)
        self._model, self._tokenizer = model, tokenizer
        self._room: int | None = getattr(config, "max_position_embeddings", None)

    def generate(
        self,
        prompts: Sequence[Prompt],
        prepared: Sequence[Compiled],
        max_new_tokens: int,
        options: Mapping[str, Any],
    ) -> list[bytes]:
        call = self._call(prompts, prepared, max_new_tokens, options)
        out = self._model.generate(**call)
        width = call["input_ids"].shape[1]
        return [
            self._whole(row, automaton)
            for row, automaton in zip(out[:, width:].tolist(), prepared, strict=True)
        ]

    def stream(
        self, prompt: Prompt, prepared: Compiled, max_new_tokens: int, options: Mapping[str, Any]
    ) -> Iterator[bytes]:
        if options.get("num_beams", 1) not in (None, 1):
            raise DecodingError(
                "num_beams: beam search changes earlier tokens, so it cannot be streamed; use generator(...)"
            )
        call = self._call([prompt], [prepared], max_new_tokens, options)
        return self._pieces(call, prepared)

    def _pieces(self, call: dict[str, Any], automaton: Compiled) -> Iterator[bytes]:
        streamer = _Streamer()
        thread = threading.Thread(target=streamer.run, args=(self._model.generate, call), daemon=True)
        thread.start()
        tokens: list[int] = []
        text = b""
        try:
            for new in streamer:
                tokens += new
                whole = self._spelled(tokens)  # the bytes of the first token differ in some tokenizers
                if len(whole) > len(text):
                    yield whole[len(text) :]
                    text = whole
        finally:
            streamer.stop()
            thread.join()
        self._whole(tokens, automaton)

    def _call(
        self,
        prompts: Sequence[Prompt],
        automata: Sequence[Compiled],
        max_new_tokens: int,
        options: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The arguments of ``generate``. Prompts are padded on the left. Any token can pad; the end token is used. The
        model ignores it.
        """
        for name in options:
            if name in _OURS:
                raise DecodingError(f"{name} cannot be given to a Generator: {_OURS[name]}")
        if options.get("num_return_sequences", 1) not in (None, 1):
            raise DecodingError(
                "num_return_sequences must be 1: give the prompt several times to Generator.batch"
            )
        rows = [self._ids(prompt) for prompt in prompts]
        longest = max(map(len, rows))
        if self._room is not None and longest + max_new_tokens > self._room:
            raise ModelError(
                f"a prompt of {counted(longest, 'token')} and max_new_tokens={max_new_tokens:,} are more than the "
                f"{self._room:,} positions of {type(self._model).__name__}: shorten one of them"
            )
        ends = list(self.vocabulary.eos_token_ids)
        pads = [longest - len(row) for row in rows]
        device = self._model.device
        processor = ConstraintLogitsProcessor(list(automata), max_new_tokens=max_new_tokens)
        others, scored = self.split_scores(options)
        own = options.get("logits_processor") or ()
        if not isinstance(own, Iterable):
            refuse("Generator", "logits_processor", own, "a list of logits processors")
        fused = [ScoresLogitsProcessor(scored["scores"], scored["scores_weight"])] if scored else []
        return {
            **others,
            "input_ids": torch.tensor(
                [[ends[0]] * pad + row for pad, row in zip(pads, rows, strict=True)], device=device
            ),
            "attention_mask": torch.tensor(
                [[0] * pad + [1] * (longest - pad) for pad in pads], device=device
            ),
            "max_new_tokens": max_new_tokens,
            "eos_token_id": ends,
            "pad_token_id": ends[0],
            "logits_processor": [*own, *fused, processor],
        }

    def _ids(self, prompt: Prompt) -> list[int]:
        if is_chat(prompt):
            written = self._written(prompt)
            ids = self._tokenizer(written, add_special_tokens=False)["input_ids"]
        else:
            ids = self._tokenizer(prompt)["input_ids"]
        if not ids:
            raise ModelError("the prompt has no tokens: give at least one character")
        return list(ids)

    def _written(self, chat: Any) -> str:
        """The chat in the tokenizer's template. Raises ModelError if the template is missing or refuses the chat."""
        from jinja2 import TemplateError

        try:
            return str(self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
        except TemplateError as error:
            raise ModelError(f"the tokenizer's chat template refuses the prompt: {error}") from error
        except ValueError as error:
            if getattr(self._tokenizer, "chat_template", None):
                raise
            raise ModelError(
                "the prompt is a chat, and the tokenizer has no chat template: give a text"
            ) from error

    def _whole(self, tokens: list[int], automaton: Compiled) -> bytes:
        """The text of the tokens, if the constraint accepts it."""
        ends = self.vocabulary.eos_token_ids
        length = next((place for place, token in enumerate(tokens) if token in ends), len(tokens))
        matcher = automaton.matcher()
        if not matcher.accept_tokens(tokens[:length]) or not matcher.is_accepting():
            raise DecodingError(
                f"generate() ended the text before it was complete, after {counted(length, 'token')}: look for "
                "stop_strings or "
                f"max_time in the model's generation config, or another logits processor. The text so far is "
                f"{shown(self._spelled(tokens[:length]))}"
            )
        return self._spelled(tokens[:length])


class _Stopped(Exception):
    """The stream was closed."""


class _Streamer:
    """The streamer of ``generate`` in one thread, and the source of tokens in another."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[list[int] | BaseException | None] = queue.SimpleQueue()
        self._stopped = False
        self._begun = False

    def run(self, generate: Any, call: dict[str, Any]) -> None:
        """Generate, and pass errors on."""
        try:
            generate(**call, streamer=self)
        except _Stopped:
            pass
        except BaseException as error:
            self._queue.put(error)
        self._queue.put(None)

    def put(self, value: Any) -> None:
        """The tokens of a step; the first call has the prompt."""
        if self._stopped:
            raise _Stopped
        if self._begun:
            self._queue.put(value.reshape(-1).tolist())
        self._begun = True

    def end(self) -> None:
        """The end of ``generate`` needs no action."""

    def stop(self) -> None:
        """Stop: no more tokens are needed."""
        self._stopped = True

    def __iter__(self) -> Iterator[list[int]]:
        while (found := self._queue.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found
