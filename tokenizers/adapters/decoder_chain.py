"""The bytes that a ``tokenizer.json`` decoder writes for each token, at the start of a text and inside it.

A decoder maps a list of token strings to a list of strings, which are then joined. Every supported step is *local*: its
output for a token depends only on the token and on whether the token is the first one. So instead of running the
decoder on texts, it is run on each token twice, which gives the two tables of a ``Vocabulary``.

A step may be local only in some positions of a sequence: ``Strip`` cuts every token before ``Fuse``, but only the ends
of the whole text after it. The chain tracks this, and rejects decoders that cannot be expressed by two tables with
``UnknownTokenizerError`` (``CTC``, ``BPEDecoder``, a ``Strip`` at the end of the text, ...).

=============  ===============================================================================================
no decoder     tokens joined by a space
ByteLevel      characters stand for bytes; a token with any other character is its own UTF-8; fuses
ByteFallback   ``<0xHH>`` is one byte
Metaspace      the replacement is a space; dropped from the first token unless ``prepend_scheme`` is "never"
WordPiece      a space before each token but the first, or its prefix removed; ``cleanup`` edits each token
Replace        with a literal pattern
Fuse           joins; what follows sees one string
Strip          ``start`` and ``stop`` times a character from the ends of each token (of the text, after Fuse)
Sequence       one after the other
=============  ===============================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tokenfst.errors import UnknownTokenizerError
from tokenfst.tokenizers.vocabulary.encoding import byte_level_alphabet

_FALLBACK = re.compile(rb"<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>")
"""The strings that Rust's ``u8::from_str_radix`` accepts between ``<0x`` and ``>``."""

_CLEANUP = [
    (b" .", b"."),
    (b" ?", b"?"),
    (b" !", b"!"),
    (b" ,", b","),
    (b" ' ", b"'"),
    (b" n't", b"n't"),
    (b" 'm", b"'m"),
    (b" do not", b" don't"),
    (b" 's", b"'s"),
    (b" 've", b"'ve"),
    (b" 're", b"'re"),
]


def decoded_forms(tokens: Sequence[str], decoder: dict[str, Any] | None) -> tuple[list[bytes], list[bytes]]:
    """The bytes that ``decoder`` (a ``tokenizer.json`` node) writes for each token: (inside a text, at its start).

    Linear in the bytes of all tokens, for each step. Raises ``UnknownTokenizerError`` with the unsupported step and the
    reason.
    """
    try:
        chain = _Chain([token.encode() for token in tokens])
    except UnicodeEncodeError as error:
        raise UnknownTokenizerError(
            f"the tokenizer has a token that is not Unicode text: {error.object!r}"
        ) from error
    if decoder is None:
        chain.later = [b" " + data for data in chain.later]
        return chain.later, chain.first
    try:
        chain.run(decoder)
    except (KeyError, TypeError, AttributeError) as error:
        raise UnknownTokenizerError(
            f"the tokenizer's decoder is not well formed: {decoder!r} ({error!r})"
        ) from error
    return chain.later, chain.first


class _Chain:
    """The two tables while the steps of a decoder are applied to them.

    ``fused``: whether a step has joined the tokens into one string. ``raw``: whether some strings are bytes that are
    not text on their own.
    """

    def __init__(self, tokens: list[bytes]) -> None:
        self.later, self.first = tokens, list(tokens)
        self.fused = self.raw = False

    def run(self, step: dict[str, Any]) -> None:
        kind = step.get("type")
        method = getattr(self, f"_step_{kind}", None) if isinstance(kind, str) else None
        if method is None:
            known = ", ".join(sorted(name[6:] for name in dir(self) if name.startswith("_step_")))
            raise UnknownTokenizerError(
                f"the tokenizer's decoder has a step {step!r}; known steps are {known}"
            )
        method(step)

    def _each(self, edit: Callable[[bytes], bytes]) -> None:
        same: dict[bytes, bytes] = {}
        self.later = [same.setdefault(data, edit(data)) for data in self.later]
        self.first = [same[data] if data in same else edit(data) for data in self.first]

    def _require(self, condition: bool, step: dict[str, Any], why: str) -> None:
        if not condition:
            raise UnknownTokenizerError(
                f"the tokenizer's decoder has a step {step!r} {why}: what it writes for a token "
                "depends on more than the token and whether it is the first, or is not known here"
            )

    def _step_Sequence(self, step: dict[str, Any]) -> None:
        for part in step["decoders"]:
            self.run(part)

    def _step_ByteLevel(self, step: dict[str, Any]) -> None:
        self._require(not self.fused and not self.raw, step, "after Fuse or ByteFallback")
        alphabet = byte_level_alphabet()

        def edit(data: bytes) -> bytes:
            try:
                return bytes([alphabet[character] for character in data.decode()])
            except KeyError:
                return data

        self._each(edit)
        self.fused = self.raw = True

    def _step_ByteFallback(self, step: dict[str, Any]) -> None:
        self._require(not self.fused and not self.raw, step, "after Fuse or ByteFallback")

        def edit(data: bytes) -> bytes:
            found = _FALLBACK.fullmatch(data)
            return bytes([int(found[1], 16)]) if found else data

        self._each(edit)
        self.raw = True

    def _step_Metaspace(self, step: dict[str, Any]) -> None:
        self._require(not self.fused and not self.raw, step, "after Fuse or ByteFallback")
        mark = step.get("replacement", "▁").encode()
        scheme = step.get("prepend_scheme", "always" if step.get("add_prefix_space", True) else "never")
        self._require(scheme in ("always", "first", "never"), step, "with an unknown prepend_scheme")
        self.later = [data.replace(mark, b" ") for data in self.later]
        self.first = [data.replace(mark, b" " if scheme == "never" else b"") for data in self.first]

    def _step_WordPiece(self, step: dict[str, Any]) -> None:
        self._require(not self.fused and not self.raw, step, "after Fuse or ByteFallback")
        prefix = step.get("prefix", "##").encode()
        self.later = [data[len(prefix) :] if data.startswith(prefix) else b" " + data for data in self.later]
        if step.get("cleanup", True):
            self._each(_clean)

    def _step_Replace(self, step: dict[str, Any]) -> None:
        pattern = step.get("pattern", {}).get("String")
        self._require(bool(pattern), step, "whose pattern is not a literal")
        old, new = pattern.encode(), step["content"].encode()
        self._require(
            not self.raw or len(old) == 1, step, "on more than an ASCII character after ByteFallback"
        )
        self._require(not self.fused or len(pattern) == 1, step, "on more than one character after Fuse")
        self._each(lambda data: data.replace(old, new))

    def _step_Fuse(self, step: dict[str, Any]) -> None:
        self.fused = True

    def _step_Strip(self, step: dict[str, Any]) -> None:
        mark, start, stop = step["content"], step["start"], step["stop"]
        if self.fused:
            self._require(stop == 0, step, "that cuts the end of the text")
            self._require(start <= 1, step, "that cuts more than one character from the start of the text")
            self._require(
                not self.raw or mark.isascii(), step, "of a character that is not ASCII, after bytes"
            )
            begun = all(first or not later for first, later in zip(self.first, self.later, strict=True))
            self._require(begun or not start, step, "after tokens that may begin a text with nothing")
            self.first = [data.removeprefix(mark.encode()) if start else data for data in self.first]
            return
        self._require(not self.raw, step, "between ByteFallback and Fuse")

        def edit(data: bytes) -> bytes:
            text = data.decode()
            head = min(start, len(text) - len(text.lstrip(mark)))
            tail = min(stop, len(text) - len(text.rstrip(mark)))
            return text[head : max(head, len(text) - tail)].encode()

        self._each(edit)


def _clean(data: bytes) -> bytes:
    for old, new in _CLEANUP:
        data = data.replace(old, new)
    return data
