"""What automata have learned, beside the entries of a store.

    learned/ab/<key>/<digest of the artifact>

Each file is an entry (``entries``) whose artifact is a program with what was learned (docs/serving/format.md, version
5). It is named after its content and never changed. Whoever has learned more reads the files of the key, puts a new one
with all of it, and then takes away those that it read.

Invariant: what was put is in some file at any time, whoever else puts or dies meanwhile: nobody takes a file away
before one that holds all of it is there. So two who put at once leave two files, and whoever reads takes up both.

Rejected: one file that is replaced. Storages cannot replace a file only if it is still the one that was read, so of two
writers one would be lost.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

from tokenfst.decoding.store.keys import NAME
from tokenfst.decoding.store.places import Listed, Place
from tokenfst.decoding.token_automata.artifact import Artifact
from tokenfst.decoding.token_automata.artifact_format import DIGEST
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArtifactCorruptError, ArtifactError, SignatureError, StoreError, StoreWarning

_FOLDER = "learned"


class LearnedFiles:
    """Of one storage. ``parse`` checks an entry: its path, its key, its bytes; ``create`` puts one. ``most``: bytes of
    one file."""

    def __init__(
        self,
        place: Place,
        parse: Callable[[str, str, bytes], Artifact],
        create: Callable[[str, bytes], bool],
        most: int,
    ) -> None:
        self._place, self._parse, self._create, self._most = place, parse, create, most

    def take_up(self, name: str, automaton: TokenAutomaton) -> None:
        """What was learned under a key. What cannot be read, or is of the same constraint put together in another
        order, is left aside: the automaton is right without it."""
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
                f"{automaton!r} has learned {len(data):,} bytes, more than learned_bytes={self._most:,}: it is not put",
                StoreWarning,
                stacklevel=4,
            )
            return False
        path = f"{_folder(name)}/{data[DIGEST].decode('ascii')}"
        made = path not in before
        if made:
            self._create(path, pack(data))
        for each in before:
            if each != path:
                self._place.remove(each)
        return made

    def remove(self, name: str) -> None:
        """All of a key."""
        for each in [*self._place.list(_folder(name))]:
            self._place.remove(each.name)

    def verify(self, remove: bool) -> Iterator[tuple[str, ArtifactError]]:
        """The files that are damaged."""
        for each, key in self._all():
            try:
                self._read(each.name, key)
            except ArtifactError as error:
                yield each.name, error
                if remove:
                    self._place.remove(each.name)

    def prune(self, exists: Callable[[str], bool], before: float | None) -> None:
        """Take away what was not used since, and what belongs to no entry."""
        for each, key in [*self._all()]:
            if (before is not None and each.used < before) or not exists(key):
                self._place.remove(each.name)

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

    def _read(self, path: str, name: str) -> Artifact | None:
        data = self._place.read(path)
        return None if data is None else self._parse(path, name, data)


def _folder(name: str) -> str:
    return f"{_FOLDER}/{name[:2]}/{name}"
