"""Artifacts in Ray's object store, which all computers of a cluster share.

One actor of the cluster reads an artifact from the store when it is first requested, and keeps its reference in the
object store. A process asks the actor for the reference. The bytes are sent to each computer once and are shared
there by all processes. If the actor or its computer is lost, the store is read instead: a result never depends on
Ray.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from typing import Any

import numpy as np
import ray

from tokenfst.budget import Budget
from tokenfst.common.clock_cache import Recent
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.store.entries import Automaton, automaton_of
from tokenfst.decoding.store.store import Store
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_KEPT = 256
"""The number of automata that a process keeps."""
_REFERENCES = 100_000
"""The number of artifacts that the cluster keeps in its object store, which moves to disk what does not fit into
memory.
"""


class Shelf:
    """The actor: references to artifacts by their keys."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: Recent[str, Any] = Recent(_REFERENCES)
        self._reads = 0

    def find(self, key: str) -> list[Any]:
        """A reference to an artifact's bytes, in a list so that Ray does not replace it by the bytes."""
        return [self._found.get(key, lambda: self._put(key))]

    def reads(self) -> int:
        """How many artifacts were read from the store."""
        return self._reads

    def _put(self, key: str) -> Any:
        self._reads += 1
        return ray.put(np.frombuffer(self._store.artifact(key), np.uint8))


def shelf(store: Store) -> Any:
    """The actor of a store, one for each cluster. A store with other options, such as other trusted keys, has another.

    Ray ends it when no process has a handle, or when the process that made it ends. So the driver makes it, not a
    worker, which Ray may stop at any time.
    """
    name = f"tokenfst-{hashlib.sha256(pickle.dumps(store)).hexdigest()[:16]}"
    kind = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Shelf)
    return kind.options(name=name, get_if_exists=True).remote(store)


class Shared:
    """The automata of documents, in one process of a cluster."""

    def __init__(
        self, store: Store, shelf: Any, vocabulary: Vocabulary, budget: Budget | None, expand: bool
    ) -> None:
        self._store, self._shelf = store, shelf
        self._vocabulary, self._budget, self._expand = vocabulary, budget, expand
        self._made: Recent[str, Automaton] = Recent(_KEPT)

    def automaton(self, document: dict[str, Any], text: str) -> Automaton:
        """The automaton of a document, given with its text."""
        return self._made.get(text, lambda: self._make(document))

    def _make(self, document: dict[str, Any]) -> Automaton:
        key, _ = self._store.ensure(document, self._vocabulary, self._budget, expand=self._expand)
        with contextlib.suppress(ray.exceptions.RayError):
            (reference,) = ray.get(self._shelf.find.remote(key))
            data = ray.get(reference)
            found = artifact.parse(key, memoryview(data))
            return automaton_of(found, key, self._vocabulary, self._budget)
        return self._store.get(key, self._vocabulary, self._budget)
