"""What xgrammar compiles: tokenizers, grammars and the compiler."""

from __future__ import annotations

import enum
import functools
import json
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from tokenfst.arguments import shown
from tokenfst.automata.expressions.expression import concat, union
from tokenfst.automata.grammars.assembly import Assembly
from tokenfst.automata.json_schema.door import json_schema, json_value
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.automata.regex.translate import regex
from tokenfst.decoding.compiling.door import compile
from tokenfst.decoding.engines.requests import Request
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ConstraintError, MissingDependencyError, TokenfstError
from tokenfst.tokenizers.vocabulary.tables import pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_P = ParamSpec("_P")
_T = TypeVar("_T")
_STOPS = (
    "</s>",
    "<eos>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|im_end|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
)


class GrammarError(ConstraintError, RuntimeError):
    """A grammar cannot be made or compiled; the message is the library's."""


class Unsupported(GrammarError):
    """xgrammar has this, and tokenfst has not."""


def raising(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Errors of tokenfst as RuntimeErrors, which xgrammar raises."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except (GrammarError, MissingDependencyError):
            raise
        except TokenfstError as error:
            raise GrammarError(str(error)) from error

    return call


class VocabType(enum.Enum):
    """How the strings of a vocabulary say bytes."""

    RAW = 0
    BYTE_FALLBACK = 1
    BYTE_LEVEL = 2


class TokenizerInfo:
    """What a tokenizer's tokens spell."""

    def __init__(
        self,
        encoded_vocab: Sequence[str] | Sequence[bytes],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: int | None = None,
        stop_token_ids: Sequence[int] | int | None = None,
        add_prefix_space: bool = False,
    ) -> None:
        if add_prefix_space:
            raise Unsupported("add_prefix_space: make it by TokenizerInfo.from_huggingface")
        tokens = [_spelled(token, vocab_type) for token in encoded_vocab]
        if stop_token_ids is None:
            stop_token_ids = [
                place for place, each in enumerate(tokens) if each.decode("utf-8", "replace") in _STOPS
            ]
        if isinstance(stop_token_ids, int):
            stop_token_ids = [stop_token_ids]
        self.vocab_type, self.add_prefix_space = vocab_type, add_prefix_space
        self._vocabulary = _vocabulary(pad_tokens(tokens, vocab_size), stop_token_ids)

    @classmethod
    def from_vocabulary(cls, vocabulary: Vocabulary) -> TokenizerInfo:
        """Of a vocabulary of tokenfst's own."""
        made = cls.__new__(cls)
        made.vocab_type, made.add_prefix_space = VocabType.RAW, False
        made._vocabulary = vocabulary  # just made
        return made

    @classmethod
    @raising
    def from_huggingface(
        cls,
        tokenizer: Any,
        *,
        vocab_size: int | None = None,
        stop_token_ids: Sequence[int] | int | None = None,
    ) -> TokenizerInfo:
        """Of a fast tokenizer of Hugging Face."""
        return cls.from_vocabulary(
            Vocabulary.from_huggingface(tokenizer, size=vocab_size, eos_token_id=stop_token_ids)
        )

    @property
    def vocabulary(self) -> Vocabulary:
        """As tokenfst has it."""
        return self._vocabulary

    @property
    def vocab_size(self) -> int:
        """The width of the model's scores."""
        return len(self._vocabulary)

    @property
    def decoded_vocab(self) -> list[bytes]:
        """The bytes of each token; of special tokens b"" (xgrammar has their names)."""
        return list(self._vocabulary.tokens)

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end a text."""
        return list(self._vocabulary.eos_token_ids)

    @property
    def special_token_ids(self) -> list[int]:
        """Tokens that spell nothing."""
        return sorted(self._vocabulary.special_token_ids)


@raising
def _vocabulary(tokens: Sequence[bytes], stops: Sequence[int]) -> Vocabulary:
    return Vocabulary(tokens, list(stops))


def _spelled(token: str | bytes, kind: VocabType) -> bytes:
    if isinstance(token, bytes):
        return token
    if kind is VocabType.BYTE_LEVEL:
        from tokenfst.tokenizers.adapters.decoder_chain import decoded_forms

        return decoded_forms([token], {"type": "ByteLevel"})[0][0]
    if kind is VocabType.BYTE_FALLBACK:
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            return bytes([int(token[3:5], 16)])
        return token.replace("▁", " ").encode()
    return token.encode()


class Grammar:
    """A constraint: a language or grammar of tokenfst."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint

    def __str__(self) -> str:
        return self.constraint.source

    @staticmethod
    @raising
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """Of a grammar in xgrammar's notation."""
        return Grammar(ebnf(ebnf_string, root_rule_name))

    @staticmethod
    @raising
    def from_json_schema(
        schema: Any,
        *,
        any_whitespace: bool = True,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        strict_mode: bool = True,
        max_whitespace_cnt: int | None = None,
        print_converted_ebnf: bool = False,
        any_order: bool = False,
    ) -> Grammar:
        """Of a JSON Schema: a dict, JSON text or a Python type. ``strict_mode``: no members and items that the schema
        does not name. ``any_order`` keeps required members and never repeats one, which xgrammar does not check."""
        layout: dict[str, Any]
        if any_whitespace:
            most = "" if max_whitespace_cnt is None else max_whitespace_cnt
            layout = {"whitespace": rf"[ \n\t\r]{{0,{most}}}"}
        else:
            layout = {"separators": separators or ((", " if indent is None else ","), ": "), "indent": indent}
        return Grammar(
            json_schema(
                schema,
                **layout,
                additional_properties="forbid" if strict_mode else "schema",
                property_order="any" if any_order else "schema",
            )
        )

    @staticmethod
    @raising
    def from_regex(regex_string: str, *, print_converted_ebnf: bool = False) -> Grammar:
        """Of a regular expression of Python's ``re``, matched in full."""
        return Grammar(regex(regex_string))

    @staticmethod
    @raising
    def from_lark(lark_string: str, **options: Any) -> Grammar:
        """Of a grammar in Lark's notation."""
        if options:
            raise Unsupported(f"from_lark: {', '.join(options)}")
        return Grammar(lark_grammar(lark_string))

    @staticmethod
    @raising
    def from_structural_tag(tag: Any, *more: Any) -> Grammar:
        """Of a structural tag: JSON text, a dict, or an object with ``model_dump_json``."""
        if more:
            raise Unsupported("from_structural_tag(tags, triggers) is deprecated: give one structural tag")
        if hasattr(tag, "model_dump_json"):
            tag = tag.model_dump_json()
        text = tag if isinstance(tag, str) else json.dumps(tag)
        return Grammar(Request("structural_tag", text).constraint())

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """Any JSON value."""
        return Grammar(json_value(whitespace=r"[ \n\t\r]*"))

    @staticmethod
    def concat(*grammars: Grammar) -> Grammar:
        """A text of each, one after another."""
        return _assembled(grammars, concat, "concat")

    @staticmethod
    def union(*grammars: Grammar) -> Grammar:
        """A text of any of them."""
        return _assembled(grammars, union, "union")


@raising
def _assembled(grammars: Sequence[Grammar], operation: Any, name: str) -> Grammar:
    if not grammars:
        raise GrammarError(f"Grammar.{name} needs at least one grammar")
    parts = Assembly()
    made = operation(*(parts.expr(each.constraint) for each in grammars))
    return Grammar(parts.finish(made, f"{name} of {len(grammars)} grammars"))


class CompiledGrammar:
    """A constraint over a tokenizer's tokens. Pickled, it travels; xgrammar's JSON form is not written."""

    def __init__(self, grammar: Grammar, tokenizer_info: TokenizerInfo) -> None:
        self.grammar, self.tokenizer_info = grammar, tokenizer_info
        self._automata: dict[tuple[int, ...], TokenAutomaton] = {}
        self.automaton()

    def automaton(self, stops: Sequence[int] | None = None) -> TokenAutomaton:
        """The token automaton, texts ended by these tokens where some are given."""
        known = self.tokenizer_info.vocabulary
        ends = known.eos_token_ids if stops is None else tuple(sorted(set(stops)))
        found = self._automata.get(ends)
        if found is None:
            vocabulary = known
            if ends != known.eos_token_ids:
                vocabulary = Vocabulary(
                    known.tokens,
                    ends,
                    dict(known.special_tokens),
                    initial_tokens=known.initial_tokens,
                    start_absorbs=known.start_absorbs,
                )
            found = self._automata[ends] = compile(self.grammar.constraint, vocabulary)
        return found

    @property
    def memory_size_bytes(self) -> int:
        """Bytes in memory, so far."""
        return sum(each.memory().automaton for each in self._automata.values())


class GrammarCompiler:
    """Compiles grammars for a tokenizer. Masks are made when they are asked for, so ``max_threads`` means nothing."""

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        max_threads: int = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = -1,
    ) -> None:
        if not isinstance(tokenizer_info, TokenizerInfo):
            raise ValueError(
                f"GrammarCompiler: tokenizer_info must be a TokenizerInfo, not {shown(tokenizer_info)}"
            )
        self._info, self._enabled, self.cache_limit_bytes = tokenizer_info, cache_enabled, cache_limit_bytes
        self._kept: dict[str, CompiledGrammar] = {}

    def _compiled(
        self, kind: str, source: Any, options: dict[str, Any], make: Callable[..., Grammar]
    ) -> CompiledGrammar:
        try:
            key = json.dumps([kind, source, options], sort_keys=False)
        except TypeError:  # a type, which is not known by a text
            return self._of(make(source, **options))
        found = self._kept.get(key) if self._enabled else None
        if found is None:
            found = self._of(make(source, **options))
            if self._enabled:
                self._kept[key] = found
                self._trim()
        return found

    def _trim(self) -> None:
        """Forget the oldest until the rest is within the limit."""
        while len(self._kept) > 1 and 0 <= self.cache_limit_bytes < self.get_cache_size_bytes():
            self._kept.pop(next(iter(self._kept)))

    @raising
    def _of(self, grammar: Grammar) -> CompiledGrammar:
        return CompiledGrammar(grammar, self._info)

    def compile_json_schema(self, schema: Any, **options: Any) -> CompiledGrammar:
        """As ``Grammar.from_json_schema``."""
        return self._compiled("json_schema", schema, options, Grammar.from_json_schema)

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Any JSON value."""
        return self._compiled("json", None, {}, lambda _: Grammar.builtin_json_grammar())

    def compile_regex(self, regex: str) -> CompiledGrammar:
        """As ``Grammar.from_regex``."""
        return self._compiled("regex", regex, {}, Grammar.from_regex)

    def compile_lark(self, lark_string: str, **options: Any) -> CompiledGrammar:
        """As ``Grammar.from_lark``."""
        return self._compiled("lark", lark_string, options, Grammar.from_lark)

    def compile_structural_tag(self, *tag: Any) -> CompiledGrammar:
        """As ``Grammar.from_structural_tag``."""
        return self._of(Grammar.from_structural_tag(*tag))

    def compile_grammar(self, grammar: str | Grammar, *, root_rule_name: str = "root") -> CompiledGrammar:
        """Of a grammar in xgrammar's notation, or one that was made already."""
        if isinstance(grammar, Grammar):
            return self._of(grammar)
        return self._compiled("ebnf", grammar, {"root_rule_name": root_rule_name}, Grammar.from_ebnf)

    def clear_cache(self) -> None:
        """Forget what was compiled."""
        self._kept.clear()

    def get_cache_size_bytes(self) -> int:
        """Bytes of what was compiled and kept."""
        return sum(each.memory_size_bytes for each in self._kept.values())
