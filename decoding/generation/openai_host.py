"""Generation by a server with OpenAI's protocol, through the client of the package ``openai``.

Invariant: a text is checked before it is returned. A server with the backend "tokenfst" (vLLM, SGLang) completes it
within ``max_new_tokens``. If another server cuts a text off or violates the constraint, DecodingError shows the text. A
value of a type or schema may have any JSON spelling; a constraint that defines its spelling is exact.

If a server refuses a request, ModelError has the server's own words. The client handles time-outs and retries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import openai

from tokenfst.common.arguments import shown
from tokenfst.common.plurals import counted
from tokenfst.decoding.generation.endpoint import DIALECTS, Endpoint
from tokenfst.decoding.generation.hosts import Prompt, is_chat
from tokenfst.decoding.generation.server_targets import constraint_for_server
from tokenfst.decoding.generation.targets import Target
from tokenfst.errors import BudgetExceeded, DecodingError, ModelError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_OURS = {
    "model": "it is the endpoint's",
    "messages": "the prompt is the first argument",
    "prompt": "the prompt is the first argument",
    "stream": "use Generator.stream",
    "n": "give the prompt several times to Generator.batch",
    "best_of": "one text is given back",
    "stop": "the text could end before it is complete; make the end a part of the constraint",
    "max_tokens": "give max_new_tokens",
    "max_completion_tokens": "give max_new_tokens",
    "response_format": "it is made from the target",
    "tools": "use Generator.tools",
    "echo": "the prompt is no part of the text",
    "scores": "a server adds no scores; run the model in this process",
    "scores_weight": "a server adds no scores; run the model in this process",
}


class ServerRequest:
    """A request for a server: the fields that carry its target, and the check of the text that the server returns."""

    def __init__(self, endpoint: Endpoint, target: Target) -> None:
        sent = target.for_server or constraint_for_server(target.constraint)
        self.fields = endpoint.fields(sent, target.constraint)
        self._constraint: Any = target.constraint
        self._wider = sent.wider if sent else None

    def holds(self, text: bytes) -> bool:
        """Whether a text satisfies the target."""
        if self._constraint.accepts(text):
            return True
        if self._wider is None:
            return False
        try:
            return bool(self._wider().accepts(text))
        except BudgetExceeded:
            return False


class OpenAIHost:
    """Generation by the server of an ``Endpoint``."""

    def __init__(self, endpoint: Endpoint, vocabulary: Vocabulary | None) -> None:
        if vocabulary is not None:
            raise ModelError("Generator: a server has its own vocabulary; leave vocabulary out")
        self._endpoint, self._client = endpoint, endpoint.client
        self._model = endpoint.model or self._only_model()

    @property
    def vocabulary(self) -> Vocabulary:
        raise ModelError("the vocabulary of a server is not known")

    @property
    def marks(self) -> None:
        """None: a server's text has no special tokens."""

    def prepare(self, target: Target) -> ServerRequest:
        return ServerRequest(self._endpoint, target)

    def generate(
        self,
        prompts: Sequence[Prompt],
        prepared: Sequence[Any],
        max_new_tokens: int,
        options: Mapping[str, Any],
    ) -> list[bytes]:
        calls = [
            self._call(prompt, asked, max_new_tokens, options)
            for prompt, asked in zip(prompts, prepared, strict=True)
        ]
        if len(calls) == 1:
            return [self._answer(*calls[0], prepared[0])]
        with ThreadPoolExecutor(min(len(calls), self._endpoint.at_once)) as pool:
            jobs = [
                pool.submit(self._answer, *call, asked) for call, asked in zip(calls, prepared, strict=True)
            ]
            try:
                return [job.result() for job in jobs]
            except BaseException:
                for job in jobs:
                    job.cancel()
                raise

    def stream(
        self, prompt: Prompt, prepared: Any, max_new_tokens: int, options: Mapping[str, Any]
    ) -> Iterator[bytes]:
        make, call = self._call(prompt, prepared, max_new_tokens, options)
        return self._pieces(make, call, prepared)

    def _pieces(self, make: Any, call: dict[str, Any], asked: ServerRequest) -> Iterator[bytes]:
        try:
            chunks = make(**call, stream=True)
        except openai.OpenAIError as error:
            self._refused(error)
        written, reason = b"", None
        with chunks:
            try:
                for chunk in chunks:
                    for choice in chunk.choices[:1]:
                        reason = choice.finish_reason or reason
                        piece = _bytes(choice.delta.content if hasattr(choice, "delta") else choice.text)
                        if piece:
                            written += piece
                            yield piece
            except openai.OpenAIError as error:
                self._refused(error)
        self._check(written, reason, asked)

    def _call(
        self, prompt: Prompt, asked: ServerRequest, most: int, options: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """The function to call with its arguments; errors are raised before the call."""
        for name in options:
            if name in _OURS:
                raise DecodingError(f"{name} cannot be given to a Generator: {_OURS[name]}")
        fields = dict(asked.fields)
        call = {key: value for key, value in options.items() if key != "extra_body"}
        dialect = DIALECTS[self._endpoint.server]
        call |= {"model": self._model, dialect.room: most}
        chat = is_chat(prompt)
        if not chat and dialect.completes:
            make = self._client.completions.create
            call["prompt"] = prompt
        else:
            make = self._client.chat.completions.create
            call["messages"] = list(prompt) if chat else [{"role": "user", "content": prompt}]
        body = _merged(dict(options.get("extra_body") or {}), fields)
        return make, {**call, "extra_body": body}

    def _answer(self, make: Any, call: dict[str, Any], asked: ServerRequest) -> bytes:
        try:
            answer = make(**call)
        except openai.OpenAIError as error:
            self._refused(error)
        choices = getattr(answer, "choices", None)
        if not choices:
            raise ModelError(f"{self._where()} returned no choices: {shown(answer)}")
        choice = choices[0]
        text = _bytes(choice.message.content if hasattr(choice, "message") else choice.text)
        self._check(text, choice.finish_reason, asked)
        return text

    def _check(self, text: bytes, reason: str | None, asked: ServerRequest) -> None:
        if not asked.holds(text):
            raise DecodingError(
                f"{self._where()} returned a text that violates the constraint, with finish_reason {reason!r}: "
                f"{shown(text)}. "
                + (
                    "Increase max_new_tokens, or serve with the backend tokenfst, which completes texts"
                    if reason == "length"
                    else "Check whether the server supports this kind of request, and which backend it uses"
                )
            )

    def _only_model(self) -> str:
        try:
            listed = [each.id for each in self._client.models.list()]
        except openai.OpenAIError as error:
            self._refused(error)
        if len(listed) != 1:
            raise ModelError(
                f"{self._where()} serves {counted(len(listed), 'model')} ({', '.join(listed[:4])}), and a Generator "
                "takes one: name it, Endpoint(client, name)"
            )
        return str(listed[0])

    def _refused(self, error: openai.OpenAIError) -> NoReturn:
        body = getattr(error, "body", None)
        words = body.get("message") if isinstance(body, dict) else None
        raise ModelError(f"{self._where()} did not answer: {words or error}") from error

    def _where(self) -> str:
        return f"the server at {getattr(self._client, 'base_url', '?')}"


def _merged(given: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """The body of a request: our fields, and those that the caller gave."""
    for key, value in made.items():
        inside = given.get(key)
        given[key] = {**inside, **value} if isinstance(inside, dict) and isinstance(value, dict) else value
    return given


def _bytes(text: str | None) -> bytes:
    return (text or "").encode("utf-8", "surrogateescape")
