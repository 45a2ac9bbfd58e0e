"""Constraints as data: the contents of a line of a batch, and their translation by a front end.

    {"id": "order", "json_schema": {...}, "spelling": "any"}

The name of one member is the notation of the constraint; ``id`` is a label for people; all others are options of the
front end, by name. A store records the key of each document under the document's digest, so that a known document needs
no front end.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tokenfst.automata.json_schema.documents.schema_texts import json_type
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.structural_tags.structural_tag import structural_tag
from tokenfst.budget import Budget
from tokenfst.decoding.store.keys import NAME, Key, compiler
from tokenfst.decoding.store.signatures import Signatures
from tokenfst.decoding.store.storages.places import Place
from tokenfst.errors import ConstraintError, SignatureError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_FLAGS = {letter: getattr(re, letter.upper()) for letter in "imsxa"}


_SCHEMA_OPTIONS = frozenset(
    {
        "additional_properties",
        "draft",
        "formats",
        "indent",
        "on_unsupported",
        "property_order",
        "repeated_names",
        "separators",
        "spelling",
        "strict",
        "surrounding",
        "whitespace",
    }
)


class _Kind(NamedTuple):
    """A way to write constraints: its front end, and the options that it takes."""

    make: Callable[..., Constraint]
    options: frozenset[str]
    is_text: bool


_KINDS = {
    "json_schema": _Kind(
        json_schema,
        _SCHEMA_OPTIONS,
        False,
    ),
    "regex": _Kind(regex, frozenset({"flags"}), True),
    "lark": _Kind(lark_grammar, frozenset({"start"}), True),
    "gbnf": _Kind(gbnf, frozenset(), True),
    "ebnf": _Kind(ebnf, frozenset({"start"}), True),
    "structural_tag": _Kind(
        structural_tag,
        frozenset(["special_tokens", "control_tokens", "whitespace", "additional_properties"]),
        False,
    ),
}


@dataclass(frozen=True)
class Document:
    """A constraint as data: its ``kind``, its ``text`` (or a JSON value), and the front end's ``options``."""

    kind: str
    text: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Document:
        """The document with these members. Raises ``ConstraintError``."""
        kinds = [kind for kind in _KINDS if kind in members]
        if len(kinds) != 1:
            others = ", ".join(map(repr, sorted(map(str, members))[:8]))
            found = " and ".join(map(repr, kinds)) or (f"none, only {others}" if others else "none")
            raise ConstraintError(
                f"a document has one of {', '.join(map(repr, _KINDS))}; this one has {found}"
            )
        (kind,) = kinds
        options = {name: value for name, value in members.items() if name not in (kind, "id")}
        if unknown := sorted(set(options) - _KINDS[kind].options, key=str):
            known = ", ".join(map(repr, sorted(_KINDS[kind].options))) or "none"
            raise ConstraintError(f"{kind!r} has no option {unknown[0]!r} in a document; it has {known}")
        text = members[kind]
        if _KINDS[kind].is_text and not isinstance(text, str):
            raise ConstraintError(f"{kind!r} is a text, not {json_type(text)}")
        return cls(kind, text, options, str(members.get("id", "")))

    def constraint(self, vocabulary: Vocabulary, budget: Budget | None = None) -> Constraint:
        """The constraint that the front end makes of the document. Raises the errors of the front end."""
        options = dict(self.options)
        if self.kind == "regex":
            options["flags"] = _flags(options.get("flags", ""))
        if self.kind == "structural_tag":
            options["vocabulary"] = vocabulary
        if isinstance(options.get("separators"), list):
            options["separators"] = tuple(options["separators"])
        return _KINDS[self.kind].make(self.text, budget=budget, **options)

    def digest(self, vocabulary: Vocabulary, options: Mapping[str, Any]) -> str:
        """The name under which a store records its key, for a vocabulary and options of ``compile``.

        The order of members of JSON objects is significant. Raises ``ConstraintError`` if the document is not JSON.
        """
        told = [
            self.kind,
            self.text,
            sorted(self.options.items()),
            vocabulary.fingerprint,
            None if vocabulary.encoding is None else vocabulary.encoding.to_document(),
        ]
        told += [sorted(options.items()), compiler()]
        try:
            written = json.dumps(told)
        except RecursionError:
            raise ConstraintError(
                f"a document is JSON; the value of {self.kind!r} is nested too deeply"
            ) from None
        except (TypeError, ValueError) as error:
            raise ConstraintError(
                f"a document is JSON; under {self.kind!r} or its options: {error}"
            ) from None
        return hashlib.sha256(written.encode()).hexdigest()


def _flags(letters: object) -> int:
    if not isinstance(letters, str) or not set(letters) <= set(_FLAGS):
        raise ConstraintError(f"'flags' are some of the letters {''.join(_FLAGS)}, not {letters!r}")
    return sum(_FLAGS[letter] for letter in set(letters))


class DocumentKeys:
    """The records of a store that map a document's digest to the key of its entry, so that no front end has to run."""

    def __init__(self, place: Place, signatures: Signatures) -> None:
        self._place, self._signatures = place, signatures

    def get(self, name: str) -> str | None:
        """The key of a document's entry; None if there is no record, or none that a trusted key has signed."""
        data = self._place.read(name)
        if data is None:
            return None
        found, *signature = data.decode("ascii", "replace").split() or [""]
        try:
            signed = (signature[0], signature[1]) if len(signature) == 2 else None
            self._signatures.check(name, f"{name} {found}".encode(), signed)
        except SignatureError:
            return None
        return found if NAME.fullmatch(found) else None

    def put(self, name: str, key: Key) -> None:
        """Record a document's key, unless this store requires signatures and cannot sign."""
        parts = [key.name]
        if self._signatures.can_sign:
            parts += self._signatures.sign(f"{name} {key}".encode())
        if self._signatures.can_sign or not self._signatures.are_wanted:
            # A lost record costs one run of the front end.
            self._place.replace(name, " ".join(parts).encode(), lasting=False)
