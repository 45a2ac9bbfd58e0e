"""The format of a store entry: a header with the key, followed by the artifact.

    8 bytes, little-endian: the length of the header; the header, JSON in UTF-8, padded with spaces up to a multiple
    of 64 bytes from the beginning; the artifact

The header has the four parts of the key, the artifact's digest and its length, and optionally a signature of all of
these. So a reader who asks for a key receives exactly what was stored under it, or an ArtifactCorruptError, whatever a
storage, a cache or a network does to the bytes. Nothing in an entry is executed, and nothing is trusted before it is
verified.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tokenfst.budget import Budget
from tokenfst.common.plurals import counted
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.artifacts.artifact import Artifact
from tokenfst.decoding.artifacts.artifact_format import DIGEST, corrupt, parse_header, shown
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.store.keys import Key
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArtifactCorruptError, ArtifactError, ConstraintError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Automaton = TokenAutomaton | CanonicalAutomaton

FORMAT = "tokenfst.store_entry 1"
MOST_HEADER = 16 << 20
_ALIGNED = 64
_TEXTS = ("artifact", "compiler", "constraint", "format", "options", "vocabulary")
_KEYS = {*_TEXTS, "size"}


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry: the ``key`` and the bytes of the ``artifact``.

    ``signed``: the bytes that a signature covers; ``signature``: the public key and the signature, if there is one.
    """

    key: Key
    artifact: memoryview
    signed: bytes
    signature: tuple[str, str] | None


def pack(key: Key, data: bytes, sign: Any = None) -> bytes:
    """The bytes of an entry. ``sign`` maps the bytes to be signed to a public key and a signature."""
    header: dict[str, Any] = {
        "artifact": data[DIGEST].decode("ascii"),
        "compiler": key.compiler,
        "constraint": key.constraint,
        "format": FORMAT,
        "options": key.options,
        "size": len(data),
        "vocabulary": key.vocabulary,
    }
    if sign is not None:
        header["signature"] = list(sign(_signed(header)))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNED)
    if len(text) > MOST_HEADER:
        raise ArtifactError(f"the options of {key} are too long for an entry: {counted(len(text), 'byte')}")
    return b"".join([len(text).to_bytes(8, "little"), text, data])


def unpack(where: object, name: str, data: bytes | memoryview) -> Entry:
    """The entry in these bytes, which must be that of the key ``name``. Raises ``ArtifactCorruptError`` otherwise.

    The artifact itself is not verified yet (``artifact.parse``).
    """
    view = memoryview(data)
    length = int.from_bytes(view[:8], "little")
    if len(view) < 8 or length > MOST_HEADER or 8 + length > len(view):
        raise corrupt(
            where,
            f"an entry of a store has {counted(len(view), 'byte')}, and its header does not fit into them",
        )
    header = parse_header(where, bytes(view[8 : 8 + length]))
    if header.get("format") != FORMAT:
        raise corrupt(where, f"its format is {shown(header.get('format'))}, not {FORMAT!r}")
    if not _KEYS <= set(header) <= {*_KEYS, "signature"} or not all(
        isinstance(header[key], str) for key in _TEXTS
    ):
        raise corrupt(
            where, f"its header has the keys {shown(sorted(header))}, and not texts under {sorted(_KEYS)}"
        )
    key = Key(header["constraint"], header["vocabulary"], header["options"], header["compiler"])
    if key.name != name:
        raise corrupt(where, f"it is the entry of another key, {key.name}")
    signature = header.pop("signature", None)
    if signature is not None and not (
        isinstance(signature, list)
        and len(signature) == 2
        and all(isinstance(part, str) for part in signature)
    ):
        raise corrupt(where, f"its signature is {shown(signature)}, not a public key and a signature")
    rest = view[8 + length :]
    if len(rest) != header["size"] or bytes(rest[DIGEST]).decode("latin-1") != header["artifact"]:
        raise corrupt(
            where,
            f"it holds another artifact than its header says, or a part of it: {counted(len(rest), 'byte')}",
        )
    return Entry(key, rest, _signed(header), None if signature is None else (signature[0], signature[1]))


def read(where: object, entry: Entry) -> Artifact:
    """The artifact of an entry, fully verified."""
    try:
        found = artifact.parse(where, entry.artifact)
    except ArtifactCorruptError:
        raise
    except ArtifactError as error:  # of another kind or version, which its key does not say
        raise corrupt(where, str(error)) from None
    if found.vocabulary_fingerprint != entry.key.vocabulary:
        raise corrupt(where, "its artifact is for another vocabulary than its key says")
    return found


def automaton_of(
    found: Artifact, where: str, vocabulary: Vocabulary, budget: Budget | None = None
) -> Automaton:
    """The automaton of an artifact, over all token sequences or over canonical ones only."""
    kind = TokenAutomaton if found.encoding is None else CanonicalAutomaton
    return kind.of_artifact(found, where, vocabulary, budget)


def expanded(automaton: Automaton) -> Automaton:
    """The expanded automaton; or the automaton itself if it has no finite tables, because one stack is not enough or
    because some byte is not a token.
    """
    try:
        return automaton.expand()
    except ConstraintError:
        return automaton


def _signed(header: dict[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
