"""Explanations by a matcher: why a token is not allowed (``matcher.explain(token)``), and the captures of its text.

The text so far followed by the token's bytes is a text, and the constraint itself can say where a text leaves it
(``Constraint.explain``). The other reasons concern tokens: an end token too early, a special token, a limit, a
position at which a token may not end.

If the constraint is not available (for loaded automata), or constrains tokens itself, the mask is used instead: a
prefix of the token is possible if a sequence of allowed tokens spells it. That is exact as well, but gives characters
beyond ASCII by their first bytes.

Cost: linear in the text so far; through masks, a scan of all allowed tokens for each position in the token.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import tokenfst._native as _native
from tokenfst._native import Matcher
from tokenfst.automata.captures.reader import Part
from tokenfst.automata.captures.values import Captures
from tokenfst.automata.characters.utf8 import normalize
from tokenfst.automata.languages.display import explanation
from tokenfst.automata.languages.display.explanation import Explanation, Following
from tokenfst.common.plurals import counted
from tokenfst.common.token_ids import token_id as read_token_id
from tokenfst.decoding.token_automata.held_constraints import HeldConstraint, held_by
from tokenfst.decoding.token_automata.reading_tokens import TokenTemperatures, parts_of, special_tokens
from tokenfst.decoding.token_automata.tracing import mask_of
from tokenfst.errors import ConstraintError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Reason = Literal["allowed", "text", "end", "special", "limit", "tokens", "terminated"]


@dataclass(frozen=True, slots=True)
class TokenExplanation:
    """Whether a token is allowed; true in a boolean context if it is.

    If it is not, ``reason`` is one of:

    - ``"text"``: its byte number ``place`` leaves the language
    - ``"end"``: it is an end token, and the text is not complete
    - ``"special"``: it is a special token, which has no bytes and is not allowed here
    - ``"limit"``: its text could continue, but not to its end within ``max_tokens_left``
    - ``"tokens"``: its text could continue, but not by this token: the constraint requires a token boundary, the tokens
      are not canonical, or no tokens of the vocabulary spell the rest
    - ``"terminated"``: an end token was accepted before

    ``spelled``: the bytes that the token adds. ``symbol``: its symbol in a vocabulary of symbols, and
    ``expected_symbols`` the allowed ones. ``text``: for the text so far followed by the token's bytes, where it leaves
    the language and what was expected there (``Constraint.explain``).
    """

    token: int
    spelled: bytes
    symbol: str | None
    reason: Reason
    place: int = 0
    text: Explanation | None = None
    max_tokens_left: int | None = None
    expected_symbols: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the token is allowed."""
        return self.reason == "allowed"

    def __bool__(self) -> bool:
        return self.allowed

    def __str__(self) -> str:
        """A message in words; a caret marks the place in the text."""
        shown = self.symbol if self.symbol is not None else self.spelled
        name = f"token {self.token}" + (f" ({shown!r})" if shown else "")
        match self.reason:
            case "allowed":
                return f"{name} is allowed"
            case "text" if self.symbol is not None:
                said = f"{name} is not allowed: expected {_listed(self.expected_symbols)}"
            case "text":
                said = f"{name} is not allowed: its byte {self.place} leaves the language"
            case "end":
                said = f"{name} is not allowed: it ends the text, which is not complete"
            case "special":
                said = f"{name} is not allowed: it is a special token, and none of its kind may stand here"
            case "limit":
                left = self.max_tokens_left or 0  # known where this is the reason
                said = f"{name} is not allowed: after it the text cannot be completed within {counted(left, 'token')}"
            case "tokens":
                said = f"{name} is not allowed: its text may stand here, but not as this token"
            case "terminated":
                said = f"{name} is not allowed: the end token was accepted before it"
        if self.text is None or self.text.accepted:
            return said
        said = f"{said}\n{self.text}"
        return f"{said}\nopen rules: {' > '.join(self.text.rules)}" if self.text.rules else said


def explain(matcher: Any, token_id: int) -> TokenExplanation:
    """Whether a token is allowed, and if not, the reason, the failing byte of the token, and what was expected there.

    ``print`` shows it with a caret. The matcher does not change. Raises ``TokenIdError`` outside the vocabulary.
    """
    native = native_of(matcher)
    vocabulary: Vocabulary = native.made_from[2]
    read_token_id("Matcher.explain", "token_id", token_id, len(vocabulary))
    before, symbol = vocabulary.decode(matcher.tokens), None
    spelled = vocabulary.decode([*matcher.tokens, token_id])[len(before) :]
    if vocabulary.symbols is not None:
        symbol, spelled = vocabulary.symbols[token_id], b""
    named = partial(TokenExplanation, operator.index(token_id), spelled, symbol)
    if matcher.is_terminated():
        return named("terminated")
    if matcher.validate_tokens([token_id]):
        return named("allowed")
    free = matcher.fork()
    free.max_tokens_left = None
    if free.validate_tokens([token_id]):
        return named("limit", max_tokens_left=matcher.max_tokens_left)
    if symbol is not None:
        return named("text", expected_symbols=_symbols(free, vocabulary))
    ends = token_id in vocabulary.eos_token_ids
    if not spelled and not ends:
        return named("special")
    held = held_by(native)
    if held is None or native.is_token_level:
        valid, text = _through_masks(free, before, spelled, vocabulary)
    else:
        data, constraint = before + spelled, held.get()
        valid = constraint.viable_prefix(data) - len(before)
        text = constraint.explain(data, prefix=not ends)
    if ends:
        return named("tokens" if text.accepted else "end", text=text)
    return named("tokens") if valid == len(spelled) else named("text", place=valid, text=text)


def captures(matcher: Any) -> Captures:
    """The captures of the constraint's named groups and rules in the text so far: by name, in the order of their
    starts.

    As in ``Constraint.captures``, the text may be complete or a prefix, whose captures may be open. The text is parsed
    each time, so captures are correct after ``rollback`` and in forks. Raises ConstraintError if the automaton was
    loaded from a file.
    """
    constraint, native = _held_for(matcher, "captures").get(), native_of(matcher)
    vocabulary: Vocabulary = native.made_from[2]
    if native.is_token_level:
        parts: list[Part] = [*parts_of(special_tokens(native), vocabulary, matcher.tokens)]
    else:
        parts = [vocabulary.decode(matcher.tokens)]
    found: Captures = constraint.captured(parts, whole=True if matcher.is_terminated() else None)
    return found


def temperature(matcher: Any) -> float | None:
    """The sampling temperature set by the rules that may read the next token (``rule[temperature=0.7]`` in Lark's
    notation).

    ``None`` if no rule sets one, and after an end token. Of nested rules the innermost that sets a temperature counts;
    if the text is ambiguous, the highest. Raises ConstraintError if the automaton was loaded from a file,
    BudgetExceeded.
    """
    native: Any = native_of(matcher)
    if not hasattr(native, "temperatures"):
        held = _held_for(matcher, "temperature")
        reader = held.get().reader if held.has_temperature else None
        native.temperatures = reader and TokenTemperatures(reader, native, native.made_from[2])
    return (
        None
        if native.temperatures is None or matcher.is_terminated()
        else native.temperatures.after(matcher.tokens)
    )


def rule_temperature(matcher: Any) -> float | None:
    """``temperature`` for decoders: ``None`` also for an automaton that was loaded from a file, which has no rules."""
    native = native_of(matcher)
    return temperature(matcher) if held_by(native) is not None else None


def _held_for(matcher: Any, what: str) -> HeldConstraint:
    """The constraint that a matcher follows, for a method of the matcher; ConstraintError if it is not known."""
    held = held_by(native_of(matcher))
    if held is None:
        raise ConstraintError(
            f"{what}: this automaton was loaded from a file, which has no constraint: ask "
            "constraint.captures(vocabulary.decode(matcher.tokens), prefix=True)"
            if what == "captures"
            else f"{what}: this automaton was loaded from a file, which has no constraint: compile the constraint"
        )
    return held


def _listed(names: tuple[str, ...]) -> str:
    """Up to ten of the names."""
    return " or ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def native_of(matcher: Any) -> _native.TokenAutomaton:
    """The core's automaton that a matcher walks."""
    walked = matcher.automaton
    found: _native.TokenAutomaton = walked if isinstance(walked, _native.TokenAutomaton) else walked.native
    return found


def _through_masks(
    free: Any, before: bytes, spelled: bytes, vocabulary: Vocabulary
) -> tuple[int, Explanation]:
    """How many bytes of a token allowed tokens spell, one after the other or as the beginning of one, and what they go
    on with there.
    """
    table = vocabulary.tokens if before or vocabulary.initial_tokens is None else vocabulary.initial_tokens
    reached: list[dict[int, Any]] = [{} for _ in range(len(spelled) + 1)]
    reached[0][free.state] = free
    live: list[set[int]] = [set() for _ in range(len(spelled) + 1)]
    ends = [False] * (len(spelled) + 1)
    for place, matchers in enumerate(reached):
        for matcher in matchers.values():
            ends[place] |= matcher.is_accepting()
            for token in mask_of(matcher, vocabulary).tolist():
                word = table[token]
                shared = _shared(word, spelled[place:])
                for number, byte in enumerate(word[: shared + 1], place):
                    live[number].add(byte)
                if 0 < shared == len(word):
                    onward = matcher.fork()
                    onward.accept_token(token)
                    reached[place + shared].setdefault(onward.state, onward)
        table = vocabulary.tokens
    valid = max(place for place, found in enumerate(live) if found or reached[place])
    data = before + spelled
    if valid == len(spelled) and (spelled or ends[valid]):
        return valid, Explanation(data, True)
    character = explanation.leaving(data, len(before) + valid)[1]
    expected = Following(
        ends[valid],
        normalize((byte, byte) for byte in live[valid] if byte < 0x80),
        bytes(sorted(byte for byte in live[valid] if byte >= 0x80)),
    )
    return valid, Explanation(data, False, len(before) + valid, character, expected)


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes at their beginnings are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _symbols(matcher: Any, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The symbols that may come next, and the end."""
    assert vocabulary.symbols is not None
    names = [vocabulary.symbols[token] for token in mask_of(matcher, vocabulary).tolist()]
    found = tuple(repr(name) for name in names if name is not None)
    return (*found, "the end") if matcher.is_accepting() else found


for _name, _method in (("explain", explain), ("captures", captures), ("temperature", property(temperature))):
    setattr(Matcher, _name, _method)
