"""Detection of added tokens that a normalizer does not change.

Since release 0.22 or so, ``tokenizers`` decodes an added token with ``normalized: true`` in its normalized form;
before, in its original form. So the meaning of such a token in a ``tokenizer.json`` depends on the release, unless the
normalizer does not change it. ``is_unchanged`` decides that from the file alone, and returns False if it is not
certain.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any, Literal, cast

_FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def is_unchanged(content: str, normalizer: dict[str, Any] | None) -> bool:
    """Whether ``normalizer`` (a ``tokenizer.json`` node) certainly leaves ``content`` unchanged."""
    if normalizer is None or not content:
        return True
    kind = normalizer.get("type")
    if kind == "Sequence":
        return all(is_unchanged(content, each) for each in normalizer["normalizers"])
    if kind in _FORMS:
        return unicodedata.is_normalized(cast(Literal["NFC", "NFD", "NFKC", "NFKD"], kind), content)
    known = _KNOWN.get(kind) if isinstance(kind, str) else None
    return known is not None and known(content, normalizer)


def _is_plain(content: str, _: object = None) -> bool:
    """Printable ASCII: nothing to clean, no accents."""
    return content.isascii() and content.isprintable()


def _keeps_case(content: str) -> bool:
    return all(character.lower() == character for character in content)


def _replace(content: str, step: dict[str, Any]) -> bool:
    pattern = step.get("pattern", {}).get("String")
    return bool(pattern) and (pattern not in content or pattern == step.get("content"))


def _strip(content: str, step: dict[str, Any]) -> bool:
    ends = (step.get("strip_left"), content[0]), (step.get("strip_right"), content[-1])
    return not any(strips and character.isspace() for strips, character in ends)


def _bert(content: str, step: dict[str, Any]) -> bool:
    return _is_plain(content) and (not step.get("lowercase", True) or _keeps_case(content))


_KNOWN: dict[str, Callable[[str, dict[str, Any]], bool]] = {
    "Lowercase": lambda content, _: _keeps_case(content),
    "Prepend": lambda _, step: step.get("prepend") == "",
    "Replace": _replace,
    "Strip": _strip,
    "StripAccents": _is_plain,
    "Nmt": _is_plain,
    "BertNormalizer": _bert,
    "ByteLevel": lambda content, _: _is_plain(content) and " " not in content,
}
