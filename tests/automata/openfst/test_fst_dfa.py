"""Acceptors become tables and tables acceptors; both against sets of states, and composition against its
meaning.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pynini
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.expressions.nondeterministic import Nfa
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.languages.language import Language
from tokenfst.automata.openfst.byte_automata import dfa_to_fst, minimize_dfa, reverse_dfa
from tokenfst.automata.openfst.fst import compose, from_arcs
from tokenfst.automata.openfst.label_kinds import fst_to_dfa
from tokenfst.automata.regex.translate import regex
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, FstError

LABELS = (1, 98, 256)  # byte 0, "a", byte 255
WORDS = [w for n in range(5) for w in product(LABELS, repeat=n)]


@st.composite
def automata(draw: st.DrawFn) -> Nfa:
    num_states = draw(st.integers(1, 5))
    state = st.integers(0, num_states - 1)
    arcs = draw(st.lists(st.tuples(state, st.sampled_from((0, *LABELS)), state), max_size=12))
    return Nfa(num_states, frozenset(draw(st.lists(state, max_size=3))), tuple(arcs))


def openfst(nfa: Nfa) -> pynini.Fst:
    source, label, nextstate = np.array(nfa.arcs, np.int64).reshape(-1, 3).T
    return from_arcs(nfa.num_states, 0, sorted(nfa.final), source, label, label, nextstate)


def run(dfa: Dfa, word: tuple[int, ...]) -> bool:
    state = dfa.start
    for label in word:
        state = int(dfa.table[state, dfa.classes[label - 1]])
    return bool(dfa.accepting[state])


def check_invariants(dfa: Dfa) -> None:
    """Convention 3, and classes as coarse as can be."""
    states, groups = dfa.table.shape
    assert (dfa.classes.dtype, dfa.table.dtype, dfa.accepting.dtype) == (np.uint8, np.uint32, np.bool_)
    assert not dfa.table[0].any()
    assert not dfa.accepting[0]
    assert set(dfa.classes.tolist()) == set(range(groups))
    assert len({column.tobytes() for column in dfa.table.T}) == groups
    live = set(np.flatnonzero(dfa.accepting).tolist())
    while new := {q for q in range(1, states) if live & set(dfa.table[q].tolist())} - live:
        live |= new
    assert live == set(range(1, states))
    reached = {dfa.start} - {0}
    while new := {int(t) for q in reached for t in dfa.table[q] if t} - reached:
        reached |= new
    assert reached == live
    assert not any(array.flags.writeable for array in (dfa.classes, dfa.table, dfa.accepting))


@settings(max_examples=150, deadline=None)
@given(automata())
def test_fst_to_dfa(nfa: Nfa) -> None:
    dfa = fst_to_dfa(openfst(nfa), byte_zero=1)
    check_invariants(dfa)
    for word in WORDS:
        assert run(dfa, word) == nfa.accepts(word), word


@settings(max_examples=100, deadline=None)
@given(automata())
def test_there_and_back(nfa: Nfa) -> None:
    dfa = fst_to_dfa(openfst(nfa), byte_zero=1)
    machine = dfa_to_fst(dfa)
    assert machine.num_states() == dfa.num_states - 1
    assert machine.properties(pynini.I_DETERMINISTIC | pynini.I_LABEL_SORTED | pynini.ACCEPTOR, True)
    back = fst_to_dfa(machine, byte_zero=1)
    assert [run(back, word) for word in WORDS] == [run(dfa, word) for word in WORDS]


@settings(max_examples=100, deadline=None)
@given(automata())
def test_minimize_and_reverse(nfa: Nfa) -> None:
    dfa = fst_to_dfa(openfst(nfa), byte_zero=1)
    least, turned = minimize_dfa(dfa), reverse_dfa(dfa)
    check_invariants(least)
    check_invariants(turned)
    assert least.num_states <= dfa.num_states
    theirs = fst_to_dfa(dfa_to_fst(dfa).minimize(), byte_zero=1)
    assert least.table.shape == theirs.table.shape
    assert (least.classes == theirs.classes).all()
    for word in WORDS:
        assert run(least, word) == run(dfa, word)
        assert run(turned, word) == run(dfa, word[::-1])


def test_many_classes() -> None:
    """256 bytes, each its own class, in an order of classes that is not that of bytes."""
    classes = np.roll(np.arange(256, dtype=np.uint8), 100)
    table = np.zeros((258, 256), np.uint32)
    table[1] = np.arange(256) + 2
    accepting = np.arange(258) >= 2
    table[np.arange(2, 258), np.arange(256)] = 1
    dfa = Dfa(classes, table, accepting, 1)
    back = fst_to_dfa(dfa_to_fst(dfa), byte_zero=1)
    for byte in (0, 1, 99, 100, 255):
        assert run(back, (byte + 1,))
        assert run(back, (byte + 1, byte + 1, byte + 1))
        assert not run(back, (byte + 1, byte + 1))


@pytest.mark.parametrize("label", [257, 300, 2**31 - 1])
def test_label_out_of_range(label: int) -> None:
    with pytest.raises(FstError, match=rf"label {label} on arc 1 of state 0"):
        fst_to_dfa(from_arcs(2, 0, [1], [0, 0], [5, label], [5, label], [1, 1]), byte_zero=1)


def test_transducer_is_refused_unless_projected() -> None:
    transducer = pynini.cross("ab", "x")
    with pytest.raises(FstError, match=r"arc 0 of state 0 maps label 97 to 120.*project"):
        fst_to_dfa(transducer, byte_zero=0)
    assert Language.from_fst(transducer.copy().project("output"), byte_zero=0).witness() == b"x"


def test_labels_of_pynini() -> None:
    text = "naïve|日本"
    words = pynini.union(*(pynini.accep(word) for word in text.split("|")))
    language = Language.from_fst(words.optimize(), byte_zero=0)
    assert all(language.accepts(word) for word in text.split("|"))
    assert pynini.equivalent(language.to_fst(byte_zero=0), words.optimize())
    with pytest.raises(FstError, match="byte 0"):
        Language.literal(b"a\x00").to_fst(byte_zero=0)
    with pytest.raises(FstError, match=r"label 9830\d\d.* is not a byte"):
        Language.from_fst(pynini.accep("[name]"), byte_zero=0)


def test_determinization_has_a_budget() -> None:
    """The k-th letter from the end is an a: 2^k states, and never a truncated machine."""
    k = 16
    source = [0, 0, 0, *np.repeat(np.arange(1, k), 2)]
    label = [98, 99, 98, *[98, 99] * (k - 1)]
    nextstate = [0, 0, 1, *np.repeat(np.arange(2, k + 1), 2)]
    machine = from_arcs(k + 1, 0, [k], source, label, label, nextstate)
    with pytest.raises(BudgetExceeded, match="1,000 states"):
        fst_to_dfa(machine, byte_zero=1, budget=Budget(states=1_000))
    assert fst_to_dfa(machine, byte_zero=1, budget=Budget(states=2**k)).num_states == 2**k + 1


def arcs_of(machine: pynini.Fst) -> list[tuple[int, int, int]]:
    return [(state, arc.ilabel, arc.nextstate) for state in machine.states() for arc in machine.arcs(state)]


def test_arguments_stay_as_they_are() -> None:
    machine = pynini.union("ab", "ac").closure()
    before = arcs_of(machine)
    fst_to_dfa(machine, byte_zero=0)
    assert arcs_of(machine) == before


TOKENS = (b"a", b"b", b"ab", b"ba", b"aab", b"ab")


def test_compose_is_the_specification() -> None:
    """Token sequences of the composed machine are those whose bytes are in the language."""
    arcs = []
    states = 1
    for token, spelled in enumerate(TOKENS):
        at = 0
        for place, byte in enumerate(spelled):
            last = place == len(spelled) - 1
            to = 0 if last else states
            arcs.append((at, token + 1 if last else 0, byte + 1, to))
            at, states = to, states + (not last)
    detokenizer = from_arcs(states, 0, [0], *np.array(arcs).T)
    language = Language.literal(b"aab").star() + Language.literal(b"b")
    made = compose(detokenizer, language.to_fst())
    assert made.properties(pynini.I_DETERMINISTIC | pynini.NO_EPSILONS | pynini.ACCEPTOR, True)
    paths = {tuple(labels) for labels in _paths(made, 4)}
    expected = {
        tuple(t + 1 for t in ids)
        for n in range(5)
        for ids in product(range(len(TOKENS)), repeat=n)
        if language.accepts(b"".join(TOKENS[t] for t in ids))
    }
    assert paths == expected
    assert len(expected) > 10


def _paths(fst: pynini.Fst, length: int) -> list[list[int]]:
    found = []
    stack: list[tuple[int, list[int]]] = [(fst.start(), [])]
    while stack:
        state, labels = stack.pop()
        if fst.final(state) != pynini.Weight.zero("tropical"):
            found.append(labels)
        if len(labels) < length:
            stack += [(arc.nextstate, [*labels, arc.ilabel]) for arc in fst.arcs(state)]
    return found


@pytest.mark.usefixtures("uncollected")
def test_the_seconds_of_a_budget_cover_minimization() -> None:
    dfa = regex("(a|b)*a(a|b){17}").determinize()
    begun = time.process_time()
    with pytest.raises(BudgetExceeded, match="seconds") as refused:
        minimize_dfa(dfa, Deadline(Budget(seconds=0.02), "the minimization of it"))
    assert time.process_time() - begun < 0.02 + 0.25
    assert refused.value.where == "the minimization of it"
    with pytest.raises(BudgetExceeded, match="bytes"):
        minimize_dfa(dfa, Deadline(Budget(bytes=1_000), "the minimization of it"))
