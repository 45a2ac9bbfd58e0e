"""What machines share: artifacts in Ray's object store.

One actor of the cluster reads an artifact out of the store when it is first asked for, and keeps where it lies in the
object store; who asks gets a reference, and with it the bytes, which come to each machine once and are shared there by
all processes. Where the actor or its machine is lost, the store is read instead: an answer never depends on Ray.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any

import numpy as np
import ray

from tokenfst.budget import Budget
from tokenfst.clock_cache import Recent
from tokenfst.decoding.store.store import Automaton, Store, automaton_of
from tokenfst.decoding.token_automata import artifact
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_KEPT = 256
"""Automata that a process keeps."""
_REFERENCES = 100_000
"""Artifacts that the cluster keeps in its object store, which puts on disk what does not fit into memory."""


class Shelf:
    """The actor: references to artifacts by their keys."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: Recent[str, Any] = Recent(_REFERENCES)
        self._reads = 0

    def find(self, key: str) -> list[Any]:
        """A reference to an artifact's bytes, in a list so that Ray does not read it for us."""
        return [self._found.get(key, lambda: self._put(key))]

    def reads(self) -> int:
        """How many artifacts were read out of the store."""
        return self._reads

    def _put(self, key: str) -> Any:
        self._reads += 1
        return ray.put(np.frombuffer(self._store.artifact(key), np.uint8))


def shelf(store: Store) -> Any:
    """The actor of a store, one in a cluster."""
    name = f"tokenfst-{hashlib.sha256(store.url.encode()).hexdigest()[:16]}"
    kind = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Shelf)
    return kind.options(name=name, get_if_exists=True).remote(store)


class Shared:
    """Automata of documents, in one process of a cluster."""

    def __init__(self, store: Store, vocabulary: Vocabulary, budget: Budget | None, expand: bool) -> None:
        self._store, self._vocabulary, self._budget, self._expand = store, vocabulary, budget, expand
        self._shelf = shelf(store)
        self._made: Recent[str, Automaton] = Recent(_KEPT)

    def automaton(self, document: dict[str, Any], text: str) -> Automaton:
        """The automaton of a document, whose text is known."""
        return self._made.get(text, lambda: self._make(document))

    def _make(self, document: dict[str, Any]) -> Automaton:
        key, _ = self._store.ensure(document, self._vocabulary, self._budget, expand=self._expand)
        with contextlib.suppress(ray.exceptions.RayError):
            (reference,) = ray.get(self._shelf.find.remote(key))
            data = ray.get(reference)
            found = artifact.parse(key, memoryview(data))
            return automaton_of(found, key, self._vocabulary, self._budget)
        return self._store.get(key, self._vocabulary, self._budget)
