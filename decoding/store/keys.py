"""Keys of store entries, derived from everything that determines an artifact's content.

Two constraints have the same key if and only if their programs have the same digest
(``automata/expressions/digests.py``); then they are the same language. Everything else that determines the content of
an artifact is part of the key, so an entry never becomes outdated.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tokenfst.automata.expressions.digests import digest
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.decoding.artifacts.artifact_format import PROGRAM_VERSION
from tokenfst.errors import NotInStoreError, StoreError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

NAME = re.compile(r"[0-9a-f]{64}")
ENTRIES, DOCUMENTS = "artifacts", "documents"
"""The folders of a store: entries, and records of the key of each document."""


def compiler() -> str:
    """The version that determines an artifact: those of the package and of the artifact format."""
    version = sys.modules[__name__.partition(".")[0]].__version__
    return f"tokenfst {version}, artifact format {PROGRAM_VERSION}"


@dataclass(frozen=True)
class Key:
    """A key: the digest of the constraint's program, the fingerprint of the vocabulary, the options that affect
    compilation as JSON, and the compiler's version.

    ``str(key)`` is the SHA-256 of all four, the name in the store.
    """

    constraint: str
    vocabulary: str
    options: str
    compiler: str

    @cached_property
    def name(self) -> str:
        """The name in the store: 64 hexadecimal digits."""
        parts = [self.constraint, self.vocabulary, self.options, self.compiler]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def __str__(self) -> str:
        return self.name


def make_key(
    constraint: Constraint,
    vocabulary: Vocabulary,
    *,
    expand: bool,
    tokenization: str,
    token_classes: Mapping[str, Iterable[int]] | None,
) -> Key:
    """The key of the result of ``compile`` with these arguments. O(the constraint's program)."""
    program = constraint.program()
    options: dict[str, Any] = {"expand": expand, "tokenization": tokenization}
    if tokenization == "canonical":
        encoding = vocabulary.encoding
        options["split_pattern"] = None if encoding is None else encoding.to_document()
    if named := {name.name for name in program.token_names if not name.special}:
        given = token_classes or {}
        options["token_classes"] = {
            name: sorted(set(map(operator.index, given.get(name, ())))) for name in sorted(named)
        }
    return Key(digest(program), vocabulary.fingerprint, json.dumps(options, sort_keys=True), compiler())


def name_of(key: Key | str) -> str:
    """The name of a key, or a checked name. Raises ``StoreError``."""
    if isinstance(key, Key):
        return key.name
    if not NAME.fullmatch(key):
        raise StoreError(
            f"{key!r:.80} is not a key of a store: keys are 64 hexadecimal digits (str(store.key(...)))"
        )
    return key


def missing(url: str, name: str) -> NotInStoreError:
    """The error of a key that a store does not have."""
    return NotInStoreError(
        f"{url} has no entry {name}: it was never stored, it was pruned, or the key is of another release. Compile the "
        "constraint into the store with this release (Store.compile, or tokenfst compile --batch)"
    )


def path_of(name: str) -> str:
    """The path of an entry in its store."""
    return f"{ENTRIES}/{name[:2]}/{name}"


def path_of_document(name: str) -> str:
    """The path of a document's record in its store."""
    return f"{DOCUMENTS}/{name[:2]}/{name}"


def key_at(path: str) -> str | None:
    """The key of the entry at a path; None if the path is not that of an entry."""
    name = path.rpartition("/")[2]
    return name if NAME.fullmatch(name) and path == path_of(name) else None


def is_document(path: str) -> bool:
    """Whether a path is that of a document's record."""
    name = path.rpartition("/")[2]
    return NAME.fullmatch(name) is not None and path == path_of_document(name)
