"""The matcher's interface: what each call means, and what each misuse raises."""

from __future__ import annotations

import re
import threading
import warnings
from typing import Any

import numpy as np
import pytest

from tests.support.worlds.token_worlds import allowed
from tokenfst import (
    Matcher,
    TokenAutomaton,
    Vocabulary,
    _native,
    allocate_token_bitmask,
    compile,
    fill_bitmasks,
    regex,
)
from tokenfst.decoding.token_automata.token_automaton import UNREACHABLE
from tokenfst.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactCorruptError,
    EmptyLanguageError,
    MaskBufferError,
    RollbackError,
    TerminatedError,
    TokenIdError,
    TokenLimitError,
    UnspellableWarning,
)

TOKENS = [b"a", b"b", b"ab", b"<tool>", b"", b"a", b"\xc3", b"\xa9", b"c"]
EOS = 4
VOCABULARY = Vocabulary(TOKENS, EOS, {"<tool>": 3})
EVERY_BYTE = Vocabulary([bytes([byte]) for byte in range(256)] + [b""], 256)


def automaton(pattern: str, expand: bool = False) -> TokenAutomaton:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnspellableWarning)
        made = compile(regex(pattern), VOCABULARY)
    return made.expand() if expand else made


def matcher(pattern: str, max_new_tokens: int | None = None) -> Matcher:
    return automaton(pattern).matcher(max_new_tokens)


@pytest.mark.parametrize("expand", [False, True])
def test_a_text_from_start_to_end(expand: bool) -> None:
    m = automaton("a(bc?|é)", expand).matcher()
    assert allowed(m, 9) == {
        0,
        2,
        5,
    }  # "a" twice: duplicates keep their own ids; "<tool>" is special, no spelling
    assert not m.accept_token(1) and m.num_tokens == 0
    assert m.accept_token(5) and allowed(m, 9) == {1, 6}
    assert m.accept_token(6) and allowed(m, 9) == {7}  # half a character
    assert not m.is_accepting()
    assert m.accept_token(7) and m.is_accepting() and allowed(m, 9) == {EOS}
    assert m.accept_token(EOS) and m.is_terminated() and allowed(m, 9) == {EOS}
    assert m.tokens == [5, 6, 7, EOS]


def test_the_end_token_only_in_accepting_states() -> None:
    m = matcher("ab?")
    assert not m.accept_token(EOS)
    assert m.accept_token(0) and EOS in allowed(m, 9)


def test_misuse_is_named() -> None:
    m = matcher("ab")
    for token in (9, -1, 2**32 - 1, 2**40, np.int64(-(2**40))):
        said = f"token id {token} lies outside the vocabulary of 9 tokens, which have the ids 0 to 8"
        for call in (m.accept_tokens, m.accept_until_over, m.validate_tokens):
            with pytest.raises(TokenIdError, match=said):
                call([token])
        with pytest.raises(TokenIdError, match=said):
            m.accept_token(token)
    with pytest.raises(RollbackError, match="only 0 were accepted"):
        m.rollback()
    with pytest.raises(RollbackError, match="negative"):
        m.rollback(-1)
    assert m.accept_tokens([2, EOS])
    with pytest.raises(TerminatedError, match="rollback"):
        m.accept_token(0)
    with pytest.raises(TypeError):
        m.accept_token("a")  # type: ignore[arg-type]


def test_the_limit_of_tokens_is_checked() -> None:
    m = matcher("ab")
    for wrong, said in ((3.0, "3.0 (a float)"), ("3", "'3' (a str)"), (True, "True"), ([3], "a list")):
        with pytest.raises(
            ArgumentTypeError, match=re.escape(f"max_tokens_left must be an integer, not {said}")
        ):
            m.max_tokens_left = wrong  # type: ignore[assignment]
    for low, said in ((-1, "-1 (an int)"), (np.int64(-1), "-1 (an int64)")):
        with pytest.raises(
            ArgumentValueError, match=re.escape(f"max_tokens_left must be at least 0, not {said}")
        ):
            m.max_tokens_left = low  # type: ignore[assignment]
    with pytest.raises(ArgumentValueError, match="max_tokens_left"):
        m.max_tokens_left = 2**70
    assert m.max_tokens_left is None
    m.max_tokens_left = np.uint8(3)  # type: ignore[assignment]
    assert m.max_tokens_left == 3


def test_what_a_matcher_is_made_of_is_checked() -> None:
    made = automaton("ab")
    core = made._native  # what the class itself takes
    for wrong in (made, None, "ab"):
        with pytest.raises(
            ArgumentTypeError, match=r"automaton must be .* \(call automaton\.matcher\(max_new_tokens\)"
        ):
            Matcher(wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="max_new_tokens must be an integer"):
        Matcher(core, "3")  # type: ignore[arg-type]
    with pytest.raises(ArgumentValueError, match="max_new_tokens must be at least 0"):
        Matcher(core, -1)
    assert Matcher(core, np.int64(3)).max_tokens_left == 3  # type: ignore[arg-type]
    assert Matcher(core).max_tokens_left is None


def test_numpy_integers_are_token_ids() -> None:
    m = matcher("ab")
    assert m.accept_token(np.int64(0)) and m.accept_tokens(np.array([1]).tolist())


def test_several_tokens_or_none() -> None:
    m = matcher("aab+")
    assert not m.accept_tokens([0, 0, 0]) and m.num_tokens == 0
    assert m.validate_tokens([0, 0, 0]) == 2 and m.num_tokens == 0
    assert m.validate_tokens([0, 2, 1, EOS, EOS]) == 4 and not m.is_terminated()
    assert m.accept_tokens([0, 2, EOS]) and m.is_terminated()
    with pytest.raises(TokenIdError):
        m.validate_tokens([99])


def test_rollback_to_any_earlier_step_fork_and_reset() -> None:
    m = matcher("a*b")
    states, masks = [], []
    for token in (0, 5, 0, 1, EOS):
        states.append(m.state)
        masks.append(allowed(m, 9))
        assert m.accept_token(token)
    for back in range(1, 6):
        other = m.fork()
        other.rollback(back)
        assert (other.state, other.num_tokens) == (states[-back], 5 - back)
        assert allowed(other, 9) == masks[-back] and not other.is_terminated()
    m.reset()
    assert m.num_tokens == 0 and m.state == states[0] and m.accept_token(2)


def test_forced_tokens_and_bytes() -> None:
    m = matcher("c(ab|éb)b?")
    assert m.forced_tokens() == [8]
    assert m.forced_bytes() == b"c" and m.find_jump_forward_string() == "c"
    assert m.accept_tokens([8, 6])
    assert m.forced_tokens() == [7, 1]
    assert m.forced_bytes() == b"\xa9b"
    assert m.num_tokens == 2
    assert matcher("[ab]c").forced_bytes() == b""
    assert matcher("é").find_jump_forward_string() == "é"


def test_budget_ends_inside_it() -> None:
    m = matcher("a*(ab)?c", 3)
    assert m.distance() == 1 and m.max_tokens_left == 3
    assert m.accept_token(0) and m.max_tokens_left == 2
    assert m.accept_token(0) and allowed(m, 9) == {8}  # one left: only what completes
    assert not m.accept_token(0)
    assert m.accept_token(8) and m.max_tokens_left == 0 and m.is_accepting()
    assert allowed(m, 9) == set() and not m.accept_token(EOS)
    m.rollback(2)
    assert m.max_tokens_left == 2
    m.max_tokens_left = None
    assert m.max_tokens_left is None and 0 in allowed(m, 9)
    with pytest.raises(TokenLimitError, match="least number from here is 1"):
        m.max_tokens_left = 0
    with pytest.raises(TokenLimitError, match="2 tokens: the least number from here is 3"):
        matcher("ccc", 2)


def test_empty_and_unspellable_languages() -> None:
    with pytest.raises(EmptyLanguageError, match="the language is empty"):
        compile(regex("a") & regex("b"), VOCABULARY)
    with pytest.warns(UnspellableWarning, match="spells none of the strings of regex\\('d\\+'\\).*b'd'"):
        unspellable = compile(regex("d+"), VOCABULARY)
    with pytest.raises(EmptyLanguageError, match="no token sequence"):
        unspellable.matcher()
    assert unspellable.distance() == UNREACHABLE
    with pytest.warns(UnspellableWarning, match="not all.*b'd'"):
        compile(regex("c|d"), VOCABULARY)


def test_masks_lead_nowhere_dead_where_bytes_are_missing() -> None:
    m = matcher("ad|ac")
    assert allowed(m, 9) == {0, 5}
    assert m.accept_token(0) and allowed(m, 9) == {8}
    assert allowed(matcher("bd|ac"), 9) == {0, 5}  # "b" begins a string that cannot be finished


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros((1, 1), np.int64), "dtype int32"),
        (np.zeros((1, 2), np.int32), "1 word a row"),
        (np.zeros((1, 1, 1), np.int32), "shape"),
        (np.zeros((1, 1), np.float32), "dtype"),
    ],
)
def test_mask_buffers_that_do_not_fit(mask: np.ndarray, message: str) -> None:
    with pytest.raises(MaskBufferError, match=message):
        matcher("a").fill_next_token_bitmask(mask)


def test_mask_rows_and_layout() -> None:
    m, wide = matcher("a"), np.zeros((3, 4), np.int32)
    with pytest.raises(MaskBufferError, match="row 1"):
        m.fill_next_token_bitmask(np.zeros((1, 1), np.int32), 1)
    with pytest.raises(MaskBufferError, match="row -1"):
        m.fill_next_token_bitmask(np.zeros((1, 1), np.int32), -1)
    m.fill_next_token_bitmask(wide[:, 1:2], 2)  # a column of a wider array: rows keep their stride
    assert wide.tolist() == [[0] * 4, [0] * 4, [0, 1 << 0 | 1 << 5, 0, 0]]
    row = np.zeros(1, np.int32)
    m.fill_next_token_bitmask(row)
    assert row[0] == 1 << 0 | 1 << 5


def test_nothing_to_mask_is_told() -> None:
    m = compile(regex(rb"[\x00-\xff]*"), EVERY_BYTE).matcher()
    assert m.fill_next_token_bitmask(allocate_token_bitmask(1, 257)) is False
    m.max_tokens_left = 2
    assert m.fill_next_token_bitmask(allocate_token_bitmask(1, 257)) is True


def test_a_batch_with_threads(tekken: Vocabulary) -> None:
    matchers = [compile(regex(f"[a-z]{{{n},9}}[0-9]"), tekken).matcher() for n in range(1, 9)]
    batch, single = allocate_token_bitmask(8, len(tekken)), allocate_token_bitmask(8, len(tekken))
    fill_bitmasks(matchers, batch, threads=4)
    for row, m in enumerate(matchers):
        m.fill_next_token_bitmask(single, row)
    assert np.array_equal(batch, single)


def test_one_lazy_automaton_under_many_threads(tekken: Vocabulary) -> None:
    pattern = r'\{("[a-z]{1,3}": ("([^"\\]|\\.)*"|[0-9]+)(, )?){1,4}\}'
    texts = [
        '{"a": 12, "bc": "x y", "d": "\\n"}',
        '{"abc": "' + "word " * 20 + '"}',
        '{"z": 0}',
        '{"q": "é\\"", "r": 7',
    ]
    shared = compile(regex(pattern), tekken)
    results: list[list[bytes]] = [[] for _ in range(8)]

    def walk(made: TokenAutomaton, text: str) -> list[bytes]:
        m, mask, seen = made.matcher(), allocate_token_bitmask(1, len(tekken)), []
        for token in tekken.encode_greedy(text.encode()):
            m.fill_next_token_bitmask(mask)
            seen.append(mask.tobytes())
            assert m.accept_token(token)
        return [*seen, str(m.distance()).encode()]

    def work(number: int) -> None:
        results[number] = walk(shared, texts[number % 4])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        assert results[number] == walk(compile(regex(pattern), tekken), texts[number % 4])


def test_draft_trees() -> None:
    #        0: the root
    #       /        \
    #   1: a          4: c
    #    |  \
    # 2: b   3: ab
    m = matcher("(a+b|c)c?")
    child, sibling = np.array([1, 2, -1, -1, -1]), np.array([-1, 4, 3, -1, -1])
    tokens = np.array([0, 0, 1, 2, 8])
    masks = np.full((5, 1), -1, np.int32)
    m.traverse_draft_tree(child, sibling, tokens, masks)
    paths = [[], [0], [0, 1], [0, 2], [8]]
    for row, path in enumerate(paths):
        other = m.fork()
        assert other.accept_tokens(path)
        expected = np.zeros((1, 1), np.int32)
        other.fill_next_token_bitmask(expected)
        assert masks[row] == expected[0]
    assert m.num_tokens == 0
    tokens[1] = 1  # not allowed: everything after it is zero
    m.traverse_draft_tree(child, sibling, tokens, masks)
    assert masks[1:4].tolist() == [[0]] * 3 and masks[0] != 0 and masks[4] != 0
    with pytest.raises(TokenIdError, match="draft tree"):
        m.traverse_draft_tree(np.array([1, 0, -1, -1, -1]), sibling, np.array([0, 0, 1, 2, 8]), masks)
    assert m.num_tokens == 0
    with pytest.raises(MaskBufferError):
        m.traverse_draft_tree(child, sibling, tokens, masks[:4])
    with pytest.raises(
        MaskBufferError, match=r"for each node, .* 5 \(next_token\), 4 \(next_sibling\) and 5"
    ):
        m.traverse_draft_tree(child, sibling[:4], tokens, masks)


def test_wide_bounded_repetitions_stay_lazy() -> None:
    for vocabulary in (VOCABULARY, EVERY_BYTE):
        m = compile(regex("([ac][abc]{2}){3,1000000}"), vocabulary).matcher()
        assert (
            m.accept_tokens([vocabulary.ids(char.encode())[0] for char in "abcaabcca"]) and m.is_accepting()
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: {"table": arrays["table"] + 1}, "state"),
        (lambda arrays: {"table": arrays["table"].astype(np.float64)}, "another type"),
        (lambda arrays: {"mask": arrays["mask"][::-1]}, "another type"),
    ],
)
def test_native_loading_checks_its_arrays(change: Any, message: str) -> None:
    arrays = automaton("a*b", expand=True).arrays()
    with pytest.raises(ArtifactCorruptError, match=message):
        _native.TokenAutomaton.from_arrays(
            VOCABULARY.native, arrays | change(arrays), arrays["start"], arrays["inner_start"]
        )
