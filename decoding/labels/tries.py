"""The token sequences of labels as one trie: one sequence for each label, or all that spell it.

Invariant: a sequence spells its label, byte for byte, with the requested leading space. Cost: linear in the total
length of the sequences. A label may have exponentially many tokenizations, so the nodes are counted against
``Budget.positions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.pieces.taxonomy import choices
from tokenfst.budget import Budget
from tokenfst.common.arguments import refuse
from tokenfst.common.token_ids import check_width
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.models.language_model import LanguageModel, as_language_model
from tokenfst.decoding.models.token_tree import TokenTree
from tokenfst.decoding.search.jump_forward import Encode
from tokenfst.errors import BudgetExceeded, ConstraintError, TokenizationError
from tokenfst.tokenizers.segmentation.tokenizer import byte_pair_tokenizer
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Tokenization: TypeAlias = Literal["canonical", "all"]
LeadingSpace: TypeAlias = Literal["none", "required"]


@dataclass(frozen=True, slots=True)
class LabelTrie:
    """The token sequences of labels as a trie.

    ``tree``: its nodes. ``ends[i]``: a node at which a sequence of label ``of[i]`` ends; a label may have several such
    nodes or none. ``num_labels``: the number of labels.
    """

    tree: TokenTree
    ends: list[int]
    of: list[int]
    num_labels: int


def label_texts(call: str, labels: Sequence[str]) -> Sequence[str]:
    """The labels of a public call; an iterator is read once. ``choices`` refuses what is left.

    Raises ArgumentTypeError, which names the call, for constraints and for labels in bytes.
    """
    if isinstance(labels, Constraint):
        refuse(call, "labels", labels, "several texts")
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        return labels
    found = labels if isinstance(labels, Sequence) else list(labels)
    for place, label in enumerate(found):
        if isinstance(label, bytes):
            refuse(call, f"labels[{place}]", label, "text")
    return found


def label_trie(
    labels: Sequence[str],
    vocabulary: Vocabulary,
    tokenization: Tokenization,
    leading_space: LeadingSpace,
    encode: Encode | None,
    budget: Budget,
) -> LabelTrie:
    """The trie of ``labels``: with ``tokenization="canonical"`` one sequence for each label, with ``"all"`` every
    sequence that spells a label. Raises ``ConstraintError``, ``LabelError``, ``TokenizationError`` and
    ``BudgetExceeded``.
    """
    checked_tokenization(tokenization, leading_space)
    language = choices(labels, leading_space=leading_space, budget=budget)
    texts = [(" " if leading_space == "required" else "") + label for label in labels]
    number = {text.encode(): place for place, text in enumerate(texts)}
    if tokenization == "canonical":
        tree, ends = TokenTree.of_sequences(canonical_tokens(text, vocabulary, encode) for text in texts)
        return LabelTrie(tree, ends, list(range(len(texts))), len(texts))
    native = compile(language, vocabulary, budget).native
    tree = TokenTree()
    ends, of = [], []
    pending = [(-1, int(native.start))]
    for node, state in pending:
        if native.distance(state) == 0:
            ends.append(node)
            of.append(number[vocabulary.decode(tree.path(node))])
        tokens, targets = native.arcs(state)
        for token, target in zip(tokens.tolist(), targets.tolist(), strict=True):
            pending.append((tree.append(node, token), target))
        if len(tree) > budget.positions:
            raise BudgetExceeded(
                "positions",
                budget.positions,
                "all tokenizations of the labels (score canonical ones instead)",
            )
    return LabelTrie(tree, ends, of, len(texts))


def checked_tokenization(tokenization: str, leading_space: str) -> None:
    """Raise ``ConstraintError`` for invalid settings."""
    if tokenization not in ("canonical", "all"):
        raise ConstraintError(f'tokenization is "canonical" or "all", not {tokenization!r}')
    if leading_space not in ("none", "required"):
        raise ConstraintError(f'leading_space is "none" or "required", not {leading_space!r}')


def canonical_tokens(text: str, vocabulary: Vocabulary, encode: Encode | None) -> list[int]:
    """The tokenizer's own tokens of a text. Raises ``TokenizationError`` if the tokenizer is not known, or if its
    tokens do not spell the text.
    """
    data = text.encode()
    found = list((encode or byte_pair_tokenizer(vocabulary).encode)(data))
    if vocabulary.decode(found) != data:
        raise TokenizationError(
            f"the tokenizer encodes {text!r} as tokens that spell {vocabulary.decode(found)!r}: give one that keeps "
            "texts as they are, without special tokens"
        )
    return found


def model_over(model: Any, vocabulary: Vocabulary, width: int | None) -> LanguageModel:
    """``model`` as a ``LanguageModel``. Raises ``VocabularyMismatchError`` if it has too few scores."""
    language_model = as_language_model(model, width)
    check_width(language_model.width, len(vocabulary))
    return language_model
