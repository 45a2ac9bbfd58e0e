"""What all sets of texts are: one value, ``Constraint``, with one algebra and one way to ask questions.

The idea: ``Language`` (regular) and ``Grammar`` (context-free) say what a set of texts is by an expression and by
rules; both have one automaton in the native core, and every question is put to that. An operator of two kinds is the
more general one's: ``language | grammar`` is ``NotImplemented`` for the language, so Python asks the grammar, which
knows what a language is. So this room knows nothing of grammars (docs/decisions/008-one-algebra.md).

Invariants: a constraint never changes; its automaton is made when first needed, only ever grows by states that were
looked at, and may be shared by threads. ``==`` and ``hash`` are identity. An operation that has no exact result raises
AlgebraError; none gives an approximation.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import tokenfst._native as _native
import tokenfst.notebook as notebook
from tokenfst.arguments import checked, checked_but, refuse, whole
from tokenfst.automata.captures.trees import Reading
from tokenfst.automata.events.stream import Streamed
from tokenfst.automata.expressions.program import Program
from tokenfst.automata.languages.answer import Answer, Side
from tokenfst.automata.languages.display import explanation
from tokenfst.automata.languages.display.explanation import Explanation, Following
from tokenfst.automata.languages.engine import run_program
from tokenfst.automata.languages.operands import encode
from tokenfst.automata.languages.pickled import state_without
from tokenfst.automata.languages.texts import sampling
from tokenfst.automata.languages.texts.uniform import Draw, of_all, of_lengths
from tokenfst.automata.languages.texts.walk import Counts, Walk, texts
from tokenfst.budget import Budget
from tokenfst.errors import AlgebraError, BudgetExceeded, ConstraintError, EmptyLanguageError
from tokenfst.locks import fork_safe_lock

_T = TypeVar("_T")
_LONG = 500
"""Bytes of a prefix that is read thousands of times without hesitation."""
_WALKING = "the walk over texts"


class Constraint(Streamed):
    """A set of texts (byte strings): a ``Language`` or a ``Grammar``, as are schemas, templates and patterns.

    Combine with ``| + & - ~``, ``star``, ``plus``, ``optional``, ``repeat``, ``reverse``, ``map_bytes``; where an
    operation has no exact result, AlgebraError says why. ``text in constraint`` asks, ``for text in constraint`` goes
    through all texts, shorter ones first. Questions raise ``BudgetExceeded`` when they outgrow the budget; they never
    guess.
    """

    __slots__ = ("__weakref__", "_automaton", "_budget", "_source", "_walked_over")

    never_a_list: ClassVar[bool] = True
    """Where a call takes any number of things, this is one of them, though one can iterate over it."""

    _made_again: ClassVar[tuple[str, ...]] = ("_automaton", "_capture_reader", "_walked_over")
    """What is kept only to save work, and does not go to other processes."""

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
        """What the constraint was made from, for people; long descriptions are shortened in the middle."""
        return self._source

    @property
    def budget(self) -> Budget:
        """The bounds of every question; what is made from this constraint inherits them."""
        return self._budget or Budget()

    @property
    def given_budget(self) -> Budget | None:
        """The budget that was given; ``None``: none was, and ``budget`` is the default."""
        return self._budget

    @abstractmethod
    def with_budget(self, budget: Budget) -> Constraint:
        """The same texts, with other bounds of questions. What is combined of several takes the wider bounds."""

    @abstractmethod
    def program(self) -> Program:
        """The constraint as the native core reads it."""

    @property
    def automaton(self) -> _native.ByteAutomaton:
        """The automaton in the native core, with stacks where a grammar needs them, whose states are made when they
        are first met; made once, shared by threads."""
        automaton = self._automaton
        if automaton is None:
            automaton = self._automaton = run_program(self.program(), self.budget)
        return automaton

    def _repr_html_(self) -> str:
        """What notebooks show; never much work."""
        return notebook.card(type(self).__name__, self._facts(), self._sketch())

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

    @abstractmethod
    def __invert__(self) -> Constraint:
        """All byte strings that are no text of this one. AlgebraError unless it is regular."""

    @abstractmethod
    def repeat(self, low: int, high: int | None = None) -> Constraint:
        """``low`` to ``high`` texts one after the other; without ``high``, ``low`` or more."""

    @abstractmethod
    def star(self) -> Constraint:
        """Any number of texts one after the other."""

    @abstractmethod
    def plus(self) -> Constraint:
        """One text or more, one after the other."""

    @abstractmethod
    def optional(self) -> Constraint:
        """A text of this one, or the empty text."""

    @abstractmethod
    def reverse(self) -> Constraint:
        """The texts read backwards, byte by byte (so characters beyond ASCII are no UTF-8 any more)."""

    @abstractmethod
    def map_bytes(self, table: bytes) -> Constraint:
        """The texts with each byte b replaced by ``table[b]``, as by ``bytes.translate``."""

    # --- questions ------------------------------------------------------------------------------------

    def accepts(self, word: str | bytes) -> bool:
        """Whether ``word`` (text in UTF-8) is a text of this constraint. Text with a lone surrogate never is.

        Linear in the word for languages and deterministic grammars; at worst cubic.
        """
        data = encode(word)
        return data is not None and self._ask(lambda automaton: automaton.accepts(data))

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str | bytes | bytearray | memoryview) and self.accepts(
            word if isinstance(word, str) else bytes(word)
        )

    def viable_prefix(self, data: bytes) -> int:
        """How many bytes of ``data`` some text begins with; -1 if there is no text."""
        return self._ask(lambda automaton: automaton.viable_prefix(data))

    @checked
    def next_bytes(self, prefix: str | bytes) -> tuple[bytes, bool]:
        """The bytes that can follow ``prefix`` (text in UTF-8) on the way to a text, ascending, and whether it is
        itself a text."""
        data = encode(prefix)
        return (b"", False) if data is None else self._ask(lambda automaton: automaton.next_bytes(data))

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no text at all."""

    @abstractmethod
    def witness(self) -> bytes | None:
        """A shortest text, a readable one if that is cheap to find; ``None`` if there is none."""

    @abstractmethod
    def shortest(self) -> bytes | None:
        """The shortest text, of several the least in byte order: the first of ``for text in constraint``; ``None`` if
        there is none. Where strings must differ from each other, a short one."""

    @abstractmethod
    def is_finite(self) -> bool:
        """Whether there are finitely many texts.

        By the form of expressions and rules; automata are searched where intersections, complements or look-around
        leave it open.
        """

    @abstractmethod
    def completion(self, prefix: bytes) -> bytes | None:
        """A shortest way on: the fewest bytes that make a text of ``prefix``; ``None`` if no text begins so."""

    def count(self, max_length: int | None = None) -> Counts:
        """How many texts there are, by length in bytes and in all; exact integers. ``max_length``: longer ones do not
        count; without, all count, and ConstraintError is raised if they are infinitely many.

        Texts count once, however many ways there are to read them. Where strings must differ from each other,
        AlgebraError: no automaton counts them.
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
        the seconds of the budget."""
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

        Without ``length`` and ``weights`` it is readable where the constraint allows, so not every text has a chance;
        ``max_length``: at most so many bytes; without, the walk heads for the end after up to 48 bytes. With
        ``length=n`` all texts of n bytes are equally probable. ``weights`` maps lengths to weights: first a length is
        drawn, among those of which there are texts, then one of its texts. ``weights="texts"``: all texts of up to
        ``max_length`` bytes are equally probable.

        ``generator``: a ``random.Random`` or numpy ``Generator`` (without: a fresh one). The same state of it gives
        the same text. Raises ``EmptyLanguageError``, and ``ConstraintError`` if there are only texts of other lengths.
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
            return self._drawn(of_all(generator, max_length), f"at most {max_length} bytes")
        if max_length is not None:
            raise ConstraintError(
                "max_length goes with weights='texts', or without weights; a mapping names its lengths"
            )
        if not isinstance(weights, Mapping):
            refuse("sample", "weights", weights, "a mapping from lengths to weights, or 'texts'")
        numbers = {whole("sample", "weights", each, 0): float(weight) for each, weight in weights.items()}
        if not all(0 <= weight < float("inf") for weight in numbers.values()):
            raise ConstraintError("sample: weights must be finite numbers, none of them negative")
        named = ", ".join(map(str, list(numbers)[:8])) + (", ..." if len(numbers) > 8 else "")
        return self._drawn(of_lengths(generator, numbers), f"a length among {named or 'none'}")

    @checked
    def equivalent(self, other: Constraint) -> Answer:
        """Whether both hold the same texts. If not, the answer's witness is a shortest text in only one. AlgebraError
        unless both are regular."""
        difference = (self - other) | (other - self)
        return self._compare(difference)

    @checked
    def includes(self, other: Constraint) -> Answer:
        """Whether every text of ``other`` is in this one. If not, the witness is a shortest that is missing.
        AlgebraError unless this one is regular."""
        return self._compare(other - self)

    @checked_but("text")
    def explain(self, text: str | bytes, *, prefix: bool = False) -> Explanation:
        """Whether ``text`` is in the constraint, and if not: the byte where it leaves it, what could have stood there,
        and a shortest way on. ``print`` shows it with a caret. ``prefix``: whether some text begins so."""
        data = encode(text)
        if data is None:
            assert isinstance(text, str)
            data = text.encode("utf-8", "surrogatepass")
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

    def following(self, prefix: bytes) -> Following:
        """What may follow ``prefix``, which ends between characters: as characters, or the end. Where strings must
        differ from each other, characters beyond ASCII are told by their first bytes after a long prefix."""
        if not self.automaton.has_marks:
            walk = Walk(self.automaton, self.budget, _WALKING)
            at = walk.run(prefix)
            return (
                Following(False, (), b"")
                if at is None
                else explanation.following(explanation.walked(walk, at))
            )
        return explanation.following(lambda way: self.next_bytes(prefix + way), whole=len(prefix) <= _LONG)

    # --- details --------------------------------------------------------------------------------------

    @abstractmethod
    def _is_surely_endless(self) -> bool:
        """Whether it is known, without a search, that there are infinitely many texts."""

    def open_rules(self, prefix: bytes) -> tuple[str, ...] | None:
        """The rules of a grammar that are open behind ``prefix``."""
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
                f"the shortest word of {self!r} has {shortest} bytes, more than {max_length}"
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


class _Walked(NamedTuple):
    """A walk that several questions share, one at a time."""

    walk: Walk
    lock: Any
