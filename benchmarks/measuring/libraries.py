"""The libraries that are compared, through one small interface, over one vocabulary.

Each is called in the fastest way that it offers in Python: masks are written into a bitmask that stays allocated.
Compiled grammars never come from a cache; only the leaderboard lets xgrammar keep parts of grammars (``cache_bytes``).
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

import tokenfst
from tokenfst import Vocabulary
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.notations.lark_syntax import lark_grammar

Encode = Callable[[str], list[int]]
"""Text to tokens, as the tokenizer does it. llguidance uses it for forced text; without it, the longest tokens."""


@dataclass(frozen=True, slots=True)
class Walk:
    """One decoding: ``fill()`` writes the next token's mask into ``bitmask``, ``accept(token)`` advances by a token.

    ``restart()`` goes back to the beginning and keeps what the library has computed for the constraint. ``error()``
    returns the message of a library that stops with an error but does not raise it. ``checks``: whether ``accept``
    returns False for a token that is not allowed, even if no mask was filled before.
    """

    fill: Callable[[], object]
    accept: Callable[[int], object]
    bitmask: Any
    restart: Callable[[], object]
    error: Callable[[], str] = lambda: ""
    checks: bool = True


class Library(Protocol):
    """A library: ``compile`` reads a pattern, and ``walk`` starts a decoding from its result."""

    name: str

    def compile(self, pattern: str) -> Any: ...
    def walk(self, compiled: Any) -> Walk: ...


class GrammarLibrary(Library, Protocol):
    """A library with grammars: ``compile_grammar`` gets a grammar in two notations and reads the one that it knows."""

    def compile_grammar(self, lark: str, ebnf: str) -> Any: ...


class SchemaLibrary(Library, Protocol):
    """A library with JSON Schema: ``compile_schema`` uses the settings that are nearest to the meaning of schemas."""

    def compile_schema(self, schema: dict[str, Any] | bool) -> Any: ...


class Tokenfst:
    name = "tokenfst"

    def __init__(self, vocabulary: Vocabulary, encode: Encode | None = None) -> None:
        self.vocabulary = vocabulary

    def compile(self, pattern: str) -> Any:
        return tokenfst.compile(tokenfst.regex(pattern), self.vocabulary)

    def compile_grammar(self, lark: str, ebnf: str) -> Any:
        return tokenfst.compile(lark_grammar(lark), self.vocabulary)

    def compile_schema(self, schema: dict[str, Any] | bool) -> Any:
        return tokenfst.compile(json_schema(schema), self.vocabulary)

    def walk(self, compiled: Any) -> Walk:
        matcher = compiled.matcher()
        bitmask = tokenfst.allocate_token_bitmask(1, len(self.vocabulary))
        fill = partial(matcher.fill_next_token_bitmask, bitmask, 0)
        return Walk(fill, matcher.accept_token, bitmask, matcher.reset)


class Xgrammar:
    """``cache_bytes``: the memory in which its compiler may keep parts of earlier grammars; 0: it keeps nothing."""

    name = "xgrammar"

    def __init__(self, vocabulary: Vocabulary, encode: Encode | None = None, *, cache_bytes: int = 0) -> None:
        import xgrammar

        self._xgrammar = xgrammar
        self._size = len(vocabulary)
        info = xgrammar.TokenizerInfo(
            list(vocabulary.tokens),
            xgrammar.VocabType.RAW,
            vocab_size=self._size,
            stop_token_ids=list(vocabulary.eos_token_ids),
        )
        self._compiler = xgrammar.GrammarCompiler(
            info, max_threads=1, cache_enabled=cache_bytes > 0, cache_limit_bytes=cache_bytes or -1
        )

    def compile(self, pattern: str) -> Any:
        return self._compiler.compile_regex(pattern)

    def compile_grammar(self, lark: str, ebnf: str) -> Any:
        return self._compiler.compile_grammar(ebnf)

    def compile_schema(self, schema: dict[str, Any] | bool) -> Any:
        return self._compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)

    def compile_structural_tag(self, spec: dict[str, Any]) -> Any:
        return self._compiler.compile_structural_tag(json.dumps(spec))

    def walk(self, compiled: Any) -> Walk:
        matcher = self._xgrammar.GrammarMatcher(compiled)
        bitmask = self._xgrammar.allocate_token_bitmask(1, self._size)
        fill = partial(matcher.fill_next_token_bitmask, bitmask, 0)
        return Walk(fill, matcher.accept_token, bitmask.numpy(), matcher.reset)


class Llguidance:
    name = "llguidance"

    def __init__(self, vocabulary: Vocabulary, encode: Encode | None = None) -> None:
        import llguidance

        class Tokenizer:
            def __init__(self) -> None:
                self.eos_token_id = vocabulary.eos_token_ids[0]
                self.bos_token_id = None
                texts = enumerate(vocabulary.tokens)
                self.tokens = [text or f"<|special_{i}|>".encode() for i, text in texts]
                self.special_token_ids = sorted(vocabulary.special_token_ids)

            def __call__(self, text: str | bytes) -> list[int]:
                if encode is not None:
                    return encode(text if isinstance(text, str) else text.decode(errors="replace"))
                return list(vocabulary.encode_greedy(text.encode() if isinstance(text, str) else text))

        self._llguidance = llguidance
        self._size = len(vocabulary)
        self._tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()), n_vocab=self._size)

    def compile(self, pattern: str) -> Any:
        return self._llguidance.LLMatcher.grammar_from_regex(pattern)

    def compile_grammar(self, lark: str, ebnf: str) -> Any:
        return self._llguidance.LLMatcher.grammar_from_lark(lark)

    def compile_schema(self, schema: dict[str, Any] | bool) -> Any:
        return json.dumps({"grammars": [{"json_schema": schema}]})

    def walk(self, compiled: Any) -> Walk:
        matcher = self._llguidance.LLMatcher(self._tokenizer, compiled)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        bitmask = np.zeros((1, -(-self._size // 32)), np.int32)
        fill = partial(matcher.unsafe_compute_mask_ptr, bitmask.ctypes.data, bitmask.nbytes)
        return Walk(_holding(bitmask, fill), matcher.consume_token, bitmask, matcher.reset, matcher.get_error)


class Outlines:
    name = "outlines-core"

    def __init__(self, vocabulary: Vocabulary, encode: Encode | None = None) -> None:
        import outlines_core

        ids: dict[bytes, list[int]] = {}
        for token, text in enumerate(vocabulary.tokens):
            if text:
                ids.setdefault(text, []).append(token)
        self._outlines = outlines_core
        self._size, self._ends = len(vocabulary), vocabulary.eos_token_ids
        self._vocabulary = outlines_core.Vocabulary(vocabulary.eos_token_ids[0], ids)

    def compile(self, pattern: str) -> Any:
        return self._outlines.Index(pattern, self._vocabulary)

    def compile_schema(self, schema: dict[str, Any] | bool) -> Any:
        from outlines_core.json_schema import build_regex_from_schema

        return self.compile(build_regex_from_schema(json.dumps(schema)))

    def walk(self, compiled: Any) -> Walk:
        guide = self._outlines.Guide(compiled)
        bitmask = np.zeros((1, -(-self._size // 32)), np.int32)
        fill = partial(guide.write_mask_into, bitmask.ctypes.data, bitmask.size, 4)
        ends = self._ends

        def accept(token: int) -> bool:
            if token not in ends:  # masks have the end token, but no step takes it
                guide.advance(token, False)
            return True

        return Walk(_holding(bitmask, fill), accept, bitmask, guide.reset, checks=False)


class Glrmask:
    """Its vocabulary has no end token; we allow the end wherever it accepts the text."""

    name = "glrmask"

    def __init__(self, vocabulary: Vocabulary, encode: Encode | None = None) -> None:
        import glrmask

        self._glrmask = glrmask
        self._ends = vocabulary.eos_token_ids
        self._size = len(vocabulary)
        tokens = {token: text for token, text in enumerate(vocabulary.tokens) if text}
        self._vocabulary = glrmask.Vocab.from_id_to_bytes(tokens)

    def compile(self, pattern: str) -> Any:
        return self.compile_grammar(f"start: /{pattern.replace('/', '[/]')}/", "")

    def compile_grammar(self, lark: str, ebnf: str) -> Any:
        return self._glrmask.Grammar.from_lark(lark).compile(self._vocabulary)

    def compile_schema(self, schema: dict[str, Any] | bool) -> Any:
        return self._glrmask.Grammar.from_json_schema(schema).compile(self._vocabulary)

    def walk(self, compiled: Any) -> Walk:
        state = compiled.start()
        bitmask = np.zeros((1, max(-(-self._size // 32), compiled.mask_len())), np.int32)
        words = bitmask[0].view(np.uint32)

        def fill() -> None:
            state.fill_mask(bitmask[0])
            if state.is_accepting():
                for end in self._ends:
                    words[end >> 5] |= np.uint32(1 << (end & 31))

        def accept(token: int) -> bool:
            return bool(state.is_accepting() if token in self._ends else state.commit_token(token))

        def restart() -> None:
            nonlocal state
            state = compiled.start()

        return Walk(fill, accept, bitmask, restart)


class LmFormatEnforcer:
    """It reads characters, not bytes, so it leaves out tokens that are not whole characters. Its sets of tokens are
    bitmasks of torch, which it unites faster than lists. ``restart`` forgets the texts so far and keeps what is known
    about the states of the constraint.
    """

    name = "lm-format-enforcer"

    def __init__(self, vocabulary: Vocabulary, encode: Encode | None = None) -> None:
        import logging

        from lmformatenforcer import TokenEnforcer, tokenenforcer

        logging.disable(
            logging.ERROR
        )  # it logs each fault at length, and goes on with a mask that ends the text
        regular = []
        for token, text in enumerate(vocabulary.tokens):
            try:
                regular.append((token, text.decode(), False))
            except UnicodeDecodeError:
                continue
        regular = [each for each in regular if each[1]]
        self._size = len(vocabulary)
        self._ends = vocabulary.eos_token_ids
        self._enforcer = TokenEnforcer
        self._tokens = tokenenforcer.TokenEnforcerTokenizerData(
            regular,
            lambda ids: vocabulary.decode(ids).decode(errors="replace"),
            list(self._ends),
            True,
            self._size,
        )

    def compile(self, pattern: str) -> Any:
        from lmformatenforcer import RegexParser

        return lambda: RegexParser(pattern)

    def compile_schema(self, schema: dict[str, Any] | bool) -> Any:
        from lmformatenforcer import JsonSchemaParser

        return lambda: JsonSchemaParser(schema)

    def walk(self, compiled: Any) -> Walk:
        bitmask = np.zeros((1, -(-self._size // 32)), np.int32)
        enforcer = self._enforcer(self._tokens, compiled())
        tokens: list[int] = []

        def fill() -> None:
            bitmask[0] = enforcer.get_allowed_tokens(tokens).allowed_tokens.numpy()

        def restart() -> None:
            enforcer.prefix_states.clear()
            tokens.clear()

        def accept(token: int) -> bool:
            tokens.append(token)
            return True

        return Walk(fill, accept, bitmask, restart, checks=False)


def _holding(bitmask: Any, fill: partial[Any]) -> partial[Any]:
    """``fill``, made to keep the bitmask alive, of which it has only the address."""
    fill.bitmask = bitmask  # type: ignore[attr-defined]
    return fill


PEERS: dict[str, type[Any]] = {
    library.name: library for library in (Xgrammar, Llguidance, Outlines, Glrmask, LmFormatEnforcer)
}
"""The other libraries by the names of their distributions."""
LIBRARIES: dict[str, type[Any]] = {Tokenfst.name: Tokenfst, **PEERS}


class World:
    """The vocabulary, and the libraries over it. Each library is made at its first use; ``without`` leaves some out."""

    def __init__(self, vocabulary: Vocabulary, without: Container[str] = ()) -> None:
        self.vocabulary = vocabulary
        self._without = without
        self.ours = Tokenfst(vocabulary)
        self._made: dict[str, Library] = {}

    def installed(self, *names: str) -> list[str]:
        """The names of those peers that are installed and not left out."""
        return [name for name in names if version(name) is not None and name not in self._without]

    def peers(self, *names: str) -> Iterator[Library]:
        """Those peers that are installed and not left out. Each is loaded at its first use."""
        for name in self.installed(*names):
            if name not in self._made:
                self._made[name] = PEERS[name](self.vocabulary)
            yield self._made[name]


def version(distribution: str) -> str | None:
    """The installed version of a distribution; None if there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
