"""tiktoken adapters, on encodings made by hand: nothing is downloaded."""

from __future__ import annotations

import base64
import random
from pathlib import Path

import pytest
import tiktoken

from reference.tokens.detokenize import CORPUS, check, random_sequences
from tokenfst.errors import UnknownTokenizerError, VocabularyError
from tokenfst.tokenizers.adapters.tiktoken import from_tiktoken
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

MERGED = [
    b"th",
    b"the",
    b" t",
    b" the",
    b"\xc3\xa9",
    b"\xe6\x95",
    b"\xf0\x9f",
    b"\x9f\x99",
    b"  ",
    b"\r\n",
    b"\x00\x00",
]
RANKS = {bytes([byte]): byte for byte in range(256)} | {text: 256 + k for k, text in enumerate(MERGED)}


def encoding(special: dict[str, int]) -> tiktoken.Encoding:
    return tiktoken.Encoding("toy", pat_str=r"\S+|\s+", mergeable_ranks=RANKS, special_tokens=special)


def test_token_sequences() -> None:
    real = encoding({"<|endoftext|>": 270, "<|pad|>": 275})
    vocabulary = Vocabulary.from_tiktoken(real)
    assert len(vocabulary) == real.n_vocab == 276
    assert vocabulary.eos_token_ids == (real.eot_token,)
    assert vocabulary.special_tokens == {"<|endoftext|>": 270, "<|pad|>": 275}
    assert vocabulary.special_token_ids == {*range(267, 276)}, "ids that are left out emit nothing"
    rng = random.Random(3)
    sequences = random_sequences(vocabulary, 3000, rng, [270, 275, 32, 264, *range(256, 267)])
    sequences += [real.encode(text, disallowed_special=()) for text in CORPUS[:8]]

    def decode(ids: list[int]) -> bytes:
        return real.decode_bytes([token for token in ids if token not in vocabulary.special_token_ids])

    check(vocabulary, sequences, decode)


def test_without_an_end_token() -> None:
    with pytest.raises(VocabularyError, match="pass eos_token_id"):
        from_tiktoken(encoding({"<|end|>": 270}))
    vocabulary = from_tiktoken(encoding({"<|end|>": 270}), eos_token_id=270, size=300)
    assert vocabulary.eos_token_ids == (270,) and len(vocabulary) == 300


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "toy.tiktoken"
    lines = [base64.b64encode(text) + b" " + str(rank).encode() for text, rank in RANKS.items()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    vocabulary = from_tiktoken(path, size=272, eos_token_id=270)
    real = encoding({})
    for token in range(267):
        assert vocabulary.token_bytes(token) == real.decode_single_token_bytes(token)
    assert vocabulary.special_token_ids == {*range(267, 272)}
    with pytest.raises(VocabularyError, match="pass eos_token_id"):
        from_tiktoken(path)
    for content, words in [
        (b"", "no tokens"),
        (b"YQ== 0\nYg==\n", "line 2"),
        (b"YQ== x\n", "line 1"),
        (b"*** 0\n", "line 1"),
        (b"YQ== 99999999999\n", "no token ids"),
        (b"YQ== -1\n", "no token ids"),
    ]:
        path.write_bytes(content)
        with pytest.raises(VocabularyError, match=words):
            from_tiktoken(path, eos_token_id=0)


def test_other_things_are_refused() -> None:
    with pytest.raises(UnknownTokenizerError, match=r"a int is no tiktoken\.Encoding"):
        from_tiktoken(3)
    with pytest.raises(VocabularyError, match="neither a file nor an available encoding"):
        from_tiktoken("no-such-encoding")
