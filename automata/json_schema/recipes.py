"""How a schema's constraint is made again: the schema as it was when it was read, and the options.

The expressions of a schema take about ten times the memory of its text. So an automaton that only needs its constraint
for messages holds a recipe (``Constraint.recipe``).

The schema is kept in the form of ``marshal``, which writes and reads exactly the objects that JSON has, and refuses
others: numbers stay ints and floats, and names keep their order. It never leaves the process in this form. Large ones
are compressed: that takes about a hundredth of the time that their constraints take.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenfst.automata.languages.constraint import Constraint

_LARGE = 16_000
"""Bytes from which a schema is compressed."""


@dataclass(slots=True, eq=False)
class Recipe:
    """A call of ``make`` with a schema and options: their names and values."""

    make: Callable[..., Constraint]
    written: bytes
    is_compressed: bool
    names: tuple[str, ...]
    values: tuple[Any, ...]

    def __call__(self) -> Constraint:
        """The constraint. Raises what ``make`` raises, if it exceeds its budget now."""
        return self.make(self.schema, **dict(zip(self.names, self.values, strict=True)))

    @property
    def schema(self) -> Any:
        """A copy of the schema."""
        return marshal.loads(zlib.decompress(self.written) if self.is_compressed else self.written)

    def __reduce__(self) -> tuple[Any, ...]:
        return recipe_for, (self.make, self.schema, self.names, self.values)


def recipe_for(
    make: Callable[..., Constraint], schema: Any, names: tuple[str, ...], values: tuple[Any, ...]
) -> Recipe | None:
    """The recipe of a schema; ``None`` if it has other objects than dicts, lists, strings, numbers and constants."""
    try:
        written = marshal.dumps(schema)
    except ValueError:
        return None
    if len(written) < _LARGE:
        return Recipe(make, written, False, names, values)
    return Recipe(make, zlib.compress(written, 1), True, names, values)
