"""llguidance's classes and functions over tokenfst: ``import tokenfst.compat.llguidance as llguidance``.

Written from the documentation of llguidance 1.9.1 and compared with it (tests/compat, docs/compat.md). A matcher never
raises for a grammar or a token: it goes into an error state and stays there, as there. Helpers of
``llguidance.torch``, ``llguidance.numpy`` and ``llguidance.hf`` are here, too, by the same names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tokenfst._native import Matcher
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.door import json_schema
from tokenfst.automata.languages.language import Language
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.automata.pieces.taxonomy import choices
from tokenfst.automata.regex.translate import regex
from tokenfst.decoding.compiling.door import compile
from tokenfst.decoding.masks import bitmask as masks
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from tokenfst.errors import ConstraintError, TokenfstError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

__all__ = [
    "LLExecutor",
    "LLMatcher",
    "LLTokenizer",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "consume_token_par",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "from_tokenizer",
    "grammar_from",
]


class LLTokenizer:
    """What a tokenizer's tokens spell. ``tokenizer``: the path or the JSON text of a ``tokenizer.json``, or a
    vocabulary of tokenfst. ``slices`` mean nothing here."""

    def __init__(
        self,
        tokenizer: str | Vocabulary,
        n_vocab: int | None = None,
        eos_token: int | Sequence[int] | None = None,
        slices: Sequence[str] | None = None,
    ) -> None:
        if isinstance(tokenizer, str) and tokenizer.lstrip().startswith("{"):
            from tokenizers import Tokenizer

            tokenizer = Vocabulary.from_huggingface(
                Tokenizer.from_str(tokenizer), size=n_vocab, eos_token_id=eos_token
            )
        elif isinstance(tokenizer, str):
            tokenizer = Vocabulary.from_huggingface(tokenizer, size=n_vocab, eos_token_id=eos_token)
        self.vocabulary = tokenizer

    @property
    def vocab_size(self) -> int:
        """The width of the model's scores."""
        return len(self.vocabulary)

    @property
    def eos_token(self) -> int:
        """The first end token."""
        return self.vocabulary.eos_token_ids[0]

    @property
    def eos_tokens(self) -> list[int]:
        """All end tokens."""
        return list(self.vocabulary.eos_token_ids)

    def greedy_tokenize(self, text: str) -> list[int]:
        """Some tokens that spell the text, the longest that fits at each place."""
        return self.vocabulary.encode_greedy(text.encode())

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """What tokens spell."""
        return self.vocabulary.decode(tokens)

    def decode_str(self, tokens: Sequence[int]) -> str:
        """The same as text; what is not UTF-8 is replaced."""
        return self.decode_bytes(tokens).decode("utf-8", "replace")

    def is_special_token(self, token: int) -> bool:
        """Whether a token spells nothing."""
        return token in self.vocabulary.special_token_ids


def from_tokenizer(
    hf_tokenizer: Any,
    n_vocab: int | None = None,
    eos_token: int | Sequence[int] | None = None,
    slices: Sequence[str] | None = None,
) -> LLTokenizer:
    """Of a fast tokenizer of transformers."""
    return LLTokenizer(Vocabulary.from_huggingface(hf_tokenizer, size=n_vocab, eos_token_id=eos_token))


class LLMatcher:
    """One decoding under a grammar: a text that ``grammar_from_...`` or ``grammar_from`` made, or Lark's notation."""

    def __init__(
        self, tokenizer: LLTokenizer, grammar: str, *, log_level: int = 1, limits: object = None
    ) -> None:
        self._tokenizer = tokenizer
        self._error = ""
        self._matcher: Matcher | None = None
        try:
            self._matcher = compile(_constraint(grammar), tokenizer.vocabulary).matcher()
        except TokenfstError as error:
            self._error = str(error)

    # --- grammars -----------------------------------------------------------------------------------------

    @staticmethod
    def grammar_from_json_schema(
        schema: str | Mapping[str, Any],
        defaults: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> str:
        """The grammar of a JSON Schema. Options: ``whitespace_flexible``, ``whitespace_pattern``."""
        value = json.loads(schema) if isinstance(schema, str) else dict(schema)
        return json.dumps(
            {"grammars": [{"json_schema": value, "options": {**(defaults or {}), **(overrides or {})}}]}
        )

    @staticmethod
    def grammar_from_lark(lark: str) -> str:
        """The grammar of a text in Lark's notation: itself."""
        return lark

    @staticmethod
    def grammar_from_regex(regex: str) -> str:
        """The grammar of a regular expression of Python's ``re``, matched in full."""
        return json.dumps({"grammars": [{"regex": regex}]})

    @staticmethod
    def validate_grammar(grammar: str, tokenizer: LLTokenizer | None = None, *, limits: object = None) -> str:
        """What is wrong with a grammar; the empty text: nothing."""
        try:
            made = _constraint(grammar)
            if tokenizer is not None:
                compile(made, tokenizer.vocabulary)
        except TokenfstError as error:
            return str(error)
        return ""

    @staticmethod
    def validate_grammar_with_warnings(
        grammar: str, tokenizer: LLTokenizer | None = None, *, limits: object = None
    ) -> tuple[bool, list[str]]:
        """Whether a grammar is wrong, and why."""
        error = LLMatcher.validate_grammar(grammar, tokenizer)
        return bool(error), [error] if error else []

    # --- state --------------------------------------------------------------------------------------------

    def is_error(self) -> bool:
        """Whether the grammar was wrong, or a token was not allowed."""
        return bool(self._error)

    def get_error(self) -> str:
        """Why; the empty text where there is no error."""
        return self._error

    def get_grammar_warnings(self) -> list[str]:
        """None: what is not supported is an error."""
        return []

    def is_accepting(self) -> bool:
        """Whether the text so far is whole."""
        matcher = self._going()
        return matcher is not None and (matcher.is_terminated() or matcher.is_accepting())

    def is_stopped(self) -> bool:
        """Whether nothing but the end token may come; also after an error."""
        matcher = self._going()
        if matcher is None or matcher.is_terminated():
            return True
        return matcher.is_accepting() and not self._goes_on(matcher)

    def stop_reason(self) -> str:
        """Why the matcher stopped, in llguidance's words."""
        if self._error:
            return "InternalError"
        matcher = self._going()
        if matcher is not None and matcher.is_terminated():
            before = matcher.fork()
            before.rollback(1)
            return "EndOfSentence" if self._goes_on(before) else "NoExtension"
        return "NoExtension" if self.is_stopped() else "NotStopped"

    def deep_copy(self) -> LLMatcher:
        """An independent copy."""
        made = LLMatcher.__new__(LLMatcher)
        made.__dict__.update(self.__dict__)
        made._matcher = None if self._matcher is None else self._matcher.fork()  # a copy
        return made

    # --- tokens -------------------------------------------------------------------------------------------

    def consume_token(self, sampled_token: int) -> bool:
        """Take a token; False, and an error state, where it is not allowed."""
        return self.consume_tokens([sampled_token])

    def consume_tokens(self, sampled_tokens: Sequence[int]) -> bool:
        """Take tokens; False, and an error state, where one is not allowed."""
        if self._error:
            return False
        taken = self.try_consume_tokens(sampled_tokens)
        if taken < len(sampled_tokens):
            self._error = f"token {sampled_tokens[taken]} is not allowed after {taken} of these tokens"
        return not self._error

    def try_consume_tokens(self, tokens: Sequence[int]) -> int:
        """Take tokens as far as they are allowed; how many that were."""
        matcher, count = self._going(), self.validate_tokens(tokens)
        if matcher is not None and count:
            matcher.accept_tokens(list(tokens[:count]))
        return count

    def validate_tokens(self, tokens: Sequence[int]) -> int:
        """How many of these tokens could be taken."""
        matcher = self._going()
        if matcher is None or matcher.is_terminated():
            return 0
        known = next((place for place, token in enumerate(tokens) if not self._is_token(token)), len(tokens))
        return matcher.validate_tokens(list(tokens[:known]))

    def rollback(self, num_tokens: int) -> bool:
        """Take tokens back; False where there were fewer."""
        matcher = self._going()
        if matcher is None or not 0 <= num_tokens <= matcher.num_tokens:
            return False
        matcher.rollback(num_tokens)
        return True

    def reset(self) -> bool:
        """Back to the beginning."""
        matcher = self._going()
        if matcher is not None:
            matcher.reset()
        return matcher is not None

    def compute_ff_tokens(self) -> list[int]:
        """Tokens that have no alternative; an end token is not among them."""
        matcher = self._going()
        if matcher is None or matcher.is_terminated():
            return []
        ends = self._tokenizer.vocabulary.eos_token_ids
        return [token for token in matcher.forced_tokens() if token not in ends]

    def compute_ff_bytes(self) -> bytes:
        """What every text goes on with."""
        matcher = self._going()
        return b"" if matcher is None or matcher.is_terminated() else matcher.forced_bytes()

    def compute_bitmask(self) -> bytes:
        """The mask of the next token, a bit a token."""
        row = allocate_token_bitmask(1, self._tokenizer.vocab_size)
        self.fill(row, 0)
        return row.tobytes()

    def compute_logit_bias(self) -> bytes:
        """The mask of the next token, a byte a token: 200 where it is allowed, else 0."""
        row = allocate_token_bitmask(1, self._tokenizer.vocab_size)
        self.fill(row, 0)
        return (masks.unpack_bitmask(row[0], self._tokenizer.vocab_size) * 200).astype("u1").tobytes()

    def fill(self, bitmask: Any, index: int) -> None:
        """The mask of the next token into a row; only end tokens where the matcher has stopped."""
        matcher = self._going()
        if matcher is None or matcher.is_terminated():
            vocabulary = self._tokenizer.vocabulary
            only = masks.bitmask_from_ids(vocabulary.eos_token_ids, len(vocabulary))
            bitmask[index] = only if hasattr(bitmask, "flags") else bitmask.new_tensor(only.tolist())
        else:
            matcher.fill_next_token_bitmask(bitmask, index)

    def get_captures(self) -> list[tuple[str, bytes]]:
        """None: rules do not capture here."""
        return []

    def get_capture(self, name: str) -> bytes | None:
        """None."""
        return None

    def _going(self) -> Matcher | None:
        return None if self._error else self._matcher

    def _is_token(self, token: int) -> bool:
        return 0 <= token < self._tokenizer.vocab_size

    def _goes_on(self, matcher: Matcher) -> bool:
        """Whether a token other than the end tokens may come."""
        row = allocate_token_bitmask(1, self._tokenizer.vocab_size)
        matcher.fill_next_token_bitmask(row, 0)
        vocabulary = self._tokenizer.vocabulary
        return bool((row[0] & ~masks.bitmask_from_ids(vocabulary.eos_token_ids, len(vocabulary))).any())


class LLExecutor:
    """Fills the masks of many matchers at once, in native threads without the interpreter's lock."""

    def __init__(self, num_threads: int | None = None) -> None:
        self.num_threads = num_threads

    def consume_token_par(self, matchers: Sequence[tuple[LLMatcher, int]]) -> list[bool]:
        """Take a token in each."""
        return [matcher.consume_token(token) for matcher, token in matchers]


def consume_token_par(executor: LLExecutor, matchers: Sequence[tuple[LLMatcher, int]]) -> list[bool]:
    """Take a token in each matcher."""
    return executor.consume_token_par(matchers)


def fill_next_token_bitmask(interp: LLMatcher, bitmask: Any, index: int = 0) -> None:
    """The mask of the next token into a row of an int32 bitmask."""
    interp.fill(bitmask, index)


def fill_next_token_bitmask_par(
    executor: LLExecutor, matchers: Sequence[tuple[LLMatcher, int]], bitmask: Any
) -> None:
    """The masks of many matchers, each into its row."""
    going = [(matcher._going(), row) for matcher, row in matchers]  # of this file
    ready = [(matcher, row) for matcher, row in going if matcher is not None and not matcher.is_terminated()]
    found = allocate_token_bitmask(len(ready), 32 * bitmask.shape[1])
    masks.fill_bitmasks([matcher for matcher, _ in ready], found, executor.num_threads)
    for place, (_, row) in enumerate(ready):
        bitmask[row] = (
            found[place] if hasattr(bitmask, "flags") else bitmask.new_tensor(found[place].tolist())
        )
    filled = {row for _, row in ready}
    for matcher, row in matchers:
        if row not in filled:
            matcher.fill(bitmask, row)


def grammar_from(format: str, text: str) -> str:
    """A grammar of a text in one of llguidance's formats, for ``LLMatcher``."""
    if format in ("json_schema", "json"):
        return LLMatcher.grammar_from_json_schema(text)
    if format == "regex":
        return LLMatcher.grammar_from_regex(text)
    if format in ("lark", "llguidance"):
        return text
    if format in ("gbnf", "ebnf", "cfg", "grammar"):
        return text if "::=" not in text else json.dumps({"grammars": [{"gbnf": text}]})
    if format == "choice":
        return json.dumps({"grammars": [{"choice": json.loads(text)}]})
    raise ValueError(f"unknown format {format!r}")


def _constraint(grammar: str) -> Language | Grammar:
    """What a grammar's text means."""
    if not grammar.lstrip().startswith("{"):
        return lark_grammar(grammar, allow_initial_skip=False)
    try:
        [only] = json.loads(grammar)["grammars"]
        kind = next(
            name
            for name in ("json_schema", "regex", "gbnf", "choice", "lark_grammar")
            if only.get(name) is not None
        )
    except (ValueError, KeyError, TypeError, StopIteration, AttributeError):
        raise ConstraintError(
            'a grammar is a text in Lark\'s notation, or {"grammars": [...]} with one grammar in it'
        ) from None
    part = only[kind]
    if kind == "json_schema":
        options = only.get("options") or {}
        unknown = set(options) - {"whitespace_flexible", "whitespace_pattern"}
        if unknown:
            raise ConstraintError(f"json_schema: the options {', '.join(sorted(unknown))} are not supported")
        pattern = options.get("whitespace_pattern") or r"[ \n\r\t]*"
        return json_schema(
            part, whitespace=pattern if options.get("whitespace_flexible", True) else "compact"
        )
    readers: dict[str, Callable[[Any], Language | Grammar]] = {
        "regex": regex,
        "gbnf": gbnf,
        "choice": choices,
        "lark_grammar": lark_grammar,
    }
    return readers[kind](part)
