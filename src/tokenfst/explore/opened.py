"""A constraint with a vocabulary, and all queries of the page about it; answers are JSON values.

Between two queries only the automaton and its masks are stored: the page sends the accepted tokens each time. So going
back costs no more than going forward, and several tabs do not affect each other. Queries about one constraint run one
after the other (``Walk`` is for one thread).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.display.explanation import Explanation
from tokenfst.automata.languages.display.readable import quoted
from tokenfst.automata.languages.operands import encode
from tokenfst.budget import Budget
from tokenfst.common.locks import fork_safe_lock
from tokenfst.common.plurals import counted
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata.drawing import named
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.decoding.token_automata.tracing import Step, Trace, mask_of, trace
from tokenfst.errors import BudgetExceeded, ConstraintError, TokenfstWarning, VocabularyError
from tokenfst.explore.picture import picture
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

MOST_TOKENS = 2_000
"""The greatest number of tokens of one sequence."""
MOST_STATES = 400
"""The greatest number of states of one picture."""
MOST_LISTED = 500
"""The greatest number of tokens on one page of a list."""


class Opened:
    """A constraint that is open in the explorer. ``constraint``: the constraint over bytes; None if only tokens can
    walk the automaton, as for token-level constraints and artifacts with a stack. ``source``: what the user wrote.
    ``messages``: the warnings of compiling it.
    """

    def __init__(
        self,
        automaton: TokenAutomaton | CanonicalAutomaton,
        constraint: Constraint | None,
        source: str,
        messages: Sequence[str] = (),
    ) -> None:
        self.automaton, self.constraint, self.source = automaton, constraint, source
        self.messages = tuple(messages)
        self.vocabulary: Vocabulary = automaton.vocabulary
        self.lock = fork_safe_lock()

    @classmethod
    def of(cls, constraint: Constraint, vocabulary: Vocabulary, budget: Budget) -> Opened:
        """A constraint, composed with the vocabulary."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TokenfstWarning)
            automaton = compile(constraint, vocabulary, budget)
        over_bytes = None if automaton.native.is_token_level else constraint
        return cls(automaton, over_bytes, constraint.source, [str(each.message) for each in caught])

    def about(self) -> dict[str, Any]:
        """Facts about the constraint, and its shortest text."""
        shortest: bytes | None = None
        facts = [["Made from", self.source]]
        if self.constraint is not None:
            facts.append(["Kind", type(self.constraint).__name__])
            with suppress(BudgetExceeded):
                facts.append(["Texts", "finitely many" if self.constraint.is_finite() else "infinitely many"])
            with suppress(BudgetExceeded):
                shortest = self.constraint.shortest()
        matcher = self.automaton.matcher()
        facts.append(
            ["Distance", f"{counted(matcher.distance(), 'token')} from the start to the end{self._bound()}"]
        )
        if shortest is not None:
            facts.append(
                [
                    "Shortest text",
                    f"{quoted(shortest)} ({len(shortest):,} byte{'' if len(shortest) == 1 else 's'})",
                ]
            )
        return {"facts": facts, "shortest": _text(shortest), "messages": list(self.messages)}

    def step(
        self, tokens: Sequence[int], *, limit: int | None, query: str, offset: int, count: int
    ) -> dict[str, Any]:
        """The state after ``tokens``: the masks on the way, forced text, the distance, what may follow, and those
        allowed next tokens that match ``query``, ``count`` of them from ``offset``. Tokens after the first one that is
        not allowed are ignored.
        """
        walked = self._walked(tokens, limit)
        matcher, path = walked
        before = self.vocabulary.decode(matcher.tokens)
        allowed = [] if matcher.is_terminated() else mask_of(matcher, self.vocabulary).tolist()
        listed = _matching(self.vocabulary, allowed, query, first=not matcher.tokens)
        here = path.steps[-1]
        return {
            "path": [self._told(step, path) for step in path.steps if step.token is not None],
            "tokens": list(matcher.tokens),
            "text": quoted(before),
            "here": self._told(here, path),
            "terminated": matcher.is_terminated(),
            "left": matcher.max_tokens_left,
            "completion": self._completion(before),
            "following": self._following(before),
            "rules": [] if self.constraint is None else list(self.constraint.open_rules(before) or ()),
            "allowed": len(allowed),
            "matching": len(listed),
            "offset": offset,
            "list": [
                self._named(token, first=not matcher.tokens) for token in listed[offset : offset + count]
            ],
            "vocabulary": len(self.vocabulary),
        }

    def explain(self, tokens: Sequence[int], token: int, limit: int | None) -> dict[str, Any]:
        """Whether a token is allowed after ``tokens``, and why not."""
        matcher, _ = self._walked(tokens, limit)
        found = matcher.explain(token)
        return {"allowed": found.allowed, "said": str(found)}

    def check(self, text: str) -> dict[str, Any]:
        """Whether a text satisfies the constraint, and where it violates it."""
        if self.constraint is None:
            said = self._through_tokens(text)
            return {"accepted": said is None, "said": said or "the text is in the language", "ending": None}
        found = self.constraint.explain(text)
        return {"accepted": bool(found), "said": _said(found), "ending": _text(found.ending)}

    def cut(self, text: str) -> dict[str, Any]:
        """A text as tokens: at each position the longest that matches."""
        return {"tokens": self._cut(text)}

    def picture(self, tokens: Sequence[int], *, around: bool, states: int) -> dict[str, Any]:
        """A part of the automaton over bytes; the state after ``tokens`` is marked."""
        if self.constraint is None:
            raise ConstraintError(
                "this constraint can only be walked by tokens: it names tokens as such, or is an artifact with a stack "
                "or without tables. Step through it below"
            )
        matcher, _ = self._walked(tokens, None)
        before = self.vocabulary.decode(matcher.tokens)
        return picture(self.constraint, before, around=around, states=min(states, MOST_STATES))

    # --- details --------------------------------------------------------------------------------------

    def _walked(self, tokens: Sequence[int], limit: int | None) -> tuple[Any, Trace]:
        """A matcher after the allowed ones of the tokens, and the trace of the way there."""
        if len(tokens) > MOST_TOKENS:
            raise ConstraintError(f"the explorer follows at most {MOST_TOKENS:,} tokens, not {len(tokens):,}")
        matcher = self.automaton.matcher(max_new_tokens=limit)
        path = trace(matcher, tokens, self.vocabulary)
        for step in path.steps:
            if step.token is not None and step.taken:
                matcher.accept_token(step.token)
        return matcher, path

    def _told(self, step: Step, path: Trace) -> dict[str, Any]:
        return {
            "id": step.token,
            "shown": step.name,
            "taken": step.taken,
            "allowed": step.allowed,
            "intensity": round(path.intensity(step.allowed), 3),
            "forced": _text(step.forced or None),
            "distance": f"{counted(step.distance, 'token')}{self._bound()}",
            "accepting": step.accepting,
        }

    def _bound(self) -> str:
        """The kind of bound that a distance is."""
        bounded = isinstance(self.automaton, TokenAutomaton) and self.automaton.is_pushdown
        return ", at most" if bounded else ""

    def _named(self, token: int, *, first: bool) -> dict[str, Any]:
        ends = token in self.vocabulary.eos_token_ids
        return {"id": token, "shown": named(self.vocabulary, token, first=first), "ends": ends}

    def _completion(self, before: bytes) -> dict[str, Any] | None:
        if self.constraint is None:
            return None
        try:
            return _text(self.constraint.completion(before))
        except BudgetExceeded:
            return None

    def _following(self, before: bytes) -> str:
        if self.constraint is None:
            return ""
        try:
            before.decode()
        except UnicodeDecodeError:
            return "the rest of a character"
        return str(self.constraint.following(before))

    def _cut(self, text: str) -> list[int]:
        data = encode(text)
        if data is None:
            raise VocabularyError("the text has a lone surrogate, which UTF-8 cannot encode")
        return list(self.vocabulary.encode_greedy(data))

    def _through_tokens(self, text: str) -> str | None:
        """The reason why no tokens that spell the text lead to an end; None if some do."""
        tokens = self._cut(text)
        matcher, path = self._walked(tokens, None)
        if path.refused is not None:
            return str(matcher.explain(path.refused))
        end = self.vocabulary.eos_token_ids[0]
        return None if matcher.is_accepting() else str(matcher.explain(end))


def _matching(vocabulary: Vocabulary, allowed: list[int], query: str, *, first: bool) -> list[int]:
    """The tokens that contain ``query``: first those that are equal to it, then those that begin with it, then the
    rest. The query ``#12`` selects the token with the id 12.
    """
    if not query:
        return allowed
    if query.startswith("#") and query[1:].isdecimal():
        return [token for token in allowed if token == int(query[1:])]
    wanted = query.encode("utf-8", "surrogatepass")
    special = {token: name.encode() for name, token in vocabulary.special_tokens.items()}
    table = (vocabulary.initial_tokens if first else None) or vocabulary.tokens
    spelled = {token: special.get(token) or table[token] for token in allowed}
    found = [token for token in allowed if wanted in spelled[token]]
    return sorted(found, key=lambda token: (spelled[token] != wanted, not spelled[token].startswith(wanted)))


def _text(data: bytes | None) -> dict[str, Any] | None:
    """Bytes for the page: as they are shown, and as text if they are UTF-8."""
    if data is None:
        return None
    try:
        text: str | None = data.decode()
    except UnicodeDecodeError:
        text = None
    return {"shown": quoted(data), "text": text}


def _said(found: Explanation) -> str:
    said = str(found)
    if found.rules:
        said += f"\nopen rules: {' > '.join(found.rules[-8:])}"
    if found.ending is not None:
        said += f"\na shortest way on from there: {quoted(found.ending)}"
    return said
