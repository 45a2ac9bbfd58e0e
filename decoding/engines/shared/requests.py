"""Constraints of server requests: the kinds that OpenAI-compatible servers support.

A request is validated by translating it, so a front end that accepts it has checked it completely, with the library's
own messages, and the engine that reads it again gets the same constraint. ``CompiledRequests`` caches compiled
automata, because requests repeat their schemas. A program that runs an engine in its own process can also have requests
that name automata of this process (``named_automata``), for example artifacts of a store.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

import tokenfst._native as _native
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.json_schema import json_object, json_schema
from tokenfst.automata.languages.language import Language
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.automata.pieces.taxonomy import choices
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.structural_tags.structural_tag import structural_tag
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ConstraintError, MaskBufferError, TokenfstError, TokenLimitError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_log = logging.getLogger(__name__)

Kind: TypeAlias = Literal[
    "json", "json_object", "regex", "choice", "grammar", "lark", "structural_tag", "named"
]


@dataclass(frozen=True, slots=True)
class Request:
    """One constraint: its kind and its text. ``whitespace`` and ``additional_properties`` are those of
    ``json_schema``. The text of the kind ``named`` is the name that ``named_automata`` gave to an automaton.
    """

    kind: Kind
    text: str = ""
    whitespace: str = "flexible"
    additional_properties: Literal["schema", "forbid"] = "schema"

    def constraint(self, vocabulary: Vocabulary | None = None) -> Language | Grammar:
        """The constraint of the text; ``vocabulary`` defines the special tokens of a structural tag.

        Raises ConstraintError (a subclass that names the position) and BudgetExceeded.
        """
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
        if self.kind == "named":
            raise ConstraintError(f"no automaton of this process has the name {self.text[:60]!r}")
        return structural_tag(self.text, vocabulary=vocabulary)


def _labels(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConstraintError(f"choice must be a list of texts: {error}") from None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ConstraintError(f"choice must be a list of texts, not {text[:60]}")
    return list(dict.fromkeys(found))


NAMED = "tokenfst automaton "
"""The beginning of the names that ``named_automata`` gives. No grammar begins with it."""
_named: dict[str, TokenAutomaton] = {}
_numbers = itertools.count(1)


@contextlib.contextmanager
def named_automata(automata: Sequence[TokenAutomaton]) -> Iterator[list[str]]:
    """Names for automata of this process, which requests with a grammar use instead of its text.

    The names are valid within the ``with`` statement, and in this process only: the engine's scheduler must run in it.
    """
    names = [f"{NAMED}{next(_numbers)}" for _ in automata]
    _named.update(zip(names, automata, strict=True))
    try:
        yield names
    finally:
        for name in names:
            del _named[name]


class CompiledRequests:
    """A cache of the automata of requests, over one model's tokens. Shared by threads.

    ``vocabulary_of``: returns the vocabulary with the given end tokens; requests may have their own stop tokens.
    ``bytes``: the limit of the cached automata's memory; the least recently used ones are removed.
    """

    def __init__(self, vocabulary_of: Callable[[Sequence[int]], Vocabulary], bytes: int = 512 << 20) -> None:
        self._vocabulary_of, self._bytes = vocabulary_of, bytes
        self._vocabularies: OrderedDict[tuple[int, ...], Vocabulary] = OrderedDict()
        self._kept: OrderedDict[Hashable, TokenAutomaton] = OrderedDict()
        self._lock = threading.Lock()

    def automaton(self, request: Request, ends: Sequence[int]) -> TokenAutomaton:
        """The request's automaton, compiled if necessary. Its texts end with any of ``ends``; a named automaton keeps
        its own end tokens. Raises the errors of ``Request.constraint`` and ``compile``.
        """
        if request.kind == "named" and request.text in _named:
            return _named[request.text]
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
        """The automaton if it is cached, else None. The call counts as a use of the automaton."""
        key = request, tuple(sorted(set(ends)))
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def matcher(self, request: Request, ends: Sequence[int], max_tokens: int | None) -> AnyMatcher:
        """A matcher whose text is complete within ``max_tokens``. Raises TokenLimitError if no text is short
        enough.
        """
        return _started(self.automaton(request, ends), max_tokens)

    def served(self, request: Request, ends: Sequence[int], max_tokens: int | None) -> RequestMatcher:
        """The matcher, wrapped for an engine's loop."""
        automaton = self.automaton(request, ends)
        return RequestMatcher(_started(automaton, max_tokens), automaton.vocabulary.eos_token_ids)

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


def _started(automaton: TokenAutomaton, max_tokens: int | None) -> AnyMatcher:
    try:
        return automaton.matcher(max_tokens)  # of a stack, the core's bounds serve nearly always
    except TokenLimitError:
        return start_matcher(automaton, max_tokens)


def kept_bytes() -> int:
    """The size of an engine's cache of compiled automata: ``TOKENFST_CACHE_MB``, 512 by default."""
    return int(os.environ.get("TOKENFST_CACHE_MB", "512")) << 20


class RequestMatcher:
    """The matcher of one request in the loop of an engine. The loop must survive the failure of a single request.

    If the matcher raises an error, for example because it exceeds its budget, only this request fails: its mask allows
    all tokens but the end tokens, and the chosen token is then rejected, which engines treat as an error of the
    request. The reason is logged. Only MaskBufferError is raised, because the buffer belongs to all requests.

    ``row_source`` is the object from which ``fill_step`` takes the request's mask: the native matcher; this object, if
    the matcher is written in Python; None after a failure.
    """

    __slots__ = ("_ends", "_native", "failure", "matcher", "row_source")

    def __init__(self, matcher: AnyMatcher, ends: Sequence[int]) -> None:
        self.matcher, self._ends, self.failure = matcher, tuple(ends), ""
        self._native = matcher if isinstance(matcher, _native.Matcher) else None
        self.row_source: _native.Matcher | RequestMatcher | None = self._native or self

    def is_over(self) -> bool:
        """Whether the text has ended: by an end token, or by the last of its tokens."""
        if self._native is not None:
            return self._native.is_over()
        return self.matcher.is_terminated() or self.matcher.max_tokens_left == 0

    def accept(self, token: int) -> bool:
        """Accept a token; False if it is rejected. If the matcher itself fails, ``failure`` has the reason."""
        if self.failure:
            return False
        try:
            return self.matcher.accept_token(token)
        except Exception as error:  # whatever it is, the other requests go on
            self._fail(error)
            return False

    def accept_until_over(self, tokens: Sequence[int]) -> bool:
        """Accept tokens up to the end of the text and ignore those after it; False if a token is rejected, as in
        ``accept``.
        """
        if self.failure:
            return False
        if self._native is None:
            return all(self.is_over() or self.accept(token) for token in tokens)
        try:
            return self._native.accept_until_over(tokens)
        except Exception as error:
            self._fail(error)
            return False

    def fill(self, bitmask: Any, row: int) -> None:
        """Write the mask of the next token into a row. After the end of the text everything is allowed, since the token
        is discarded.
        """
        try:
            if self.failure or self.is_over():
                bitmask[row] = -1
                return
            self.matcher.fill_next_token_bitmask(bitmask, row)
        except MaskBufferError:
            raise
        except Exception as error:
            self._fail(error)
            bitmask[row] = -1
            for end in self._ends:
                bitmask[row, end // 32] &= ~np.int32(np.uint32(1 << end % 32).view(np.int32))

    def validate(self, tokens: Sequence[int]) -> int:
        """How many of these draft tokens would be accepted.

        Returns 0 if the matcher raises: drafts are guesses, and ``accept`` reports the error for the chosen tokens.
        """
        if self.failure:
            return 0
        try:
            return 0 if self.is_over() else self.matcher.validate_tokens(tokens)
        except Exception:
            return 0

    def _fail(self, error: Exception) -> None:
        self.failure, self.row_source = str(error) or repr(error), None
        trace = None if isinstance(error, TokenfstError) else error
        _log.error("a constraint failed, and its request ends: %s", self.failure, exc_info=trace)


def fill_step(
    bitmask: Any, served: Sequence[RequestMatcher | None], rows: Sequence[int] | None = None
) -> None:
    """Write the masks of an engine's step into ``bitmask``: the mask of ``served[i]`` into row ``rows[i]``, by default
    into row i.

    A row allows every token if its text is over, if its request has failed before, or if it has no request (None). All
    masks are computed in one native call, which gives up the GIL if it takes long. If this call raises, the masks are
    computed one by one, and only the request whose matcher raises fails. Raises MaskBufferError for a wrong buffer.
    """
    sources = [None if each is None else each.row_source for each in served]
    try:
        _native.fill_step(sources, bitmask, rows)
    except MaskBufferError:
        raise
    except Exception:
        if rows is not None and len(rows) != len(served):
            raise
        for place, each in enumerate(served):
            if each is not None:
                each.fill(bitmask, place if rows is None else rows[place])
