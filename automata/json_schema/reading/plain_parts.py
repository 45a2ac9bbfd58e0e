"""The native reader of sub-schemas: it makes the formulas of many plain sub-schemas in one call (``PlainReader``).

Invariant: the formulas are those of ``Meaning.entered``, under the same keys.
"""

from __future__ import annotations

import marshal

from tokenfst._native import PlainReader
from tokenfst.automata.json_schema.documents.keywords import KEYWORDS
from tokenfst.automata.json_schema.documents.source import SCALARS, Place
from tokenfst.automata.json_schema.reading.keys import FAR_DOWN
from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula, Kind

TYPE_KEY = frozenset({"type"})
"""Precedes the types in keys of formulas without other keywords."""
BITS = {name: 1 << number for number, name in enumerate(KEYWORDS)}
"""One bit for each keyword, so that the set of keywords of a schema is one number."""
READER = PlainReader(
    {**BITS, "$id": 1 << 63, "id": 1 << 63},
    SCALARS,
    TYPE_KEY,
    Place,
    Formula,
    Kind.ATOM,
    ANY,
    NONE,
    marshal.dumps,
    FAR_DOWN,
)
