"""``Host``: the interface of models for ``Generator``, in this process or on a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tokenfst.automata.weighted_grammars.grammar import WeightedGrammar
from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.automata.weights.ngrams import NGramModel
from tokenfst.common.arguments import refuse, shown
from tokenfst.common.clock_cache import Recent
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.generation.endpoint import Endpoint
from tokenfst.decoding.generation.targets import Compiled, Target
from tokenfst.decoding.scores.matcher import ScoreSource
from tokenfst.errors import DecodingError, ModelError, VocabularyMismatchError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Prompt: TypeAlias = "str | Sequence[Mapping[str, Any]]"
"""A text, or the messages of a chat, which the tokenizer's chat template formats."""

SCORES = ("scores", "scores_weight")
"""Options that models in this process accept in addition to those of their engine."""


class Host(Protocol):
    """A model that generates text under constraints, complete within the given number of tokens.

    The result of ``prepare`` for a target, an automaton or a server request, is cached and passed to ``generate`` and
    ``stream``.
    """

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the model's tokens."""

    @property
    def marks(self) -> Vocabulary | None:
        """The vocabulary whose special tokens may be markers of calls; ``None``: markers are text."""

    def prepare(self, target: Target) -> Any:
        """The host's form of a target: an automaton or a server request."""

    def generate(
        self,
        prompts: Sequence[Prompt],
        prepared: Sequence[Any],
        max_new_tokens: int,
        options: Mapping[str, Any],
    ) -> list[bytes]:
        """The text after each prompt, under its constraint."""

    def stream(
        self, prompt: Prompt, prepared: Any, max_new_tokens: int, options: Mapping[str, Any]
    ) -> Iterator[bytes]:
        """The text after one prompt, under its constraint, in pieces as the model writes them."""


class LocalHost:
    """Base class of hosts with the model in this process: its vocabulary, and the automata and scores compiled
    for it.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._spelled = Speller(vocabulary)
        # The language is stored with its scores, so that its id is not reused.
        self._scores: Recent[int, tuple[Any, ScoreSource]] = Recent(4)

    @property
    def marks(self) -> Vocabulary:
        """The model's vocabulary: all of its tokens can be generated."""
        return self.vocabulary

    def prepare(self, target: Target) -> Compiled:
        """The target's automaton. Raises VocabularyMismatchError if it was compiled for another vocabulary."""
        constraint = target.constraint
        if not isinstance(constraint, Compiled):
            return compile(constraint, self.vocabulary)
        if constraint.vocabulary != self.vocabulary:
            raise VocabularyMismatchError(
                f"{constraint!r} was compiled for another vocabulary than the generator's: compile it with "
                "generator.vocabulary"
            )
        return constraint

    def split_scores(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The options for the engine, and those of ``SCORES`` with the scores compiled; the latter are empty if no
        scores are given. The last four languages stay compiled.

        Raises DecodingError for an object that is not a weighted language, grammar or n-gram model;
        VocabularyMismatchError for scores of another vocabulary.
        """
        others = {name: value for name, value in options.items() if name not in SCORES}
        scores = options.get("scores")
        if scores is None:
            if "scores_weight" in options:
                raise DecodingError("scores_weight needs scores, a weighted language or an n-gram model")
            return others, {}
        if isinstance(scores, WeightedLanguage | WeightedGrammar | NGramModel):
            language = scores
            scores = self._scores.get(id(language), lambda: (language, compile(language, self.vocabulary)))[1]
        if not isinstance(scores, ScoreSource):
            raise DecodingError(
                f"scores must be a WeightedLanguage, a WeightedGrammar or an NGramModel, compiled or not, not "
                f"{shown(scores)}"
            )
        if scores.vocabulary != self.vocabulary:
            raise VocabularyMismatchError(
                "scores were compiled for another vocabulary than the generator's: compile them with "
                "generator.vocabulary"
            )
        return others, {"scores": scores, "scores_weight": options.get("scores_weight", 1.0)}


def find_host(model: Any, tokenizer: Any, vocabulary: Vocabulary | None) -> Host:
    """The host of a model or pipeline. Raises ModelError for anything else."""
    library = type(model).__module__.partition(".")[0]
    if isinstance(model, Endpoint) or library == "openai":
        from tokenfst.decoding.generation.openai_host import OpenAIHost

        if tokenizer is not None:
            raise ModelError("Generator: a server has its own tokenizer; leave it out")
        return OpenAIHost(model if isinstance(model, Endpoint) else Endpoint(model), vocabulary)
    if library == "llama_cpp":
        from tokenfst.decoding.generation.llama_host import LlamaHost

        return LlamaHost(model, vocabulary)
    if library == "onnxruntime_genai":
        from tokenfst.decoding.generation.genai_host import GenAIHost

        return GenAIHost(model, tokenizer, vocabulary)
    if any(base.__module__.startswith("mlx.nn.") for base in type(model).__mro__):
        from tokenfst.decoding.generation.mlx_host import MLXHost

        return MLXHost(model, tokenizer, vocabulary)
    if tokenizer is None and hasattr(model, "model") and hasattr(model, "tokenizer"):
        model, tokenizer = model.model, model.tokenizer
    if not hasattr(model, "generate") or not hasattr(model, "config"):
        wanted = (
            "a causal model of transformers, a pipeline of one, a llama_cpp.Llama, a model of mlx_lm or "
            "onnxruntime_genai, an openai.OpenAI or an Endpoint"
        )
        refuse("Generator", "model", model, wanted, ModelError)
    from tokenfst.decoding.generation.transformers_host import TransformersHost

    return TransformersHost(model, tokenizer, vocabulary)


def pieces(tokens: Iterable[int], spelled: Speller, most: int) -> Iterator[bytes]:
    """The bytes of tokens as they arrive, up to an end token or the first ``most`` tokens; no further token is
    requested.
    """
    taken: list[int] = []
    written = b""
    for token in tokens:
        if token in spelled.vocabulary.eos_token_ids:
            break
        taken.append(token)
        whole = spelled(taken)  # the bytes of the first token differ in some tokenizers
        if len(whole) > len(written):
            yield whole[len(written) :]
            written = whole
        if len(taken) == most:
            break


class Speller:
    """The texts of tokens: special tokens as their names, end tokens as nothing."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._names = {
            token: name.encode()
            for name, token in vocabulary.special_tokens.items()
            if token not in vocabulary.eos_token_ids
        }

    def __call__(self, tokens: Sequence[int]) -> bytes:
        """The text of tokens."""
        names, vocabulary = self._names, self.vocabulary
        if names.keys().isdisjoint(tokens):
            return vocabulary.decode(tokens)
        first = next(place for place, token in enumerate(tokens) if token in names)
        rest = (names.get(token) or vocabulary.token_bytes(token) for token in tokens[first:])
        return b"".join([vocabulary.decode(tokens[:first]), *rest])


def is_chat(prompt: object) -> bool:
    """Whether a prompt is a chat. Raises ModelError if it is neither text nor chat."""
    if isinstance(prompt, str):
        return False
    if not (
        isinstance(prompt, list | tuple) and prompt and all(isinstance(each, Mapping) for each in prompt)
    ):
        wanted = "a text, or a list of messages with role and content"
        refuse("Generator", "prompt", prompt, wanted, ModelError)
    return True
