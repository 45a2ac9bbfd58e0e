"""Hugging Face tokenizers with NFC and added tokens: canonical tokenizations are of texts that they leave alone."""

from __future__ import annotations

import dataclasses
import json
import pickle
import random
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from support.worlds.byte_level_tokenizers import (
    ADDED,
    END,
    LLAMA,
    SAMPLE,
    specification,
    texts,
    trained,
    vocabulary_of,
)
from tokenizers import AddedToken, Tokenizer, normalizers

import tokenfst
from tokenfst import Vocabulary, choices, compile
from tokenfst.errors import (
    ArtifactVocabularyError,
    EmptyLanguageError,
    StoreError,
    TokenizationError,
    VocabularyError,
)
from tokenfst.tokenizers.adapters.huggingface import from_specification
from tokenfst.tokenizers.adapters.pack import read_pack, write_pack
from tokenfst.tokenizers.adapters.token_file import read_token_file, write_token_file
from tokenfst.tokenizers.segmentation.tokenizer import byte_pair_tokenizer
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding

TOOL, THINK = "<tool_call>", "<think>"


def like_qwen() -> Tokenizer:
    """NFC, one split, and added tokens that are text."""
    tokenizer = trained(LLAMA, SAMPLE * 3, 300)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in (TOOL, THINK, "<think>>")])
    tokenizer.encode_special_tokens = True
    return tokenizer


def spliced(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    parts = [
        TOOL,
        THINK,
        "<think>>",
        END,
        "<thi",
        "\u0323",
        "e\u0301",
        "\u0344",
        "\u09c7\u09be",
        "\u1100\u1161",
    ]
    return [
        "".join(rng.choice([text[:6], rng.choice(parts)]) for _ in range(3)) for text in texts(seed, count)
    ]


def test_texts_with_added_tokens_are_encoded_as_the_library_does() -> None:
    tokenizer = like_qwen()
    known = byte_pair_tokenizer(vocabulary_of(tokenizer))
    changed = 0
    for text in spliced(2, 600):
        try:
            found = known.encode(text.encode())
        except TokenizationError as error:
            assert "NFC" in str(error) and not unicodedata.is_normalized("NFC", text)
            changed += 1
        else:
            assert found == tokenizer.encode(text, add_special_tokens=False).ids, text
    assert 100 < changed < 500


def test_canonical_sequences_are_of_texts_that_are_not_changed() -> None:
    tokenizer = like_qwen()
    vocabulary = vocabulary_of(tokenizer)
    every = sorted({*spliced(4, 200), *texts(5, 100)})
    matcher = compile(
        choices([text.encode() for text in every]), vocabulary, tokenization="canonical"
    ).matcher()
    allowed = 0
    for text in every:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        added = any(each in text for each in (TOOL, THINK))
        plain = not added and unicodedata.is_normalized("NFC", text) and not set(text) & set("\u0301\u0323")
        matcher.reset()
        assert (matcher.accept_tokens(ids) and matcher.is_accepting()) == plain, text
        allowed += plain
    assert 50 < allowed < 250


def test_a_language_of_added_tokens_only_has_no_canonical_text() -> None:
    vocabulary = vocabulary_of(like_qwen())
    with pytest.raises(EmptyLanguageError, match="added tokens"):
        compile(choices([TOOL.encode()]), vocabulary, tokenization="canonical")
    assert (
        compile(choices([TOOL.encode()]), vocabulary).matcher().accept_tokens(vocabulary.ids(TOOL.encode()))
    )


def test_files_keep_added_tokens_and_the_normal_form(tmp_path: Path) -> None:
    vocabulary = vocabulary_of(like_qwen())
    write_pack(vocabulary, tmp_path / "pack")
    write_token_file(vocabulary, tmp_path / "file")
    assert vocabulary.encoding is not None
    for found in (read_pack(tmp_path / "pack"), read_token_file(tmp_path / "file")):
        assert found == vocabulary and found.encoding == dataclasses.replace(vocabulary.encoding, merges=None)
    compile(choices([b"the cat", TOOL.encode()]), vocabulary, tokenization="canonical").save(tmp_path / "it")
    loaded = tokenfst.CanonicalAutomaton.load(tmp_path / "it", read_pack(tmp_path / "pack")).matcher()
    assert not loaded.accept_tokens(vocabulary.ids(TOOL.encode()))
    loaded.reset()
    assert loaded.accept_tokens(byte_pair_tokenizer(vocabulary).encode(b"the cat")) and loaded.is_accepting()


@pytest.mark.parametrize(
    "document",
    [
        5,
        {"pattern": "a"},
        {"pattern": "a", "added": {}, "nfc": 1},
        {"pattern": "a", "added": {}, "nfc": True, "more": 1},
    ],
)
def test_malformed_encodings_are_refused(document: object, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(
        json.dumps({"tokens": ["a", ""], "eos_token_id": 1, "split_pattern": document})
    )
    with pytest.raises(VocabularyError, match="split_pattern must be a string, or an object"):
        read_token_file(tmp_path / "file")


@pytest.mark.parametrize("added", [{"": 3}, {"b": "3"}, {"b": True}, {"\ud800": 3}])
def test_malformed_added_tokens_are_refused(added: dict[str, object], tmp_path: Path) -> None:
    pattern = {"pattern": "a", "added": added, "nfc": True}
    (tmp_path / "file").write_text(
        json.dumps({"tokens": ["a", ""], "eos_token_id": 1, "split_pattern": pattern})
    )
    with pytest.raises(VocabularyError, match="added token has a text"):
        read_token_file(tmp_path / "file")


@pytest.mark.parametrize("expand", [True, False])
def test_artifacts_are_bound_to_added_tokens_and_the_normal_form(expand: bool, tmp_path: Path) -> None:
    vocabulary = vocabulary_of(like_qwen())
    made = compile(choices([b"the cat", "h\u00e9".encode()]), vocabulary, tokenization="canonical")
    made.save(tmp_path / "it", expand=expand)
    encoding = vocabulary.encoding
    assert encoding is not None

    def like(encoding: BytePairEncoding | None) -> Vocabulary:
        special = dict(vocabulary.special_tokens)
        found = Vocabulary(vocabulary.tokens, vocabulary.eos_token_ids, special, split_pattern=encoding)
        assert found == vocabulary
        return found

    plain = dataclasses.replace(encoding, merges=None)
    for other, message in (
        (dataclasses.replace(plain, is_nfc=False), "normal form 'NFC', and this vocabulary's .* 'none'"),
        (dataclasses.replace(plain, added=plain.added[1:]), "added tokens {'<think>': .*, and this .* {}"),
        (BytePairEncoding(r"\s+|\S+", added=plain.added, is_nfc=True), "splits texts by"),
    ):
        with pytest.raises(ArtifactVocabularyError, match=message):
            tokenfst.CanonicalAutomaton.load(tmp_path / "it", like(other))
    with pytest.raises(ArtifactVocabularyError, match="is not known"):
        tokenfst.CanonicalAutomaton.load(tmp_path / "it", like(None))
    loaded = tokenfst.CanonicalAutomaton.load(tmp_path / "it", like(plain))
    again = pickle.loads(pickle.dumps(loaded)).expand()
    assert loaded.tokenizer.encoding == again.tokenizer.encoding == plain
    assert again.serialize() == made.serialize()
    with pytest.raises(TokenizationError, match="changes texts"):
        tokenfst.CanonicalAutomaton(loaded.every_sequence, tokenfst.Budget())


def test_a_store_has_one_tokenizer_for_a_vocabulary(tmp_path: Path) -> None:
    """The vocabulary with NFC was dropped, and a reader of its fingerprint received the one without."""
    vocabulary = vocabulary_of(like_qwen())
    encoding = vocabulary.encoding
    assert encoding is not None
    plain = dataclasses.replace(encoding, merges=None, is_nfc=False)
    other = Vocabulary(
        vocabulary.tokens, vocabulary.eos_token_ids, vocabulary.special_tokens, split_pattern=plain
    )
    store = tokenfst.Store(tmp_path / "store")
    assert other == vocabulary and store.put_vocabulary(other) and not store.put_vocabulary(other)
    with pytest.raises(StoreError, match="with another tokenizer"):
        store.put_vocabulary(vocabulary)
    assert store.vocabulary(vocabulary.fingerprint).encoding == plain


WRONG: list[dict[str, Any]] = [
    {"split_pattern": 5},
    {"split_pattern": b"a"},
    {"split_pattern": "\ud800"},
    {"merges": ["a b"]},
    {"is_nfc": 1},
    {"is_nfc": "NFC"},
    {"added": None},
    {"added": [("a", 1)]},
    {"added": (each for each in [("a", 1)])},
    {"added": "ab"},
    {"added": (["a", 1],)},
    {"added": (("a", 1, 2),)},
    {"added": (("a", -1),)},
    {"added": (("a", True),)},
    {"added": (("", 10**5000),)},
    {"added": (("a", 10**5000),)},
    {"added": (("a", 1), ("a", 2))},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_encodings_with_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(VocabularyError):
        BytePairEncoding(**{"split_pattern": "a", **wrong})


def test_added_tokens_are_sorted() -> None:
    assert BytePairEncoding("a", added=(("b", 1), ("a", 2))).added == (("a", 2), ("b", 1))


def test_an_added_token_that_the_vocabulary_does_not_have_is_refused() -> None:
    tokens = [bytes([byte]) for byte in range(256)]
    wrong = BytePairEncoding(r"\s+|\S+", added=(("<tool>", 300),))
    with pytest.raises(TokenizationError, match="has no token 300"):
        byte_pair_tokenizer(Vocabulary([*tokens, b""], 256, split_pattern=wrong))


def test_special_tokens_beside_added_ones_stay_known() -> None:
    document = specification()
    free = len(document["model"]["vocab"])
    document["added_tokens"].append({"id": free, "content": "<|xy|>", **ADDED, "special": True})
    document["added_tokens"].append({"id": free + 1, "content": "<tool>", **ADDED})
    library = Tokenizer.from_str(json.dumps(document))
    library.encode_special_tokens = True
    known = byte_pair_tokenizer(from_specification(document, eos_token_id=0))
    for text in ("<|xy|><tool>", "a<|xy|", "<|xy<tool>|>"):
        assert known.encode(text.encode()) == library.encode(text, add_special_tokens=False).ids, text


def test_a_normalized_added_token_is_not_found_before_a_mark_that_changes_it() -> None:
    tokenizer = trained(LLAMA, SAMPLE * 3, 300)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken("<xyze", normalized=True)])
    known = byte_pair_tokenizer(vocabulary_of(tokenizer))
    for text in ("<xyze", "<xyz\u00e9", "a<xyze b"):
        assert known.encode(text.encode()) == tokenizer.encode(text, add_special_tokens=False).ids
    with pytest.raises(TokenizationError, match="NFC"):
        known.encode("<xyze\u0301".encode())
