"""Automata-guided beam search inside transformers.

``model.generate(..., custom_generate=automata_beam_generate(automaton))``.

transformers has no hook for a scorer in its beam search, but it can delegate the whole generation to
``custom_generate``. The search uses what transformers prepared: the prompts without their left padding, and from the
generation config ``num_beams``, ``num_return_sequences``, ``max_new_tokens``, ``length_penalty`` and
``return_dict_in_generate``. Options that the search cannot honour (other logits processors, other stopping criteria,
embeddings instead of ids) raise an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tokenfst.common.arguments import checked_but
from tokenfst.common.renamed import old_names
from tokenfst.decoding.rows.generations import Generation
from tokenfst.decoding.rows.reach_rows import Length
from tokenfst.decoding.rows.rows import check_compiled
from tokenfst.decoding.search.beam_search import automata_beam_search
from tokenfst.errors import MissingDependencyError, ModelError

try:
    import torch
    from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria
    from transformers.generation.utils import GenerateBeamDecoderOnlyOutput
except ImportError as error:
    raise MissingDependencyError(
        'automata_beam_generate needs transformers: pip install "tokenfst[transformers]"'
    ) from error

if TYPE_CHECKING:
    from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton

_KNOWN = {"attention_mask", "position_ids", "token_type_ids", "past_key_values"}
"""Tensors and caches that are derived from the prompts: the search creates its own."""


@checked_but("automata")
def automata_beam_generate(
    automata: TokenAutomaton | Sequence[TokenAutomaton],
    *,
    length: Length = "at_most",
    count_end: bool = False,
    alpha_min: float = 0.5,
    gamma: float = 1.0,
    rank_by: Literal["log_prob", "pushed"] = "log_prob",
) -> Callable[..., Any]:
    """A function for ``generate(custom_generate=...)`` that searches by ``automata_beam_search``, with the same
    options.

    ``generate`` then returns ids of shape (prompts * num_return_sequences, length), padded on the right by the
    generation config's pad token, or the first end token; with ``return_dict_in_generate`` also ``sequences_scores``,
    the ranking scores. ``length_penalty`` is the config's: 1 by default. If a prompt has fewer sequences than
    requested, its remaining rows contain the prompt only and have a score of -inf.
    """
    check_compiled(automata)

    def decode(
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Sequence[Any] | None = None,
        stopping_criteria: Sequence[Any] | None = None,
        generation_config: Any = None,
        **kwargs: Any,
    ) -> Any:
        config = generation_config
        _check_nothing_is_lost(logits_processor or (), stopping_criteria or (), kwargs)
        # generate() repeats each prompt before it calls this function.
        every = max(config.num_beams, config.num_return_sequences)
        ids, mask = input_ids[::every], kwargs.get("attention_mask")
        kept = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask[::every].bool()
        found = automata_beam_search(
            model,
            [row[keep].tolist() for row, keep in zip(ids, kept, strict=True)],
            automata,
            num_beams=config.num_beams,
            max_new_tokens=config.max_length - ids.shape[1],
            length=length,
            count_end=count_end,
            alpha_min=alpha_min,
            gamma=gamma,
            rank_by=rank_by,
            length_penalty=config.length_penalty,
            num_return_sequences=config.num_return_sequences,
        )
        pad = config.pad_token_id
        if pad is None:
            first = automata[0] if isinstance(automata, Sequence) else automata
            pad = first.vocabulary.eos_token_ids[0]
        return _output(ids, found, config, pad)

    return decode


def _check_nothing_is_lost(
    processors: Sequence[Any], criteria: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    for processor in processors:
        raise ModelError(
            f"automata-guided beam search does not apply {type(processor).__name__}: take it out of logits_processor, "
            "or the option that asks for it out of the generation config"
        )
    for criterion in criteria:
        if not isinstance(criterion, EosTokenCriteria | MaxLengthCriteria):
            raise ModelError(
                f"automata-guided beam search does not apply {type(criterion).__name__}: texts end where the "
                "constraint says so. Take it out of stopping_criteria"
            )
    for name, value in kwargs.items():
        if name not in _KNOWN and isinstance(value, torch.Tensor):
            raise ModelError(
                f"automata-guided beam search takes prompts of token ids only, not {name}: wrap such a model as a "
                "LanguageModel and call automata_beam_search()"
            )


def _output(ids: torch.Tensor, found: list[list[Generation]], config: Any, pad: int) -> Any:
    each, prompt = config.num_return_sequences, ids.shape[1]
    longest = max(len(one.tokens) for ways in found for one in ways)
    sequences = ids.new_full((len(found) * each, prompt + longest), pad)
    scores = torch.full((len(sequences),), -math.inf)
    for number, ways in enumerate(found):
        rows = slice(number * each, (number + 1) * each)
        sequences[rows, :prompt] = ids[number]
        for row, one in enumerate(ways, rows.start):
            sequences[row, prompt : prompt + len(one.tokens)] = ids.new_tensor(one.tokens)
            scores[row] = one.score
    if not config.return_dict_in_generate:
        return sequences
    return GenerateBeamDecoderOnlyOutput(sequences=sequences, sequences_scores=scores.to(ids.device))


if not TYPE_CHECKING:
    __getattr__ = old_names(__name__, {"abs_generate": "automata_beam_generate"})
