"""The byte-pair encoding that a ``tokenizer.json`` specifies, where it is one of bytes with a single split pattern.

Known are: a model ``BPE`` without ``dropout``, prefixes and suffixes, a decoder ``ByteLevel``, no normalizer, and as
the pre-tokenizer ``ByteLevel`` alone (with GPT-2's pattern) or after one ``Split`` by a regular expression (Llama 3 and
most models after it). Added tokens must be special: ``encode`` finds any other one in a text before it splits.

Whether the ids are in the order of the merges is checked when the encoding is first used
(``tokenfst.tokenizers.segmentation.byte_pairs``): it takes longer than reading the file.

The reference is ``tokenizers.Tokenizer.encode(text, add_special_tokens=False)`` of a text that contains no special
token's name.
"""

from __future__ import annotations

from typing import Any

from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pattern in the library's source (``pre_tokenizers/byte_level.rs``)."""

_KEPT = (("Isolated", False), ("Removed", True))
"""The behaviors of ``Split``, with ``invert``, in which each match is a piece."""


def byte_pair_encoding(document: dict[str, Any]) -> BytePairEncoding | None:
    """The encoding that a well-formed ``tokenizer.json`` specifies; ``None``: another kind of tokenizer.

    Linear in the size of the merges.
    """
    model, pattern = document["model"], _split_pattern(document.get("pre_tokenizer"))
    decoder, normalizer = document.get("decoder") or {}, document.get("normalizer")
    unlike = (
        model.get("type", "BPE") != "BPE",
        any(model.get(key) for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix")),
        decoder.get("type") != "ByteLevel",
        normalizer is not None and normalizer != {"type": "Sequence", "normalizers": []},
        not all(added.get("special") for added in document.get("added_tokens") or []),
    )
    if pattern is None or any(unlike) or not isinstance(model.get("merges"), list):
        return None
    merges = _merges(model["merges"])
    return None if merges is None else BytePairEncoding(pattern, merges)


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
