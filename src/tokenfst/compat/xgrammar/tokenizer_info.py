"""xgrammar's ``TokenizerInfo``: the bytes that a tokenizer's tokens spell."""

from __future__ import annotations

import base64
import enum
import json
import string
from collections.abc import Mapping, Sequence
from typing import Any

from tokenfst.compat.xgrammar.exception import (
    DeserializeFormatError,
    DeserializeVersionError,
    GrammarError,
    InvalidJSONError,
    raising,
)
from tokenfst.tokenizers.vocabulary.tables import pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

VERSION = "tokenfst-1"
"""The version of the format of ``serialize_json``."""
_STOPS = (
    "</s>",
    "<eos>",
    "<|eos|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|im_end|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
)


class VocabType(enum.Enum):
    """How the strings of a vocabulary represent bytes."""

    RAW = 0
    BYTE_FALLBACK = 1
    BYTE_LEVEL = 2


class TokenizerInfo:
    """The bytes that a tokenizer's tokens spell."""

    def __init__(
        self,
        encoded_vocab: Sequence[str] | Sequence[bytes],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: int | None = None,
        stop_token_ids: Sequence[int] | int | None = None,
        add_prefix_space: bool = False,
    ) -> None:
        tokens = raising(pad_tokens)([_spelled(token, vocab_type) for token in encoded_vocab], vocab_size)
        if stop_token_ids is None:
            stop_token_ids = [
                place for place, each in enumerate(tokens) if each.decode("utf-8", "replace") in _STOPS
            ]
        if isinstance(stop_token_ids, int):
            stop_token_ids = [stop_token_ids]
        self.vocab_type, self.add_prefix_space = vocab_type, add_prefix_space
        self._size, hidden = len(tokens), []
        if not tokens:
            hidden = [bytes([byte]) for byte in range(256)]
        if not stop_token_ids:
            stop_token_ids, hidden = [len(tokens) + len(hidden)], [*hidden, b""]
        self._vocabulary = _vocabulary([*tokens, *hidden], stop_token_ids)

    @classmethod
    def from_vocabulary(cls, vocabulary: Vocabulary) -> TokenizerInfo:
        """Make the info of a tokenfst vocabulary."""
        made = cls.__new__(cls)
        made.vocab_type, made.add_prefix_space = VocabType.RAW, False
        made._vocabulary, made._size = vocabulary, len(vocabulary)  # just made
        return made

    @classmethod
    @raising
    def from_huggingface(
        cls,
        tokenizer: Any,
        *,
        vocab_size: int | None = None,
        stop_token_ids: Sequence[int] | int | None = None,
    ) -> TokenizerInfo:
        """Make the info of a fast tokenizer of Hugging Face."""
        made = cls.from_vocabulary(
            Vocabulary.from_huggingface(tokenizer, size=vocab_size, eos_token_id=stop_token_ids)
        )
        if hasattr(tokenizer, "get_vocab"):
            made.vocab_type = _kind_of(tokenizer.get_vocab())
            made.add_prefix_space = _begins_with_space(tokenizer, made.vocab_type)
        return made

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary in tokenfst's form."""
        return self._vocabulary

    @property
    def vocab_size(self) -> int:
        """The width of the model's logits."""
        return self._size

    @property
    def hidden_tokens(self) -> int:
        """The number of tokens in ``vocabulary`` beyond ``vocab_size``, which the tokenizer itself does not have.

        A tokenizer without an end token gets one. An empty tokenizer, with which texts are tested, also gets one token
        for each byte.
        """
        return len(self._vocabulary) - self._size

    @property
    def prepend_space_in_tokenization(self) -> bool:
        """The old name of ``add_prefix_space``."""
        return self.add_prefix_space

    @property
    def decoded_vocab(self) -> list[bytes]:
        """The bytes of each token; b"" for special tokens, for which xgrammar has their names."""
        return list(self._vocabulary.tokens[: self._size])

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end a text."""
        return [token for token in self._vocabulary.eos_token_ids if token < self._size]

    @property
    def special_token_ids(self) -> list[int]:
        """The ids of special tokens, which spell no bytes."""
        return sorted(token for token in self._vocabulary.special_token_ids if token < self._size)

    def dump_metadata(self) -> str:
        """Everything except the tokens, as JSON."""
        return json.dumps(
            {
                "vocab_type": self.vocab_type.value,
                "vocab_size": self._size,
                "add_prefix_space": self.add_prefix_space,
                "stop_token_ids": self.stop_token_ids,
            }
        )

    @classmethod
    def from_vocab_and_metadata(
        cls, encoded_vocab: Sequence[str] | Sequence[bytes], metadata: str
    ) -> TokenizerInfo:
        """Make the info from tokens and the text of ``dump_metadata``."""
        try:
            given = json.loads(metadata)
            kind = VocabType(given["vocab_type"])
            rest = {name: given[name] for name in ("vocab_size", "stop_token_ids", "add_prefix_space")}
        except (ValueError, KeyError, TypeError) as error:
            raise DeserializeFormatError(f"metadata is not what dump_metadata writes: {error!r}") from None
        return cls(encoded_vocab, kind, **rest)

    def serialize_json(self) -> str:
        """The whole info as JSON.

        Names of special tokens, and what a Hugging Face tokenizer knows besides its tokens, are not included. To keep
        these, pickle the object.
        """
        tokens = [base64.b64encode(token).decode() for token in self.decoded_vocab]
        return json.dumps({"__VERSION__": VERSION, "metadata": self.dump_metadata(), "decoded_vocab": tokens})

    @classmethod
    def deserialize_json(cls, json_string: str) -> TokenizerInfo:
        """Read the text of ``serialize_json``."""
        given = written(json_string, "metadata", "decoded_vocab")
        try:
            metadata = {**json.loads(given["metadata"]), "vocab_type": VocabType.RAW.value}
            tokens = [base64.b64decode(token, validate=True) for token in given["decoded_vocab"]]
            made = cls.from_vocab_and_metadata(tokens, json.dumps(metadata))
            made.vocab_type = VocabType(json.loads(given["metadata"])["vocab_type"])
        except (ValueError, TypeError, KeyError) as error:
            raise DeserializeFormatError(f"this is not what serialize_json writes: {error!r}") from None
        return made


def written(text: str, *fields: str) -> dict[str, Any]:
    """The object that ``serialize_json`` wrote, with these fields."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidJSONError(f"this is not JSON: {error}") from None
    if not isinstance(found, dict) or "__VERSION__" not in found:
        raise DeserializeFormatError("this is not what serialize_json writes: it has no __VERSION__")
    if found["__VERSION__"] != VERSION:
        raise DeserializeVersionError(
            f"this was written as version {found['__VERSION__']!r}, and this is {VERSION!r}: write it again"
        )
    for field in fields:
        if field not in found:
            raise DeserializeFormatError(f"this is not what serialize_json writes: it has no {field}")
    return found


@raising
def _vocabulary(tokens: Sequence[bytes], stops: Sequence[int]) -> Vocabulary:
    return Vocabulary(tokens, list(stops))


def _kind_of(names: Mapping[str, int]) -> VocabType:
    """How a tokenizer's own token names represent bytes. Decided by the names, as xgrammar does."""
    if sum(f"<0x{byte:02X}>" in names for byte in range(256)) >= 128:
        return VocabType.BYTE_FALLBACK
    from tokenfst.tokenizers.vocabulary.encoding import byte_level_alphabet

    known = sum(letter in names for letter in byte_level_alphabet())
    return VocabType.BYTE_LEVEL if known >= 128 else VocabType.RAW


def _begins_with_space(tokenizer: Any, kind: VocabType) -> bool:
    """Whether a tokenizer puts a space before a text."""
    try:
        ids = tokenizer.encode("a", add_special_tokens=False)
        first = tokenizer.convert_ids_to_tokens(ids)[0] if isinstance(ids, list) else ids.tokens[0]
    except (AttributeError, TypeError, ValueError, IndexError):
        return False
    return bool(first.startswith("▁" if kind is VocabType.BYTE_FALLBACK else "Ġ"))


def _spelled(token: str | bytes, kind: VocabType) -> bytes:
    if isinstance(token, bytes):
        return token
    if kind is VocabType.BYTE_LEVEL:
        from tokenfst.tokenizers.adapters.decoder_chain import decoded_forms

        return decoded_forms([token], {"type": "ByteLevel"})[0][0]
    if kind is VocabType.BYTE_FALLBACK:
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            if not set(token[3:5]) <= set(string.hexdigits):
                raise GrammarError(
                    f"TokenizerInfo: the token {token!r} of a vocabulary with VocabType.BYTE_FALLBACK names no byte: "
                    "write two hexadecimal digits, or give the vocabulary's tokens as bytes"
                )
            return bytes.fromhex(token[3:5])
        return token.replace("▁", " ").encode()
    return token.encode()
