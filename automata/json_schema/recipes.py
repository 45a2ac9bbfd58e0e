"""Recipes: how a schema's constraint is made again, from the schema as it was when it was read and the options.

The expressions of a schema take about ten times the memory of its text. So an automaton that needs its constraint only
for messages holds a recipe (``Constraint.recipe``).

The schema is stored in the format of ``marshal``, which keeps JSON values as they are (numbers stay ints and floats,
names keep their order) and rejects objects of other classes, such as decimals. The stored schema never leaves the
process. Large ones are compressed, which takes about a hundredth of the time that their constraints take.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenfst.automata.languages.constraint import Constraint

_LARGE = 16_000
"""The number of bytes from which a schema is compressed."""


@dataclass(slots=True, eq=False)
class Recipe:
    """A call of ``make`` with a schema and keyword arguments, given by their ``names`` and ``values``."""

    make: Callable[..., Constraint]
    written: bytes
    is_compressed: bool
    names: tuple[str, ...]
    values: tuple[Any, ...]

    def __call__(self) -> Constraint:
        """The constraint. Raises what ``make`` raises, for instance if it exceeds its budget this time."""
        return self.make(self.schema, **dict(zip(self.names, self.values, strict=True)))

    @property
    def schema(self) -> Any:
        """A copy of the schema."""
        return marshal.loads(zlib.decompress(self.written) if self.is_compressed else self.written)

    def __reduce__(self) -> tuple[Any, ...]:
        return _recipe_of, (self.make, flattened(self.schema), self.names, self.values)


def _recipe_of(
    make: Callable[..., Constraint], schema: Flat, names: tuple[str, ...], values: tuple[Any, ...]
) -> Recipe | None:
    return recipe_for(make, nested(schema), names, values)


def recipe_for(
    make: Callable[..., Constraint], schema: Any, names: tuple[str, ...], values: tuple[Any, ...]
) -> Recipe | None:
    """The recipe of a schema; ``None`` if it contains objects that ``marshal`` does not write, such as decimals."""
    try:
        written = marshal.dumps(schema)
    except ValueError:
        return None
    if len(written) < _LARGE:
        return Recipe(make, written, False, names, values)
    return Recipe(make, zlib.compress(written, 1), True, names, values)


# --- pickles ---

Flat = list[tuple[str, ...] | int | list[Any]]
"""A JSON value without nesting, for ``pickle``, which recurs for each level and fails at about 500 of them.

It has the parts in the order of the text: a dict is the tuple of its names, followed by its values; a list is its
length, followed by its items; anything else is a list with the value alone.
"""


def flattened(value: Any) -> Flat:
    """The flat form of a value. Mappings and sequences of other types than dict and list are not divided."""
    found: Flat = []
    stack = [value]
    while stack:
        each = stack.pop()
        if type(each) is dict:
            found.append(tuple(each))
            stack += reversed(each.values())
        elif type(each) is list:
            found.append(len(each))
            stack += reversed(each)
        else:
            found.append([each])
    return found


def nested(parts: Flat) -> Any:
    """The value of a flat form."""
    stack: list[Any] = []  # the values after a part, the next one last
    for part in reversed(parts):
        if isinstance(part, list):
            stack.append(part[0])
            continue
        count = part if isinstance(part, int) else len(part)
        values = [stack.pop() for _ in range(count)]
        stack.append(values if isinstance(part, int) else dict(zip(part, values, strict=True)))
    return stack[0]
