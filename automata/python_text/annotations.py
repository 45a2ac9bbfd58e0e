"""Translation of annotations, dataclasses and signatures to a model of their Python text.

Two modules use the same model, so they always agree: ``objects`` writes it as expressions, and ``values`` parses text
by it. Classes and functions are ``Call`` nodes, one for each, completed from a worklist: they may refer to each other
in any way, and long chains do not use Python's stack.

Invariant of a finished model: every ``Call`` is complete, names are unique, and elements that must be hashable are.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import keyword
import types
import typing
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

from tokenfst.automata.languages.language import Language
from tokenfst.errors import AnnotationError


class Kind:
    """The values allowed at one position. Compared by identity."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Scalar(Kind):
    """A literal of ``type``, which is int, float, str or bytes. ``content``: the allowed strings of a str; ``None``:
    all.
    """

    type: type
    content: Language | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Constant(Kind):
    """One value: an int, a bool, None, a str or bytes; or, if ``name`` is not empty, the enum member with that name."""

    value: object
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Items(Kind):
    """A collection of any number of ``item``. ``type``: list, tuple, set or frozenset."""

    type: type
    item: Kind


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Fixed(Kind):
    """A tuple of a fixed length, with the kind of each item."""

    items: tuple[Kind, ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Pairs(Kind):
    """A dict of any number of keys and values."""

    key: Kind
    value: Kind


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Choice(Kind):
    """Any of the options."""

    options: tuple[Kind, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a call.

    ``optional``: whether it has a default. ``by_position``, ``by_name``: whether it may be passed so.
    """

    name: str
    kind: Kind
    optional: bool
    by_position: bool
    by_name: bool


@dataclasses.dataclass(eq=False)
class Call(Kind):
    """A call of ``target``, which is written as ``name``. The reader fills in ``parameters``."""

    target: Callable[..., Any]
    name: str
    parameters: tuple[Parameter, ...] = ()


_SCALARS = (int, float, str, bytes)
_ITEMS: dict[Any, type] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    collections.abc.Set: frozenset,
}
_PAIRS = (dict, collections.abc.Mapping)


class Reader:
    """Translates annotations and callables to a model; ``finish`` completes it."""

    def __init__(self) -> None:
        self.calls: dict[int, Call] = {}
        self._names: dict[str, object] = {"set": set, "frozenset": frozenset}
        self._waiting: list[Call] = []
        self._hashed: list[tuple[Kind, str]] = []

    def finish(self) -> None:
        """Complete all calls, then check hashability. Raises AnnotationError, which names ``class.field``."""
        while self._waiting:
            call = self._waiting.pop()
            call.parameters = tuple(self._parameters(call))
        for kind, where in self._hashed:
            self._check_hashable(kind, where)

    def call(self, target: Callable[..., Any]) -> Call:
        """The call of a class or function."""
        known = self.calls.get(id(target))
        if known is None:
            is_class = isinstance(target, type)
            full = getattr(target, "__qualname__" if is_class else "__name__", repr(target))
            known = self.calls[id(target)] = Call(target, full.rpartition("<locals>.")[2])
            self._claim(known.name, target)
            self._waiting.append(known)
        return known

    def read(self, annotation: Any, where: str) -> Kind:
        """The kind of an annotation. ``where``: its position, for errors. Raises AnnotationError."""
        if annotation is None or annotation is type(None):
            return Constant(None)
        if annotation is bool:
            return Choice((Constant(True), Constant(False)))
        if annotation in _SCALARS:
            return Scalar(annotation)
        if isinstance(annotation, dataclasses.InitVar):
            return self.read(annotation.type, where)
        if isinstance(annotation, typing.NewType):
            return self.read(annotation.__supertype__, where)
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is not None:
            return self._generic(annotation, origin, arguments, where)
        if isinstance(annotation, enum.EnumMeta):
            return self._members(annotation, where)
        if isinstance(annotation, type) and (
            dataclasses.is_dataclass(annotation) or _is_named_tuple(annotation)
        ):
            return self.call(annotation)
        if annotation in _ITEMS or annotation is tuple or annotation in _PAIRS:
            raise AnnotationError(where, f"{_shown(annotation)} says nothing of its items: write them in []")
        raise AnnotationError(
            where,
            f"{_shown(annotation)} is not supported: use int, float, bool, str, bytes, None, Literal, an enum, a "
            "dataclass, a NamedTuple, or list, tuple, set, frozenset, dict, Optional and Union of them",
        )

    # --- generic annotations --------------------------------------------------------------------------

    def _generic(self, annotation: Any, origin: Any, arguments: tuple[Any, ...], where: str) -> Kind:
        if origin is typing.Annotated:
            return self._annotated(annotation, where)
        if origin in (typing.Final, typing.Required, typing.NotRequired):
            return self.read(arguments[0], where)
        if origin is typing.Union or origin is types.UnionType:
            return Choice(tuple(self.read(each, where) for each in arguments))
        if origin is typing.Literal:
            return Choice(tuple(self._constant(each, where) for each in arguments))
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return Items(tuple, self.read(arguments[0], where))
            return Fixed(tuple(self.read(each, where) for each in arguments))
        if origin in _ITEMS:
            made = Items(_ITEMS[origin], self.read(arguments[0], where))
            if made.type in (set, frozenset):
                self._hashed.append((made.item, where))
            return made
        if origin in _PAIRS:
            key, value = (self.read(each, where) for each in arguments)
            self._hashed.append((key, where))
            return Pairs(key, value)
        raise AnnotationError(
            where, f"{_shown(annotation)} is not supported: {_shown(origin)} has no literal"
        )

    def _annotated(self, annotation: Any, where: str) -> Kind:
        made = self.read(annotation.__origin__, where)
        for extra in annotation.__metadata__:
            if isinstance(extra, Language):
                if not isinstance(made, Scalar) or made.type is not str:
                    raise AnnotationError(
                        where, "a Language in Annotated constrains the content of a str only"
                    )
                made = Scalar(str, extra if made.content is None else made.content & extra)
        return made

    def _constant(self, value: object, where: str) -> Kind:
        if isinstance(value, enum.Enum):
            return self._member(type(value), value.name, where)
        if isinstance(value, str) and any("\ud800" <= each <= "\udfff" for each in value):
            raise AnnotationError(where, f"{value!r} contains a lone surrogate, which UTF-8 cannot encode")
        return Constant(value)

    def _members(self, kind: enum.EnumMeta, where: str) -> Kind:
        if not kind.__members__:
            raise AnnotationError(where, f"the enum {kind.__qualname__} has no members")
        return Choice(tuple(self._member(kind, name, where) for name in kind.__members__))

    def _member(self, kind: Any, name: str, where: str) -> Kind:
        prefix = kind.__qualname__.rpartition("<locals>.")[2]
        self._claim(prefix, kind)
        if not _is_name(name):
            raise AnnotationError(where, f"the member {name!r} of {prefix} is no name that can be written")
        return Constant(kind[name], f"{prefix}.{name}")

    # --- calls ----------------------------------------------------------------------------------------

    def _claim(self, name: str, owner: object) -> None:
        """Text that says ``name`` means ``owner``."""
        if not all(_is_name(part) for part in name.split(".")):
            raise AnnotationError(name, "this is no name that a call can be written with")
        if self._names.setdefault(name, owner) is not owner:
            raise AnnotationError(
                name, "two classes or functions go by this name, so text could not tell which is meant"
            )

    def _parameters(self, call: Call) -> Iterable[Parameter]:
        try:
            signature = inspect.signature(call.target)
        except (ValueError, TypeError) as error:
            raise AnnotationError(call.name, f"it has no signature that can be read: {error}") from None
        hints = _hints(call)
        for parameter in signature.parameters.values():
            where = f"{call.name}.{parameter.name}"
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise AnnotationError(where, "a parameter for any number of arguments is not supported")
            if parameter.name not in hints:
                raise AnnotationError(where, "it has no annotation")
            yield Parameter(
                parameter.name,
                self.read(hints[parameter.name], where),
                parameter.default is not parameter.empty,
                parameter.kind is not parameter.KEYWORD_ONLY,
                parameter.kind is not parameter.POSITIONAL_ONLY,
            )

    def _check_hashable(self, root: Kind, where: str) -> None:
        seen: set[int] = set()
        stack = [root]
        while stack:
            kind = stack.pop()
            if id(kind) in seen:
                continue
            seen.add(id(kind))
            if isinstance(kind, Pairs) or (isinstance(kind, Items) and kind.type in (list, set)):
                name = "dict" if isinstance(kind, Pairs) else kind.type.__name__
                raise AnnotationError(
                    where, f"a {name} is not hashable, so it is no item of a set and no key of a dict"
                )
            if isinstance(kind, Items):
                stack.append(kind.item)
            elif isinstance(kind, (Fixed, Choice)):
                stack += kind.items if isinstance(kind, Fixed) else kind.options
            elif isinstance(kind, Call):
                if kind.target.__hash__ is None:
                    raise AnnotationError(
                        where, f"{kind.name} is not hashable: make it frozen, or set eq=False"
                    )
                if getattr(kind.target, "__hash__", None) is not object.__hash__:
                    stack += (parameter.kind for parameter in kind.parameters)


def _hints(call: Call) -> dict[str, Any]:
    """The annotations of a call's parameters."""
    target = call.target
    names = {getattr(target, "__name__", ""): target}
    sources: list[Any] = [target]
    if isinstance(target, type):
        generated = getattr(getattr(target, "__dataclass_params__", None), "init", False)
        init = getattr(target, "__init__", None)
        sources = [init, target] if generated else [target, init]
    hints: dict[str, Any] = {}
    failed: Exception | None = None
    for source in sources:
        try:
            hints |= typing.get_type_hints(source, localns=names, include_extras=True)
        except (NameError, TypeError, AttributeError, SyntaxError) as error:
            failed = error
    if failed is not None and not hints:
        raise AnnotationError(call.name, f"an annotation cannot be resolved: {failed}")
    return hints


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text) and unicodedata.normalize("NFKC", text) == text


def _shown(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)
