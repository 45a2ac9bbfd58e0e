"""The byte-pair encoding that a ``tokenizer.json`` specifies, where it is one of bytes with a single split pattern.

Known are: a model ``BPE`` without ``dropout``, prefixes and suffixes; a decoder ``ByteLevel``; no normalizer, or NFC;
as the pre-tokenizer ``ByteLevel`` alone (with GPT-2's pattern) or after one ``Split`` by a regular expression (Llama 3,
Qwen and most models after them). Added tokens that are not special must stand for their own text, wherever it occurs.

Whether the ids are in the order of the merges is checked when the encoding is first used
(``tokenfst.tokenizers.segmentation.byte_pairs``): it takes longer than reading the file.

The reference is ``tokenizers.Tokenizer.encode(text, add_special_tokens=False)`` with ``encode_special_tokens = True``:
the name of a special token in a text is not that token.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pattern in the library's source (``pre_tokenizers/byte_level.rs``)."""

_KEPT = (("Isolated", False), ("Removed", True))
"""The behaviors of ``Split``, with ``invert``, in which each match is a piece."""


def byte_pair_encoding(document: dict[str, Any], tokens: Sequence[bytes]) -> BytePairEncoding | None:
    """The encoding that a well-formed ``tokenizer.json`` specifies; ``None``: another kind of tokenizer.

    ``tokens``: the bytes of each id. Linear in the size of the merges.
    """
    model, decoder = document["model"], document.get("decoder") or {}
    if (
        model.get("type", "BPE") != "BPE"
        or decoder.get("type") != "ByteLevel"
        or not isinstance(model.get("merges"), list)
        or any(model.get(key) for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"))
    ):
        return None
    pattern, is_nfc = _split_pattern(document.get("pre_tokenizer")), _is_nfc(document.get("normalizer"))
    merges, added = _merges(model["merges"]), _added(document, tokens)
    if pattern is None or is_nfc is None or merges is None or added is None:
        return None
    if is_nfc and not all(unicodedata.is_normalized("NFC", text) for text, _ in added):
        return None
    return BytePairEncoding(pattern, merges, added, is_nfc)


def _is_nfc(normalizer: Any) -> bool | None:
    """Whether the normalizer is NFC and not none; ``None``: it is another one."""
    parts = [normalizer] if normalizer else []
    if parts and normalizer.get("type") == "Sequence":
        parts = normalizer.get("normalizers", [])
    return bool(parts) if all(part.get("type") == "NFC" for part in parts) else None


def _added(document: dict[str, Any], tokens: Sequence[bytes]) -> tuple[tuple[str, int], ...] | None:
    """The added tokens that are text, and their ids; ``None``: one is not simply its text, wherever that occurs."""
    entries = [each for each in document.get("added_tokens") or [] if not each.get("special")]
    of_model = {*document["model"]["vocab"].values()} if entries else set()
    for each in entries:
        if (
            any(each.get(flag) for flag in ("single_word", "lstrip", "rstrip"))
            or each.get("normalized") != entries[0].get("normalized")  # those that are not are found first
            or each["id"] in of_model
            or not each["content"]
            or tokens[each["id"]] != each["content"].encode()
        ):
            return None
    return tuple(sorted((each["content"], each["id"]) for each in entries))


def _split_pattern(node: Any) -> str | None:
    """The pattern by which a pre-tokenizer splits texts; ``None``: not by one pattern, or it changes the text."""
    steps = node.get("pretokenizers", []) if node and node.get("type") == "Sequence" else [node]
    *splits, last = [step or {} for step in steps] or [{}]
    if last.get("type") != "ByteLevel" or last.get("add_prefix_space", True):
        return None
    matched = last.get("use_regex", True)
    if not splits:
        return _GPT2 if matched else None
    if matched or len(splits) > 1 or splits[0].get("type") != "Split":
        return None
    found = (splits[0].get("pattern") or {}).get("Regex")
    kept = (splits[0].get("behavior"), splits[0].get("invert", False)) in _KEPT
    return found if isinstance(found, str) and kept else None


def _merges(listed: list[Any]) -> str | None:
    """The lines of merges.txt: each merge is "a b", or ["a", "b"] in later files."""
    try:
        return "\n".join(each if isinstance(each, str) else " ".join(each) for each in listed)
    except TypeError:
        return None
