"""Finding the matcher of every row again, whatever a decoding loop does to the rows."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.decoding.matcher import FiniteMatcher
from tokenfst.decoding.matchers.prefixes import PrefixStates
from tokenfst.errors import MaskBufferError, MatcherError

EOS = 3
VOCAB = 4
WORDS = [
    {(), (0,), (0, 1), (1, 1, 0), (2, 0, 2, 0)},
    {(0,) * n for n in range(6)},
    set(itertools.product((1, 2), repeat=3)),
]


def states(*which: int, max_new_tokens: int | None = None) -> PrefixStates:
    return PrefixStates([FiniteMatcher(WORDS[w], EOS, max_new_tokens) for w in which], VOCAB)  # type: ignore[list-item]


def check(tracked: PrefixStates, ids, prompt: int, which, max_new_tokens=None) -> None:
    """Every row as if it had been followed alone, from the start."""
    share = len(ids) // len(which)
    for row, tokens in enumerate(np.asarray(ids)[:, prompt:].tolist()):
        alone = FiniteMatcher(WORDS[which[row // share]], EOS, max_new_tokens).follow(tokens)
        assert tracked.matchers[row].tokens == alone.tokens
        assert tracked.is_dead(row) == (len(alone.tokens) < len(tokens) and not alone.is_terminated())
    assert len({id(matcher) for matcher in tracked.matchers}) == len(ids), "two rows share a matcher"


def rows_of(data, old, beams, grow=1):
    """Each row goes on from a beam of its own prompt."""
    new = []
    for row in range(len(old)):
        parent = row // beams * beams + data.draw(st.integers(0, beams - 1))
        tail = data.draw(st.lists(st.integers(0, VOCAB + 1), min_size=grow, max_size=grow))
        new.append([*old[parent], *tail])
    return new


@given(st.data())
@settings(deadline=None)
def test_any_loop(data):
    which = data.draw(st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=3))
    beams = data.draw(st.integers(1, 3))
    prompts = len(which) if len(which) > 1 else data.draw(st.integers(1, 3))
    max_new_tokens = data.draw(st.none() | st.integers(3, 6))
    told = data.draw(st.booleans())
    tracked = states(*which, max_new_tokens=max_new_tokens)
    prompt, ids, before = 0, None, None
    for _ in range(data.draw(st.integers(1, 10))):
        step = data.draw(st.sampled_from(["prompt", "step", "step", "step", "cut", "same", "jump"]))
        if step == "prompt" or ids is None:
            prompt = data.draw(st.integers(0, 4))
            if ids is None or told:
                tracked.reset(prompt if told else None)
            else:
                prompt += 2 + len(ids[0])
            # Longer than all before, so that it is a new one whatever it holds.
            ids = [[data.draw(st.integers(0, 5))] * prompt for _ in range(prompts)]
            ids = [row for row in ids for _ in range(beams)]
            if prompt == 0:
                tracked.reset(prompt if told else None)
        elif step == "step":
            ids = rows_of(data, ids, beams)
        elif step == "cut":
            width = data.draw(st.integers(prompt, len(ids[0])))
            ids = [row[:width] for row in ids]
        elif step == "jump" and told:
            ids = rows_of(data, ids, beams, grow=data.draw(st.integers(2, 4)))
        shown = np.array(ids, dtype=np.int64).reshape(prompts * beams, -1)
        try:
            tracked.update(shown)
        except MatcherError:
            # Nobody said where the prompt ends: a step back, or another prompt?
            assert not told and step in ("cut", "same", "jump") and shown.shape[1] > prompt
            ids = before
            continue
        before = ids
        check(tracked, ids, prompt, which, max_new_tokens)


@given(st.data())
@settings(deadline=None)
def test_loops_that_take_turns(data):
    """Loops with prompts that begin alike, in any order: each is followed as if it were alone, or refused. What the ids
    do not show, a prompt that is the last rows of a loop and a token more, is left out.
    """
    tracked = states(1)
    loops: list[tuple[int, list[int]]] = []
    ended: list[list[int]] = []
    for _ in range(data.draw(st.integers(1, 25))):
        which = data.draw(st.integers(-1, len(loops) - 1))
        if which < 0:
            row = data.draw(st.lists(st.integers(0, 1), max_size=3))
            if row and row[:-1] in [*ended, *(other for _, other in loops)]:
                continue
            prompt, tokens = len(row), row
        else:
            prompt, last = loops.pop(which)
            tokens = [*last, data.draw(st.integers(0, 1))]
        try:
            tracked.update(np.array([tokens], dtype=np.int64))
        except MatcherError:
            if which >= 0:
                ended.append(last)
            continue
        alone = FiniteMatcher(WORDS[1], EOS).follow(tokens[prompt:])
        assert tracked.matchers[0].tokens == alone.tokens, (prompt, tokens)
        loops.append((prompt, tokens))


def test_threads_have_loops_of_their_own():
    """Two threads show the same ids, in turns: what is the next step of one is a prompt of the other."""
    tracked = states(1)
    tracked.update(np.array([[7, 5]]))

    def other() -> list[int]:
        tracked.update(np.array([[7, 5, 0]]))
        tracked.update(np.array([[7, 5, 0, 0]]))
        return list(tracked.matchers[0].tokens)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(other).result() == [0]
    tracked.update(np.array([[7, 5, 0]]))
    tracked.update(np.array([[7, 5, 0, 0]]))
    assert tracked.matchers[0].tokens == [0, 0]


def test_the_rows_may_be_changed_in_place_afterwards():
    tracked = states(1)
    ids = np.array([[7, 0, 0]])
    tracked.update(ids[:, :1])
    tracked.update(ids[:, :2])
    ids[:] = 9
    tracked.update(np.array([[7, 0, 0]]))
    assert tracked.matchers[0].tokens == [0, 0]


def test_a_step_touches_only_the_new_token():
    """The cost per step does not grow: one accepted token, nothing forked, nothing rolled back."""
    calls = []

    class Counting(FiniteMatcher):
        def accept_token(self, token):
            calls.append("accept")
            return super().accept_token(token)

        def rollback(self, count):
            calls.append("rollback")
            super().rollback(count)

        def fork(self):
            calls.append("fork")
            copy = Counting(self.words, self.eos)
            copy.tokens = list(self.tokens)
            return copy

    tracked = PrefixStates([Counting({(0,) * 50}, EOS)], VOCAB)  # type: ignore[list-item]
    row = [5, 5]
    tracked.update(np.array([row]))
    for _ in range(40):
        calls.clear()
        row.append(0)
        tracked.update(np.array([row]))
        assert calls == ["accept"]


def test_beams_fork_only_when_two_rows_share_a_parent():
    tracked = states(2)
    tracked.update(np.array([[9]] * 3))
    tracked.update(np.array([[9, 1], [9, 2], [9, 1]]))
    first, second, third = tracked.matchers
    tracked.update(np.array([[9, 2, 1], [9, 1, 1], [9, 1, 2]]))
    assert tracked.matchers[0] is second
    assert {id(m) for m in tracked.matchers[1:]} <= {id(first), id(third)} | {id(tracked.matchers[1])}
    assert [m.tokens for m in tracked.matchers] == [[2, 1], [1, 1], [1, 2]]


@pytest.mark.parametrize(
    "second",
    [
        [[8, 0]],  # another prompt of the same length
        [[7]],  # a shorter one
        [[7, 5, 0, 0, 0, 1, 2]],  # a continued conversation: the last text, the token after it, and more
        [[7, 5, 1, 1, 1]],  # the first prompt and other text, of more than one token
        [[7, 5], [7, 5]],  # another batch
    ],
)
def test_a_second_prompt_is_noticed(second):
    tracked = states(1)
    for width in range(2, 6):
        tracked.update(np.array([[7, 5, 0, 0, 0]])[:, :width])
    tracked.update(np.array(second))
    assert all(matcher.tokens == [] for matcher in tracked.matchers)
    grown = np.array([[*row, 0] for row in second])
    tracked.update(grown)
    assert all(matcher.tokens == [0] for matcher in tracked.matchers)


def test_the_same_prompt_again_starts_again():
    tracked = states(1)
    for width in (2, 3, 4, 2):
        tracked.update(np.array([[7, 5, 0, 0]])[:, :width])
    assert tracked.matchers[0].tokens == []


@pytest.mark.parametrize(
    "ids",
    [
        [[7, 5, 0, 0]],  # the last rows again
        [[7, 5, 0]],  # those before
        [[7, 5, 1]],  # the prompt and another token
        [[7, 5, 0, 1]],  # as long as the last ones
    ],
)
def test_a_step_back_or_another_prompt_is_refused(ids):
    tracked = states(1)
    for width in (2, 3, 4):
        tracked.update(np.array([[7, 5, 0, 0]])[:, :width])
    with pytest.raises(MatcherError, match="prompts of 2 or"):
        tracked.update(np.array(ids))
    assert tracked.matchers[0].tokens == [0, 0], "nothing changes"
    tracked.reset()
    tracked.update(np.array(ids))
    assert tracked.matchers[0].tokens == []


def test_reset_tells_what_the_ids_cannot():
    tracked = states(1)
    tracked.update(np.array([[7, 5]]))
    tracked.reset()
    tracked.update(np.array([[7, 5, 0]]))
    assert tracked.matchers[0].tokens == []


def test_a_told_prompt_lets_rows_jump():
    tracked = states(1)
    tracked.reset(prompt_length=2)
    tracked.update(np.array([[7, 5, 0, 0, 0]]))
    assert tracked.matchers[0].tokens == [0, 0, 0]
    tracked.update(np.array([[7, 5, 0]]))
    assert tracked.matchers[0].tokens == [0]
    with pytest.raises(MaskBufferError, match="1 token, fewer than the prompt, which has 2"):
        tracked.update(np.array([[7]]))


def test_constraints_that_do_not_divide_the_rows():
    with pytest.raises(MaskBufferError, match="2 constraints cannot be distributed over 3 rows"):
        states(0, 1).update(np.zeros((3, 4), dtype=np.int64))


def test_after_an_error_all_is_reset():
    class Failing(FiniteMatcher):
        def accept_token(self, token):
            raise MemoryError

        def fork(self):
            return Failing(self.words, self.eos)

    tracked = PrefixStates([Failing({(0,)}, EOS)], VOCAB)  # type: ignore[list-item]
    tracked.update(np.array([[1]]))
    with pytest.raises(MemoryError):
        tracked.update(np.array([[1, 0]]))
    tracked.update(np.array([[1, 0]]))
    assert tracked.matchers[0].tokens == [], "the rows count as a new prompt"
