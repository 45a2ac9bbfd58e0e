"""``Store``: a store of compiled artifacts that many processes share."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.symbols.automaton import SymbolAutomaton
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, whole
from tokenfst.decoding.artifacts.artifact import Artifact
from tokenfst.decoding.compiling.compile import compile, over_symbols
from tokenfst.decoding.store import entries
from tokenfst.decoding.store.cache import Cache
from tokenfst.decoding.store.documents import Document, DocumentKeys
from tokenfst.decoding.store.entries import Automaton
from tokenfst.decoding.store.keys import (
    ENTRIES,
    Key,
    key_at,
    make_key,
    missing,
    name_of,
    path_of,
    path_of_document,
)
from tokenfst.decoding.store.learned_files import LearnedFiles
from tokenfst.decoding.store.signatures import Signatures
from tokenfst.decoding.store.storages.places import Place, open_place
from tokenfst.decoding.store.storages.turns import ByTurns
from tokenfst.decoding.store.upkeep import Damage, Pruned, Stored, prune, verify
from tokenfst.decoding.store.vocabulary_files import VocabularyFiles
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import (
    ArgumentValueError,
    ArtifactError,
    ArtifactVocabularyError,
    StoreError,
    StoreWarning,
    TransferError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_READS = 3
"""Number of attempts to read an entry that arrives damaged: a connection may have been interrupted."""


class Store:
    """Artifacts under content-derived keys, in a folder or at a URL that fsspec supports (``s3://...``, ``gcs://...``,
    ``memory://...``; the extra ``store``).

    ``cache``: a local folder of at most ``cache_bytes`` whose files processes map into memory and share
    (``/dev/shm/tokenfst``). ``storage_options`` are passed to fsspec. ``sign_with``: an Ed25519 private key that signs
    new entries. ``trusted_keys``: public keys; an entry without a signature by one of them is rejected.
    ``note_use=False``: do not record the last day of use, which ``prune`` needs; this saves a request on storages other
    than folders. ``learned``: whether lazy automata load what other processes have saved with ``learn``, at most
    ``learned_bytes`` for one.

    Safe to share by threads and processes. Raises ``StoreError`` if the storage fails.
    """

    @checked
    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        cache: str | os.PathLike[str] | None = None,
        cache_bytes: int = 1 << 30,
        storage_options: Mapping[str, Any] | None = None,
        sign_with: str | bytes | None = None,
        trusted_keys: Sequence[str | bytes] | None = None,
        note_use: bool = True,
        learned: bool = False,
        learned_bytes: int = 64 << 20,
    ) -> None:
        whole("Store", "cache_bytes", cache_bytes, 1)
        whole("Store", "learned_bytes", learned_bytes, 1)
        self._signatures = Signatures(sign_with, trusted_keys)
        place = open_place(url, storage_options or {})
        # Other processes may be in other folders.
        where = url if "://" in os.fspath(url) else place.url
        cache = None if cache is None else str(Path(cache).absolute())
        self._made_of: dict[str, Any] = {
            "url": where,
            "cache": cache,
            "cache_bytes": cache_bytes,
            "storage_options": storage_options,
            "sign_with": sign_with,
            "trusted_keys": trusted_keys,
            "note_use": note_use,
            "learned": learned,
            "learned_bytes": learned_bytes,
        }
        self._note_use = note_use
        self._cache = None if cache is None else Cache(cache, cache_bytes)
        self._takes_up = learned
        self._use(place)

    def _use(self, place: Place) -> None:
        self._place = place
        self._document_keys = DocumentKeys(place, self._signatures)
        most = self._made_of["learned_bytes"]
        self._learned = LearnedFiles(place, self._parsed_at, self._create, most)
        self._vocabularies = VocabularyFiles(
            place, self._cache, self._signatures, self._create, self._replace
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._made_of,)

    def __repr__(self) -> str:
        return f"<Store {self._place.url}>"

    @property
    def url(self) -> str:
        """The location of the store."""
        return self._place.url

    # --- keys -----------------------------------------------------------------------------------------------------

    @checked
    def key(
        self,
        constraint: Constraint | SymbolAutomaton,
        vocabulary: Vocabulary,
        *,
        expand: bool = True,
        tokenization: Literal["all", "canonical"] = "all",
        token_classes: Mapping[str, Iterable[int]] | None = None,
    ) -> Key:
        """The key under which ``compile`` with these arguments stores its result.

        Constraints that differ only in the order in which they were composed have the same key.
        """
        if isinstance(constraint, SymbolAutomaton):
            constraint = over_symbols(constraint, vocabulary, None)
        return make_key(
            constraint, vocabulary, expand=expand, tokenization=tokenization, token_classes=token_classes
        )

    # --- one entry --------------------------------------------------------------------------------------------------

    @checked
    def compile(
        self,
        constraint: Constraint | SymbolAutomaton,
        vocabulary: Vocabulary,
        budget: Budget | None = None,
        *,
        expand: bool = True,
        tokenization: Literal["all", "canonical"] = "all",
        token_classes: Mapping[str, Iterable[int]] | None = None,
    ) -> Automaton:
        """The result of ``tokenfst.compile`` with these arguments, loaded from the store; compiled and stored if it is
        missing. If several processes store the same entry at once, the first one wins and the others load its artifact.

        ``expand``: store all states, masks and distances, if the automaton has finite tables. Otherwise, and for a
        grammar that needs more than one stack, only the program is stored, and states and masks are computed on demand.
        Raises the errors of ``compile`` and ``expand``. A damaged entry is compiled again and replaced, and a read-only
        store is tolerated, both with a ``StoreWarning``.
        """
        if isinstance(constraint, SymbolAutomaton):
            constraint = over_symbols(constraint, vocabulary, budget)
        if token_classes is not None:  # read twice: for the key, and by what compiles
            token_classes = {name: tuple(ids) for name, ids in token_classes.items()}
        key = self.key(
            constraint, vocabulary, expand=expand, tokenization=tokenization, token_classes=token_classes
        )
        damaged = False
        try:
            if (found := self._find(key.name, vocabulary, budget)) is not None:
                return found
        except ArtifactError as error:
            damaged = True
            warnings.warn(f"{error}. It is compiled again, and replaced", StoreWarning, stacklevel=3)
        options: dict[str, Any] = {"tokenization": tokenization, "token_classes": token_classes}
        automaton: Automaton = compile(constraint, vocabulary, budget, **options)
        if expand:
            automaton = entries.expanded(automaton)
        data = self._packed(key, automaton)
        try:
            if damaged:
                self._replace(path_of(key.name), data)
            elif not self._create(path_of(key.name), data):
                return self._find(key.name, vocabulary, budget) or automaton
        except StoreError as error:
            warnings.warn(f"{error}. The automaton is compiled, but not stored", StoreWarning, stacklevel=3)
        return automaton

    @checked
    def get(self, key: Key | str, vocabulary: Vocabulary, budget: Budget | None = None) -> Automaton:
        """The automaton under a key. Nothing is compiled, and no constraint is needed.

        Raises ``NotInStoreError`` if there is none, ``ArtifactCorruptError`` if it is damaged,
        ``ArtifactVocabularyError`` if it was compiled for another vocabulary.
        """
        found = self._find(name_of(key), vocabulary, budget)
        if found is None:
            raise missing(self.url, name_of(key))
        return found

    @checked
    def artifact(self, key: Key | str) -> memoryview:
        """The artifact under a key, fully verified, as the bytes that ``save`` writes.

        Raises the errors of ``get``; no vocabulary is needed.
        """
        name = name_of(key)
        data: bytes | memoryview | None = None
        if self._cache is not None and self._cached(name) is not None:
            data = self._cache.get(self._cache_name(name))
        if data is None:
            if (read := self._read(name)) is None:
                raise missing(self.url, name)
            self._note(path_of(name))
            data = read[1]
        return entries.unpack(f"{self.url}/{path_of(name)}", name, data).artifact

    @checked
    def put(self, key: Key, automaton: Automaton, *, replace: bool = False) -> bool:
        """Store an automaton under the key of its constraint: its tables if it is expanded, else its program.

        When this returns, the entry is durable. Returns False if there was an entry already, which is kept. With
        ``replace``, an existing entry is replaced, readers get the old or the new one, and the result is True.
        """
        if automaton.vocabulary.fingerprint != key.vocabulary:
            raise ArtifactVocabularyError(f"the key is of another vocabulary than {automaton!r}")
        data = self._packed(key, automaton)
        if replace:
            self._replace(path_of(key.name), data)
            return True
        return self._create(path_of(key.name), data)

    @checked
    def learn(self, key: Key, automaton: TokenAutomaton) -> bool:
        """Store what an automaton has learned while it was walked, merged with what others have stored; the automaton
        also loads their part. ``Store(url, learned=True)`` passes it on to those who load the entry.

        ``key``: the key of the automaton's constraint. Several workers may do this at once without losing data. Returns
        False if the store had all of it already, if the automaton is expanded, or if the total exceeds
        ``learned_bytes``.
        """
        if automaton.vocabulary.fingerprint != key.vocabulary:
            raise ArtifactVocabularyError(f"the key is of another vocabulary than {automaton!r}")
        if automaton.is_expanded:
            return False
        sign = self._signatures.sign if self._signatures.can_sign else None
        return self._learned.put(key.name, automaton, lambda data: entries.pack(key, data, sign))

    @checked
    def contains(self, key: Key | str) -> bool:
        """Whether there is an entry under a key."""
        return self._place.exists(path_of(name_of(key)))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, Key | str) and self.contains(key)

    @checked
    def remove(self, key: Key | str) -> None:
        """Remove an entry and its learned data, if present, from the store and from the local cache."""
        self._place.remove(path_of(name_of(key)))
        self._learned.remove(name_of(key))
        if self._cache is not None:
            self._cache.remove(self._cache_name(name_of(key)))

    @checked
    def put_vocabulary(self, vocabulary: Vocabulary) -> bool:
        """Store a vocabulary with its tries under its fingerprint. Returns False if it was there already.

        Processes that load it through the same local cache map one copy of the tries into memory.
        """
        return self._vocabularies.put(vocabulary)

    @checked
    def vocabulary(self, fingerprint: str) -> Vocabulary:
        """The stored vocabulary with a fingerprint (``key.vocabulary``).

        Raises ``NotInStoreError`` if there is none, ``ArtifactCorruptError`` if it is damaged, ``SignatureError``.
        """
        return self._vocabularies.get(fingerprint)

    def vocabularies(self) -> Iterator[str]:
        """The fingerprints of the stored vocabularies."""
        return self._vocabularies.list()

    # --- documents --------------------------------------------------------------------------------------------------

    @checked
    def compile_document(
        self,
        document: Mapping[str, Any],
        vocabulary: Vocabulary,
        budget: Budget | None = None,
        *,
        expand: bool = True,
    ) -> Automaton:
        """``compile`` for a constraint that is given as data.

        For example ``{"json_schema": ...}`` or ``{"regex": "a+"}``, or with ``lark``, ``gbnf``, ``ebnf`` or
        ``structural_tag``; further members are options of the front end (docs/serving/store.md). The store remembers
        the key of each document; if it is known, no front end runs.
        """
        read = Document.of(document)
        name = path_of_document(read.digest(vocabulary, {"expand": expand}))
        try:
            known = self._document_keys.get(name)
            if known is not None and (found := self._find(known, vocabulary, budget)) is not None:
                self._note(name)
                return found
        except ArtifactError:  # compile says so
            pass
        constraint = read.constraint(vocabulary, budget)
        automaton = self.compile(constraint, vocabulary, budget, expand=expand)
        try:
            self._document_keys.put(name, self.key(constraint, vocabulary, expand=expand))
        except StoreError as error:
            warnings.warn(f"{error}. The document is not remembered", StoreWarning, stacklevel=3)
        return automaton

    @checked
    def ensure(
        self,
        document: Mapping[str, Any],
        vocabulary: Vocabulary,
        budget: Budget | None = None,
        *,
        expand: bool = True,
    ) -> tuple[str, bool]:
        """Ensure that the store has the result of ``compile_document``, without loading it.

        Returns its key, and whether it was stored now. Raises ``StoreError`` if it cannot be stored.
        """
        read = Document.of(document)
        name = path_of_document(read.digest(vocabulary, {"expand": expand}))
        known = self._document_keys.get(name)
        if known is not None and self._is_good(known):
            return known, False
        constraint = read.constraint(vocabulary, budget)
        key = self.key(constraint, vocabulary, expand=expand)
        made = False
        if not self._is_good(key.name):
            automaton = compile(constraint, vocabulary, budget)
            made = self.put(key, entries.expanded(automaton) if expand else automaton)
            if not made and not self._is_good(key.name):
                self._replace(
                    path_of(key.name), self._packed(key, entries.expanded(automaton) if expand else automaton)
                )
                made = True
        self._document_keys.put(name, key)
        return key.name, made

    def _is_good(self, name: str) -> bool:
        """Whether there is an entry that this store would accept, as far as this can be decided without reading it
        if no signature is required.
        """
        if not self._signatures.are_wanted:
            return self.contains(name)
        try:
            return self._read(name, fresh=True) is not None
        except ArtifactError:
            return False

    # --- all entries ------------------------------------------------------------------------------------------------

    def list(self) -> Iterator[Stored]:
        """All entries, with their keys."""
        for each in self._place.list(ENTRIES):
            if (key := key_at(each.name)) is not None:
                yield Stored(key, each.size, each.used)

    @checked
    def verify(self, remove: bool = False) -> Sequence[Damage]:
        """Read and fully verify every entry of the store itself; returns the damaged ones, which are removed if
        ``remove`` is set, unless they have been replaced in the meantime.

        A file whose name is not that of an entry is reported and kept. O(the size of the store).
        """
        found = []
        for each in verify(self._place, partial(self._read, fresh=True), remove):
            found.append(each)
            if remove and self._cache is not None:
                self._cache.remove(self._cache_name(each.key))
        for damaged in (self._learned, self._vocabularies):
            found += [Damage(name, damage) for name, damage in damaged.verify(remove)]
        return found

    @checked
    def prune(self, *, max_bytes: int | None = None, unused_days: float | None = None) -> Pruned:
        """Remove the least recently used entries until the rest has at most ``max_bytes``, and entries not used for
        ``unused_days``.

        Learned data is removed with its entry, and is not counted. Files whose names are not those of entries are
        neither counted nor removed. Ages are measured by the storage's own clock. An entry in a local cache counts as
        used when it was last read from the store itself.
        """
        if max_bytes is not None:
            whole("prune", "max_bytes", max_bytes, 0)
        if unused_days is not None and not unused_days >= 0:
            raise ArgumentValueError(f"prune: unused_days must not be negative, not {unused_days!r}")
        return prune(self._place, self._learned, self.contains, max_bytes, unused_days)

    def need_shared(self, what: str) -> None:
        """Raise ``StoreError`` if other processes cannot reach this store. ``what``: what needs several processes."""
        if not self._place.is_shared:
            raise StoreError(
                f"{self.url} is in the memory of one process, and {what} runs in several: what they store there would "
                "be lost. Name a folder, or a URL that all of them reach, such as s3://bucket/folder"
            )

    def by_turns(self, turn: threading.Lock) -> Store:
        """This store for threads of which only the one that holds the lock ``turn`` computes. The lock is released
        during accesses to the storage (``turns``).
        """
        found = Store(**self._made_of)
        found._use(ByTurns(found._place, turn))
        return found

    # --- details ----------------------------------------------------------------------------------------------------

    def _find(self, name: str, vocabulary: Vocabulary, budget: Budget | None) -> Automaton | None:
        """The automaton of an entry; None: there is none."""
        found = self._cached(name)
        if found is None:
            read = self._read(name)
            if read is None:
                return None
            found, data = read
            self._note(path_of(name))
            if (
                self._cache is not None
                and (view := self._cache.put(self._cache_name(name), data)) is not None
            ):
                found = self._parsed(name, view)
        automaton = entries.automaton_of(found, f"{self.url}/{path_of(name)}", vocabulary, budget)
        if self._takes_up and isinstance(automaton, TokenAutomaton) and not automaton.is_expanded:
            self._learned.take_up(name, automaton)
        return automaton

    def _note(self, name: str) -> None:
        if self._note_use:
            self._place.touch(name)

    def _cached(self, name: str) -> Artifact | None:
        if self._cache is None or (view := self._cache.get(self._cache_name(name))) is None:
            return None
        try:
            return self._parsed(name, view)
        except ArtifactError:  # only this computer's copy
            self._cache.remove(self._cache_name(name))
            return None

    def _cache_name(self, name: str) -> str:
        """The name of an entry in the cache. Stores that share a cache do not see each other's entries."""
        return sha256(f"{self.url}\n{name}".encode()).hexdigest()

    def _read(self, name: str, *, fresh: bool = False) -> tuple[Artifact, bytes] | None:
        """An entry of the store itself, checked, and its bytes. ``fresh``: see ``Place.read``."""
        for turn in range(_READS):
            try:
                data = self._place.read(path_of(name), fresh=fresh or turn > 0)
                return None if data is None else (self._parsed(name, data), data)
            except (ArtifactError, TransferError):
                if turn == _READS - 1:
                    raise
        raise AssertionError

    def _parsed(self, name: str, data: bytes | memoryview) -> Artifact:
        return self._parsed_at(path_of(name), name, data)

    def _parsed_at(self, path: str, name: str, data: bytes | memoryview) -> Artifact:
        where = f"{self.url}/{path}"
        entry = entries.unpack(where, name, data)
        self._signatures.check(where, entry.signed, entry.signature)
        return entries.read(where, entry)

    def _packed(self, key: Key, automaton: Automaton) -> bytes:
        sign = self._signatures.sign if self._signatures.can_sign else None
        return entries.pack(key, automaton.serialize(expand=False), sign)

    def _create(self, name: str, data: bytes) -> bool:
        """Put where there is nothing yet; False: there is."""
        self._refuse_unsigned(name)
        return self._place.create(name, data)

    def _replace(self, name: str, data: bytes) -> None:
        """Put an entry in place of the one that is there, if there is one."""
        self._refuse_unsigned(name)
        self._place.replace(name, data)

    def _refuse_unsigned(self, name: str) -> None:
        """Raise StoreError if entries must be signed, and this process has no key to sign them."""
        if self._signatures.are_wanted and not self._signatures.can_sign:
            raise StoreError(
                f"{self.url}/{name} is not stored: this store takes only signed entries, and has no key to sign with. "
                "Give sign_with"
            )


def _again(made_of: Mapping[str, Any]) -> Store:
    return Store(**made_of)
