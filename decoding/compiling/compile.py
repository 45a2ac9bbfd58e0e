"""``compile``: composition of a constraint with a vocabulary to an automaton over tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, overload

from tokenfst.automata.expressions.expression import intersect
from tokenfst.automata.expressions.program import Program
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.decoding.compiling.missing_bytes import of_single_bytes, warn_unspellable
from tokenfst.decoding.token_automata.held_constraints import hold
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton, compose
from tokenfst.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ConstraintError,
    EmptyLanguageError,
    NondeterministicError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.vocabulary.token_classes import find_classes
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

if (
    TYPE_CHECKING
):  # imported below when they are used, because most processes compile languages and grammars only
    from tokenfst.automata.symbols.automaton import SymbolAutomaton
    from tokenfst.automata.weighted_grammars.grammar import WeightedGrammar
    from tokenfst.automata.weights.language import WeightedLanguage
    from tokenfst.automata.weights.ngrams import NGramModel
    from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
    from tokenfst.decoding.scores.automaton import ScoreAutomaton
    from tokenfst.decoding.scores.grammar_scores import GrammarScores
    from tokenfst.decoding.scores.token_ngrams import TokenNGrams


@overload
def compile(
    constraint: Constraint | SymbolAutomaton,
    vocabulary: Vocabulary,
    budget: Budget | None = None,
    *,
    deterministic: bool = False,
    tokenization: Literal["all"] = "all",
    token_classes: Mapping[str, Iterable[int]] | None = None,
) -> TokenAutomaton: ...


@overload
def compile(
    constraint: Constraint | SymbolAutomaton,
    vocabulary: Vocabulary,
    budget: Budget | None = None,
    *,
    deterministic: bool = False,
    tokenization: Literal["canonical"],
    token_classes: Mapping[str, Iterable[int]] | None = None,
) -> CanonicalAutomaton: ...


@overload
def compile(
    constraint: WeightedLanguage, vocabulary: Vocabulary, budget: Budget | None = None
) -> ScoreAutomaton: ...


@overload
def compile(
    constraint: NGramModel, vocabulary: Vocabulary, budget: Budget | None = None
) -> ScoreAutomaton | TokenNGrams: ...


@overload
def compile(
    constraint: WeightedGrammar, vocabulary: Vocabulary, budget: Budget | None = None
) -> GrammarScores: ...


@checked
def compile(
    constraint: Constraint | SymbolAutomaton | WeightedLanguage | WeightedGrammar | NGramModel,
    vocabulary: Vocabulary,
    budget: Budget | None = None,
    *,
    deterministic: bool = False,
    tokenization: Literal["all", "canonical"] = "all",
    token_classes: Mapping[str, Iterable[int]] | None = None,
) -> TokenAutomaton | CanonicalAutomaton | ScoreAutomaton | GrammarScores | TokenNGrams:
    """Compose ``constraint`` lazily with the detokenizing transducer of ``vocabulary``.

    A language becomes a finite automaton over tokens, a grammar a push-down automaton. An automaton over symbols is
    composed with a vocabulary of symbols. ``tokenization="canonical"``: accept only the token sequence that the
    tokenizer itself produces for each text (``CanonicalAutomaton``, docs/research/canonical.md). ``token_classes``: the
    token ids of the classes that the constraint names (``token_class``, ``(?P<IMAGE>)``;
    docs/research/token-groups.md). A ``WeightedLanguage``, ``WeightedGrammar`` or ``NGramModel`` becomes an automaton
    whose matcher adds scores to logits (docs/research/weights.md); these options do not apply to it.

    The budget bounds this construction and later ones. Raises ``EmptyLanguageError`` for a constraint that no string
    satisfies, and ``BudgetExceeded``; with ``deterministic``, ``NondeterministicError`` for a grammar that needs more
    than one stack (``Grammar.conflict``). Warns with ``UnspellableWarning``, and a string as witness, if the vocabulary
    cannot spell all texts of the constraint.
    """
    if not isinstance(constraint, Constraint):
        plain = not deterministic and tokenization == "all" and token_classes is None
        scores = _scores(constraint, vocabulary, budget, plain=plain)
        if scores is not None:
            return scores
        constraint = _language_of_symbols(constraint, vocabulary, budget)
    if not isinstance(vocabulary, Vocabulary):
        raise VocabularyMismatchError(f"compile() takes a Vocabulary, not {type(vocabulary).__name__}")
    if tokenization not in ("all", "canonical"):
        raise ArgumentValueError(f'tokenization is "all" or "canonical", not {tokenization!r}')
    if deterministic and isinstance(constraint, Grammar) and (conflict := constraint.conflict()) is not None:
        raise NondeterministicError(f"{constraint.source} is not deterministic: {conflict}", conflict)
    budget = budget or Budget()
    if tokenization == "canonical":
        constraint = _encoded_as_they_are(constraint, vocabulary)
    program = constraint.program()
    own: Program | None = program
    if program.is_token_level:
        return _compile_tokens(constraint, program, vocabulary, budget, tokenization, token_classes or {})
    if program.rules and isinstance(constraint, Grammar) and not vocabulary.native.complete:
        own, program = None, of_single_bytes(constraint, vocabulary).program()
    native = compose(program, vocabulary, budget)
    if native.is_empty:
        left_out = _LEFT_OUT if tokenization == "canonical" and _changes_texts(vocabulary) else ""
        raise EmptyLanguageError(
            f"no string satisfies {constraint.source}: the language is empty. Look for parts that contradict each "
            f"other, such as the two sides of an intersection{left_out}"
        )
    if not vocabulary.native.complete:
        warn_unspellable(constraint, vocabulary, native)
    hold(constraint, native, own)
    automaton = TokenAutomaton(native, vocabulary, constraint.source, budget, program=program)
    if tokenization == "canonical":
        from tokenfst.decoding.canonical.automaton import CanonicalAutomaton

        return CanonicalAutomaton(automaton, budget, unchanged=True)
    return automaton


_LEFT_OUT = (
    ". With this tokenizer, canonical tokenizations leave out texts that contain added tokens or are not in its normal "
    "form (docs/research/canonical.md)"
)


def _changes_texts(vocabulary: Vocabulary) -> bool:
    return vocabulary.encoding is not None and vocabulary.encoding.changes_texts


def _encoded_as_they_are(constraint: Constraint, vocabulary: Vocabulary) -> Constraint:
    """The constraint without the texts that the tokenizer changes, or in which it finds added tokens."""
    if vocabulary.encoding is None or not vocabulary.encoding.changes_texts:
        return constraint
    from tokenfst.tokenizers.segmentation.ordinary_texts import ordinary_texts

    texts = Language(ordinary_texts(vocabulary.encoding), "texts that the tokenizer does not change")
    if isinstance(constraint, Language):
        return Language(intersect(constraint.expr, texts.expr), constraint.source, constraint.budget)
    return constraint & texts


def _scores(
    constraint: object, vocabulary: Vocabulary, budget: Budget | None, *, plain: bool
) -> ScoreAutomaton | GrammarScores | TokenNGrams | None:
    """The automaton of scores; that of a model over token ids needs no bytes. ``None`` if the constraint is not
    weighted. ``plain``: no option is given.
    """
    from tokenfst.automata.weighted_grammars.grammar import WeightedGrammar
    from tokenfst.automata.weights.language import WeightedLanguage
    from tokenfst.automata.weights.ngrams import NGramModel
    from tokenfst.decoding.scores.automaton import ScoreAutomaton
    from tokenfst.decoding.scores.grammar_scores import GrammarScores
    from tokenfst.decoding.scores.token_ngrams import TokenNGrams

    if not isinstance(constraint, WeightedLanguage | WeightedGrammar | NGramModel):
        return None
    if not plain:
        raise ConstraintError(
            "compile(): a weighted language has the scores of all token sequences: leave out deterministic, "
            "tokenization and token_classes"
        )
    if isinstance(constraint, WeightedGrammar):
        return GrammarScores(constraint, vocabulary, budget)
    if isinstance(constraint, NGramModel):
        if constraint.unit == "token":
            return TokenNGrams(constraint, vocabulary, budget)
        constraint = constraint.to_weighted(budget)
    return ScoreAutomaton(constraint, vocabulary, budget)


def _compile_tokens(
    constraint: Constraint,
    program: Program,
    vocabulary: Vocabulary,
    budget: Budget,
    tokenization: str,
    token_classes: Mapping[str, Iterable[int]],
) -> TokenAutomaton:
    """The automaton of a constraint on tokens."""
    if tokenization != "all":
        raise ConstraintError(
            f"{constraint.source} constrains tokens itself, and canonical tokenization is defined for text only: "
            'compile it with tokenization="all"'
        )
    if program.rules and not vocabulary.native.complete:
        raise ConstraintError(
            f"{constraint.source} constrains tokens and needs a stack, which requires that each byte is a "
            "token: compile its truncate(depth) instead"
        )
    classes = find_classes(program.token_names, vocabulary, token_classes)
    native = compose(program, vocabulary, budget, classes)
    if native.is_empty or not native.spellable:
        raise EmptyLanguageError(f"no token sequence of this vocabulary satisfies {constraint.source}")
    hold(constraint, native)
    return TokenAutomaton(native, vocabulary, constraint.source, budget, program=program, classes=classes)


def _language_of_symbols(constraint: object, vocabulary: Vocabulary, budget: Budget | None) -> Language:
    """The language of an automaton over symbols. Raises TypeError for everything else."""
    from tokenfst.automata.symbols.automaton import SymbolAutomaton

    if not isinstance(constraint, SymbolAutomaton):
        raise ArgumentTypeError(
            "compile() takes a Language, such as regex(...) returns, a Grammar or a SymbolAutomaton, not "
            f"{type(constraint).__name__}"
        )
    if not isinstance(vocabulary, Vocabulary):
        raise VocabularyMismatchError(f"compile() takes a Vocabulary, not {type(vocabulary).__name__}")
    return over_symbols(constraint, vocabulary, budget)


def over_symbols(automaton: SymbolAutomaton, vocabulary: Vocabulary, budget: Budget | None) -> Language:
    """The language of an automaton over symbols, spelled in the codes of ``vocabulary``, a vocabulary of symbols.

    Raises ``VocabularyMismatchError`` for a vocabulary that spells text.
    """
    if vocabulary.symbols is None:
        raise VocabularyMismatchError(
            f"{automaton!r} is over symbols, and {vocabulary!r} spells text: make a vocabulary with "
            "Vocabulary.of_symbols(...), or a language of the automaton"
        )
    return automaton.language(vocabulary.symbols, budget)
