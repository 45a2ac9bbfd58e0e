r"""``pack:`` files: a vocabulary as a process wants it, read in a tenth of the time that a tokenizer's own file takes.

    tokenfst vocabulary pack 1\n     magic and version
    64 hexadecimal digits, \n        SHA-256 of everything behind them
    8 bytes, little-endian           the length of the header
    header                           JSON in UTF-8, see ``_KEYS``
    tables                           the sizes of all tokens, 4 bytes each, and their bytes; the same of initial forms

Numbers are little-endian. ``fingerprint`` is that of the vocabulary, and compared with what was read: a pack of one
vocabulary is never taken for another. Nothing in a pack is executed. The same vocabulary gives the same bytes.

Cost: linear in the bytes of all tokens; half of it is the SHA-256 of the file and of the fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tokenfst.errors import VocabularyError
from tokenfst.tokenizers.vocabulary.tables import pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_MAGIC = b"tokenfst vocabulary pack 1\n"
_DIGEST = slice(len(_MAGIC), len(_MAGIC) + 64)
_REST = _DIGEST.stop + 1
_KEYS: dict[str, type | tuple[type, ...]] = {
    "eos_token_ids": list,
    "fingerprint": str,
    "initial": bool,
    "name": str,
    "size": int,
    "special_tokens": dict,
    "split_pattern": (str, type(None)),
    "start_absorbs": bool,
    "symbols": (list, type(None)),
}


def write_pack(vocabulary: Vocabulary, path: str | PathLike[str]) -> None:
    """Write a file that ``read_pack`` reads back as an equal vocabulary, atomically."""
    initial_too = vocabulary.initial_tokens is not None
    header = {
        "eos_token_ids": list(vocabulary.eos_token_ids),
        "fingerprint": vocabulary.fingerprint,
        "initial": initial_too,
        "name": vocabulary.name,
        "size": len(vocabulary),
        "special_tokens": dict(vocabulary.special_tokens),
        "split_pattern": vocabulary.split_pattern,
        "start_absorbs": vocabulary.start_absorbs,
        "symbols": None if vocabulary.symbols is None else list(vocabulary.symbols),
    }
    text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    parts = [len(text).to_bytes(8, "little"), text]
    for initial in (False, True)[: 1 + initial_too]:
        data, offsets = vocabulary.packed(initial=initial)
        parts += [np.diff(offsets).astype("<u4").tobytes(), data]
    rest = b"".join(parts)
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        temporary.write_bytes(_MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
        temporary.replace(target)
    except OSError as error:
        raise VocabularyError(f"cannot write {path}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def read_pack(
    path: str | PathLike[str], *, size: int | None = None, eos_token_id: int | Sequence[int] | None = None
) -> Vocabulary:
    """The vocabulary in a ``pack:`` file; ``size`` and ``eos_token_id`` override its own.

    Raises ``VocabularyError`` for any file that is not a complete and unmodified one.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise VocabularyError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not data.startswith(_MAGIC):
        raise VocabularyError(
            f"{path} is no vocabulary pack of this release: make it with `tokenfst vocab SPEC --pack FILE`"
        )
    view = memoryview(data)[_REST:]
    if hashlib.sha256(view).hexdigest().encode() != data[_DIGEST]:
        raise _damaged(path, "its content does not have the digest in it")
    length = int.from_bytes(view[:8], "little")
    header = _header(path, bytes(view[8 : 8 + length]))
    tables = _tables(path, bytes(view[8 + length :]), header["size"], 1 + header["initial"])
    try:
        found = Vocabulary(
            next(tables),
            header["eos_token_ids"],
            header["special_tokens"],
            initial_tokens=next(tables) if header["initial"] else None,
            start_absorbs=header["start_absorbs"],
            symbols=header["symbols"],
            split_pattern=header["split_pattern"],
            name=header["name"],
        )
    except (VocabularyError, TypeError) as error:
        raise _damaged(path, str(error)) from error
    if found.fingerprint != header["fingerprint"]:
        raise _damaged(path, "it holds another vocabulary than its fingerprint says")
    if size is None and eos_token_id is None:
        return found
    initial = found.initial_tokens
    try:
        return Vocabulary(
            pad_tokens(list(found.tokens), size),
            found.eos_token_ids if eos_token_id is None else eos_token_id,
            found.special_tokens,
            initial_tokens=None if initial is None else pad_tokens(list(initial), size),
            start_absorbs=found.start_absorbs,
            symbols=found.symbols and [*found.symbols, *[None] * ((size or 0) - len(found))],
            split_pattern=found.split_pattern,
            name=found.name,
        )
    except VocabularyError as error:
        raise VocabularyError(f"{path}: {error}") from error


def _header(path: object, text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its header is not JSON ({error})") from None
    if not isinstance(header, dict) or set(header) != set(_KEYS):
        raise _damaged(path, f"its header does not have the keys {sorted(_KEYS)}")
    for key, kind in _KEYS.items():
        if not isinstance(header[key], kind):
            raise _damaged(path, f"{key!r} is {header[key]!r:.60}")
    return header


def _tables(path: object, data: bytes, size: int, count: int) -> Iterator[list[bytes]]:
    """The tables that stand there one after the other, all of the file."""
    place = 0
    for last in range(count - 1, -1, -1):
        if size < 1 or size > (len(data) - place) // 4:
            raise _damaged(path, f"{size:,} tokens do not fit into it")
        sizes = np.frombuffer(data, "<u4", size, place)
        ends = np.cumsum(sizes, dtype=np.int64) + place + 4 * size
        if ends[-1] > len(data) or (last == 0 and ends[-1] < len(data)):
            raise _damaged(path, "the sizes of its tokens are not those of its bytes")
        begins = ends - sizes
        yield [data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        place = int(ends[-1])


def _damaged(path: object, what: str) -> VocabularyError:
    return VocabularyError(f"{path} is damaged or was not made by tokenfst: {what}. Make it again")
