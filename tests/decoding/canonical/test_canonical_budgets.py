"""Token budgets, distances and draft trees of canonical sequences, against all of them in small worlds."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

import tokenfst
from reference.tokens.byte_pairs import encode, train
from tokenfst import Budget, Vocabulary, regex
from tokenfst.automata.expressions import metering
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.canonical.matcher import CanonicalMatcher
from tokenfst.errors import BudgetExceeded, MaskBufferError, TokenIdError, TokenLimitError


def worlds(count: int) -> Iterator[tuple[CanonicalAutomaton, set[tuple[int, ...]]]]:
    """Automata of a few random texts, and all canonical sequences of these."""
    rng = random.Random(3)
    for number in range(count):
        letters = b"ab c"[: rng.choice([2, 3, 4])]
        tokens = train(bytes(rng.choice(letters) for _ in range(40)), rng.randint(1, 12))
        pattern = r"\s+|\S+" if number % 2 else r"[\s\S]+"
        vocabulary = Vocabulary([*tokens, b""], len(tokens), split_pattern=pattern)
        texts = {
            bytes(rng.choice(letters) for _ in range(rng.randint(1, 7))) for _ in range(rng.randint(1, 9))
        }
        ranks = {data: rank for rank, data in enumerate(tokens)}
        language = regex("|".join(re.escape(text.decode()) for text in sorted(texts)))
        sequences = set()
        for text in texts:
            pieces = re.findall(pattern.encode(), text)
            sequences.add(tuple(token for piece in pieces for token in encode(piece, ranks)))
        yield tokenfst.compile(language, vocabulary, tokenization="canonical"), sequences


def allowed(matcher: CanonicalMatcher) -> set[int]:
    size = len(matcher.automaton.vocabulary)
    row = tokenfst.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(row, 0)
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little", count=size)).tolist())


def nearest_of(sequences: set[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for sequence in sequences:
        for place in range(len(sequence) + 1):
            left = len(sequence) - place
            found[sequence[:place]] = min(found.get(sequence[:place], left), left)
    return found


def test_budgets_and_distances_of_all_prefixes() -> None:
    looked_at = tight = 0
    for automaton, sequences in worlds(40):
        nearest = nearest_of(sequences)
        (end,) = automaton.vocabulary.eos_token_ids
        size = len(automaton.vocabulary)
        for prefix, distance in nearest.items():
            matcher = automaton.matcher()
            assert matcher.accept_tokens(prefix)
            assert matcher.distance() == distance
            for left in range(distance, distance + 4):
                matcher.max_tokens_left = left
                wanted = {t for t in range(size) if nearest.get((*prefix, t), left) <= left - 1}
                ends = {end} if prefix in sequences and left else set()
                assert allowed(matcher) == wanted | ends, (prefix, left)
                for token in range(256, size - 1):
                    assert (matcher.validate_tokens([token]) == 1) == (token in wanted)
                looked_at += 1
                tight += wanted < {t for t in range(size) if (*prefix, t) in nearest}
            if distance:
                with pytest.raises(TokenLimitError, match=f"from here is {distance}"):
                    matcher.max_tokens_left = distance - 1
    assert looked_at > 500 and tight > 50


def test_budgets_of_endless_languages() -> None:
    tokens = train(b"abababcabc", 4)
    vocabulary = Vocabulary([*tokens, b""], len(tokens), split_pattern=r"[\s\S]+")
    automaton = tokenfst.compile(regex("[abc]*c"), vocabulary, tokenization="canonical")
    rng = random.Random(1)
    for limit in (1, 2, 5, 40):
        for _ in range(20):
            matcher = automaton.matcher(limit)
            while True:
                tokens_now = allowed(matcher)
                assert tokens_now
                token = rng.choice(sorted(tokens_now))
                assert matcher.accept_token(token)
                if token in vocabulary.eos_token_ids or not matcher.max_tokens_left:
                    break
            assert matcher.is_terminated() or matcher.is_accepting()
            assert len(matcher.tokens) <= limit
    with pytest.raises(
        TokenLimitError, match="fits into 0 canonical tokens: the least number from here is 1"
    ):
        automaton.matcher(0)


def test_no_tokens_left() -> None:
    automaton, sequences = next(worlds(1))
    sequence = min(sequences, key=len)
    matcher = automaton.matcher(len(sequence))
    assert matcher.accept_tokens(sequence) and matcher.max_tokens_left == 0
    assert allowed(matcher) == set()
    assert not matcher.accept_token(automaton.vocabulary.eos_token_ids[0])
    matcher.max_tokens_left = None
    assert matcher.accept_token(automaton.vocabulary.eos_token_ids[0])
    assert matcher.fork().max_tokens_left is None


def test_searches_stay_within_the_budget() -> None:
    tokens = train(b"ab" * 20, 6)
    vocabulary = Vocabulary([*tokens, b""], len(tokens), split_pattern=r"[\s\S]+")
    automaton = tokenfst.compile(regex("[ab]{30}"), vocabulary, tokenization="canonical")
    automaton.budget = Budget(states=1)
    with pytest.raises(BudgetExceeded, match="canonical token sequences"):
        automaton.matcher().distance()


def test_draft_trees() -> None:
    rng = random.Random(5)
    rejected = 0
    for automaton, sequences in worlds(40):
        vocabulary = automaton.vocabulary
        known = sorted({token for sequence in sequences for token in sequence})
        count = rng.randint(1, 12)
        draft = np.array(
            [0, *(rng.choice([*known, vocabulary.eos_token_ids[0], -1, 9999]) for _ in range(count))]
        )
        parents = [-1, *(rng.randrange(node) for node in range(1, count + 1))]
        child, sibling = np.full(count + 1, -1), np.full(count + 1, -1)
        for node in range(count, 0, -1):
            sibling[node], child[parents[node]] = child[parents[node]], node
        start = list(min(sequences))[:1]
        matcher = automaton.matcher(rng.choice([None, 6]))
        if not matcher.accept_tokens(start):
            continue
        rows = tokenfst.allocate_token_bitmask(count + 1, len(vocabulary))
        matcher.traverse_draft_tree(child, sibling, draft, rows)
        assert matcher.tokens == start
        for node in range(count + 1):
            path, at = [], node
            while at:
                path.append(int(draft[at]))
                at = parents[at]
            one = matcher.fork()
            wanted = tokenfst.allocate_token_bitmask(1, len(vocabulary))
            good = all(
                0 <= token < len(vocabulary) and not one.is_terminated() and one.accept_token(token)
                for token in reversed(path)
            )
            wanted[:] = 0
            if good:
                one.fill_next_token_bitmask(wanted, 0)
            rejected += not good
            assert np.array_equal(rows[node], wanted[0]), (node, path)
    assert rejected > 50


def test_draft_trees_that_are_none() -> None:
    automaton, _ = next(worlds(1))
    rows = tokenfst.allocate_token_bitmask(2, len(automaton.vocabulary))
    matcher = automaton.matcher()
    with pytest.raises(MaskBufferError, match=r"for each node, .* 1 \(next_token\), 2 \(next"):
        matcher.traverse_draft_tree(np.array([-1]), np.array([-1, -1]), np.array([0, 0]), rows)
    token = sorted(allowed(matcher))[0]
    with pytest.raises(TokenIdError, match="two parents"):
        matcher.traverse_draft_tree(np.array([1, 1]), np.array([-1, -1]), np.array([0, token]), rows)
    assert matcher.tokens == []


def test_the_searches_of_one_mask_share_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves on by a second with each look: a mask is over after three, however short its searches are."""
    tokens = train(b"ab" * 20, 6)
    vocabulary = Vocabulary([*tokens, b""], len(tokens), split_pattern=r"[\s\S]+")
    automaton = tokenfst.compile(regex("[ab]*a[ab]{5}"), vocabulary, tokenization="canonical")
    looks = itertools.count()
    with monkeypatch.context() as patched:
        patched.setattr(metering, "time", SimpleNamespace(monotonic=lambda: float(next(looks))))
        automaton.budget = Budget(seconds=3)
        with pytest.raises(BudgetExceeded, match="3 seconds"):
            allowed(automaton.matcher())
    fresh = tokenfst.compile(regex("[ab]*a[ab]{5}"), vocabulary, tokenization="canonical")
    assert allowed(automaton.matcher()) == allowed(fresh.matcher()) != set()
