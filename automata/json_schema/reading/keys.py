"""Keys by which equal sub-schemas are shared, so that each is translated once.

A key is the schema's text. Cost: linear in the schema.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Hashable, Set
from typing import Any

from tokenfst.automata.json_schema.documents.source import Place

FAR_DOWN = 1000
"""Length of a JSON pointer beyond which schemas are shared by identity only."""


def key_of(place: Place, keywords: Set[str]) -> Hashable:
    """A key that is equal for schemas with equal constraining ``keywords``.

    Deep in a document the key is the schema's identity, because the texts of all schemas there would together cost the
    square of the depth.
    """
    value = place.value
    if len(place.pointer) > FAR_DOWN:
        return id(value)
    if len(keywords) < len(value):
        value = {name: each for name, each in value.items() if name in keywords}
    try:
        return marshal.dumps(value, 0)  # the version without references, which depend on more than the value
    except ValueError:  # a Decimal, or nested too deeply
        pass
    try:
        return json.dumps(value, default=_decimal)
    except RecursionError:
        return id(place.value)


def _decimal(value: Any) -> list[str]:
    """The form of a Decimal in a key; everything else is known to be JSON (``source.read``)."""
    return ["decimal", str(value)]
