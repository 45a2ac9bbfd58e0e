"""Languages over bytes as immutable values with exact boolean algebra (convention 1).

The idea: a ``Language`` is an expression, and an operator makes a larger one: it costs nothing. Questions run
on the native core, which determinizes the expression state by state and only as far as the answer needs.
OpenFst does what needs a whole machine in hand: ``minimize``, ``to_fst``, ``from_fst``, and the reversal of
automata.

Invariants: a language never changes; its automaton is made when first needed, only ever grows by states that
were looked at, and may be shared by threads. ``==`` and ``hash`` are identity: whether two languages hold the
same words is a computation, ``a.equivalent(b)``, with an answer that can be shown.

Cost: operators O(1); ``accepts`` O(length) once its states are made; emptiness, witnesses and equivalence a
search over the states of the expression in question, exponential at worst, within the budget (convention 8).

Rejected: an OpenFst machine as the value. Each ``&`` and ``~`` would then be paid at once and in full, even
those whose result is never walked.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tokenfst.arguments import checked, checked_but, refuse
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, utf8_dfa
from tokenfst.automata.expressions import expression, tables
from tokenfst.automata.expressions.expression import Dfa, Expr
from tokenfst.automata.expressions.program import Program, linearize
from tokenfst.automata.languages import drawing, reversal, sampling
from tokenfst.automata.languages.answer import Answer, Side
from tokenfst.automata.languages.engine import find_witness, make_automaton, make_tables
from tokenfst.automata.openfst import fst
from tokenfst.automata.openfst import label_kinds as fst_labels
from tokenfst.automata.openfst.labels import BYTE_ZERO_LABEL
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError

if TYPE_CHECKING:
    import pynini
    from pywrapfst import SymbolTable

    import tokenfst._native as _native
    from tokenfst.automata.openfst.label_kinds import TokenType

_T = TypeVar("_T")
_SOURCE_LENGTH = 240


class Size(NamedTuple):
    """How large a language's deterministic automaton is, without DEAD."""

    states: int
    transitions: int
    """Pairs of a state and a byte that lead on."""
    classes: int
    """Classes of bytes that the automaton tells apart."""


class Language:
    """A set of byte strings. Make one with ``regex`` or a front end, or from the constructors below; combine
    with ``& | - ~ +``, ``star``, ``repeat``, ``optional``, ``reverse``.

    Questions raise ``BudgetExceeded`` when they outgrow the budget (see ``with_budget``); they never guess.
    """

    __slots__ = ("__weakref__", "_automaton", "_budget", "_dfa", "_expr", "_source")

    @checked
    def __init__(self, expr: Expr, source: str = "", budget: Budget | None = None) -> None:
        """The language of an expression. ``source`` says what it was made from; ``budget`` bounds all
        questions."""
        self._expr = expr
        self._source = _shorten(source, _SOURCE_LENGTH)
        self._budget = budget
        self._automaton: _native.ByteAutomaton | None = None
        self._dfa: Dfa | None = None

    # --- constructors ---------------------------------------------------------------------------------

    @classmethod
    @checked
    def literal(cls, word: str | bytes) -> Language:
        """The one word ``word`` (text in UTF-8). ``ConstraintError`` if it holds a lone surrogate."""
        data = encode(word)
        if data is None:
            raise ConstraintError(f"{word!r} holds a lone surrogate, which has no UTF-8 encoding")
        return cls(expression.literal(data), f"literal({_shorten(repr(word), _SOURCE_LENGTH - 10)})")

    @classmethod
    def empty(cls) -> Language:
        """The language without words."""
        return cls(expression.EMPTY, "empty()")

    @classmethod
    def epsilon(cls) -> Language:
        """The language of the empty word alone."""
        return cls(expression.EPSILON, "epsilon()")

    @classmethod
    def any_bytes(cls) -> Language:
        """All byte strings."""
        return cls(expression.UNIVERSE, "any_bytes()")

    @classmethod
    def any_text(cls) -> Language:
        """All valid UTF-8: what ``~a & Language.any_text()`` needs to be texts again."""
        return cls(_any_text(), "any_text()")

    @classmethod
    @checked
    def byte_range(cls, first: int, last: int) -> Language:
        """The one-byte words from ``first`` to ``last``, both included."""
        if not 0 <= first <= last <= 255:
            raise ConstraintError(f"a byte range must lie in 0..255 and not be empty: {first}..{last}")
        return cls(expression.byte_range(first, last), f"byte_range({first:#x}, {last:#x})")

    @classmethod
    @checked
    def union_of(cls, languages: Iterable[Language]) -> Language:
        """The union of any number of languages; of none, the empty language."""
        parts = list(languages)
        source = _shorten(" | ".join(f"({part.source})" for part in parts), _SOURCE_LENGTH)
        budget = widest(*(part._budget for part in parts))
        return cls(expression.union(*(part.expr for part in parts)), source or "empty()", budget)

    @classmethod
    @checked
    def from_dfa(cls, dfa: Dfa, source: str = "dfa") -> Language:
        """The language of deterministic tables; ``ConstraintError`` where they are malformed."""
        return cls(_leaf(tables.trim(dfa)), source)

    @classmethod
    @checked_but("byte_zero", "token_type")
    def from_fst(
        cls,
        fsa: pynini.Fst,
        *,
        byte_zero: int | None = None,
        token_type: TokenType | SymbolTable | None = None,
        source: str = "fst",
        budget: Budget | None = None,
    ) -> Language:
        """The language of an unweighted OpenFst acceptor, whose symbol tables say what its labels are.

        Machines from ``to_fst`` have such tables; what pynini makes of strings has none. ``token_type`` says it then,
        as in pynini: ``"byte"`` (what pynini does unless told otherwise), ``"utf8"``, or a symbol table, whose symbols
        are one character each or a byte such as ``0x0a``. Or ``byte_zero``, the label of byte 0: 1 (convention 2)
        or 0.

        Raises ``FstError`` where nothing says what labels are, for weights, for a transducer (project it first)
        and for labels that are no bytes or characters; ``BudgetExceeded`` when determinization outgrows the budget.
        """
        dfa = fst_labels.fst_to_dfa(fsa, byte_zero=byte_zero, token_type=token_type, budget=budget)
        return cls(_leaf(dfa), source, budget)

    @checked
    def with_budget(self, budget: Budget) -> Language:
        """The same language, whose questions may cost up to ``budget``. Combined languages take the wider
        bounds."""
        return Language(self._expr, self._source, budget)

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def expr(self) -> Expr:
        """The expression that this language is."""
        return self._expr

    @property
    def source(self) -> str:
        """What the language was made from, for people; long descriptions are shortened in the middle."""
        return self._source

    @property
    def budget(self) -> Budget:
        """The bounds of every question."""
        return self._budget or Budget()

    @property
    def given_budget(self) -> Budget | None:
        """The budget that was given; ``None``: none was, and ``budget`` is the default."""
        return self._budget

    @property
    def automaton(self) -> _native.ByteAutomaton:
        """The lazily determinized automaton in the native core; made once, shared by threads."""
        automaton = self._automaton
        if automaton is None:
            automaton = self._automaton = make_automaton(self._expr, self.budget)
        return automaton

    def program(self) -> Program:
        """The expression as the native core reads it."""
        return linearize(self._expr)

    def determinize(self) -> Dfa:
        """All states as tables, trim (convention 3); made once."""
        if self._dfa is None:
            self._dfa = self._ask(make_tables)
        return self._dfa

    def size(self) -> Size:
        """The size of the deterministic automaton. Makes all states."""
        dfa = self.determinize()
        sizes = np.bincount(dfa.classes, minlength=dfa.table.shape[1])
        return Size(dfa.num_states - 1, int(((dfa.table != 0) @ sizes).sum()), dfa.table.shape[1])

    def __repr__(self) -> str:
        return f"<Language {self._source or 'of an expression'}>"

    def __reduce__(self) -> tuple[type[Language], tuple[Expr, str, Budget | None]]:
        return Language, (self._expr, self._source, self._budget)

    # --- algebra --------------------------------------------------------------------------------------

    def __and__(self, other: Language) -> Language:
        """Words in both languages."""
        return self._combined("&", other, expression.intersect)

    def __or__(self, other: Language) -> Language:
        """Words in at least one of the languages."""
        return self._combined("|", other, expression.union)

    def __sub__(self, other: Language) -> Language:
        """Words in this language and not in the other."""
        return self._combined("-", other, _difference)

    def __add__(self, other: Language) -> Language:
        """Concatenation: a word of this language, then a word of the other."""
        return self._combined("+", other, expression.concat)

    def __invert__(self) -> Language:
        """All byte strings not in this language (invalid UTF-8 among them: see ``any_text``)."""
        return self._derived(expression.complement(self._expr), "~({})")

    def star(self) -> Language:
        """Any number of words one after the other."""
        return self._derived(expression.repeat(self._expr), "({}).star()")

    @checked
    def repeat(self, low: int, high: int | None = None) -> Language:
        """``low`` to ``high`` words one after the other; without ``high``, ``low`` or more."""
        if low < 0 or (high is not None and high < low):
            raise ConstraintError(f"cannot repeat {low} to {high} times")
        source = f"({self._source}).repeat({low}, {high})"
        return Language(expression.repeat(self._expr, low, high, source), source, self._budget)

    def optional(self) -> Language:
        """A word of this language, or the empty word."""
        return self._derived(expression.optional(self._expr), "({}).optional()")

    def reverse(self) -> Language:
        """The words read backwards, byte by byte (so characters beyond ASCII are no UTF-8 any more).

        Keeps the expression's form; automata, recursions and look-behind inside of it are determinized and
        reversed by OpenFst, which needs pynini (``MissingDependencyError``).
        """
        turned = reversal.reverse(self._expr, lambda part: make_tables(make_automaton(part, self.budget)))
        return self._derived(turned, "({}).reverse()")

    def minimize(self) -> Language:
        """The same language with a least automaton. Makes all states; needs pynini
        (``MissingDependencyError``)."""
        return Language(_leaf(fst.minimize_dfa(self.determinize())), self._source, self._budget)

    # --- questions ------------------------------------------------------------------------------------

    def accepts(self, word: str | bytes) -> bool:
        """Whether ``word`` (text in UTF-8) is in the language. Text with a lone surrogate never is."""
        data = encode(word)
        return data is not None and self._ask(lambda automaton: automaton.accepts(data))

    def viable_prefix(self, data: bytes) -> int:
        """How many bytes of ``data`` some word of the language begins with; -1 if the language is empty."""
        return self._ask(lambda automaton: automaton.viable_prefix(data))

    def next_bytes(self, prefix: bytes) -> tuple[bytes, bool]:
        """The bytes that can follow ``prefix`` on the way to a word, ascending, and whether it is itself a
        word."""
        return self._ask(lambda automaton: automaton.next_bytes(prefix))

    def is_empty(self) -> bool:
        """Whether there is no word at all. Stops at the first word that it finds."""
        return self.viable_prefix(b"") < 0

    def witness(self) -> bytes | None:
        """A shortest word, a readable one if that is cheap to find; ``None`` if the language is empty.

        The same word every time.
        """
        return self._ask(lambda automaton: find_witness(self._expr, automaton))

    @checked
    def equivalent(self, other: Language) -> Answer:
        """Whether both languages hold the same words. If not, the answer's witness is a shortest word in only
        one."""
        return self._compare(other, (self - other) | (other - self))

    @checked
    def includes(self, other: Language) -> Answer:
        """Whether every word of ``other`` is in this language. If not, the witness is a shortest that is
        missing."""
        return self._compare(other, other - self)

    @checked
    def sample(
        self, rng: random.Random | np.random.Generator | None = None, max_length: int | None = None
    ) -> bytes:
        """A random word, of readable characters where the language allows (so not every word has a chance).

        ``rng``: a ``random.Random`` or numpy ``Generator`` (without: a fresh one). The same state of ``rng``
        gives the same word. ``max_length``: at most so many bytes; without, the walk heads for the end after
        up to 48 bytes. Raises ``EmptyLanguageError``, and ``ConstraintError`` if all words are longer than
        ``max_length``.
        """
        if self.is_empty():
            raise EmptyLanguageError(f"there is no word to draw: {self!r} is empty")

        def complete(prefix: bytes) -> bytes:
            onward = expression.concat(expression.literal(prefix), expression.UNIVERSE)
            word = make_automaton(expression.intersect(self._expr, onward), self.budget).shortest()
            assert word is not None, "the walk left the language"
            return word[len(prefix) :]

        if max_length is not None and (shortest := len(complete(b""))) > max_length:
            raise ConstraintError(
                f"the shortest word of {self!r} has {shortest} bytes, more than {max_length}"
            )
        return sampling.sample(self, complete, rng or random.Random(), max_length)

    # --- out ------------------------------------------------------------------------------------------

    @checked
    def to_fst(self, *, byte_zero: int = BYTE_ZERO_LABEL) -> pynini.Fst:
        """A deterministic, trim OpenFst acceptor; byte b has label b + 1 (convention 2). Its symbol tables say so.

        With ``byte_zero=0``, label b, as in pynini's own strings (``FstError`` if the language uses byte 0).
        Makes all states; needs pynini (``MissingDependencyError``).
        """
        return fst_labels.with_byte_symbols(
            fst.dfa_to_fst(self.determinize(), byte_zero=byte_zero), byte_zero
        )

    @checked
    def draw(
        self, path: str | os.PathLike[str] | None = None, format: str | None = None, max_states: int = 200
    ) -> drawing.Drawing:
        """A picture of the deterministic automaton; with ``path`` also written there.

        ``format``: ``"svg"``, ``"png"`` or ``"dot"``; without, as the path's suffix says. The result's
        ``dot`` is Graphviz text and needs no program; notebooks show it. Raises ``DrawingError`` beyond
        ``max_states`` states, ``MissingDependencyError`` where svg or png is asked for without Graphviz.
        """
        picture = drawing.draw_dfa(self.determinize(), self._source, max_states)
        if path is not None:
            picture.save(path, format)
        return picture

    # --- details --------------------------------------------------------------------------------------

    def _ask(self, question: Callable[[_native.ByteAutomaton], _T]) -> _T:
        """The automaton's answer. One that earlier questions have filled up gives way to a fresh one."""
        used = self._automaton
        try:
            return question(self.automaton)
        except BudgetExceeded as error:
            self._automaton = None
            if used is None or error.resource == "seconds":
                raise
        return self._ask(question)

    def _combined(self, sign: str, other: Language, operation: Callable[[Expr, Expr], Expr]) -> Language:
        if not isinstance(other, Language):
            return NotImplemented
        half = (_SOURCE_LENGTH - 7) // 2
        source = f"({_shorten(self._source, half)}) {sign} ({_shorten(other._source, half)})"
        return Language(operation(self._expr, other._expr), source, widest(self._budget, other._budget))

    def _derived(self, expr: Expr, source: str) -> Language:
        return Language(expr, source.format(self._source), self._budget)

    def _compare(self, other: Language, difference: Language) -> Answer:
        word = difference.witness()
        if word is None:
            return Answer(True)
        return Answer(False, word, Side.LEFT if self.accepts(word) else Side.RIGHT)


def _leaf(dfa: Dfa) -> Expr:
    return expression.EMPTY if dfa.start == 0 else expression.machine(dfa)


def _difference(left: Expr, right: Expr) -> Expr:
    return expression.intersect(left, expression.complement(right))


@lru_cache(maxsize=1)
def _any_text() -> Expr:
    return expression.repeat(expression.machine(utf8_dfa(((0, MAX_CODE_POINT),))))


def encode(word: str | bytes) -> bytes | None:
    """Text as UTF-8; ``None`` if it has no encoding."""
    if isinstance(word, str):
        try:
            return word.encode()
        except UnicodeEncodeError:
            return None
    return word if isinstance(word, bytes) else as_bytes("word", word)


def as_bytes(name: str, value: object) -> bytes:
    """A bytes-like argument as bytes; TypeError for anything else (``bytes(5)`` would be five NULs)."""
    if not isinstance(value, bytes | bytearray | memoryview):
        refuse("a question about a language", name, value, "text or bytes" if name == "word" else "bytes")
    return bytes(value)


def _shorten(text: str, length: int) -> str:
    """``text`` in at most ``length`` characters, cut in the middle."""
    half = (length - 1) // 2
    return text if len(text) <= length else f"{text[:half]}…{text[-half:]}"


def widest(*budgets: Budget | None) -> Budget | None:
    """The field-wise maximum of those given: what something combined of several may cost."""
    given = [budget for budget in budgets if budget is not None]
    if not given:
        return None
    return Budget(*(max(getattr(b, field.name) for b in given) for field in fields(Budget)))
