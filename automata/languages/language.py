"""Regular languages over bytes as immutable values with exact boolean algebra (convention 1).

A ``Language`` holds an expression, and an operator only creates a larger expression. Queries run on the native core,
which determinizes the expression state by state and only as far as the answer needs (``constraint``). OpenFst is used
for some operations on complete machines: ``to_fst``, ``from_fst`` of pynini's machines, and the reversal of automata
and replacement of bytes in them.

Invariant: ``==`` and ``hash`` are identity. Whether two languages have the same words is a computation,
``a.equivalent(b)``, whose answer comes with a witness.

Cost: operators O(1); ``accepts`` O(length) once the states exist; emptiness, witnesses and equivalence are searches
over the states of the expression, exponential in the worst case, within the budget (convention 8).

Rejected: an OpenFst machine as the value. Each ``&`` and ``~`` would then be computed at once and in full, even if the
result is never used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

import tokenfst.common.notebook as notebook
from tokenfst.automata.captures import trees
from tokenfst.automata.captures.trees import Reading
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, utf8_dfa
from tokenfst.automata.expressions import expression, tables
from tokenfst.automata.expressions.expression import Dfa, Expr
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.program import Program, linearize
from tokenfst.automata.languages import reversal
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.display import drawing
from tokenfst.automata.languages.display.readable import quoted
from tokenfst.automata.languages.engine import find_witness, make_automaton, make_tables
from tokenfst.automata.languages.finiteness import is_finite
from tokenfst.automata.languages.operands import bounds, byte_table, encode, refuse_operand, widest
from tokenfst.automata.openfst import byte_automata
from tokenfst.automata.openfst import label_kinds as fst_labels
from tokenfst.automata.openfst.labels import BYTE_ZERO_LABEL
from tokenfst.automata.pictures.drawing import Drawing
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, checked_but
from tokenfst.errors import BudgetExceeded, ConstraintError

if TYPE_CHECKING:
    import pynini
    from pywrapfst import SymbolTable

    from tokenfst.automata.openfst.label_kinds import TokenType
    from tokenfst.automata.transducers.vector import VectorFst

_SOURCE_LENGTH = 240


class Size(NamedTuple):
    """The size of a language's deterministic automaton, without DEAD."""

    states: int
    transitions: int
    """Pairs of a state and a byte with a transition to a live state."""
    classes: int
    """Equivalence classes of bytes in the automaton."""


class Language(Constraint):
    """A regular set of byte strings. Created by ``regex``, another front end, or the constructors below.

    Combine languages with ``& | - ~ +``, ``star``, ``repeat``, ``optional``, ``reverse``, ``map_bytes``. Queries raise
    ``BudgetExceeded`` when they exceed the budget (see ``with_budget``); they never guess.
    """

    __slots__ = ("_dfa", "_expr", "_pattern")
    _kind = "Language"
    _made_again = (*Constraint._made_again, "_dfa")  # noqa: SLF001  # its own base class

    @checked
    def __init__(
        self,
        expr: Expr,
        source: str = "",
        budget: Budget | None = None,
        reading: Reading | None = None,
        *,
        pattern: str | None = None,
    ) -> None:
        """The language of an expression. ``source`` describes its origin; ``budget`` bounds all queries; ``reading``:
        the parser of its named groups, if it has any; ``pattern``: see the property.
        """
        super().__init__(_shorten(source, _SOURCE_LENGTH), budget, reading)
        self._expr, self._pattern = expr, pattern
        self._dfa: Dfa | None = None

    # --- constructors ---------------------------------------------------------------------------------

    @classmethod
    @checked
    def literal(cls, word: str | bytes) -> Language:
        """The language of the single word ``word`` (text in UTF-8). Raises ``ConstraintError`` for a lone surrogate."""
        data = encode(word)
        if data is None:
            raise ConstraintError(f"{word!r} contains a lone surrogate, which UTF-8 cannot encode")
        return cls(expression.literal(data), f"literal({_shorten(repr(word), _SOURCE_LENGTH - 10)})")

    @classmethod
    def empty(cls) -> Language:
        """The empty language."""
        return cls(expression.EMPTY, "empty()")

    @classmethod
    def epsilon(cls) -> Language:
        """The language of the empty word only."""
        return cls(expression.EPSILON, "epsilon()")

    @classmethod
    def any_bytes(cls) -> Language:
        """All byte strings."""
        return cls(expression.UNIVERSE, "any_bytes()")

    @classmethod
    def any_text(cls) -> Language:
        """All valid UTF-8. ``~a & Language.any_text()`` is the complement of ``a`` among texts."""
        return cls(_any_text(), "any_text()")

    @classmethod
    @checked
    def byte_range(cls, first: int, last: int) -> Language:
        """The one-byte words from ``first`` to ``last``, inclusive."""
        if not 0 <= first <= last <= 255:
            raise ConstraintError(f"a byte range must lie in 0..255 and not be empty: {first}..{last}")
        return cls(expression.byte_range(first, last), f"byte_range({first:#x}, {last:#x})")

    @classmethod
    @checked
    def union_of(cls, languages: Iterable[Language]) -> Language:
        """The union of any number of languages; the empty language if there are none."""
        parts = list(languages)
        source = _shorten(" | ".join(f"({part.source})" for part in parts), _SOURCE_LENGTH)
        budget = widest(*(part._budget for part in parts))  # noqa: SLF001  # another of this class
        expr = expression.union(*(part.expr for part in parts))
        reading = trees.joined(
            trees.Choice(tuple(trees.of(part.expr, part.reading) for part in parts)),
            (part.reading for part in parts),
        )
        return cls(expr, source or "empty()", budget, reading)

    @classmethod
    @checked
    def from_dfa(cls, dfa: Dfa, source: str = "dfa") -> Language:
        """The language of a deterministic transition table; raises ``ConstraintError`` if it is malformed."""
        return cls(_leaf(tables.trim(dfa)), source)

    @classmethod
    @checked_but("byte_zero", "token_type")
    def from_fst(
        cls,
        fsa: pynini.Fst | VectorFst,
        *,
        byte_zero: int | None = None,
        token_type: TokenType | SymbolTable | None = None,
        source: str = "fst",
        budget: Budget | None = None,
    ) -> Language:
        """The language of an unweighted acceptor of OpenFst or of ``tokenfst.fst`` (which needs no pynini).

        Symbol tables define the meaning of labels. Machines from ``to_fst`` have such tables; machines that pynini
        makes of strings do not. For those, give ``token_type``, as in pynini: ``"byte"`` (pynini's default),
        ``"utf8"``, or a symbol table whose symbols are single characters or bytes such as ``0x0a``. Or give
        ``byte_zero``, the label of byte 0: 1, since label 0 is epsilon in OpenFst, or 0.

        Raises ``FstError`` if the meaning of labels is not defined, for weights, for a transducer (project it first)
        and for labels that are not bytes or characters; ``BudgetExceeded`` if determinization exceeds the budget.
        """
        dfa = fst_labels.fst_to_dfa(fsa, byte_zero=byte_zero, token_type=token_type, budget=budget)
        return cls(_leaf(dfa), source, budget)

    @checked
    def with_budget(self, budget: Budget) -> Language:
        """The same language, with ``budget`` as the bound of its queries. Combined languages take the widest bounds."""
        return Language(self._expr, self._source, budget, self.reading, pattern=self._pattern)

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def expr(self) -> Expr:
        """The expression of the language."""
        return self._expr

    @property
    def pattern(self) -> str | None:
        """The text of the pattern that ``regex`` made the language from, with its flags in front, as ``(?i)a``; None
        for other languages and for patterns over bytes.
        """
        return self._pattern

    def program(self) -> Program:
        """The serialized expression that the native core reads."""
        return linearize(self._expr)

    def determinize(self) -> Dfa:
        """The complete transition table, computed once.

        It is trim: state 0 is DEAD, and every other state lies on a path from the start to acceptance.
        """
        if self._dfa is None:
            self._dfa = self._ask(make_tables)
        return self._dfa

    def size(self) -> Size:
        """The size of the deterministic automaton. Computes all states."""
        dfa = self.determinize()
        sizes = np.bincount(dfa.classes, minlength=dfa.table.shape[1])
        return Size(dfa.num_states - 1, int(((dfa.table != 0) @ sizes).sum()), dfa.table.shape[1])

    def __repr__(self) -> str:
        return f"<{self._kind} {self._source or 'of an expression'}>"

    def _glance(self) -> Language | None:
        """This language with all states made, if they are few; None if they are not, or take work to find."""
        small = Language(self._expr, self._source, notebook.GLANCE)
        try:
            return small if small.size().states <= notebook.SMALL else None
        except (BudgetExceeded, ConstraintError):
            return None

    def _facts(self) -> list[tuple[str, object]]:
        small = self._glance()
        if small is None:
            return [("source", self._source), ("states", f"more than {notebook.SMALL}")]
        word = small.shortest()
        shown = "none: it is empty" if word is None else quoted(word)
        return [("source", self._source), ("states", small.size().states), ("shortest text", shown)]

    def _sketch(self) -> str | None:
        small = self._glance()
        return None if small is None or small.is_empty() else small.draw().svg_or_none()

    # --- algebra --------------------------------------------------------------------------------------

    @overload
    def __and__(self, other: Language) -> Language: ...
    @overload
    def __and__(self, other: Constraint) -> Constraint: ...
    def __and__(self, other: Constraint) -> Constraint:
        """Words in both languages."""
        if not isinstance(other, Language):
            refuse_operand("&", other)
            return NotImplemented
        return self._combined("&", other, expression.intersect, _both)

    @overload
    def __or__(self, other: Language) -> Language: ...
    @overload
    def __or__(self, other: Constraint) -> Constraint: ...
    def __or__(self, other: Constraint) -> Constraint:
        """Words in at least one of the languages."""
        if not isinstance(other, Language):
            refuse_operand("|", other)
            return NotImplemented
        return self._combined("|", other, expression.union, _either)

    @overload
    def __sub__(self, other: Language) -> Language: ...
    @overload
    def __sub__(self, other: Constraint) -> Constraint: ...
    def __sub__(self, other: Constraint) -> Constraint:
        """Words in this language and not in the other."""
        if not isinstance(other, Language):
            refuse_operand("-", other)
            return NotImplemented
        return self._combined("-", other, _difference, _first)

    @overload
    def __add__(self, other: Language) -> Language: ...
    @overload
    def __add__(self, other: Constraint) -> Constraint: ...
    def __add__(self, other: Constraint) -> Constraint:
        """Concatenation: a word of this language, then a word of the other."""
        if not isinstance(other, Language):
            refuse_operand("+", other)
            return NotImplemented
        return self._combined("+", other, expression.concat, _one_after_the_other)

    def __invert__(self) -> Language:
        """All byte strings not in this language (invalid UTF-8 among them: see ``any_text``)."""
        return self._derived(expression.complement(self._expr), "~({})")

    def star(self) -> Language:
        """Any number of words in sequence (Kleene star)."""
        return self._derived(expression.repeat(self._expr), "({}).star()", self._repeated())

    def plus(self) -> Language:
        """One or more words in sequence."""
        return self._derived(expression.repeat(self._expr, 1), "({}).plus()", self._repeated(1))

    @checked
    def repeat(self, low: int, high: int | None = None) -> Language:
        """``low`` to ``high`` words in sequence; without ``high``, at least ``low``."""
        bounds(low, high)
        source = f"({self._source}).repeat({low}, {high})"
        expr = expression.repeat(self._expr, low, high, source)
        return Language(expr, source, self._budget, self._repeated(low, high))

    def optional(self) -> Language:
        """A word of this language, or the empty word."""
        return self._derived(expression.optional(self._expr), "({}).optional()", self._repeated(0, 1))

    def reverse(self) -> Language:
        """The words reversed byte by byte (so characters beyond ASCII are no longer valid UTF-8).

        Keeps the form of the expression. Automata, recursions and look-behind in it are determinized and reversed by
        OpenFst, which needs pynini (``MissingDependencyError``). Raises AlgebraError for languages that constrain
        tokens, or strings that must differ.
        """
        return self._derived(reversal.reverse(self._expr, self._tables), "({}).reverse()")

    def map_bytes(self, table: bytes) -> Language:
        """The words with each byte b replaced by ``table[b]``, like ``bytes.translate``; ``bytes.maketrans`` creates
        tables.

        Keeps the form of the expression. If several bytes are mapped to one, automata, intersections, complements and
        look-around in it are determinized, which needs pynini (``MissingDependencyError``). Raises AlgebraError as
        ``reverse`` does.
        """
        mapped = reversal.map_bytes(self._expr, byte_table(table), self._tables)
        return self._derived(mapped, "({}).map_bytes(...)")

    def minimize(self) -> Language:
        """The same language with a minimal automaton. Computes all states."""
        deadline = Deadline(self.budget, f"the minimization of {self._source or 'a language'}")
        least = _leaf(byte_automata.minimize_dfa(self.determinize(), deadline))
        return Language(least, self._source, self._budget, self.reading)

    # --- questions ------------------------------------------------------------------------------------

    def is_empty(self) -> bool:
        """Whether the language has no words. Stops at the first word found."""
        return self.viable_prefix(b"") < 0

    def witness(self) -> bytes | None:
        """A shortest word, preferably a readable one if that is cheap to find; ``None`` if the language is empty.
        Deterministic.
        """
        return self._ask(lambda automaton: find_witness(self._expr, automaton))

    def shortest(self) -> bytes | None:
        """The shortest word, of several the least in byte order; ``None`` if the language is empty."""
        return self._ask(lambda automaton: automaton.shortest())

    def is_finite(self) -> bool:
        """Whether there are finitely many words.

        Decided by the form of the expression; intersections, complements and look-around are searched. Raises
        AlgebraError if it depends on strings that must differ.
        """
        return is_finite(self._expr, self.budget, self._source)

    def _completion(self, prefix: bytes) -> bytes | None:
        if self.automaton.has_marks:
            word = self.automaton.completed(prefix)
        else:
            onward = expression.concat(expression.literal(prefix), expression.UNIVERSE)
            word = make_automaton(expression.intersect(self._expr, onward), self.budget).shortest()
        return None if word is None else word[len(prefix) :]

    # --- out ------------------------------------------------------------------------------------------

    @checked
    def to_native_fst(self, *, byte_zero: int = BYTE_ZERO_LABEL) -> VectorFst:
        """``to_fst`` as a machine of ``tokenfst.fst``, without pynini."""
        from tokenfst.automata.transducers.acceptors import acceptor_of

        return acceptor_of(self.determinize(), byte_zero)

    @checked
    def to_fst(self, *, byte_zero: int = BYTE_ZERO_LABEL) -> pynini.Fst:
        """A deterministic, trim OpenFst acceptor; byte b has label b + 1, as its symbol tables say.

        With ``byte_zero=0``, byte b has label b, as in pynini's own strings (``FstError`` if the language uses byte 0).
        Computes all states; needs pynini (``MissingDependencyError``).
        """
        return fst_labels.with_byte_symbols(
            byte_automata.dfa_to_fst(self.determinize(), byte_zero=byte_zero), byte_zero
        )

    @checked
    def draw(
        self, path: str | os.PathLike[str] | None = None, format: str | None = None, max_states: int = 200
    ) -> Drawing:
        """A picture of the deterministic automaton; also written to ``path`` if given.

        ``format``: ``"svg"``, ``"png"``, ``"html"`` or ``"dot"``; by default, the suffix of the path decides. The
        result's ``dot`` is Graphviz text and needs no program; notebooks display the picture. Raises ``DrawingError``
        beyond ``max_states`` states and for other formats, ``MissingDependencyError`` if another format than dot is
        requested without Graphviz.
        """
        picture = drawing.draw_dfa(self.determinize(), self._source, max_states)
        if path is not None:
            picture.save(path, format)
        return picture

    # --- details --------------------------------------------------------------------------------------

    def _is_surely_endless(self) -> bool:
        return self._expr.size > 0 and not self.automaton.has_marks and not self.is_finite()

    def _tables(self, part: Expr) -> Dfa:
        return make_tables(make_automaton(part, self.budget))

    def _combined(
        self,
        sign: str,
        other: Language,
        operation: Callable[[Expr, Expr], Expr],
        read: Callable[[Expr, Language, Language], Reading | None],
    ) -> Language:
        half = (_SOURCE_LENGTH - 7) // 2
        source = f"({_shorten(self._source, half)}) {sign} ({_shorten(other._source, half)})"
        expr = operation(self._expr, other._expr)
        reading = None
        if self.reading is not None or other.reading is not None:
            reading = read(expr, self, other)
        return Language(expr, source, widest(self._budget, other._budget), reading)

    def _derived(self, expr: Expr, source: str, reading: Reading | None = None) -> Language:
        return Language(expr, source.format(self._source), self._budget, reading)

    def _repeated(self, low: int = 0, high: int | None = None) -> Reading | None:
        if self.reading is None:
            return None
        return trees.joined(trees.Repeat(self.reading.start, low, high), (self.reading,))


def _both(expr: Expr, left: Language, right: Language) -> Reading | None:
    return trees.within(expr, (left.reading, right.reading))


def _first(expr: Expr, left: Language, _right: Language) -> Reading | None:
    return trees.within(expr, (left.reading,))


def _either(_expr: Expr, left: Language, right: Language) -> Reading | None:
    parts = trees.of(left.expr, left.reading), trees.of(right.expr, right.reading)
    return trees.joined(trees.Choice(parts), (left.reading, right.reading))


def _one_after_the_other(_expr: Expr, left: Language, right: Language) -> Reading | None:
    parts = trees.of(left.expr, left.reading), trees.of(right.expr, right.reading)
    return trees.joined(trees.Sequence(parts), (left.reading, right.reading))


def _leaf(dfa: Dfa) -> Expr:
    return expression.EMPTY if dfa.start == 0 else expression.machine(dfa)


def _difference(left: Expr, right: Expr) -> Expr:
    return expression.intersect(left, expression.complement(right))


@lru_cache(maxsize=1)
def _any_text() -> Expr:
    return expression.repeat(expression.machine(utf8_dfa(((0, MAX_CODE_POINT),))))


def _shorten(text: str, length: int) -> str:
    """``text`` in at most ``length`` characters, cut in the middle."""
    half = (length - 1) // 2
    return text if len(text) <= length else f"{text[:half]}…{text[-half:]}"
