"""Every error and warning of tokenfst: one hierarchy, each naming the thing at fault and the remedy.

``TokenfstError`` is the root. Where Python has a built-in class of the same meaning (``ValueError``,
``IndexError``, ...) the error derives from that too, so that generic handlers go on working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import fields

from tokenfst.budget import Budget


class TokenfstError(Exception):
    """Root of all errors that tokenfst raises on purpose."""


_BUDGETED = frozenset(field.name for field in fields(Budget))
_LONGEST_POINTER = 200
"""Characters of a JSON pointer in a message."""


class BudgetExceeded(TokenfstError):
    """A construction outgrew its budget (convention 8).

    ``resource`` is what ran out (``"states"``, ``"bytes"``, ``"seconds"``, ``"positions"``), ``limit`` the
    budget in that unit, ``where`` the part of the constraint that grew (empty when it has no name). A few limits are
    no fields of ``Budget`` and cannot be raised (``"stacks"``, ``"levels of nesting"``): the message then does not
    advise it.
    """

    def __init__(self, resource: str, limit: float, where: str = "") -> None:
        self.resource, self.limit, self.where = resource, limit, where
        part = f"; it grew in {where}" if where else ""
        raised = f", or raise Budget({resource}=...)" if resource in _BUDGETED else ""
        super().__init__(
            f"the construction needs more than {limit:,.12g} {resource}{part}. Make that part smaller{raised}"
        )

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[str, float, str]]:
        return type(self), (self.resource, self.limit, self.where)


# --- arguments ----------------------------------------------------------------------------------------


class ArgumentTypeError(TokenfstError, TypeError):
    """An argument is of another type than the call takes; the message names it, what it got and what it wants."""


class ArgumentValueError(TokenfstError, ValueError):
    """An argument has a value that the call has no meaning for, such as NaN; the message names it."""


# --- constraints --------------------------------------------------------------------------------------


class ConstraintError(TokenfstError, ValueError):
    """A constraint cannot be compiled."""


class EmptyLanguageError(ConstraintError):
    """No string at all satisfies the constraint.

    ``pointers``: of a JSON Schema, the JSON pointers of keywords that contradict each other, none of which could be
    left out; empty where they were not found soon, and for other constraints.
    """

    def __init__(self, message: str = "", pointers: tuple[str, ...] = ()) -> None:
        self.pointers = pointers
        super().__init__(message)

    def __reduce__(self) -> tuple[type[EmptyLanguageError], tuple[str, tuple[str, ...]]]:
        return type(self), (str(self), self.pointers)


class ConflictError(EmptyLanguageError):
    """Parts that must hold at once contradict each other.

    ``conflict``: the texts of those that do; without any of them the others do not contradict each other. Empty where
    that could not be found out within the budget.
    """

    def __init__(self, message: str, conflict: tuple[str, ...]) -> None:
        self.conflict = conflict
        super().__init__(message)

    def __reduce__(self) -> tuple[type[ConflictError], tuple[str, tuple[str, ...]]]:
        return type(self), (str(self), self.conflict)


class AlgebraError(ConstraintError):
    """An operation has no exact result: the texts that it asks for need not be a regular or context-free language, or
    it is about more than texts. The message says why, and what to do instead."""


class DivergingSumError(ConstraintError):
    """The weights of a weighted language add up to no finite number.

    ``cycle``: what a cycle reads that goes round for ever; ``weight``: its log weight; ``states``: how many states
    are connected with it.
    """

    def __init__(self, cycle: bytes, weight: float, states: int) -> None:
        self.cycle, self.weight, self.states = cycle, weight, states
        shown = repr(cycle if len(cycle) <= 60 else cycle[:60] + b"...")
        super().__init__(
            f"the weights add up to no finite number: the cycle that reads {shown} has the log weight "
            f"{weight:.6g}, and with the other cycles of its {states:,} states it weighs one or more. Scale the "
            "weights down, or bound the length"
        )

    def __reduce__(self) -> tuple[type[DivergingSumError], tuple[bytes, float, int]]:
        return type(self), (self.cycle, self.weight, self.states)


class DivergingGrammarError(ConstraintError):
    """The weights of a grammar's texts add up to no finite number. ``rules``: the rules that call each other round."""

    def __init__(self, rules: Iterable[str]) -> None:
        self.rules = tuple(rules)
        shown = ", ".join(map(repr, self.rules[:8])) + (", ..." if len(self.rules) > 8 else "")
        super().__init__(
            f"the weights of the words of {shown} add up to no finite number: what is called again and again weighs "
            "one or more. Scale the weights down, or truncate(depth) the grammar"
        )

    def __reduce__(self) -> tuple[type[DivergingGrammarError], tuple[tuple[str, ...]]]:
        return type(self), (self.rules,)


class ArpaError(ConstraintError):
    """A text is no n-gram model in ARPA's format, or its symbols do not fit; the message names the line."""


class PatternError(ConstraintError):
    """A pattern is at fault at a known place; the message ends with the line and a caret under it."""

    def __init__(self, message: str, pattern: str | bytes, position: int) -> None:
        self.message, self.pattern, self.position = message, pattern, position
        super().__init__(f"{message} at position {position}\n{caret(pattern, position)}")

    def __reduce__(self) -> tuple[type[PatternError], tuple[str, str | bytes, int]]:
        return type(self), (self.message, self.pattern, self.position)


class PatternSyntaxError(PatternError):
    """The pattern is not well formed."""


class PatternWarning(UserWarning):
    """A pattern is not quite what its notation allows, but can mean one thing only, and is read so."""


class UnknownSymbolError(ConstraintError):
    """Something names a symbol that is not one of those given.

    ``symbol``: its name; ``symbols``: those there are; ``formula`` and ``position``: where it stands (``None``: in no
    text).
    """

    def __init__(
        self, symbol: str, symbols: tuple[str, ...], formula: str | None = None, position: int = 0
    ) -> None:
        self.symbol, self.symbols, self.formula, self.position = symbol, symbols, formula, position
        near = difflib.get_close_matches(symbol, symbols, 3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {_some(symbols)}"
        message = f"the symbol {symbol!r} is not one of the symbols given: {hint}"
        if formula is not None:
            message += f" (position {position})\n{caret(formula, position)}"
        super().__init__(message)

    def __reduce__(self) -> tuple[type[UnknownSymbolError], tuple[str, tuple[str, ...], str | None, int]]:
        return type(self), (self.symbol, self.symbols, self.formula, self.position)


class UnsupportedPatternError(PatternError):
    """The pattern is well formed but describes something that is not a regular language."""


class LabelError(ConstraintError):
    """One of several labels is at fault; ``label`` is that label, as text."""

    def __init__(self, label: str | bytes, message: str) -> None:
        self.label = label.decode("utf-8", "backslashreplace") if isinstance(label, bytes) else label
        super().__init__(message)

    def __reduce__(self) -> tuple[type[LabelError], tuple[str, str]]:
        return type(self), (self.label, str(self))


class TemplateError(PatternError):
    """A template is at fault at a known place."""


class _PlacedError(ConstraintError):
    """A JSON document is at fault at a known place. The message shows the pointer and the reason; of a very long
    pointer, the two ends."""

    def __init__(self, pointer: str, reason: str) -> None:
        self.pointer, self.reason = pointer, reason
        half = _LONGEST_POINTER // 2
        shown = f"{pointer[:half]}…{pointer[-half:]}" if len(pointer) > _LONGEST_POINTER else pointer
        super().__init__(f"{shown}: {reason}")

    def __reduce__(self) -> tuple[type[_PlacedError], tuple[str, str]]:
        return type(self), (self.pointer, self.reason)


class SchemaError(_PlacedError):
    """A JSON Schema is at fault: it is no valid schema, or refers to what is not there.

    ``pointer`` is the place of the keyword, as a JSON pointer in a URI fragment (``"#/properties/a/minimum"``; with the
    document's URI before it where it is not the first), ``reason`` what is wrong there.
    """


class UnsupportedSchemaError(SchemaError):
    """The schema is valid, but what it says at ``pointer`` has no exact automaton here."""


class ProviderSchemaError(SchemaError):
    """The schema is valid, but the structured outputs of a provider do not take what it says at ``pointer``
    (``json_schema(..., strict=...)``)."""


class StructuralTagError(_PlacedError):
    """A structural tag is at fault: it is no structural tag, or a part of it can never be reached.

    ``pointer`` is the place in the document, as a JSON pointer in a URI fragment (``"#/format/tags/0/begin"``),
    ``reason`` what is wrong there and what to write instead.
    """


class ToolError(_PlacedError):
    """A list of tools, the choice among them, or a request that holds them is at fault.

    ``pointer`` is the place: a JSON pointer in the list of tools (``"#/0/function/name"``) or in the request
    (``"#/tools/0/function/name"``), or the name of an argument; ``reason`` what is wrong there and what to write.
    """


class ParseError(ConstraintError):
    """A text is none of a constraint, so it is not read.

    ``position`` is the byte where it leaves the constraint (its length, if it stops too early), ``expected`` what could
    stand there, in words. The message shows the place with a caret.
    """

    def __init__(self, message: str, position: int, expected: str) -> None:
        self.position, self.expected = position, expected
        super().__init__(message)

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, int, str]]:
        return type(self), (str(self), self.position, self.expected)


class AnnotationError(ConstraintError):
    """A Python class, function or annotation stands for no text, or for none that is known here.

    ``where`` is the place, ``"Class.field"`` or ``"function.parameter"``; ``reason`` what is wrong there.
    """

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(f"{where}: {reason}")

    def __reduce__(self) -> tuple[type[AnnotationError], tuple[str, str]]:
        return type(self), (self.where, self.reason)


class NondeterministicError(ConstraintError):
    """A grammar needs more than one stack where a deterministic one is asked for.

    ``conflict`` is what ``Grammar.conflict()`` says of it; ``None`` where only the automaton was at hand.
    """

    def __init__(self, message: str, conflict: object = None) -> None:
        self.conflict = conflict
        super().__init__(message)

    def __reduce__(self) -> tuple[type[NondeterministicError], tuple[str, object]]:
        return type(self), (str(self), self.conflict)


# --- machines -----------------------------------------------------------------------------------------


class FstError(TokenfstError, ValueError):
    """A transducer is not of the kind that a call can read; the message names the state, arc or property."""


class FstArgError(FstError):
    """An argument of a call over transducers has no meaning there; ``pywrapfst`` has an error of the same name."""


class FstBadWeightError(FstError):
    """A weight is no member of its semiring, such as NaN; ``pywrapfst`` has an error of the same name."""


class FstIndexError(FstError, IndexError):
    """A transducer has no such state or label; ``pywrapfst`` has an error of the same name."""


class FstIOError(FstError, OSError):
    """A file holds no transducer or symbol table that can be read; ``pywrapfst`` has an error of the same name."""


class FstOpError(FstError, RuntimeError):
    """An operation has no result for these transducers; ``pywrapfst`` has an error of the same name."""


class DrawingError(TokenfstError, ValueError):
    """A machine cannot be drawn as asked."""


# --- vocabularies -------------------------------------------------------------------------------------


class VocabularyError(TokenfstError, ValueError):
    """A vocabulary, or the name or file it is made from, is at fault."""


class UnknownTokenizerError(VocabularyError):
    """A tokenizer's specification holds a part that no adapter knows; the message says what was found."""


class VocabularyMismatchError(VocabularyError):
    """Two things that must share one vocabulary do not."""


class TokenizationError(VocabularyError):
    """How a vocabulary's tokenizer cuts texts into tokens is not known, or has no exact automaton here."""


class TokenIdError(TokenfstError, IndexError):
    """A token id lies outside the vocabulary."""


# --- decoding -----------------------------------------------------------------------------------------


class MatcherError(TokenfstError):
    """A matcher was asked for something its state does not allow."""


class TerminatedError(MatcherError):
    """A token was offered after the end token."""


class RollbackError(MatcherError, ValueError):
    """A rollback reaches further back than the first token."""


class TokenBudgetError(MatcherError, ValueError):
    """No accepted text fits into the tokens that are left."""


class StackDepthError(MatcherError):
    """A stack on a device needed more room than there is."""


class MaskBufferError(TokenfstError, ValueError):
    """A mask or logits buffer has the wrong shape, dtype, device or memory layout."""


class LogitsError(TokenfstError, ValueError):
    """Logits hold NaN where a finite number or an infinity is needed, or -inf for everything that may come next."""


class ModelError(TokenfstError, ValueError):
    """A model, its prompts or its scores do not fit what a decoder asks of them."""


class DecodingError(TokenfstError, ValueError):
    """An option of a decoder is out of its range."""


class ParticleError(DecodingError):
    """Particles cannot be drawn as asked."""


class HmmError(ModelError):
    """A hidden Markov model's tables, or the sequences it is asked about, are at fault."""


class StateError(TokenfstError, IndexError):
    """States of a device automaton are out of range, or in a tensor of the wrong shape, dtype or device."""


# --- artifacts ----------------------------------------------------------------------------------------


class ArtifactError(TokenfstError):
    """A file is not a usable artifact."""


class ArtifactVersionError(ArtifactError):
    """The artifact was written in a format version that this release does not read."""


class ArtifactCorruptError(ArtifactError, ValueError):
    """The artifact is truncated, altered, or breaks a rule of docs/serving/format.md."""


class ArtifactVocabularyError(ArtifactError, VocabularyMismatchError):
    """The artifact was compiled for another vocabulary."""


class SignatureError(ArtifactError):
    """An entry of a store has no signature of a trusted key, or one that does not match."""


class StoreError(TokenfstError):
    """A store cannot be opened, read or written; the message says what its storage said, and the remedy."""


class TransferError(StoreError):
    """What was read from a store did not arrive as it was sent."""


class NotInStoreError(StoreError, KeyError):
    """A store has no entry under a key."""

    def __str__(self) -> str:
        return str(self.args[0])


# --- the rest -----------------------------------------------------------------------------------------


class MissingDependencyError(TokenfstError, ImportError):
    """An optional package is needed for this call; the message names the extra that brings it."""


class TokenfstWarning(UserWarning):
    """Root of all warnings that tokenfst emits."""


class StoreWarning(TokenfstWarning):
    """A store, or the cache below it, does not work as it should; what was asked for was found without it."""


class UnspellableWarning(TokenfstWarning):
    """Some strings of the language are spelled by no token sequence of the vocabulary."""


def caret(text: str | bytes, position: int) -> str:
    """The line of ``text`` that holds ``position``, with a caret under that place."""
    shown = text if isinstance(text, str) else text.decode("latin-1")
    begin = shown.rfind("\n", 0, position) + 1
    end = shown.find("\n", position)
    line = shown[begin:] if end < 0 else shown[begin:end]
    return f"  {line}\n  {' ' * (position - begin)}^"


def _some(names: tuple[str, ...]) -> str:
    """Up to ten of the names."""
    shown = ", ".join(map(repr, names[:10]))
    return f"{shown}, … ({len(names):,} in all)" if len(names) > 10 else shown or "none"


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Line and column of a position of ``text``, both from 1, as errors say them."""
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
