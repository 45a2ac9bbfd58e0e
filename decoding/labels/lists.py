"""Lists of labels with exact probabilities: the texts of ``multi_choice``, one label at a time.

The next item is an unused label or the end. Their normalized probabilities come from one pass over a trie
(``trie_pass``). The probability of a label includes that something allowed follows it: the end, if there are enough
labels then, or the first token of a separator and a remaining label, if there may be more. So the product over a list
is a distribution over all lists, and the probability of a set is the sum over its orders. ``multi_label`` takes the
most probable label each time; ``label_lists`` keeps the most probable list prefixes, as beams, and reports the total
probability of its results.

Cost: ``multi_label`` takes a pass for each label chosen; ``label_lists`` a pass for each list position, over all beams
in one batch, rereading their prompts and labels. Rejected for sets: summing over the orders of each set separately,
which takes n! passes where beams share them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from tokenfst.automata.pieces.taxonomy import multi_choice
from tokenfst.common.arguments import checked_but
from tokenfst.decoding.labels.scoring import normalised
from tokenfst.decoding.labels.trie_pass import score_trie
from tokenfst.decoding.labels.tries import LabelTrie, LeadingSpace, canonical_tokens, label_texts, model_over
from tokenfst.decoding.models.language_model import TreeSession, one_prompt
from tokenfst.decoding.models.token_tree import TokenTree
from tokenfst.decoding.models.tree_session import tree_session, tree_sessions
from tokenfst.decoding.search.jump_forward import Encode
from tokenfst.errors import DecodingError, MissingDependencyError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


_Beginning: TypeAlias = tuple[tuple[str, ...], list[int], float]
"""A list prefix: its labels, all tokens so far including the prompt's, and ln of its probability."""

_Stops: TypeAlias = tuple[tuple[int, ...], frozenset[int]]
"""The tokens that may follow the next label; and those of them that begin the continuation by one remaining label only.
The latter may not follow that label itself.
"""


@dataclass(frozen=True, slots=True)
class LabelLists:
    """``lists``: lists of labels in the order in which they are written, with their probabilities, best first."""

    lists: tuple[tuple[tuple[str, ...], float], ...]

    @property
    def covered(self) -> float:
        """The total probability of the lists: 1 if none was omitted."""
        return sum(share for _, share in self.lists)

    def sets(self) -> list[tuple[frozenset[str], float]]:
        """The sets of labels, summed over their orders, best first. A lower bound unless ``covered`` is 1."""
        found: dict[frozenset[str], float] = {}
        for labels, share in self.lists:
            found[frozenset(labels)] = found.get(frozenset(labels), 0.0) + share
        return sorted(found.items(), key=lambda each: -each[1])

    def marginals(self) -> dict[str, float]:
        """The probability that each label is in the list, best first. A lower bound unless ``covered`` is 1."""
        found: dict[str, float] = {}
        for labels, share in self.lists:
            for label in labels:
                found[label] = found.get(label, 0.0) + share
        return dict(sorted(found.items(), key=lambda each: -each[1]))


@checked_but("prompt", "labels")
def multi_label(
    model: Any,
    prompt: Sequence[int],
    labels: Sequence[str],
    vocabulary: Vocabulary,
    *,
    separator: str = ", ",
    threshold: float = 0.5,
    min: int = 1,
    max: int | None = None,
    leading_space: LeadingSpace = "none",
    encode: Encode | None = None,
    width: int | None = None,
) -> list[tuple[str, float]]:
    """Several different labels, as in a text of ``multi_choice``, each with its probability.

    Each label is the most probable one after the prompt and the labels before it. Its probability is relative to all
    possible next items: the unused labels and the end. The list stops before a label whose probability is less than
    ``threshold`` (but not before ``min`` labels), or after ``max`` labels. A label's probability includes that an
    allowed end or separator follows: the end only after at least ``min`` labels, and a separator by the first tokens
    that it has before a remaining label. Returns the labels in the order of the list.

    ``separator``: the text between two labels. The other options are those of ``label_probabilities``. Raises the
    errors of ``label_probabilities`` and ``multi_choice``.
    """
    if not 0 <= threshold <= 1:
        raise DecodingError(f"threshold={threshold} is not a probability")
    labels = label_texts("multi_label", labels)
    language_model = model_over(model, vocabulary, width)
    ways = _Ways(labels, vocabulary, separator, min, max, leading_space, encode)
    session = tree_session(language_model.start([one_prompt(prompt)]))
    found: dict[str, float] = {}
    while len(found) < ways.most:
        left = [label for label in labels if label not in found]
        shares = ways.following(session, left, ways.stops(found), len(found))[0].exp()
        place = int(shares[: len(left)].argmax())
        if len(found) >= min and float(shares[place]) < threshold:
            break
        sequence = ways.sequences(len(found))[left[place]]
        found[left[place]] = float(shares[place])
        if len(found) < ways.most:
            ids = torch.tensor([sequence], device=language_model.device)
            session.extend(torch.zeros(1, dtype=torch.long, device=ids.device), ids)
    return list(found.items())


@checked_but("prompt", "labels")
def label_lists(
    model: Any,
    prompt: Sequence[int],
    labels: Sequence[str],
    vocabulary: Vocabulary,
    *,
    beams: int = 16,
    separator: str = ", ",
    min: int = 1,
    max: int | None = None,
    leading_space: LeadingSpace = "none",
    encode: Encode | None = None,
    width: int | None = None,
) -> LabelLists:
    """Probable lists of different labels, by beam search: at most ``beams``, and all lists if there are no more.

    The probabilities are exact, but more probable lists are missed if their beginnings are not among the ``beams`` most
    probable ones of their length. The probabilities of each label and of the end, the other options and the errors are
    those of ``multi_label``.
    """
    if beams < 1:
        raise DecodingError(f"beams={beams} is out of range: it must be 1 or more")
    labels = label_texts("label_lists", labels)
    language_model = model_over(model, vocabulary, width)
    ways = _Ways(labels, vocabulary, separator, min, max, leading_space, encode)
    asked = one_prompt(prompt)
    live: list[_Beginning] = [((), [], 0.0)]
    done: list[tuple[tuple[str, ...], float]] = []
    for count in range(ways.most):
        alike: dict[_Stops, list[_Beginning]] = {}
        for each in live:
            alike.setdefault(ways.stops(each[0]), []).append(each)
        live = []
        for stops, some in alike.items():
            rows = iter(some)
            shares = []
            written = [tokens for _, tokens, _ in some]
            for session in tree_sessions(language_model, [asked] * len(some), written):
                own = [used for used, _, _ in islice(rows, len(session.logits))]
                shares += ways.following(session, labels, stops, count, own).tolist()
            for (used, tokens, value), row in zip(some, shares, strict=True):
                if count >= min:
                    done.append((used, value + row.pop()))
                live += [
                    ((*used, label), tokens + ways.sequences(count)[label], value + share)
                    for label, share in zip(labels, row, strict=True)
                    if share > -torch.inf
                ]
        live = sorted(live, key=lambda each: -each[2])[:beams]
    done += [(used, value) for used, _, value in live]
    best = sorted(done, key=lambda each: (-each[1], each[0]))[:beams]
    return LabelLists(tuple((used, math.exp(value)) for used, value in best if value > -torch.inf))


class _Ways:
    """The continuations of lists: the tokens of each label at the beginning and after a separator. Checks the
    options.
    """

    def __init__(
        self,
        labels: Sequence[str],
        vocabulary: Vocabulary,
        separator: str,
        least: int,
        most: int | None,
        leading_space: LeadingSpace,
        encode: Encode | None,
    ) -> None:
        # Raises an error that says what is wrong.
        multi_choice(labels, separator, min=least, max=most, leading_space=leading_space)
        space = " " if leading_space == "required" else ""
        self._first = {label: canonical_tokens(space + label, vocabulary, encode) for label in labels}
        self._later = {label: canonical_tokens(separator + label, vocabulary, encode) for label in labels}
        self._ends = list(vocabulary.eos_token_ids)
        self._least = least
        self.most = len(labels) if most is None else min(most, len(labels))

    def sequences(self, count: int) -> dict[str, list[int]]:
        """The tokens of each label after ``count`` others."""
        return self._later if count else self._first

    def stops(self, used: Collection[str]) -> _Stops:
        """The possible continuations after a label and ``used`` ones: the end, if there are enough labels then, or
        a separator and another label, if there may be more.
        """
        more: Counter[int] = Counter()
        if len(used) + 1 < self.most:
            more.update(tokens[0] for label, tokens in self._later.items() if label not in used)
        ends = self._ends if len(used) + 1 >= self._least else []
        return (*ends, *sorted(more)), frozenset(token for token, count in more.items() if count == 1)

    def following(
        self,
        session: TreeSession,
        labels: Sequence[str],
        stops: _Stops,
        count: int,
        used: Sequence[Collection[str]] = (),
    ) -> torch.Tensor:
        """ln of the probabilities of the items that may follow ``count`` labels, float64, one row for each row of
        the session.

        The columns are ``labels``, without those ``used`` in a row, and at last the end, if there are enough
        labels.
        """
        may_follow, alone = stops
        tree, nodes = TokenTree.of_sequences(self.sequences(count)[label] for label in labels)
        firsts = [self._later[label][0] for label in labels]
        without = {node: first for node, first in zip(nodes, firsts, strict=True) if first in alone}
        trie = LabelTrie(tree, nodes, list(range(len(labels))), len(labels))
        joint = score_trie(session, trie, may_follow, without)
        for row, own in enumerate(used):
            joint[row, [place for place, label in enumerate(labels) if label in own]] = -torch.inf
        if count >= self._least:
            log_probs = session.logits.double().log_softmax(1)
            joint = torch.cat([joint, log_probs[:, self._ends].logsumexp(1, keepdim=True)], dim=1)
        return normalised(joint)
