"""The vocabularies of a store: packs (``tokenfst vocab SPEC --pack FILE``) under their fingerprints.

    8 bytes, little-endian: the length of the header; the header, JSON in UTF-8, padded with spaces up to a multiple
    of 64 bytes from the beginning; the pack

The header has the format, the fingerprint, the pack's size and SHA-256, and perhaps a signature of these. A file that
was truncated or altered, or that holds another vocabulary than its name says, raises ``ArtifactCorruptError``. A file
in the computer's cache is mapped, and the tries in it are used in place: processes have them in memory once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator

from tokenfst.decoding.artifacts.artifact_format import corrupt, parse_header, shown
from tokenfst.decoding.store.cache import Cache
from tokenfst.decoding.store.entries import MOST_HEADER
from tokenfst.decoding.store.keys import NAME
from tokenfst.decoding.store.signatures import Signatures
from tokenfst.decoding.store.storages.places import Listed, Place
from tokenfst.errors import ArtifactError, NotInStoreError, StoreError, TransferError, VocabularyError
from tokenfst.tokenizers.vocabulary.doors import DOORS
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

VOCABULARIES = "vocabularies"
_FORMAT = "tokenfst.store_vocabulary 1"
_ALIGNED = 64
_READS = 3


class VocabularyFiles:
    """The vocabularies of one store. ``create`` stores a file unless there is one, and returns whether it stored it;
    ``replace`` stores it in place of another.
    """

    def __init__(
        self,
        place: Place,
        cache: Cache | None,
        signatures: Signatures,
        create: Callable[[str, bytes], bool],
        replace: Callable[[str, bytes], None],
    ) -> None:
        self._place, self._cache, self._signatures = place, cache, signatures
        self._create, self._replace = create, replace

    def put(self, vocabulary: Vocabulary) -> bool:
        """Store a vocabulary. Returns False if it was there already. A damaged file is replaced.

        Raises ``StoreError`` if an equal vocabulary is there whose tokenizer makes tokens of a text in another way.
        """
        name = vocabulary.fingerprint
        data: bytes = DOORS["pack"](vocabulary)
        header = {
            "format": _FORMAT,
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
            "vocabulary": name,
        }
        said: dict[str, object] = dict(header)
        if self._signatures.can_sign:
            said["signature"] = list(self._signatures.sign(_signed(header)))
        text = json.dumps(said, separators=(",", ":")).encode()
        text += b" " * (-(8 + len(text)) % _ALIGNED)
        whole = b"".join([len(text).to_bytes(8, "little"), text, data])
        if self._create(_path(name), whole):
            return True
        try:
            found = self.get(name)
        except ArtifactError:
            self._replace(_path(name), whole)
            return True
        if found.encoding != DOORS["unpack"](name, data).encoding:
            raise StoreError(
                f"{self._place.url} has the vocabulary {name} with another tokenizer (split pattern, added tokens, "
                "normal form, or not known), and a store has one for each vocabulary: use another store, or remove "
                f"{_path(name)} if that one is wrong"
            )
        return False

    def get(self, fingerprint: str) -> Vocabulary:
        """The vocabulary with a fingerprint. Raises NotInStoreError, ArtifactCorruptError, SignatureError."""
        if not NAME.fullmatch(fingerprint):
            raise StoreError(
                f"{fingerprint!r:.80} is no fingerprint of a vocabulary: those are 64 hexadecimal digits "
                "(vocabulary.fingerprint)"
            )
        kept = hashlib.sha256(
            f"tokenfst vocabulary {fingerprint}".encode()
        ).hexdigest()  # no key of an artifact
        if self._cache is not None and (view := self._cache.get(kept)) is not None:
            try:
                return self._parsed(fingerprint, view)
            except ArtifactError:  # only this computer's copy
                self._cache.remove(kept)
        found, data = self._read(fingerprint)
        if self._cache is not None and (view := self._cache.put(kept, data)) is not None:
            return self._parsed(fingerprint, view)
        return found

    def list(self) -> Iterator[str]:
        """The fingerprints."""
        return (name for name, _ in self._all())

    def verify(self, remove: bool) -> Iterator[tuple[str, ArtifactError]]:
        """The damaged files; they are removed if that is requested."""
        for name, listed in self._all():
            try:
                self._read(name, fresh=True)
            except ArtifactError as error:
                if not remove or self._place.remove_unchanged(listed):
                    yield listed.name, error

    def _all(self) -> Iterator[tuple[str, Listed]]:
        for each in self._place.list(VOCABULARIES):
            name = each.name.rpartition("/")[2]
            if NAME.fullmatch(name) and each.name == _path(name):
                yield name, each

    def _read(self, name: str, *, fresh: bool = False) -> tuple[Vocabulary, bytes]:
        for turn in range(_READS):
            try:
                data = self._place.read(_path(name), fresh=fresh or turn > 0)
                if data is None:
                    raise NotInStoreError(
                        f"{self._place.url} has no vocabulary {name}: put it there by store.put_vocabulary(vocabulary)"
                    )
                return self._parsed(name, data), data
            except (ArtifactError, TransferError) as error:
                if turn == _READS - 1 or isinstance(error, NotInStoreError):
                    raise
        raise AssertionError

    def _parsed(self, name: str, data: bytes | memoryview) -> Vocabulary:
        where = f"{self._place.url}/{_path(name)}"
        view = memoryview(data)
        length = int.from_bytes(view[:8], "little")
        if len(view) < 8 or length > MOST_HEADER or 8 + length > len(view):
            raise corrupt(where, "its header does not fit into it")
        header = parse_header(where, bytes(view[8 : 8 + length]))
        signature = header.pop("signature", None)
        rest = view[8 + length :]
        wanted = {
            "format": _FORMAT,
            "sha256": hashlib.sha256(rest).hexdigest(),
            "size": len(rest),
            "vocabulary": name,
        }
        if header != wanted:
            raise corrupt(where, f"its header says {shown(header)}, and its content is {shown(wanted)}")
        pair = None
        if (
            isinstance(signature, list)
            and len(signature) == 2
            and all(isinstance(each, str) for each in signature)
        ):
            pair = (signature[0], signature[1])
        self._signatures.check(where, _signed(wanted), pair)
        try:
            found: Vocabulary = DOORS["unpack"](where, rest)
        except VocabularyError as error:
            raise corrupt(where, str(error)) from None
        if found.fingerprint != name:
            raise corrupt(where, "it is another vocabulary than its name says")
        return found


def _path(name: str) -> str:
    return f"{VOCABULARIES}/{name[:2]}/{name}"


def _signed(header: dict[str, object]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
