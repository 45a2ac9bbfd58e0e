"""Texts followed by the ids that an engine shows, compared with a matcher that begins anew at each call."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenfst import Vocabulary, compile, gbnf, regex
from tokenfst.decoding.engines.shared.text_rows import TextRows
from tokenfst.decoding.masks.bitmask import bitmask_from_ids, unpack_bitmask
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.errors import (
    ArgumentTypeError,
    LogitsError,
    MatcherError,
    TokenLimitError,
    VocabularyMismatchError,
)

VOCABULARY = Vocabulary([b"a", b"b", b"c", b"ab", b"(", b")", b"", b""], [6, 7])
SIZE = len(VOCABULARY)
AUTOMATA = [
    compile(regex("(a|b)*c"), VOCABULARY),
    compile(regex("a{2,5}"), VOCABULARY),
    compile(gbnf('root ::= "(" root ")" | "a"'), VOCABULARY),
]
PROMPT = [5, 0, 3]


def rows(automata, most=None, **options) -> TextRows:
    return TextRows(automata, most, name="Thing", remedy="use another", **options)


def ids(*texts: list[int]) -> np.ndarray:
    return np.array([PROMPT + text for text in texts], np.int32)


def plain_mask(automaton, most: int | None, text: list[int]) -> np.ndarray | None:
    """The mask after a text by a matcher of its own; None where the text is not allowed."""
    matcher, mask = start_matcher(automaton, most), np.zeros((1, 1), np.int32)
    for token in text:
        if matcher.is_terminated() or matcher.max_tokens_left == 0:
            break
        if not matcher.accept_token(token):
            return None
    if matcher.is_terminated() or matcher.max_tokens_left == 0:
        return bitmask_from_ids(VOCABULARY.eos_token_ids, SIZE)
    matcher.fill_next_token_bitmask(mask, 0)
    return mask[0]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_masks_are_those_of_a_matcher_that_begins_anew(data):
    """Whatever an engine does between two calls: append, go back and try another token, ask again, go on at the end."""
    chosen = data.draw(st.lists(st.sampled_from(AUTOMATA), min_size=1, max_size=3))
    most = data.draw(st.sampled_from([None, 5, 6, 9]))
    texts = rows(chosen, most)
    texts.masks_after_prompts(ids(*([] for _ in chosen)))
    now: list[list[int]] = [[] for _ in chosen]
    for _ in range(data.draw(st.integers(1, 12))):
        kept = data.draw(st.integers(0, len(now[0])))
        if data.draw(st.booleans()):
            kept = len(now[0])
        now = [text[:kept] for text in now]
        if data.draw(st.integers(0, 3)):
            for automaton, text in zip(chosen, now, strict=True):
                mask = plain_mask(automaton, most, text)
                assert mask is not None
                allowed = np.flatnonzero(unpack_bitmask(mask[None], SIZE)[0]).tolist()
                text.append(data.draw(st.sampled_from(allowed)))
        found = texts.masks_after_prompts(ids(*now))
        for row, (automaton, text) in enumerate(zip(chosen, now, strict=True)):
            assert np.array_equal(
                unpack_bitmask(found[row], SIZE), unpack_bitmask(plain_mask(automaton, most, text), SIZE)
            )
        if not data.draw(st.integers(0, 5)):
            texts = pickle.loads(pickle.dumps(texts)) if data.draw(st.booleans()) else copy.deepcopy(texts)


def test_what_is_not_the_text_going_on_is_refused():
    texts = rows(AUTOMATA[:1])
    texts.masks_after_prompts(ids([]))
    texts.masks_after_prompts(ids([0]))
    for other in ([[5, 0]], [[5, 0, 2, 0]], [[5, 0, 2]]):
        with pytest.raises(MatcherError, match="a Thing serves one completion"):
            texts.masks_after_prompts(np.array(other))
    with pytest.raises(MatcherError, match="one completion"):
        texts.masks_after_prompts(ids([0, 1, 0]))
    with pytest.raises(LogitsError, match="token 4 was chosen in row 0"):
        texts.masks_after_prompts(ids([0, 4]))
    texts.masks_after_prompts(ids([0, 1]))


def test_an_engine_that_never_goes_back_is_held_to_it():
    texts = rows(AUTOMATA[:1], goes_back=False)
    texts.masks_after_prompts(ids([]))
    texts.masks_after_prompts(ids([0]))
    for other in ([], [0], [1]):
        with pytest.raises(MatcherError, match="one completion"):
            texts.masks_after_prompts(ids(other))
    texts.masks_after_prompts(ids([0, 1]))


def test_arguments_that_do_not_fit():
    with pytest.raises(ArgumentTypeError, match="at least one"):
        rows([])
    with pytest.raises(VocabularyMismatchError, match="row 1"):
        rows([AUTOMATA[0], compile(regex("a"), Vocabulary([b"a", b""], 1))])
    with pytest.raises(TokenLimitError):
        rows(AUTOMATA, 1)
    texts = rows(AUTOMATA[:1])
    with pytest.raises(VocabularyMismatchError, match=r"7 tokens.*has 8: use another"):
        texts.check_width(7)
    masks = texts.masks_after_prompts(ids([]))
    scores = np.zeros((1, 10), np.float32)
    texts.apply(scores, masks)
    assert np.flatnonzero(np.isfinite(scores[0])).tolist() == [0, 1, 2, 3]
    with pytest.raises(LogitsError, match="row 0"):
        texts.apply(np.full((1, 10), -np.inf, np.float32), masks)
