"""The five ways to decode with beams that the experiments with text compare, and the scores of their texts.

All decoders rank texts by their log-probability, the end token included; they differ only in the texts that they
search. BLEU-4 is sacrebleu's figure over all texts. ROUGE-L is the mean over the texts, each with the reference that
gives the highest value by rouge-score. Both are computed in lower case.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import sacrebleu
import torch
from rouge_score.rouge_scorer import RougeScorer
from small_model import SmallModel

from tokenfst import ConstraintLogitsProcessor, TokenAutomaton
from tokenfst.decoding.search.beam_search import automata_beam_search

Decoder = Callable[[SmallModel, Sequence[str], Sequence[TokenAutomaton], int, int], list[str]]
"""A function of a model, prompts, a constraint for each prompt, the number of beams and the greatest number of tokens;
it returns one text for each prompt."""


def unmasked(
    loaded: SmallModel, prompts: Sequence[str], automata: Sequence[TokenAutomaton], beams: int, tokens: int
) -> list[str]:
    """transformers' beam search without a constraint."""
    return _searched(loaded, prompts, beams, tokens, [])


def local(
    loaded: SmallModel, prompts: Sequence[str], automata: Sequence[TokenAutomaton], beams: int, tokens: int
) -> list[str]:
    """The same search with masks that ask only whether *some* continuation is allowed, however long."""
    return _searched(loaded, prompts, beams, tokens, [ConstraintLogitsProcessor(list(automata))])


def guided(alpha_min: float, gamma: float) -> Decoder:
    """Automata-guided beam search: masks of what can be completed within the tokens left, and a bonus for tokens that
    lead towards acceptance.
    """

    def decode(
        loaded: SmallModel,
        prompts: Sequence[str],
        automata: Sequence[TokenAutomaton],
        beams: int,
        tokens: int,
    ) -> list[str]:
        found = automata_beam_search(
            loaded.model,
            [loaded.tokenizer(prompt).input_ids for prompt in prompts],
            list(automata),
            num_beams=beams,
            max_new_tokens=tokens,
            alpha_min=alpha_min,
            gamma=gamma,
        )
        return [loaded.vocabulary.decode(each[0].tokens).decode() for each in found]

    return decode


DECODERS: dict[str, Decoder] = {
    "no mask": unmasked,
    "local mask": local,
    "reachability": guided(0.0, math.inf),
    "ABS without ramp": guided(0.5, math.inf),
    "ABS": guided(0.5, 1.0),
}


def _searched(
    loaded: SmallModel, prompts: Sequence[str], beams: int, tokens: int, processors: list[Any]
) -> list[str]:
    batch = loaded.tokenizer(list(prompts), padding=True, return_tensors="pt")
    with torch.no_grad():
        out = loaded.model.generate(
            **batch,
            num_beams=beams,
            max_new_tokens=tokens,
            length_penalty=0.0,
            early_stopping=False,
            logits_processor=processors,
        )
    rows = out[:, batch.input_ids.shape[1] :].tolist()
    return [loaded.vocabulary.decode(row).decode(errors="replace") for row in rows]


def quality(texts: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, float]:
    """BLEU-4 and ROUGE-L, both between 0 and 100."""
    lower = [text.strip().lower() for text in texts]
    right = [[reference.lower() for reference in row] for row in references]
    most = max(map(len, right))
    padded = [[row[index] if index < len(row) else None for row in right] for index in range(most)]
    scorer = RougeScorer(["rougeL"])
    rouge = [
        max(scorer.score(reference, text)["rougeL"].fmeasure for reference in row)
        for row, text in zip(right, lower, strict=True)
    ]
    return sacrebleu.corpus_bleu(lower, padded).score, 100 * sum(rouge) / len(rouge)


def timed(decode: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call and its processor time in seconds. The clock would include other work on the computer."""
    begin = time.process_time()
    result = decode()
    return result, time.process_time() - begin
