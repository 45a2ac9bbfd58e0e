"""xgrammar's compiler: it compiles grammars for a tokenizer's tokens."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenfst.common.arguments import shown
from tokenfst.compat.xgrammar.exception import DeserializeFormatError, Unsupported, raising
from tokenfst.compat.xgrammar.grammar import Grammar
from tokenfst.compat.xgrammar.tokenizer_info import VERSION, TokenizerInfo, written
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class CompiledGrammar:
    """A constraint compiled for a tokenizer's tokens. Send it pickled, or by ``serialize_json``."""

    def __init__(self, grammar: Grammar, tokenizer_info: TokenizerInfo) -> None:
        self._grammar: Grammar | None = grammar
        self.tokenizer_info = tokenizer_info
        self._automata: dict[tuple[int, ...], TokenAutomaton] = {}
        self.automaton()

    @property
    def grammar(self) -> Grammar:
        """The grammar that was compiled."""
        if self._grammar is None:
            raise Unsupported("CompiledGrammar.grammar: what serialize_json wrote has no grammar in it")
        return self._grammar

    def automaton(self, stops: Sequence[int] | None = None) -> TokenAutomaton:
        """The token automaton. If ``stops`` are given, these tokens end a text."""
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
        """The artifact (docs/serving/format.md) as JSON, without the tokenizer's tokens."""
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
        """Read the text of ``serialize_json``, for the same tokenizer. Its matchers take no other stop tokens."""
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
        """The memory in use so far, in bytes."""
        return sum(each.memory().automaton for each in self._automata.values())


class GrammarCompiler:
    """Compiles grammars for a tokenizer. Masks are computed when they are first used, so ``max_threads`` has no
    effect.
    """

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
        except TypeError:  # a Python type, for which there is no text as a key
            return self._of(make(source, **options))
        found = self._kept.get(key) if self._enabled else None
        if found is None:
            found = self._of(make(source, **options))
            if self._enabled:
                self._kept[key] = found
                self._trim()
        return found

    def _trim(self) -> None:
        """Drop the oldest entries until the rest is within the limit."""
        while len(self._kept) > 1 and 0 <= self.cache_limit_bytes < self.get_cache_size_bytes():
            self._kept.pop(next(iter(self._kept)))

    @raising
    def _of(self, grammar: Grammar) -> CompiledGrammar:
        return CompiledGrammar(grammar, self._info)

    def compile_json_schema(self, schema: Any, **options: Any) -> CompiledGrammar:
        """Compile ``Grammar.from_json_schema``."""
        return self._compiled("json_schema", schema, options, Grammar.from_json_schema)

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Compile the grammar of any JSON value."""
        return self._compiled("json", None, {}, lambda _: Grammar.builtin_json_grammar())

    def compile_regex(self, regex: str) -> CompiledGrammar:
        """Compile ``Grammar.from_regex``."""
        return self._compiled("regex", regex, {}, Grammar.from_regex)

    def compile_lark(
        self, lark_string: str, *, named_grammars: Mapping[str, Grammar | str] | None = None
    ) -> CompiledGrammar:
        """Compile ``Grammar.from_lark``."""
        options = {} if named_grammars is None else {"named_grammars": dict(named_grammars)}
        return self._compiled("lark", lark_string, options, Grammar.from_lark)

    def compile_structural_tag(self, tag: Any, triggers: Sequence[str] | None = None) -> CompiledGrammar:
        """Compile ``Grammar.from_structural_tag``."""
        return self._of(Grammar.from_structural_tag(tag, triggers))

    def compile_grammar(self, grammar: str | Grammar, *, root_rule_name: str = "root") -> CompiledGrammar:
        """Compile a grammar in xgrammar's notation, or a ``Grammar``."""
        if isinstance(grammar, Grammar):
            return self._of(grammar)
        return self._compiled("ebnf", grammar, {"root_rule_name": root_rule_name}, Grammar.from_ebnf)

    def clear_cache(self) -> None:
        """Drop all compiled grammars."""
        self._kept.clear()

    def get_cache_size_bytes(self) -> int:
        """The memory of the compiled grammars in the cache, in bytes."""
        return sum(each.memory_size_bytes for each in self._kept.values())
