"""Python objects as text: constructor calls of dataclasses, calls of functions, and values of any annotation.

Annotations are translated to a model (``annotations``). Here the model becomes a grammar with a rule for each class and
function; it is a language if no class contains itself. ``parse`` reads text back by the same model (``values``), so
text and value always agree.

The layout is fixed, that of ``repr``: ``, `` between items, ``: `` in dicts, no other white space; ``name=value``;
``(x,)`` for a tuple of one; ``set()`` and ``frozenset()`` for empty ones. Arguments are in the order of the signature.

Cost: linear in the classes, fields and annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from tokenfst.automata.expressions.expression import EMPTY, EPSILON, Expr, call, concat, literal, union
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.display.readable import shorten
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import encode
from tokenfst.automata.pieces.text import listed
from tokenfst.automata.python_text import literals
from tokenfst.automata.python_text.annotations import (
    Call,
    Choice,
    Constant,
    Fixed,
    Items,
    Kind,
    Pairs,
    Reader,
    Scalar,
)
from tokenfst.automata.python_text.values import PythonCall, read_value
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import ConstraintError, EmptyLanguageError

__all__ = ["PythonCall", "PythonGrammar", "PythonLanguage", "python_calls", "python_object"]

Arguments = Literal["keyword", "positional", "any"]
Defaults = Literal["any", "write", "omit"]
_START = "value"
_COMMA = literal(b", ")
_SHOWN = 40


class PythonLanguage(Language):
    """The language of the text of Python values. ``parse`` returns the value of a text."""

    __slots__ = ("_value_kind",)

    def __init__(self, expr: Expr, source: str, budget: Budget | None, kind: Kind) -> None:
        super().__init__(expr, source, budget)
        self._value_kind = kind

    def parse(self, text: str | bytes) -> Any:
        """The value of ``text``: constructors create instances, and calls of functions are ``PythonCall`` values.

        Nothing is evaluated, and functions are not called. Raises ConstraintError for text that is not in the language,
        or that Python's own parser rejects; exceptions of a constructor propagate.
        """
        return _parse(self, self._value_kind, text)


class PythonGrammar(Grammar):
    """The grammar of the text of Python values whose classes contain themselves. ``parse`` returns a text's value."""

    __slots__ = ("_value_kind",)

    def __init__(self, rules: Mapping[str, Expr], source: str, budget: Budget | None, kind: Kind) -> None:
        super().__init__(rules, _START, source=source, budget=budget)
        self._value_kind = kind

    def parse(self, text: str | bytes) -> Any:
        """As ``PythonLanguage.parse``."""
        return _parse(self, self._value_kind, text)


@checked
def python_object(
    annotation: Any,
    *,
    arguments: Arguments = "keyword",
    defaults: Defaults = "any",
    budget: Budget | None = None,
) -> PythonLanguage | PythonGrammar:
    """The source text of the values of an annotation; for a dataclass, its constructor calls.

    Supported are int, float, bool, str, bytes, None, ``Literal``, enums, dataclasses, NamedTuples, list, tuple, set,
    frozenset, dict, ``Optional``, ``Union``, ``NewType``, and ``Annotated[str, language]`` for a string whose content
    is in a language. ``arguments``: ``"keyword"``, as ``repr`` writes them; ``"positional"``; or ``"any"``: some by
    position, the rest by keyword. ``defaults``: whether arguments that have a default may be omitted (``"any"``), are
    always written (``"write"``) or never (``"omit"``).

    Returns a grammar if classes contain themselves, else a language. Raises AnnotationError, which names
    ``class.field``; EmptyLanguageError if every value would be infinite; ConstraintError for invalid options;
    BudgetExceeded.
    """
    reader = Reader()
    kind = reader.read(annotation, _name(annotation))
    return _made(reader, kind, f"python_object({_name(annotation)})", arguments, defaults, budget)


@checked
def python_calls(
    functions: Iterable[Callable[..., Any]],
    *,
    arguments: Arguments = "keyword",
    defaults: Defaults = "any",
    budget: Budget | None = None,
) -> PythonLanguage | PythonGrammar:
    """The source text of calls of any of ``functions``, by their annotated signatures.

    ``parse`` returns a ``PythonCall`` for a function, and an instance for a class. The other parameters and the errors
    are those of ``python_object``; ConstraintError also if there are no functions.
    """
    reader = Reader()
    targets = list(functions)
    kind = Choice(tuple(reader.call(target) for target in targets))
    names = ", ".join(_name(target) for target in targets)
    if not targets:
        raise ConstraintError("python_calls needs at least one function")
    return _made(reader, kind, f"python_calls([{names}])", arguments, defaults, budget)


def _made(
    reader: Reader, kind: Kind, source: str, arguments: str, defaults: str, budget: Budget | None
) -> PythonLanguage | PythonGrammar:
    if arguments not in ("keyword", "positional", "any"):
        raise ConstraintError(f"arguments must be one of 'keyword', 'positional', 'any', not {arguments!r}")
    if defaults not in ("any", "write", "omit"):
        raise ConstraintError(f"defaults must be one of 'any', 'write', 'omit', not {defaults!r}")
    reader.finish()
    rules = {_START: _expr(kind)}
    for each in reader.calls.values():
        rules[_rule(each)] = _call(each, arguments, defaults)
    grammar = PythonGrammar(rules, source, budget, kind)
    if grammar.is_empty():
        raise EmptyLanguageError(
            f"{source} has no value: every one would contain another of its class, without end"
        )
    if grammar.is_recursive():
        return grammar
    return PythonLanguage(grammar.to_language().expr, source, budget, kind)


# --- text ---------------------------------------------------------------------------------------------


def _rule(each: Call) -> str:
    return f"{each.name}(...)"


def _expr(kind: Kind) -> Expr:
    """The text of a kind; calls are calls of rules."""
    match kind:
        case Scalar():
            return _scalar(kind)
        case Constant():
            return _constant(kind)
        case Choice():
            return union(*map(_expr, kind.options))
        case Items():
            return _items(kind)
        case Fixed():
            return _tuple([_expr(each) for each in kind.items])
        case Pairs():
            pair = concat(_expr(kind.key), literal(b": "), _expr(kind.value))
            return concat(literal(b"{"), listed(pair, _COMMA, 0, None, "dict"), literal(b"}"))
        case Call():
            return call(_rule(kind))
    raise AssertionError(f"no such kind: {kind!r}")


def _scalar(kind: Scalar) -> Expr:
    if kind.type is str:
        return literals.string(kind.content)
    return {int: literals.integer, float: literals.number, bytes: literals.byte_string}[kind.type]()


def _constant(kind: Constant) -> Expr:
    if kind.name:
        return literal(kind.name.encode())
    if isinstance(kind.value, str):
        return literals.string_of(kind.value)
    if isinstance(kind.value, bytes):
        return literals.byte_string_of(kind.value)
    return literal(repr(kind.value).encode())


def _items(kind: Items) -> Expr:
    item = _expr(kind.item)
    if kind.type is tuple:
        several = concat(literal(b"("), listed(item, _COMMA, 2, None, "tuple"), literal(b")"))
        return union(_tuple([]), _tuple([item]), several)
    if kind.type is list:
        return concat(literal(b"["), listed(item, _COMMA, 0, None, "list"), literal(b"]"))
    name = kind.type.__name__.encode()
    some = concat(literal(b"{"), listed(item, _COMMA, 1, None, kind.type.__name__), literal(b"}"))
    if kind.type is frozenset:
        some = concat(literal(name + b"("), some, literal(b")"))
    return union(literal(name + b"()"), some)


def _tuple(items: Sequence[Expr]) -> Expr:
    between: list[Expr] = []
    for item in items:
        between += (_COMMA, item)
    end = b",)" if len(items) == 1 else b")"
    return concat(literal(b"("), *between[1:], literal(end))


def _call(each: Call, arguments: str, defaults: str) -> Expr:
    """The calls of a class or function: for each parameter the possible continuations, last to first.

    There are three states before a parameter: all previous ones are written by position; some are written, and the
    rest is by keyword; none is written, and the rest is by keyword.
    """
    after_position = after_some = after_none = EPSILON
    for number, parameter in reversed(list(enumerate(each.parameters))):
        value = _expr(parameter.kind)
        by_name = parameter.by_name and (arguments != "positional" or not parameter.by_position)
        by_position = parameter.by_position and (arguments != "keyword" or not parameter.by_name)
        named = concat(literal(f"{parameter.name}=".encode()), value) if by_name else EMPTY
        placed = value if by_position else EMPTY
        if parameter.optional and defaults == "omit":
            named = placed = EMPTY
        skip = parameter.optional and defaults != "write"
        comma = _COMMA if number else EPSILON
        some = union(concat(_COMMA, named, after_some), after_some if skip else EMPTY)
        none = union(concat(named, after_some), after_none if skip else EMPTY)
        position = union(concat(comma, placed, after_position), some if number else none)
        after_position, after_some, after_none = position, some, none
    return concat(literal(f"{each.name}(".encode()), after_position, literal(b")"))


# --- back ---------------------------------------------------------------------------------------------


def _parse(constraint: Language | Grammar, kind: Kind, text: str | bytes) -> Any:
    data = encode(text)
    if data is None:
        raise ConstraintError("the text contains a lone surrogate, which UTF-8 cannot encode")
    if not constraint.accepts(data):
        viable = constraint.viable_prefix(data)
        before = data[:viable].decode(errors="replace")[-_SHOWN:]
        what = "ends too early" if viable == len(data) else "leaves the language"
        raise ConstraintError(
            f"the text is not in {constraint.source}: it {what} at byte {viable}, after {before!r}"
        )
    return read_value(data.decode(), kind)


def _name(annotation: Any) -> str:
    name = (
        getattr(annotation, "__qualname__", None)
        if isinstance(annotation, type) or callable(annotation)
        else None
    )
    return shorten(name if isinstance(name, str) else str(annotation), _SHOWN)
