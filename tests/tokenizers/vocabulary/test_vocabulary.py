"""The value ``Vocabulary``: meaning, identity, errors, look-up."""

from __future__ import annotations

import pickle
import random
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.tokens.detokenize import slow_decode
from tokenfst.errors import TokenIdError, VocabularyError
from tokenfst.tokenizers.adapters.token_file import read_token_file
from tokenfst.tokenizers.vocabulary.census import Census, census
from tokenfst.tokenizers.vocabulary.tables import MAX_TOKEN_BYTES
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

TOKENS = [b"a", b"b", b"ab", b"\xc3", b"\xa9", b"", b"<end>", b"a"]


def small() -> Vocabulary:
    return Vocabulary(TOKENS, 6, {"<end>": 6}, name="small")


def test_attributes_and_lookup() -> None:
    vocabulary = small()
    assert len(vocabulary) == 8
    assert vocabulary.tokens == (b"a", b"b", b"ab", b"\xc3", b"\xa9", b"", b"", b"a")
    assert vocabulary.initial_tokens is None
    assert vocabulary.eos_token_ids == (6,)
    assert vocabulary.special_token_ids == {5, 6}
    assert dict(vocabulary.special_tokens) == {"<end>": 6}
    assert vocabulary.token_bytes(np.int64(2)) == b"ab"
    assert vocabulary.ids(b"a") == (0, 7)
    assert vocabulary.ids(b"") == vocabulary.ids(b"zzz") == ()
    assert vocabulary.decode([2, 6, 3, 4, 5, 7]) == "abéa".encode()
    assert "8 tokens" in repr(vocabulary)


def test_end_tokens_are_special_whatever_their_bytes() -> None:
    vocabulary = Vocabulary([b"a", b"</s>", b"b"], [1, np.int32(2), 1])
    assert vocabulary.eos_token_ids == (1, 2)
    assert vocabulary.tokens == (b"a", b"", b"")
    assert vocabulary.decode([0, 1, 2]) == b"a"


def test_special_tokens_by_id_only() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"c"], 2, iter([1]))
    assert vocabulary.special_token_ids == {1, 2}
    assert not vocabulary.special_tokens


def test_it_cannot_be_changed() -> None:
    tokens = [b"a", b""]
    vocabulary = Vocabulary(tokens, 1, {"</s>": 1})
    tokens[0] = b"x"
    assert vocabulary.tokens == (b"a", b"")
    for name in ("tokens", "eos_token_ids", "special_tokens", "name"):
        with pytest.raises(AttributeError):
            setattr(vocabulary, name, None)
    with pytest.raises(TypeError):
        vocabulary.special_tokens["x"] = 0  # type: ignore[index]


def test_fingerprint_is_the_same_everywhere() -> None:
    """The value is written into artifacts: it must not change with machine, release or hash seed."""
    assert small().fingerprint == "52f2ce227dc94578e62b69307922cc24c620417ae18f453047750046ff12eb05"


def test_fingerprint_and_equality_see_every_part() -> None:
    base = {"tokens": [b"a", b"b", b"", b""], "eos_token_id": 2, "special_tokens": {"x": 3}}
    variants = [
        base,
        base | {"tokens": [b"a", b"c", b"", b""]},
        base | {"tokens": [b"ab", b"", b"", b""]},
        base | {"tokens": [b"b", b"a", b"", b""]},
        base | {"tokens": [b"a", b"b", b"", b"", b""]},
        base | {"eos_token_id": [2, 3]},
        base | {"eos_token_id": 3},
        base | {"special_tokens": {"y": 3}},
        base | {"special_tokens": {"x": 2}},
        base | {"special_tokens": {}},
        base | {"special_tokens": {"x": 3, "y": 1}},
        base | {"initial_tokens": [b"a", b"", b"", b""]},
        base | {"initial_tokens": [b"a", b"", b"", b""], "start_absorbs": True},
    ]
    vocabularies = [Vocabulary(**variant) for variant in variants]
    assert len({vocabulary.fingerprint for vocabulary in vocabularies}) == len(variants)
    assert len(set(vocabularies)) == len(variants)
    assert Vocabulary(**base, name="other") == vocabularies[0]
    assert Vocabulary(**base, initial_tokens=base["tokens"], start_absorbs=True) == vocabularies[0]
    assert vocabularies[0] != "something else"


def test_names_of_special_tokens_are_not_taken_for_symbols() -> None:
    named = Vocabulary([b"", b"x"], 0, {"": 0})
    variants = [named, *(Vocabulary([b"", b"x"], 0, symbols=["e", each]) for each in ("\0\0\0\0", "y"))]
    assert len(set(variants)) == 3


def test_the_order_of_special_tokens_does_not_matter() -> None:
    one = Vocabulary([b"a", b"", b""], [1, 2], {"x": 1, "y": 2})
    two = Vocabulary([b"a", b"", b""], [2, 1], {"y": 2, "x": 1})
    assert one.fingerprint == two.fingerprint and one == two


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([], 0), "at least one token"),
        (([b"a"], 1), "end token id 1"),
        (([b"a"], -1), "end token id -1"),
        (([b"a"], True), "end token id True"),
        (([b"a"], "0"), "end token id '0'"),
        (([b"a"], 0.0), "end token id 0.0"),
        (([b"a"], None), "end token id None"),
        (([b"a"], []), "at least one end token"),
        (([b"a", "b"], 0), r"tokens\[1\] is 'b', a str"),
        (([b"a", bytearray(b"b")], 0), r"tokens\[1\]"),
        (([b"a", None], 0), r"tokens\[1\] is None"),
        ((b"ab", 0), "not one string"),
        (([b"a"], 0, {"x": 5}), "special token id 5"),
        (([b"a"], 0, [7]), "special token id 7"),
        (([b"a"], 0, {3: 0}), "names of special tokens"),
        (([b"a", b"x" * (MAX_TOKEN_BYTES + 1)], 0), "65,536 bytes"),
    ],
)
def test_bad_input(arguments: tuple, words: str) -> None:
    with pytest.raises(VocabularyError, match=words):
        Vocabulary(*arguments)


def test_bad_initial_forms() -> None:
    with pytest.raises(VocabularyError, match="1 initial forms for 2 tokens"):
        Vocabulary([b"a", b""], 1, initial_tokens=[b"a"])
    with pytest.raises(VocabularyError, match=r"initial_tokens\[0\]"):
        Vocabulary([b"a", b""], 1, initial_tokens=["a", b""])  # type: ignore[list-item]


@pytest.mark.parametrize("token", [-1, 8, 1 << 40])
def test_token_ids_out_of_range(token: int) -> None:
    with pytest.raises(TokenIdError, match=str(token)):
        small().decode([0, token])
    with pytest.raises(TokenIdError):
        small().token_bytes(token)
    with pytest.raises(IndexError):
        small().initial_bytes(token)


def test_initial_forms() -> None:
    vocabulary = Vocabulary([b" a", b" ", b"b", b"", b""], 3, initial_tokens=[b"a", b"", b"b", b"!", b""])
    assert vocabulary.special_token_ids == {3, 4}, "the end token loses its initial form too"
    assert vocabulary.decode([4, 0, 0, 2]) == b"a ab"
    assert vocabulary.decode([1, 0]) == b" a"
    assert vocabulary.initial_bytes(0) == b"a"
    absorbing = Vocabulary([b" a", b" ", b""], 2, initial_tokens=[b"a", b"", b""], start_absorbs=True)
    assert absorbing.decode([1, 2, 1, 0, 1, 0]) == b"a  a"


def test_a_token_may_write_something_at_the_start_only() -> None:
    vocabulary = Vocabulary([b"", b" a", b""], 2, initial_tokens=[b"##", b"a", b""])
    assert vocabulary.special_token_ids == {2}
    assert vocabulary.decode([0, 1, 0]) == b"## a"


def test_pickle_and_json(tmp_path: Path) -> None:
    contextual = Vocabulary(
        [b"\xff", b" ", b"", b""],
        2,
        {"x": 3, "e": 2},
        initial_tokens=[b"\xff", b"", b"", b""],
        start_absorbs=True,
    )
    for vocabulary in (small(), contextual):
        assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary
        vocabulary.to_json(tmp_path / "tokens.json")
        again = read_token_file(tmp_path / "tokens.json")
        assert again == vocabulary and again.start_absorbs == vocabulary.start_absorbs
        assert [path.name for path in tmp_path.iterdir()] == ["tokens.json"]


def test_encode_greedy() -> None:
    vocabulary = small()
    assert vocabulary.encode_greedy(b"aabba") == [0, 2, 1, 0]
    assert vocabulary.encode_greedy(b"") == []
    with pytest.raises(VocabularyError, match=r"at byte 2, which goes on with b'zz'"):
        vocabulary.encode_greedy(b"abzz")


def test_encode_greedy_at_the_start() -> None:
    tokens = [b" a", b" ", b"b", b""]
    vocabulary = Vocabulary(tokens, 3, initial_tokens=[b"a", b"", b"b", b""])
    assert vocabulary.encode_greedy(b"a a") == [0, 0]
    assert vocabulary.encode_greedy(b" a") == [1, 0]
    absorbing = Vocabulary(tokens, 3, initial_tokens=[b"a", b"", b"b", b""], start_absorbs=True)
    with pytest.raises(VocabularyError, match="at byte 0"):
        absorbing.encode_greedy(b" a")


BYTES = st.binary(max_size=3).map(lambda data: bytes(byte % 3 + 97 for byte in data))


@given(st.data())
def test_decode_and_greedy_on_random_vocabularies(data: st.DataObject) -> None:
    tokens = [b"a", b"b", b"c", *data.draw(st.lists(BYTES, max_size=6)), b""]
    size = len(tokens)
    initial = [b"a", b"b", b"c", *data.draw(st.lists(BYTES, min_size=size - 4, max_size=size - 4)), b""]
    absorbs = data.draw(st.booleans())
    special = data.draw(st.sets(st.integers(3, size - 1))) | {size - 1}
    vocabulary = Vocabulary(tokens, size - 1, special, initial_tokens=initial, start_absorbs=absorbs)
    ids = data.draw(st.lists(st.integers(0, size - 1), max_size=6))
    empty = {token for token in range(size) if not tokens[token] and not initial[token]}
    assert vocabulary.decode(ids) == slow_decode(tokens, initial, special | empty, absorbs, ids)
    text = data.draw(BYTES)
    assert vocabulary.decode(vocabulary.encode_greedy(text)) == text


def test_census() -> None:
    vocabulary = Vocabulary(
        [b"a", b" ", b"\xc3", b"a", b" b", b"", b""],
        5,
        initial_tokens=[b"a", b"", b"\xc3", b"a", b"b", b"", b""],
    )
    assert census(vocabulary) == Census(
        tokens=7,
        text=4,
        partial_utf8=1,
        special=2,
        end=1,
        single_byte=4,
        whitespace=1,
        duplicate=1,
        contextual=2,
        longest=2,
        missing_bytes=tuple(byte for byte in range(256) if byte not in b"ab \xc3"),
    )


def test_construction_is_fast() -> None:
    """131,072 tokens in under 150 ms of processor time; the best of three runs, as the machine is shared."""
    rng = random.Random(1)
    tokens = [rng.randbytes(rng.randrange(1, 13)) for _ in range(131_071)] + [b""]
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        vocabulary = Vocabulary(tokens, 131_071)
        assert len(vocabulary.fingerprint) == 64
        best = min(best, time.process_time() - begin)
    assert best < 0.15
