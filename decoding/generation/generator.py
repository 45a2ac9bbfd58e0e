"""``Generator``: a model that answers with instances of Python types.

    generator = Generator(model, tokenizer)
    person = generator("Who wrote Frankenstein?", Person)

Invariants: every answer is a text of the target's constraint and is complete within ``max_new_tokens`` tokens (the end
token counts as one). If no text is that short, TokenLimitError is raised before the model is called. Compiled targets
are cached: the last ``KEPT`` stay compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, overload

from tokenfst.automata.tools.reading.replies import ToolCall
from tokenfst.common.arguments import checked, checked_but, refuse
from tokenfst.common.clock_cache import Recent
from tokenfst.common.plurals import counted
from tokenfst.decoding.generation.hosts import Prompt, find_host
from tokenfst.decoding.generation.stream import Stream
from tokenfst.decoding.generation.targets import Compiled, Target, key_of, read_target
from tokenfst.decoding.generation.tool_calls import tool_target
from tokenfst.errors import ArgumentTypeError, ArgumentValueError, ModelError, VocabularyMismatchError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_T = TypeVar("_T")
KEPT = 64
"""The number of targets that stay compiled."""


class Generator:
    """Generates text under constraints and parses it.

    ``model``, ``tokenizer``: a causal model of transformers or MLX-LM and its tokenizer; or, without a tokenizer, a
    text-generation pipeline, a ``llama_cpp.Llama``, an ``openai.OpenAI`` (a vLLM server) or an ``Endpoint``.
    ``vocabulary``: overrides the token bytes that are read from the tokenizer. A target, the second argument of every
    call, is a type (a pydantic model, a dataclass, a TypedDict, ``Literal[...]``, an enum, any annotation), a function,
    a regular expression (a str or ``re.compile(...)``), the dict of a JSON Schema, a constraint (``regex(...)``,
    ``lark_grammar(...)``, ...), an automaton compiled for the vocabulary, or ``UNCONSTRAINED`` for any text;
    ``targets`` documents the text and the result for each.

    ``max_new_tokens``: the text is complete after at most this many tokens. ``options`` are passed to
    ``model.generate`` (``do_sample``, ``temperature``, ``num_beams``, ...) or to the engine's own call. If the model
    runs in this process, they may include ``scores``, a ``WeightedLanguage``, ``WeightedGrammar`` or ``NGramModel``
    whose scores are added to the logits, ``scores_weight`` times (docs/research/weights.md).

    A generator is as thread-safe as its model.
    """

    @checked_but("vocabulary")
    def __init__(self, model: Any, tokenizer: Any = None, *, vocabulary: Vocabulary | None = None) -> None:
        if vocabulary is not None and not isinstance(vocabulary, Vocabulary):
            refuse("Generator", "vocabulary", vocabulary, "a Vocabulary", VocabularyMismatchError)
        self._host = find_host(model, tokenizer, vocabulary)
        self._kept: Recent[Any, tuple[Target, Any]] = Recent(KEPT)
        self._model = type(model).__name__

    def __repr__(self) -> str:
        return f"<Generator of {self._model}>"

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the model's tokens, as for ``compile(constraint, generator.vocabulary)``. Raises ModelError
        for a server.
        """
        return self._host.vocabulary

    @overload
    def __call__(
        self, prompt: Prompt, target: type[_T], *, max_new_tokens: int = 256, **options: Any
    ) -> _T: ...
    @overload
    def __call__(self, prompt: Prompt, target: Any, *, max_new_tokens: int = 256, **options: Any) -> Any: ...
    @checked_but("prompt", "target")
    def __call__(self, prompt: Prompt, target: Any, *, max_new_tokens: int = 256, **options: Any) -> Any:
        """The model's answer to ``prompt`` (a text, or the messages of a chat), parsed as ``target`` defines.

        Raises ArgumentTypeError and the errors of ``json_schema`` and ``compile`` for targets without a constraint,
        TokenLimitError if no text is short enough, ModelError and DecodingError for invalid prompts and options.
        Errors of a type's own validators are passed on.
        """
        return self._answers([prompt], [target], max_new_tokens, options)[0]

    @checked_but("prompts")
    def batch(
        self, prompts: Sequence[Prompt], targets: Any, *, max_new_tokens: int = 256, **options: Any
    ) -> list[Any]:
        """The answers to all prompts, generated in one batch. ``targets``: one for all, or a list with one for each,
        such as ``[Person, UNCONSTRAINED]``.
        """
        if isinstance(prompts, str | bytes) or not isinstance(prompts, Sequence):
            refuse("Generator.batch", "prompts", prompts, "a list of prompts", ArgumentTypeError)
        if not prompts:
            refuse("Generator.batch", "prompts", prompts, "at least one prompt", ArgumentValueError)
        listed = targets if isinstance(targets, list | tuple) else [targets] * len(prompts)
        if len(listed) != len(prompts):
            raise ArgumentValueError(
                f"batch: {counted(len(listed), 'target')} for {counted(len(prompts), 'prompt')}: give one for all, or "
                "one for each"
            )
        return self._answers(prompts, listed, max_new_tokens, options)

    @overload
    def stream(
        self, prompt: Prompt, target: type[_T], *, max_new_tokens: int = 256, **options: Any
    ) -> Stream[_T]: ...
    @overload
    def stream(
        self, prompt: Prompt, target: Any, *, max_new_tokens: int = 256, **options: Any
    ) -> Stream[Any]: ...
    @checked_but("prompt", "target")
    def stream(
        self, prompt: Prompt, target: Any, *, max_new_tokens: int = 256, **options: Any
    ) -> Stream[Any]:
        """The answer in pieces: an iterator over texts, whose ``result()`` is the result of a plain call."""
        read, prepared = self._compiled(target)
        _check_limit(max_new_tokens)
        return Stream(self._host.stream(prompt, prepared, max_new_tokens, options), read.parse)

    @checked_but("prompt", "functions")
    def tools(
        self,
        prompt: Prompt,
        functions: Iterable[Any],
        *,
        format: str = "json",
        max_new_tokens: int = 256,
        **options: Any,
    ) -> ToolCall:
        """One call of any of ``functions``, written by the model; ``call()`` of the result executes it.

        ``functions``: functions with annotations, pydantic models or definitions, as for ``tokenfst.tools``.
        ``format``: the model's call format (docs/constraints/tools.md); ``"json"`` is ``{"name": ..., "arguments":
        {...}}``. For several calls, or text around them, use ``tokenfst.tools(...)`` as the target.
        """
        if not isinstance(functions, Iterable) or isinstance(functions, str | bytes | Mapping):
            refuse("Generator.tools", "functions", functions, "a list of functions", ArgumentTypeError)
        listed = tuple(functions)

        def make() -> tuple[Target, Any]:
            return self._made(tool_target(listed, format, self._host.marks))

        known = all(callable(each) for each in listed)
        found = self._kept.get(("tools", format, listed), make) if known else make()
        made: ToolCall = self._run([prompt], [found], max_new_tokens, options)[0]
        return made

    @checked
    def compile(self, target: Any) -> Compiled:
        """The compiled constraint of a target, cached for later calls. Raises ModelError for a server, which compiles
        itself.
        """
        found: Any = self._compiled(target)[1]
        if not isinstance(found, Compiled):
            raise ModelError(
                "compile: a server compiles constraints itself; there is nothing to compile here"
            )
        return found

    def _answers(
        self, prompts: Sequence[Prompt], targets: Sequence[Any], max_new_tokens: int, options: dict[str, Any]
    ) -> list[Any]:
        return self._run(prompts, [self._compiled(target) for target in targets], max_new_tokens, options)

    def _run(
        self,
        prompts: Sequence[Prompt],
        compiled: Sequence[tuple[Target, Any]],
        max_new_tokens: int,
        options: dict[str, Any],
    ) -> list[Any]:
        _check_limit(max_new_tokens)
        texts = self._host.generate(prompts, [prepared for _, prepared in compiled], max_new_tokens, options)
        return [target.parse(text) for (target, _), text in zip(compiled, texts, strict=True)]

    def _compiled(self, target: Any) -> tuple[Target, Any]:
        key = key_of(target)
        if key is None:
            return self._made(read_target(target))
        return self._kept.get(key, lambda: self._made(read_target(target)))

    def _made(self, target: Target) -> tuple[Target, Any]:
        return target, self._host.prepare(target)


def _check_limit(max_new_tokens: int) -> None:
    if max_new_tokens < 1:
        raise ArgumentValueError(f"max_new_tokens must be at least 1, not {max_new_tokens}")
