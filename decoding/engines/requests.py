"""What a served request may ask for, as constraints: the kinds that OpenAI-compatible servers know.

Reading and refusing are one: a front end that reads a request has checked it, with the library's own messages, and the
engine that reads it again gets the same constraint. ``CompiledRequests`` keeps what was compiled lately, as requests
repeat their schemas.
"""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.json_schema import json_object, json_schema
from tokenfst.automata.languages.language import Language
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.automata.pieces.taxonomy import choices
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.structural_tags.structural_tag import structural_tag
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, fill_bitmasks
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import BudgetExceeded, ConstraintError, TokenBudgetError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Kind: TypeAlias = Literal["json", "json_object", "regex", "choice", "grammar", "lark", "structural_tag"]


@dataclass(frozen=True, slots=True)
class Request:
    """One constraint: its kind, and the text that says it. ``whitespace`` and ``additional_properties`` are those of
    ``json_schema``."""

    kind: Kind
    text: str = ""
    whitespace: str = "flexible"
    additional_properties: Literal["schema", "forbid"] = "schema"

    def constraint(self, vocabulary: Vocabulary | None = None) -> Language | Grammar:
        """What the text must be; ``vocabulary``: where a structural tag finds special tokens.

        Raises ConstraintError (a subclass that names the place) and BudgetExceeded."""
        if self.kind == "json":
            return json_schema(
                self.text, whitespace=self.whitespace, additional_properties=self.additional_properties
            )
        if self.kind == "json_object":
            return json_object(whitespace=self.whitespace)
        if self.kind == "regex":
            return regex(self.text)
        if self.kind == "choice":
            return choices(_labels(self.text))
        if self.kind == "grammar":
            return ebnf(self.text)
        if self.kind == "lark":
            return lark_grammar(self.text)
        return structural_tag(self.text, vocabulary=vocabulary)


def _labels(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConstraintError(f"choice must be a list of texts: {error}") from None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ConstraintError(f"choice must be a list of texts, not {text[:60]}")
    return list(dict.fromkeys(found))


class CompiledRequests:
    """Automata of the requests seen lately, over one model's tokens. Shared by threads.

    ``vocabulary_of``: the vocabulary with these tokens as its end tokens; requests may name stop tokens of their own.
    ``bytes``: what the automata kept may take together; the one not asked for longest goes first.
    """

    def __init__(self, vocabulary_of: Callable[[Sequence[int]], Vocabulary], bytes: int = 512 << 20) -> None:
        self._vocabulary_of, self._bytes = vocabulary_of, bytes
        self._vocabularies: OrderedDict[tuple[int, ...], Vocabulary] = OrderedDict()
        self._kept: OrderedDict[Hashable, TokenAutomaton] = OrderedDict()
        self._lock = threading.Lock()

    def automaton(self, request: Request, ends: Sequence[int]) -> TokenAutomaton:
        """The request's automaton, texts ended by any of ``ends``. Raises what ``constraint`` and ``compile`` raise."""
        known = self.known(request, ends)
        if known is not None:
            return known
        stops = tuple(sorted(set(ends)))
        key = request, stops
        vocabulary = self._vocabulary(stops)
        made = compile(request.constraint(vocabulary), vocabulary)
        with self._lock:
            made = self._kept.setdefault(key, made)
            held = sum(each.memory().automaton for each in self._kept.values())
            while held > self._bytes and len(self._kept) > 1:
                held -= self._kept.popitem(last=False)[1].memory().automaton
        return made

    def known(self, request: Request, ends: Sequence[int]) -> TokenAutomaton | None:
        """The automaton where it is kept; it is asked for as of now."""
        key = request, tuple(sorted(set(ends)))
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def matcher(self, request: Request, ends: Sequence[int], max_tokens: int | None) -> AnyMatcher:
        """A walk whose text is whole within ``max_tokens``. Raises TokenBudgetError where none is so short."""
        automaton = self.automaton(request, ends)
        try:
            return automaton.matcher(max_tokens)  # of a stack, the core's bounds serve nearly always
        except TokenBudgetError:
            return start_matcher(automaton, max_tokens)

    def served(self, request: Request, ends: Sequence[int], max_tokens: int | None) -> Served:
        """The same for an engine's loop."""
        matcher = self.matcher(request, ends, max_tokens)
        return Served(matcher, self._vocabulary(tuple(sorted(set(ends)))).eos_token_ids)

    def _vocabulary(self, stops: tuple[int, ...]) -> Vocabulary:
        """Few sets of stop tokens are in use at once; each has a trie of its own."""
        with self._lock:
            found = self._vocabularies.pop(stops, None)
            if found is None:
                found = self._vocabulary_of(stops)
            self._vocabularies[stops] = found
            if len(self._vocabularies) > 4:
                self._vocabularies.popitem(last=False)
            return found


def kept_bytes() -> int:
    """How much an engine keeps of what it compiled: ``TOKENFST_CACHE_MB``, 512 by default."""
    return int(os.environ.get("TOKENFST_CACHE_MB", "512")) << 20


class Served:
    """A request's matcher in the loop of an engine, which must not end for one request.

    What the matcher cannot find out within its budget ends this request, and no other: its mask leaves all tokens but
    the end tokens, and the token that is chosen then is refused, which engines take for an error of the request.
    """

    __slots__ = ("_ends", "failure", "matcher")

    def __init__(self, matcher: AnyMatcher, ends: Sequence[int]) -> None:
        self.matcher, self._ends, self.failure = matcher, tuple(ends), ""

    def is_over(self) -> bool:
        """Whether nothing of the text is looked at any more: an end token was taken, or the last of its tokens."""
        return self.matcher.is_terminated() or self.matcher.max_tokens_left == 0

    def accept(self, token: int) -> bool:
        """Take a token; ``failure`` says why not, where it is not the constraint."""
        if self.failure:
            return False
        try:
            return self.matcher.accept_token(token)
        except BudgetExceeded as error:
            self.failure = str(error)
            return False

    def fill(self, bitmask: Any, row: int) -> None:
        """The mask of the next token into a row; where no token is left everything is allowed, as nothing is kept."""
        matcher = self.matcher
        if matcher.max_tokens_left == 0:
            bitmask[row] = -1
            return
        try:
            matcher.fill_next_token_bitmask(bitmask, row)
        except BudgetExceeded as error:
            self.failure = str(error)
            bitmask[row] = -1
            for end in self._ends:
                bitmask[row, end // 32] &= ~np.int32(np.uint32(1 << end % 32).view(np.int32))


_FEW = 2
"""Up to so many rows, each call by itself costs less than the lists that one call for all takes."""


def fill_rows(bitmask: Any, rows: Sequence[tuple[int, Served]]) -> None:
    """The masks of requests into rows of a bitmask, pairs of a row and a request.

    They are made in one native call, without the interpreter's lock; one or two rows each in a call of its own."""
    if len(rows) <= _FEW:
        for row, served in rows:
            served.fill(bitmask, row)
        return
    places, matchers = [], []
    for row, served in rows:
        if served.matcher.max_tokens_left == 0:
            bitmask[row] = -1
        else:
            places.append(row)
            matchers.append(served.matcher)
    try:
        if places == list(range(len(places))):
            fill_bitmasks(matchers, bitmask)
        else:
            found = allocate_token_bitmask(len(places), 32 * bitmask.shape[1])
            fill_bitmasks(matchers, found)
            bitmask[places] = found
    except BudgetExceeded:
        for row, served in rows:
            served.fill(bitmask, row)
