"""The constraint's side of a decoder: where each row of a batch stands, and what it may take next.

``ConstraintRows`` is to matchers what ``language_model.Session`` is to a model: it goes on with rows chosen and
repeated at will. A decoder keeps one of each, in step:

    rows = ConstraintRows.start(automaton, prompts=2, max_tokens=50, width=model.width, device=model.device)
    rows.mask_(log_probs)                    # forbidden tokens to -inf, in place
    rows.extend(parents, tokens)             # row i is now row parents[i] and tokens[i]

Invariants. A row is *finished* when it took an end token, or when its tokens are used up (its text is complete then, by
the budget's guarantee); a finished row allows end tokens only, and what it is given changes nothing. Every row that is
not finished allows a token. Cost: a mask and an advance a row (about 1 µs each once cached), a fork where a row goes on
in several; the masks travel to the device packed. Near the end of a budget a mask is a walk of the vocabulary: one for
all rows of a state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from tokenfst._native import Matcher
from tokenfst.decoding.bitmask import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_from_ids,
    fill_bitmasks,
)
from tokenfst.decoding.canonical import CanonicalAutomaton, CanonicalMatcher
from tokenfst.decoding.prefixes import AnyMatcher
from tokenfst.decoding.token_automaton import TokenAutomaton
from tokenfst.errors import (
    ConstraintError,
    MissingDependencyError,
    ModelError,
    TokenBudgetError,
    VocabularyMismatchError,
)

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


AnyAutomaton: TypeAlias = TokenAutomaton | CanonicalAutomaton


class ConstraintRows:
    """One matcher per row of a batch. Those of canonical automata have neither budgets nor distances."""

    def __init__(
        self, automata: Sequence[AnyAutomaton], max_tokens: int | None, width: int, device: torch.device
    ) -> None:
        vocabulary = automata[0].vocabulary
        if width < len(vocabulary):
            raise VocabularyMismatchError(
                f"the model scores {width} tokens and the constraint's vocabulary has {len(vocabulary)}: use the "
                "vocabulary of the model's own tokenizer"
            )
        self.matchers = [automaton.matcher(max_tokens) for automaton in automata]
        self._automata = list(automata)
        self.vocabulary = vocabulary
        self.width = width
        self.device = device
        self._only_end = bitmask_from_ids(vocabulary.eos_token_ids, len(vocabulary))
        self._bitmask = allocate_token_bitmask(len(self.matchers), len(vocabulary))

    @classmethod
    def start(
        cls,
        automata: AnyAutomaton | Sequence[AnyAutomaton],
        *,
        prompts: int,
        max_tokens: int | None,
        width: int,
        device: torch.device,
    ) -> ConstraintRows:
        """A row for each prompt, at the start. ``automata``: one for all prompts, or one for each, over one vocabulary.
        ``max_tokens`` counts the end token, which is not needed to complete a text.

        Raises ``VocabularyMismatchError``, ``ModelError`` where prompts and automata differ in number, and
        ``TokenBudgetError``, naming the least budget, where no accepted text fits into ``max_tokens``.
        """
        return cls(one_for_each(automata, prompts), max_tokens, width, device)

    def __len__(self) -> int:
        return len(self.matchers)

    def is_finished(self, row: int) -> bool:
        """Whether the row took an end token or has no token left."""
        matcher = self.matchers[row]
        return matcher.is_terminated() or matcher.max_tokens_left == 0

    @property
    def finished(self) -> torch.Tensor:
        """Which rows are finished, bool of shape (rows,)."""
        return torch.tensor([self.is_finished(row) for row in range(len(self))], device=self.device)

    @property
    def accepting(self) -> torch.Tensor:
        """Which rows hold an accepted text, bool of shape (rows,)."""
        return torch.tensor([matcher.is_accepting() for matcher in self.matchers], device=self.device)

    def distances(self) -> torch.Tensor:
        """The least number of tokens, end token not counted, from each row to an accepted text: int64 of shape (rows,).
        Those of stacks are upper bounds."""
        return torch.tensor(
            [0 if m.is_terminated() else _with_distances(m).distance() for m in self.matchers],
            device=self.device,
        )

    def mask_(self, scores: torch.Tensor, *, left: Sequence[int] | None = None) -> torch.Tensor:
        """Set the scores, of shape (rows, width), of forbidden tokens to -inf in place, and return them.

        ``left``: for this mask only, the tokens left for each row instead of what its budget says: the tokens after
        which ``left - 1`` suffice. Rows for which none suffice allow nothing.
        """
        self._fill(left)
        apply_token_bitmask_inplace(scores, self._bitmask, vocab_size=len(self.vocabulary), check_nan=False)
        return scores

    def mask_nearer_(self, scores: torch.Tensor) -> torch.Tensor:
        """Set the scores, of shape (rows, width), of all tokens that do not reduce the distance to -inf in place, and
        return them: of the end tokens too. Nothing is left of rows at distance 0. Of a state a walk of the vocabulary,
        the first time; of stacks each time."""
        for row, (automaton, matcher) in enumerate(zip(self._automata, self.matchers, strict=True)):
            native = _with_distances(matcher)
            if native.is_terminated() or isinstance(automaton, CanonicalAutomaton):
                self._bitmask[row] = 0
            else:
                self._bitmask[row] = automaton.nearer_mask(native)
        apply_token_bitmask_inplace(scores, self._bitmask, vocab_size=len(self.vocabulary), check_nan=False)
        return scores

    def allowed(self, *, left: Sequence[int] | None = None) -> torch.Tensor:
        """The tokens that each row may take next, bool of shape (rows, width)."""
        ones = torch.zeros((len(self), self.width), dtype=torch.float32, device=self.device)
        return self.mask_(ones, left=left) == 0

    def _fill(self, left: Sequence[int] | None) -> None:
        if left is not None:
            for row, matcher in enumerate(self.matchers):
                if not self.is_finished(row):
                    self._fill_within(row, _with_distances(matcher), left[row])
        elif all(matcher.max_tokens_left is None for matcher in self.matchers):
            fill_bitmasks(self.matchers, self._bitmask)
        else:
            self._fill_each_state()
        for row in range(len(self)):
            if self.is_finished(row):
                self._bitmask[row] = self._only_end

    def _fill_each_state(self) -> None:
        """The masks within the rows' budgets; one for all rows with one state and budget, where there is no stack."""
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

    def _fill_within(self, row: int, matcher: Matcher, left: int) -> None:
        before = matcher.max_tokens_left
        try:
            matcher.max_tokens_left = left
        except TokenBudgetError:
            self._bitmask[row] = 0
            return
        try:
            matcher.fill_next_token_bitmask(self._bitmask, row)
        finally:
            matcher.max_tokens_left = before

    def extend(self, parents: Sequence[int] | torch.Tensor, tokens: Sequence[int] | torch.Tensor) -> None:
        """Row i becomes row ``parents[i]`` followed by ``tokens[i]``; both of shape (rows',).

        Finished rows stay as they are. Raises ``ModelError`` for a token that its row does not allow, and nothing
        changes.
        """
        chosen = parents.tolist() if isinstance(parents, torch.Tensor) else list(parents)
        taken = tokens.tolist() if isinstance(tokens, torch.Tensor) else list(tokens)
        heirs = Counter(chosen)
        for parent, token in zip(chosen, taken, strict=True):
            if not self.is_finished(parent) and self.matchers[parent].validate_tokens([token]) == 0:
                raise ModelError(
                    f"row {parent} does not allow token {token}: mask its scores before choosing"
                )
        rows = []
        for parent, token in zip(chosen, taken, strict=True):
            heirs[parent] -= 1
            matcher = self.matchers[parent].fork() if heirs[parent] else self.matchers[parent]
            rows.append((matcher, token))
        self.matchers = [matcher for matcher, _ in rows]
        self._automata = [self._automata[parent] for parent in chosen]
        for row, (matcher, token) in enumerate(rows):
            if not self.is_finished(row):
                matcher.accept_token(token)
        self._fit_bitmask()

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order, none of them twice."""
        self.matchers = [self.matchers[row] for row in rows]
        self._automata = [self._automata[row] for row in rows]
        self._fit_bitmask()

    def _fit_bitmask(self) -> None:
        if len(self._bitmask) != len(self.matchers):
            self._bitmask = allocate_token_bitmask(len(self.matchers), len(self.vocabulary))

    def tokens(self, row: int) -> list[int]:
        """The tokens that the row took, its end token included."""
        return self.matchers[row].tokens


def one_for_each(automata: AnyAutomaton | Sequence[AnyAutomaton], prompts: int) -> Sequence[AnyAutomaton]:
    """A constraint for each prompt: the one for all, or those given, checked for number and vocabulary."""
    each = list(automata) if isinstance(automata, Sequence) else [automata] * prompts
    if len(each) != prompts:
        raise ModelError(f"{len(each)} constraints for {prompts} prompts: give one for all, or one for each")
    for automaton in each[1:]:
        if automaton.vocabulary.fingerprint != each[0].vocabulary.fingerprint:
            raise VocabularyMismatchError(
                "the constraints of a batch must be compiled for one vocabulary; found "
                f"{each[0].vocabulary.fingerprint[:12]} and {automaton.vocabulary.fingerprint[:12]}"
            )
    return each


def _with_distances(matcher: AnyMatcher) -> Matcher:
    if isinstance(matcher, CanonicalMatcher):
        raise ConstraintError(
            f'{matcher.automaton!r} knows no distances: compile the constraint with tokenization="all"'
        )
    return matcher
