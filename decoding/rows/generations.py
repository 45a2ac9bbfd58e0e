"""``Generation``: the result type of every decoder, one for each text.

``Generations`` is the sequence of the results of one call or one prompt. Decoders that count their work, or weight
their samples, return a subclass of one of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload


@dataclass(frozen=True, slots=True)
class Generation:
    """One generated text.

    ``tokens``: the new tokens, without the prompt; the last one is the end token, if one was taken. ``text``: the bytes
    that they spell. ``finished``: whether the constraint accepts the text; False only for particles that failed. The
    other fields are None if the decoder does not compute them. ``log_prob``: ln of the model's probability of
    ``tokens``, without the constraint. ``log_weight``: the importance weight of a sample, ln p - ln q, where q is the
    probability with which it was drawn. ``score``: the score by which a search ranks the text. ``pushed``: the sum of
    the scores that ``automata_beam_search`` used for pruning.
    """

    tokens: tuple[int, ...]
    text: bytes
    finished: bool = True
    log_prob: float | None = None
    log_weight: float | None = None
    score: float | None = None
    pushed: float | None = None


@dataclass(frozen=True, slots=True)
class Generations(Sequence[Generation]):
    """Several generations: ``rows``, or the object itself as a sequence."""

    rows: tuple[Generation, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Generation: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Generation, ...]: ...
    def __getitem__(self, index: int | slice) -> Generation | tuple[Generation, ...]:
        return self.rows[index]

    @property
    def tokens(self) -> list[list[int]]:
        """The new tokens of each row."""
        return [list(row.tokens) for row in self.rows]

    @property
    def texts(self) -> list[bytes]:
        """The text of each row."""
        return [row.text for row in self.rows]
