"""Calls of matchers in any order, most of them sensible, some not: against a fresh matcher that takes the same tokens.

Two matchers go side by side. One has an automaton with a budget that runs out again and again, in the midst of
masks and tokens; the other has all it needs. Whatever raises leaves a matcher as it was; whatever does not gives what
the other gives, and what a third one gives that has accepted the tokens at one go.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tokenfst import (
    Budget,
    Matcher,
    TokenAutomaton,
    Vocabulary,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    compile,
    fill_bitmasks,
    gbnf,
    json_schema,
    regex,
)
from tokenfst.errors import (
    ArgumentValueError,
    BudgetExceeded,
    EmptyLanguageError,
    TokenfstError,
    TokenIdError,
    TokenLimitError,
)

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")

BYTES = [bytes([byte]) for byte in range(256)]
JSON = Vocabulary([*BYTES, b'", "', b'ab", "b', b'":', b"[[", b"]]", b'{"a', b"12", b""], 263)
LETTERS = Vocabulary([b"(", b")", b"a", b"b", b"ab", b"))", b"((a", b"", b""], 7)
UNIQUE = {
    "type": "array",
    "items": {"type": "string", "pattern": "^[a-c]*$", "maxLength": 3},
    "uniqueItems": True,
}
FEW = {"type": "array", "items": {"type": "string", "enum": ["a", "b", "ab"]}, "uniqueItems": True}

WORLDS: dict[str, tuple[Callable[[], Any], Vocabulary]] = {
    "regex": (lambda: regex("(a|b){2,9}(ab)*|a*b"), LETTERS),
    "counted": (lambda: regex(r'"[a-z ]{0,40}"(, "[0-9]{1,5}"){0,7}'), JSON),
    "intersection": (lambda: regex("[ab]*a[ab]{3}") & regex("([ab]{2})*") - regex(".*bb.*"), LETTERS),
    "finite": (lambda: regex("a|b|ab"), LETTERS),
    "nested": (lambda: gbnf('root ::= "(" root ")" | "a"'), LETTERS),
    "ambiguous": (lambda: gbnf('root ::= "(" root ")" root? | "a" root? | "ab"'), LETTERS),
    "array": (lambda: json_schema({"type": "array", "items": {"type": ["array", "integer"]}}), JSON),
    "any": (lambda: json_schema({}), JSON),
    "unique": (lambda: json_schema(UNIQUE), JSON),
    "few": (lambda: json_schema(FEW), JSON),
    "one token": (lambda: regex("a*"), Vocabulary([b"a", b""], 1)),
    "no text": (lambda: regex(""), Vocabulary([b"", b""], 0)),
}
LIMITS = [None, 0, 1, 2, 3, 7, 20, 2**31 - 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
STRANGE = [-1, -(2**31), 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1]


def signature(matcher: Matcher) -> tuple[object, ...]:
    return (
        matcher.tokens,
        matcher.max_tokens_left,
        matcher.is_terminated(),
        matcher.is_accepting(),
        matcher.state,
    )


def row_of(matcher: Matcher, size: int) -> list[int]:
    row = allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(row, 0)
    return row[0].tolist()


def outcome(matcher: Matcher, call: Callable[[Matcher], object]) -> tuple[str, object]:
    """What a call gives or raises; where it raises, that it changed nothing."""
    before = signature(matcher)
    try:
        return "gives", call(matcher)
    except (TokenfstError, TypeError, ValueError) as error:
        assert signature(matcher) == before, f"{type(error).__name__} left another matcher behind"
        return "raises", type(error).__name__


class World:
    """Two matchers of one constraint, and what both have done."""

    def __init__(self, name: str, rng: random.Random, states: int | None, folder: Any = None) -> None:
        make, self.vocabulary = WORLDS[name]
        self.constraint, self.rng, self.size = make(), rng, len(self.vocabulary)
        self.marked = name in ("unique", "few")
        self.full = compile(self.constraint, self.vocabulary)
        self.tight = self.full
        if states is not None:
            self.tight = compile(self.constraint, self.vocabulary, Budget(states=states))
        self.one, self.other = self.tight.matcher(), self.full.matcher()
        self.forks: list[tuple[Matcher, Matcher, tuple[object, ...]]] = []
        self.ran_out = 0

    def both(self, call: Callable[[Matcher], object]) -> None:
        """The same call on both. Where the budget ran out, the other one takes nothing."""
        found = outcome(self.one, call)
        if found == ("raises", "BudgetExceeded"):
            self.ran_out += 1
            return
        wanted = outcome(self.other, call)
        assert found == wanted
        assert signature(self.one)[:4] == signature(self.other)[:4]

    def tokens(self, count: int) -> list[int]:
        """Tokens that are allowed one after the other, as far as there are any; now and then another one."""
        matcher, found = self.other.fork(), []
        for _ in range(count):
            if self.rng.random() < 0.1:
                found.append(self.rng.randrange(self.size))
                continue
            bits = np.array([row_of(matcher, self.size)], np.int32).view(np.uint8)
            allowed = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
            if not len(allowed) or matcher.is_terminated():
                break
            found.append(int(self.rng.choice(allowed)))
            if not matcher.accept_token(found[-1]):
                break
        return found

    def tree(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A random tree of draft tokens, sometimes with a link that leads nowhere."""
        count = self.rng.randint(1, 6)
        child, sibling = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
        for node in range(1, count):
            parent = self.rng.randrange(node)
            sibling[node], child[parent] = child[parent], node
        if self.rng.random() < 0.1:
            self.rng.choice([child, sibling])[self.rng.randrange(count)] = self.rng.choice(
                [0, count, 99, 2**62]
            )
        drafts = [self.rng.choice(self.tokens(1) or [0, -1, self.size, 2**40]) for _ in range(count)]
        return child, sibling, np.array(drafts, np.int64)

    def step(self) -> None:  # noqa: C901  # one case a call
        rng, size = self.rng, self.size
        kind = rng.randrange(16)
        if kind <= 4:
            token = (
                (self.tokens(1) or [rng.randrange(size)])[0]
                if rng.random() < 0.9
                else rng.choice([*STRANGE, size])
            )
            self.both(lambda m: m.accept_token(token))
        elif kind <= 6:
            some = self.tokens(rng.randint(0, 6))
            self.both(lambda m: m.accept_tokens(some) if kind == 5 else m.validate_tokens(some))
        elif kind == 7:
            back = rng.choice([0, 1, 2, 5, rng.randint(0, self.one.num_tokens), -1, 10**6, 2**62])
            self.both(lambda m: m.rollback(back))
        elif kind == 8 and rng.random() < 0.3:
            self.both(lambda m: m.reset())
        elif kind == 9:
            limit = rng.choice(LIMITS) if rng.random() < 0.9 else rng.choice([-1, 2**64, "3", 1.5])
            self.both(lambda m: setattr(m, "max_tokens_left", limit))
        elif kind == 10:
            self.both(
                rng.choice(
                    [lambda m: m.forced_tokens(), lambda m: m.forced_bytes(), lambda m: m.is_accepting()]
                )
            )
        elif kind == 11:
            self.forks.append((self.one, self.other, signature(self.one)))
            self.one, self.other = self.one.fork(), self.other.fork()
        elif kind == 12 and self.forks:
            self.one, self.other, before = self.forks.pop(rng.randrange(len(self.forks)))
            assert signature(self.one) == before
        elif kind == 13:
            child, sibling, drafts = self.tree()

            def masks(matcher: Matcher) -> list[list[int]]:
                rows = allocate_token_bitmask(len(drafts), size)
                matcher.traverse_draft_tree(child, sibling, drafts, rows)
                return rows.tolist()

            self.both(masks)
        elif kind == 14:
            times, threads = rng.randint(0, 4), rng.randint(1, 3)

            def batch(matcher: Matcher) -> list[list[int]]:
                rows = allocate_token_bitmask(max(times, 1), size)
                fill_bitmasks([matcher] * times, rows, threads=threads)
                return rows[:times].tolist()

            self.both(batch)
        else:
            self.both(lambda m: row_of(m, size))

    def check(self) -> None:
        """Against a matcher that accepts the same tokens at one go, of an automaton that did nothing before."""
        fresh = compile(self.constraint, self.vocabulary).matcher()
        assert fresh.accept_tokens(self.other.tokens) or not self.other.tokens
        left = self.other.max_tokens_left
        if self.marked and left is not None:
            return  # completions that were promised on the way are known to the other one alone
        if left is not None:
            fresh.max_tokens_left = left
        assert row_of(fresh, self.size) == row_of(self.other, self.size)
        assert fresh.is_accepting() == self.other.is_accepting()


def play(name: str, seed: int, steps: int) -> int:
    rng = random.Random(f"{name} {seed}")
    states = rng.choice([None, rng.randint(1, 12), rng.randint(5, 60), rng.randint(40, 300)])
    try:
        world = World(name, rng, states)
    except BudgetExceeded:
        return 1
    for number in range(steps):
        world.step()
        if number % 10 == 9:
            world.check()
    return world.ran_out


@pytest.mark.parametrize("name", WORLDS)
def test_calls_in_any_order(name: str) -> None:
    ran_out = sum(play(name, seed, 60) for seed in range(12))
    assert ran_out or name in ("one token", "no text", "finite")


@pytest.mark.soak
@pytest.mark.parametrize("name", WORLDS)
def test_calls_in_any_order_at_length(name: str) -> None:
    for seed in range(100, 600):
        play(name, seed, 200)


def test_masks_that_are_asked_for_again() -> None:
    """A budget of tokens and one of states, which runs out wherever it can: the next mask is made, or raises again."""
    plain = Vocabulary([*BYTES, b""], 256)
    row, ran_out = allocate_token_bitmask(1, len(plain)), 0

    def tried(call: Callable[[], object]) -> object:
        nonlocal ran_out
        for _ in range(3):
            try:
                return call()
            except BudgetExceeded:
                ran_out += 1
        return None

    for states in range(60, 300):
        automaton = compile(json_schema({"type": "array"}), plain, Budget(states=states))
        matcher = tried(lambda made=automaton: made.matcher(max_new_tokens=60))
        if isinstance(matcher, Matcher):
            for token in b'[[{"z":[{':
                tried(functools.partial(matcher.fill_next_token_bitmask, row, 0))
                tried(functools.partial(matcher.accept_token, token))
                tried(matcher.distance)
    assert ran_out > 100


@pytest.mark.parametrize("limit", [2**31 - 1, 2**32 - 1, 2**32, 2**63 - 1])
@pytest.mark.parametrize("name", ["regex", "nested", "unique"])
def test_large_budgets_do_not_wrap_around(name: str, limit: int) -> None:
    make, vocabulary = WORLDS[name]
    matcher = compile(make(), vocabulary).matcher()
    free = row_of(matcher, len(vocabulary))
    token = int(
        np.flatnonzero(np.unpackbits(np.array([free], np.int32).view(np.uint8), bitorder="little"))[0]
    )
    assert matcher.accept_token(token)
    matcher.max_tokens_left = limit
    within = row_of(matcher, len(vocabulary))
    matcher.rollback()
    left = matcher.max_tokens_left
    assert left is not None and left >= limit
    with pytest.raises(ArgumentValueError, match="max_tokens_left must be an integer from"):
        matcher.max_tokens_left = 2**63
    assert matcher.max_tokens_left == left
    assert row_of(matcher, len(vocabulary)) == free
    assert matcher.accept_token(token) and row_of(matcher, len(vocabulary)) == within


def test_automata_without_any_token() -> None:
    nothing = Vocabulary([b"", b""], 0)
    with pytest.raises(EmptyLanguageError):
        compile(regex("a"), nothing).matcher()
    matcher = compile(regex("a?"), nothing).matcher(1)
    assert matcher.forced_tokens() == [] and matcher.accept_token(0)
    with pytest.raises(TokenLimitError):
        compile(regex("aa"), LETTERS).matcher(1)


@pytest.mark.parametrize("size", [1, 2, 1_000_000])
def test_vocabularies_of_any_size(size: int) -> None:
    """The end token comes first; then a letter, and all its numbers."""
    tokens = [b"", *(b"a%d" % number if number else b"a" for number in range(size - 1))]
    vocabulary = Vocabulary(tokens, 0)
    matcher = compile(regex("(a[0-9]*)?"), vocabulary).matcher(2)
    row = allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(row, 0)
    allowed = np.unpackbits(row.view(np.uint8), bitorder="little")[:size]
    assert allowed.all()
    for call in (matcher.forced_tokens, matcher.distance, matcher.fork):
        call()
    fill_bitmasks([matcher, matcher.fork()], allocate_token_bitmask(2, size))
    if size > 1:
        assert matcher.accept_token(size - 1) and matcher.is_accepting()
        assert not matcher.accept_token(size - 1) and matcher.rollback() is None
    assert matcher.accept_token(0) and matcher.is_terminated()
    for token in (-1, size, 2**31 - 1, 2**40):
        with pytest.raises(TokenIdError):
            matcher.fork().accept_token(token)


def test_empty_batches() -> None:
    rows = allocate_token_bitmask(0, 10)
    fill_bitmasks([], rows)
    apply_token_bitmask_inplace(np.zeros((0, 10), np.float32), rows)
    apply_token_bitmask_inplace(torch.zeros(0, 10), rows)
    matcher = compile(regex("a*"), LETTERS).matcher()
    none = np.zeros(0, np.int64)
    matcher.traverse_draft_tree(none, none, none, allocate_token_bitmask(1, len(LETTERS)))


def test_loaded_automata_go_the_same_way(tmp_path: Any) -> None:
    for name in ("regex", "counted", "intersection", "nested", "array"):
        make, vocabulary = WORLDS[name]
        full = compile(make(), vocabulary)
        full.save(tmp_path / "it")
        world = World(name, random.Random(name), None)
        world.one = TokenAutomaton.load(tmp_path / "it", vocabulary).matcher()
        for _ in range(150):
            world.step()


class Raising:
    """Something walked node by node whose budget runs out at one of its calls."""

    def __init__(self, walked: Any, at: int) -> None:
        self._walked, self._left = walked, at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._walked, name)
        if name not in ("step", "mask", "mask_within", "is_within", "accepting"):
            return found

        def call(*args: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise BudgetExceeded("states", 1)
            return found(*args)

        return call


@pytest.mark.parametrize("limit", [None, 9])
def test_matchers_of_nodes_stay_where_they_were(limit: int | None) -> None:
    vocabulary = Vocabulary([*BYTES, b"ab", b"xy", b"xyz", b""], 259, split_pattern=r"\s+|\S+")
    automaton = compile(regex("a?xyzw(ab)*"), vocabulary, tokenization="canonical")
    tokens, none = [258, ord("w"), 256], np.full(2, -1, np.int64)
    calls: list[Callable[[Any], object]] = [
        lambda m: m.accept_tokens(tokens),
        lambda m: m.validate_tokens(tokens),
        lambda m: m.forced_tokens(),
        lambda m: m.accept_token(258),
        lambda m: m.traverse_draft_tree(
            np.array([1, -1]), none, np.array([0, 258]), np.zeros((2, 9), np.int32)
        ),
    ]
    for call in calls:
        for at in range(20):
            matcher = automaton.matcher(limit)
            if at % 2:
                assert matcher.accept_token(258)
            before = (matcher.tokens, matcher.state, matcher.max_tokens_left, matcher.is_terminated())
            matcher.automaton = Raising(automaton, at)
            try:
                call(matcher)
            except BudgetExceeded:
                assert (
                    matcher.tokens,
                    matcher.state,
                    matcher.max_tokens_left,
                    matcher.is_terminated(),
                ) == before
