"""Checks of the arguments of public calls against the annotations of their parameters.

The idea: a signature already says what an argument must be. ``checked`` reads it once, at the first call. From then on
an argument of another type raises an ArgumentTypeError that names the call, the argument, the value and the allowed
types; an integer of more than 64 bits and NaN raise an ArgumentValueError. Other conditions (not negative, one of some
names, not empty) are checked by the function itself.

numpy's integers count as integers and its booleans as booleans; a bool does not count as an integer. A value fits a
protocol if it has the protocol's attributes. A class that is imported for type checking only is compared by its name,
so a check imports nothing. ``Any``, and annotations that cannot be read, accept everything.

Cost: about 1 µs a call. Calls that run for every token check their arguments themselves.
"""

from __future__ import annotations

import builtins
import collections.abc
import functools
import inspect
import math
import operator
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeVar, Union

from tokenfst.errors import ArgumentTypeError, ArgumentValueError

_T = TypeVar("_T")
_LARGEST = 2**63 - 1
_SHOWN = 60
"""Characters of a value in a message."""


class Mismatch(Exception):
    """A value that an annotation does not allow. ``error``: the class to raise. ``wanted``: the allowed values, in
    words. ``part``: the place of the value ``got`` within the argument.
    """

    def __init__(
        self, wanted: str, error: type[Exception] = ArgumentTypeError, part: str = "", got: object = None
    ) -> None:
        super().__init__(wanted)
        self.wanted, self.error, self.part, self.got = wanted, error, part, got


def shown(value: object) -> str:
    """A value for a message: at most a line of it, and its type unless that is obvious."""
    if value is None or isinstance(value, bool):
        return str(value)
    name = type(value).__name__
    if isinstance(value, int) and not -(10**_SHOWN) < value < 10**_SHOWN:
        return f"an integer of {value.bit_length():,} bits"
    if not isinstance(value, str | bytes | int | float):
        shape = getattr(value, "shape", None)
        if shape == () and type(value).__module__ == "numpy":  # a number
            return f"{value} ({_a(name)})"
        if isinstance(shape, tuple):
            return f"a {name} of shape {tuple(shape)}"
        return f"the class {value.__qualname__}" if isinstance(value, type) else f"a {name}"
    text = repr(value[:_SHOWN] if isinstance(value, str | bytes) else value)
    return f"{text if len(text) <= _SHOWN else text[:_SHOWN] + '…'} ({_a(name)})"


def refuse(
    call: str, name: str, value: object, wanted: str, error: type[Exception] = ArgumentTypeError
) -> NoReturn:
    """Raise the error for an argument that does not fit. If ``remedies`` knows how to make one that fits, the message
    ends with that.
    """
    from tokenfst.common.remedies import remedy

    found = remedy(wanted, value, name)
    raise error(f"{call}: {name} must be {wanted}, not {shown(value)}{found and f': {found}'}") from None


def whole(call: str, name: str, value: object, low: int = -_LARGEST - 1, high: int = _LARGEST) -> int:
    """``value`` as an int from ``low`` to ``high``."""
    try:
        found = integer(value)
    except Mismatch as mismatch:
        refuse(call, name, value, mismatch.wanted, mismatch.error)
    if not low <= found <= high:
        bound = f"at least {low:,}" if found < low else f"at most {high:,}"
        refuse(call, name, value, bound, ArgumentValueError)
    return found


def real(call: str, name: str, value: object) -> float:
    """``value`` as a number other than NaN."""
    try:
        found: float = _read(value, [_PLAIN[float]])
    except Mismatch as mismatch:
        refuse(call, name, value, mismatch.wanted, mismatch.error)
    return found


# --- what a value must be -----------------------------------------------------------------------------
#
# A reader takes a value and gives it back as the function gets it, or raises Mismatch.

Reader = Callable[[Any], Any]


class Expected(typing.NamedTuple):
    """One alternative of an annotation: its description in words, a test whether a value is meant as this alternative,
    and a reader, which checks and converts the value.
    """

    words: str
    fits: Callable[[Any], bool]
    read: Reader | None = None
    exact: tuple[type, ...] = ()
    """Types whose values need no reading."""


def integer(value: Any) -> int:
    """An integer that fits into 64 bits."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or getattr(value, "shape", ()) != ():
        raise Mismatch("an integer")
    try:
        found = operator.index(value)
    except TypeError:  # numpy's booleans
        raise Mismatch("an integer") from None
    if not -_LARGEST - 1 <= found <= _LARGEST:
        raise Mismatch("an integer from -2^63 to 2^63 - 1", ArgumentValueError)
    return found


def _number(value: Any) -> Any:
    if math.isnan(value):
        raise Mismatch("a number", ArgumentValueError)
    return value


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}:
        return False
    if isinstance(value, int):
        return abs(value) <= _LARGEST
    return isinstance(value, float) or (hasattr(value, "__float__") and getattr(value, "shape", None) == ())


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}


_PLAIN: dict[object, Expected] = {
    int: Expected("an integer", lambda value: hasattr(value, "__index__"), integer),
    float: Expected("a number", _is_number, _number),
    bool: Expected("True or False", _is_bool, bool, (bool,)),
    str: Expected("text", lambda value: isinstance(value, str), None, (str,)),
    bytes: Expected(
        "bytes", lambda value: isinstance(value, bytes | bytearray | memoryview), bytes, (bytes,)
    ),
    None: Expected("None", lambda value: value is None, None, (type(None),)),
}
_PLAIN[type(None)] = _PLAIN[None]
_WHOLE = _PLAIN[int]
_CONTAINERS: dict[object, tuple[str, Callable[[Any], bool]]] = {
    collections.abc.Sequence: ("a sequence", lambda value: _is_sequence(value)),
    collections.abc.Iterable: ("an iterable", lambda value: _is_iterable(value)),
    collections.abc.Collection: ("a collection", lambda value: isinstance(value, collections.abc.Collection)),
    collections.abc.Mapping: ("a mapping", lambda value: isinstance(value, Mapping)),
    list: ("a list", lambda value: isinstance(value, list)),
    dict: ("a dict", lambda value: isinstance(value, dict)),
    tuple: ("a tuple", lambda value: isinstance(value, tuple)),
}
_ANYTHING = frozenset({"ArrayLike", "NDArray", "Buffer"})
"""Names of annotations that are not classes: the called function checks these arguments itself."""


def _is_iterable(value: Any) -> bool:
    """Whether a value is an iterable of several things. A constraint is iterable too, but counts as one thing
    (``never_a_list``), because iterating over its texts may never end.
    """
    return hasattr(value, "__iter__") and not getattr(value, "never_a_list", False)


def _is_sequence(value: Any) -> bool:
    """Whether a value has a length and is indexed by numbers, like lists, arrays and tensors."""
    counted = hasattr(value, "__getitem__") and hasattr(value, "__len__")
    return counted and not isinstance(value, Mapping | type) and getattr(value, "shape", None) != ()


def _a(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


def _fit(numbers: Iterable[int]) -> bool:
    return min(numbers) >= -_LARGEST - 1 and max(numbers) <= _LARGEST


def _plural(words: str) -> str:
    if words in ("None", "bytes", "text", "True or False"):
        return {"text": "texts", "True or False": "booleans"}.get(words, words)
    article, _, rest = words.partition(" ")
    if article not in ("a", "an"):
        return words
    noun, of, inner = rest.partition(" of ")
    return f"{noun}{'' if noun.endswith('s') else 's'}{of}{inner}" if noun[0].islower() else f"{noun} objects"


def _class(kind: type) -> Expected:
    if kind.__name__ == "Tensor":
        return _named("Tensor")
    return Expected(_a(kind.__name__), lambda value: isinstance(value, kind))


def _named(name: str) -> Expected:
    """A class that is known by its name alone."""
    read = _with_data if name == "Tensor" else None
    return Expected(_a(name), lambda value: any(each.__name__ == name for each in type(value).__mro__), read)


def _with_data(value: Any) -> Any:
    """The tensor, if it has data, which tensors on the device ``meta`` do not have."""
    if value.is_meta:
        raise Mismatch("a tensor with data, on another device than meta", ArgumentValueError)
    return value


def _protocol(kind: type) -> Expected:
    """A protocol: a value fits if it has the protocol's public attributes."""
    parts = [
        each for each in kind.__mro__ if getattr(each, "_is_protocol", False) and each is not typing.Protocol
    ]
    names = {name for each in parts for name in (*vars(each), *getattr(each, "__annotations__", ()))}
    needed = sorted(name for name in names if not name.startswith("_"))
    return Expected(
        f"{_a(kind.__name__)} (with {', '.join(needed)})",
        lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in needed),
    )


def _container(kind: object, parts: tuple[object, ...], scope: Scope) -> Expected:
    words, fits = _CONTAINERS[kind]
    if len(parts) != 1 or kind is tuple:
        return Expected(words, fits)
    inner = _alternatives(parts[0], scope)
    if inner is None:
        return Expected(words, fits)

    texts, numbers = _PLAIN[str] in inner, any("integers" in _plural(each.words) for each in inner)

    def is_one(value: Any) -> bool:  # a text is one text, not a sequence of its letters
        return fits(value) and not isinstance(value, (str, bytes, bytearray) if texts else str)

    plain = frozenset(
        {kind for each in inner for kind in each.exact} | ({int} if _PLAIN[int] in inner else set())
    )
    many = f"{words} of {_either([_plural(each.words) for each in inner])}"

    def read(value: Any) -> Any:
        if hasattr(value, "shape") and numbers:
            if not str(value.dtype).removeprefix("torch.").startswith(("int", "uint")):
                raise Mismatch(many)
            return value
        if getattr(value, "shape", None) is not None and not all(each.exact for each in inner):
            raise Mismatch(many)
        if not isinstance(value, collections.abc.Collection):
            value = list(value)
        kinds = set(map(type, value))
        if kinds <= plain and (int not in kinds or (len(kinds) == 1 and _fit(value))):
            return value
        for place, each in enumerate(value):
            try:
                _read(each, inner)
            except Mismatch as mismatch:
                got = mismatch.got if mismatch.part else each
                raise Mismatch(mismatch.wanted, mismatch.error, f"[{place}]{mismatch.part}", got) from None
        return value

    return Expected(many, is_one, read)


class _Name:
    """A name in an annotation that is imported for type checking only: a class that is known by its name, with any
    parameters in brackets.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> _Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Name(name)

    def __getitem__(self, _: object) -> _Name:
        return self

    def __or__(self, other: object) -> _Either:
        return _Either((self, other))

    def __ror__(self, other: object) -> _Either:
        return _Either((other, self))


class _Either:
    def __init__(self, parts: tuple[object, ...]) -> None:
        self.parts = parts

    def __or__(self, other: object) -> _Either:
        return _Either((*self.parts, other))

    def __ror__(self, other: object) -> _Either:
        return _Either((other, *self.parts))


class Scope(dict[str, Any]):
    """The names that an annotation may use: those of its module, of the containers, and all others as classes that are
    known by their names.
    """

    def __missing__(self, name: str) -> Any:
        for place in (builtins, collections.abc, typing):
            if hasattr(place, name):
                return getattr(place, name)
        return _Name(name)


def _alternatives(kind: object, scope: Scope) -> list[Expected] | None:  # noqa: C901  # one case a kind
    """What a value may be; ``None``: anything."""
    if isinstance(kind, str | typing.ForwardRef):
        text = kind if isinstance(kind, str) else kind.__forward_arg__
        try:
            # An annotation of this package, with builtins for the libraries in it: numpy 2.4 imports a module in one.
            kind = eval(text, {"__builtins__": builtins}, scope)
        except (TypeError, SyntaxError):
            return None
        if isinstance(kind, str):  # an alias that is written as text
            return _alternatives(kind, scope)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, _Either) or origin in (Union, types.UnionType):
        found: list[Expected] = []
        for part in kind.parts if isinstance(kind, _Either) else parts:
            inner = _alternatives(part, scope)
            if inner is None:
                return None
            found += [each for each in inner if each not in found]
        return _places(found)
    if kind in _PLAIN:
        return [_PLAIN[kind]]
    if origin is Literal:
        return [*{id(_PLAIN[type(part)]): _PLAIN[type(part)] for part in parts}.values()]
    if isinstance(kind, _Name):
        return None if kind.name in _ANYTHING else [_named(kind.name)]
    if kind in _CONTAINERS or origin in _CONTAINERS:
        return [_container(origin or kind, parts, scope)]
    if kind is collections.abc.Callable or origin is collections.abc.Callable:
        return [Expected("a function", callable)]
    if kind is os.PathLike or origin is os.PathLike:
        return [Expected("a path", lambda value: isinstance(value, os.PathLike))]
    kind = origin or kind
    if not isinstance(kind, type) or kind in (object, Any):
        return None
    if getattr(kind, "_is_protocol", False):
        return [_protocol(kind)]
    return [_class(kind)]


def _places(found: list[Expected]) -> list[Expected]:
    """The alternatives, with text read as a path if paths are also allowed, or as a device if devices are."""
    words = {each.words for each in found}
    text = _PATH if "a path" in words else _DEVICE if "a device" in words else None
    return found if text is None else [text if each is _PLAIN[str] else each for each in found]


def _path(value: str) -> str:
    try:
        if b"\0" not in os.fsencode(value):
            return value
    except UnicodeEncodeError:
        pass
    raise Mismatch("a path that a file can have", ArgumentValueError)


def _device(value: str) -> str:
    import torch  # a caller that names a device has torch installed

    try:
        torch.empty(0, device=value)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise Mismatch("a device that torch has here", ArgumentValueError) from None
    return value


_PATH = Expected("text", _PLAIN[str].fits, _path)
_DEVICE = Expected("text", _PLAIN[str].fits, _device)


def _read(value: Any, wanted: list[Expected]) -> Any:
    """``value`` as read by the first of the alternatives that it fits. Raises ``Mismatch`` if it fits none."""
    for each in wanted:
        if each.fits(value):
            return value if each.read is None else each.read(value)
    raise Mismatch(_either([each.words for each in wanted]))


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


# --- calls --------------------------------------------------------------------------------------------


class _Check(typing.NamedTuple):
    """What a parameter wants: ``exact`` types pass without a look at the value."""

    name: str
    exact: set[type]
    wanted: list[Expected]


class _Checks:
    """The checks of the parameters of one function, by position (``None``: no check) and by name."""

    def __init__(self, function: Callable[..., Any], call: str, own: tuple[str, ...]) -> None:
        self.call = call
        self.by_name: dict[str, _Check] = {}
        self.by_place: list[_Check | None] = []
        scope = Scope(vars(sys.modules[function.__module__]))
        for parameter in inspect.signature(function).parameters.values():
            wanted = None
            if parameter.annotation is not parameter.empty and parameter.name not in own:
                wanted = _alternatives(parameter.annotation, scope)
            found = None
            if wanted is not None:
                found = _Check(parameter.name, {kind for each in wanted for kind in each.exact}, wanted)
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                self.by_place.append(found)
            if found is not None and parameter.kind in (
                parameter.POSITIONAL_OR_KEYWORD,
                parameter.KEYWORD_ONLY,
            ):
                self.by_name[parameter.name] = found
        self.exact = [None if check is None else check.exact for check in self.by_place]

    def read_places(self, args: tuple[Any, ...]) -> list[Any]:
        """The arguments given by place, as the function gets them."""
        checks = self.by_place + [None] * (len(args) - len(self.by_place))
        return [
            value if check is None or type(value) in check.exact else self.read(value, check)
            for value, check in zip(args, checks, strict=False)
        ]

    def read(self, value: Any, check: _Check) -> Any:
        """The value as the function gets it; TypeError or ValueError where it does not fit."""
        if type(value) is int and check.wanted[0] is _WHOLE and -_LARGEST <= value <= _LARGEST:
            return value
        try:
            read = _read(value, check.wanted)
        except Mismatch as mismatch:
            got = mismatch.got if mismatch.part else value
            refuse(self.call, check.name + mismatch.part, got, mismatch.wanted, mismatch.error)
        if all(each.read is None for each in check.wanted) and not hasattr(value, "shape"):
            check.exact.add(type(value))  # a class that was found to fit
        return read


def checked(function: _T) -> _T:
    """``function``, called only with arguments that fit its annotations."""
    return checked_but()(function)


def checked_but(*own: str) -> Callable[[_T], _T]:
    """``checked``, except for the parameters ``own``, which the function checks itself, with its own messages."""

    def decorate(function: _T) -> _T:
        plain = typing.cast("Callable[..., Any]", function)
        name = plain.__qualname__.removesuffix(".__init__")
        return typing.cast("_T", _wrapped(plain, name, own))

    return decorate


def _wrapped(function: Callable[..., Any], name: str, own: tuple[str, ...]) -> Callable[..., Any]:
    checks: _Checks | None = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checks
        if checks is None:
            checks = _Checks(function, name, own)
        given: Sequence[Any] = args
        for value, exact in zip(args, checks.exact, strict=False):
            if exact is not None and type(value) not in exact:
                given = checks.read_places(args)
                break
        for parameter, value in kwargs.items():
            check = checks.by_name.get(parameter)
            if check is not None and type(value) not in check.exact:
                kwargs[parameter] = checks.read(value, check)
        return function(*given, **kwargs)

    return call
