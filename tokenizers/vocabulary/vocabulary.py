"""``Vocabulary``: the byte string of each token id.

Two tables of byte strings define detokenization:

    decode(t1 t2 ... tn) = initial[t1] + tokens[t2] + ... + tokens[tn]

``initial`` differs from ``tokens`` if the tokenizer treats the beginning of a text specially: SentencePiece drops the
first space, WordPiece writes no separator before the first word. Special tokens emit nothing and are skipped: t1 is the
first token that is not special.

Invariants. ``len(vocabulary)`` is the width of the logits. A special token has the empty byte string in both tables,
whatever bytes it was given; end tokens are always special. A token that is empty in both tables is special. Tokens with
equal byte strings keep separate ids. A vocabulary is immutable; two vocabularies are equal if their fingerprints are.

Cost. Construction is linear in the bytes of all tokens: joins and numpy, no loop over tokens. Rejected: building a trie
or a dictionary at construction (both are built on demand).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

import tokenfst.common.notebook as notebook
from tokenfst.common.arguments import checked, checked_but
from tokenfst.common.plurals import counted
from tokenfst.common.token_ids import token_id as read_token_id
from tokenfst.errors import UnknownSymbolError, VocabularyError
from tokenfst.tokenizers.vocabulary.doors import DOORS
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding
from tokenfst.tokenizers.vocabulary.tables import byte_strings, lengths, token_ids
from tokenfst.tokenizers.vocabulary.token_index import TokenIndex

if TYPE_CHECKING:
    import pynini

    import tokenfst._native as _native
    from tokenfst.automata.transducers.vector import VectorFst


class Vocabulary:
    """An immutable table of tokens; the module's docstring defines its meaning.

    ``tokens``: the bytes of each id; ``b""`` marks a special token. ``eos_token_id``: one end token or several.
    ``special_tokens``: ids that are special whatever their bytes, or a mapping from their names to their ids.
    ``initial_tokens``: the bytes of each id as the first text token (``None``: the same as ``tokens``).
    ``start_absorbs``: the effect of a token with an empty initial form at the start of a text. False: the text has
    started, and the next token takes its form from ``tokens``. True: the text is still at its start. ``symbols``: the
    symbols that tokens stand for, if they are not text (see ``of_symbols``). ``split_pattern``: for a byte-pair
    encoding whose ids are in the order of their ranks, the pattern that splits texts into pieces, or a
    ``BytePairEncoding``, which has merges too (``None``: not such a tokenizer, or not known). ``name``: for display.
    The last two are not part of the value.

    Raises ``VocabularyError``. Time and memory are linear in the bytes of all tokens.
    """

    @checked_but("tokens", "eos_token_id", "initial_tokens")
    def __init__(
        self,
        tokens: Sequence[bytes],
        eos_token_id: int | Sequence[int],
        special_tokens: Mapping[str, int] | Iterable[int] = (),
        *,
        initial_tokens: Sequence[bytes] | None = None,
        start_absorbs: bool = False,
        symbols: Sequence[str | None] | None = None,
        split_pattern: str | BytePairEncoding | None = None,
        name: str = "",
    ) -> None:
        table = byte_strings(tokens, "tokens")
        size = len(table)
        eos = token_ids(eos_token_id, size, "end")
        if not eos:
            raise VocabularyError("a vocabulary needs at least one end token: pass eos_token_id")
        names: dict[str, int] = {}
        if isinstance(special_tokens, Mapping):
            if not all(isinstance(key, str) for key in special_tokens):
                raise VocabularyError("the names of special tokens must be str: map names to token ids")
            listed = token_ids(special_tokens.values(), size, "special")
            names = dict(sorted(zip(special_tokens, listed, strict=True)))
        else:
            listed = token_ids(special_tokens, size, "special")
        initial = table if initial_tokens is None else byte_strings(initial_tokens, "initial_tokens")
        if len(initial) != size:
            raise VocabularyError(
                f"{len(initial):,} initial forms for {counted(size, 'token')}: give one for each"
            )
        for special in (*eos, *listed):
            table[special] = b""
            initial[special] = b""
        empty = np.flatnonzero((lengths(table) == 0) & (lengths(initial) == 0))

        self._tokens = tuple(table)
        self._initial = None if initial is table or initial == table else tuple(initial)
        self._eos = tuple(sorted(set(eos)))
        self._names = MappingProxyType(names)
        self._special = frozenset(empty.tolist())
        self._absorbs = bool(start_absorbs) and self._initial is not None
        self._symbols = None if symbols is None else self._checked_names(symbols)
        self._encoding = BytePairEncoding(split_pattern) if isinstance(split_pattern, str) else split_pattern
        self._name = name
        self._tries: tuple[npt.NDArray[np.uint8], ...] = ()

    # --- the value ----------------------------------------------------------------------------------------

    @property
    def tokens(self) -> tuple[bytes, ...]:
        """The bytes of each token id; ``b""`` for special tokens."""
        return self._tokens

    @property
    def initial_tokens(self) -> tuple[bytes, ...] | None:
        """The bytes of each token id at the start of a text; ``None``: the same as ``tokens``."""
        return self._initial

    @property
    def start_absorbs(self) -> bool:
        """Whether a token with an empty initial form leaves the text at its start."""
        return self._absorbs

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """The end tokens, ascending; at least one."""
        return self._eos

    @property
    def special_token_ids(self) -> frozenset[int]:
        """All ids that emit nothing: special tokens, end tokens, padding."""
        return self._special

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The names of special tokens, as far as known, with their ids."""
        return self._names

    @property
    def symbols(self) -> tuple[str | None, ...] | None:
        """The symbol of each token id, ``None`` for end tokens and padding; ``None`` if tokens spell text."""
        return self._symbols

    @property
    def split_pattern(self) -> str | None:
        """The pattern by which the tokenizer splits texts into separately encoded pieces, if known.

        The tokenizer is then a byte-pair encoding whose ids are in the order of their ranks. Not part of equality or of
        the fingerprint.
        """
        return None if self._encoding is None else self._encoding.split_pattern

    @property
    def encoding(self) -> BytePairEncoding | None:
        """How the tokenizer makes tokens of a text, if known. Not part of equality or of the fingerprint."""
        return self._encoding

    @property
    def name(self) -> str:
        """The origin of the vocabulary, for display; not part of equality or of the fingerprint."""
        return self._name

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of everything that determines the meaning of token sequences.

        The hash covers, each preceded by its length: the sizes and bytes of ``tokens`` and ``initial_tokens``,
        ``start_absorbs``, the end tokens, the special ids, the names of special tokens, and the symbols, if any. It is
        the same on every computer and in every release with the same first line.
        """
        digest = hashlib.sha256(b"tokenfst vocabulary 1\n")

        def add(part: bytes) -> None:
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)

        for table in (self._tokens, self._initial):
            add(b"" if table is None else lengths(table).astype("<u4").tobytes())
            add(b"" if table is None else b"".join(table))
        add(bytes([self._absorbs]))
        add(np.array(self._eos, "<u4").tobytes())
        add(np.array(sorted(self._special), "<u4").tobytes())
        for key, token in self._names.items():
            add(key.encode("utf-8", "surrogatepass"))
            add(token.to_bytes(4, "little"))
        if self._symbols:  # one part: names have two each, so a name is never taken for a symbol
            texts = [
                None if each is None else each.encode("utf-8", "surrogatepass") for each in self._symbols
            ]
            sizes = [-1 if text is None else len(text) for text in texts]
            add(np.array(sizes, "<i8").tobytes() + b"".join(text or b"" for text in texts))
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._tokens)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        label = f"{self._name!r}, " if self._name else ""
        counts = f"{counted(len(self), 'token')}, {len(self._special):,} special"
        return f"<Vocabulary {label}{counts}, {self.fingerprint[:12]}>"

    def _repr_html_(self) -> str:
        ends = ", ".join(str(token) for token in self.eos_token_ids)
        facts: list[tuple[str, object]] = [
            ("name", self._name or "none"),
            ("tokens", len(self)),
            ("special", len(self._special)),
            ("end", ends),
            ("fingerprint", self.fingerprint),
        ]
        return notebook.card("Vocabulary", facts)

    def __reduce__(self) -> tuple[Any, ...]:
        special = dict(self._names) or ()
        return _unpickle, (
            self._tokens,
            self._eos,
            special,
            self._initial,
            self._absorbs,
            self._symbols,
            self._encoding,
            self._name,
        )

    def __copy__(self) -> Vocabulary:
        return self

    def __deepcopy__(self, memo: object) -> Vocabulary:
        return self

    # --- looking things up --------------------------------------------------------------------------------

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one token inside a text; ``b""`` for a special token. Raises ``TokenIdError``."""
        return self._tokens[self._checked(token_id)]

    def initial_bytes(self, token_id: int) -> bytes:
        """The bytes of one token at the start of a text. Raises ``TokenIdError``."""
        return (self._initial or self._tokens)[self._checked(token_id)]

    @checked
    def ids(self, data: bytes) -> tuple[int, ...]:
        """Every token whose bytes inside a text are ``data``, ascending; none for ``b""``."""
        return self._index.inside.get(data, ())

    @checked
    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes that a token sequence spells, without special tokens. ``detokenizer()`` computes the same.

        Linear in the output. Raises ``TokenIdError`` for an id outside the vocabulary.
        """
        parts = []
        table = self._initial or self._tokens
        for token_id in ids:
            token = self._checked(token_id)
            if token in self._special:
                continue
            parts.append(table[token])
            if parts[-1] or not self._absorbs:
                table = self._tokens
        return b"".join(parts)

    @checked
    def shown(self, ids: Iterable[int]) -> bytes:
        """The text of a token sequence for display: ``decode(ids)``, or the names of symbols separated by spaces."""
        if self._symbols is None:
            return self.decode(ids)
        return " ".join(self.decode_symbols(ids)).encode("utf-8", "surrogatepass")

    @checked
    def decode_symbols(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The symbols of a token sequence, without end tokens and padding.

        Raises ``VocabularyError`` if tokens spell text, ``TokenIdError`` for an id outside the vocabulary.
        """
        names = self._named_symbols()
        found = (names[self._checked(token_id)] for token_id in ids)
        return tuple(name for name in found if name is not None)

    @checked
    def encode_symbols(self, symbols: Iterable[str]) -> list[int]:
        """The token ids of symbols. Raises ``UnknownSymbolError`` for a symbol that is not in the vocabulary."""
        numbers = self._symbol_ids
        found = []
        for symbol in symbols:
            if symbol not in numbers:
                raise UnknownSymbolError(symbol, tuple(numbers))
            found.append(numbers[symbol])
        return found

    @cached_property
    def _symbol_ids(self) -> dict[str, int]:
        return {name: token for token, name in enumerate(self._named_symbols()) if name is not None}

    def _named_symbols(self) -> tuple[str | None, ...]:
        if self._symbols is None:
            raise VocabularyError(f"{self!r} spells text, not symbols: make one with Vocabulary.of_symbols")
        return self._symbols

    def _checked_names(self, symbols: Sequence[str | None]) -> tuple[str | None, ...]:
        """The name of each token that is not special, once each."""
        if len(symbols) != len(self._tokens):
            raise VocabularyError(
                f"{counted(len(symbols), 'symbol')} for {counted(len(self), 'token')}: give one for each"
            )
        names = tuple(None if token in self._special else name for token, name in enumerate(symbols))
        known = [name for name in names if name is not None]
        if len(known) != len(names) - len(self._special) or len(set(known)) != len(known):
            raise VocabularyError("each token that is not special needs a symbol of its own")
        return names

    @checked
    def encode_greedy(self, data: bytes) -> list[int]:
        """A token sequence that decodes to ``data``: at each position the longest matching token, lowest id first.

        For tests and examples; it is not the tokenizer's own segmentation. It does not backtrack, so it may fail
        although a sequence exists; then ``VocabularyError`` names the position. O(len(data) * longest token).
        """
        return self._index.encode_greedy(data)

    @cached_property
    def _index(self) -> TokenIndex:
        return TokenIndex(self._tokens, self._initial, self._special, self._absorbs)

    def _checked(self, token_id: int) -> int:
        return read_token_id("Vocabulary", "token_id", token_id, len(self._tokens))

    # --- other forms --------------------------------------------------------------------------------------

    @checked
    def packed(self, *, initial: bool = False) -> tuple[bytes, npt.NDArray[np.uint64]]:
        """The concatenated bytes of ``tokens`` (or of the initial forms), and their offsets: uint64, (V + 1,)."""
        table = self._initial or self._tokens if initial else self._tokens
        offsets = np.zeros(len(table) + 1, np.uint64)
        offsets[1:] = np.cumsum(lengths(table))
        return b"".join(table), offsets

    @cached_property
    def native(self) -> _native.Vocabulary:
        """The native core's form of this vocabulary (its trie), built on first use."""
        import tokenfst._native as _native

        data, offsets = self.packed()
        initial: tuple[bytes | None, npt.NDArray[np.uint64] | None] = (None, None)
        if self._initial is not None:
            initial = self.packed(initial=True)
        made = _native.Vocabulary(data, offsets, *initial, list(self._eos), start_absorbs=self._absorbs)
        for initial_form, tables in enumerate(self._tries):
            made.adopt_trie(
                tables, bool(initial_form)
            )  # False: these are not its tries, and it builds its own
        return made

    @property
    def tries(self) -> tuple[npt.NDArray[np.uint8], ...]:
        """Tries that a pack held, as tables of the native core: of ``tokens``, and of the initial forms. The core
        compares them with the tokens, then uses them in place.
        """
        return self._tries

    @checked
    def with_tries(self, tables: Sequence[npt.NDArray[np.uint8]]) -> Vocabulary:
        """Set ``tries`` and return this vocabulary. Call it before ``native`` is first used. Tables that are not the
        tries of these tokens are ignored.
        """
        self._tries = tuple(tables)
        return self

    def detokenizer(self) -> pynini.Fst:
        """The transducer from token sequences to bytes; see ``tokenfst.tokenizers.vocabulary.detokenizer``.

        Needs pynini: ``MissingDependencyError`` without it.
        """
        from tokenfst.tokenizers.vocabulary.detokenizer import detokenizer

        return detokenizer(self)

    def native_detokenizer(self) -> VectorFst:
        """``detokenizer`` as a machine of ``tokenfst.fst``, without pynini. O(the tokens' bytes)."""
        from tokenfst.tokenizers.vocabulary.detokenizer import native_detokenizer

        return native_detokenizer(self)

    @checked
    def to_json(self, path: str | PathLike[str]) -> None:
        """Write a ``tokens:`` file; see ``tokenfst.tokenizers.adapters.token_file``."""
        DOORS["write_token_file"](self, path)

    @checked
    def to_pack(self, path: str | PathLike[str], *, tries: bool = True) -> None:
        """Write a ``pack:`` file, which loads fastest; see ``tokenfst.tokenizers.adapters.pack``.

        Without ``tries`` the file is smaller, and the reader builds the core's tries when it first needs them.
        """
        DOORS["write_pack"](self, path, tries=tries)

    # --- adapters -----------------------------------------------------------------------------------------

    @classmethod
    @checked_but("symbols")
    def of_symbols(
        cls, symbols: Iterable[str], end: str = "</s>", *, size: int | None = None, name: str = ""
    ) -> Vocabulary:
        """A vocabulary of plain symbols (class labels, tags, actions) in which token t is symbol t.

        ``end``: the end token, which is one of the symbols or else is added after them. ``size``: the width of the
        logits; ids beyond the symbols are special. ``name``: for display. Raises ``VocabularyError``.
        """
        made: Vocabulary = DOORS["from_symbols"](symbols, end, size=size, name=name)
        return made

    @classmethod
    @checked
    def from_huggingface(
        cls, tokenizer: object, *, size: int | None = None, eos_token_id: int | Sequence[int] | None = None
    ) -> Vocabulary:
        """The vocabulary of a fast tokenizer of Hugging Face.

        ``tokenizer``: a ``tokenizers.Tokenizer``, a fast tokenizer of transformers, a ``tokenizer.json``, a folder with
        one, or the name of a model on the hub. ``size``: the width of the model's logits, if it exceeds the tokenizer's
        size. ``eos_token_id``: end tokens, instead of the tokenizer's own. Raises ``VocabularyError`` and
        ``UnknownTokenizerError`` (``tokenfst.tokenizers.adapters.huggingface`` lists what is supported).
        """
        made: Vocabulary = DOORS["from_huggingface"](tokenizer, size=size, eos_token_id=eos_token_id)
        return made

    @classmethod
    @checked
    def from_tiktoken(
        cls, encoding: object, *, size: int | None = None, eos_token_id: int | Sequence[int] | None = None
    ) -> Vocabulary:
        """The vocabulary of a tiktoken encoding: a ``tiktoken.Encoding``, its name, or a ``.tiktoken`` file.

        ``size``: the width of the model's logits, if it exceeds the tokenizer's size. ``eos_token_id``: end tokens; the
        default is ``<|endoftext|>``, which a file does not have. Raises ``VocabularyError`` and
        ``UnknownTokenizerError``.
        """
        made: Vocabulary = DOORS["from_tiktoken"](encoding, size=size, eos_token_id=eos_token_id)
        return made

    @classmethod
    @checked
    def from_sentencepiece(
        cls, model: object, *, size: int | None = None, eos_token_id: int | Sequence[int] | None = None
    ) -> Vocabulary:
        """The vocabulary of a SentencePiece model: the path of a ``.model`` file, its bytes, or a
        ``SentencePieceProcessor``.

        ``size``: the width of the model's logits, if it exceeds the model's number of pieces. ``eos_token_id``: end
        tokens, instead of the model's own. Raises ``VocabularyError`` and ``UnknownTokenizerError``.
        """
        made: Vocabulary = DOORS["from_sentencepiece"](model, size=size, eos_token_id=eos_token_id)
        return made

    @classmethod
    @checked
    def from_mistral(
        cls,
        name_or_path: str | PathLike[str],
        *,
        size: int | None = None,
        eos_token_id: int | Sequence[int] | None = None,
    ) -> Vocabulary:
        """The vocabulary of a Mistral tokenizer: the path of a file, or the name of one in mistral-common.

        ``size``: the width of the model's logits, if it exceeds the tokenizer's size. ``eos_token_id``: end tokens,
        instead of ``</s>``. Raises ``VocabularyError``, and ``MissingDependencyError`` for a name without
        mistral-common.
        """
        made: Vocabulary = DOORS["from_mistral"](name_or_path, size=size, eos_token_id=eos_token_id)
        return made


_received: WeakValueDictionary[tuple[str, BytePairEncoding | None, str], Vocabulary] = WeakValueDictionary()
"""Unpickled vocabularies by content: several constraints with the same vocabulary share one object and one trie."""


def _unpickle(
    tokens: Sequence[bytes],
    eos: Sequence[int],
    special: Mapping[str, int] | Iterable[int],
    initial: Sequence[bytes] | None,
    absorbs: bool,
    symbols: Sequence[str | None] | None,
    encoding: BytePairEncoding | None,
    name: str,
) -> Vocabulary:
    made = Vocabulary(
        tokens,
        eos,
        special,
        initial_tokens=initial,
        start_absorbs=absorbs,
        symbols=symbols,
        split_pattern=encoding,
        name=name,
    )
    return _received.setdefault((made.fingerprint, encoding, name), made)
