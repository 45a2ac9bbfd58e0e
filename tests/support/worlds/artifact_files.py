"""Artifacts of small automata, taken apart and put together again with another content."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

from reference.tokens.small_automata import small_automaton
from tokenfst.decoding.artifacts import artifact
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Header = dict[str, Any]


def make(seed: int) -> tuple[bytes, Vocabulary]:
    automaton = small_automaton(random.Random(seed))
    vocabulary = automaton.vocabulary
    data = artifact.serialize(automaton.arrays(), vocabulary.fingerprint, len(vocabulary), automaton.source)
    return data, vocabulary


def take_apart(data: bytes) -> tuple[Header, bytes]:
    base = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:base]), data[base:]


def put_together(header: Header | bytes, content: bytes) -> bytes:
    """A file with that header and content, and the digest that these have."""
    if isinstance(header, bytes):
        text = header
    else:
        # A lone surrogate becomes its JSON escape.
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "backslashreplace"
        )
    return seal((len(text) + -len(text) % 8).to_bytes(8, "little") + text + b" " * (-len(text) % 8) + content)


def seal(data: bytes) -> bytes:
    return data[:35] + hashlib.sha256(data[99:]).hexdigest().encode() + data[99:]


GOOD, VOCABULARY = make(8)
