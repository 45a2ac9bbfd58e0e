"""Edges of token automata: the same arcs, and lengths and ambiguity as enumeration finds them."""

from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pytest
import torch

import tokenfst
from reference.tokens.small_automata import small_automaton
from reference.tokens.token_edges import arcs_of, random_edges, ways
from tokenfst.budget import Budget
from tokenfst.decoding.rows.edges import TokenEdges
from tokenfst.decoding.rows.tensor_rows import TensorRows
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError, TokenIdError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")


def test_a_token_automaton_keeps_its_arcs() -> None:
    rng = random.Random(1)
    for _ in range(12):
        automaton = small_automaton(rng)
        try:
            edges = TokenEdges.from_automaton(automaton)
        except EmptyLanguageError:
            assert not len(automaton.arcs()[0])
            continue
        source, token, target, _, start, final = automaton.arcs()
        assert edges.is_deterministic and edges.is_unambiguous()
        # Both number states in their own order: walk them in step.
        table = {(s, t): u for s, t, u in arcs_of(edges)}
        theirs = {(s, t): u for s, t, u in zip(source.tolist(), token.tolist(), target.tolist(), strict=True)}
        pairs = [(0, start)]
        for mine, other in pairs:
            assert bool(edges.accepting[mine]) == (other in final)
            for (s, t), u in table.items():
                if s == mine and (u, theirs[other, t]) not in pairs:
                    pairs.append((u, theirs[other, t]))
            assert sum(s == mine for s, _ in table) == sum(s == other for s, _ in theirs)
        assert len(pairs) == edges.num_states


def test_edges_are_one_a_pair_and_sets_are_kept_once() -> None:
    rng = random.Random(2)
    for _ in range(60):
        edges = random_edges(rng)
        pairs = list(zip(edges.source.tolist(), edges.target.tolist(), strict=True))
        assert pairs == sorted(set(pairs))
        sets = [tuple(edges.set_of(d).tolist()) for d in range(edges.num_sets)]
        assert len(set(sets)) == len(sets) and all(list(s) == sorted(set(s)) and s for s in sets)
        outward, inward, labels = edges.out_matrix(), edges.in_matrix(), edges.label_matrix()
        assert outward.to_dense().sum(0).tolist() == [1.0] * edges.num_edges
        for e, (source, target) in enumerate(pairs):
            assert outward.to_dense()[source, e] == 1 and inward.to_dense()[e, target] == 1
        assert torch.equal(edges.sets_by_token().to_dense(), edges.token_sets().to_dense().T)
        assert torch.equal(labels.to_dense(), edges.token_sets().to_dense()[torch.tensor(edges.label)])
        if edges.num_edges:
            assert torch.equal((outward @ inward).to_dense() > 0, torch.tensor(dense(edges)))


def dense(edges: TokenEdges) -> np.ndarray:
    found = np.zeros((edges.num_states, edges.num_states), np.bool_)
    found[edges.source, edges.target] = True
    return found


def test_lengths_determinism_and_ambiguity_as_enumerated() -> None:
    rng = random.Random(3)
    seen = set()
    for _ in range(150):
        edges = random_edges(rng, 2)
        arcs = arcs_of(edges)
        counts = {
            length: [ways(edges, s, arcs) for s in itertools.product(range(2), repeat=length)]
            for length in range(6)
        }
        beta = edges.reachability(5)
        assert [bool(beta[r][edges.start].any()) for r in range(6)] == [any(counts[r]) for r in range(6)]
        ambiguous = any(count > 1 for row in counts.values() for count in row)
        if ambiguous:
            assert not edges.is_unambiguous()
        elif edges.num_states <= 2:  # then every ambiguity shows up within so many tokens
            assert edges.is_unambiguous()
        kinds = [(source, token) for source, token, _ in arcs]
        assert edges.is_deterministic == (len(set(kinds)) == len(kinds) and edges.start.sum() == 1)
        seen.add((ambiguous, edges.is_deterministic))
    assert seen == {(False, False), (False, True), (True, False)}


def test_end_tokens_make_budgets_of_lengths() -> None:
    rng = random.Random(4)
    for _ in range(30):
        edges = random_edges(rng, 2)
        wide = TokenEdges.from_arcs(
            list(arcs_of(edges)),
            num_states=edges.num_states,
            start=np.flatnonzero(edges.start).tolist(),
            accepting=np.flatnonzero(edges.accepting).tolist(),
            num_tokens=4,
        ).with_end([3, 2])
        arcs, wider = arcs_of(edges), arcs_of(wide)
        for length in range(4):
            texts = {
                s
                for n in range(length + 1)
                for s in itertools.product(range(2), repeat=n)
                if ways(edges, s, arcs)
            }
            padded = {s for s in itertools.product(range(4), repeat=length) if ways(wide, s, wider)}
            expected = {s for s in texts if len(s) == length}
            for s in texts:
                if len(s) < length:
                    expected |= {(*s, end, *[3] * (length - len(s) - 1)) for end in (2, 3)}
            assert padded == expected


def test_what_has_no_edges() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"(", b")", b""], eos_token_id=4)
    grammar = tokenfst.lark_grammar('start: "(" start ")" | "a"')
    with pytest.raises(ConstraintError, match="needs a stack"):
        TokenEdges.from_automaton(tokenfst.compile(grammar, vocabulary))
    with pytest.raises(TokenIdError, match="token id 7"):
        TokenEdges.from_arcs([(0, 7, 0)], num_states=1, start=[0], accepting=[0], num_tokens=2)
    with pytest.raises(ConstraintError, match="no state 1: num_states is 1"):
        TokenEdges.from_arcs([(0, 0, 1)], num_states=1, start=[0], accepting=[0], num_tokens=2)
    small = tokenfst.Budget(states=3)
    with pytest.raises(BudgetExceeded, match="states"):
        TokenEdges.from_automaton(
            tokenfst.compile(tokenfst.regex("a{9}"), vocabulary, tokenfst.Budget(states=5))
        )
    with pytest.raises(BudgetExceeded, match="product"):
        TokenEdges.from_arcs(
            [(s, 0, t) for s in range(3) for t in range(3)],
            num_states=3,
            start=[0],
            accepting=[0],
            num_tokens=1,
        ).is_unambiguous(small)


def test_the_table_of_lengths_stays_within_its_budget() -> None:
    """There was no budget: 100 million tokens took 433 s."""
    words = Vocabulary([b"a", b"b", b""], 2)
    edges = TokenEdges.from_automaton(tokenfst.compile(tokenfst.regex("(ab)*"), words))
    with pytest.raises(BudgetExceeded, match=r"1,000,000,000 tokens") as caught:
        edges.reachability(10**9)
    assert caught.value.resource == "bytes"
    soon = Budget(seconds=0.05)
    begin = time.monotonic()
    for call in (
        lambda: edges.reachability(10**8, soon),
        lambda: edges.completing(10**8, exact=True, name="it", budget=soon),
        lambda: TensorRows(edges, words, prompts=1, max_new_tokens=10**8, width=3, budget=soon),
    ):
        with pytest.raises(BudgetExceeded) as caught:
            call()
        assert caught.value.resource == "seconds"
    assert time.monotonic() - begin < 5
    assert edges.reachability(5, soon).shape == (6, 2)


def test_the_next_length_is_looked_for_within_the_budget() -> None:
    """A chain of 20,000 states: it has one text, and each step back from its end costs its length."""
    count = 20_000
    states = np.arange(count)
    edges = TokenEdges(
        start=states == 0,
        accepting=states == count - 1,
        source=states[:-1],
        target=states[1:],
        label=np.zeros(count - 1, np.int64),
        offsets=np.array([0, 1]),
        tokens=np.array([0]),
        num_tokens=2,
    )
    with pytest.raises(BudgetExceeded) as caught:
        edges.completing(3, exact=True, name="it", budget=Budget(seconds=0.02))
    assert caught.value.resource == "seconds"
