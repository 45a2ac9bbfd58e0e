"""Exact numbers of tokens: masks against enumeration, of finite and push-down automata alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

import tokenfst
from reference.tokens.small_automata import small_automaton
from tokenfst.common.plurals import counted
from tokenfst.decoding.masks.bitmask import unpack_bitmask
from tokenfst.decoding.matchers.reach import START, reach_of
from tokenfst.decoding.rows.edges import TokenEdges
from tokenfst.decoding.rows.reach_rows import ReachRows, start_rows
from tokenfst.decoding.rows.rows import ConstraintRows
from tokenfst.decoding.search.beam_search import automata_beam_search
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    DecodingError,
    EmptyLanguageError,
    ModelError,
    TokenLimitError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")

CPU = torch.device("cpu")
TOKENS = [b"(", b")", b"((", b"))", b"a", b"()", b"aa)", b""]
END = 7
VOCABULARY = Vocabulary(TOKENS, eos_token_id=END)
NESTED = 'start: "(" start ")" | "a" start | "a"'
LISTS = 'start: "(" (start)* ")"'


def texts(accepts: Callable[[bytes], bool], vocabulary: Vocabulary, length: int) -> Iterator[tuple[int, ...]]:
    """The twin: all sequences of exactly ``length`` tokens whose text is accepted."""
    pending: list[tuple[tuple[int, ...], bytes]] = [((), b"")]
    for _ in range(length):
        pending = [
            ((*sequence, token), text + spelled)
            for sequence, text in pending
            for token, spelled in enumerate(vocabulary.tokens)
            if spelled
        ]
    return (sequence for sequence, text in pending if accepts(text))


def start(automaton: TokenAutomaton, tokens: int, **more: object) -> ReachRows:
    rows = start_rows(
        automaton,
        prompts=1,
        max_new_tokens=tokens,
        width=len(automaton.vocabulary) + 1,
        device=CPU,
        length="exact",
        **more,
    )
    assert isinstance(rows, ReachRows)
    return rows


def spelled(rows: ReachRows) -> set[tuple[int, ...]]:
    """Every sequence that the masks admit, walked in one batch."""
    while not rows.finished.all():
        allowed = rows.allowed()
        assert allowed.any(1).all()
        parents, tokens = allowed.nonzero().unbind(1)
        rows.extend(parents, tokens)
    assert rows.accepting.all()
    found = [tuple(rows.tokens(row)) for row in range(len(rows))]
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.parametrize(
    "source",
    [NESTED, LISTS, 'start: ("(" "a" ")")+', 'start: "a"+ | "((" "a" "))"'],
    ids=["nested", "lists", "two", "odd"],
)
@pytest.mark.parametrize("kind", ["grammar", "truncated", "expanded"])
def test_exact_lengths_as_enumerated(source: str, kind: str) -> None:
    grammar = tokenfst.lark_grammar(source)
    automaton = tokenfst.compile(grammar if kind == "grammar" else grammar.truncate(12), VOCABULARY)
    if kind == "expanded":
        automaton = automaton.expand()
    for length in range(6):
        expected = set(texts(lambda text: grammar.accepts(text), VOCABULARY, length))
        if not expected:
            with pytest.raises(TokenLimitError, match=f"exactly {counted(length, 'token')}\\b"):
                start(automaton, length)
            continue
        assert spelled(start(automaton, length)) == expected
        assert spelled(start(automaton, length + 1, count_end=True)) == {(*text, END) for text in expected}


@pytest.mark.parametrize("source", [NESTED, LISTS])
def test_stacks_within_budgets_that_distances_refuse(source: str) -> None:
    """One token closes several frames: the distance of a stack is more than what is needed."""
    grammar = tokenfst.lark_grammar(source)
    automaton = tokenfst.compile(grammar, VOCABULARY)
    for length in range(5):
        expected = {
            (*text, END) if n < length else text
            for n in range(length + 1)
            for text in texts(lambda text: grammar.accepts(text), VOCABULARY, n)
        }
        if expected:
            rows = ReachRows([automaton], length, len(VOCABULARY), CPU, exact=False)
            assert spelled(rows) == expected
            either = start_rows(automaton, prompts=1, max_new_tokens=length, width=8, device=CPU)
            assert either.allowed().any()
        else:
            with pytest.raises(TokenLimitError, match="the least number"):
                start_rows(automaton, prompts=1, max_new_tokens=length, width=8, device=CPU)


@pytest.mark.parametrize("source", [NESTED, LISTS])
@pytest.mark.parametrize("states", [1_000_000, 40, 1])
def test_what_is_nearer_with_stacks_is_found_once_and_kept(
    source: str, states: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same masks as by a walk of the vocabulary each time, whether there is room to keep them or not.

    There are so many tokens that no search is needed, for which there would be no room.
    """
    automaton = tokenfst.compile(tokenfst.lark_grammar(source), VOCABULARY)
    monkeypatch.setattr(automaton, "budget", tokenfst.Budget(states=states))
    rng, walks = random.Random(1), []
    walk = ConstraintRows._fill_within
    monkeypatch.setattr(
        ConstraintRows, "_fill_within", lambda self, *which: walks.append(1) or walk(self, *which)
    )
    for _ in range(20):
        rows = ConstraintRows.start(automaton, prompts=2, max_new_tokens=99, width=8, device=CPU)
        for _ in range(9):
            nearer = rows.mask_nearer_(torch.zeros(2, 8)) == 0
            for row, matcher in enumerate(rows.matchers):
                expected = [token for token in range(8) if comes_nearer(automaton, rows.tokens(row), token)]
                assert nearer[row].nonzero().flatten().tolist() == expected, matcher
            allowed = [row.nonzero().flatten().tolist() for row in rows.allowed()]
            parents = [rng.randrange(2) for _ in range(2)]
            rows.extend(parents, [rng.choice(allowed[parent]) for parent in parents])
    assert bool(walks) == (states == 1)


def comes_nearer(automaton: TokenAutomaton, before: list[int], token: int) -> bool:
    matcher = automaton.matcher()
    assert matcher.accept_tokens(before)
    if matcher.is_terminated() or token == END:
        return False
    least = matcher.distance()
    return matcher.accept_token(token) and matcher.distance() < least


def test_small_automata_agree_with_their_edges() -> None:
    """Lengths of each state by β over explicit edges; masks by the edges whose targets have them."""
    rng, checked = random.Random(6), 0
    for _ in range(40):
        automaton = small_automaton(rng)
        try:
            edges = TokenEdges.from_automaton(automaton)
        except EmptyLanguageError:
            with pytest.raises(EmptyLanguageError):
                reach_of(automaton, exact=True)
            continue
        beta, reach = edges.reachability(6), reach_of(automaton, exact=True)
        pairs = [(START, 0)]
        for at, state in pairs:
            assert [reach.can(at, r) for r in range(7)] == beta[:, state].tolist()
            for left in range(7):
                expected = np.zeros(edges.num_tokens, np.bool_)
                for edge in np.flatnonzero(edges.source == state):
                    if left and beta[left - 1, edges.target[edge]]:
                        expected[edges.set_of(int(edges.label[edge]))] = True
                assert np.array_equal(unpack_bitmask(reach.mask(at, left), edges.num_tokens), expected)
            for edge in np.flatnonzero(edges.source == state):
                token = int(edges.set_of(int(edges.label[edge]))[0])
                pair = reach.advance(at, token), int(edges.target[edge])
                if pair not in pairs:
                    pairs.append(pair)
        checked += len(pairs)
        assert len(pairs) == edges.num_states
    assert checked > 60


def test_the_page_s_counterexample() -> None:
    """L = {a, bcd}, three tokens: ``a`` is at distance 0 and leads nowhere."""
    vocabulary = Vocabulary.of_symbols(tuple("abcd"))
    language = tokenfst.SymbolAutomaton.from_transitions(
        [(0, "a", 4), (0, "b", 1), (1, "c", 2), (2, "d", 4)], 0, [4], tuple("abcd")
    )
    assert spelled(start(tokenfst.compile(language, vocabulary), 3)) == {(1, 2, 3)}


def test_rows_of_real_tokens_end_exactly(tekken: Vocabulary) -> None:
    pattern = tokenfst.regex(r'\{"name": "[^"\\]*", "age": [0-9]{1,3}\}')
    for automaton in (
        tokenfst.compile(pattern, tekken),
        tokenfst.compile(tokenfst.bundled_grammar("json"), tekken),
    ):
        rng = torch.Generator().manual_seed(0)
        for tokens in (11, 24):
            rows = start_rows(
                automaton, prompts=2, max_new_tokens=tokens, width=len(tekken), device=CPU, length="exact"
            )
            for _ in range(tokens):
                scores = rows.mask_(torch.rand((2, len(tekken)), generator=rng))
                rows.extend([0, 1], scores.argmax(1))
            assert rows.finished.all() and rows.accepting.all()
            for row in range(2):
                matcher = automaton.matcher()
                assert len(rows.tokens(row)) == tokens
                assert matcher.accept_tokens(rows.tokens(row)) and matcher.is_accepting()


def test_rows_that_cannot_be() -> None:
    automaton = tokenfst.compile(tokenfst.regex("(aa)*"), Vocabulary([b"a", b"b", b""], eos_token_id=2))
    with pytest.raises(TokenLimitError, match="exactly 3 tokens: 2 and 4 work"):
        start(automaton, 3)
    with pytest.raises(DecodingError, match="count_end requires length"):
        start_rows(automaton, prompts=1, max_new_tokens=3, width=3, device=CPU, count_end=True)
    with pytest.raises(DecodingError, match="length='longest'"):
        start_rows(automaton, prompts=1, max_new_tokens=3, width=3, device=CPU, length="longest")
    with pytest.raises(DecodingError, match="at least 1"):
        start(automaton, 0, count_end=True)
    rows = start(automaton, 2)
    for token in (1, 2, 3, -1):
        with pytest.raises(ModelError, match=f"row 0 does not allow token {token}"):
            rows.extend([0], [token])
    rows.extend([0, 0], [0, 0])
    rows.extend([1], [0])
    assert rows.finished.tolist() == [True] and rows.tokens(0) == [0, 0]
    rows.extend([0, 0], [2, 2])
    assert rows.tokens(1) == [0, 0] and rows.allowed()[0].int().tolist() == [0, 0, 1, 0]
    small = tokenfst.compile(tokenfst.lark_grammar(LISTS), VOCABULARY, tokenfst.Budget(states=30))
    with pytest.raises(BudgetExceeded, match="states"):
        spelled(start(small, 9))


def test_canonical_tokenizations_have_budgets_and_no_exact_lengths(tekken: Vocabulary) -> None:
    automaton = tokenfst.compile(tokenfst.regex("cat dog|cat"), tekken, tokenization="canonical")
    with pytest.raises(ConstraintError, match="exact numbers of tokens"):
        start(automaton, 3)
    (found,) = automata_beam_search(
        lambda ids: torch.zeros(len(ids), len(tekken)),
        [[]],
        automaton,
        width=len(tekken),
        num_beams=4,
        num_return_sequences=4,
        max_new_tokens=3,
    )
    texts = sorted(tekken.decode([t for t in each.tokens if t not in tekken.eos_token_ids]) for each in found)
    assert texts == [b"cat", b"cat dog"]
