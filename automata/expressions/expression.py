"""Extended regular expressions over bytes: the value that front ends build and the native core determinizes.

An ``Expr`` is an immutable node of a directed acyclic graph. Front ends combine nodes with the functions below;
``program.linearize`` writes the graph as a compact program for the native core, which hash-conses it and takes
derivatives on demand. So ``&`` and ``~`` cost nothing until they are walked (Brzozowski, "Derivatives of
Regular Expressions", JACM 1964; Moseley et al., "Derivative Based Nonbacktracking Real-World Regex Matching
with Backtracking Semantics", PLDI 2023).

Meaning, with a word w of bytes:

=================  ======================================================================================
``EMPTY``          no word
``EPSILON``        the empty word
``byte_set(s)``    every one-byte word whose byte is in the bit set s (bit b of a Python int: byte b)
``literal(d)``     the word d
``concat``         concatenation
``union``          union
``intersect``      intersection
``complement(x)``  every word that is not in x
``repeat(x,m,n)``  m to n (``None``: any number of) words of x
``machine(d)``     the words that the deterministic automaton d accepts
``recursive(f)``   the least X with X = f(X). X must stand in tail position: as the last part of a concatenation,
                   possibly under ``union`` and ``intersect``, never under ``complement`` or ``repeat``
``behind(x)``      the empty word, at a place where the text so far is in x: the text from the beginning of
                   the innermost enclosing ``scope``
``scope(x)``       x; ``behind`` inside of it counts from where this scope begins. It must enclose every ``behind``
``words(s)``       the words of the finite set s
``selection(...)`` ``low`` to ``high`` different words of a finite set, with a separator in between
``call(name)``     the words of the rule ``name`` of a ``Grammar``, which alone gives calls their meaning
``unordered``      members in any order with separators between them, each option at most once
``opened``         x, the opening bracket of a JSON array or object in which ``fresh`` strings are compared
``fresh``          x, a JSON string, where no ``fresh`` one before it in the same array or object has the same value
``one_token(x)``   a word of x that is one token: it begins and ends where tokens do, and not in between
``tokens(n)``      one token of the class that the vocabulary has under the name n
``few_tokens``     a word of x that has bytes of at most n tokens
=================  ======================================================================================

A language with one of the last three operators is token-level: it is a set of token sequences, and only a vocabulary
says which bytes its tokens have. All other languages are byte-level: it does not matter into which tokens a text
is divided.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tokenfst._native import Lexicon, Node, begin_nodes, nodes_below
from tokenfst._native import concat as concat
from tokenfst._native import literal as literal
from tokenfst._native import union as union

ALL_BYTES = (1 << 256) - 1
_DENSE = np.empty(0, np.uint32)


class Op(enum.IntEnum):
    """Node kinds; the numbers are the opcodes of a ``Program``."""

    EMPTY = 0
    EPSILON = 1
    BYTES = 2
    LITERAL = 3
    CONCAT = 4
    UNION = 5
    INTERSECT = 6
    COMPLEMENT = 7
    REPEAT = 8
    MACHINE = 9
    VARIABLE = 10
    BEHIND = 11
    SCOPE = 12
    CALL = 13
    WORDS = 14
    SELECTION = 15
    UNORDERED = 16
    ONE_TOKEN = 17
    TOKENS = 18
    OPENED = 19
    FRESH = 20
    FEW_TOKENS = 21

    __hash__ = int.__hash__  # the hash of an enumeration is a slower function in Python


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Dfa:
    """A deterministic byte automaton as tables; state 0 is DEAD and absorbing (convention 3).

    ``classes``: uint8 (256,), the class of each byte. ``table``: uint32 (states, classes), the next state.
    ``accepting``: bool (states,). ``start``: the start state. ``tables.frozen_dfa`` makes one.
    """

    classes: npt.NDArray[np.uint8]
    table: npt.NDArray[np.uint32]
    accepting: npt.NDArray[np.bool_]
    start: int

    @property
    def num_states(self) -> int:
        """The number of states."""
        return int(self.table.shape[0])

    def native_tables(self) -> NativeMachine:
        """The form that the native core takes: the tables and, for a table that lists edges, the first edge of each
        state.
        """
        return self.classes, self.table, self.accepting, self.start, _DENSE

    @property
    def shape(self) -> tuple[int, ...]:
        """A fingerprint: equal for automata with equal tables, and rarely equal for others. Computed once.

        It consists of the start, the numbers of rows, columns and offsets, and a checksum of the tables if they are
        small.
        """
        found = _shapes.get(self)
        if found is None:
            classes, table, accepting, start, offsets = self.native_tables()
            check = 0
            for each in (classes, accepting, table) if table.nbytes <= _MOST_CHECKED else ():
                check = zlib.crc32(each.tobytes(), check)
            found = _shapes[self] = (start, *table.shape, len(offsets), check)
        return found

    def equals(self, other: Dfa) -> bool:
        """Whether both have the same tables. Linear in them."""
        classes, table, accepting, start, offsets = self.native_tables()
        given = other.native_tables()
        return (
            start == given[3]
            and np.array_equal(classes, given[0])
            and np.array_equal(table, given[1])
            and np.array_equal(accepting, given[2])
            and np.array_equal(offsets, given[4])
        )


_shapes: WeakKeyDictionary[Dfa, tuple[int, ...]] = WeakKeyDictionary()
_MOST_CHECKED = 1 << 16
"""The greatest size of a table, in bytes, of which a checksum is computed."""


@dataclass(frozen=True, slots=True)
class Unordered:
    """The data of an UNORDERED node.

    Its operands are the separator, the options, with the required ones first, and, if ``repeats`` is not 0, the
    member that may occur any number of times: it counts towards ``low`` if ``repeats`` is 1, and does not if it is
    2. ``high`` is -1 if there is no bound.
    """

    low: int
    high: int
    required: int
    repeats: int

    def __iter__(self) -> Iterator[int]:
        return iter((self.low, self.high, self.required, self.repeats))


@dataclass(frozen=True, slots=True)
class Differing:
    """The data of a FRESH node: the known facts about its number of words (``exclusion_marks.fresh``)."""

    few_endings: bool = True
    fewest: int = 0
    few_bytes: int = 0
    many_bytes: int = 0
    values: bool = False

    def __iter__(self) -> Iterator[int]:
        return iter((int(self.few_endings), self.fewest, self.few_bytes, self.many_bytes, int(self.values)))


@dataclass(frozen=True, slots=True)
class TokenBound:
    """The data of a FEW_TOKENS node: the maximum number of tokens to which the bytes of a word belong."""

    most: int

    def __iter__(self) -> Iterator[int]:
        return iter((self.most,))


@dataclass(frozen=True, slots=True)
class TokenName:
    """The name in a TOKENS node: a special token of the vocabulary, or a class of tokens that is given with it; or,
    with ``but``, all special tokens except these and the end tokens.
    """

    name: str
    special: bool
    but: tuple[str, ...] | None = None

    @classmethod
    def others(cls, names: Iterable[str]) -> TokenName:
        """All special tokens except those with these names and the end tokens."""
        but = tuple(sorted(set(names)))
        return cls(f"but {', '.join(map(repr, but))}" if but else "any", True, but)

    def __str__(self) -> str:
        if self.but is not None:
            return "the special tokens" + (f" but {', '.join(map(repr, self.but))}" if self.but else "")
        return f"the special token {self.name!r}" if self.special else f"the token class {self.name!r}"


class Expr(Node):
    """One node.

    ``args`` are its operands; ``value`` is its data (bits, bytes, a name, bounds, a table or words). ``source``:
    the user's text for this node, so that errors can name it.

    A node is *plain* if it consists of sets, words and automata under concatenation, union and repetition only, and
    has a word. For plain nodes, frequently needed facts are stored; for others they are not. ``size``: the number
    of positions of a plain node with its counted repetitions expanded, at most 2**62; 0 if it is not plain.
    ``nullable``: whether a plain node has the empty word. ``known``: whether it was found to have a word, for
    ``languages.emptiness``.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...] | str:
        if self is EMPTY or self is EPSILON:
            return self.op.name  # there is only one node of each
        return Expr, (self.op,), (self.args, self.value, self.source, self.size, self.nullable)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        Node.__init__(self, self.op, *state)

    def finish(self, *args: Expr) -> None:
        """Set the operands of a node if they had to be made after it, as for the body of a variable."""
        Node.__init__(self, self.op, args, self.value, self.source)

    def named(self, source: str | None) -> Expr:
        """Another node for the same language, with another ``source``."""
        if (
            self.op is Op.VARIABLE
        ):  # its body refers to this very node: a copy would be a second variable for it
            return Expr(Op.UNION, (self,), None, source)
        return Expr(self.op, self.args, self.value, source, self.size, self.nullable)

    def walk(self) -> list[Expr]:
        """Every node of the graph once, operands first."""
        return below(self)


def below(*roots: Expr, inner: Callable[[Expr], bool] | None = None) -> list[Expr]:
    """The nodes of the graph below ``roots``, each once, operands first; without recursion.

    ``inner`` decides whose operands are included; by default those of all nodes.
    """
    if inner is None:
        return nodes_below(list(roots), True)
    found: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[Expr | None] = list(reversed(roots))
    while stack:
        node = stack.pop()
        if node is None:  # everything below the next node is done
            node = stack.pop()
            assert node is not None
            found.append(node)
        elif node not in seen:
            seen.add(node)
            if node.args and inner(node):
                stack += (node, None)
                stack += node.args[::-1]
            else:
                found.append(node)
    return found


MOST_POSITIONS = 1 << 62
"""The maximum of `Expr.size`."""
EMPTY = Expr(Op.EMPTY)
EPSILON = Expr(Op.EPSILON, size=1, nullable=True)
ANY_BYTE = Expr(Op.BYTES, value=ALL_BYTES, size=1)
begin_nodes(Expr, tuple(Op), EMPTY, EPSILON)


def byte_set(bits: int) -> Expr:
    """One byte out of the set ``bits`` (bit b: byte b)."""
    return EMPTY if bits == 0 else Expr(Op.BYTES, (), bits, None, 1)


def byte_range(first: int, last: int) -> Expr:
    """One byte from ``first`` to ``last``, both included."""
    return byte_set((1 << (last + 1)) - (1 << first))


def intersect(*parts: Expr) -> Expr:
    """The words that are in every part. There must be at least one part."""
    if EMPTY in parts:
        return EMPTY
    return parts[0] if len(parts) == 1 else Expr(Op.INTERSECT, parts)


def complement(part: Expr) -> Expr:
    """Every word that is not in ``part``."""
    if part is EMPTY:
        return UNIVERSE
    return body_of(part) if part.op is Op.COMPLEMENT else Expr(Op.COMPLEMENT, (part,))


def repeat(part: Expr, low: int = 0, high: int | None = None, source: str | None = None) -> Expr:
    """``low`` to ``high`` words of ``part`` in sequence; a ``high`` of ``None`` means no upper bound."""
    if low == 1 and high == 1:
        return part
    if high == 0 or part is EPSILON:
        return EPSILON
    bounds = (low, -1 if high is None else high)
    size = min(part.size * copies(bounds), MOST_POSITIONS)
    return Expr(Op.REPEAT, (part,), bounds, source, size, size > 0 and (low == 0 or part.nullable))


def bounds_of(node: Expr) -> tuple[int, int | None]:
    """The least and the greatest number of repetitions of a REPEAT node, or of words of a SELECTION node (None:
    unbounded).
    """
    assert isinstance(node.value, tuple)
    low, high = node.value
    return low, None if high < 0 else high


def body_of(node: Expr) -> Expr:
    """The operand of a node that has only one: COMPLEMENT, REPEAT, SCOPE, OPENED, FRESH or FEW_TOKENS."""
    (body,) = node.args
    return body


def members_of(node: Expr) -> tuple[Expr, ...]:
    """The members of an UNORDERED node, without the separator: first the required options, then the others, then the
    member that may repeat, if there is one (``Unordered``).
    """
    return node.args[1:]


def copies(bounds: tuple[int, int]) -> int:
    """How many copies of its body a repetition has when it is expanded; a loop counts as one."""
    low, high = bounds
    return max(low, 1) if high < 0 else high


def optional(part: Expr) -> Expr:
    """``part`` or the empty word."""
    return union(part, EPSILON)


def machine(dfa: Dfa, source: str | None = None) -> Expr:
    """The language of a deterministic automaton."""
    alive = dfa.start != 0
    return Expr(Op.MACHINE, (), dfa, source, int(alive), alive and bool(dfa.accepting[dfa.start]))


def words(lexicon: Lexicon) -> Expr:
    """The words of a finite set. The cost does not depend on their number."""
    return Expr(Op.WORDS, value=lexicon) if len(lexicon) else EMPTY


def selection(
    lexicon: Lexicon, separator: Expr, low: int = 1, high: int | None = None, source: str | None = None
) -> Expr:
    """``low`` to ``high`` words of a finite set, no word twice, with ``separator`` between two; ``None``: up to
    all.

    ``low`` must be at least 1. ``separator`` must not have the empty word, and must not contain calls, recursion or
    look-behind.
    """
    if low > len(lexicon):
        return EMPTY
    return Expr(Op.SELECTION, (words(lexicon), separator), (low, -1 if high is None else high), source)


def recursive(body: Callable[[Expr], Expr]) -> Expr:
    """The least language X with X = body(X); X must stand in tail position."""
    variable = Expr(Op.VARIABLE)
    variable.finish(body(variable))
    return variable


def behind(past: Expr) -> Expr:
    """The empty word, where the text since the beginning of the enclosing scope is in ``past``."""
    return Expr(Op.BEHIND, (past,))


def scope(part: Expr) -> Expr:
    """``part``, with ``behind`` counted from here."""
    return Expr(Op.SCOPE, (part,))


def call(name: str) -> Expr:
    """The words of the rule ``name``. Only for the rules of a ``Grammar``: a program cannot contain it."""
    return Expr(Op.CALL, value=name)


def unordered(
    options: Sequence[Expr],
    separator: Expr = EPSILON,
    *,
    required: int = 0,
    other: Expr = EMPTY,
    counts: bool = True,
    low: int = 0,
    high: int | None = None,
    source: str | None = None,
) -> Expr:
    """``low`` to ``high`` members in any order, with separators between them.

    Each of the ``options`` occurs at most once, the first ``required`` of them exactly once, ``other`` any number
    of times; unless it ``counts``, ``low`` is a number of options.

    No member may have the empty word, refer to a variable of ``recursive`` from outside, or contain a free
    ``behind``. The walk remembers which options were used, and computes nothing in advance: an automaton of all
    states would have 2^options of them.
    """
    low = max(low, required)
    if any(option is EMPTY for option in options[:required]) or (high is not None and high < low):
        return EMPTY
    kept = tuple(option for option in options if option is not EMPTY)
    repeats = 0 if other is EMPTY else 1 if counts else 2
    if repeats != 1 and low > len(kept):
        return EMPTY
    if repeats == 0 and high is not None and high >= len(kept):
        high = None
    if separator is EMPTY and (high is None or high > 1):
        if low > 1:
            return EMPTY
        high = 1
    if high == 0 or not (kept or repeats):
        return EPSILON
    if not kept:
        more = repeat(concat(separator, other), max(low, 1) - 1, None if high is None else high - 1, source)
        return concat(other, more) if low else optional(concat(other, more))
    value = Unordered(low, -1 if high is None else high, required, repeats)
    return Expr(Op.UNORDERED, (separator, *kept, *((other,) if repeats else ())), value, source)


def one_token(text: Expr) -> Expr:
    """One token whose bytes are a word of ``text``.

    ``text`` must have a word that is not empty, and must not contain calls, recursion or look-behind.
    """
    return Expr(Op.ONE_TOKEN, (text,), None, None, 1)


def tokens(name: TokenName) -> Expr:
    """One token of a class, which the vocabulary defines."""
    return Expr(Op.TOKENS, (), name, None, 1)


def few_tokens(text: Expr, most: int) -> Expr:
    """The words of ``text`` whose bytes belong to at most ``most`` tokens; ``most`` must be at least 1.

    A token counts if it has a byte of the word, also if it begins before the word or ends after it. ``text`` must not
    contain tokens, calls, recursion or free look-behind.
    """
    return (
        text
        if text is EMPTY or text is EPSILON
        else Expr(Op.FEW_TOKENS, (text,), TokenBound(most), text.source)
    )


UNIVERSE = repeat(ANY_BYTE)
"""Every word of bytes."""


NativeMachine = tuple[
    npt.NDArray[np.uint8], npt.NDArray[np.uint32], npt.NDArray[np.bool_], int, npt.NDArray[np.uint32]
]
