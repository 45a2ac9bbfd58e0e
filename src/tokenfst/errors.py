"""The errors and warnings of tokenfst: one hierarchy, whose messages name the faulty thing and the remedy.

``TokenfstError`` is the root. Where Python has a built-in class with the same meaning (``ValueError``, ``IndexError``,
...), the error also derives from that, so that generic handlers keep working.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from tokenfst.budget import Budget
from tokenfst.common.plurals import counted
from tokenfst.common.printable import LAYOUT, caret, printable


class _Printable(Exception):
    """An exception whose message is safe to print.

    The message may quote text of a stranger. Characters that cannot be printed are escaped, whatever put them there.
    """

    def __str__(self) -> str:
        return printable(super().__str__(), LAYOUT)


class TokenfstError(_Printable):
    """Base class of all errors that tokenfst raises on purpose."""


_BUDGETED = frozenset(field.name for field in fields(Budget))
_LONGEST_POINTER = 200
"""Maximum number of characters of a JSON pointer in a message."""


class BudgetExceeded(TokenfstError):
    """A construction exceeded its budget.

    ``resource``: the exhausted resource (``"states"``, ``"bytes"``, ``"seconds"``, ``"positions"``). ``limit``: the
    budget in that unit. ``where``: the part of the constraint that grew (empty if it has no name). A few limits are not
    fields of ``Budget`` and cannot be raised (``"stacks"``, ``"levels of nesting"``); the message then suggests only to
    make the part smaller. ``advice``: a further sentence of the message about this constraint, without its full stop.
    """

    def __init__(self, resource: str, limit: float, where: str = "", advice: str = "") -> None:
        self.resource, self.limit, self.where, self.advice = resource, limit, where, advice
        part = f"; it grew in {where}" if where else ""
        raised = f", or raise Budget({resource}=...)" if resource in _BUDGETED else ""
        more = f". {advice}" if advice else ""
        super().__init__(
            f"the construction needs more than {limit:,.12g} {resource}{part}. Make that part smaller{raised}{more}"
        )

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[str, float, str, str]]:
        return type(self), (self.resource, self.limit, self.where, self.advice)


# --- arguments ----------------------------------------------------------------------------------------


class ArgumentTypeError(TokenfstError, TypeError):
    """An argument has the wrong type; the message names the argument, the type it has, and the type it must have."""


class ArgumentValueError(TokenfstError, ValueError):
    """An argument has a value that is meaningless for the call, such as NaN; the message names the argument."""


# --- constraints --------------------------------------------------------------------------------------


class ConstraintError(TokenfstError, ValueError):
    """A constraint cannot be compiled."""


class EmptyLanguageError(ConstraintError):
    """No string satisfies the constraint.

    ``pointers``: for a JSON Schema, the JSON pointers of keywords that contradict each other; the set is minimal. Empty
    if they were not found quickly, and for other constraints.
    """

    def __init__(self, message: str = "", pointers: tuple[str, ...] = ()) -> None:
        self.pointers = pointers
        super().__init__(message)

    def __reduce__(self) -> tuple[type[EmptyLanguageError], tuple[str, tuple[str, ...]]]:
        return type(self), (str(self), self.pointers)


class ConflictError(EmptyLanguageError):
    """Parts that must hold together contradict each other.

    ``conflict``: the texts of a minimal set of contradictory parts: if any of them is removed, the others are
    consistent. Empty if it could not be found within the budget.
    """

    def __init__(self, message: str, conflict: tuple[str, ...]) -> None:
        self.conflict = conflict
        super().__init__(message)

    def __reduce__(self) -> tuple[type[ConflictError], tuple[str, tuple[str, ...]]]:
        return type(self), (str(self), self.conflict)


class AlgebraError(ConstraintError):
    """An operation has no exact result.

    Either its result need not be a regular or context-free language, or its operands constrain more than texts (tokens,
    for example). The message says why, and what to do instead.
    """


class DivergingSumError(ConstraintError):
    """The sum of the weights of a weighted language is not finite.

    ``cycle``: the bytes that a diverging cycle reads; ``weight``: its log weight; ``states``: the number of states in
    its strongly connected component.
    """

    def __init__(self, cycle: bytes, weight: float, states: int) -> None:
        self.cycle, self.weight, self.states = cycle, weight, states
        shown = repr(cycle if len(cycle) <= 60 else cycle[:60] + b"...")
        super().__init__(
            f"the weights add up to no finite number: the cycle that reads {shown} has the log weight "
            f"{weight:.6g}, and with the other cycles of its {counted(states, 'state')} it weighs one or more. "
            "Scale the "
            "weights down, or bound the length"
        )

    def __reduce__(self) -> tuple[type[DivergingSumError], tuple[bytes, float, int]]:
        return type(self), (self.cycle, self.weight, self.states)


class DivergingGrammarError(ConstraintError):
    """The sum of the weights of a grammar's texts is not finite.

    ``rules``: the mutually recursive rules that diverge.
    """

    def __init__(self, rules: Iterable[str]) -> None:
        self.rules = tuple(rules)
        shown = ", ".join(map(repr, self.rules[:8])) + (", ..." if len(self.rules) > 8 else "")
        super().__init__(
            f"the weights of the words of {shown} add up to no finite number: the recursion of these rules weighs "
            "one or more. Scale the weights down, or truncate(depth) the grammar"
        )

    def __reduce__(self) -> tuple[type[DivergingGrammarError], tuple[tuple[str, ...]]]:
        return type(self), (self.rules,)


class ArpaError(ConstraintError):
    """A text is not a valid n-gram model in ARPA format, or its symbols do not fit; the message names the line."""


_PLACED = re.compile("line [0-9]+, column [0-9]+: ")
"""How the messages of grammars begin."""


class PatternError(ConstraintError):
    """A pattern is invalid at a known position; the message ends with the line and a caret below that position. Errors
    of grammars begin with the line and the column instead.
    """

    def __init__(self, message: str, pattern: str | bytes, position: int) -> None:
        self.message, self.pattern, self.position = message, pattern, position
        place = "" if _PLACED.match(message) else f" (position {position})"
        super().__init__(f"{message}{place}\n{caret(pattern, position)}")

    def __reduce__(self) -> tuple[type[PatternError], tuple[str, str | bytes, int]]:
        return type(self), (self.message, self.pattern, self.position)


class PatternSyntaxError(PatternError):
    """The pattern is malformed."""


class UnknownSymbolError(ConstraintError):
    """A symbol is not one of those that were given.

    ``symbol``: its name; ``symbols``: the known symbols; ``formula`` and ``position``: where it occurs (``None`` if it
    is not in a text).
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
    """The pattern is well formed but does not describe a regular language."""


class LabelError(ConstraintError):
    """One of several labels is invalid; ``label`` is its text."""

    def __init__(self, label: str | bytes, message: str) -> None:
        self.label = label.decode("utf-8", "backslashreplace") if isinstance(label, bytes) else label
        super().__init__(message)

    def __reduce__(self) -> tuple[type[LabelError], tuple[str, str]]:
        return type(self), (self.label, str(self))


class TemplateError(PatternError):
    """A template is invalid at a known position."""


class _PlacedError(ConstraintError):
    """A JSON document is at fault at a known place. The message shows the pointer and the reason; of a very long
    pointer, the two ends.
    """

    def __init__(self, pointer: str, reason: str) -> None:
        self.pointer, self.reason = pointer, reason
        half = _LONGEST_POINTER // 2
        shown = f"{pointer[:half]}…{pointer[-half:]}" if len(pointer) > _LONGEST_POINTER else pointer
        super().__init__(f"{shown}: {reason}")

    def __reduce__(self) -> tuple[type[_PlacedError], tuple[str, str]]:
        return type(self), (self.pointer, self.reason)


class SchemaError(_PlacedError):
    """A JSON Schema is invalid, or has a reference that cannot be resolved.

    ``pointer``: the position of the keyword, as a JSON pointer in a URI fragment (``"#/properties/a/minimum"``,
    preceded by the document's URI if it is not the main document). ``reason``: what is wrong there.
    """


class UnsupportedSchemaError(SchemaError):
    """The schema is valid, but the keyword at ``pointer`` has no exact automaton here."""


class ProviderSchemaError(SchemaError):
    """The schema is valid, but a provider's structured outputs do not accept the keyword at ``pointer``
    (``json_schema(..., strict=...)``).
    """


class StructuralTagError(_PlacedError):
    """A structural tag is invalid, or a part of it can never be reached.

    ``pointer``: the position in the document, as a JSON pointer in a URI fragment (``"#/format/tags/0/begin"``).
    ``reason``: what is wrong there and what to write instead.
    """


class ToolError(_PlacedError):
    """A list of tools, a tool choice, or a request that contains them is invalid.

    ``pointer``: a JSON pointer in the list of tools (``"#/0/function/name"``) or in the request
    (``"#/tools/0/function/name"``), or the name of an argument. ``reason``: what is wrong there and what to write
    instead.
    """


class ParseError(ConstraintError):
    """A text does not satisfy a constraint, so it cannot be parsed.

    ``position``: the byte offset at which it leaves the constraint (its length, if it ends too early). ``expected``: a
    description of what could stand there. The message shows the position with a caret.
    """

    def __init__(self, message: str, position: int, expected: str) -> None:
        self.position, self.expected = position, expected
        super().__init__(message)

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, int, str]]:
        return type(self), (str(self), self.position, self.expected)


class AnnotationError(ConstraintError):
    """A Python class, function or annotation has no textual form, or none that is supported.

    ``where``: ``"Class.field"`` or ``"function.parameter"``. ``reason``: what is wrong there.
    """

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(f"{where}: {reason}")

    def __reduce__(self) -> tuple[type[AnnotationError], tuple[str, str]]:
        return type(self), (self.where, self.reason)


class NondeterministicError(ConstraintError):
    """A grammar needs more than one stack where a deterministic one is required.

    ``conflict``: the result of ``Grammar.conflict()``; ``None`` if only the automaton was available.
    """

    def __init__(self, message: str, conflict: object = None) -> None:
        self.conflict = conflict
        super().__init__(message)

    def __reduce__(self) -> tuple[type[NondeterministicError], tuple[str, object]]:
        return type(self), (str(self), self.conflict)


# --- machines -----------------------------------------------------------------------------------------


class FstError(TokenfstError, ValueError):
    """A transducer is not of the kind that a call accepts; the message names the state, arc or property."""


class FstArgError(FstError):
    """An argument of a transducer operation is invalid; ``pywrapfst`` has an error of the same name."""


class FstBadWeightError(FstError):
    """A weight is not a member of its semiring, such as NaN; ``pywrapfst`` has an error of the same name."""


class FstIndexError(FstError, IndexError):
    """A transducer has no such state or label; ``pywrapfst`` has an error of the same name."""


class FstIOError(FstError, OSError):
    """A file does not contain a valid transducer or symbol table; ``pywrapfst`` has an error of the same name."""


class FstOpError(FstError, RuntimeError):
    """An operation has no result for these transducers; ``pywrapfst`` has an error of the same name."""


class DrawingError(TokenfstError, ValueError):
    """A machine cannot be drawn as requested."""


# --- vocabularies -------------------------------------------------------------------------------------


class VocabularyError(TokenfstError, ValueError):
    """A vocabulary, or the name or file that it is loaded from, is invalid."""


class UnknownTokenizerError(VocabularyError):
    """A tokenizer's specification has a part that no adapter supports; the message names it."""


class VocabularyMismatchError(VocabularyError):
    """Two objects that must share one vocabulary have different ones."""


class TokenizationError(VocabularyError):
    """The segmentation of texts by a vocabulary's tokenizer is not known, or has no exact automaton here."""


class TokenIdError(TokenfstError, IndexError):
    """A token id is outside the vocabulary."""


# --- decoding -----------------------------------------------------------------------------------------


class MatcherError(TokenfstError):
    """A matcher's state does not allow the requested operation."""


class TerminatedError(MatcherError):
    """A token was offered after the end token."""


class RollbackError(MatcherError, ValueError):
    """A rollback goes back further than the first token."""


class TokenLimitError(MatcherError, ValueError):
    """No accepted text fits into the remaining tokens."""


class StackDepthError(MatcherError):
    """A stack on a device exceeded its capacity."""


class MaskBufferError(TokenfstError, ValueError):
    """A mask or logits buffer has the wrong shape, dtype, device or memory layout."""


class LogitsError(TokenfstError, ValueError):
    """Logits contain NaN where a finite number or an infinity is required, or every allowed token has the logit
    -inf.
    """


class ModelError(TokenfstError, ValueError):
    """A model, its prompts or its scores do not meet the requirements of a decoder."""


class DecodingError(TokenfstError, ValueError):
    """A decoder option is out of range."""


class ParticleError(DecodingError):
    """Particles cannot be drawn as requested."""


class HmmError(ModelError):
    """The tables of a hidden Markov model, or the sequences given to it, are invalid."""


class StateError(TokenfstError, IndexError):
    """States of a device automaton are out of range, or their tensor has the wrong shape, dtype or device."""


# --- artifacts ----------------------------------------------------------------------------------------


class ArtifactError(TokenfstError):
    """A file is not a usable artifact."""


class ArtifactVersionError(ArtifactError):
    """The artifact has a format version that this release does not read."""


class ArtifactCorruptError(ArtifactError, ValueError):
    """The artifact is truncated, modified, or violates a rule of docs/serving/format.md."""


class ArtifactVocabularyError(ArtifactError, VocabularyMismatchError):
    """The artifact was compiled for another vocabulary."""


class SignatureError(ArtifactError):
    """A store entry has no signature by a trusted key, or a signature that does not match."""


class StoreError(TokenfstError):
    """A store cannot be opened, read or written; the message has the storage's error and the remedy."""


class TransferError(StoreError):
    """Data read from a store was truncated or altered on the way."""


class NotInStoreError(StoreError, KeyError):
    """A store has no entry under a key."""

    def __str__(self) -> str:
        return printable(str(self.args[0]), LAYOUT)


# --- the rest -----------------------------------------------------------------------------------------


class MissingDependencyError(TokenfstError, ImportError):
    """The call needs an optional package; the message names the extra that installs it."""


class TokenfstWarning(_Printable, UserWarning):
    """Base class of all warnings that tokenfst emits."""


class PatternWarning(TokenfstWarning):
    """A pattern deviates from its notation, but has only one possible meaning and is read with that meaning; or a
    grammar is read as its notation says, which is probably not what was meant.
    """


class StoreWarning(TokenfstWarning):
    """A store, or its local cache, does not work as it should; the result was obtained without it."""


class VocabularyWarning(TokenfstWarning):
    """A vocabulary is probably not the model's: the model scores many more tokens than it has."""


class UnspellableWarning(TokenfstWarning):
    """Some strings of the language are not the spelling of any token sequence of the vocabulary."""


def _some(names: tuple[str, ...]) -> str:
    """Up to ten of the names."""
    shown = ", ".join(map(repr, names[:10]))
    return f"{shown}, … ({len(names):,} in all)" if len(names) > 10 else shown or "none"


def __getattr__(name: str) -> Any:
    if name != "TokenBudgetError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{__name__}.{name} is called TokenLimitError now", DeprecationWarning, stacklevel=2)
    return TokenLimitError
