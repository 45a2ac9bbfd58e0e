"""The layout of artifacts and the rules of docs/serving/format.md, with one check and one error for each.

All checks here use the header only. The sizes in a header are compared with the size of the file before anything is
allocated or read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.common.json_objects import RepeatedNameError, unique_names
from tokenfst.common.plurals import counted
from tokenfst.decoding.artifacts.tensors import (
    LEARNED_TENSORS,
    MARKS,
    PROGRAM_TENSORS,
    STACK_TENSORS,
    TENSORS,
    TOKEN_COLUMNS,
    Tensor,
)
from tokenfst.errors import ArtifactCorruptError, ArtifactError, ArtifactVersionError
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding

FORMAT = "tokenfst.token_automaton"
"""The value of ``format`` in the metadata of every artifact, whatever its version."""

VERSION = 1
"""The version for automata over bytes only."""

TOKENS_VERSION = 2
"""The version for automata that constrain tokens."""

CANONICAL_VERSION = 3
"""The version for canonical tokenizations."""

PROGRAM_VERSION = 4
"""The version for programs, without tables."""

LEARNED_VERSION = 5
"""The version for programs with learned data. All five versions can be read."""

LEARNED_BY = "learned_by"
"""The additional metadata of version 5: the release of this package that produced the learned data."""

SPLIT_PATTERN = "split_pattern"
"""The additional metadata of version 3, and of versions 4 and 5 if only canonical tokenizations are accepted."""

ADDED_TOKENS, NORMAL_FORM = "vocabulary_added_tokens", "normal_form"
"""The additional metadata beside a split pattern if the tokenizer does not encode every text as it is."""

TOKEN_NAMES = "token_names"
"""The additional metadata of versions 4 and 5 if the program constrains tokens."""

MAX_HEADER = 16 << 20
"""Maximum length of the header in bytes."""

MAX_VOCABULARY = (1 << 32) - 1
"""Maximum number of tokens, and the largest value of any index."""


def version_of(names: Container[str], *, canonical: bool = False) -> int:
    """The format version of a file with the tensors ``names``. ``canonical``: whether the file is for canonical
    tokenizations.
    """
    if "code" in names:
        return LEARNED_VERSION if LEARNED_TENSORS[0].name in names else PROGRAM_VERSION
    if canonical:
        return CANONICAL_VERSION
    return TOKENS_VERSION if TOKEN_COLUMNS.name in names else VERSION


def tensors(names: Container[str]) -> tuple[Tensor, ...]:
    """The tensors of the format that a file with the tensors ``names`` has, in file order."""
    if "code" in names:
        if LEARNED_TENSORS[0].name not in names:
            return PROGRAM_TENSORS
        place = next(number for number, tensor in enumerate(PROGRAM_TENSORS) if tensor.name == "lexicons")
        return (*PROGRAM_TENSORS[:place], *LEARNED_TENSORS, *PROGRAM_TENSORS[place:])
    found = list(TENSORS)
    if TOKEN_COLUMNS.name in names:
        place = next(number for number, tensor in enumerate(found) if tensor.name == "worst")
        found.insert(place, TOKEN_COLUMNS)
    if any(tensor.name in names for tensor in STACK_TENSORS):
        place = next(number for number, tensor in enumerate(found) if tensor.name == "table")
        found[place:place] = STACK_TENSORS
    if MARKS.name in names:
        place = next(number for number, tensor in enumerate(found) if tensor.name == "mask")
        found.insert(place, MARKS)
    return tuple(found)


DTYPES: dict[str, npt.DTypeLike] = {"U32": np.dtype("<u4"), "U8": np.dtype("u1")}
_ITEM_SIZES = {"U32": 4, "U8": 1}

METADATA = (
    "digest",
    "format",
    "inner_start",
    "source",
    "start",
    "version",
    "vocabulary_fingerprint",
    "vocabulary_size",
)

STARTS = ("start", "inner_start")
"""The metadata fields that are states; versions 4 and 5 do not have them."""

OPENING = b'{"__metadata__":{"digest":"'
"""The first bytes of every header; 64 hexadecimal digits of SHA-256 follow, and then the data that the digest
covers.
"""

DIGEST = slice(8 + len(OPENING), 8 + len(OPENING) + 64)
"""The position of the digest in the file."""

_NFC = "NFC"
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_HEX = re.compile(r"[0-9a-f]{64}")


def parse_header(path: object, data: bytes) -> dict[str, Any]:
    """The JSON object of a header; duplicate keys are rejected."""
    try:
        header = json.loads(data.decode("utf-8"), object_pairs_hook=unique_names)
    except UnicodeDecodeError as error:
        raise corrupt(path, f"its header is not UTF-8 at byte {8 + error.start}") from None
    except RecursionError:
        raise corrupt(path, "its header is nested too deeply") from None
    except RepeatedNameError as error:
        raise corrupt(path, f"its header has the key {shown(error.name)} twice in one object") from None
    except ValueError as error:
        raise corrupt(path, f"its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise corrupt(path, f"its header is {shown(header)}, not a JSON object")
    return header


def check_format(path: object, header: dict[str, Any]) -> None:
    """Check that a header is that of an artifact of a known version. Uses only fields that later versions keep.

    Raises ``ArtifactError`` for another format and ``ArtifactVersionError`` for another version.
    """
    metadata = header.get("__metadata__", {})
    name = metadata.get("format") if isinstance(metadata, dict) else None
    if name != FORMAT:
        found = "its metadata name no format" if name is None else f"its format is {shown(name)}"
        raise ArtifactError(
            f"{path} is a .safetensors file but not an artifact of tokenfst: {found}, not {FORMAT!r}"
        )
    version = metadata.get("version")
    if version not in map(str, range(VERSION, LEARNED_VERSION + 1)):
        raise ArtifactVersionError(
            f"{path} is written in version {shown(version)} of the artifact format, and this release of "
            f"tokenfst reads versions {VERSION} to {LEARNED_VERSION} only: compile the constraint again with this "
            "release"
        )


def check_header(path: object, header: dict[str, Any], data_size: int) -> None:
    """Check all values of a header, and that the tensors are consistent with each other and with ``data_size`` bytes of
    data.

    Raises ``ArtifactCorruptError``. The header must have passed ``check_format``.
    """
    metadata = header["__metadata__"]
    canonical = metadata["version"] == str(CANONICAL_VERSION)
    program = metadata["version"] in (str(PROGRAM_VERSION), str(LEARNED_VERSION))
    changes = [key for key in (ADDED_TOKENS, NORMAL_FORM) if key in metadata and SPLIT_PATTERN in metadata]
    wanted = [*METADATA, SPLIT_PATTERN, *changes] if canonical else METADATA
    if program:
        beside = (key for key in (SPLIT_PATTERN, *changes, TOKEN_NAMES) if key in metadata)
        if metadata["version"] == str(LEARNED_VERSION):
            wanted = [*wanted, LEARNED_BY]
        wanted = [*(key for key in wanted if key not in STARTS), *beside]
    _check_keys(path, "its metadata", metadata, wanted)
    expected = tensors(() if canonical else header)
    if metadata["version"] != (found := str(version_of(header, canonical=canonical))):
        raise corrupt(
            path, f"it says version {metadata['version']}, and its tensors are those of version {found}"
        )
    _check_keys(path, "its header", header, ["__metadata__", *(tensor.name for tensor in expected)])
    _check_metadata(path, metadata)
    sizes = {"words": (int(metadata["vocabulary_size"]) + 31) // 32}
    place = 0
    for tensor in expected:
        place = _check_tensor(path, tensor, header[tensor.name], sizes, place, data_size)
    if place != data_size:
        raise corrupt(
            path, f"the data goes on for {counted(data_size - place, 'byte')} after the last tensor"
        )
    for key in () if program else STARTS:
        if int(metadata[key]) >= sizes["states"]:
            count = counted(sizes["states"], "state")
            raise corrupt(path, f"{key!r} is state {metadata[key]}, and the automaton has {count}")


def _check_metadata(path: object, metadata: dict[str, Any]) -> None:
    """Check the values of the metadata, each by itself."""
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise corrupt(path, f"the metadata {key!r} is not a string but {shown(value)}")
    for key in ("vocabulary_size", *(key for key in STARTS if key in metadata)):
        if not _NUMBER.fullmatch(metadata[key]):
            raise corrupt(path, f"the metadata {key!r} is {shown(metadata[key])}, not a number")
    if not 1 <= int(metadata["vocabulary_size"]) <= MAX_VOCABULARY:
        raise corrupt(path, f"a vocabulary cannot have {metadata['vocabulary_size']} tokens")
    if not _HEX.fullmatch(metadata["vocabulary_fingerprint"]):
        found = shown(metadata["vocabulary_fingerprint"])
        raise corrupt(path, f"the vocabulary's fingerprint is {found}, not 64 hexadecimal digits")
    for key in ("source", SPLIT_PATTERN, ADDED_TOKENS, NORMAL_FORM, TOKEN_NAMES, LEARNED_BY):
        try:
            metadata.get(key, "").encode("utf-8")
        except UnicodeEncodeError as error:
            raise corrupt(path, f"its {key} has a lone surrogate at position {error.start}") from None
    encoding_of(path, metadata)


def metadata_of(encoding: BytePairEncoding | None) -> dict[str, str]:
    """The metadata of canonical tokenizations; none if all are accepted."""
    if encoding is None:
        return {}
    found = {SPLIT_PATTERN: encoding.split_pattern}
    if encoding.added:
        found[ADDED_TOKENS] = json.dumps(
            dict(sorted(encoding.added)), ensure_ascii=False, separators=(",", ":")
        )
    if encoding.is_nfc:
        found[NORMAL_FORM] = _NFC
    return found


def encoding_of(path: object, metadata: dict[str, str]) -> BytePairEncoding | None:
    """The encoding of which ``metadata_of`` wrote this. Raises ``ArtifactCorruptError``."""
    if SPLIT_PATTERN not in metadata:
        return None
    form, texts = metadata.get(NORMAL_FORM), metadata.get(ADDED_TOKENS)
    if form not in (None, _NFC):
        raise corrupt(path, f"its {NORMAL_FORM} is {shown(form)}, not {_NFC}")
    try:
        added = {} if texts is None else json.loads(texts, object_pairs_hook=unique_names)
        encoding = BytePairEncoding.of_document(
            {"pattern": metadata[SPLIT_PATTERN], "added": added, "nfc": form is not None}
        )
    except (ValueError, RecursionError) as error:  # VocabularyError is a ValueError
        raise corrupt(
            path, f"its {ADDED_TOKENS} is {shown(texts)}, no JSON object of texts to ids: {error}"
        ) from None
    if metadata_of(encoding).get(ADDED_TOKENS) != texts:
        raise corrupt(path, f"its {ADDED_TOKENS} is {shown(texts)}, not as this format writes a JSON object")
    return encoding


def _check_tensor(
    path: object, tensor: Tensor, entry: Any, sizes: dict[str, int], place: int, data_size: int
) -> int:
    """Check one entry against the sizes known so far, which it adds to; returns where the tensor ends."""
    name, dtype, shape = tensor[:3]
    if not isinstance(entry, dict):
        raise corrupt(path, f"the entry of {name!r} is not an object but {shown(entry)}")
    _check_keys(path, f"the entry of {name!r}", entry, ["dtype", "shape", "data_offsets"])
    if entry["dtype"] != dtype:
        raise corrupt(path, f"{name!r} has the type {shown(entry['dtype'])}, not {dtype}")
    wanted = f"[{', '.join(map(str, shape))}]"
    if not _are_sizes(entry["shape"], len(shape)):
        raise corrupt(path, f"{name!r} has the shape {shown(entry['shape'])}, not {wanted}")
    for size, found in zip(shape, entry["shape"], strict=True):
        expected = size if isinstance(size, int) else _size(sizes, size, found)
        if found != expected:
            found = shown(entry["shape"])
            raise corrupt(path, f"{name!r} has the shape {found}, and in {wanted} {size} is {expected:,}")
    if not _are_sizes(entry["data_offsets"], 2):
        raise corrupt(
            path, f"{name!r} has the offsets {shown(entry['data_offsets'])}, not a begin and an end"
        )
    begin, end = entry["data_offsets"]
    if begin != place:
        relation = "leaves a gap after" if begin > place else "overlaps"
        raise corrupt(
            path, f"{name!r} begins at {begin:,} and {relation} the tensor before it, which ends at {place:,}"
        )
    length = prod(entry["shape"]) * _ITEM_SIZES[dtype]
    if end - begin != length:
        raise corrupt(path, f"{name!r} has {counted(end - begin, 'byte')}, and its shape needs {length:,}")
    if end > data_size:
        raise corrupt(path, f"it is cut off: {name!r} ends at {end:,}, and the data at {data_size:,}")
    return place + length


def _size(sizes: dict[str, int], name: str, found: int) -> int:
    """The size with this name; its first occurrence in a header defines it."""
    base = name.removesuffix(" + 1")
    extra = int(base != name)
    return sizes.setdefault(base, found - extra) + extra


def _check_keys(path: object, where: str, found: Iterable[str], expected: Iterable[str]) -> None:
    if missing := sorted(set(expected) - set(found)):
        raise corrupt(path, f"{where} lacks {missing[0]!r}")
    if unknown := sorted(set(found) - set(expected)):
        raise corrupt(path, f"{where} holds {shown(unknown[0])}, which the format does not have")


def _are_sizes(value: object, count: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == count
        and all(type(size) is int and 0 <= size < 1 << 63 for size in value)
    )


def shown(value: object) -> str:
    """A value from a file, shortened for a message."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def corrupt(path: object, what: str) -> ArtifactCorruptError:
    """The error for a violated rule."""
    return ArtifactCorruptError(
        f"{path} is damaged or was not made by tokenfst: {what}. Copy or compile it again"
    )
