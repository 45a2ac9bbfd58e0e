r"""``pack:`` files: a vocabulary in a form that loads quickly. Tekken's pack is read in about a quarter of the
time that its tokenizer's file takes (docs/research/vocabularies.md).

    tokenfst vocabulary pack 2\n     magic and version
    64 hexadecimal digits, \n        SHA-256 of everything after them
    8 bytes, little-endian           the length of the header
    header                           JSON in UTF-8, see ``_KEYS``
    tables                           the sizes of all tokens, 4 bytes each, and their bytes; then the same for their
                                     initial forms, if they differ
    tries                            ``trie_tables`` of the native core, each padded with zeros to a multiple of 16
                                     bytes; zeros before the first one align it

Numbers are little-endian. ``fingerprint`` is that of the vocabulary, and is compared with the data: a pack of one
vocabulary is never taken for another. Nothing in a pack is executed. The same vocabulary gives the same bytes.

The file is mapped. The tries, which are most of it, are used in place, so all processes of a computer that map one
pack share them in memory. The core first compares them with the tokens; if they do not match, it builds its own. A
program that writes to a mapped file, or truncates it, can end the processes that map it. ``write_pack`` never does
so: it replaces the old file by a new one. Version 1 has no tries (no ``tries`` in the header), and can still be
read.

Cost: linear in the bytes of the file; half of it is the SHA-256 of the file and of the fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tokenfst.common.plurals import counted
from tokenfst.errors import VocabularyError
from tokenfst.tokenizers.adapters.token_file import write_whole
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding
from tokenfst.tokenizers.vocabulary.tables import pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_MAGIC, _WITHOUT_TRIES = b"tokenfst vocabulary pack 2\n", b"tokenfst vocabulary pack 1\n"
_ALIGNED = 16
_DIGEST = slice(len(_MAGIC), len(_MAGIC) + 65)
"""Including the newline."""
_REST = _DIGEST.stop
_KEYS: dict[str, type | tuple[type, ...]] = {
    "eos_token_ids": list,
    "fingerprint": str,
    "initial": bool,
    "name": str,
    "size": int,
    "special_tokens": dict,
    "split_pattern": (str, dict, type(None)),
    "start_absorbs": bool,
    "symbols": (list, type(None)),
    "tries": list,
}
_KEYS_WITHOUT_TRIES = {key: kind for key, kind in _KEYS.items() if key != "tries"}


def write_pack(vocabulary: Vocabulary, path: str | PathLike[str], *, tries: bool = True) -> None:
    """Write a file that ``read_pack`` reads back as an equal vocabulary, atomically."""
    write_whole(path, pack(vocabulary, tries=tries))


def is_pack(path: Path) -> bool:
    """Whether a file begins like a pack. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) in (_MAGIC, _WITHOUT_TRIES)


def pack(vocabulary: Vocabulary, *, tries: bool = True) -> bytes:
    """The bytes of a ``pack:`` file. Without ``tries`` it is smaller, and readers build the tries.

    A pack has no merges. The split pattern is left out if the merges that ``vocabulary`` lists are not those by ids.
    """
    # Here, because reading packs must be quick.
    from tokenfst.tokenizers.segmentation.tokenizer import encoding_by_ids

    encoding = encoding_by_ids(vocabulary)
    kinds = (False, True)[: 1 + (vocabulary.initial_tokens is not None)]
    tables: list[bytes] = []
    if tries and sys.byteorder == "little":  # the byte order of the core's memory
        tables = [vocabulary.native.trie_tables(initial) for initial in kinds]
    header = {
        "eos_token_ids": list(vocabulary.eos_token_ids),
        "fingerprint": vocabulary.fingerprint,
        "initial": len(kinds) == 2,
        "name": vocabulary.name,
        "size": len(vocabulary),
        "special_tokens": dict(vocabulary.special_tokens),
        "split_pattern": None if encoding is None else encoding.to_document(),
        "start_absorbs": vocabulary.start_absorbs,
        "symbols": None if vocabulary.symbols is None else list(vocabulary.symbols),
        "tries": [len(each) for each in tables],
    }
    text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    parts = [len(text).to_bytes(8, "little"), text]
    for initial in kinds:
        data, offsets = vocabulary.packed(initial=initial)
        parts += [np.diff(offsets).astype("<u4").tobytes(), data]
    parts.append(bytes(-(_REST + sum(map(len, parts))) % _ALIGNED))
    for each in tables:
        parts += [each, bytes(-len(each) % _ALIGNED)]
    rest = b"".join(parts)
    return _MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def read_pack(
    path: str | PathLike[str], *, size: int | None = None, eos_token_id: int | Sequence[int] | None = None
) -> Vocabulary:
    """The vocabulary in a ``pack:`` file, which is mapped; ``size`` and ``eos_token_id`` override its own.

    Raises ``VocabularyError`` for any file that is not a complete, unmodified pack.
    """
    try:
        with Path(path).open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise _damaged(path, "it is empty")
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise VocabularyError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    found = unpack(path, data)
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
            split_pattern=found.encoding,
            name=found.name,
        ).with_tries(found.tries)
    except VocabularyError as error:
        raise VocabularyError(f"{path}: {error}") from error


def unpack(path: object, data: bytes | memoryview) -> Vocabulary:
    """The vocabulary in the bytes of a pack. It keeps a reference to ``data``. ``path`` is for messages. Raises
    ``VocabularyError``.
    """
    whole = memoryview(data)
    magic = whole[: len(_MAGIC)]
    if magic not in (_MAGIC, _WITHOUT_TRIES):
        raise VocabularyError(
            f"{path} is not a vocabulary pack of this release: make it with `tokenfst vocab SPEC --pack FILE`"
        )
    view = whole[_REST:]
    if hashlib.sha256(view).hexdigest().encode() + b"\n" != whole[_DIGEST]:
        raise _damaged(path, "its content does not match its digest")
    length = int.from_bytes(view[:8], "little")
    header = _header(path, bytes(view[8 : 8 + length]), _KEYS if magic == _MAGIC else _KEYS_WITHOUT_TRIES)
    sizes = header.get("tries", [])
    if len(sizes) > 1 + header["initial"] or not all(type(each) is int and each >= 0 for each in sizes):
        raise _damaged(path, f"'tries' is {sizes!r:.60}")
    steps = [each + -each % _ALIGNED for each in sizes]
    begin = len(whole) - sum(steps)
    if begin < _REST + 8 + length or (magic == _MAGIC and begin % _ALIGNED):
        raise _damaged(path, "the sizes of its tries are not those of its bytes")
    tables = _tables(
        path,
        bytes(whole[_REST + 8 + length : begin]),
        header["size"],
        1 + header["initial"],
        spare=_ALIGNED if magic == _MAGIC else 1,
    )
    tries = []
    for each, step in zip(sizes, steps, strict=True):
        tries.append(np.frombuffer(whole[begin : begin + each], np.uint8))
        begin += step
    pattern = header["split_pattern"]
    try:
        found = Vocabulary(
            next(tables),
            header["eos_token_ids"],
            header["special_tokens"],
            initial_tokens=next(tables) if header["initial"] else None,
            start_absorbs=header["start_absorbs"],
            symbols=header["symbols"],
            split_pattern=None if pattern is None else BytePairEncoding.of_document(pattern),
            name=header["name"],
        )
    except (VocabularyError, TypeError) as error:
        raise _damaged(path, str(error)) from error
    if found.fingerprint != header["fingerprint"]:
        raise _damaged(path, "it holds another vocabulary than its fingerprint says")
    return found.with_tries(tries) if sys.byteorder == "little" else found


def _header(path: object, text: bytes, keys: Mapping[str, Any]) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its header is not JSON ({error})") from None
    if not isinstance(header, dict) or set(header) != set(keys):
        raise _damaged(path, f"its header does not have the keys {sorted(keys)}")
    for key, kind in keys.items():
        if not isinstance(header[key], kind):
            raise _damaged(path, f"{key!r} is {header[key]!r:.60}")
    return header


def _tables(path: object, data: bytes, size: int, count: int, *, spare: int) -> Iterator[list[bytes]]:
    """Consecutive tables, which are all of the data except fewer than ``spare`` zero bytes."""
    place = 0
    for last in range(count - 1, -1, -1):
        if size < 1 or size > (len(data) - place) // 4:
            raise _damaged(path, f"{counted(size, 'token')} do not fit into it")
        sizes = np.frombuffer(data, "<u4", size, place)
        ends = np.cumsum(sizes, dtype=np.int64) + place + 4 * size
        after = len(data) - int(ends[-1])
        if after < 0 or (last == 0 and (after >= spare or any(data[len(data) - after :]))):
            raise _damaged(path, "the sizes of its tokens are not those of its bytes")
        begins = ends - sizes
        yield [data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        place = int(ends[-1])


def _damaged(path: object, what: str) -> VocabularyError:
    return VocabularyError(f"{path} is damaged or was not made by tokenfst: {what}. Make it again")
