"""Learned data of automata, stored next to the entries of a store.

    learned/ab/<key>/<digest of the artifact>

Each file is an entry (``entries``) whose artifact is a program with learned data (docs/serving/format.md, version 5).
Its name is the digest of its content, and it is immutable. A worker that has learned more reads the files of the key,
writes a new one with the union, and then removes the files that it read.

Invariant: everything that was stored is in some file at any time, whatever other workers do and even if they die,
because a file is removed only after one with all of its data exists. So two workers that write at once leave two files,
and a reader merges both.

Rejected: one file that is replaced. Storages have no atomic compare-and-replace, so of two concurrent writers one would
be lost.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

from tokenfst.common.plurals import counted
from tokenfst.decoding.artifacts.artifact import Artifact
from tokenfst.decoding.artifacts.artifact_format import DIGEST
from tokenfst.decoding.store.keys import NAME
from tokenfst.decoding.store.storages.places import Listed, Place
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArtifactCorruptError, ArtifactError, SignatureError, StoreError, StoreWarning

_FOLDER = "learned"


class LearnedFiles:
    """The learned data of one storage.

    ``parse`` verifies an entry, given its path, its key and its bytes; ``create`` stores one. ``most``: maximum size of
    a file in bytes.
    """

    def __init__(
        self,
        place: Place,
        parse: Callable[[str, str, bytes], Artifact],
        create: Callable[[str, bytes], bool],
        most: int,
    ) -> None:
        self._place, self._parse, self._create, self._most = place, parse, create, most

    def take_up(self, name: str, automaton: TokenAutomaton) -> None:
        """Load what was learned under a key into an automaton.

        Files that cannot be read, or whose constraint was composed in another order, are skipped: the automaton is
        correct without them.
        """
        try:
            for path in self._taken(name, automaton):
                self._place.touch(path)
        except StoreError as error:
            warnings.warn(f"{error}. What was learned is not taken up", StoreWarning, stacklevel=5)

    def put(self, name: str, automaton: TokenAutomaton, pack: Callable[[bytes], bytes]) -> bool:
        """See ``Store.learn``."""
        before = list(self._taken(name, automaton))
        data = automaton.serialize(learned=True)
        if len(data) > self._most:
            warnings.warn(
                f"{automaton!r} has learned {counted(len(data), 'byte')}, more than "
                f"learned_bytes={self._most:,}: it is not stored",
                StoreWarning,
                stacklevel=4,
            )
            return False
        path = f"{_folder(name)}/{data[DIGEST].decode('ascii')}"
        made = path not in before
        if made and not self._create(path, packed := pack(data)) and not self._is_whole(path, name):
            self._place.remove(path)
            self._create(path, packed)
        for each in before:
            if each != path:
                self._place.remove(each)
        return made

    def remove(self, name: str) -> None:
        """Remove all files of a key."""
        for each in [*self._place.list(_folder(name))]:
            self._place.remove(each.name)

    def verify(self, remove: bool) -> Iterator[tuple[str, ArtifactError]]:
        """The paths of the damaged files with their errors. If ``remove`` is set, the files are removed; those that
        were written again in the meantime are neither removed nor returned.
        """
        for each, key in self._all():
            try:
                self._read(each.name, key)
            except ArtifactError as error:
                if not remove or self._place.remove_unchanged(each):
                    yield each.name, error

    def prune(self, exists: Callable[[str], bool], before: float | None) -> None:
        """Remove files that were not used since ``before``, and files without an entry."""
        for each, key in [*self._all()]:
            if (before is not None and each.used < before) or not exists(key):
                self._place.remove_unchanged(each)

    def _all(self) -> Iterator[tuple[Listed, str]]:
        for each in self._place.list(_FOLDER):
            key, _, digest = each.name.rpartition("/")
            key = key.rpartition("/")[2]
            if NAME.fullmatch(key) and NAME.fullmatch(digest) and each.name == f"{_folder(key)}/{digest}":
                yield each, key

    def _taken(self, name: str, automaton: TokenAutomaton) -> Iterator[str]:
        """The files of a key that the automaton has taken up."""
        for each in [*self._place.list(_folder(name))]:
            try:
                found = self._read(each.name, name)
                if found is not None:
                    automaton.learn_from(found, f"{self._place.url}/{each.name}")
                    yield each.name
            except (ArtifactCorruptError, SignatureError) as error:
                warnings.warn(f"{error}. It is left aside", StoreWarning, stacklevel=6)
            except ArtifactError:  # put together in another order
                continue

    def _is_whole(self, path: str, name: str) -> bool:
        """Whether there is a file, and it is not damaged."""
        try:
            return self._read(path, name) is not None
        except ArtifactError:
            return False

    def _read(self, path: str, name: str) -> Artifact | None:
        data = self._place.read(path, fresh=True)  # others add to it
        return None if data is None else self._parse(path, name, data)


def _folder(name: str) -> str:
    return f"{_FOLDER}/{name[:2]}/{name}"
