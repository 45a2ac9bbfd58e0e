"""Constraint state for a batch: the position of each row in its automaton, and the tokens that it allows next.

``ConstraintRows`` corresponds to ``language_model.Session``: it replaces its rows by a selection of them, possibly with
repetitions. A decoder keeps one of each and advances both together:

    rows = ConstraintRows.start(automaton, prompts=2, max_new_tokens=50, width=model.width, device=model.device)
    rows.mask_(log_probs)                    # forbidden tokens to -inf, in place
    rows.extend(parents, tokens)             # row i is now row parents[i] and tokens[i]

Invariants. A row is *finished* after an end token, or when its tokens are used up (its text is then complete, as the
limit guarantees). A finished row allows end tokens only, and ignores further tokens. Every unfinished row allows a
token. Cost: a mask and an advance for each row (about 1 µs each once cached), and a fork if a row continues in several;
masks are sent to the device packed. Near the end of a limit a mask is a walk of the vocabulary: one for all rows in
the same state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tokenfst._native import Matcher
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import renamed
from tokenfst.common.token_ids import check_width
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.masks.bitmask import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_from_ids,
    fill_bitmasks,
)
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.matchers.reach import START, Reach, reach_of
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    MissingDependencyError,
    ModelError,
    TokenLimitError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


AnyAutomaton: TypeAlias = TokenAutomaton | CanonicalAutomaton

_Place: TypeAlias = tuple[Reach, int, int]


class Rows(ABC):
    """The interface of a batch's constraints for decoders.

    ``ConstraintRows`` uses matchers; ``reach_rows.ReachRows`` implements exact numbers of tokens, and
    ``tensor_rows.TensorRows`` those of nondeterministic automata.
    """

    def __init__(self, vocabulary: Vocabulary, width: int, device: torch.device) -> None:
        check_width(width, len(vocabulary), vocabulary="the constraint's vocabulary")
        self.vocabulary = vocabulary
        self.width = width
        self.device = device

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def is_finished(self, row: int) -> bool:
        """Whether the row has taken an end token or has no tokens left."""

    @property
    def finished(self) -> torch.Tensor:
        """Which rows are finished, bool of shape (rows,)."""
        return torch.tensor([self.is_finished(row) for row in range(len(self))], device=self.device)

    @property
    @abstractmethod
    def accepting(self) -> torch.Tensor:
        """Whether the text of each row is accepted, bool of shape (rows,)."""

    @abstractmethod
    def distances(self) -> torch.Tensor:
        """The least number of tokens, not counting the end token, from each row to an accepted text: int64 of shape
        (rows,).

        Upper bounds for push-down automata.
        """

    @abstractmethod
    def tokens(self, row: int) -> list[int]:
        """The tokens of the row, including its end token."""

    @abstractmethod
    def extend(self, parents: Sequence[int] | torch.Tensor, tokens: Sequence[int] | torch.Tensor) -> None:
        """Replace the rows: row i becomes row ``parents[i]`` followed by ``tokens[i]``; both of shape (rows',).

        Finished rows stay unchanged. Raises ``ModelError`` for a token that its row does not allow; then nothing
        changes.
        """

    @abstractmethod
    def mask_(self, scores: torch.Tensor, *, max_new_tokens: Sequence[int] | None = None) -> torch.Tensor:
        """Set the scores, of shape (rows, width), of forbidden tokens to -inf in place, and return them.

        ``max_new_tokens``: for this mask only, the remaining tokens of each row in place of its own limit. The mask has
        the tokens after which ``max_new_tokens - 1`` tokens suffice. A row that these tokens cannot complete allows
        nothing.
        """

    @abstractmethod
    def mask_nearer_(self, scores: torch.Tensor) -> torch.Tensor:
        """Set the scores, of shape (rows, width), of all tokens that do not reduce the distance, including the end
        tokens, to -inf in place, and return them.

        Rows at distance 0 have no tokens left. A token that reduces the distance is not always allowed: apply both
        masks.
        """

    @renamed(left="max_new_tokens")
    def allowed(self, *, max_new_tokens: Sequence[int] | None = None) -> torch.Tensor:
        """The tokens that each row may take next, bool of shape (rows, width)."""
        ones = torch.zeros((len(self), self.width), dtype=torch.float32, device=self.device)
        return self.mask_(ones, max_new_tokens=max_new_tokens) == 0


class PackedRows(Rows):
    """Rows whose masks are packed on the host.

    The first ``mask_nearer_`` for a state, or for a state with its stack, walks the vocabulary.
    """

    def __init__(self, count: int, vocabulary: Vocabulary, width: int, device: torch.device) -> None:
        super().__init__(vocabulary, width, device)
        self._only_end = bitmask_from_ids(vocabulary.eos_token_ids, len(vocabulary))
        self._bitmask = allocate_token_bitmask(count, len(vocabulary))

    @renamed(left="max_new_tokens")
    def mask_(self, scores: torch.Tensor, *, max_new_tokens: Sequence[int] | None = None) -> torch.Tensor:
        self._fill(max_new_tokens)
        for row in range(len(self)):
            if self.is_finished(row):
                self._bitmask[row] = self._only_end
        return self._apply(scores)

    def mask_nearer_(self, scores: torch.Tensor) -> torch.Tensor:
        self._fill_nearer()
        return self._apply(scores)

    def _apply(self, scores: torch.Tensor) -> torch.Tensor:
        apply_token_bitmask_inplace(scores, self._bitmask, vocab_size=len(self.vocabulary), check_nan=False)
        return scores

    def _resize(self) -> None:
        """Fit the masks to the number of rows."""
        if len(self._bitmask) != len(self):
            self._bitmask = allocate_token_bitmask(len(self), len(self.vocabulary))

    @abstractmethod
    def _fill(self, left: Sequence[int] | None) -> None:
        """Write the masks of rows that are not finished."""

    @abstractmethod
    def _fill_nearer(self) -> None:
        """Write the masks of the tokens that reduce the distance."""


class ConstraintRows(PackedRows):
    """One matcher for each row of a batch.

    A stack belongs to its matcher, so the masks of ``mask_nearer_`` for stacks are cached by the configuration numbers
    of ``Reach``.
    """

    def __init__(
        self, automata: Sequence[AnyAutomaton], max_new_tokens: int | None, width: int, device: torch.device
    ) -> None:
        super().__init__(len(automata), automata[0].vocabulary, width, device)
        self.matchers = [start_matcher(automaton, max_new_tokens) for automaton in automata]
        self._automata = list(automata)
        self._places: list[_Place | None] = [None] * len(automata)

    @classmethod
    def start(
        cls,
        automata: AnyAutomaton | Sequence[AnyAutomaton],
        *,
        prompts: int,
        max_new_tokens: int | None,
        width: int,
        device: torch.device,
    ) -> ConstraintRows:
        """A row for each prompt, at the start.

        ``automata``: one for all prompts, or one for each, over one vocabulary. ``max_new_tokens`` counts the end
        token, which is not needed to complete a text. Raises ``VocabularyMismatchError``, ``ModelError`` if prompts and
        automata differ in number, and ``TokenLimitError``, naming the least limit, if no accepted text fits into
        ``max_new_tokens``.
        """
        return cls(one_for_each(automata, prompts), max_new_tokens, width, device)

    def __len__(self) -> int:
        return len(self.matchers)

    def is_finished(self, row: int) -> bool:
        matcher = self.matchers[row]
        return matcher.is_terminated() or matcher.max_tokens_left == 0

    @property
    def accepting(self) -> torch.Tensor:
        return torch.tensor([matcher.is_accepting() for matcher in self.matchers], device=self.device)

    def distances(self) -> torch.Tensor:
        return torch.tensor(
            [0 if m.is_terminated() else m.distance() for m in self.matchers], device=self.device
        )

    def _fill_nearer(self) -> None:
        for row, (automaton, matcher) in enumerate(zip(self._automata, self.matchers, strict=True)):
            self._bitmask[row] = 0
            if matcher.is_terminated():
                continue
            known = self._known_nearer(row, automaton, matcher)
            if known is not None:
                self._bitmask[row] = known
            elif least := matcher.distance():
                self._fill_within(row, _by_distances(automaton, matcher), least)

    def _known_nearer(
        self, row: int, automaton: AnyAutomaton, matcher: AnyMatcher
    ) -> npt.NDArray[np.int32] | None:
        """The cached masks; None for canonical tokens, and if there are more stacks than the budget allows."""
        if not isinstance(automaton, TokenAutomaton):
            return None
        if automaton.native.has_marks or not automaton.is_pushdown:
            return automaton.nearer_mask(matcher) if isinstance(matcher, Matcher) else None
        reach, at, followed = self._places[row] or (reach_of(automaton, exact=False), START, 0)
        tokens = matcher.tokens
        for token in tokens[followed:]:
            at = reach.advance(at, token)
        self._places[row] = reach, at, len(tokens)
        try:
            return reach.nearer(at)
        except BudgetExceeded:
            return None

    def _fill(self, left: Sequence[int] | None) -> None:
        if left is not None:
            for row, matcher in enumerate(self.matchers):
                if not self.is_finished(row):
                    self._fill_within(row, matcher, left[row])
        elif all(matcher.max_tokens_left is None for matcher in self.matchers):
            fill_bitmasks(self.matchers, self._bitmask)
        else:
            self._fill_each_state()

    def _fill_each_state(self) -> None:
        """Write the masks within the rows' limits: one for all rows with the same state and limit, if there is no
        stack.
        """
        first: dict[tuple[int, int, int | None], int] = {}
        for row, (automaton, matcher) in enumerate(zip(self._automata, self.matchers, strict=True)):
            if self.is_finished(row):
                continue
            same = row
            if isinstance(matcher, Matcher) and not matcher.state >> 32:
                same = first.setdefault((id(automaton), matcher.state, matcher.max_tokens_left), row)
            if same != row:
                self._bitmask[row] = self._bitmask[same]
            else:
                matcher.fill_next_token_bitmask(self._bitmask, row)

    def _fill_within(self, row: int, matcher: AnyMatcher, left: int) -> None:
        before = matcher.max_tokens_left
        try:
            matcher.max_tokens_left = left
        except TokenLimitError:
            self._bitmask[row] = 0
            return
        try:
            matcher.fill_next_token_bitmask(self._bitmask, row)
        finally:
            matcher.max_tokens_left = before

    def extend(self, parents: Sequence[int] | torch.Tensor, tokens: Sequence[int] | torch.Tensor) -> None:
        chosen, taken = as_lists(parents, tokens)
        heirs = Counter(chosen)
        for parent, token in zip(chosen, taken, strict=True):
            if not self.is_finished(parent) and self.matchers[parent].validate_tokens([token]) == 0:
                raise not_allowed(parent, token)
        rows = []
        for parent, token in zip(chosen, taken, strict=True):
            heirs[parent] -= 1
            matcher = self.matchers[parent].fork() if heirs[parent] else self.matchers[parent]
            rows.append((matcher, token))
        self.matchers = [matcher for matcher, _ in rows]
        self._automata = [self._automata[parent] for parent in chosen]
        self._places = [self._places[parent] for parent in chosen]
        for row, (matcher, token) in enumerate(rows):
            if not self.is_finished(row):
                matcher.accept_token(token)
        self._resize()

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order, without repetitions."""
        self.matchers = [self.matchers[row] for row in rows]
        self._automata = [self._automata[row] for row in rows]
        self._places = [self._places[row] for row in rows]
        self._resize()

    def tokens(self, row: int) -> list[int]:
        return self.matchers[row].tokens


def _by_distances(automaton: AnyAutomaton, matcher: AnyMatcher) -> AnyMatcher:
    """A matcher at the same place whose masks within a limit use distances, also with stacks."""
    if not isinstance(automaton, TokenAutomaton) or isinstance(matcher, Matcher):
        return matcher
    same = automaton.matcher()
    same.accept_tokens(matcher.tokens)
    return same


def as_lists(*arrays: Sequence[int] | torch.Tensor) -> list[list[int]]:
    """Numbers as lists on the host."""
    return [each.tolist() if isinstance(each, torch.Tensor) else list(each) for each in arrays]


def not_allowed(row: int, token: int) -> ModelError:
    """The error for a token that its row does not allow."""
    return ModelError(f"row {row} does not allow token {token}: mask its scores before choosing")


def checked_rows(rows: Rows, prompts: int, width: int) -> Rows:
    """Rows that were started elsewhere, checked for number and width."""
    if (len(rows), rows.width) != (prompts, width):
        raise ModelError(
            f"{counted(len(rows), 'row')} of width {rows.width} for {counted(prompts, 'prompt')} and a model that "
            f"scores {counted(width, 'token')}: start them for this call"
        )
    return rows


def check_compiled(automata: AnyAutomaton | Sequence[AnyAutomaton]) -> Sequence[AnyAutomaton]:
    """The constraints of a decoder, as a sequence. Raises ConstraintError for anything that is not a compiled
    constraint.
    """
    given: Sequence[AnyAutomaton] = automata if isinstance(automata, list | tuple) else [automata]  # type: ignore[list-item]
    for automaton in given:
        if not isinstance(automaton, AnyAutomaton):
            raise ConstraintError(
                f"decoders take compiled constraints, not {automaton!r}: compile(..., vocabulary) makes one"
            )
    return given


def one_for_each(automata: AnyAutomaton | Sequence[AnyAutomaton], prompts: int) -> Sequence[AnyAutomaton]:
    """A constraint for each prompt: the single one repeated, or the given ones, checked for kind, number and
    vocabulary.
    """
    if not prompts:
        raise ModelError("no prompts: give at least one, which may be empty for models that need none")
    given = check_compiled(automata)
    each = list(given) if given is automata else list(given) * prompts
    if len(each) != prompts:
        raise ModelError(
            f"{counted(len(each), 'constraint')} for {counted(prompts, 'prompt')}: give one for all, or one for each"
        )
    for automaton in each[1:]:
        if automaton.vocabulary.fingerprint != each[0].vocabulary.fingerprint:
            raise VocabularyMismatchError(
                "the constraints of a batch must be compiled for one vocabulary; found "
                f"{each[0].vocabulary.fingerprint[:12]} and {automaton.vocabulary.fingerprint[:12]}"
            )
    return each
