"""Parsing of Python text to values without ``eval``: the syntax tree of Python's own parser, matched against the model
of annotations.

Names are looked up only in the model: a name in the text is a class, function or enum member of the model, or the text
is rejected. Values are those that ``eval`` would give: literals as they are written (an int stays an int where a float
is allowed), duplicates in a set or dict dropped in the same way, constructors called with the same arguments in the
same way. Functions are not called.

Cost: linear in the tree times the options of a union, since a node is matched against each kind once. The algorithm is
a loop over generators, so deep text does not use Python's stack. ``ast.parse`` itself rejects more than 200 nested
brackets, and integers of more than 4,300 digits (``sys.set_int_max_str_digits``).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from tokenfst.automata.python_text.annotations import (
    Call,
    Choice,
    Constant,
    Fixed,
    Items,
    Kind,
    Pairs,
    Scalar,
)
from tokenfst.errors import ConstraintError

_Reading = Generator[tuple[ast.expr, Kind], Any, Any]
_NO = object()
"""The result for a node that does not match a kind."""


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A parsed call of a function, which has not been executed. ``call()`` executes it."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self) -> Any:
        """Call the function with the parsed arguments, and return its result."""
        return self.function(*self.args, **self.kwargs)


def read_value(text: str, kind: Kind) -> Any:
    """The value of a text that is a word of ``kind``.

    Raises ConstraintError if Python's own parser rejects the text. Exceptions of constructors propagate.
    """
    try:
        root = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConstraintError(f"Python's own parser refuses the text: {error}") from None
    known: dict[tuple[int, int], Any] = {}
    stack: list[tuple[tuple[int, int], _Reading]] = [((id(root), id(kind)), _reading(root, kind))]
    answer: Any = None
    while stack:
        key, reading = stack[-1]
        try:
            node, wanted = reading.send(answer)
        except StopIteration as finished:
            answer = known[key] = finished.value
            stack.pop()
            continue
        inner = id(node), id(wanted)
        if inner in known:
            answer = known[inner]
        else:
            stack.append((inner, _reading(node, wanted)))
            answer = None
    if answer is _NO:
        raise ConstraintError(f"{text!r} is a word, but its values fit no annotation")
    return answer


def _reading(node: ast.expr, kind: Kind) -> _Reading:
    """Reads ``node`` as ``kind``: yields the parts to read, is sent their values, and returns a value or ``_NO``."""
    match kind:
        case Scalar():
            return _scalar(node, kind)
        case Constant():
            return _constant(node, kind)
        case Choice():
            for option in kind.options:
                value = yield node, option
                if value is not _NO:
                    return value
            return _NO
        case Items():
            return (yield from _items(node, kind))
        case Fixed():
            if not isinstance(node, ast.Tuple) or len(node.elts) != len(kind.items):
                return _NO
            return (yield from _all(list(zip(node.elts, kind.items, strict=True)), tuple))
        case Pairs():
            return (yield from _pairs(node, kind))
        case Call():
            return (yield from _call(node, kind))
    raise AssertionError(f"no such kind: {kind!r}")


def _all(parts: list[tuple[ast.expr, Kind]], make: Callable[[list[Any]], Any]) -> _Reading:
    values = []
    for part in parts:
        value = yield part
        if value is _NO:
            return _NO
        values.append(value)
    return make(values)


def _literal(node: ast.expr) -> Any:
    """The value of a literal, which may have a sign."""
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        value = node.operand.value
        return -value if isinstance(value, (int, float)) and not isinstance(value, bool) else _NO
    return node.value if isinstance(node, ast.Constant) else _NO


def _scalar(node: ast.expr, kind: Scalar) -> Any:
    value = _literal(node)
    return value if type(value) in ((int, float) if kind.type is float else (kind.type,)) else _NO


def _constant(node: ast.expr, kind: Constant) -> Any:
    if kind.name:
        return kind.value if _dotted(node) == kind.name else _NO
    value = _literal(node)
    return value if type(value) is type(kind.value) and value == kind.value else _NO


_DISPLAYS: dict[type[ast.expr], type] = {ast.List: list, ast.Tuple: tuple, ast.Set: set}


def _items(node: ast.expr, kind: Items) -> _Reading:
    inner: ast.expr = node
    if (
        kind.type in (set, frozenset)
        and isinstance(node, ast.Call)
        and _dotted(node.func) == kind.type.__name__
    ):
        if not node.args:
            return kind.type()
        inner = node.args[0] if kind.type is frozenset else node
    elif kind.type is frozenset:
        return _NO
    if not isinstance(inner, (ast.List, ast.Tuple, ast.Set)) or _DISPLAYS[type(inner)] is not (
        set if kind.type is frozenset else kind.type
    ):
        return _NO
    return (yield from _all([(each, kind.item) for each in inner.elts], kind.type))


def _pairs(node: ast.expr, kind: Pairs) -> _Reading:
    if not isinstance(node, ast.Dict):
        return _NO
    parts: list[tuple[ast.expr, Kind]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            return _NO
        parts += ((key, kind.key), (value, kind.value))
    return (yield from _all(parts, lambda values: dict(zip(values[::2], values[1::2], strict=True))))


def _call(node: ast.expr, kind: Call) -> _Reading:
    if not isinstance(node, ast.Call) or _dotted(node.func) != kind.name:
        return _NO
    named = {parameter.name: parameter for parameter in kind.parameters}
    parts = [(each, parameter.kind) for each, parameter in zip(node.args, kind.parameters, strict=False)]
    parts += ((each.value, named[each.arg].kind) for each in node.keywords if each.arg in named)
    if len(parts) != len(node.args) + len(node.keywords):
        return _NO
    keys = [each.arg for each in node.keywords if each.arg is not None]

    def make(values: list[Any]) -> Any:
        args, kwargs = values[: len(node.args)], dict(zip(keys, values[len(node.args) :], strict=True))
        if isinstance(kind.target, type):
            return kind.target(*args, **kwargs)
        return PythonCall(kind.target, tuple(args), kwargs)

    return (yield from _all(parts, make))


def _dotted(node: ast.expr) -> str:
    """``a.b.c`` as written, or nothing."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""
