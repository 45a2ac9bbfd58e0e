"""Artifacts: expanded token automata as ``.safetensors`` files (docs/serving/format.md is the specification).

``write`` lays the tables out as safetensors does. ``read`` reads the file at once and returns views of the buffer, so
no table is copied.

Invariant: the result of ``read`` has every tensor of the format, with its dtype, a consistent shape and a place inside
the file; and the content has the digest that the header names. The native core, which uses the indices, checks their
ranges.

Cost: one SHA-256 of the file, which dominates.

Rejected: memory-mapping the file. A mapping changes with the file: if it is truncated in place, the process dies
(SIGBUS), and the content may change after verification. Reading costs a tenth of the SHA-256; processes that are forked
later share the buffer.

Rejected: the safetensors library. Its writer orders the metadata by a hash map, so the bytes differ from process to
process; its reader accepts any tensors, so every check would be needed here anyway.

Rejected: a checksum instead of SHA-256. It takes half the time, but the digest also serves as a name of the content.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tokenfst.common.arguments import refuse
from tokenfst.common.plurals import counted
from tokenfst.decoding.artifacts import artifact_format as rules
from tokenfst.errors import ArtifactError, ArtifactVocabularyError
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class Artifact:
    """The contents of an artifact.

    ``arrays``: the tensors by name (read-only views; docs/serving/format.md has shapes and meanings), and the start
    states ``start`` and ``inner_start`` as ints; for a program (versions 4 and 5), its parts.
    ``vocabulary_fingerprint`` and ``vocabulary_size``: of the vocabulary for which it was compiled. ``source``: a
    readable description of the constraint. ``version``: of the format. ``digest``: SHA-256 of the content, in hex.
    ``size``: of the file, in bytes. ``encoding``: how the tokenizer makes tokens of a text, without its
    merges, if only canonical token sequences are accepted, else None.

    ``token_names``: for a program that constrains tokens, the names that it uses (JSON). ``learned_by``: the release
    whose automata produced the learned data (version 5).
    """

    arrays: dict[str, Any]
    vocabulary_fingerprint: str
    vocabulary_size: int
    source: str
    version: int
    digest: str
    size: int
    encoding: BytePairEncoding | None = None
    token_names: str | None = None
    learned_by: str | None = None

    @property
    def is_program(self) -> bool:
        """Whether the artifact contains a program, whose states and masks are computed on demand."""
        return self.version in (rules.PROGRAM_VERSION, rules.LEARNED_VERSION)


def check_vocabulary(found: Artifact, path: object, vocabulary: Vocabulary) -> None:
    """Raise ``ArtifactVocabularyError`` if an artifact was compiled for another vocabulary."""
    if (found.vocabulary_fingerprint, found.vocabulary_size) != (vocabulary.fingerprint, len(vocabulary)):
        raise ArtifactVocabularyError(
            f"{path} was compiled for the vocabulary {found.vocabulary_fingerprint[:12]} "
            f"({counted(found.vocabulary_size, 'token')}); this one is {vocabulary.fingerprint[:12]} "
            f"({counted(len(vocabulary), 'token')}). Load the vocabulary it was made with, or compile it again"
        )


def serialize(
    arrays: Mapping[str, Any],
    vocabulary_fingerprint: str,
    vocabulary_size: int,
    source: str,
    encoding: BytePairEncoding | None = None,
    token_names: str | None = None,
    learned_by: str | None = None,
) -> bytes:
    """The bytes of an artifact. The same input gives the same bytes, in every process and on every computer.

    ``arrays`` are those of an expanded automaton, or of a program, named as in ``Artifact.arrays``. Raises
    ``ArtifactError`` if they are inconsistent, or if ``source`` is too long for a header.
    """
    version = rules.version_of(arrays, canonical=encoding is not None)
    starts = {key: str(arrays[key]) for key in rules.STARTS if key in arrays}
    beside = {
        rules.LEARNED_BY: learned_by,
        rules.TOKEN_NAMES: token_names,
        **rules.metadata_of(encoding),
    }
    metadata = starts | {key: value for key, value in beside.items() if value is not None}
    header: dict[str, Any] = {
        "__metadata__": {
            "digest": "",
            "format": rules.FORMAT,
            # A lone surrogate has no UTF-8: it becomes its escape, which a pattern reads the same way.
            "source": source.encode("utf-8", "backslashreplace").decode("utf-8"),
            "version": str(version),
            "vocabulary_fingerprint": vocabulary_fingerprint,
            "vocabulary_size": str(vocabulary_size),
            **metadata,
        }
    }
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    parts: list[bytes] = []
    end = 0
    for name, dtype, *_ in rules.tensors(arrays):
        array = np.asarray(arrays[name])
        if array.dtype != rules.DTYPES[dtype]:
            raise ArtifactError(f"cannot write {name!r} of type {array.dtype}: an artifact has it as {dtype}")
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, end]}
        parts.append(array.tobytes())
    rules.check_header("the artifact to be written", header, end)

    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    length = len(text) + 64
    if length > rules.MAX_HEADER:
        raise ArtifactError(
            f"cannot write an artifact whose constraint has a source of {counted(len(source), 'character')}: the "
            f"header would be longer than {counted(rules.MAX_HEADER, 'byte')}. Give the language a shorter source"
        )
    rest = b"".join([text[len(rules.OPENING) :], *parts])
    digest = hashlib.sha256(rest).hexdigest().encode("ascii")
    return b"".join([length.to_bytes(8, "little"), rules.OPENING, digest, rest])


def write(
    path: str | PathLike[str],
    arrays: Mapping[str, Any],
    vocabulary_fingerprint: str,
    vocabulary_size: int,
    source: str,
    encoding: BytePairEncoding | None = None,
) -> None:
    """Write an artifact (see ``serialize``) as ``write_bytes`` does."""
    write_bytes(path, serialize(arrays, vocabulary_fingerprint, vocabulary_size, source, encoding))


def write_bytes(path: str | PathLike[str], data: bytes) -> None:
    """Write the bytes of an artifact atomically: ``path`` then names the complete new file, or still the old one.

    The bytes are written under a temporary name in the same folder, flushed to the disk and renamed. Raises
    ``ArtifactError`` if that fails; the temporary file is then removed.
    """
    if not isinstance(path, str | PathLike):
        refuse("TokenAutomaton.save", "path", path, "text or a path")
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            raise ArtifactError(f"{path} exists and is not a file: give the artifact another name")
        temporary = target.with_name(f".tokenfst-{secrets.token_hex(8)}.tmp")
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise ArtifactError(
            f"cannot write the artifact {path}: {_reason(error)}. What was there before is unchanged; check "
            "the folder, its permissions and the space left"
        ) from error


def read(path: str | PathLike[str]) -> Artifact:
    """Read an artifact into memory and check it against docs/serving/format.md, including its digest.

    Later changes of the file have no effect. Raises ``ArtifactVersionError`` for other versions of the format,
    ``ArtifactCorruptError`` if a rule is violated, and ``ArtifactError`` for a file that is not an artifact or cannot
    be read. O(size of the file).
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(9)
        length = _header_length(path, head, size)
        head += _whole(path, file, max(length - 1, 0))
        header = _checked_header(path, head, size)
        data = _whole(path, file, size - 8 - length)
    return _checked_content(path, header, memoryview(head), memoryview(data))


def parse(name: object, data: bytes | memoryview) -> Artifact:
    """An artifact from its bytes, checked as ``read`` checks a file. The arrays of the result are views of the bytes.
    ``name``: the artifact's name in errors.
    """
    view = memoryview(data)
    length = _header_length(name, bytes(view[:9]), len(view))
    head = bytes(view[: 8 + length])
    return _checked_content(
        name, _checked_header(name, head, len(view)), memoryview(head), view[8 + length :]
    )


def _header_length(path: object, head: bytes, size: int) -> int:
    """How long the header is of a file that has ``size`` bytes and begins so."""
    if size < 10 or len(head) < 8:
        raise rules.corrupt(path, f"it has {counted(size, 'byte')}, fewer than any header")
    if head[8:9] != b"{":
        raise ArtifactError(
            f"{path} is not an artifact of tokenfst: it does not begin as a .safetensors file does"
        )
    length = int.from_bytes(head[:8], "little")
    if length > rules.MAX_HEADER:
        raise rules.corrupt(
            path, f"its header claims {counted(length, 'byte')}, and the limit is {rules.MAX_HEADER:,}"
        )
    if 8 + length > size:
        raise rules.corrupt(path, f"its header claims {counted(length, 'byte')}, and the file has {size:,}")
    if length % 8:
        raise rules.corrupt(path, f"its header has {counted(length, 'byte')}, not a multiple of 8")
    return length


def _checked_header(path: object, head: bytes, size: int) -> dict[str, Any]:
    """The header in the first bytes of a file."""
    header = rules.parse_header(path, head[8:])
    rules.check_format(path, header)
    if head[8 : rules.DIGEST.start] != rules.OPENING:
        raise rules.corrupt(path, "its header does not begin with the digest")
    rules.check_header(path, header, size - len(head))
    return header


def _checked_content(path: object, header: dict[str, Any], head: memoryview, data: memoryview) -> Artifact:
    """The artifact of these bytes, once their digest is found to be the header's."""
    content = hashlib.sha256(head[rules.DIGEST.stop :])
    content.update(data)
    digest = content.hexdigest()
    if head[rules.DIGEST] != digest.encode("ascii"):
        raise rules.corrupt(path, "the content does not have the digest in its header: something was altered")

    metadata = header["__metadata__"]
    arrays: dict[str, Any] = {key: int(metadata[key]) for key in rules.STARTS if key in metadata}
    for name, dtype, *_ in rules.tensors(header):
        shape, begin = header[name]["shape"], header[name]["data_offsets"][0]
        arrays[name] = np.frombuffer(data, rules.DTYPES[dtype], prod(shape), begin).reshape(shape)
    return Artifact(
        arrays=arrays,
        vocabulary_fingerprint=metadata["vocabulary_fingerprint"],
        vocabulary_size=int(metadata["vocabulary_size"]),
        source=metadata["source"],
        version=int(metadata["version"]),
        digest=digest,
        size=len(head) + len(data),
        encoding=rules.encoding_of(path, metadata),
        token_names=metadata.get(rules.TOKEN_NAMES),
        learned_by=metadata.get(rules.LEARNED_BY),
    )


@contextmanager
def _opened(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """The file, open; what goes wrong with it until it is closed is an ``ArtifactError``."""
    try:
        try:
            found = Path(path).stat()
        except ValueError as error:  # of names with null bytes
            raise ArtifactError(f"cannot read the artifact {path}: {error}") from error
        if stat.S_ISDIR(found.st_mode):
            raise ArtifactError(f"{path} is a folder, not an artifact: give the name of a file")
        if not stat.S_ISREG(found.st_mode):
            raise ArtifactError(f"{path} is a device or a pipe, not an artifact: give the name of a file")
        if found.st_size == 0:
            raise ArtifactError(f"{path} is empty, so it is not an artifact: compile the constraint again")
        with Path(path).open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise ArtifactError(
            f"there is no file {path}: check the name, or make the artifact with TokenAutomaton.save() or "
            "`tokenfst compile`"
        ) from error
    except MemoryError as error:
        raise ArtifactError(f"cannot read the artifact {path}: there is not enough memory for it") from error
    except OSError as error:
        raise ArtifactError(f"cannot read the artifact {path}: {_reason(error)}") from error


def _whole(path: str | PathLike[str], file: BinaryIO, size: int) -> bytes:
    """Read the number of bytes that the file had when it was opened."""
    data = file.read(size)
    if len(data) < size:
        missing = counted(size - len(data), "byte")
        raise rules.corrupt(path, f"it was cut short while it was read, by {missing}")
    return data


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
