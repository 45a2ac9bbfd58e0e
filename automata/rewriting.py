"""The image of a language under a rational relation that is given as a transducer.

The idea: output(L ∘ T), determinized: what a transducer T writes while it reads a word of L (Mohri, "Finite-state
transducers in language and speech processing", CL 1997). The composition is made here on arrays, pairs of states level
by level, so that the budget bounds it while it grows; OpenFst determinizes.

Cost: the reachable pairs and their arcs, then a determinization, exponential in the pairs at worst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokenfst.arguments import checked_but
from tokenfst.automata import fst
from tokenfst.automata.expression import Dfa
from tokenfst.automata.labels import BYTE_ZERO_LABEL, EPSILON_LABEL
from tokenfst.automata.language import Language
from tokenfst.automata.letter_automata import Deadline, Ints, require_language
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, FstError

if TYPE_CHECKING:
    import pynini

_WHERE = "the composition of a language with a transducer"
_ARC_BYTES = 40


@checked_but("language")
def rewrite(
    language: Language,
    transducer: pynini.Fst,
    *,
    byte_zero: int = BYTE_ZERO_LABEL,
    budget: Budget | None = None,
) -> Language:
    """The words that ``transducer`` writes while it reads words of ``language``.

    Its input side reads and its output side writes bytes: byte b has label b + 1 (convention 2), or b with
    ``byte_zero=0``, as in what pynini makes of strings; label 0 is ε. For the other direction give
    ``pynini.invert(transducer)``. Words that it does not read have no image.

    Raises ``FstError`` for weights and for labels that are no bytes, ``ConstraintError`` for a grammar,
    ``BudgetExceeded`` where the composition or the result outgrows ``budget`` (that of the language, if none is given),
    ``MissingDependencyError`` without pynini.
    """
    source = require_language(language, "rewrite")
    limits = budget or source.budget
    arcs = fst.to_arcs(transducer)
    _check_labels(arcs, byte_zero)
    composed = _compose(source.with_budget(limits).determinize(), arcs, byte_zero, limits)
    return Language.from_fst(composed, byte_zero=byte_zero, source=f"rewrite({source.source})", budget=limits)


def _check_labels(arcs: fst.Arcs, byte_zero: int) -> None:
    for side, labels in (("input", arcs.ilabel), ("output", arcs.olabel)):
        outside = (labels != EPSILON_LABEL) & ((labels < byte_zero) | (labels > byte_zero + 255))
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise FstError(
                f"{side} label {labels[at]} of an arc of state {arcs.source[at]} is not a byte: byte b has label b + "
                f"{byte_zero}, so labels are {max(byte_zero, 1)}..{byte_zero + 255}, and 0 for ε"
            )


def _compose(dfa: Dfa, arcs: fst.Arcs, byte_zero: int, budget: Budget) -> pynini.Fst:
    """An acceptor of what ``arcs`` write on words of ``dfa``; its states are pairs, numbered as they are met."""
    if dfa.start == 0 or arcs.start < 0:
        return fst.from_arcs(0, -1, [], [], [], [], [])
    deadline = Deadline(budget, _WHERE)
    width = arcs.num_states
    begin = np.searchsorted(arcs.source, np.arange(width + 1))
    silent = arcs.ilabel == EPSILON_LABEL
    letter = dfa.classes[np.where(silent, 0, arcs.ilabel - byte_zero)].astype(np.int64)
    known: Ints = np.array([dfa.start * width + arcs.start], np.int64)
    frontier = known
    found: list[tuple[Ints, Ints, Ints]] = []
    kept = 0
    while len(frontier):
        states, places = np.divmod(frontier, width)
        count = begin[places + 1] - begin[places]
        arc = (
            np.repeat(begin[places], count)
            + np.arange(count.sum())
            - np.repeat(np.cumsum(count) - count, count)
        )
        state = np.repeat(states, count)
        target = np.where(silent[arc], state, dfa.table[state, letter[arc]])
        live = target > 0
        pair = target[live] * width + arcs.nextstate[arc[live]]
        found.append((np.repeat(frontier, count)[live], arcs.olabel[arc[live]].astype(np.int64), pair))
        kept += len(pair)
        frontier = np.setdiff1d(pair, known)
        known = np.union1d(known, frontier)
        if len(known) > budget.states:
            raise BudgetExceeded("states", budget.states, _WHERE)
        if kept * _ARC_BYTES > budget.bytes:
            raise BudgetExceeded("bytes", budget.bytes, _WHERE)
        deadline.check()
    sources, labels, targets = (np.concatenate(column) for column in zip(*found, strict=True))
    finals = np.zeros(width, np.bool_)
    finals[arcs.final_states] = True
    accepting = dfa.accepting[known // width] & finals[known % width]
    made = fst.from_arcs(
        len(known),
        int(np.searchsorted(known, dfa.start * width + arcs.start)),
        np.flatnonzero(accepting),
        np.searchsorted(known, sources),
        labels,
        labels,
        np.searchsorted(known, targets),
    )
    made.connect()
    return made
