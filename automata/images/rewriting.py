"""The image of a language under a rational relation that is given as a transducer.

The result is output(L ∘ T), determinized: the words that the transducer T writes while it reads words of L (Mohri,
"Finite-state transducers in language and speech processing", CL 1997). The composition is computed here on arrays,
pairs of states level by level, so that the budget bounds it while it grows; OpenFst determinizes.

Cost: the reachable pairs and their arcs, then a determinization, exponential in the pairs in the worst case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokenfst.automata.expressions.expression import EMPTY, Dfa, machine
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.letters import Ints, require_language
from tokenfst.automata.languages.language import Language
from tokenfst.automata.openfst import fst
from tokenfst.automata.openfst.byte_automata import arcs_to_dfa
from tokenfst.automata.openfst.label_kinds import byte_arcs
from tokenfst.automata.openfst.labels import EPSILON_LABEL, label_byte
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but
from tokenfst.errors import BudgetExceeded

if TYPE_CHECKING:
    import pynini
    from pywrapfst import SymbolTable

    from tokenfst.automata.openfst.label_kinds import TokenType

_WHERE = "the composition of a language with a transducer"
_ARC_BYTES = 40


@checked_but("language", "byte_zero", "token_type")
def rewrite(
    language: Language,
    transducer: pynini.Fst,
    *,
    byte_zero: int | None = None,
    token_type: TokenType | SymbolTable | None = None,
    budget: Budget | None = None,
) -> Language:
    """The words that ``transducer`` writes while it reads words of ``language``.

    Its input and output labels are bytes or characters, as its symbol tables say, or as ``token_type`` and
    ``byte_zero`` say, like in ``Language.from_fst``: ``token_type="byte"`` for machines that pynini makes of strings;
    label 0 is ε. For the inverse direction pass ``pynini.invert(transducer)``. Words that the transducer does not
    accept have no image.

    Raises ``FstError`` if the meaning of labels is not defined, for weights and for labels that are not bytes or
    characters, ``ConstraintError`` for a grammar, ``BudgetExceeded`` if the composition or the result exceeds
    ``budget`` (by default that of the language), ``MissingDependencyError`` without pynini.
    """
    source = require_language(language, "rewrite")
    limits = budget or source.budget
    deadline = Deadline(limits, _WHERE)
    arcs = byte_arcs(transducer, byte_zero=byte_zero, token_type=token_type, budget=limits)
    with deadline.part() as rest:
        dfa = source.with_budget(rest).determinize()
    composed = _compose(dfa, arcs, deadline)
    made = arcs_to_dfa(composed, deadline)
    return Language(machine(made) if made.start else EMPTY, f"rewrite({source.source})", limits)


def _compose(dfa: Dfa, arcs: fst.Arcs, deadline: Deadline) -> fst.Arcs:
    """An acceptor of the words that ``arcs`` write on words of ``dfa``. Its states are pairs, numbered in the order
    of visits.
    """
    budget = deadline.budget
    if dfa.start == 0 or arcs.start < 0:
        none = np.zeros(0, np.int32)
        return fst.Arcs(0, -1, np.zeros(0, np.int64), none, none, none, none)
    width = arcs.num_states
    begin = np.searchsorted(arcs.source, np.arange(width + 1))
    silent = arcs.ilabel == EPSILON_LABEL
    letter = dfa.classes[np.where(silent, 0, label_byte(arcs.ilabel))].astype(np.int64)
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
    places = np.searchsorted(known, sources)
    order = np.argsort(places, kind="stable")
    return fst.Arcs(
        len(known),
        int(np.searchsorted(known, dfa.start * width + arcs.start)),
        np.flatnonzero(accepting),
        places[order].astype(np.int32),
        labels[order].astype(np.int32),
        labels[order].astype(np.int32),
        np.searchsorted(known, targets)[order].astype(np.int32),
    )
