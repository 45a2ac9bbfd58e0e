"""Checking and pruning of the entries of a store.

Cost of ``prune``: one listing of the storage, and a request for each file that is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tokenfst.decoding.store.keys import DOCUMENTS, ENTRIES, is_document, key_at
from tokenfst.decoding.store.learned_files import LearnedFiles
from tokenfst.decoding.store.storages.places import Listed, Place
from tokenfst.errors import ArtifactError

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry of a store: ``key``, its size in ``bytes``, and the time of its last write or use, in seconds since the
    epoch.
    """

    key: str
    bytes: int
    used: float


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged entry and the error. ``is_kept``: it is a file whose name is not that of an entry, and which is never
    removed.
    """

    key: str
    error: ArtifactError
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Pruned:
    """The numbers and sizes of entries that ``prune`` removed and kept."""

    removed: int
    removed_bytes: int
    kept: int
    kept_bytes: int


def verify(place: Place, read: Callable[[str], object], remove: bool) -> Iterator[Damage]:
    """The damaged entries of ``Store.verify``. ``read``: reads and checks the entry of a key, or raises. An entry that
    was written again before it could be removed is skipped, because it is another one now.
    """
    for each in place.list(ENTRIES):
        key = key_at(each.name)
        try:
            if key is None:
                raise ArtifactError(
                    f"{place.url}/{each.name} is not an entry of a store: entries have other names"
                )
            read(key)
        except ArtifactError as error:
            if key is None or not remove or place.remove_unchanged(each):
                yield Damage(key or each.name, error, key is None)


def prune(
    place: Place,
    learned: LearnedFiles,
    contains: Callable[[str], bool],
    max_bytes: int | None,
    unused_days: float | None,
) -> Pruned:
    """``Store.prune``, for checked arguments. ``contains``: whether there is an entry under a key."""
    now = place.now()
    entries = (each for each in place.list(ENTRIES) if key_at(each.name) is not None)
    files = sorted(entries, key=lambda each: each.used)
    left = sum(each.size for each in files)
    gone: list[Listed] = []
    for each in files:
        old = unused_days is not None and now - each.used > unused_days * _DAY
        if (old or (max_bytes is not None and left > max_bytes)) and place.remove_unchanged(each):
            gone.append(each)
            left -= each.size
    if unused_days is not None:
        for each in [*place.list(DOCUMENTS)]:
            if now - each.used > unused_days * _DAY and is_document(each.name):
                place.remove_unchanged(each)
    learned.prune(contains, None if unused_days is None else now - unused_days * _DAY)
    place.clean(now - _DAY)
    return Pruned(len(gone), sum(each.size for each in gone), len(files) - len(gone), left)
