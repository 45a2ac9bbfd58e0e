"""Token automata: a language composed with a vocabulary's detokenizing transducer, and determinized.

``compile(language, vocabulary)`` is delayed composition, as OpenFst's ``ComposeFst`` is: a state and its mask are
made when first visited and then kept. ``expand()`` makes them all ahead of time; the result walks finished tables,
can be saved, and needs no part of the construction. Both kinds share one step function, one trie walk and one
``Matcher``, in the native core; no token arc is stored except in the export ``to_fst()``.

Invariants: state 0 is DEAD, every other reached state leads to acceptance, and so does every token of every mask
(conventions 3 and 7). The end tokens are allowed exactly in accepting states (convention 4).

Source: Koo, Liu, He, "Automata-based constraints for language model decoding" (2024), sections 2.3 and 2.4.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst._native import Matcher
from tokenfst.arguments import checked, checked_but
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.program import Program
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.language import Language
from tokenfst.automata.symbols.automaton import SymbolAutomaton
from tokenfst.budget import Budget
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.token_automata import artifact, artifact_format
from tokenfst.decoding.token_automata.classes import TokenClasses, find_classes
from tokenfst.errors import (
    ArtifactCorruptError,
    ArtifactError,
    ArtifactVocabularyError,
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    NondeterministicError,
    UnspellableWarning,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.vocabulary.census import census
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pynini

    from tokenfst.decoding.matchers.reach import Reach


UNREACHABLE = 0xFFFFFFFF
"""The distance of a state from which no token sequence leads to acceptance."""

ASK = 1 << 31
"""Marks numbers of look-ups in the array ``mask`` of push-down automata (docs/format.md)."""

_GLANCE = Budget(states=20_000)


class Memory(NamedTuple):
    """Bytes held by an automaton, and by its vocabulary (shared by all automata over it)."""

    automaton: int
    vocabulary: int


@dataclass(frozen=True, slots=True)
class Stats:
    """Sizes of a token automaton; of a lazy one, so far.

    ``states``: byte-level states made. ``masks_made``: states whose mask is known. ``distinct_masks``: different
    masks among them. ``dense_rows``: how many of those are stored in full (ceil(V / 32) words each).
    ``fragments``: parts of the constraint whose masks are shared across contexts. ``expanded``: whether all is made.

    Of push-down automata: ``frames``, the stack's symbols; ``leaves``, the masks by what was looked at of the stack;
    ``deepest_look``, the most symbols that one of them looks at.
    """

    states: int
    masks_made: int
    distinct_masks: int
    dense_rows: int
    fragments: int
    expanded: bool
    frames: int = 0
    leaves: int = 0
    deepest_look: int = 0


class TokenAutomaton:
    """A deterministic automaton over token ids. Made by ``compile``, ``expand`` or ``load``; shared by threads."""

    __slots__ = ("_arrays", "_native", "_nearer", "_program", "_reaches", "budget", "source", "vocabulary")

    @checked
    def __init__(
        self,
        native: _native.TokenAutomaton,
        vocabulary: Vocabulary,
        source: str,
        budget: Budget,
        arrays: dict[str, Any] | None = None,
        program: Program | None = None,
    ) -> None:
        self._native = native
        self._program = program
        self._arrays = arrays
        self._nearer: dict[int, npt.NDArray[np.int32]] = {}
        self._reaches: dict[bool, Reach] = {}
        self.vocabulary = vocabulary
        self.source = source
        self.budget = budget

    def __repr__(self) -> str:
        kind = "expanded" if self.is_expanded else "lazy"
        return f"<TokenAutomaton {self.source!r}: {kind}, {self.stats().states} states>"

    @property
    def is_expanded(self) -> bool:
        """Whether all states, masks and distances are made."""
        return self._arrays is not None

    @property
    def is_pushdown(self) -> bool:
        """Whether there are stacks: distances are upper bounds then, and states are not all."""
        return self._native.is_pushdown

    @checked
    def matcher(self, max_tokens: int | None = None) -> Matcher:
        """A walk from the start.

        With ``max_tokens``, masks admit only tokens after which the text can still be completed in the tokens left
        (the end token counts as one, but is not needed to complete the text). Raises ``TokenBudgetError`` where no
        accepted text is that short, ``EmptyLanguageError`` where no token sequence spells any.
        """
        return Matcher(self._native, max_tokens)

    def expand(self) -> TokenAutomaton:
        """Make every state, mask and distance, ahead of time. Raises ``BudgetExceeded``.

        Time and memory grow with the number of states; wide masks are shared between states and found once per
        fragment and vocabulary. A grammar must be deterministic (``NondeterministicError``), and each byte be a token
        (``ConstraintError``); its masks are made for every top of the stack that a token can look at.
        """
        if self._arrays is not None:
            return self
        native = self._native
        if native.is_pushdown and self._program is not None and not self._program.speaks_of_tokens:
            # Anew: how states and frames are numbered depends on what was walked before (convention 10).
            native = _compose(self._program, self.vocabulary, self.budget)
        arrays = native.expand()
        return self._from_arrays(arrays, self.vocabulary, self.source, self.budget)

    @classmethod
    def _from_arrays(
        cls, arrays: dict[str, Any], vocabulary: Vocabulary, source: str, budget: Budget
    ) -> TokenAutomaton:
        native = _native.TokenAutomaton.from_arrays(
            vocabulary.native, arrays, arrays["start"], arrays["inner_start"]
        )
        return cls(native, vocabulary, source, budget, arrays)

    def arrays(self) -> dict[str, Any]:
        """The tables of the expanded automaton by name, as docs/format.md describes them. Read only."""
        expanded = self.expand()
        assert expanded._arrays is not None
        return expanded._arrays

    @checked_but("path")
    def save(self, path: str | PathLike[str]) -> None:
        """Write the expanded automaton as an artifact (docs/format.md).

        The file appears under its name only when it is whole. The same automaton gives the same bytes.
        """
        artifact.write(path, self.arrays(), self.vocabulary.fingerprint, len(self.vocabulary), self.source)

    @classmethod
    @checked
    def load(cls, path: str | PathLike[str], vocabulary: Vocabulary) -> TokenAutomaton:
        """Read an artifact. Raises a subclass of ``ArtifactError`` for any file that is not one, and
        ``ArtifactVocabularyError`` where it was compiled for another vocabulary."""
        found = artifact.read(path)
        if found.split_pattern is not None:
            raise ArtifactError(
                f"{path} holds canonical token sequences alone, which its tables do not tell from others: load it with "
                "CanonicalAutomaton.load()"
            )
        return cls.of_artifact(found, path, vocabulary)

    @classmethod
    @checked
    def of_artifact(
        cls, found: artifact.Artifact, path: str | PathLike[str], vocabulary: Vocabulary
    ) -> TokenAutomaton:
        """The automaton of an artifact's tables, over all token sequences. Raises as ``load`` does."""
        if (found.vocabulary_fingerprint, found.vocabulary_size) != (vocabulary.fingerprint, len(vocabulary)):
            raise ArtifactVocabularyError(
                f"{path} was compiled for the vocabulary {found.vocabulary_fingerprint[:12]} "
                f"({found.vocabulary_size:,} tokens); this one is {vocabulary.fingerprint[:12]} "
                f"({len(vocabulary):,} tokens). Load the vocabulary it was made with, or compile it again"
            )
        try:
            return cls._from_arrays(found.arrays, vocabulary, found.source, Budget())
        except ArtifactCorruptError as error:
            raise artifact_format.corrupt(path, f"it breaks the rule that {error}") from None

    def distance(self) -> int:
        """The least number of tokens, the end token not counted, that spell a string of the language. With stacks, or
        where strings must differ, an upper bound."""
        if self._native.has_marks:
            return self.matcher().distance()
        return int(self._native.distance(self._native.start))

    @checked
    def nearer_mask(self, matcher: Matcher) -> npt.NDArray[np.int32]:
        """The mask of the tokens after which a matcher of this automaton is nearer to acceptance; end tokens apart.

        Read only, shape (ceil(V / 32),). Kept by state where that is all there is; the first time, and else each time,
        a walk of the vocabulary (of stacks see ``Reach.nearer``). Nothing reduces a distance of 0.
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
    def reach(self, *, exact: bool) -> Reach:
        """What numbers of tokens complete a text from where (``gcd_reach.Reach``): exactly so many, or at most. Kept,
        and begun anew once half of its budget is used up, so that texts to come have room."""
        from tokenfst.decoding.matchers.reach import Reach

        known = self._reaches.get(exact)
        if known is None or known.is_crowded:
            known = self._reaches[exact] = Reach(self, exact=exact)
        return known

    def stats(self) -> Stats:
        """How many states, masks and fragments there are (so far)."""
        return Stats(**self._native.stats, expanded=self.is_expanded)

    def memory(self) -> Memory:
        """Bytes in memory, the tables of artifacts counted."""
        own = self._native.memory
        if self._arrays is not None:
            own += sum(a.nbytes for a in self._arrays.values() if isinstance(a, np.ndarray))
        return Memory(automaton=own, vocabulary=self.vocabulary.native.memory)

    def to_fst(self) -> pynini.Fst:
        """The explicit acceptor over token labels (token t is label t + 1, convention 2).

        End tokens are not on its arcs: acceptance stands for them. One arc per state and allowed token, so large;
        raises ``BudgetExceeded`` beyond ``budget.bytes``.
        """
        from tokenfst.automata.openfst import fst

        source, token, target, num_states, start, final = self.arcs()
        return fst.from_arcs(num_states, start, final, source, token + 1, token + 1, target)

    def arcs(
        self,
    ) -> tuple[
        npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], int, int, npt.NDArray[np.int64]
    ]:
        """All token arcs as arrays: source, token, target; then the number of states, the start and the final
        states. States that token sequences do not reach are left out and the others renumbered from 0."""
        expanded = self.expand()
        native, arrays = expanded._native, expanded.arrays()
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


class MaskTable:
    """The interned masks of an expanded automaton: a dense row XOR a list of flips each (docs/format.md)."""

    def __init__(self, arrays: dict[str, Any], vocab_size: int) -> None:
        self._arrays = arrays
        self._vocab_size = vocab_size

    def __len__(self) -> int:
        return len(self._arrays["mask_row"])

    def token_ids(self, mask: int) -> npt.NDArray[np.int64]:
        """The allowed token ids of a mask, ascending."""
        arrays = self._arrays
        begin, end = arrays["flip_offsets"][mask : mask + 2]
        flips: npt.NDArray[np.int64] = arrays["flips"][begin:end].astype(np.int64)
        row = int(arrays["mask_row"][mask])
        if row == 0:
            return flips
        bits = np.unpackbits(
            arrays["rows"][row - 1].view(np.uint8), bitorder="little", count=self._vocab_size
        )
        bits[flips] ^= 1
        found: npt.NDArray[np.int64] = np.flatnonzero(bits)
        return found


@overload
def compile(
    constraint: Language | Grammar | SymbolAutomaton,
    vocabulary: Vocabulary,
    budget: Budget | None = None,
    *,
    deterministic: bool = False,
    tokenization: Literal["all"] = "all",
    token_classes: Mapping[str, Iterable[int]] | None = None,
) -> TokenAutomaton: ...


@overload
def compile(
    constraint: Language | Grammar | SymbolAutomaton,
    vocabulary: Vocabulary,
    budget: Budget | None = None,
    *,
    deterministic: bool = False,
    tokenization: Literal["canonical"],
    token_classes: Mapping[str, Iterable[int]] | None = None,
) -> CanonicalAutomaton: ...


@checked
def compile(
    constraint: Language | Grammar | SymbolAutomaton,
    vocabulary: Vocabulary,
    budget: Budget | None = None,
    *,
    deterministic: bool = False,
    tokenization: Literal["all", "canonical"] = "all",
    token_classes: Mapping[str, Iterable[int]] | None = None,
) -> TokenAutomaton | CanonicalAutomaton:
    """Compose ``constraint`` with the detokenizing transducer of ``vocabulary``, lazily: a language to a finite
    automaton over tokens, a grammar to a push-down automaton; an automaton over symbols with a vocabulary of symbols.
    ``tokenization="canonical"``: only the token sequence that the tokenizer itself makes of each text
    (``CanonicalAutomaton``, docs/canonical.md). ``token_classes``: the token ids of classes that the constraint names
    (``token_class``, ``(?P<IMAGE>)``; docs/token-groups.md).

    The budget bounds what is made now and later. Raises ``EmptyLanguageError`` for a constraint that no string meets
    and ``BudgetExceeded``; with ``deterministic``, ``NondeterministicError`` for a grammar that one stack is not enough
    for (``Grammar.conflict``). Warns with ``UnspellableWarning``, and a string as witness, where the vocabulary cannot
    spell all of the constraint.
    """
    if not isinstance(constraint, Language | Grammar | SymbolAutomaton):
        raise TypeError(
            "compile() takes a Language, such as regex(...) returns, a Grammar or a SymbolAutomaton, not "
            f"{type(constraint).__name__}"
        )
    if not isinstance(vocabulary, Vocabulary):
        raise VocabularyMismatchError(f"compile() takes a Vocabulary, not {type(vocabulary).__name__}")
    if tokenization not in ("all", "canonical"):
        raise ValueError(f'tokenization is "all" or "canonical", not {tokenization!r}')
    if isinstance(constraint, SymbolAutomaton):
        constraint = _over_symbols(constraint, vocabulary, budget)
    if deterministic and isinstance(constraint, Grammar) and (conflict := constraint.conflict()) is not None:
        raise NondeterministicError(f"{constraint.source} is not deterministic: {conflict}", conflict)
    budget = budget or Budget()
    program = constraint.program()
    if program.speaks_of_tokens:
        return _compile_tokens(constraint, program, vocabulary, budget, tokenization, token_classes or {})
    if program.rules and isinstance(constraint, Grammar) and not vocabulary.native.complete:
        program = _of_single_bytes(constraint, vocabulary).program()
    native = _compose(program, vocabulary, budget)
    if native.is_empty:
        raise EmptyLanguageError(
            f"no string satisfies {constraint.source}: the language is empty. Look for parts that contradict each "
            "other, such as the two sides of an intersection"
        )
    if not vocabulary.native.complete:
        _warn_unspellable(constraint, vocabulary, native)
    automaton = TokenAutomaton(native, vocabulary, constraint.source, budget, program=program)
    return CanonicalAutomaton(automaton, budget) if tokenization == "canonical" else automaton


def _compile_tokens(
    constraint: Language | Grammar,
    program: Program,
    vocabulary: Vocabulary,
    budget: Budget,
    tokenization: str,
    token_classes: Mapping[str, Iterable[int]],
) -> TokenAutomaton:
    """The automaton of a constraint that speaks of tokens."""
    if tokenization != "all":
        raise ConstraintError(
            f"{constraint.source} speaks of tokens itself, and what the tokenizer makes of a text is about text alone: "
            'compile it with tokenization="all"'
        )
    if program.rules and not vocabulary.native.complete:
        raise ConstraintError(
            f"{constraint.source} speaks of tokens and needs a stack, and for that each byte must be a token by "
            "itself: compile its truncate(depth) instead"
        )
    native = _compose(
        program, vocabulary, budget, find_classes(program.token_names, vocabulary, token_classes)
    )
    if native.is_empty or not native.spellable:
        raise EmptyLanguageError(f"no token sequence of this vocabulary satisfies {constraint.source}")
    return TokenAutomaton(native, vocabulary, constraint.source, budget, program=program)


def _over_symbols(automaton: SymbolAutomaton, vocabulary: Vocabulary, budget: Budget | None) -> Language:
    """The words over the codes of a vocabulary of symbols."""
    if vocabulary.symbols is None:
        raise VocabularyMismatchError(
            f"{automaton!r} is over symbols, and {vocabulary!r} spells text: make a vocabulary with "
            "Vocabulary.of_symbols(...), or a language of the automaton"
        )
    return automaton.language(vocabulary.symbols, budget)


def _of_single_bytes(grammar: Grammar, vocabulary: Vocabulary) -> Grammar:
    """The words of a grammar without bytes that no token has, where each byte that is left is a token by itself: then
    every text can be spelled on from every place. ``ConstraintError`` where it is not: whether tokens lead on would be
    a question about the whole stack."""
    alone = sum({1 << token[0] for token in vocabulary.tokens if len(token) == 1})
    used = sum(1 << byte for byte in set(b"".join([*vocabulary.tokens, *(vocabulary.initial_tokens or ())])))
    if not (grammar & _holding(ex.ALL_BYTES & ~used)).is_empty():
        grammar = grammar & Language(ex.repeat(ex.byte_set(used)), "what tokens are made of")
        if grammar.is_empty():
            raise EmptyLanguageError(
                f"no token sequence spells any string of {grammar.source}: its strings need bytes that no token has"
            )
    if used & ~alone and not (needed := grammar & _holding(used & ~alone)).is_empty():
        raise ConstraintError(
            f"{grammar.source} needs a stack, and for that each of its bytes must be a token by itself: the vocabulary "
            f"has longer tokens only for some of {needed.witness()!r}. Compile its truncate(depth) instead"
        )
    return grammar


def _holding(bits: int) -> Language:
    """The texts that hold a byte of a set."""
    return Language(ex.concat(ex.UNIVERSE, ex.byte_set(bits), ex.UNIVERSE))


def _compose(
    program: Program, vocabulary: Vocabulary, budget: Budget, classes: TokenClasses | None = None
) -> _native.TokenAutomaton:
    if classes is None:
        return _native.TokenAutomaton.compose(
            *program.native_args(), vocabulary.native, budget.states, budget.bytes, budget.seconds
        )
    bounds = budget.states, budget.bytes, budget.seconds
    return _native.TokenAutomaton.compose(
        *program.native_args(classes.rows), vocabulary.native, *bounds, symbols=classes.symbols
    )


def _warn_unspellable(
    constraint: Language | Grammar, vocabulary: Vocabulary, native: _native.TokenAutomaton
) -> None:
    """Strings that no token sequence spells vanish from the token language: say so, with a witness. Whether there are
    any beside spelled ones is looked for within ``_GLANCE`` only: a courtesy must not cost more than the work."""
    if not native.spellable:
        witness, part = constraint.witness(), "none"
    else:
        holds_missing = _holding(sum(1 << byte for byte in census(vocabulary).missing_bytes))
        part = "not all"
        try:
            witness = (constraint & holds_missing).with_budget(_GLANCE).witness()
        except BudgetExceeded:
            witness = None
    if witness is not None:
        warnings.warn(
            f"the vocabulary spells {part} of the strings of {constraint.source}: for example, no token sequence "
            f"gives {witness!r}",
            UnspellableWarning,
            stacklevel=4,
        )
