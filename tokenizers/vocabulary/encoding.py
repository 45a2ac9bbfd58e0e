"""``BytePairEncoding``: how a byte-pair tokenizer makes tokens of a text, as far as a vocabulary knows it.

A text is split into pieces, match by match of a pattern. Each piece is at first one part for each byte. The two
adjacent parts whose merge has the lowest rank are merged, the leftmost first, until nothing can be merged. The parts
that are left are the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenfst.common.arguments import shown
from tokenfst.errors import VocabularyError

_MOST = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class BytePairEncoding:
    """A split pattern and the merges.

    ``split_pattern``: the pattern, as tiktoken has it. ``merges``: the two parts of each merge, by rank: a line for
    each, with a space between them, in the characters of ``byte_level_alphabet`` (as ``merges.txt``, without its first
    line). ``None``: any two parts whose bytes are a token can be merged, with its id as the rank (tiktoken's form).
    ``added``: texts and ids of the tokens that are found in a text before it is split, the longest of the leftmost; the
    text between them is then encoded by itself; they are sorted. ``is_nfc``: a text is first brought into the normal
    form NFC. Raises ``VocabularyError`` for other values, texts with lone surrogates, and a text that is added twice.
    """

    split_pattern: str
    merges: str | None = None
    added: tuple[tuple[str, int], ...] = ()
    is_nfc: bool = False

    def __post_init__(self) -> None:
        for name, fits, wanted in (
            ("split_pattern", _is_text(self.split_pattern), "a text without lone surrogates"),
            ("merges", self.merges is None or isinstance(self.merges, str), "a text or None"),
            ("added", isinstance(self.added, tuple), "a tuple of pairs"),
            ("is_nfc", isinstance(self.is_nfc, bool), "True or False"),
        ):
            if not fits:
                raise VocabularyError(f"{name} must be {wanted}, not {shown(getattr(self, name))}")
        for each in self.added:
            if not (
                isinstance(each, tuple)
                and len(each) == 2
                and each[0]
                and _is_text(each[0])
                and _is_id(each[1])
            ):
                parts = " and ".join(map(shown, each)) if isinstance(each, tuple) else shown(each)
                raise VocabularyError(
                    "an added token has a text, which is not empty and has no lone surrogates, and an id from 0 to "
                    f"{_MOST:,}, not {parts}"
                )
        if len({text for text, _ in self.added}) < len(self.added):
            raise VocabularyError("a text is added twice: each added token has a text of its own")
        object.__setattr__(self, "added", tuple(sorted(self.added)))

    @property
    def changes_texts(self) -> bool:
        """Whether some texts are not split as they are: they contain added tokens, or are not in the normal form."""
        return bool(self.added) or self.is_nfc

    def to_document(self) -> str | dict[str, Any]:
        """What files and keys say of the encoding: the split pattern, or an object of it with the added tokens and the
        form. It does not have the merges.
        """
        if not self.changes_texts:
            return self.split_pattern
        return {"pattern": self.split_pattern, "added": dict(self.added), "nfc": self.is_nfc}

    @classmethod
    def of_document(cls, document: object) -> BytePairEncoding:
        """The encoding of which ``to_document`` wrote this. Raises ``VocabularyError``."""
        match document:
            case str():
                return cls(document)
            case {"pattern": str(pattern), "added": dict(added), "nfc": bool(nfc), **others} if not others:
                return cls(pattern, added=tuple(added.items()), is_nfc=nfc)
        raise VocabularyError(
            "split_pattern must be a string, or an object with the keys pattern, added (texts to ids) and nfc, "
            f"not {document!r:.80}"
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value)


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def byte_level_alphabet() -> dict[str, int]:
    """The characters of GPT-2's byte-level BPE, with the bytes that they stand for."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(shown)]
    return {chr(byte): byte for byte in shown} | {chr(256 + k): byte for k, byte in enumerate(hidden)}
