"""What a tokenizer's tokens spell, and how it cuts a text into tokens, with llguidance's interface.

Masks need only the bytes that tokens spell. ``tokenize_str`` returns the tokenizer's own tokens if a tokenizer was
given (``is_canonical``), otherwise the longest token that fits at each place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from tokenfst.common.arguments import shown
from tokenfst.common.plurals import counted
from tokenfst.errors import ArgumentTypeError, VocabularyError
from tokenfst.tokenizers.adapters.tiktoken import from_tiktoken
from tokenfst.tokenizers.vocabulary.tables import pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Cut = Callable[[str, bool], list[int]]
"""A function that returns the tokenizer's own tokens of a text; its flag says whether names of special tokens in the
text become these tokens.
"""
LOOK_BACK = 4
"""llguidance assumes that a continuation of the text may change this many of the last tokens."""


class TokenizerWrapper:
    """Wraps any callable that takes text and has ``tokens``, ``eos_token_id`` and ``bos_token_id``."""

    def __init__(self, gtokenizer: Any) -> None:
        self.eos_token_id: int = gtokenizer.eos_token_id
        self.bos_token_id: int | None = gtokenizer.bos_token_id
        self.tokens: Sequence[bytes] = gtokenizer.tokens
        self.special_token_ids: Sequence[int] = getattr(gtokenizer, "special_token_ids", [])
        self._tokenizer = gtokenizer
        try:
            gtokenizer(b"test")
        except Exception:  # a tokenizer may raise anything for bytes
            self._takes_bytes = False
        else:
            self._takes_bytes = True

    def __call__(self, s: str) -> list[int]:
        """The tokens of a text."""
        return list(self._tokenizer(s.encode() if self._takes_bytes else s))


class LLTokenizer:
    """The bytes that a tokenizer's tokens spell.

    ``tokenizer``: the path or the JSON text of a ``tokenizer.json``, ``"byte"``, a ``TokenizerWrapper``, or a
    vocabulary of tokenfst. ``slices`` have no effect here.
    """

    def __init__(
        self,
        tokenizer: str | TokenizerWrapper | Vocabulary,
        n_vocab: int | None = None,
        eos_token: int | Sequence[int] | None = None,
        slices: Sequence[str] | None = None,
    ) -> None:
        self._cut: Cut | None = None
        if tokenizer == "byte":
            tokens = [*(bytes([byte]) for byte in range(256)), *[b""] * 6]
            named = ("<|tool|>", "<|/tool|>", "<|user|>", "<|system|>", "<|assistant|>", "<|end|>")
            self.vocabulary = Vocabulary(
                pad_tokens(tokens, n_vocab),
                _ends(eos_token, 261),
                dict(zip(named, range(256, 262), strict=True)),
            )
            self._cut = _as_bytes
        elif isinstance(tokenizer, str):
            self._read(tokenizer, n_vocab, eos_token)
        elif isinstance(tokenizer, TokenizerWrapper):
            special = set(tokenizer.special_token_ids)
            tokens = [b"" if place in special else bytes(each) for place, each in enumerate(tokenizer.tokens)]
            ends = _ends(eos_token, tokenizer.eos_token_id)
            for end in ends:
                tokens[end] = b""
            self.vocabulary = Vocabulary(pad_tokens(tokens, n_vocab), ends)
            self._cut = partial(_by_wrapper, tokenizer)
        elif isinstance(tokenizer, Vocabulary):
            self.vocabulary = tokenizer
        else:
            raise ArgumentTypeError(
                "LLTokenizer: tokenizer must be the path or JSON text of a tokenizer.json, a TokenizerWrapper or a "
                f"Vocabulary, not {shown(tokenizer)}"
            )

    def _read(self, text: str, n_vocab: int | None, eos_token: int | Sequence[int] | None) -> None:
        if not text.lstrip().startswith("{"):
            self.vocabulary = Vocabulary.from_huggingface(text, size=n_vocab, eos_token_id=eos_token)
            return
        from tokenizers import Tokenizer

        known = Tokenizer.from_str(text)
        known.no_padding()
        known.no_truncation()
        self.vocabulary = Vocabulary.from_huggingface(known, size=n_vocab, eos_token_id=eos_token)
        self._cut = partial(_by_huggingface, known)

    # --- made of other tokenizers ------------------------------------------------------------------------------

    @staticmethod
    def from_tiktoken(
        *,
        encoder: Mapping[bytes, int],
        special_tokens: Mapping[str, int],
        pattern: str,
        eos_token: int | Sequence[int],
        n_vocab: int | None = None,
        slices: Sequence[str] | None = None,
    ) -> LLTokenizer:
        """Make an ``LLTokenizer`` from the parts of a tiktoken ``Encoding``."""
        import tiktoken

        encoding = tiktoken.Encoding(
            "llguidance", pat_str=pattern, mergeable_ranks=dict(encoder), special_tokens=dict(special_tokens)
        )
        made = LLTokenizer(from_tiktoken(encoding, size=n_vocab, eos_token_id=eos_token))
        made._cut = partial(_by_tiktoken, encoding)
        return made

    @staticmethod
    def from_llamacpp(
        *,
        tokens: Sequence[bytes],
        vocab_ptr: Any = None,
        tokenize_fptr: int | None = None,
        eos_token: int | Sequence[int],
        slices: Sequence[str] | None = None,
    ) -> LLTokenizer:
        """Make an ``LLTokenizer`` from tokens as ``lltokenizer_from_vocab`` writes them.

        Tokens that begin with the byte 255 are special ones, given by their names. Texts are cut into the longest
        tokens, because llama.cpp itself is not called.
        """
        named: dict[str, int] = {}
        spelled = []
        for place, token in enumerate(tokens):
            if token.startswith(b"\xff"):
                named.setdefault(token[1:].decode("utf-8", "replace"), place)
                token = b""
            spelled.append(token)
        ends = [eos_token] if isinstance(eos_token, int) else list(eos_token)
        for end in ends:
            spelled[end] = b""
        return LLTokenizer(Vocabulary(spelled, ends, {name: token for name, token in named.items() if name}))

    # --- what it is --------------------------------------------------------------------------------------------

    @property
    def vocab_size(self) -> int:
        """The width of the model's logits."""
        return len(self.vocabulary)

    @property
    def eos_token(self) -> int:
        """The first end token."""
        return self.vocabulary.eos_token_ids[0]

    @property
    def eos_tokens(self) -> list[int]:
        """All end tokens."""
        return list(self.vocabulary.eos_token_ids)

    @property
    def is_canonical(self) -> bool:
        """Whether ``tokenize_str`` returns the tokenizer's own tokens."""
        return self._cut is not None

    def with_slices(self, slices: Sequence[str]) -> LLTokenizer:
        """The tokenizer itself: masks need no slices here."""
        return self

    @staticmethod
    def general_slices() -> list[str]:
        """An empty list: masks need no slices here."""
        return []

    @staticmethod
    def json_slices() -> list[str]:
        """An empty list: masks need no slices here."""
        return []

    def is_special_token(self, token: int) -> bool:
        """Whether a token is special: it spells no bytes."""
        return token in self.vocabulary.special_token_ids

    # --- texts and tokens --------------------------------------------------------------------------------------

    def greedy_tokenize(self, text: str) -> list[int]:
        """Token ids that spell the text: from left to right, the longest token that fits."""
        return self.vocabulary.encode_greedy(text.encode())

    def tokenize_str(self, text: str, *, parse_special: bool = False) -> list[int]:
        """The tokenizer's own tokens of a text, if the tokenizer is known; otherwise as ``greedy_tokenize``.

        ``parse_special`` applies to tiktoken: whether names of special tokens in the text become these tokens. Other
        tokenizers always read them so.
        """
        return self.greedy_tokenize(text) if self._cut is None else self._cut(text, parse_special)

    def tokenize_bytes(self, utf8bytes: bytes, *, parse_special: bool = False) -> list[int]:
        """The tokenizer's own tokens of UTF-8. An incomplete character at the end is cut into the longest tokens."""
        whole = bytes(utf8bytes)
        for end in range(len(whole), max(len(whole) - 4, -1), -1):
            try:
                text = whole[:end].decode()
            except UnicodeDecodeError:
                continue
            return [
                *self.tokenize_str(text, parse_special=parse_special),
                *self.vocabulary.encode_greedy(whole[end:]),
            ]
        return self.vocabulary.encode_greedy(whole)

    def tokenize_partial(
        self, new_bytes: bytes, recent_tokens: Sequence[int] | None = None
    ) -> tuple[list[int], bytes]:
        """The tokens of the beginning of a text that continues, and the remaining bytes, which may become part of a
        longer token.
        """
        found = self.tokenize_bytes(new_bytes)
        last = found[-LOOK_BACK:]
        while any(map(self.is_special_token, last)):
            del last[0]  # no token spans a special token
        after = self.decode_bytes(last)
        longest = max(map(len, self._sorted))
        start = next(
            (
                place
                for place in range(max(0, len(after) - longest), len(after))
                if self._goes_on(after[place:])
            ),
            len(after),
        )
        open_bytes, kept = len(after) - start, len(found)
        covered = 0
        while covered < open_bytes:
            kept -= 1
            covered += len(self._named(found[kept]))
        return found[:kept], bytes(new_bytes)[len(new_bytes) - covered :]

    @cached_property
    def _sorted(self) -> list[bytes]:
        return sorted(set(self.vocabulary.tokens))

    def longer(self, text: bytes) -> list[int]:
        """The tokens that begin with this text and are longer."""
        place = bisect_right(self._sorted, text)
        found: list[int] = []
        while place < len(self._sorted) and self._sorted[place].startswith(text):
            found += self.vocabulary.ids(self._sorted[place])
            place += 1
        return found

    @cached_property
    def _names(self) -> dict[int, bytes]:
        return {token: name.encode() for name, token in self.vocabulary.special_tokens.items()}

    def _named(self, token: int) -> bytes:
        """The bytes that a token spells; for a special token, its name."""
        if not 0 <= token < self.vocab_size:
            raise VocabularyError(
                f"unknown token {token}: the vocabulary has {counted(self.vocab_size, 'token')}"
            )
        return self._names.get(token, self.vocabulary.tokens[token])

    def _goes_on(self, text: bytes) -> bool:
        """Whether some token begins with this text and is longer."""
        place = bisect_right(self._sorted, text)
        return place < len(self._sorted) and self._sorted[place].startswith(text)

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """The bytes that tokens spell; a special token spells its name."""
        return b"".join(map(self._named, tokens))

    def decode_str(self, tokens: Sequence[int]) -> str:
        """The text that tokens spell; bytes that are not UTF-8 are replaced by U+FFFD."""
        return self.decode_bytes(tokens).decode("utf-8", "replace")

    def dbg_tokens(self, tokens: Sequence[int]) -> str:
        """Tokens in a readable form, in double brackets."""
        return f"⟦{self.test_trace_tokens(tokens)}⟧".replace("\n", "\\n")

    def test_trace_tokens(self, tokens: Sequence[int]) -> str:
        """Tokens in a readable form."""
        return "‧".join(map(self._shown, tokens))

    def _shown(self, token: int) -> str:
        spelled = self._named(token)
        if token == self.eos_token:
            return "≺EOS≻"
        if not spelled:
            return f"<[{token}]>"
        try:
            return spelled.decode()
        except UnicodeDecodeError:
            return f"≺HEX[{spelled.hex()}]≻"


def _as_bytes(text: str, parse_special: bool) -> list[int]:
    return list(text.encode())


def _by_wrapper(wrapper: TokenizerWrapper, text: str, parse_special: bool) -> list[int]:
    return wrapper(text)


def _by_huggingface(tokenizer: Any, text: str, parse_special: bool) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


def _by_tiktoken(encoding: Any, text: str, parse_special: bool) -> list[int]:
    allowed: Any = "all" if parse_special else set()
    return list(encoding.encode(text, allowed_special=allowed, disallowed_special=()))


def _ends(given: int | Sequence[int] | None, default: int) -> list[int]:
    if given is None:
        return [default]
    return [given] if isinstance(given, int) else list(given)
