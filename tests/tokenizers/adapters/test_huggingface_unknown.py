"""Hugging Face tokenizers whose way to tokens is not known, or whose merges are damaged: typed errors."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from support.worlds.byte_level_tokenizers import (
    ADDED,
    CHARACTERS,
    LLAMA,
    SAMPLE,
    damaged,
    specification,
    trained,
    vocabulary_of,
)
from tokenizers import Tokenizer

from tokenfst import choices, compile
from tokenfst.errors import TokenfstError, TokenizationError
from tokenfst.tokenizers.adapters.huggingface import from_specification
from tokenfst.tokenizers.adapters.pack import read_pack, write_pack
from tokenfst.tokenizers.segmentation.tokenizer import byte_pair_tokenizer

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
SPLIT = {"type": "Split", "pattern": {"Regex": r"\s+|\S+"}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"type": "NFKC"}},
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}},
        {"pre_tokenizer": None},
        {"pre_tokenizer": {**BYTE_LEVEL, "add_prefix_space": True, "use_regex": True}},
        {"pre_tokenizer": BYTE_LEVEL},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": []}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT]}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT, SPLIT, BYTE_LEVEL]}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT, {**BYTE_LEVEL, "use_regex": True}]}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, BYTE_LEVEL]}},
        {
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [{**SPLIT, "behavior": "MergedWithPrevious"}, BYTE_LEVEL],
            }
        },
        {
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [{**SPLIT, "pattern": {"String": " "}}, BYTE_LEVEL],
            }
        },
        {"model": {"dropout": 0.1}},
        {"model": {"continuing_subword_prefix": "##"}},
        {"model": {"end_of_word_suffix": "</w>"}},
        {"model": {"merges": None}},
        {"model": {"merges": [["a"], 3]}},
        {"decoder": {"type": "Fuse"}},
        {"added_tokens": [{"id": 300, "content": "<tool>", "special": False, "lstrip": True}]},
        {"added_tokens": [{"id": 300, "content": "<tool>", "special": False, "single_word": True}]},
        {"added_tokens": [{"id": 97, "content": "th", "special": False, "normalized": False}]},
        {"added_tokens": [{"id": 300, "content": "a\u0120b", "special": False, "normalized": False}]},
        {
            "added_tokens": [
                {"id": 300, "content": "<tool>", "special": False, "normalized": False},
                {"id": 301, "content": "<end>", "special": False, "normalized": True},
            ]
        },
        {
            "normalizer": {"type": "NFC"},
            "added_tokens": [{"id": 300, "content": "e\u0301", "special": False, "normalized": False}],
        },
    ],
)
def test_other_tokenizers_are_not_known(change: dict[str, Any]) -> None:
    document = specification()
    assert from_specification(copy.deepcopy(document), eos_token_id=0).split_pattern == r"\s+|\S+"
    for key, value in change.items():
        document[key] = {**document[key], **value} if key == "model" else value
    vocabulary = from_specification(document, eos_token_id=0)
    assert vocabulary.encoding is None
    with pytest.raises(TokenizationError, match="is not known"):
        compile(choices([b"a"]), vocabulary, tokenization="canonical")


def changed(kind: str) -> dict[str, Any]:
    """Specifications that the library reads otherwise than this package would, if it took them."""
    document = specification()
    vocab, added = document["model"]["vocab"], document["added_tokens"]
    free = len(vocab)
    if kind == "raw byte":  # the model's characters stand for bytes: it never finds this one
        vocab["\x7f"] = vocab.pop(CHARACTERS[0x7F])
    elif kind == "not the next id":
        added.append({"id": free + 7, "content": "<tool>", **ADDED})
    elif kind == "a token of the model":
        added.append({"id": free, "content": "the", **ADDED})
    elif kind == "listed twice":
        added += [{"id": free + each, "content": "<tool>", **ADDED} for each in range(2)]
    elif kind == "hidden in a special token":
        added.append({"id": free, "content": "<|xyz|>", **ADDED, "special": True})
        added.append({"id": free + 1, "content": "xyz", **ADDED})
    elif kind == "hidden by its end":
        added.append({"id": free, "content": "<xy", **ADDED, "special": True})
        added.append({"id": free + 1, "content": "xyz", **ADDED})
    elif kind == "special piece":
        document["model"]["ignore_merges"], vocab["PAD"] = True, free
        added.append({"id": free, "content": "PAD", **ADDED, "special": True})
    return document


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("raw byte", "a\x7fb"),
        ("not the next id", "<tool>"),
        ("a token of the model", "the"),
        ("listed twice", "<tool>"),
        ("hidden in a special token", "<|xyz|>"),
        ("hidden by its end", "<xyz"),
        ("special piece", "a PAD"),
    ],
)
def test_specifications_that_the_library_reads_otherwise_are_not_known(kind: str, text: str) -> None:
    document = changed(kind)
    assert from_specification(document, eos_token_id=0).encoding is None
    library = Tokenizer.from_str(json.dumps(document))
    library.encode_special_tokens = True
    assert library.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"a+$|[\s\S]", "aa\nb"),
        (r"a{1,2}+|[\s\S]", "aaaab"),
        (r"a{2}?|[\s\S]", "aaab"),
        (r"\pL|[\s\S]", "apLb"),
        (r"[\pL]+|[\s\S]", "apLb"),
        (r"(?i:'st)|[\s\S]", "'\ufb06b"),
        (r"(?i:s{2})|[\s\S]", "ssb"),
    ],
)
def test_patterns_that_oniguruma_reads_otherwise_are_not_known(pattern: str, text: str) -> None:
    tokenizer = trained(pattern, SAMPLE * 3, 280)
    assert vocabulary_of(tokenizer).encoding is None and tokenizer.encode(text).ids


@pytest.mark.parametrize(
    "pattern",
    [
        LLAMA,
        r"'(?i:[sdmt]|ll|ve|re)|[\s\S]",
        r"a{2}[b]?|\{2\}\?|[${2}+]+|[\s\S]",
        r"\p{L}++|\p{N}{1,3}|[\s\S]",
    ],
)
def test_patterns_that_both_engines_read_alike_are_known(pattern: str) -> None:
    tokenizer = trained(pattern, SAMPLE * 3, 280)
    known = byte_pair_tokenizer(vocabulary_of(tokenizer))
    for text in ("aab{2}?", "${2}+aab", "'S a'lla'Sx", "1234aaB"):
        assert known.encode(text.encode()) == tokenizer.encode(text, add_special_tokens=False).ids, text


ODD = [None, 5, "x", ["x"], [None], {"type": 5}, {"type": "Sequence"}, [["a", "b", "c"]], "\ud800"]


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_malformed_parts_give_a_vocabulary_or_a_typed_error(odd: object) -> None:
    document = specification()
    document["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}]}
    document["added_tokens"].append({"id": len(document["model"]["vocab"]), "content": "<tool>", **ADDED})
    places: list[tuple[str | int, ...]] = [
        ("normalizer",),
        ("normalizer", "normalizers"),
        ("normalizer", "normalizers", 0),
        ("pre_tokenizer",),
        ("pre_tokenizer", "pretokenizers"),
        ("pre_tokenizer", "pretokenizers", 0),
        ("pre_tokenizer", "pretokenizers", 0, "pattern"),
        ("added_tokens", 1),
        ("added_tokens", 1, "content"),
        ("added_tokens", 1, "id"),
        ("model", "merges"),
        ("model", "merges", 0),
        ("model", "vocab", "a"),
        ("decoder",),
    ]
    for place in places:
        made = copy.deepcopy(document)
        node: Any = made
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = odd
        try:
            vocabulary = from_specification(made, eos_token_id=0)
        except TokenfstError:
            assert place[0] not in ("normalizer", "pre_tokenizer"), place
        else:
            assert vocabulary.tokens


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("order", "not in the order of its merges"),
        ("missing", "made by none of them"),
        ("twice", "listed twice"),
        ("unknown", "special tokens or no tokens"),
    ],
)
def test_merges_that_are_not_those_by_ids_are_refused(kind: str, message: str, tmp_path: Path) -> None:
    vocabulary = from_specification(damaged(kind), eos_token_id=0)
    with pytest.raises(TokenizationError, match=message):
        byte_pair_tokenizer(vocabulary)
    write_pack(vocabulary, tmp_path / "pack")
    assert read_pack(tmp_path / "pack") == vocabulary and read_pack(tmp_path / "pack").split_pattern is None


def test_an_end_token_that_merges_make_is_refused() -> None:
    document = specification()
    last = len(document["model"]["vocab"]) - 1
    with pytest.raises(TokenizationError, match="special"):
        byte_pair_tokenizer(from_specification(document, eos_token_id=last))
