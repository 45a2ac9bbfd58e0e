"""Rules with a parameter, as llguidance writes them: ``perm::_ : "a" perm::set_bit(0) %if bit_clear(0) | ...``.

A parameter is a number of 64 bits, so a rule with a parameter stands for one rule for each number. Only those that the
start rule can reach are written out, each with the alternatives whose condition holds. ``resolved`` does this for one
body: it removes the other alternatives and replaces parameters by numbers. The result has no parameters.

The functions are those of llguidance's documentation: p is the parameter, ``[x:y]`` are its bits from x to y - 1, ``_``
is all of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.notations.parsing.reading import Token, fold, parse
from tokenfst.common.digits import natural
from tokenfst.errors import PatternSyntaxError

BITS = 64

_NOTATION = r"""
start: _operand
_operand: call | BITS | NUMBER | NAME
call: NAME "(" (_operand ("," _operand)*)? ")"
NAME: /[a-z][a-z_]*/
BITS: /_|\[\s*\d+\s*:\s*\d+\s*\]/
NUMBER: /0x[0-9a-fA-F]+|\d+/
%ignore /[ \t]+/
"""
_SPELLED = {
    "NAME": "a function",
    "BITS": "bits, [0:3] or _",
    "NUMBER": "a number",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
}

_Bits = tuple[int, int]


def _part(p: int, bits: _Bits) -> int:
    return (p >> bits[0]) & ((1 << (bits[1] - bits[0])) - 1)


def _full(p: int, bits: _Bits) -> bool:
    return _part(p, bits) == (1 << (bits[1] - bits[0])) - 1


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def _of_bits(holds: Callable[[int, int], bool]) -> Callable[..., bool]:
    return lambda p, bits, v: holds(_part(p, bits), v)


def _of_count(holds: Callable[[int, int], bool]) -> Callable[..., bool]:
    return lambda p, bits, k: holds(_part(p, bits).bit_count(), k)


_VALUES: dict[str, tuple[str, Callable[..., int]]] = {
    "set_bit": ("k", lambda p, k: p | (1 << k)),
    "clear_bit": ("k", lambda p, k: p & ~(1 << k)),
    "bit_and": ("v", lambda p, v: p & v),
    "bit_or": ("v", lambda p, v: p | v),
    "incr": ("b", lambda p, bits: p if _full(p, bits) else p + (1 << bits[0])),
    "decr": ("b", lambda p, bits: p if _part(p, bits) == 0 else p - (1 << bits[0])),
}
"""By name: the kinds of operands, and the function of the parameter and the operands."""

_CONDITIONS: dict[str, tuple[str, Callable[..., bool]]] = {
    "true": ("", lambda p: True),
    "bit_clear": ("k", lambda p, k: not p >> k & 1),
    "bit_set": ("k", lambda p, k: bool(p >> k & 1)),
    "is_ones": ("b", _full),
    "is_zeros": ("b", lambda p, bits: _part(p, bits) == 0),
    **{name: ("bv", _of_bits(holds)) for name, holds in _COMPARISONS.items()},
    **{f"bit_count_{name}": ("bv", _of_count(holds)) for name, holds in _COMPARISONS.items()},
    "and": ("cc", lambda p, one, other: one and other),
    "or": ("cc", lambda p, one, other: one or other),
    "not": ("c", lambda p, one: not one),
}
_KINDS = {
    "k": f"a bit from 0 to {BITS - 1}",
    "v": f"a number of {BITS} bits",
    "b": f"bits, [0:3] for example, from 0 to {BITS}, or _",
    "c": "a condition",
    "p": f"a number of {BITS} bits, _ or one of {', '.join(_VALUES)}",
}


class _Fault(Exception):
    """An error: ``message``, at ``position`` of an operand's text."""

    def __init__(self, message: str, position: int) -> None:
        self.message, self.position = message, position


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand at ``position``. ``of``: its value as a function of the parameter. ``fits``: the kinds that it can be.
    ``constant``: the value is the same for all parameters.
    """

    position: int
    fits: str
    constant: bool
    of: Callable[[int], Any]


def resolved(
    tree: Any,
    value: int | None,
    place: Callable[[Token], int],
    fail: Callable[..., NoReturn],
    deadline: Deadline,
) -> Any:
    """The body of a rule whose parameter has the value ``value`` (None: the rule has no parameter).

    Alternatives whose condition does not hold are removed, and parameters are replaced by numbers. A body without
    alternatives becomes a node ``never``. ``fail`` raises the error for a position.
    """
    from lark import Tree

    def compute(token: Token, wanted: str) -> Any:
        opening = len("::") if wanted == "p" else len("%if")
        try:
            operand = _read(str(token)[opening:], wanted)
        except _Fault as error:
            fail(error.message, place(token) + opening + error.position)
        if value is None and not operand.constant:
            fail(
                "this uses a parameter, but the rule has none: write name::_ before the colon",
                place(token),
            )
        return operand.of(value or 0)

    def build(kind: str, children: list[Any]) -> Any:
        conditions = [each for each in children if isinstance(each, Token) and each.type == "CONDITION"]
        if not all(compute(each, "c") for each in conditions):
            return None
        if kind == "parameterized":
            number = Token(compute(children[1], "p"))
            number.type, number.start_pos = "NUMBER", children[1].start_pos
            return Tree(kind, [children[0], number])
        kept = [each for each in children if each is not None and each not in conditions]
        return Tree("never" if kind == "expansions" and not kept else kind, kept)

    return fold(tree, build, deadline)


@lru_cache(maxsize=1024)
def _read(text: str, wanted: str) -> _Operand:
    """Parse the text of a parameter's function; ``wanted`` is the kind of operand that is required."""
    if wanted == "p" and text.strip() == "_":
        return _Operand(0, "p", False, lambda p: p)
    try:
        tree = parse(_NOTATION, text, _SPELLED, {}, "condition" if wanted == "c" else "parameter")
    except PatternSyntaxError as error:
        raise _Fault(error.message.split(": ", 1)[-1], error.position) from None
    return _taken(fold(tree, _node), wanted)


def _taken(operand: _Operand, wanted: str) -> _Operand:
    if wanted not in operand.fits:
        raise _Fault(f"expected {_KINDS[wanted]}", operand.position)
    return operand


def _node(kind: str, children: list[Any]) -> _Operand:
    operands = [_leaf(each) if isinstance(each, Token) else each for each in children]
    if kind == "start":
        return operands[0]
    name, given = str(children[0]), operands[1:]
    known = _VALUES.get(name) or _CONDITIONS.get(name)
    if known is None:
        raise _Fault(
            f"unknown function {name!r}; expected one of {', '.join([*_VALUES, *_CONDITIONS])}",
            operands[0].position,
        )
    kinds, function = known
    if len(kinds) != len(given):
        raise _Fault(f"{name} takes {len(kinds)} operands, not {len(given)}", operands[0].position)
    parts = [_taken(operand, wanted).of for operand, wanted in zip(given, kinds, strict=True)]
    fits = "p" if name in _VALUES else "c"
    constant = fits == "c" and set(kinds) <= {"c"} and all(operand.constant for operand in given)
    return _Operand(operands[0].position, fits, constant, lambda p: function(p, *(part(p) for part in parts)))


def _number(text: str) -> int:
    """A decimal or hexadecimal number; 2^64 for greater ones."""
    return min(int(text, 16), 1 << BITS) if text.startswith("0x") else natural(text, (1 << BITS) - 1)


def _leaf(token: Token) -> _Operand:
    """An operand that is a single name, range of bits, or number."""
    text, at = str(token), token.start_pos
    if token.type == "NAME":
        return _Operand(at, "c" if text == "true" else "", text == "true", lambda p: True)
    if token.type == "BITS":
        low, high = (
            (0, BITS) if text == "_" else (natural(each, BITS) for each in text.strip("[]").split(":"))
        )
        if not 0 <= low < high <= BITS:
            raise _Fault(f"{text:.60} is not a range of bits: write {_KINDS['b']}", at)
        return _Operand(at, "b", True, lambda p: (low, high))
    number = _number(text)
    if number >= 1 << BITS:
        raise _Fault(f"{text:.60} is too large: a parameter has {BITS} bits", at)
    return _Operand(at, "kvp" if number < BITS else "vp", True, lambda p: number)
