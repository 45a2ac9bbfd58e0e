"""What xgrammar compiles: grammars over a tokenizer's tokens."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenfst.arguments import shown
from tokenfst.compat.xgrammar.exception import DeserializeFormatError, Unsupported, raising
from tokenfst.compat.xgrammar.grammar import Grammar
from tokenfst.compat.xgrammar.tokenizer_info import VERSION, TokenizerInfo, written
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class CompiledGrammar:
    """A constraint over a tokenizer's tokens. It travels pickled, or by ``serialize_json``."""

    def __init__(self, grammar: Grammar, tokenizer_info: TokenizerInfo) -> None:
        self._grammar: Grammar | None = grammar
        self.tokenizer_info = tokenizer_info
        self._automata: dict[tuple[int, ...], TokenAutomaton] = {}
        self.automaton()

    @property
    def grammar(self) -> Grammar:
        """What was compiled."""
        if self._grammar is None:
            raise Unsupported("CompiledGrammar.grammar: what serialize_json wrote has no grammar in it")
        return self._grammar

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
            found = self._automata[ends] = compile(self.grammar.over(vocabulary), vocabulary)
        return found

    def serialize_json(self) -> str:
        """The artifact (docs/serving/format.md) in JSON, without the tokenizer's tokens."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "compiled.tokenfst")
            self.automaton().save(path, expand=False)
            artifact = base64.b64encode(path.read_bytes()).decode()
        return json.dumps(
            {
                "__VERSION__": VERSION,
                "tokenizer_metadata": self.tokenizer_info.dump_metadata(),
                "artifact": artifact,
            }
        )

    @staticmethod
    def deserialize_json(json_str: str, tokenizer_info: TokenizerInfo) -> CompiledGrammar:
        """What ``serialize_json`` wrote, over the same tokenizer. Other stop tokens cannot be given to its matchers."""
        given = written(json_str, "tokenizer_metadata", "artifact")
        if given["tokenizer_metadata"] != tokenizer_info.dump_metadata():
            raise DeserializeFormatError("this was compiled for another tokenizer: its metadata differs")
        try:
            data = base64.b64decode(given["artifact"], validate=True)
        except (ValueError, TypeError) as error:
            raise DeserializeFormatError(f"artifact is not base64: {error}") from None
        made = CompiledGrammar.__new__(CompiledGrammar)
        made._grammar, made.tokenizer_info = None, tokenizer_info  # just made
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "compiled.tokenfst")
            path.write_bytes(data)
            load = raising(TokenAutomaton.load, DeserializeFormatError)
            automaton = load(path, tokenizer_info.vocabulary)
        made._automata = {tokenizer_info.vocabulary.eos_token_ids: automaton}  # just made
        return made

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

    def compile_lark(
        self, lark_string: str, *, named_grammars: Mapping[str, Grammar | str] | None = None
    ) -> CompiledGrammar:
        """As ``Grammar.from_lark``."""
        options = {} if named_grammars is None else {"named_grammars": dict(named_grammars)}
        return self._compiled("lark", lark_string, options, Grammar.from_lark)

    def compile_structural_tag(self, tag: Any, triggers: Sequence[str] | None = None) -> CompiledGrammar:
        """As ``Grammar.from_structural_tag``."""
        return self._of(Grammar.from_structural_tag(tag, triggers))

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
