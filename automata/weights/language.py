"""``WeightedLanguage``: a regular language with weights.

The weight of a text is the sum, over its paths, of the product of their weights (log semiring), so ambiguous machines
are exact. Weights are stored and given as natural logarithms; a text outside the language has -inf.

Sums over all texts are solutions of linear equations (``sums``): the total (``mass``), the entropy, the expected
length, the expected use of an arc. ``normalized()`` divides by them, which makes the weights of every state sum to one.
Its scores during decoding are then conditional probabilities, whereas the scores of a machine that is not normalized
are the weights of the paths so far.

Rejected: weights on the words of a ``Language``. A sum over them needs a machine anyway, and weights that are not
rational (those of a neural model) have none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import tokenfst._native as _native
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import encode, refuse_operand
from tokenfst.automata.openfst.label_kinds import byte_arcs, filled_with_bytes
from tokenfst.automata.openfst.labels import BYTE_ZERO_LABEL
from tokenfst.automata.transducer_operations.operations import determinize, intersect
from tokenfst.automata.transducers.checks import limits
from tokenfst.automata.transducers.mapping import convert
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import ARC_TYPES
from tokenfst.automata.weights import drawing_texts, sums
from tokenfst.automata.weights.grammar_mass import grammar_mass
from tokenfst.automata.weights.machine import (
    Floats,
    Machine,
    is_deterministic,
    make,
    of_texts,
    without_failures,
)
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, refuse, whole
from tokenfst.common.plurals import counted
from tokenfst.errors import ArgumentValueError, ConstraintError, EmptyLanguageError, FstError

_SOURCE_LENGTH = 240


class WeightedLanguage:
    """Weighted texts (byte strings); immutable.

    Created by ``from_fst``, ``of``, ``alternatives``, ``prefer``, ``boost`` or ``NGramModel.to_weighted``. Combine with
    ``&`` (weights multiply), ``|`` (weights add), ``+`` (concatenation).

    ``special_weight``: the log weight of a special token, which has no bytes. It is -inf (forbidden), unless the
    language forbids nothing (``prefer``, ``boost``).
    """

    __slots__ = ("_core", "_plain", "budget", "machine", "source", "special_weight")

    def __init__(
        self,
        machine: Machine,
        source: str = "",
        budget: Budget | None = None,
        special_weight: float = -np.inf,
    ) -> None:
        if not isinstance(machine, Machine):
            refuse(
                "WeightedLanguage", "machine", machine, "a Machine: use from_fst(), of() or alternatives()"
            )
        self.machine, self.source, self.budget = machine, source, budget or Budget()
        self.special_weight = float(special_weight)
        self._plain: Machine | None = None
        self._core: _native.WeightedBytes | None = None

    def __repr__(self) -> str:
        size = f"{counted(self.machine.num_states, 'state')}, {counted(len(self.machine.labels), 'arc')}"
        return f"<WeightedLanguage {self.source or 'of a machine'}: {size}>"

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        kept = ("budget", "machine", "source", "special_weight")
        return None, {name: getattr(self, name) for name in kept} | {"_plain": None, "_core": None}

    # --- constructors ---------------------------------------------------------------------------------

    @classmethod
    @checked
    def from_fst(
        cls, fst: VectorFst, *, byte_zero: int | None = None, token_type: Any = None, source: str = "fst",
        budget: Budget | None = None,
    ) -> WeightedLanguage:  # fmt: skip
        """The language of an acceptor of ``tokenfst.fst`` over any numeric semiring except min-max.

        Weights of "standard" and "log" are costs (negative logarithms), those of "real" are probabilities. **Paths are
        summed**, also those of a "standard" machine. The meaning of labels is given as for ``Language.from_fst``: by
        symbol tables, ``byte_zero`` or ``token_type``. Epsilons are removed exactly. Raises ``FstError`` for
        transducers, labels that are not bytes, and epsilons whose sum diverges.
        """
        limit = budget or Budget()
        plain = convert(fst, "log64", budget=limit)
        plain.rmepsilon(budget=limit)
        if plain.start() < 0:
            return cls(of_texts([]), source, limit)
        finals, counts, ilabels, olabels, weights, targets = plain.arrays()
        some = np.flatnonzero(weights < np.inf)
        states = np.repeat(np.arange(len(counts)), counts)[some]
        boolean = ARC_TYPES["boolean"]
        core = boolean.core.from_arrays(
            plain.start(), (finals < np.inf).astype(np.uint8),
            np.bincount(states, minlength=len(counts)).astype(np.int64), ilabels[some], olabels[some],
            np.ones(len(some), np.uint8), targets[some], limits(limit),
        )  # fmt: skip
        named: Any = VectorFst.of_core(boolean, core, plain.tables)
        arcs = byte_arcs(named, byte_zero=byte_zero, token_type=token_type, budget=limit, acceptor=True)
        # Arcs of several bytes begin with one that leaves the arc's own state, in the order of the arcs.
        logs = np.zeros(len(arcs.source))
        logs[arcs.source < len(counts)] = -weights[some]
        ends = np.full(arcs.num_states, -np.inf)
        ends[: len(counts)] = -finals
        if (logs == np.inf).any() or (ends == np.inf).any():
            raise FstError(f"{source}: a weight is infinite")
        bytes_ = arcs.ilabel.astype(np.int64) - BYTE_ZERO_LABEL
        made = (arcs.source.astype(np.int64), bytes_, logs, arcs.nextstate.astype(np.int64))
        return cls(make(plain.start(), 0.0, ends, made), source, limit)

    @classmethod
    @checked
    def of(cls, language: Constraint, budget: Budget | None = None) -> WeightedLanguage:
        """Every text of a language with weight 1. Computes all its states. Grammars are accepted if they are regular.

        Linear in its states and their arcs.
        """
        regular = as_language(language, "WeightedLanguage.of")
        fst = convert(regular.to_native_fst(), "log64")
        return cls.from_fst(fst, source=regular.source, budget=budget or regular.budget)

    @classmethod
    @checked
    def alternatives(
        cls,
        choices: Mapping[str, float] | Iterable[tuple[str | bytes | Constraint, float]],
        budget: Budget | None = None,
    ) -> WeightedLanguage:
        """The weighted union of texts or languages: ``{"yes": 3, "no": 1}``.

        Weights are non-negative numbers, not logarithms. The weight of a text is the sum of the weights of the
        alternatives that contain it. Raises ``ArgumentValueError`` for other weights.
        """
        texts: list[tuple[bytes, float]] = []
        parts: list[WeightedLanguage] = []
        pairs = list(choices.items() if isinstance(choices, Mapping) else choices)
        for at, pair in enumerate(pairs):
            if not isinstance(pair, tuple) or len(pair) != 2:
                refuse(
                    "WeightedLanguage.alternatives", f"choices[{at}]", pair, "a pair of a text and its weight"
                )
            text, weight = pair
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < np.inf:
                refuse(
                    "WeightedLanguage.alternatives", f"the weight of choices[{at}]", weight,
                    "a number that is not negative and finite", ArgumentValueError,
                )  # fmt: skip
            if (
                not isinstance(text, Constraint)
                and (data := encode(text, "WeightedLanguage.alternatives", f"choices[{at}]")) is not None
            ):
                texts.append((data, math.log(weight) if weight else -np.inf))
            elif weight:
                each = text if isinstance(text, Constraint) else Language.literal(text)
                parts.append(cls.of(each, budget).scaled(math.log(weight)))
        parts.append(cls(of_texts(texts), "", budget))
        while len(parts) > 1:
            pairwise = [one | other for one, other in zip(parts[::2], parts[1::2], strict=False)]
            parts = pairwise + parts[len(pairwise) * 2 :]
        return cls(parts[0].machine, f"{len(pairs)} alternatives", budget)

    # --- what it is -----------------------------------------------------------------------------------

    def is_empty(self) -> bool:
        """Whether no text has a positive weight."""
        return self.machine.num_states == 0

    @property
    def is_deterministic(self) -> bool:
        """Whether each text has at most one path."""
        return is_deterministic(self.machine)

    @property
    def core(self) -> _native.WeightedBytes:
        """The automaton object of the native core; created once. Raises ``EmptyLanguageError`` if there is no text."""
        if self._core is None:
            if self.is_empty():
                raise EmptyLanguageError(f"{self!r} has no text with a weight")
            self._core = _native.WeightedBytes(*self.machine.core_arguments())  # type: ignore[arg-type]
        return self._core

    @property
    def plain(self) -> Machine:
        """The machine without failure arcs; computed once."""
        if self._plain is None:
            self._plain = without_failures(self.machine, self.budget)
        return self._plain

    @checked
    def log_weight(self, text: str | bytes) -> float:
        """The log of a text's weight; -inf for a text outside the language. O(length x active paths)."""
        data = encode(text)
        if data is None or self.is_empty():
            return -float("inf")
        start = np.array([self.machine.start], np.uint32), np.array([self.machine.initial])
        states, weights = self.core.advance(*start, data)
        return sums.log_sum(weights + self.machine.finals[states])

    # --- algebra --------------------------------------------------------------------------------------

    @checked
    def scaled(self, by: float) -> WeightedLanguage:
        """The language in which ``by`` is added to every text's log weight. Linear."""
        if not abs(by) < np.inf:
            refuse("WeightedLanguage.scaled", "by", by, "finite", ArgumentValueError)
        machine = self.machine
        made = Machine(machine.start, machine.initial + by, *machine.core_arguments())  # type: ignore[arg-type]
        return WeightedLanguage(made, self.source, self.budget, self.special_weight)

    def __and__(self, other: WeightedLanguage | Constraint) -> WeightedLanguage:
        """The texts of both; weights multiply, those of a ``Language`` are 1. Pairs of states at worst."""
        theirs = _weighted(other)
        if theirs is None:
            refuse_operand("&", other)
            return NotImplemented
        made = intersect(self._body(), theirs._body(), budget=self.budget)  # another of this class
        initial = self.machine.initial + theirs.machine.initial
        special = self.special_weight + theirs.special_weight
        return self._derived(made, f"({self.source}) & ({theirs.source})", initial, special)

    __rand__ = __and__

    def __or__(self, other: WeightedLanguage | Constraint) -> WeightedLanguage:
        """The texts of either; weights add up. Linear."""
        theirs = _weighted(other)
        if theirs is None:
            refuse_operand("|", other)
            return NotImplemented
        made = self.to_fst().union(theirs.to_fst())
        special = float(np.logaddexp(self.special_weight, theirs.special_weight))
        return self._derived(made, f"({self.source}) | ({theirs.source})", 0.0, special)

    def __add__(self, other: WeightedLanguage | Constraint) -> WeightedLanguage:
        """A text of this one, then a text of the other; weights multiply. Linear."""
        theirs = _weighted(other)
        if theirs is None:
            refuse_operand("+", other)
            return NotImplemented
        made = self._body().concat(theirs._body())  # another of this class
        initial = self.machine.initial + theirs.machine.initial
        return self._derived(made, f"({self.source}) + ({theirs.source})", initial)

    def star(self) -> WeightedLanguage:
        """Any number of texts in sequence. Raises ``FstOpError`` if the weight of the empty text is 1 or more.

        Linear, apart from the removal of epsilons.
        """
        return self._derived(self.to_fst().closure(), f"({self.source}).star()")

    @checked
    def determinize(self, budget: Budget | None = None) -> WeightedLanguage:
        """The same weights with one path for each text. Not every machine can be determinized: raises
        ``BudgetExceeded``.
        """
        limit = budget or self.budget
        made = determinize(self._body(), budget=limit)
        return self._derived(made, self.source, self.machine.initial, self.special_weight)

    @checked
    def normalized(self, budget: Budget | None = None) -> WeightedLanguage:
        """The probability distribution in proportion to the weights.

        Weights are divided by ``mass()`` and pushed towards the start until the weights of each state sum to one. The
        scores during decoding are then conditional probabilities. Raises ``DivergingSumError``, ``EmptyLanguageError``.
        The cost is that of ``log_mass``.
        """
        machine = self._some()
        ahead = sums.onward_sums(machine, Deadline(budget or self.budget, sums.WHERE))
        source, target = machine.sources(), machine.targets.astype(np.int64)
        arcs = (
            source,
            machine.labels.astype(np.int64),
            machine.weights + ahead[target] - ahead[source],
            target,
        )
        made = make(machine.start, 0.0, machine.finals - ahead, arcs)
        return WeightedLanguage(made, f"({self.source}).normalized()", self.budget)

    # --- sums over all texts --------------------------------------------------------------------------

    @checked
    def log_mass(self, within: Constraint | None = None, budget: Budget | None = None) -> float:
        """The log of the total weight of all texts, or of those in a language or grammar ``within``; -inf if there are
        none.

        Exact although they may be infinitely many. Raises ``DivergingSumError``, ``BudgetExceeded``. For a grammar that
        needs a stack: ``DivergingGrammarError``, and ``ConstraintError`` unless the grammar is deterministic byte by
        byte. Linear in the arcs, and cubic in the states of each cycle.
        """
        if isinstance(within, Grammar) and not within.is_regular():
            limit = budget or self.budget
            found = grammar_mass(within, self.plain, limit)
            if found == -np.inf and not (within.with_budget(limit) & self._texts(limit)).is_empty():
                raise ConstraintError(
                    f"the texts of {within!r} weigh less in {self!r} than a number of float64 can say: truncate(depth) "
                    "the grammar"
                )
            return found
        if within is not None:
            return (self & within).log_mass(budget=budget)
        if self.is_empty():
            return -float("inf")
        machine = self.plain
        deadline = Deadline(budget or self.budget, sums.WHERE)
        return machine.initial + float(sums.onward_sums(machine, deadline)[machine.start])

    @checked
    def mass(self, within: Constraint | None = None, budget: Budget | None = None) -> float:
        """The total weight of all texts, or of those in a language; for a probabilistic model, the probability of the
        language. Infinite if it exceeds the largest float: ``log_mass`` is finite then.

        The cost and the errors are those of ``log_mass``.
        """
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_mass(within, budget)))

    @checked
    def expected_length(self, budget: Budget | None = None) -> float:
        """The mean number of bytes of a text under the distribution in proportion to the weights.

        The cost is that of two sums. Raises ``DivergingSumError``, ``EmptyLanguageError``.
        """
        return float(self.marginals(budget)[0].sum())

    @checked
    def entropy(self, budget: Budget | None = None) -> float:
        """The entropy of the distribution in proportion to the weights, in nats.

        Raises ``ConstraintError`` unless each text has one path: call ``determinize()`` first. The cost and the other
        errors are those of ``expected_length``.
        """
        if not self.is_deterministic:
            raise ConstraintError(
                f"the entropy of {self!r} needs one path for each text, and some have several: determinize() it first"
            )
        machine = self._some()
        deadline = Deadline(budget or self.budget, sums.WHERE)
        arcs, ends = self._marginals(deadline)
        final = np.where(ends > 0, machine.finals, 0.0)
        mean = machine.initial + float((arcs * machine.weights).sum() + (ends * final).sum())
        with deadline.part() as rest:
            return max(self.log_mass(budget=rest) - mean, 0.0)

    @checked
    def marginals(self, budget: Budget | None = None) -> tuple[Floats, Floats]:
        """The expected number of uses of each arc of ``plain``, and the probability that a text ends in each state,
        under the distribution in proportion to the weights.

        Two float64 arrays, of shapes (arcs,) and (states,). The cost and the errors are those of ``expected_length``.
        """
        return self._marginals(Deadline(budget or self.budget, sums.WHERE))

    def _marginals(self, deadline: Deadline) -> tuple[Floats, Floats]:
        machine = self._some()
        ahead, after = sums.onward_sums(machine, deadline), sums.inward_sums(machine, deadline)
        total = machine.initial + ahead[machine.start]
        arcs = after[machine.sources()] + machine.weights + ahead[machine.targets.astype(np.int64)] - total
        return np.exp(arcs), np.exp(after + machine.finals - total)

    @checked
    def sample(
        self, count: int = 1, *, length: int | None = None, generator: np.random.Generator | None = None
    ) -> list[bytes]:
        """Independent samples, with probability in proportion to their weight; with ``length``, among texts of that
        many bytes.

        ``generator``: a numpy ``Generator``; by default a new one. The same generator state gives the same texts.
        Raises ``EmptyLanguageError`` if there is no text. The cost is a sum, then the bytes of the texts; with
        ``length``, a pass over the arcs for each byte.
        """
        whole("WeightedLanguage.sample", "count", count, 0)
        if generator is None:
            generator = np.random.default_rng()
        if not isinstance(generator, np.random.Generator):
            refuse("WeightedLanguage.sample", "generator", generator, "a numpy Generator")
        if length is not None:
            whole("WeightedLanguage.sample", "length", length, 0)
            return drawing_texts.of_length(self._some(), count, length, generator, self.budget)
        return drawing_texts.drawn(self.normalized().machine, count, generator, self.budget)

    # --- out ------------------------------------------------------------------------------------------

    @checked
    def to_fst(self, *, byte_zero: int = BYTE_ZERO_LABEL) -> VectorFst:
        """An acceptor of ``tokenfst.fst`` over "log64" without failure arcs, with symbol tables for its byte labels.

        The weight of the start is moved to the final weights. Linear.
        """
        if byte_zero not in (0, 1):
            raise FstError(
                f"byte_zero is the label of byte 0: 1, or 0 as in pynini's strings; not {byte_zero!r}"
            )
        machine, kind = self.plain, ARC_TYPES["log64"]
        table = filled_with_bytes(SymbolTable("bytes"), byte_zero)
        if self.is_empty():
            return VectorFst("log64").set_tables((table, table))
        labels = machine.labels.astype(np.int32) + byte_zero
        if not labels.all():
            raise FstError("the byte 0 is read, whose label would be epsilon's with byte_zero=0")
        core = kind.core.from_arrays(
            machine.start, -(machine.finals + machine.initial), np.diff(machine.offsets.astype(np.int64)),
            labels, labels, -machine.weights, machine.targets.astype(np.int32), limits(Budget.unlimited()),
        )  # fmt: skip
        return VectorFst.of_core(kind, core, (table, table))

    # --- details --------------------------------------------------------------------------------------

    def _some(self) -> Machine:
        if self.is_empty():
            raise EmptyLanguageError(f"{self!r} has no text with a weight")
        return self.plain

    def _texts(self, budget: Budget) -> Language:
        """The texts without their weights."""
        return Language.from_fst(convert(self.to_fst(), "boolean", budget=budget), budget=budget)

    def _body(self) -> VectorFst:
        """The acceptor without the start's weight."""
        return self.to_fst() if self.is_empty() else self.scaled(-self.machine.initial).to_fst()

    def _derived(
        self, fst: VectorFst, source: str, initial: float = 0.0, special_weight: float = -np.inf
    ) -> WeightedLanguage:
        made = WeightedLanguage.from_fst(fst, source=source[:_SOURCE_LENGTH], budget=self.budget)
        found = made if made.is_empty() else made.scaled(initial)
        return WeightedLanguage(found.machine, found.source, self.budget, special_weight)


def as_language(constraint: Constraint, call: str) -> Language:
    """A constraint as a regular language; raises ``ConstraintError`` if it is not regular."""
    if getattr(constraint, "is_regular", bool)():
        constraint = constraint.to_language()  # type: ignore[attr-defined]
    if not isinstance(constraint, Language):
        raise ConstraintError(
            f"{call} takes a regular language: {constraint!r} is none; truncate(depth) makes one"
        )
    return constraint


def _weighted(other: object) -> WeightedLanguage | None:
    if isinstance(other, Constraint):
        return WeightedLanguage.of(other)
    return other if isinstance(other, WeightedLanguage) else None
