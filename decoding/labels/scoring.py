"""Exact label probabilities, by one pass of the model over the token trie of all labels.

The probability of a label is that of its tokens after the prompt, times that of the end token after them (so "sad" gets
no credit for "sadness"). It is normalized over the set of labels. The token sequences of all labels form a trie. One
call of the model scores the trie; each node attends only to the prompt and to its own ancestors (``trie_pass``).

Token sequences: the tokenizer's own of each label (``"canonical"``), or all that spell it (``"all"``), whose sum is the
probability of the text itself. A model's prediction depends on all tokens before, not on an automaton state. So all
paths of the token automaton are summed, and their number, exponential in a label's length, is bounded. For several
labels use ``label_lists``, for sets that are too large to score ``search``.

Cost: nodes of the trie times the model's cost of a token, in calls of up to a thousand nodes. Rejected: one row for
each label (the prompt's cache copied, shared prefixes scored again), and scores of the first tokens only.

Source of the task: "Constrained decoding for taxonomies" (docs/decoding/label-scoring.md lists which of its bugs are
tests here).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, checked_but
from tokenfst.decoding.labels.trie_pass import score_trie
from tokenfst.decoding.labels.tries import LeadingSpace, Tokenization, label_texts, label_trie, model_over
from tokenfst.decoding.models.language_model import Prompts, prompt_rows
from tokenfst.decoding.models.tree_session import tree_sessions
from tokenfst.decoding.search.jump_forward import Encode
from tokenfst.errors import DecodingError, LogitsError, MissingDependencyError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


@dataclass(frozen=True, slots=True)
class LabelScores:
    """``labels``, and float64 tensors of shape (prompts, labels).

    ``log_probs``: ln p(label | prompt), normalized over the labels. ``joint``: ln of the probability that the model
    continues with the label, and ends after it if the end was requested.
    """

    labels: tuple[str, ...]
    log_probs: torch.Tensor
    joint: torch.Tensor

    @checked
    def best(self, count: int = 1) -> list[list[tuple[str, float]]]:
        """The ``count`` most probable labels of each prompt (or all, if there are fewer) with their probabilities, best
        first.
        """
        if count < 1:
            raise DecodingError(f"count must be at least 1, not {count}")
        found = self.log_probs.topk(min(count, len(self.labels)), dim=1)
        return [
            [(self.labels[place], value) for place, value in zip(places, values, strict=True)]
            for places, values in zip(found.indices.tolist(), found.values.exp().tolist(), strict=True)
        ]


@checked_but("labels")
def label_probabilities(
    model: Any,
    prompts: Prompts,
    labels: Sequence[str],
    vocabulary: Vocabulary,
    *,
    tokenization: Tokenization = "canonical",
    leading_space: LeadingSpace = "none",
    end: bool = True,
    encode: Encode | None = None,
    budget: Budget | None = None,
    width: int | None = None,
) -> LabelScores:
    """The probability of each label after each prompt.

    ``tokenization``: score only the tokenizer's own token sequence of each label (``"canonical"``), or sum over all of
    its token sequences (``"all"``). ``leading_space="required"``: a space before every label, as after a prompt that
    ends with a word. ``end``: whether an end token must follow; without it a label has the probability of all texts
    that start with it. ``encode``: a function from the bytes of a text (UTF-8) to the tokenizer's own token ids, as for
    ``generate``; by default the vocabulary's own byte-pair encoding. ``width``: the number of scores, if ``model`` is a
    function.

    Raises ``ConstraintError`` and ``LabelError`` for invalid labels, ``TokenizationError`` if the tokenizer is not
    known or does not reproduce a label, ``BudgetExceeded`` beyond ``budget.positions`` nodes,
    ``VocabularyMismatchError``, ``ModelError``; ``LogitsError`` if all labels have probability zero after a prompt.
    """
    language_model = model_over(model, vocabulary, width)
    begun = prompt_rows(prompts)
    labels = label_texts("label_probabilities", labels)
    trie = label_trie(labels, vocabulary, tokenization, leading_space, encode, budget or Budget())
    stops = vocabulary.eos_token_ids if end else ()
    joint = torch.cat([score_trie(session, trie, stops) for session in tree_sessions(language_model, begun)])
    return LabelScores(tuple(labels), normalised(joint), joint)


@checked
def classify(
    model: Any, prompts: Prompts, labels: Sequence[str], vocabulary: Vocabulary, **options: Any
) -> list[str]:
    """The most probable label of each prompt; options and errors are those of ``label_probabilities``."""
    scores = label_probabilities(model, prompts, labels, vocabulary, **options)
    return [best[0][0] for best in scores.best()]


def normalised(joint: torch.Tensor) -> torch.Tensor:
    """ln of probabilities, normalized to sum to one in each row. Raises ``LogitsError`` for a row without any
    probability.
    """
    total = joint.logsumexp(dim=1, keepdim=True)
    if not bool(total.isfinite().all()):
        row = int((~total.isfinite()).nonzero()[0, 0])
        raise LogitsError(f"the model gives none of the labels a probability after prompt {row}")
    return joint - total
