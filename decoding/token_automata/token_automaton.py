"""Token automata: a language composed with a vocabulary's detokenizing transducer, and determinized.

``compose(program, vocabulary, budget)`` is delayed composition, like OpenFst's ``ComposeFst``: a state and its mask are
computed on the first visit and then kept. ``expand()`` computes all of them ahead of time; the result walks finished
tables, can be saved, and does not need the construction any more. Both kinds share one step function, one trie walk and
one ``Matcher``, in the native core. Token arcs are stored only in the export ``to_fst()``.

Invariants: state 0 is DEAD; from every other reachable state acceptance can be reached, and so it can after every token
of every mask (conventions 3 and 7). The end tokens are allowed exactly in accepting states (convention 4).

Source: Koo, Liu, He, "Automata-based constraints for language model decoding" (2024), sections 2.3 and 2.4.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
import tokenfst.common.notebook as notebook
from tokenfst._native import Matcher
from tokenfst.automata.expressions.program import Program
from tokenfst.automata.languages.pickled import state_without
from tokenfst.automata.pictures.drawing import Drawing, check_size
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, checked_but, refuse
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import renamed
from tokenfst.decoding.artifacts import artifact, artifact_format, program_arrays
from tokenfst.decoding.token_automata import explaining as explaining  # Matcher.explain
from tokenfst.decoding.token_automata import learned as learning
from tokenfst.decoding.token_automata import showing as showing  # repr(matcher)
from tokenfst.decoding.token_automata.drawing import draw_arcs
from tokenfst.decoding.token_automata.held_constraints import held_by, held_program, program_of
from tokenfst.decoding.token_automata.pickled import made_by
from tokenfst.decoding.token_automata.sizes import Memory, Stats
from tokenfst.decoding.token_automata.tracing import Trace, trace
from tokenfst.errors import (
    ArgumentValueError,
    ArtifactCorruptError,
    ArtifactError,
    BudgetExceeded,
    ConstraintError,
    TokenIdError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding
from tokenfst.tokenizers.vocabulary.token_classes import TokenClasses, find_classes
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pynini

    from tokenfst.automata.transducers.vector import VectorFst


UNREACHABLE = 0xFFFFFFFF
"""The distance of a state from which no token sequence leads to acceptance."""

ASK = 1 << 31
"""The flag of look-up numbers in the array ``mask`` of push-down automata (docs/serving/format.md)."""


class TokenAutomaton:
    """A deterministic automaton over token ids. Created by ``compile``, ``expand`` or ``load``; may be shared by
    threads.

    ``vocabulary``, ``budget``: those of the construction. ``source``: a readable description of the constraint.
    ``caches``: a cache for results that other modules compute from this automaton, each under its own key.
    """

    __slots__ = (
        "_arrays",
        "_classes",
        "_native",
        "_nearer",
        "_program",
        "budget",
        "caches",
        "source",
        "vocabulary",
    )

    @checked
    def __init__(
        self,
        native: _native.TokenAutomaton,
        vocabulary: Vocabulary,
        source: str,
        budget: Budget,
        arrays: dict[str, Any] | None = None,
        program: Program | None = None,
        classes: TokenClasses | None = None,
    ) -> None:
        self._native = native
        self._classes = classes
        self._program = held_program(native, program)
        self._arrays = arrays
        self._nearer: dict[int, npt.NDArray[np.int32]] = {}
        self.caches: dict[Hashable, Any] = {}
        self.vocabulary = vocabulary
        self.source = source
        self.budget = budget

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        return None, state_without(self)[1] | {"_nearer": {}, "caches": {}}

    def __deepcopy__(self, memo: object = None) -> TokenAutomaton:
        return self

    __copy__ = __deepcopy__

    def __repr__(self) -> str:
        kind = "expanded" if self.is_expanded else "lazy"
        return f"<TokenAutomaton {self.source!r}: {kind}, {counted(self.stats().states, 'state')}>"

    def _repr_html_(self) -> str:
        stats = self.stats()
        states = stats.states - 1  # DEAD is none that anybody means
        facts: list[tuple[str, object]] = [
            ("constraint", self.source),
            ("vocabulary", f"{self.vocabulary.name or 'unnamed'}, {counted(len(self.vocabulary), 'token')}"),
            (
                "kind",
                ("expanded" if stats.expanded else "lazy") + (", with a stack" if self.is_pushdown else ""),
            ),
            ("states", states if stats.expanded else f"{states:,} so far"),
            ("different masks", stats.distinct_masks),
            ("memory", counted(self.memory().automaton, "byte")),
        ]
        small = stats.expanded and not self.is_pushdown and states <= notebook.SMALL
        return notebook.card("TokenAutomaton", facts, self.draw().svg_or_none() if small else None)

    @property
    def native(self) -> _native.TokenAutomaton:
        """The automaton object of the native core."""
        return self._native

    @property
    def program(self) -> Program | None:
        """The program that the automaton was composed from; ``None`` if it was made from finished tables.

        If the constraint is a schema that no other object holds any longer, it is read again. This may raise the errors
        of ``json_schema``.
        """
        return None if self._program is None else program_of(self._program)

    @property
    def is_expanded(self) -> bool:
        """Whether all states, masks and distances are computed."""
        return self._arrays is not None

    @property
    def is_pushdown(self) -> bool:
        """Whether the automaton has a stack. Distances are then upper bounds, and a state is only a part of a
        configuration.
        """
        return self._native.is_pushdown

    @renamed(max_tokens="max_new_tokens")
    @checked
    def matcher(self, max_new_tokens: int | None = None) -> Matcher:
        """A matcher at the start state.

        With ``max_new_tokens``, masks allow only tokens after which the text can still be completed with the remaining
        tokens (the end token counts as one, but is not needed to complete the text). Raises ``TokenLimitError`` if no
        accepted text is that short, ``EmptyLanguageError`` if no token sequence spells an accepted text.
        """
        if max_new_tokens is not None and max_new_tokens < 0:
            refuse("matcher", "max_new_tokens", max_new_tokens, "at least 0", ArgumentValueError)
        return Matcher(self._native, max_new_tokens)

    def expand(self) -> TokenAutomaton:
        """Compute all states, masks and distances ahead of time. Raises ``BudgetExceeded``.

        Time and memory grow with the number of states. Large masks are shared by states and computed once for each
        fragment and vocabulary. A grammar must be deterministic (``NondeterministicError``), and each byte must be a
        token (``ConstraintError``). The masks of a grammar are computed for every stack top that a token can inspect.
        """
        if self._arrays is not None:
            return self
        native = self._native
        program = self.program
        stacked = native.is_pushdown and program is not None and not program.is_token_level
        if program is not None and (stacked or native.has_learned):
            # Built again: the numbers of states and frames depend on earlier walks (convention 10), but tables are
            # made from the program alone.
            native = compose(program, self.vocabulary, self.budget, self._classes)
        arrays = native.expand()
        expanded = self._from_arrays(arrays, self.vocabulary, self.source, self.budget)
        if (held := held_by(self._native)) is not None:
            expanded.native.held_constraint = held
        return expanded

    @classmethod
    def _from_arrays(
        cls, arrays: dict[str, Any], vocabulary: Vocabulary, source: str, budget: Budget
    ) -> TokenAutomaton:
        return cls(_from_arrays(arrays, vocabulary), vocabulary, source, budget, arrays)

    def arrays(self) -> dict[str, Any]:
        """The tables of the expanded automaton by name, as defined in docs/serving/format.md. Read-only."""
        expanded = self.expand()
        assert expanded._arrays is not None  # noqa: SLF001  # another of this class
        return expanded._arrays  # noqa: SLF001  # another of this class

    @checked_but("path")
    def save(self, path: str | PathLike[str], *, expand: bool = True, learned: bool = False) -> None:
        """Write an artifact (docs/serving/format.md): the expanded automaton, or with ``expand=False`` the automaton as
        it is.

        For a lazy automaton the latter is its program, which ``load`` composes with the vocabulary again. Every
        automaton has a program; only ``expand()`` creates tables. With ``learned``, write the automaton as it is and
        the facts that it has learned so far: ``load`` restores them, so that known masks are not computed again.

        The file appears under its name only when it is complete. The same automaton gives the same bytes.
        """
        artifact.write_bytes(path, self.serialize(expand=expand, learned=learned))

    @checked
    def serialize(
        self, *, expand: bool = True, encoding: BytePairEncoding | None = None, learned: bool = False
    ) -> bytes:
        """The bytes that ``save`` writes. ``encoding``: given if only canonical tokenizations are accepted."""
        size, names, release = len(self.vocabulary), None, None
        if self._arrays is not None or (expand and not learned):
            arrays = self.arrays()
        elif (program := self.program) is None:
            raise ArtifactError(f"{self!r} was not made by compile() or load(), so its program is not known")
        else:
            arrays = program_arrays.arrays(program)
            names = program_arrays.token_names(program, self._classes)
            if learned:
                arrays, release = arrays | learning.merge(self._native), learning.release()
        return artifact.serialize(
            arrays, self.vocabulary.fingerprint, size, self.source, encoding, names, release
        )

    @checked_but("other")
    def learn(self, other: TokenAutomaton | str | PathLike[str]) -> None:
        """Add what another automaton of the same constraint and vocabulary, or a file of one, has learned. Its masks
        are then not computed again.

        Raises ``ArtifactError`` for another constraint, ``ArtifactVocabularyError`` for another vocabulary, and the
        errors of ``load``. Linear in the learned data of both.
        """
        if isinstance(other, TokenAutomaton):
            self.learn_from(artifact.parse(other, other.serialize(expand=False, learned=True)), other)
        else:
            self.learn_from(artifact.read(other), other)

    def learn_from(self, found: artifact.Artifact, name: object) -> None:
        """``learn`` from an artifact that was already read; ``name``: its name in errors."""
        artifact.check_vocabulary(found, name, self.vocabulary)
        learning.same_program(found, name, self.program, self._classes)
        learning.take_up(self._native, found, name)
        learning.merge(self._native)

    @checked_but("path")
    def update(self, path: str | PathLike[str]) -> None:
        """Merge what this automaton and a file of ``save(path, learned=True)`` have learned, into both; the file is
        created if missing.

        Several processes may do this at once: a file lock serializes them, and no data is lost. (Windows has no such
        locks: there the last writer wins.) Raises the errors of ``learn`` and ``save``; the file is then unchanged.
        """
        with learning.alone(path):
            if os.path.lexists(path):
                self.learn(path)
            self.save(path, learned=True)

    @classmethod
    @checked
    def load(
        cls, path: str | PathLike[str], vocabulary: Vocabulary, budget: Budget | None = None
    ) -> TokenAutomaton:
        """Read an artifact.

        Raises a subclass of ``ArtifactError`` if the file is not a valid artifact, and ``ArtifactVocabularyError`` if
        it was compiled for another vocabulary. ``budget`` bounds states and masks that are computed later from a
        program.
        """
        found = artifact.read(path)
        if found.encoding is not None:
            raise ArtifactError(
                f"{path} has only canonical token sequences, and a TokenAutomaton would accept the others too: load it "
                "with CanonicalAutomaton.load()"
            )
        return cls.of_artifact(found, path, vocabulary, budget)

    @classmethod
    @checked
    def of_artifact(
        cls,
        found: artifact.Artifact,
        path: str | PathLike[str],
        vocabulary: Vocabulary,
        budget: Budget | None = None,
    ) -> TokenAutomaton:
        """The automaton of an artifact's tables or program, over all token sequences. Raises the errors of ``load``."""
        artifact.check_vocabulary(found, path, vocabulary)
        budget = budget or Budget()
        if found.is_program:
            return cls._of_program(found, path, vocabulary, budget)
        try:
            return cls._from_arrays(found.arrays, vocabulary, found.source, budget)
        except ArtifactCorruptError as error:
            raise artifact_format.corrupt(path, f"it breaks the rule that {error}") from None

    @classmethod
    def _of_program(
        cls, found: artifact.Artifact, path: str | PathLike[str], vocabulary: Vocabulary, budget: Budget
    ) -> TokenAutomaton:
        program, given = program_arrays.read(found, path)
        try:
            classes = None if given is None else find_classes(program.token_names, vocabulary, given)
            native = compose(program, vocabulary, budget, classes)
        except (ConstraintError, VocabularyMismatchError, TokenIdError) as error:
            raise artifact_format.corrupt(path, str(error)) from None
        learning.take_up(native, found, path)
        return cls(native, vocabulary, found.source, budget, program=program, classes=classes)

    def distance(self) -> int:
        """The least number of tokens, not counting the end token, that spell a string of the language. An upper bound
        if there is a stack or if strings must differ.
        """
        if self._native.has_marks:
            return self.matcher().distance()
        return int(self._native.distance(self._native.start))

    @checked
    def nearer_mask(self, matcher: Matcher) -> npt.NDArray[np.int32]:
        """The mask of the tokens that reduce the matcher's distance to acceptance, without end tokens.

        Read-only, shape (ceil(V / 32),). Cached by state if the state determines it; otherwise each call walks the
        vocabulary (for stacks see ``Reach.nearer``). At distance 0 the mask is empty.
        """
        state, stacked = matcher.state, matcher.state >> 32 != 0
        known = None if stacked else self._nearer.get(state)
        if known is not None:
            return known
        found = np.zeros((1, -(-len(self.vocabulary) // 32)), np.int32)
        if least := matcher.distance():
            before = matcher.max_tokens_left
            matcher.max_tokens_left = least
            try:
                matcher.fill_next_token_bitmask(found, 0)
            finally:
                matcher.max_tokens_left = before
        mask: npt.NDArray[np.int32] = found[0]
        mask.flags.writeable = False
        if not stacked:
            if (len(self._nearer) + 1) * mask.nbytes > self.budget.bytes // 8:
                self._nearer.clear()
            self._nearer[state] = mask
        return mask

    @checked
    def draw(
        self, path: str | PathLike[str] | None = None, format: str | None = None, max_states: int = 100
    ) -> Drawing:
        """A picture with some of the tokens on each edge; also written to ``path`` if given. Computes all states.

        Arguments and errors as in ``Language.draw``. End tokens are not drawn: doubled circles accept.
        """
        check_size(self._finite().stats().states - 1, max_states)
        source, token, target, _, start, final = self.arcs()
        arcs = zip(source.tolist(), token.tolist(), target.tolist(), strict=True)
        picture = draw_arcs(self.vocabulary, sorted(arcs), start, final.tolist(), self.source)
        if path is not None:
            picture.save(path, format)
        return picture

    @checked
    def trace(self, tokens: Iterable[int], max_new_tokens: int | None = None) -> Trace:
        """The masks along a token sequence: how many tokens each allows, which are forced, and the distance to
        acceptance.

        ``trace.draw()`` is a heat map. The sequence is followed up to the first token that is not allowed.
        ``max_new_tokens``: the limit of the matcher whose masks are shown.
        """
        return trace(self.matcher(max_new_tokens), tokens, self.vocabulary)

    def stats(self) -> Stats:
        """The numbers of states, masks and fragments (so far)."""
        return Stats(**self._native.stats, expanded=self.is_expanded)

    def memory(self) -> Memory:
        """Bytes in memory, including the tables of artifacts."""
        own = self._native.memory
        if self._arrays is not None:
            own += sum(a.nbytes for a in self._arrays.values() if isinstance(a, np.ndarray))
        return Memory(automaton=own, vocabulary=self.vocabulary.native.memory)

    def to_fst(self) -> pynini.Fst:
        """The explicit acceptor over token labels: token t has label t + 1, since label 0 is epsilon in OpenFst.

        End tokens have no arcs: final states take their place. It is large, because it has one arc for each state and
        allowed token. Raises ``BudgetExceeded`` beyond ``budget.bytes``.
        """
        from tokenfst.automata.openfst import fst

        source, token, target, num_states, start, final = self.arcs()
        return fst.from_arcs(num_states, start, final, source, token + 1, token + 1, target)

    def to_native_fst(self) -> VectorFst:
        """``to_fst`` as a machine of ``tokenfst.fst``, without pynini."""
        from tokenfst.automata.openfst.fst import Arcs
        from tokenfst.automata.transducers.acceptors import machine_of

        source, token, target, num_states, start, final = self.arcs()
        label = (token + 1).astype(np.int32)
        return machine_of(
            Arcs(num_states, start, final, source.astype(np.int32), label, label, target.astype(np.int32))
        )

    def _finite(self) -> TokenAutomaton:
        """The expanded automaton. Raises ``ConstraintError`` if it has a stack."""
        if self.is_pushdown:
            raise ConstraintError(
                f"{self.source} needs a stack, and only finite automata have arcs from state to state: draw the "
                "grammar itself, or take its texts up to a depth (truncate(depth), --depth N)"
            )
        return self.expand()

    def arcs(
        self,
    ) -> tuple[
        npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], int, int, npt.NDArray[np.int64]
    ]:
        """All token arcs as arrays: source, token, target; then the number of states, the start state and the final
        states.

        Only states that token sequences reach are included, renumbered from 0. Raises ``ConstraintError`` for an
        automaton with a stack.
        """
        expanded = self._finite()
        native, arrays = expanded._native, expanded.arrays()  # noqa: SLF001  # another of this class
        live = np.flatnonzero((arrays["distance"] != UNREACHABLE) & (arrays["mask"] != 0))
        if arrays["start"] not in live:
            none = np.empty(0, np.int64)
            return none, none, none, 1, 0, none
        number = np.full(len(arrays["distance"]), -1, np.int64)
        number[live] = np.arange(len(live))
        tokens, targets, size = [], [], 0
        for state in live.tolist():
            of_state = native.arcs(state)
            tokens.append(of_state[0])
            targets.append(of_state[1])
            size += 16 * len(of_state[0])
            if size > self.budget.bytes:
                raise BudgetExceeded("bytes", self.budget.bytes, "the explicit arcs of to_fst()")
        source = np.repeat(np.arange(len(live)), [len(part) for part in tokens])
        token, target = np.concatenate(tokens).astype(np.int64), number[np.concatenate(targets)]
        final = np.flatnonzero(arrays["accepting"][live])
        return source, token, target, len(live), int(number[arrays["start"]]), final


def compose(
    program: Program, vocabulary: Vocabulary, budget: Budget, classes: TokenClasses | None = None
) -> _native.TokenAutomaton:
    """The core's lazy automaton of a program over a vocabulary; ``classes``: the token classes that the program
    names.
    """
    bounds = budget.states, budget.bytes, budget.seconds
    if classes is None:
        native = _native.TokenAutomaton.compose(program.native(), vocabulary.native, *bounds)
    else:
        native = _native.TokenAutomaton.compose(
            program.native(classes.rows), vocabulary.native, *bounds, symbols=classes.symbols
        )
    return made_by(compose, native, program, vocabulary, budget, classes)


def _from_arrays(arrays: dict[str, Any], vocabulary: Vocabulary) -> _native.TokenAutomaton:
    native = _native.TokenAutomaton.from_arrays(
        vocabulary.native, arrays, arrays["start"], arrays["inner_start"]
    )
    return made_by(_from_arrays, native, arrays, vocabulary)
