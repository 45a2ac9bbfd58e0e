"""Vocabularies of SentencePiece models, read from the ``.model`` file itself.

Description. A model is a protocol-buffer message: pieces with types, and the specifications of the trainer
and the normalizer. The few fields that decide decoding are read here directly, so neither sentencepiece nor
protobuf is needed. What a piece writes (``SentencePieceProcessor::Decode``):

=========  =================================================================================================
byte       that byte, also at the start of the text
control    nothing: special
unknown    the model's ``unk_surface`` (``" ⁇ "`` unless it says otherwise)
any other  its text, with U+2581 as a space. At the start of the text, one U+2581 at the front is dropped if
           the normalizer has ``add_dummy_prefix`` or ``remove_extra_whitespaces``. With the latter, a piece
           that wrote nothing leaves the text at its start (``start_absorbs``)
=========  =================================================================================================

The reference is ``SentencePieceProcessor.decode(ids)``. For byte pieces that are not UTF-8 it writes U+FFFD; the
vocabulary has the bytes themselves.

End tokens. ``eos_token_id`` if given, else the model's own ``eos_piece`` if that is a control piece, as in
``eos_id()``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path

from tokenfst.errors import UnknownTokenizerError, VocabularyError
from tokenfst.tokenizers.vocabulary.tables import pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_SPACE = "▁".encode()
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_BYTE_PIECE = re.compile(rb"<0x([0-9A-F]{2})>")


def _opened(model: object) -> tuple[str, bytes]:
    """The name of a model for messages, and its bytes."""
    if isinstance(model, str | PathLike):
        try:
            return f"spm:{fspath(model)}", Path(model).read_bytes()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "no file can have this name"
            raise VocabularyError(f"cannot read {fspath(model)}: {why}") from error
    if isinstance(model, bytes):
        return "sentencepiece", model
    if hasattr(model, "serialized_model_proto"):
        return "sentencepiece", model.serialized_model_proto()
    raise UnknownTokenizerError(
        f"a {type(model).__qualname__} is neither a path nor a sentencepiece.SentencePieceProcessor"
    )


def from_sentencepiece(
    model: object, *, size: int | None = None, eos_token_id: int | Sequence[int] | None = None
) -> Vocabulary:
    """The vocabulary of a SentencePiece model.

    ``model``: the path of a model file, its bytes, or a ``sentencepiece.SentencePieceProcessor``. ``size``:
    the width of the model's logits. Linear in the size of the model. Raises ``VocabularyError``,
    ``UnknownTokenizerError``.
    """
    name, data = _opened(model)
    try:
        pieces, trainer, normalizer, denormalizer = _parse(data)
    except (ValueError, IndexError) as error:
        raise VocabularyError(f"{name} is not a SentencePiece model: {error}") from error
    if denormalizer.get(2):
        raise UnknownTokenizerError(f"{name} has a denormalizer, which rewrites the text after decoding")

    absorbs = normalizer.get(4, 1) != 0
    strips = absorbs or normalizer.get(3, 1) != 0
    unknown = _text(trainer.get(44, " ⁇ ".encode()))
    later: list[bytes] = []
    first: list[bytes] = []
    special: dict[str, int] = {}
    for token, (piece, kind) in enumerate(pieces):
        inside = start = b""
        if kind == _BYTE:
            found = _BYTE_PIECE.fullmatch(piece)
            if found is None:
                raise UnknownTokenizerError(f"{name}: piece {token} has the type BYTE and the text {piece!r}")
            inside = start = bytes([int(found[1], 16)])
        elif kind == _CONTROL:
            special.setdefault(piece.decode("utf-8", "replace"), token)
        elif kind == _UNKNOWN:
            inside = start = unknown
        elif kind in (_NORMAL, _USER_DEFINED, _UNUSED):
            inside = piece.replace(_SPACE, b" ")
            start = (piece.removeprefix(_SPACE) if strips else piece).replace(_SPACE, b" ")
        else:
            raise UnknownTokenizerError(f"{name}: piece {token} ({piece!r}) has the unknown type {kind}")
        later.append(inside)
        first.append(start)
    if eos_token_id is None:
        eos_piece = _text(trainer.get(47, b"</s>")).decode("utf-8", "replace")
        if eos_piece not in special:
            raise VocabularyError(
                f"{name} has no control piece {eos_piece!r} as its end token: pass eos_token_id"
            )
        eos_token_id = special[eos_piece]
    return Vocabulary(
        pad_tokens(later, size),
        eos_token_id,
        special,
        initial_tokens=pad_tokens(first, size),
        start_absorbs=absorbs,
        name=name,
    )


_Message = dict[int, int | bytes]


def _parse(data: bytes) -> tuple[list[tuple[bytes, int]], _Message, _Message, _Message]:
    """(pieces with their types, trainer, normalizer, denormalizer specifications) of a ModelProto."""
    pieces: list[tuple[bytes, int]] = []
    parts: dict[int, _Message] = {2: {}, 3: {}, 5: {}}
    for field, value in _fields(data):
        if field == 1:
            message = dict(_fields(_text(value)))
            kind = message.get(3, _NORMAL)
            if not isinstance(kind, int):
                raise ValueError("a piece's type is not a number")
            pieces.append((_text(message.get(1, b"")), kind))
        elif field in parts:
            parts[field].update(_fields(_text(value)))
    if not pieces:
        raise ValueError("it has no pieces")
    return pieces, parts[2], parts[3], parts[5]


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol-buffer message in order: number, and value as int or bytes."""
    place, end = 0, len(data)
    while place < end:
        key, place = _varint(data, place)
        wire = key & 7
        if wire == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        if wire == 2:
            length, place = _varint(data, place)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {place}")
        if place + length > end:
            raise ValueError(f"a field at byte {place} is longer than what is left")
        yield key >> 3, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise ValueError(f"a number at byte {place} does not end")


def _text(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number where text is expected")
    return value
