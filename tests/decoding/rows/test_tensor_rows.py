"""Masks by matrices against enumeration, and DFA = NFA = push-down automaton; samples and their weights."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
import torch

import tokenfst
from reference.tokens.token_edges import arcs_of, random_edges, ways
from tokenfst.common.plurals import counted
from tokenfst.decoding.rows.edges import TokenEdges
from tokenfst.decoding.rows.reach_rows import start_rows
from tokenfst.decoding.rows.rows import Rows
from tokenfst.decoding.rows.tensor_rows import TensorRows
from tokenfst.decoding.search.beam_search import automata_beam_search
from tokenfst.decoding.search.exact_length_sampling import exact_length_sample
from tokenfst.errors import DecodingError, LogitsError, ModelError, TokenLimitError, VocabularyMismatchError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

CPU = torch.device("cpu")
VOCABULARY = Vocabulary([b"a", b"b", b"c", b"", b""], eos_token_id=[3, 4])


def spelled(rows: Rows) -> set[tuple[int, ...]]:
    """Every sequence that the masks admit, walked in one batch."""
    while not rows.finished.all():
        going = (~rows.finished).nonzero().squeeze(1).tolist()
        parents, tokens = rows.allowed().nonzero().unbind(1)
        kept = [k for k, p in enumerate(parents.tolist()) if p in going or k == parents.tolist().index(p)]
        assert set(parents.tolist()) == set(range(len(rows)))
        rows.extend(parents[kept], tokens[kept])
    assert rows.accepting.all()
    found = [tuple(rows.tokens(row)) for row in range(len(rows))]
    assert len(set(found)) == len(found)
    return set(found)


def started(edges: TokenEdges, tokens: int, length: str, count_end: bool = False) -> TensorRows:
    return TensorRows(
        edges, VOCABULARY, prompts=1, max_new_tokens=tokens, width=6, length=length, count_end=count_end
    )


def test_masks_of_nondeterministic_automata_as_enumerated() -> None:
    rng, kinds = random.Random(1), set()
    for _ in range(40):
        edges = random_edges(rng, width=5)
        arcs, tokens = arcs_of(edges), rng.randint(0, 4)
        texts = {
            s
            for n in range(tokens + 1)
            for s in itertools.product(range(3), repeat=n)
            if ways(edges, s, arcs)
        }
        for length in ("exact", "at_most"):
            expected = {s for s in texts if len(s) == tokens}
            if length == "at_most":
                expected |= {(*s, end) for s in texts if len(s) < tokens for end in (3, 4)}
            if expected:
                assert spelled(started(edges, tokens, length)) == expected
                if length == "exact":
                    ended = {(*s, end) for s in expected for end in (3, 4)}
                    assert spelled(started(edges, tokens + 1, length, count_end=True)) == ended
            else:
                with pytest.raises(TokenLimitError, match=rf"\b{counted(tokens, 'token')}\b"):
                    started(edges, tokens, length)
            kinds.add((length, edges.is_deterministic, bool(expected)))
    assert len(kinds) == 8


def test_distances_and_nearer_tokens() -> None:
    rng = random.Random(2)
    for _ in range(40):
        edges = random_edges(rng, width=5)
        arcs = arcs_of(edges)
        least = {
            s: min(
                (
                    n
                    for n in range(5)
                    for t in itertools.product(range(3), repeat=n)
                    if ways(edges, (*s, *t), arcs)
                ),
                default=1 << 30,
            )
            for s in [(), (0,), (1,), (2,)]
        }
        if least[()] > 4:
            continue
        rows = started(edges, 5, "at_most")
        assert rows.distances().tolist() == [least[()]]
        nearer = rows.mask_nearer_(torch.zeros(1, 6))[0]
        assert (nearer == 0).nonzero().flatten().tolist() == [t for t in range(3) if least[t,] < least[()]]


@pytest.mark.parametrize("length", ["exact", "at_most"])
def test_three_kinds_of_rows_agree_on_real_tokens(tekken: Vocabulary, length: str) -> None:
    """A finite automaton by search, by matrices and as one of two alternatives of an NFA; a grammar for the same."""
    pattern = r"(cat|[0-9]{2,4}|cats? and dogs?)(, (cat|[0-9]{2,4}))*"
    rule = 'item: "cat" | /[0-9]{2,4}/\nstart: (item | /cats? and dogs?/) (", " item)*'
    automata = [
        tokenfst.compile(each, tekken) for each in (tokenfst.regex(pattern), tokenfst.lark_grammar(rule))
    ]
    edges = TokenEdges.from_automaton(automata[0])
    parts = [edges.set_of(int(label)) for label in edges.label]
    lengths, borne = [len(part) for part in parts], np.concatenate(parts)
    twice = TokenEdges.from_arcs(
        (
            np.concatenate([np.repeat(edges.source, lengths) + s for s in (0, edges.num_states)]),
            np.concatenate([borne, borne]),
            np.concatenate([np.repeat(edges.target, lengths) + s for s in (0, edges.num_states)]),
        ),
        num_states=2 * edges.num_states,
        start=[0, edges.num_states],
        accepting=np.concatenate(
            [np.flatnonzero(edges.accepting) + s for s in (0, edges.num_states)]
        ).tolist(),
        num_tokens=len(tekken),
    )
    assert not twice.is_deterministic
    tokens, rng = 9, torch.Generator().manual_seed(3)
    options = {"prompts": 2, "max_new_tokens": tokens, "width": len(tekken), "length": length}
    kinds = [start_rows(automaton, device=CPU, **options) for automaton in automata]
    kinds += [TensorRows(each, tekken, **options) for each in (edges, twice)]
    for _ in range(tokens):
        masks = [rows.allowed() for rows in kinds]
        assert all(torch.equal(masks[0], mask) for mask in masks[1:])
        drawn = torch.rand(masks[0].shape, generator=rng).masked_fill_(~masks[0], -1).argmax(1)
        for rows in kinds:
            rows.extend([0, 1], drawn)
        assert [rows.finished.tolist() for rows in kinds] == [kinds[0].finished.tolist()] * 4
    assert [[rows.tokens(row) for row in range(2)] for rows in kinds] == [
        [kinds[0].tokens(row) for row in range(2)]
    ] * 4


def test_rows_by_matrices_that_cannot_be() -> None:
    edges = TokenEdges.from_arcs([(0, 0, 1), (1, 0, 0)], num_states=2, start=[0], accepting=[0], num_tokens=5)
    with pytest.raises(TokenLimitError, match="exactly 3 tokens: 2 and 4 work"):
        started(edges, 3, "exact")
    with pytest.raises(DecodingError, match="length='long'"):
        started(edges, 3, "long")
    with pytest.raises(VocabularyMismatchError, match="over 5 tokens, and the vocabulary has 2"):
        TensorRows(edges, Vocabulary([b"a", b""], eos_token_id=1), prompts=1, max_new_tokens=2, width=5)
    rows = started(edges, 2, "exact")
    for token in (1, 4, 5, -1):
        with pytest.raises(ModelError, match=f"row 0 does not allow token {token}"):
            rows.extend([0], [token])
    assert rows.allowed(max_new_tokens=[3]).any().item() is False
    rows.extend([0, 0], [0, 0])
    assert rows.tokens(1) == [0]
    with pytest.raises(ModelError, match="2 rows of width 6 for 1 prompt "):
        automata_beam_search(
            lambda ids: torch.zeros(len(ids), 6), [[]], rows, width=6, num_beams=2, max_new_tokens=2
        )


def test_beam_search_over_a_nondeterministic_automaton() -> None:
    rng, done = random.Random(4), 0
    scores = torch.log_softmax(torch.randn((6,), generator=torch.Generator().manual_seed(1)), -1)
    while done < 15:
        edges, tokens, arcs = random_edges(rng, width=5), rng.randint(1, 4), set()
        arcs = arcs_of(edges)
        texts = [s for s in itertools.product(range(3), repeat=tokens) if ways(edges, s, arcs)]
        if not texts:
            continue
        done += 1
        (found,) = automata_beam_search(
            lambda ids: scores.repeat(len(ids), 1),
            [[]],
            started(edges, tokens, "exact"),
            width=6,
            num_beams=81,
            max_new_tokens=tokens,
        )
        best = max(sum(float(scores[t]) for t in s) for s in texts)
        assert found[0].tokens in texts and found[0].log_prob == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("length", ["exact", "at_most"])
def test_samples_follow_the_proposal_and_their_weights_correct_it(length: str) -> None:
    automaton = tokenfst.compile(tokenfst.regex("(a|bc)*"), VOCABULARY)
    logits = torch.tensor([[0.5, 1.0, -1.0, 0.3, -0.7]])
    log_probs = torch.log_softmax(logits, -1)[0]
    count = 6000
    found = exact_length_sample(
        lambda ids: logits.repeat(len(ids), 1),
        [[]] * count,
        automaton,
        width=5,
        max_new_tokens=3,
        length=length,
        generator=torch.Generator().manual_seed(0),
    )
    texts = {(0, 0, 0), (0, 1, 2), (1, 2, 0)}
    if length == "at_most":
        texts |= {(*s, end) for s in [(), (0,), (0, 0), (1, 2)] for end in (3, 4)}
    assert {each.tokens for each in found} == texts
    drawn = Counter(each.tokens for each in found)
    by_tokens = {each.tokens: each for each in found}
    proposal = {}
    for tokens, each in by_tokens.items():
        assert each.log_prob == pytest.approx(sum(float(log_probs[t]) for t in tokens), abs=1e-5)
        proposal[tokens] = math.exp(each.log_prob - each.log_weight)
        assert drawn[tokens] / count == pytest.approx(proposal[tokens], abs=4 * math.sqrt(0.25 / count))
    assert sum(proposal.values()) == pytest.approx(1, abs=1e-5)


def test_nothing_can_be_drawn_where_the_model_gives_nothing() -> None:
    automaton = tokenfst.compile(tokenfst.regex("ab"), VOCABULARY)
    with pytest.raises(LogitsError, match="row 1 may take the probability 0"):
        exact_length_sample(
            lambda ids: torch.tensor([[0.0, 0, 0, 0, 0], [-math.inf, 0, 0, 0, 0]]),
            [[], []],
            automaton,
            width=5,
            max_new_tokens=3,
        )
    with pytest.raises(DecodingError, match="max_new_tokens=-1"):
        exact_length_sample(lambda ids: ids, [[]], automaton, width=5, max_new_tokens=-1)
    assert (
        exact_length_sample(
            lambda ids: ids,
            [[]],
            tokenfst.compile(tokenfst.regex("a*"), VOCABULARY),
            width=5,
            max_new_tokens=0,
        )[0].tokens
        == ()
    )
