"""The byte-pair encoding that a ``tokenizer.json`` specifies, where it is one of bytes with a single split pattern.

Known are: a model ``BPE`` without ``dropout``, prefixes and suffixes; a decoder ``ByteLevel``; no normalizer, or NFC;
as the pre-tokenizer ``ByteLevel`` alone (with GPT-2's pattern) or after one ``Split`` by a regular expression (Llama 3,
Qwen and most models after them). Added tokens that are not special must stand for their own text, wherever it occurs.
Parts of the document that are not well formed are not known either: the tokens alone make a vocabulary.

Whether the ids are in the order of the merges is checked when the encoding is first used
(``tokenfst.tokenizers.segmentation.byte_pairs``): it takes longer than reading the file.

The reference is ``tokenizers.Tokenizer.encode(text, add_special_tokens=False)`` with ``encode_special_tokens = True``:
the name of a special token in a text is not that token. Truncation and padding, which a file may set, do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tokenfst.budget import Budget
from tokenfst.errors import TokenizationError
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding, byte_level_alphabet
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pattern in the library's source (``pre_tokenizers/byte_level.rs``)."""

_KEPT = (("Isolated", False), ("Removed", True))
"""The behaviors of ``Split``, with ``invert``, in which each match is a piece."""

_LITERALS = re.compile(r"\\[pP]\{\w+\}|\\.|\[(?:\\.|[^\]\\])*\]", re.DOTALL)
_READ_OTHERWISE = re.compile(r"\$|\}\+|\{\d+\}\?")
"""What Oniguruma, the library's engine, reads in another way than tiktoken's, outside of classes and escapes: ``$`` is
the end of a line; ``{2}+`` and ``{2}?`` repeat what is repeated.
"""
_WITHOUT_BRACES = re.compile(r"\\[pP][^{]")
"""Also read otherwise: as letters."""
_FOLDED = re.compile(r"'?(?:\[[A-Za-z]+\]|(?:(?!s[st]|f[fil])[A-Za-z])+)", re.IGNORECASE)
"""Where case is ignored, Oniguruma takes some characters for two letters: U+FB06 for "st". This has no such letters."""


def byte_pair_encoding(
    document: dict[str, Any], tokens: Sequence[bytes], ends: Sequence[int]
) -> BytePairEncoding | None:
    """The encoding that a ``tokenizer.json`` specifies; ``None``: another kind of tokenizer.

    ``tokens``: the bytes of each id. ``ends``: the end tokens. Linear in the size of the merges.
    """
    with suppress(AttributeError, IndexError, KeyError, TypeError, ValueError):  # not well formed
        return _encoding(document, tokens, ends)
    return None


def _encoding(
    document: dict[str, Any], tokens: Sequence[bytes], ends: Sequence[int]
) -> BytePairEncoding | None:
    model, decoder = document["model"], document.get("decoder") or {}
    if (
        model.get("type", "BPE") != "BPE"
        or decoder.get("type") != "ByteLevel"
        or not isinstance(model.get("merges"), list)
        or any(model.get(key) for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"))
        or any(chr(byte) in model["vocab"] for byte in _other_spellings())
    ):
        return None
    pattern, is_nfc = _split_pattern(document.get("pre_tokenizer")), _is_nfc(document.get("normalizer"))
    merges, added = _merges(model["merges"]), _added(document, tokens)
    if pattern is None or is_nfc is None or merges is None or added is None:
        return None
    if is_nfc and not all(unicodedata.is_normalized("NFC", text) for text, _ in added):
        return None
    if model.get("ignore_merges") and _is_piece(_silent(model["vocab"], tokens, ends), pattern):
        return None
    return BytePairEncoding(pattern, merges, added, is_nfc)


def _other_spellings() -> list[int]:
    """The bytes that a decoder writes for a character that does not stand for them: the model never finds it."""
    return [byte for byte in range(0x80) if chr(byte) not in byte_level_alphabet()]


def _silent(vocab: dict[str, int], tokens: Sequence[bytes], ends: Sequence[int]) -> list[bytes]:
    """The texts of the model's tokens that are special."""
    alphabet = byte_level_alphabet()
    found = [piece for piece, token in vocab.items() if not tokens[token] or token in ends]
    return [
        bytes(map(alphabet.__getitem__, piece)) for piece in found if piece and alphabet.keys() >= {*piece}
    ]


def _is_piece(texts: list[bytes], pattern: str) -> bool:
    """Whether one of the texts may be a whole piece: with ``ignore_merges``, that is its token, special or not."""
    if not texts:
        return False
    from tokenfst.tokenizers.segmentation.cuts import DEAD, Segmentation
    from tokenfst.tokenizers.segmentation.split_pattern import split_pattern

    try:
        cuts = Segmentation(split_pattern(pattern), Vocabulary([*texts, b""], len(texts)), Budget())
    except TokenizationError:  # which the first use reports
        return False
    return any(cuts.at_cut(cuts.next(cuts.start, number)) != DEAD for number in range(len(texts)))


def _is_nfc(normalizer: Any) -> bool | None:
    """Whether the normalizer is NFC and not none; ``None``: it is another one."""
    parts = [normalizer] if normalizer else []
    if parts and normalizer.get("type") == "Sequence":
        parts = normalizer.get("normalizers", [])
    return bool(parts) if all(part.get("type") == "NFC" for part in parts) else None


def _added(document: dict[str, Any], tokens: Sequence[bytes]) -> tuple[tuple[str, int], ...] | None:
    """The added tokens that are text, and their ids; ``None``: one is not simply its text, wherever that occurs."""
    listed, vocab = document.get("added_tokens") or [], document["model"]["vocab"]
    entries = [each for each in listed if not each.get("special")]
    if not entries:
        return ()
    of_model, normalized = {*vocab.values()}, entries[0].get("normalized")
    special = [
        each["content"] for each in listed if each.get("special") and each.get("normalized") == normalized
    ]
    for each in entries:
        if (
            any(each.get(flag) for flag in ("single_word", "lstrip", "rstrip"))
            or each.get("normalized") != normalized  # those that are not are found first
            or each["id"] in of_model
            or each["content"] in vocab
            or not each["content"]
            or tokens[each["id"]] != each["content"].encode()
            or any(_hides(other, each["content"]) for other in special)
        ):
            return None
    free, seen = len(vocab), set()
    for each in listed:
        content, token = each["content"], each["id"]
        if content in seen or token != vocab.get(content, free):  # the library gives the next free id
            return None
        free = max(free, token + 1)
        seen.add(content)
    return tuple(sorted((each["content"], each["id"]) for each in entries))


def _hides(special: str, text: str) -> bool:
    """Whether a special token in a text may overlap an added one: the library finds it first, and then takes it for
    text.
    """
    return any(
        special[at:].startswith(text) or (at and text.startswith(special[at:])) for at in range(len(special))
    )


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
    return found if isinstance(found, str) and kept and _is_read_alike(found) else None


def _is_read_alike(pattern: str) -> bool:
    """Whether Oniguruma certainly reads a pattern as ``tokenfst.tokenizers.segmentation.split_pattern`` does."""
    if _READ_OTHERWISE.search(_LITERALS.sub("x", pattern)) or _WITHOUT_BRACES.search(pattern):
        return False
    for group in pattern.split("(?i:")[1:]:
        inside, _, after = group.partition(")")
        if not all(map(_FOLDED.fullmatch, inside.split("|"))) or after.startswith("{"):
            return False
    return ")(?i:" not in pattern


def _merges(listed: list[Any]) -> str | None:
    """The lines of merges.txt: each merge is "a b", or ["a", "b"] in later files."""
    try:
        return "\n".join(each if isinstance(each, str) else " ".join(each) for each in listed)
    except TypeError:
        return None
