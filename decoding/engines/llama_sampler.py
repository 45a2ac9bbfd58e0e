"""A sampler for llama.cpp's own chains of samplers, through the C interface ``llama_sampler_i``.

llama.cpp calls a sampler with candidates (each with an id and a logit, perhaps already sorted and cut) and with each
chosen token. Forbidden candidates get the logit -inf. The chain to which a sampler is added owns it, frees it, and
clones it together with itself. A table in this module maps llama.cpp's pointers to samplers until they are freed.

Invariant: no exception enters C code. An error of any kind (a token that the constraint does not allow, a budget,
candidates of which none is allowed, a defect) is stored, and ``check()`` raises it. After an error only end tokens are
allowed, so that a loop ends; other sequences, whose chains have samplers of their own, go on. Checked with
llama-cpp-python 0.3.36.

Put it before samplers that cut (top-k): the remaining candidates may contain no allowed token.
"""

from __future__ import annotations

import copy
import ctypes
import itertools
from typing import Any

import llama_cpp.llama_cpp as c
import numpy as np

from tokenfst.common.arguments import checked
from tokenfst.decoding.engines.shared.text_rows import Automaton, check_scores, nothing_scored
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, bitmask_from_ids
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.scores.matcher import ScoreSource
from tokenfst.errors import LogitsError

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class LlamaSampler:
    """A sampler for one text: ``llama_sampler_chain_add(chain, LlamaSampler(automaton, 100).pointer)``.

    ``max_new_tokens``: the text is complete within this many tokens; end the loop after them. Raises TokenLimitError if
    no text is short enough. Add ``pointer`` to one chain, which frees it; without a chain call ``llama_sampler_free``.
    ``scores``: a compiled weighted language, grammar or n-gram model over the same vocabulary, whose scores are added
    ``scores_weight`` times; tokens without a score are forbidden.
    """

    @checked
    def __init__(
        self,
        automaton: Automaton,
        max_new_tokens: int | None = None,
        *,
        scores: ScoreSource | None = None,
        scores_weight: float = 1.0,
    ) -> None:
        vocabulary = automaton.vocabulary
        check_scores("LlamaSampler", vocabulary, scores, scores_weight)
        self._scorer = None if scores is None else scores.matcher()
        self._weight = np.float32(scores_weight)
        self._size = len(vocabulary)
        self._ends = bitmask_from_ids(vocabulary.eos_token_ids, self._size)
        self._matcher: AnyMatcher = start_matcher(automaton, max_new_tokens)
        self._error: Exception | None = None
        self._row = allocate_token_bitmask(1, self._size)
        self.pointer = self._pointer()

    @property
    def num_tokens(self) -> int:
        """How many tokens were accepted."""
        return self._matcher.num_tokens

    def is_over(self) -> bool:
        """Whether the text has ended: by an end token, by the last of its tokens, or by an error."""
        return self._error is not None or self._matcher.is_terminated() or self._matcher.max_tokens_left == 0

    def check(self) -> None:
        """Raise the error that occurred inside of llama.cpp's calls, if there was one."""
        if self._error is not None:
            raise self._error

    # --- what llama.cpp calls --------------------------------------------------------------------------------

    def _pointer(self) -> Any:
        number = next(_numbers)
        _known[number] = self
        return c.llama_sampler_init(ctypes.byref(_interface), number)

    def accept(self, token: int) -> None:
        """Accept a token. An error is raised later, by ``check``."""
        if self.is_over():
            return
        try:
            if not self._matcher.accept_token(token):
                self._error = LogitsError(
                    f"token {token} was chosen, which the constraint does not allow: look for a sampler after this "
                    "one that revives tokens"
                )
            elif (
                self._scorer is not None
                and not self._matcher.is_terminated()
                and not self._scorer.accept_token(token)
            ):
                self._error = LogitsError(
                    f"token {token} was chosen, which has no score: look for a sampler after this one"
                )
        except Exception as error:  # ctypes would print it, and the loop would go on without a constraint
            self._error = error

    def apply(self, candidates: Any) -> None:
        """Forbid the candidates of a ``llama_token_data_array`` that are not allowed."""
        size = int(candidates.size)
        memory = (ctypes.c_char * (size * _CANDIDATE.itemsize)).from_address(
            ctypes.cast(candidates.data, ctypes.c_void_p).value or 0
        )
        listed = np.frombuffer(memoryview(memory), _CANDIDATE)
        ids = listed["id"].astype(np.int64)
        known = (ids >= 0) & (ids < self._size)
        allowed = np.zeros(size, bool)
        row, scores = self._mask()
        allowed[known] = row[ids[known] >> 5] >> (ids[known] & 31) & 1
        if scores is not None:
            listed["logit"][known] += scores[ids[known]] * self._weight
        listed["logit"][~allowed] = -np.inf
        if self._error is None and not (listed["logit"] > -np.inf).any():
            self._error = LogitsError(
                f"none of the {size:,} candidates is allowed, or all that are have the logit -inf: put the constraint "
                "before samplers that cut"
            )

    def _mask(self) -> tuple[Any, Any]:
        """The mask of the next token, and the scores that are added, if any."""
        if not self.is_over():
            try:
                self._matcher.fill_next_token_bitmask(self._row, 0)
                if self._scorer is None:
                    return self._row[0], None
                found = self._scorer.row()
                row = self._row[0] & found.allowed
                if row.any():
                    return row, found.scores
                self._error = nothing_scored()
            except Exception as error:
                self._error = error
        return self._ends, None

    def reset(self) -> None:
        """Return to the beginning of the text."""
        self._matcher.reset()
        if self._scorer is not None:
            self._scorer.reset()
        self._error = None

    def clone(self) -> LlamaSampler:
        """An independent copy, with a pointer of its own."""
        made = copy.copy(self)
        made.separate()
        return made

    def separate(self) -> None:
        """Stop sharing state with the sampler that this is a copy of."""
        self._matcher, self._row = self._matcher.fork(), self._row.copy()
        self._scorer = None if self._scorer is None else self._scorer.fork()
        self.pointer = self._pointer()


_known: dict[int, LlamaSampler] = {}
"""The samplers by the number that llama.cpp stores as the context of a sampler."""
_numbers = itertools.count(1)


def _of(sampler: Any) -> LlamaSampler:
    return _known[sampler.contents.ctx]


def _clone(sampler: Any) -> int:
    return ctypes.cast(_of(sampler).clone().pointer, ctypes.c_void_p).value or 0


def _free(sampler: Any) -> None:
    _known.pop(sampler.contents.ctx, None)


# ctypes callbacks cannot return pointers to structures, and leak texts; so they return addresses.
_returns_address = ctypes.CFUNCTYPE(ctypes.c_void_p, c.llama_sampler_p_ctypes)
_name = ctypes.create_string_buffer(b"tokenfst")
_name_callback = _returns_address(lambda sampler: ctypes.addressof(_name))
_clone_callback = _returns_address(_clone)
_interface = c.llama_sampler_i(
    name=ctypes.cast(_name_callback, c.llama_sampler_i_name),
    accept=c.llama_sampler_i_accept(lambda sampler, token: _of(sampler).accept(token)),
    apply=c.llama_sampler_i_apply(lambda sampler, candidates: _of(sampler).apply(candidates.contents)),
    reset=c.llama_sampler_i_reset(lambda sampler: _of(sampler).reset()),
    clone=ctypes.cast(_clone_callback, c.llama_sampler_i_clone),
    free=c.llama_sampler_i_free(_free),
)
"""The module keeps this alive, because llama.cpp keeps its address."""
