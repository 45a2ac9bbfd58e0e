"""``tokens:`` files: a vocabulary as one small JSON object, for tokenizers that no adapter knows.

    {
      "tokens": ["a", "é", {"hex": "ff"}, {"bytes": [226, 129]}, ""],
      "eos_token_id": 4,
      "special_tokens": {"<end>": 4},
      "initial_tokens": ["A", "é", {"hex": "ff"}, {"bytes": [226, 129]}, ""],
      "start_absorbs": false,
      "name": "toy"
    }

``tokens`` and ``eos_token_id`` (an id or a list) are required. An entry of ``tokens`` is a string, which stands for its
bytes in UTF-8, or an object with ``hex`` or ``bytes``; the empty string marks a special token. ``special_tokens`` is a
mapping from names to ids or a list of ids. ``initial_tokens``, ``start_absorbs``, ``symbols`` (names, or null)
and ``split_pattern`` are those of ``Vocabulary``. Other keys are refused.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from tokenfst.errors import VocabularyError
from tokenfst.tokenizers.segmentation.tokenizer import encoding_by_ids
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding
from tokenfst.tokenizers.vocabulary.tables import pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_KEYS = {
    "tokens",
    "eos_token_id",
    "special_tokens",
    "initial_tokens",
    "start_absorbs",
    "symbols",
    "split_pattern",
    "name",
}


def read_token_file(
    path: str | PathLike[str], *, size: int | None = None, eos_token_id: int | Sequence[int] | None = None
) -> Vocabulary:
    """The vocabulary in a ``tokens:`` file; ``size`` and ``eos_token_id`` override its own.

    Raises ``VocabularyError``, whose message names the file and the faulty entry.
    """
    document = read_json_object(path)
    unknown = sorted(set(document) - _KEYS)
    if unknown:
        raise VocabularyError(f"{path}: unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
    for key in ("tokens", "eos_token_id"):
        if key not in document:
            raise VocabularyError(f"{path}: the key {key!r} is missing")
    special = document.get("special_tokens", ())
    if not isinstance(special, dict | list | tuple):
        raise VocabularyError(f"{path}: special_tokens must be an object or a list, not {special!r}")
    eos = document["eos_token_id"]
    if not isinstance(eos, int | list):
        raise VocabularyError(f"{path}: eos_token_id must be an id or a list of ids, not {eos!r}")
    initial = document.get("initial_tokens")
    symbols = document.get("symbols")
    if not _are_symbols(symbols):
        raise VocabularyError(f"{path}: symbols must be a list of names, or null for special tokens")
    pattern = document.get("split_pattern")
    try:
        return Vocabulary(
            pad_tokens(_table(document["tokens"], "tokens"), size),
            eos if eos_token_id is None else eos_token_id,
            special,
            initial_tokens=None if initial is None else pad_tokens(_table(initial, "initial_tokens"), size),
            start_absorbs=document.get("start_absorbs", False) is True,
            symbols=symbols and symbols + [None] * ((size or 0) - len(symbols)),
            split_pattern=None if pattern is None else BytePairEncoding.of_document(pattern),
            name=str(document.get("name", "")) or f"tokens:{path}",
        )
    except VocabularyError as error:
        raise VocabularyError(f"{path}: {error}") from error


def write_token_file(vocabulary: Vocabulary, path: str | PathLike[str]) -> None:
    """Write a file that ``read_token_file`` reads back as an equal vocabulary, atomically."""
    names = vocabulary.special_tokens
    document: dict[str, Any] = {
        "name": vocabulary.name,
        "eos_token_id": list(vocabulary.eos_token_ids),
        "special_tokens": dict(names),
        "tokens": [_entry(data) for data in vocabulary.tokens],
    }
    if vocabulary.initial_tokens is not None:
        document["initial_tokens"] = [_entry(data) for data in vocabulary.initial_tokens]
        document["start_absorbs"] = vocabulary.start_absorbs
    if vocabulary.symbols is not None:
        document["symbols"] = list(vocabulary.symbols)
    encoding = encoding_by_ids(vocabulary)
    if encoding is not None:
        document["split_pattern"] = encoding.to_document()
    write_whole(path, json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())


def write_whole(path: str | PathLike[str], data: bytes) -> None:
    """Write a file under a temporary name, and rename it. Raises ``VocabularyError`` if that fails; what was there
    before is then unchanged.
    """
    target = Path(os.path.realpath(path))
    if os.path.lexists(target) and not target.is_file():
        raise VocabularyError(f"cannot write {Path(path)}: it exists and is not a file. Give another name")
    temporary = target.with_name(f".{secrets.token_hex(8)}")
    try:
        temporary.write_bytes(data)
        temporary.replace(target)
    except OSError as error:
        raise VocabularyError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):  # the folder may be the reason
            temporary.unlink(missing_ok=True)


def read_json_object(path: str | PathLike[str]) -> dict[str, Any]:
    """The JSON object in a file. Raises ``VocabularyError`` if the file cannot be read or has no JSON object."""
    try:
        document = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise VocabularyError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path} is not a JSON file: {error}") from error
    if not isinstance(document, dict):
        raise VocabularyError(f"{path} holds a JSON {type(document).__name__} where an object is needed")
    return document


def _table(entries: Any, what: str) -> list[bytes]:
    if not isinstance(entries, list):
        raise VocabularyError(f"{what} must be a list, not {type(entries).__name__}")
    return [_bytes(entry, what, index) for index, entry in enumerate(entries)]


def _are_symbols(symbols: Any) -> bool:
    names = [] if symbols is None else symbols
    return isinstance(names, list) and all(name is None or isinstance(name, str) for name in names)


def _bytes(entry: Any, what: str, index: int) -> bytes:
    try:
        if isinstance(entry, str):
            return entry.encode()
        if isinstance(entry, dict) and len(entry) == 1:
            if "hex" in entry:
                return bytes.fromhex(entry["hex"])
            if isinstance(entry.get("bytes"), list):
                return bytes(entry["bytes"])
    except (ValueError, TypeError) as error:
        raise VocabularyError(f"{what}[{index}] is {entry!r}: {error}") from error
    raise VocabularyError(
        f'{what}[{index}] is {entry!r}: write a string, {{"hex": "..."}} or {{"bytes": [...]}}'
    )


def _entry(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}
