"""``Operators``: the algebra of grammars, with each other and with languages.

Concatenation, union and repetition combine rules (``assembly``). Intersection with a regular operand, or with its
complement, is a product (``rules.product``). Reversal and substitution of bytes commute with concatenation, union and
calls, so they transform one body after another. The intersection of two grammars and the complement of a grammar are
not context-free in general. There a regular grammar is converted to a language, and others are rejected.

Cost: linear in the rules, except for intersections (``product``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tokenfst.automata.captures.trees import Reading, within
from tokenfst.automata.expressions.expression import Dfa, Expr, Op, concat, repeat, union
from tokenfst.automata.languages import reversal
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.display.readable import shorten
from tokenfst.automata.languages.engine import make_automaton, make_tables
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import bounds, byte_table, refuse_operand, widest
from tokenfst.automata.rules.graph import Rules
from tokenfst.automata.rules.product import intersect
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import AlgebraError

if TYPE_CHECKING:
    from tokenfst.automata.grammars.captured import NamedParts
    from tokenfst.automata.grammars.grammar import Grammar

_NO_COMPLEMENT = "what is not in a context-free language need not be context-free"
_SOURCE_LENGTH = 110
"""Maximum length of each operand's description in that of a combination."""


class Operators(Constraint):
    """The operators of ``Grammar``, the only subclass."""

    __slots__ = ("_positions", "_rules", "_start")

    _rules: Rules
    _start: str
    _positions: Mapping[str, int]

    @abstractmethod
    def is_regular(self) -> bool:
        """Whether the grammar can be converted to a language."""

    @abstractmethod
    def to_language(self) -> Language:
        """The same words as a language, if it is regular."""

    @abstractmethod
    def _productive(self) -> Rules:
        """The rules, without parts that have no word."""

    @abstractmethod
    def _like(
        self,
        rules: Mapping[str, Expr],
        source: str,
        budget: Budget | None,
        positions: Mapping[str, int] | None = None,
        marked: NamedParts | None = None,
        reading: Reading | None = None,
    ) -> Grammar:
        """Other rules that were made of these, and begin with the same one."""

    def __or__(self, other: Constraint) -> Grammar:
        """Words in at least one of the two."""
        return self._put_together("|", self, other)

    def __ror__(self, other: Constraint) -> Grammar:
        """``language | grammar``."""
        return self._put_together("|", other, self)

    def __add__(self, other: Constraint) -> Grammar:
        """Concatenation: a word of this grammar, then a word of the other."""
        return self._put_together("+", self, other)

    def __radd__(self, other: Constraint) -> Grammar:
        """``language + grammar``."""
        return self._put_together("+", other, self)

    def __and__(self, other: Constraint) -> Grammar:
        """Words of this grammar that are also in a language, as a grammar.

        Its rules are named after rules of this one and states of ``other.determinize()``: ``value[2→5]`` has the
        words of ``value`` that lead from state 2 to state 5, and ``value#1[2→5]`` is a part of it. Only rules that
        have a word and are used are made: at worst rules × states² of them, with as many alternatives each as there
        are states. (So a bound on the length, with a state for each byte, costs much; a limit of tokens is cheaper.)

        Of two grammars, one must be regular: AlgebraError. BudgetExceeded names the rule that grew.
        """
        if isinstance(other, Operators):
            if not other.is_regular() and self.is_regular():
                return other & self
            other = other._as_language(
                "&",
                "the words that two grammars share need not be context-free, and whether there are any is undecidable",
                "intersect one grammar with the other's truncate(depth)",
            )
        if not isinstance(other, Language):
            refuse_operand("&", other)
            return NotImplemented
        if self._differs:
            raise AlgebraError(
                "&: strings of this grammar must differ from each other (names of a JSON object, unique items), which "
                "a sequence remembers, and no automaton knows which of them are left: make the schema with "
                'repeated_names="allow" or additional_properties="forbid"'
            )
        source = f"({shorten(self._source, _SOURCE_LENGTH)}) & ({shorten(other.source, _SOURCE_LENGTH)})"
        budget = widest(self._budget, other.given_budget)
        bounded = other if budget in (None, other.budget) else other.with_budget(budget)
        made = intersect(self._productive(), self._start, bounded.determinize(), budget or Budget())
        positions = {
            name: self._positions[rule] for name, rule in made.origins.items() if rule in self._positions
        }
        found = self._like(made.rules, source, budget, positions)
        if self.reading is None and other.reading is None:
            return found
        read = within(found, (self.reading, other.reading))
        return self._like(made.rules, source, budget, positions, reading=read)

    def __rand__(self, other: Constraint) -> Grammar:
        """The same as ``language & grammar``."""
        return self & other

    def __sub__(self, other: Constraint) -> Grammar:
        """Words of this grammar that are not in the other. AlgebraError unless that is regular."""
        if isinstance(other, Operators):
            other = other._as_language(
                "-", _NO_COMPLEMENT, "subtract what its truncate(depth) has, which takes fewer words away"
            )
        if not isinstance(other, Language):
            refuse_operand("-", other)
            return NotImplemented
        return self & ~other  # which captures nothing

    def __rsub__(self, other: Constraint) -> Constraint:
        """``language - grammar``. AlgebraError unless the grammar is regular."""
        if not isinstance(other, Language):
            refuse_operand("-", other)
            return NotImplemented
        return other - self._as_language(
            "-", _NO_COMPLEMENT, "subtract what its truncate(depth) has, which takes fewer words away"
        )

    def __invert__(self) -> Language:
        """All byte strings that are not words of this grammar. Raises AlgebraError unless it is regular."""
        return ~self._as_language(
            "~", _NO_COMPLEMENT, "complement its truncate(depth), which keeps more strings"
        )

    @checked
    def repeat(self, low: int, high: int | None = None) -> Grammar:
        """``low`` to ``high`` words in sequence; without ``high``, at least ``low``."""
        bounds(low, high)
        return self._repeated(low, high, f"repeat({low}, {high})")

    def star(self) -> Grammar:
        """Any number of words in sequence (Kleene star)."""
        return self._repeated(0, None, "star()")

    def plus(self) -> Grammar:
        """One or more words in sequence."""
        return self._repeated(1, None, "plus()")

    def optional(self) -> Grammar:
        """A word of this grammar, or the empty word."""
        return self._repeated(0, 1, "optional()")

    def reverse(self) -> Grammar:
        """The words reversed byte by byte: each rule separately, as ``Language.reverse`` does."""
        return self._rewritten(reversal.reverse, "reverse()")

    def map_bytes(self, table: bytes) -> Grammar:
        """The words with each byte b replaced by ``table[b]``: each rule separately, as ``Language.map_bytes`` does."""
        checked_table = byte_table(table)
        return self._rewritten(
            lambda body, determinize: reversal.map_bytes(body, checked_table, determinize), "map_bytes(...)"
        )

    # --- details --------------------------------------------------------------------------------------

    @property
    def _differs(self) -> bool:
        """Whether strings must differ from each other (``exclusion_marks.fresh``)."""
        return any(node.op is Op.FRESH for name in self._rules for node in self._rules.nodes(name))

    def _as_language(self, sign: str, why: str, instead: str) -> Language:
        """The same words as a Language. If the grammar is not regular, raises AlgebraError, which says why a
        language is needed and what to do instead.
        """
        if not self.is_regular():
            raise AlgebraError(
                f"{sign}: {why}. {shorten(self._source, _SOURCE_LENGTH)} is a grammar that needs a stack: {instead}"
            )
        return self.to_language()

    def _put_together(self, sign: str, left: Constraint, right: Constraint) -> Grammar:
        for operand in (left, right):
            if not isinstance(operand, Constraint):
                refuse_operand(sign, operand)
                return NotImplemented
        source = f"({shorten(left.source, _SOURCE_LENGTH)}) {sign} ({shorten(right.source, _SOURCE_LENGTH)})"
        return _assembled((left, right), union if sign == "|" else concat, source)

    def _repeated(self, low: int, high: int | None, call: str) -> Grammar:
        source = f"({shorten(self._source, _SOURCE_LENGTH)}).{call}"
        return _assembled((self,), lambda part: repeat(part, low, high, source), source)

    def _rewritten(self, operation: Callable[[Expr, reversal.Determinize], Expr], call: str) -> Grammar:
        def tables(part: Expr) -> Dfa:
            return make_tables(make_automaton(part, self.budget))

        rules = {name: operation(body, tables) for name, body in self._rules.items()}
        source = f"({shorten(self._source, _SOURCE_LENGTH)}).{call}"
        return self._like(rules, source, self._budget)


def _assembled(parts: Sequence[Constraint], operation: Callable[..., Expr], source: str) -> Grammar:
    """The result of ``operation`` for the expressions of several constraints, one of which is a grammar."""
    from tokenfst.automata.grammars.assembly import Assembly  # which needs grammars, as they need this
    from tokenfst.automata.grammars.grammar import Grammar

    assembly = Assembly()
    made = assembly.finish(operation(*(assembly.expr(part) for part in parts)), source)
    assert isinstance(made, Grammar)
    return made
