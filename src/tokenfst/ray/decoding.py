"""``generate`` on Ray: from a dataset of prompts and constraints to a dataset of texts.

Each actor holds one copy of the model, and processes batches of rows, each row with its own constraint. If a row's
constraint cannot be compiled, or has no text of at most ``max_new_tokens`` tokens, the row gets an error instead of a
text; other rows are not affected. Actors run the model with ``tokenfst.generate`` or with vLLM (``vllm_workers``). If
an actor or a computer is lost, Ray gives its batches to others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, whole
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.store.batch import members_of, reason_of
from tokenfst.decoding.store.entries import Automaton
from tokenfst.decoding.store.store import Store
from tokenfst.errors import ConstraintError, MissingDependencyError, TokenfstError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import ray
    import ray.data

    from tokenfst.ray.artifacts import Shared, shelf
except ImportError as error:
    raise MissingDependencyError('decoding on Ray needs ray: pip install "tokenfst[ray]"') from error

Loaded = tuple[Any, Callable[[str], list[int]]]
"""A model, and a function from text to token ids."""


@checked
def generate(
    dataset: Any,
    model: str | Callable[[], Loaded],
    store: Store,
    vocabulary: Vocabulary,
    *,
    constraint_column: str = "constraint",
    prompt_column: str = "prompt",
    max_new_tokens: int = 256,
    batch_size: int = 8,
    workers: int = 1,
    num_gpus: float = 0,
    budget: Budget | None = None,
    expand: bool = True,
    options: Mapping[str, Any] | None = None,
    engine: Literal["transformers", "vllm"] = "transformers",
    engine_options: Mapping[str, Any] | None = None,
) -> Any:
    """The rows of ``dataset`` with additional columns ``text``, ``tokens``, ``finished`` and ``error``.

    ``text`` is what the model writes after the row's prompt under the row's constraint, ``tokens`` are its token ids
    without the end token, ``finished`` says whether the text is complete, and ``error`` is empty or the reason why
    there is no text. The result is a lazy dataset of Ray Data.

    ``model``: a folder or a name that transformers loads, with its tokenizer; or a function that returns a model
    (as for ``tokenfst.generate``) and a function from text to token ids. This function runs once in each of
    ``workers`` actors. ``constraint_column``: documents as JSON text, like the lines of a batch (``{"json_schema":
    {...}}``). ``vocabulary``: the model's vocabulary. ``options``: those of ``tokenfst.generate``, such as
    ``do_sample``. Constraints that ``store`` does not have are compiled into it; artifacts are sent to each computer
    once.

    ``engine="vllm"``: each actor runs a vLLM engine in its process, with the backend "tokenfst". ``model`` is then what
    ``vllm.LLM`` loads, ``engine_options`` are its further arguments (``max_model_len``, ``tensor_parallel_size``), and
    ``options`` are those of ``vllm.SamplingParams``, such as ``temperature``.

    Raises ``ConstraintError`` if a column is missing or an argument does not belong to the engine.
    """
    if engine not in ("transformers", "vllm"):
        raise ConstraintError(f'generate: engine is "transformers" or "vllm", not {engine!r}')
    if engine == "vllm" and not isinstance(model, str):
        raise ConstraintError("generate: vLLM loads a model by its folder or name: pass that as model")
    if engine_options and engine != "vllm":
        raise ConstraintError('generate: engine_options belong to engine="vllm"; transformers has none')
    whole("generate", "max_new_tokens", max_new_tokens, 1)
    whole("generate", "batch_size", batch_size, 1)
    whole("generate", "workers", workers, 1)
    for column in (constraint_column, prompt_column):
        if column not in (dataset.columns() or ()):
            raise ConstraintError(f"the dataset has no column {column!r}: it has {dataset.columns()}")
    given = {
        "model": model,
        "store": store,
        "shelf": shelf(store),  # the dataset has a handle, so the actor lives as long as the dataset
        "vocabulary": ray.put(vocabulary),
        "columns": (constraint_column, prompt_column),
        "max_new_tokens": max_new_tokens,
        "budget": budget,
        "expand": expand,
        "options": dict(options or {}),
    }
    worker: type[Rows] = Decoder
    if engine == "vllm":
        from tokenfst.ray.vllm_workers import VLLMDecoder

        worker, given["engine_options"] = VLLMDecoder, dict(engine_options or {})
    return dataset.map_batches(
        worker,
        fn_constructor_kwargs=given,
        batch_size=batch_size,
        concurrency=workers,
        num_cpus=1,
        num_gpus=num_gpus or None,
    )


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote: the text, its tokens without the end token, and whether the text is complete."""

    text: str
    tokens: list[int]
    finished: bool


class Rows(ABC):
    """Base class of the actors: it compiles the constraints of a batch of rows, and ``_write`` runs the model."""

    def __init__(
        self,
        store: Store,
        shelf: Any,
        vocabulary: Any,
        columns: tuple[str, str],
        max_new_tokens: int,
        budget: Budget | None,
        expand: bool,
        options: dict[str, Any],
    ) -> None:
        self._vocabulary: Vocabulary = ray.get(vocabulary)
        self._shared = Shared(store, shelf, self._vocabulary, budget, expand)
        self._columns, self._most, self._options = columns, max_new_tokens, options

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The rows, with the texts that the model wrote."""
        constraint, prompt = (list(map(str, batch[column])) for column in self._columns)
        found = [self._automaton(text) for text in constraint]
        errors = [each if isinstance(each, str) else "" for each in found]
        made = [Written("", [], False) for _ in found]
        rows = {row: each for row, each in enumerate(found) if not isinstance(each, str)}
        if rows:
            written = self._write([prompt[row] for row in rows], list(rows.values()))
            for row, each in zip(rows, written, strict=True):
                if isinstance(each, str):
                    errors[row] = each
                else:
                    made[row] = each
        return batch | {
            "text": [each.text for each in made],
            "tokens": [each.tokens for each in made],
            "finished": [each.finished for each in made],
            "error": errors,
        }

    @abstractmethod
    def _write(self, prompts: list[str], automata: list[Automaton]) -> list[Written | str]:
        """For each prompt, what the model wrote, or a message that says why it wrote nothing."""

    def _automaton(self, text: str) -> Automaton | str:
        """The automaton of a row's constraint, or a message that says why there is none."""
        try:
            found = self._shared.automaton(members_of(text), text)
            start_matcher(found, self._most)  # raises as a decoder would, if no text is short enough
            return found
        except (TokenfstError, ValueError, TypeError) as error:
            return reason_of(error)


class Decoder(Rows):
    """The actor whose model is run by ``tokenfst.generate``."""

    def __init__(self, model: str | Callable[[], Loaded], **given: Any) -> None:
        super().__init__(**given)
        self._model, self._encode = _of_transformers(model) if isinstance(model, str) else model()

    def _write(self, prompts: list[str], automata: list[Automaton]) -> list[Written | str]:
        from tokenfst.decoding.search.jump_forward import generate

        made = generate(
            self._model,
            [self._encode(prompt) for prompt in prompts],
            automata,
            max_new_tokens=self._most,
            **self._options,
        )
        return [
            Written(each.text.decode("utf-8", "replace"), list(each.tokens), bool(each.finished))
            for each in made
        ]


def _of_transformers(name: str) -> Loaded:
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as missing:
        raise MissingDependencyError(
            'models by their names need transformers: pip install "tokenfst[transformers]"'
        ) from missing
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name)
    return model.eval(), lambda text: list(tokenizer(text)["input_ids"])
