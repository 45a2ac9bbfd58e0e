"""Scores of a weighted language on a device: a step adds them to logits, chooses and advances, without host
synchronization.

A deterministic weighted automaton is in one state after each text, so a row of a batch is an int32 number, as with
masks (``automaton``), and its scores are those of that state. The automaton is on the device (``tables/weights``). If
the score row of a state is *resident*, adding it is one read. Otherwise the vocabulary's bytes are run from the state,
as ``ComposingDeviceAutomaton`` does for masks. ``keep`` makes rows resident, within ``capacity``.

Invariants: results equal ``ScoreMatcher.scores_into`` up to float32, except that NaN in logits is not detected. DEAD
and ENDED rows take end tokens only. A fork copies a state number, a rollback restores an older one. A number out of
range counts as DEAD. CUDA tensors go to Triton if it is installed, others to plain torch, which is the specification.

Cost: a resident row takes 4 bytes for each token; any other row, on a GPU, a look-up for the bytes of all tokens.
"""

from __future__ import annotations

from tokenfst.automata.weighted_grammars.grammar import WeightedGrammar
from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.automata.weights.ngrams import NGramModel
from tokenfst.common.arguments import checked, refuse
from tokenfst.common.plurals import counted
from tokenfst.decoding.device.kernels.compose import Levels
from tokenfst.decoding.device.kernels.scores import plain as plain_scores
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.tables import DEAD, ENDED
from tokenfst.decoding.device.tables.weights import Layout, pack_weights
from tokenfst.decoding.device.weighted.score_rows import ScoreRows
from tokenfst.errors import (
    ArgumentValueError,
    BudgetExceeded,
    ConstraintError,
    TokenIdError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_MOST_ROWS = 1 << 24


class DeviceScores(ScoreRows):
    """A weighted language, or an n-gram model over characters or words, as tensors on ``device``.

    ``capacity``: maximum number of bytes of tables and resident rows there; by default the language's budget.
    ``layout``: ``"table"`` has an entry for each state and class of bytes. ``"arcs"`` has only the arcs of the
    automaton, and follows failure arcs (the back-off of an n-gram model) on the device; it is as small as the model,
    and slower. ``"auto"`` is a table if that fits. Scores are the same except for the rounding of float32.

    Raises ``ConstraintError`` for a language that is not deterministic and for a weighted grammar, ``ArpaError`` for a
    model over token ids (``DeviceScoreMatchers`` takes all three), ``EmptyLanguageError``, ``BudgetExceeded``.
    """

    @checked
    def __init__(
        self,
        language: WeightedLanguage | NGramModel | WeightedGrammar,
        vocabulary: Vocabulary,
        device: torch.device | str = "cpu",
        *,
        capacity: int | None = None,
        layout: Layout = "auto",
    ) -> None:
        if layout not in ("auto", "table", "arcs"):
            refuse("DeviceScores", "layout", layout, '"auto", "table" or "arcs"', ArgumentValueError)
        if isinstance(language, WeightedGrammar):
            raise ConstraintError(
                f"{language!r} has no finite table of states: DeviceScoreMatchers keeps the rows of its places on a "
                "device"
            )
        if isinstance(language, NGramModel):
            language = language.to_weighted()
        if capacity is not None and capacity < 0:
            refuse("DeviceScores", "capacity", capacity, "not negative", ArgumentValueError)
        self.language, self.vocabulary, self.capacity = language, vocabulary, capacity
        self.device = torch.empty(0, device=device).device
        self._tables, self.start = pack_weights(language, vocabulary, self.device, capacity, layout)
        self._levels = Levels.of(vocabulary, self.device)
        self._longest = max(1, *map(len, (*vocabulary.tokens, *(vocabulary.initial_tokens or ()))))
        self._kept = 0

    def __repr__(self) -> str:
        return f"<DeviceScores of {self.language.source!r}: {counted(self.num_states, 'state')} on {self.device}>"

    @property
    def num_states(self) -> int:
        """The number of states, including DEAD, ENDED and the start state before any token."""
        return len(self._tables.finals)

    @property
    def resident(self) -> int:
        """The number of states whose score rows are on the device."""
        return self._kept

    @property
    def memory(self) -> int:
        """Bytes on the device."""
        return sum(each.nbytes for each in self._tables if isinstance(each, torch.Tensor))

    @checked
    def start_states(self, rows: int) -> Tensor:
        """The start state for each of ``rows`` rows, int32 (rows,)."""
        if not 0 <= rows <= _MOST_ROWS:
            refuse("DeviceScores.start_states", "rows", rows, f"from 0 to {_MOST_ROWS:,}", ArgumentValueError)
        return torch.full((rows,), self.start, dtype=torch.int32, device=self.device)

    @checked
    def keep(self, states: Tensor | None = None) -> int:
        """Make the score rows of these states resident, or those of all states; returns how many are resident now.

        Synchronizes with the device. Raises ``BudgetExceeded`` if they do not fit ``capacity``; then none is added.
        """
        t = self._tables
        if states is None:
            states = torch.arange(self.num_states, dtype=torch.int32, device=self.device)
        self._check_states(states)
        wanted = torch.unique(plain_scores.known(t, states))
        wanted = wanted[t.slots[wanted] < 0]
        size = 4 * len(self.vocabulary) * len(wanted)
        most = self.language.budget.bytes if self.capacity is None else self.capacity
        if self.memory + size > most:
            raise BudgetExceeded("bytes", most, f"resident scores ({counted(len(wanted), 'row')})")
        made = [plain_scores.scores(t, part, self._levels) for part in wanted.split(64)]
        slots = t.slots.clone()
        slots[wanted] = torch.arange(
            len(t.rows), len(t.rows) + len(wanted), dtype=torch.int32, device=self.device
        )
        self._tables = t._replace(rows=torch.cat([t.rows, *made]), slots=slots)
        self._kept += len(wanted)
        return self._kept

    @checked
    def advance(self, states: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The next states after one token for each row, int32 (B,), and the tokens' scores, float32 (B,); ``tokens``:
        int64 (B,).

        DEAD and -inf for a token without a score, ENDED for an end token.
        """
        self._check_states(states)
        if tokens.dtype is not torch.int64 or tokens.shape != states.shape or tokens.device != states.device:
            raise TokenIdError(
                f"tokens must be int64 ({len(states)},) on {states.device}, not {tokens.dtype} "
                f"{tuple(tokens.shape)} on {tokens.device}"
            )
        if (triton := self._triton(states)) is not None:
            found: tuple[Tensor, Tensor] = triton.advance(self._tables, states, tokens.contiguous())
            return found
        return plain_scores.advance(self._tables, states, tokens, self._longest)

    @checked
    def is_dead(self, states: Tensor) -> Tensor:
        """Which rows have left the language, bool (B,)."""
        self._check_states(states)
        return plain_scores.known(self._tables, states) == DEAD

    @checked
    def is_ended(self, states: Tensor) -> Tensor:
        """Which rows have taken an end token, bool (B,)."""
        self._check_states(states)
        return states == ENDED

    def _add(self, logits: Tensor, states: Tensor, weight: float) -> Tensor:
        if (triton := self._triton(states)) is not None:
            added: Tensor = triton.add_(self._tables, logits, states, weight)
            return added
        return plain_scores.add_(
            self._tables, logits, states, weight, self._levels, self._kept == self.num_states
        )
