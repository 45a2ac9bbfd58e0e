"""Rows with exact numbers of tokens (globally constrained decoding), and the choice between the kinds of rows.

``start_rows`` gives every decoder its rows: based on matchers, whose token limits use distances (``ConstraintRows``),
or on exact reachability (``ReachRows``, over ``Reach``). The values of ``length`` mean:

    "at_most"                       up to n tokens, the end token counted; a text of n tokens needs none
    "exact"                         a text of exactly n tokens; the end token is never chosen
    "exact" with ``count_end``      exactly n tokens, the last of which is an end token

All are exact: a mask has a token if and only if the text can be completed with the remaining tokens. Finite automata
know their distances. For push-down automata the matcher searches (``matchers.reach_matcher``), or raises
``BudgetExceeded``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tokenfst.common.arguments import checked_but
from tokenfst.common.renamed import renamed
from tokenfst.decoding.matchers.reach import START, Bits, Reach, reach_of
from tokenfst.decoding.rows.rows import (
    AnyAutomaton,
    ConstraintRows,
    PackedRows,
    Rows,
    as_lists,
    checked_rows,
    not_allowed,
    one_for_each,
)
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ConstraintError, DecodingError, MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error

Length: TypeAlias = Literal["at_most", "exact"]


@renamed(max_tokens="max_new_tokens")
@checked_but("automata")
def start_rows(
    automata: AnyAutomaton | Sequence[AnyAutomaton] | Rows,
    *,
    prompts: int,
    max_new_tokens: int,
    width: int,
    device: torch.device,
    length: Length = "at_most",
    count_end: bool = False,
) -> Rows:
    """A row for each prompt, at the start.

    ``prompts``: the number of prompts. ``width``, ``device``: of the scores that are masked. ``automata``: one for all
    prompts, or one for each, over one vocabulary; or rows that were started elsewhere, which are only checked for
    number and width. ``max_new_tokens``, ``length`` and ``count_end``: see the module.

    Raises ``DecodingError`` for inconsistent options, ``EmptyLanguageError``, ``TokenLimitError``, naming feasible
    numbers of tokens, ``VocabularyMismatchError``, ``ModelError`` if prompts and automata differ in number,
    ``ConstraintError`` for exact numbers of canonical tokens.
    """
    if isinstance(automata, Rows):
        return checked_rows(automata, prompts, width)
    check_length(length, max_new_tokens, count_end)
    each = one_for_each(automata, prompts)
    if length == "exact":
        return ReachRows(each, max_new_tokens, width, device, exact=True, count_end=count_end)
    return ConstraintRows(each, max_new_tokens, width, device)


def check_length(length: str, max_new_tokens: int, count_end: bool) -> None:
    """Raise ``DecodingError`` for inconsistent options."""
    if length not in ("at_most", "exact"):
        raise DecodingError(f'length={length!r} is out of range: it must be "at_most" or "exact"')
    if count_end and length != "exact":
        raise DecodingError('count_end requires length="exact": "at_most" always counts the end token')
    if max_new_tokens < count_end:
        raise DecodingError(
            f"max_new_tokens={max_new_tokens} is out of range: it must be at least {int(count_end)}"
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """The state of a row: its configuration, the tokens left, the last token taken, and the row before it."""

    reach: Reach
    at: int
    left: int
    ended: bool = False
    last: int = -1
    before: _Row | None = None


class ReachRows(PackedRows):
    """Rows of configurations, completed by exactly or at most ``max_new_tokens`` tokens; see the module for
    ``count_end``.
    """

    def __init__(
        self,
        automata: Sequence[AnyAutomaton],
        max_new_tokens: int,
        width: int,
        device: torch.device,
        *,
        exact: bool,
        count_end: bool = False,
    ) -> None:
        super().__init__(len(automata), automata[0].vocabulary, width, device)
        self._count_end = count_end
        self._rows = [_Row(_reach(automaton, exact), START, max_new_tokens) for automaton in automata]
        for reach in {id(row.reach): row.reach for row in self._rows}.values():
            reach.check(max_new_tokens - count_end)

    def __len__(self) -> int:
        return len(self._rows)

    def is_finished(self, row: int) -> bool:
        return self._rows[row].ended or self._rows[row].left == 0

    @property
    def accepting(self) -> torch.Tensor:
        return torch.tensor([row.reach.accepting(row.at) for row in self._rows], device=self.device)

    def distances(self) -> torch.Tensor:
        return torch.tensor([row.reach.distance(row.at) for row in self._rows], device=self.device)

    def tokens(self, row: int) -> list[int]:
        taken, here = [], self._rows[row]
        while here.before is not None:
            taken.append(here.last)
            here = here.before
        return taken[::-1]

    def extend(self, parents: Sequence[int] | torch.Tensor, tokens: Sequence[int] | torch.Tensor) -> None:
        self._rows = [self._after(*each) for each in zip(*as_lists(parents, tokens), strict=True)]
        self._resize()

    def _after(self, parent: int, token: int) -> _Row:
        row = self._rows[parent]
        if self.is_finished(parent):
            return row
        mask = self._mask(row, row.left)
        if not 0 <= token < len(self.vocabulary) or not mask[token >> 5] >> (token & 31) & 1:
            raise not_allowed(parent, token)
        if token in self.vocabulary.eos_token_ids:
            return _Row(row.reach, row.at, row.left - 1, True, token, row)
        return _Row(row.reach, row.reach.advance(row.at, token), row.left - 1, False, token, row)

    def _fill(self, left: Sequence[int] | None) -> None:
        for number, row in enumerate(self._rows):
            self._bitmask[number] = self._mask(row, row.left if left is None else left[number])

    def _fill_nearer(self) -> None:
        for number, row in enumerate(self._rows):
            self._bitmask[number] = 0 if row.ended else row.reach.nearer(row.at)

    def _mask(self, row: _Row, left: int) -> Bits:
        if not self._count_end:
            return row.reach.mask(row.at, left)
        if left == 1:
            return self._only_end if row.reach.accepting(row.at) else self._only_end & 0
        return row.reach.mask(row.at, left - 1)


def _reach(automaton: AnyAutomaton, exact: bool) -> Reach:
    if isinstance(automaton, TokenAutomaton):
        return reach_of(automaton, exact=exact)
    raise ConstraintError(
        f'exact numbers of tokens of {automaton!r} are not known: take length="at_most", or compile with '
        'tokenization="all"'
    )
