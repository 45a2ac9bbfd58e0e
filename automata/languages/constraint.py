"""``Constraint``: the base class of all sets of texts, with one algebra and one query interface.

``Language`` (regular) defines a set by an expression, ``Grammar`` (context-free) by rules. Both have one automaton in
the native core, which answers every query. An operator on two different kinds is handled by the more general one:
``language | grammar`` is ``NotImplemented`` for the language, so Python calls the grammar, which knows languages. So
this room does not depend on grammars (docs/decisions/008-one-algebra.md).

Invariants: a constraint is immutable. Its automaton is created when it is first needed, only grows, by the states that
were visited, and may be shared by threads. ``==`` and ``hash`` are identity. An operation without an exact result
raises AlgebraError; no operation approximates.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import tokenfst._native as _native
import tokenfst.common.notebook as notebook
from tokenfst.automata.captures.trees import Reading
from tokenfst.automata.events.stream import Streamed
from tokenfst.automata.expressions.program import Program
from tokenfst.automata.languages.answer import Answer, Side
from tokenfst.automata.languages.display import explanation
from tokenfst.automata.languages.display.explanation import Explanation, Following
from tokenfst.automata.languages.engine import run_program
from tokenfst.automata.languages.operands import encode, encode_any, refuse_operand
from tokenfst.automata.languages.pickled import state_without
from tokenfst.automata.languages.texts import sampling
from tokenfst.automata.languages.texts.uniform import Draw, of_all, of_lengths
from tokenfst.automata.languages.texts.walk import Counts, Walk, texts
from tokenfst.budget import DEFAULT, Budget
from tokenfst.common.arguments import checked, checked_but, real, refuse, whole
from tokenfst.common.locks import fork_safe_lock
from tokenfst.common.plurals import counted
from tokenfst.errors import AlgebraError, BudgetExceeded, ConstraintError, EmptyLanguageError

_T = TypeVar("_T")
_LONG = 500
"""The greatest length, in bytes, of a prefix that ``following`` reads thousands of times."""
_WALKING = "the walk over texts"


class Constraint(Streamed):
    """A set of texts (byte strings): a ``Language`` or a ``Grammar``, also from schemas, templates and patterns.

    Combine constraints with ``| + & - ~``, ``star``, ``plus``, ``optional``, ``repeat``, ``reverse``, ``map_bytes``. An
    operation without an exact result raises AlgebraError with the reason. ``text in constraint`` tests membership;
    ``for text in constraint`` enumerates all texts, shorter ones first. Queries raise ``BudgetExceeded`` when they
    exceed the budget; they never guess.
    """

    __slots__ = ("__weakref__", "_automaton", "_budget", "_source", "_walked_over")

    never_a_list: ClassVar[bool] = True
    """A function that takes one value or several treats a constraint as one value, although it is iterable."""

    _kind: ClassVar[str]
    """The name of the class in ``repr`` and notebooks; for a class that users need not know, that of its base class."""
    _made_again: ClassVar[tuple[str, ...]] = ("_automaton", "_capture_reader", "_walked_over")
    """Attributes that are caches and are not pickled."""

    def __init__(self, source: str, budget: Budget | None, reading: Reading | None = None) -> None:
        super().__init__(reading)
        self._source, self._budget = source, budget
        self._automaton: _native.ByteAutomaton | None = None
        self._walked_over: _Walked | None = None

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        return state_without(self, *self._made_again)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """A readable description of the constraint's origin; long descriptions are shortened in the middle."""
        return self._source

    @property
    def budget(self) -> Budget:
        """The bounds of every query. Constraints that are derived from this one inherit them."""
        return self._budget or DEFAULT

    @property
    def given_budget(self) -> Budget | None:
        """The budget that was given explicitly; ``None`` if ``budget`` is the default."""
        return self._budget

    @abstractmethod
    def with_budget(self, budget: Budget) -> Constraint:
        """The same texts with other query bounds. A combination of several constraints takes the widest bounds."""

    @abstractmethod
    def program(self) -> Program:
        """The serialized form of the constraint that the native core reads."""

    def recipe(self) -> Callable[[], Constraint] | None:
        """A function that makes this constraint again, if that takes less memory than to keep the constraint.

        Automata then hold the function, not the constraint, and read no temperatures from it: a constraint whose rules
        set temperatures returns ``None``.
        """
        return None

    @property
    def automaton(self) -> _native.ByteAutomaton:
        """The automaton in the native core, with a stack if the grammar needs one.

        Created once and shared by threads. Its states are computed when they are first visited.
        """
        automaton = self._automaton
        if automaton is None:
            automaton = self._automaton = run_program(self.program(), self.budget)
        return automaton

    def _repr_html_(self) -> str:
        """The display in notebooks, which must not need much work."""
        return notebook.card(self._kind, self._facts(), self._sketch())

    def _facts(self) -> list[tuple[str, object]]:
        """Names and values for notebooks."""
        return [("source", self._source)]

    def _sketch(self) -> str | None:
        """A picture for notebooks, where it is small: SVG."""
        return None

    # --- algebra --------------------------------------------------------------------------------------

    @abstractmethod
    def __or__(self, other: Constraint) -> Constraint:
        """Texts in at least one of the two."""

    @abstractmethod
    def __add__(self, other: Constraint) -> Constraint:
        """Concatenation: a text of this one, then a text of the other."""

    @abstractmethod
    def __and__(self, other: Constraint) -> Constraint:
        """Texts in both. AlgebraError where neither is regular."""

    @abstractmethod
    def __sub__(self, other: Constraint) -> Constraint:
        """Texts in this one and not in the other. AlgebraError unless the other is regular."""

    def __ror__(self, other: Any) -> Any:
        refuse_operand("|", other)
        return NotImplemented

    def __radd__(self, other: Any) -> Any:
        refuse_operand("+", other)
        return NotImplemented

    def __rand__(self, other: Any) -> Any:
        refuse_operand("&", other)
        return NotImplemented

    def __rsub__(self, other: Any) -> Any:
        refuse_operand("-", other)
        return NotImplemented

    @abstractmethod
    def __invert__(self) -> Constraint:
        """All byte strings that are not texts of this constraint. Raises AlgebraError unless it is regular."""

    @abstractmethod
    def repeat(self, low: int, high: int | None = None) -> Constraint:
        """``low`` to ``high`` texts in sequence; without ``high``, at least ``low``."""

    @abstractmethod
    def star(self) -> Constraint:
        """Any number of texts in sequence (Kleene star)."""

    @abstractmethod
    def plus(self) -> Constraint:
        """One or more texts in sequence."""

    @abstractmethod
    def optional(self) -> Constraint:
        """A text of this constraint, or the empty text."""

    @abstractmethod
    def reverse(self) -> Constraint:
        """The texts reversed byte by byte (so characters beyond ASCII are no longer valid UTF-8)."""

    @abstractmethod
    def map_bytes(self, table: bytes) -> Constraint:
        """The texts with each byte b replaced by ``table[b]``, like ``bytes.translate``."""

    # --- questions ------------------------------------------------------------------------------------

    def accepts(self, word: str | bytes) -> bool:
        """Whether ``word`` (text in UTF-8) is a text of this constraint. Text with a lone surrogate never is.

        Linear in the word for languages and deterministic grammars; cubic in the worst case.
        """
        data = encode(word, "accepts")
        return data is not None and self._ask(lambda automaton: automaton.accepts(data))

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str | bytes | bytearray | memoryview) and self.accepts(
            word if isinstance(word, str) else bytes(word)
        )

    def viable_prefix(self, data: str | bytes) -> int:
        """The length in bytes of the longest prefix of ``data`` (text in UTF-8) that some text starts with; -1 if there
        is no text.
        """
        given = encode_any(data, "viable_prefix", "data")
        return self._ask(lambda automaton: automaton.viable_prefix(given))

    @checked
    def next_bytes(self, prefix: str | bytes) -> tuple[bytes, bool]:
        """The bytes that can follow ``prefix`` (text in UTF-8), ascending, and whether ``prefix`` itself is a text."""
        data = encode(prefix, "next_bytes", "prefix")
        return (b"", False) if data is None else self._ask(lambda automaton: automaton.next_bytes(data))

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the constraint has no texts."""

    @abstractmethod
    def witness(self) -> bytes | None:
        """A shortest text, preferably a readable one if that is cheap to find; ``None`` if there is none."""

    @abstractmethod
    def shortest(self) -> bytes | None:
        """The shortest text, of several the least in byte order: the first of ``for text in constraint``; ``None`` if
        there is none. Where strings must differ from each other, a short text.
        """

    @abstractmethod
    def is_finite(self) -> bool:
        """Whether there are finitely many texts.

        Decided by the form of expressions and rules. Where intersections, complements or look-around leave the answer
        open, their automata are searched.
        """

    def completion(self, prefix: str | bytes) -> bytes | None:
        """A shortest completion: the fewest bytes that extend ``prefix`` (text in UTF-8) to a text; ``None`` if no text
        starts with ``prefix``. Where strings must differ, a short completion.
        """
        data = encode(prefix, "completion", "prefix")
        return None if data is None else self._completion(data)

    @abstractmethod
    def _completion(self, prefix: bytes) -> bytes | None:
        """``completion``."""

    def count(self, max_length: int | None = None) -> Counts:
        """The number of texts, by length in bytes and in total, as exact integers.

        ``max_length``: longer texts are not counted. Without it all are counted, and ConstraintError is raised if there
        are infinitely many. A text with several derivations counts once. Raises AlgebraError where strings must differ
        from each other: no automaton counts such texts.
        """
        if max_length is not None:
            max_length = whole("count", "max_length", max_length, 0)
        self._refuse_differing("count")
        if max_length is None and not self.is_finite():
            raise ConstraintError(
                f"there are infinitely many texts of {self._source}: say count(max_length=...)"
            )
        return self._walking(lambda walk: walk.counts(max_length))

    def __iter__(self) -> Iterator[bytes]:
        """All texts, shorter ones first, those of one length in byte order; each is found when it is asked for, within
        the seconds of the budget.
        """
        walk = Walk(self.automaton, self.budget, _WALKING)
        return texts(walk, self._is_surely_endless(), self.accepts if self.automaton.has_marks else None)

    def sample(
        self,
        generator: random.Random | Any = None,
        max_length: int | None = None,
        *,
        length: int | None = None,
        weights: Mapping[int, float] | Literal["texts"] | None = None,
    ) -> bytes:
        """A random text.

        Without ``length`` and ``weights`` the text is readable where the constraint allows it, so not every text can be
        drawn; ``max_length`` bounds its length in bytes, and without it the walk heads for the end after up to 48
        bytes. With ``length=n`` all texts of n bytes are equally probable. ``weights`` maps lengths to weights: first a
        length is drawn, among those that have texts, then one of its texts uniformly. ``weights="texts"``: all texts of
        up to ``max_length`` bytes are equally probable.

        ``generator``: a ``random.Random`` or numpy ``Generator``; by default a new one. The same generator state gives
        the same text. Raises ``EmptyLanguageError``, and ``ConstraintError`` if all texts have other lengths.
        """
        if generator is None:
            generator = random.Random()
        elif not hasattr(generator, "random"):
            refuse("sample", "generator", generator, "a random.Random or a numpy Generator")
        if max_length is not None:
            max_length = whole("sample", "max_length", max_length, 0)
        if length is not None and weights is not None:
            raise ConstraintError("sample takes length= or weights=, not both")
        if length is not None:
            weights = {whole("sample", "length", length, 0): 1.0}
        if weights is None:
            return self._readable_sample(generator, max_length)
        if weights == "texts":
            if max_length is None:
                raise ConstraintError("weights='texts' goes with max_length: up to which length?")
            return self._drawn(of_all(generator, max_length), f"at most {counted(max_length, 'byte')}")
        if not isinstance(weights, Mapping):
            refuse("sample", "weights", weights, "a mapping from lengths to weights, or 'texts'")
        if max_length is not None:
            raise ConstraintError(
                "max_length goes with weights='texts', or without weights and length, which name the lengths themselves"
            )
        numbers = {
            whole("sample", "each length in weights", each, 0): real(
                "sample", "each weight in weights", weight
            )
            for each, weight in weights.items()
        }
        if not all(0 <= weight < float("inf") for weight in numbers.values()):
            raise ConstraintError("sample: weights must be finite numbers, none of them negative")
        return self._drawn(of_lengths(generator, numbers), _lengths_named(numbers))

    @checked
    def equivalent(self, other: Constraint) -> Answer:
        """Whether both constraints have the same texts.

        If not, the answer's witness is a shortest text that only one of them has. Raises AlgebraError unless both are
        regular.
        """
        difference = (self - other) | (other - self)
        return self._compare(difference)

    @checked
    def includes(self, other: Constraint) -> Answer:
        """Whether every text of ``other`` is in this constraint.

        If not, the witness is a shortest missing text. Raises AlgebraError unless this constraint is regular.
        """
        return self._compare(other - self)

    @checked_but("text")
    def explain(self, text: str | bytes, *, prefix: bool = False) -> Explanation:
        """Whether ``text`` is in the constraint, and if not, where and why it fails.

        The explanation has the byte offset at which the text leaves the constraint, what was expected there, and a
        shortest completion. ``print`` shows it with a caret. ``prefix``: test whether some text starts with ``text``.
        """
        data = encode_any(text, "explain", "text")
        valid = self.viable_prefix(data)
        if valid == len(data) and (prefix or self.accepts(data)):
            return Explanation(data, True)
        if valid < 0:
            return Explanation(data, False)
        place, character = explanation.leaving(data, valid)
        expected = self.following(data[:place])
        ending: bytes | None = None
        with suppress(BudgetExceeded):  # the answer is there without it
            ending = self.completion(data[:place])
        return Explanation(data, False, place, character, expected, ending, self.open_rules(data[:place]))

    def following(self, prefix: str | bytes) -> Following:
        """The characters, or the end of the text, that may follow ``prefix`` (text in UTF-8), which must end between
        two characters.

        Where strings must differ from each other, after a prefix of more than 500 bytes, characters beyond ASCII are
        given by their first bytes.
        """
        given = encode_any(prefix, "following", "prefix")
        if not self.automaton.has_marks:
            walk = Walk(self.automaton, self.budget, _WALKING)
            at = walk.run(given)
            return (
                Following(False, (), b"")
                if at is None
                else explanation.following(explanation.walked(walk, at))
            )
        return explanation.following(lambda way: self.next_bytes(given + way), whole=len(given) <= _LONG)

    # --- details --------------------------------------------------------------------------------------

    @abstractmethod
    def _is_surely_endless(self) -> bool:
        """Whether it is known, without a search, that there are infinitely many texts."""

    def open_rules(self, prefix: str | bytes) -> tuple[str, ...] | None:
        """The names of the grammar rules that are open after ``prefix``, outermost first; None without rules."""
        return None

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

    def _walking(self, question: Callable[[Walk], _T]) -> _T:
        """The answer of a walk that is kept: what was counted for one question serves the next one."""
        held = self._walked_over
        if held is None:
            held = self._walked_over = _Walked(Walk(self.automaton, self.budget, _WALKING), fork_safe_lock())
        with held.lock:
            held.walk.begin()
            try:
                return question(held.walk)
            except BudgetExceeded:
                self._walked_over = None
                raise

    def _refuse_differing(self, operation: str) -> None:
        if self.automaton.has_marks:
            raise AlgebraError(
                f"{operation}: strings of {self._source} must differ from each other (names of a JSON object, unique "
                'items), which a sequence remembers and no automaton: make the schema with repeated_names="allow" or '
                'additional_properties="forbid"'
            )

    def _compare(self, difference: Constraint) -> Answer:
        word = difference.witness()
        if word is None:
            return Answer(True)
        return Answer(False, word, Side.LEFT if self.accepts(word) else Side.RIGHT)

    # --- samples --------------------------------------------------------------------------------------

    def _readable_sample(self, generator: Any, max_length: int | None) -> bytes:
        if self.is_empty():
            raise self._nothing_to_draw()

        def complete(prefix: bytes) -> bytes:
            end = self.completion(prefix)
            assert end is not None, "the walk left the constraint"
            return end

        if max_length is not None and (shortest := len(complete(b""))) > max_length:
            raise ConstraintError(
                f"the shortest word of {self!r} has {counted(shortest, 'byte')}, more than {max_length}"
            )
        return sampling.sample(self, complete, generator, max_length)

    def _drawn(self, draw: Draw, wanted: str) -> bytes:
        """The text of the length and the place that ``draw`` says. Where strings must differ, the first that does."""
        differing = self.automaton.has_marks

        def question(walk: Walk) -> bytes | None:
            while True:
                chosen = draw(walk)
                if chosen is None:
                    return None
                text = walk.text_at(*chosen)
                if not differing or self.accepts(text):
                    return text
                walk.deadline.check()

        found = self._walking(question)
        if found is not None:
            return found
        if self.is_empty():
            raise self._nothing_to_draw()
        raise ConstraintError(f"there is no text of {wanted} in {self!r}")

    def _nothing_to_draw(self) -> EmptyLanguageError:
        return EmptyLanguageError(f"there is no word to draw: {self!r} is empty")


def _lengths_named(lengths: Collection[int]) -> str:
    if len(lengths) == 1:
        return f"length {next(iter(lengths))}"
    named = ", ".join(map(str, list(lengths)[:8])) + (", ..." if len(lengths) > 8 else "")
    return f"a length among {named or 'none'}"


class _Walked(NamedTuple):
    """A walk that several questions share, one at a time."""

    walk: Walk
    lock: Any
