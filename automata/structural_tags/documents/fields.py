"""The fields of one object of a document: each is taken out once and has its type, or an error with its JSON pointer.

A field that is left over when ``Fields.close`` is called is not a field of that format, and is rejected.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from tokenfst.automata.json_schema.documents.schema_texts import escape
from tokenfst.common.arguments import shown
from tokenfst.common.json_objects import RepeatedNameError, unique_names
from tokenfst.errors import StructuralTagError

_T = TypeVar("_T")
_LARGEST = 2**31 - 1
"""The largest bound that the definition of structural tags allows."""


def parsed(text: str) -> Any:
    """The value of a JSON text. Raises StructuralTagError, also if an object has a name twice."""
    try:
        return json.loads(text, object_pairs_hook=unique_names)
    except RepeatedNameError as error:
        raise StructuralTagError("#", f"the name {error.name!r} occurs twice in one object") from None
    except ValueError as error:  # also a number of thousands of digits, which Python does not read
        raise StructuralTagError("#", f"is not valid JSON: {error}") from None
    except RecursionError:
        pass
    raise StructuralTagError("#", "the JSON text is nested too deeply")


def refuse_unknown(pointer: str, name: str, known: Any, what: str) -> NoReturn:
    """Raise StructuralTagError for a name that is not in ``known``. The message suggests similar names."""
    near = difflib.get_close_matches(name, list(known), 3)
    hint = (
        f"did you mean {' or '.join(map(repr, near))}?"
        if near
        else f"there are {', '.join(map(repr, known))}"
    )
    raise StructuralTagError(pointer, f"{name!r} is not {what}: {hint}")


class Fields:
    """The fields of one object of the document.

    Each method takes a field out and returns its value, or the default if it is missing. A missing field without a
    default, and a value of the wrong type, raise StructuralTagError.
    """

    def __init__(self, value: Any, pointer: str) -> None:
        if hasattr(value, "model_dump"):
            value = value.model_dump(by_alias=True)
        if not isinstance(value, Mapping):
            raise StructuralTagError(pointer, f"must be an object, not {shown(value)}")
        for name in value:
            if not isinstance(name, str):
                raise StructuralTagError(pointer, f"the name of a field must be a string, not {shown(name)}")
        self.left = dict(value)
        self.taken: list[str] = []
        self.pointer = pointer

    def at(self, name: str, *rest: int) -> str:
        """The JSON pointer of a field, or of an item in it."""
        return "/".join([self.pointer, escape(name), *map(str, rest)])

    def take(self, name: str, default: Any = None, *, required: bool = True) -> Any:
        """The value of a field, whatever its type."""
        self.taken.append(name)
        if name in self.left:
            return self.left.pop(name)
        if required:
            raise StructuralTagError(self.pointer, f"the field {name!r} is missing")
        return default

    def close(self, kind: str) -> None:
        """Raise StructuralTagError for a field that was not taken. ``kind``: the format's name, for the message."""
        for name in self.left:
            near = difflib.get_close_matches(name, self.taken, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, self.taken))}"
            raise StructuralTagError(self.at(name), f"{kind!r} has no field {name!r}: {hint}")

    def text(self, name: str, default: str | None = None) -> str:
        """The value of a field that is a string."""
        return text_of(self.take(name, default, required=default is None), self.at(name))

    def flag(self, name: str, default: bool) -> bool:
        """The value of a field that is a boolean."""
        value = self.take(name, default, required=False)
        if not isinstance(value, bool):
            raise StructuralTagError(self.at(name), f"must be true or false, not {shown(value)}")
        return value

    def bound(self, name: str) -> int | None:
        """The value of a field that is an integer of at least 0, or null."""
        value = self.take(name, required=False)
        return None if value is None else whole(value, self.at(name), 0)

    def items(self, name: str, read: Callable[[Any, str], _T], *, required: bool = False) -> tuple[_T, ...]:
        """The items of a field that is a list, each converted by ``read``. ``required``: at least one item."""
        value = self.take(name, (), required=required)
        if not isinstance(value, (list, tuple)):
            raise StructuralTagError(self.at(name), f"must be a list, not {shown(value)}")
        if required and not value:
            raise StructuralTagError(self.at(name), "must have at least one item")
        return tuple(read(each, self.at(name, number)) for number, each in enumerate(value))

    def excludes(self) -> tuple[str, ...]:
        """The strings of the field ``excludes``, which a text must not contain."""
        return self.items("excludes", filled)


def text_of(value: Any, pointer: str) -> str:
    """The value if it is a string that UTF-8 can encode; otherwise raises StructuralTagError."""
    if not isinstance(value, str):
        raise StructuralTagError(pointer, f"must be a string, not {shown(value)}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise StructuralTagError(pointer, "contains a lone surrogate, which UTF-8 cannot encode")
    return value


def filled(value: Any, pointer: str) -> str:
    """The value if it is a string with at least one character; otherwise raises StructuralTagError."""
    found = text_of(value, pointer)
    if not found:
        raise StructuralTagError(pointer, "must not be empty: remove it")
    return found


def whole(value: Any, pointer: str, low: int) -> int:
    """The value if it is an integer of at least ``low`` that is not too large; otherwise raises StructuralTagError."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= _LARGEST:
        raise StructuralTagError(pointer, f"must be an integer from {low} to {_LARGEST}, not {shown(value)}")
    return value
