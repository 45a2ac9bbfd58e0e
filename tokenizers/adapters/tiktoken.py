"""Vocabularies of tiktoken encodings: byte strings with ranks, and named special tokens.

A token's id is its rank, and its bytes do not depend on its position in the text. Ids that the encoding omits emit
nothing.

The reference is ``Encoding.decode_bytes`` of the ids without special tokens. (Given special tokens, tiktoken writes
their names into the text; here they emit nothing, as everywhere in tokenfst.)

End tokens. ``eos_token_id`` if given, else the encoding's special token ``<|endoftext|>`` (its ``eot_token``). A
``.tiktoken`` file has no special tokens: pass ``eos_token_id``, and ``size`` if that id is beyond the file.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tokenfst.errors import MissingDependencyError, UnknownTokenizerError, VocabularyError
from tokenfst.tokenizers.vocabulary.tables import MAX_TOKEN_ID, end_token, pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


def from_tiktoken(
    encoding: object, *, size: int | None = None, eos_token_id: int | Sequence[int] | None = None
) -> Vocabulary:
    """The vocabulary of a tiktoken encoding.

    ``encoding``: a ``tiktoken.Encoding``, the path of a file of lines ``base64 rank``, or a name that
    ``tiktoken.get_encoding`` knows (from its cache if possible). ``size``: the width of the model's logits.

    Linear in the bytes of all tokens. Raises ``VocabularyError``, ``UnknownTokenizerError``.
    """
    if not isinstance(encoding, str | PathLike):
        return _from_encoding(encoding, size, eos_token_id)
    name = fspath(encoding)
    if Path(name).is_file():
        return _from_file(Path(name), size, eos_token_id)
    try:
        import tiktoken
    except ImportError as error:
        raise MissingDependencyError(
            f'there is no file {name}; encodings by name need tiktoken: pip install "tokenfst[tokenizers]"'
        ) from error
    try:
        loaded = tiktoken.get_encoding(name)
    except Exception as error:
        known = ", ".join(tiktoken.list_encoding_names())
        raise VocabularyError(
            f"tiktoken:{name} is neither a file nor an available encoding (known: {known}): {error}"
        ) from error
    return _from_encoding(loaded, size, eos_token_id)


def _from_encoding(encoding: Any, size: int | None, eos_token_id: int | Sequence[int] | None) -> Vocabulary:
    needed = ("n_vocab", "special_tokens_set", "encode_single_token", "decode_single_token_bytes", "name")
    lacking = [attribute for attribute in needed if not hasattr(encoding, attribute)]
    if lacking:
        raise UnknownTokenizerError(
            f"a {type(encoding).__qualname__} is no tiktoken.Encoding: no {lacking[0]}"
        )
    special = {name: encoding.encode_single_token(name) for name in encoding.special_tokens_set}
    hidden = set(special.values())
    tokens = [b""] * encoding.n_vocab
    for token in range(len(tokens)):
        if token not in hidden:
            try:
                tokens[token] = encoding.decode_single_token_bytes(token)
            except KeyError:
                continue
    name = f"tiktoken:{encoding.name}"
    return Vocabulary(
        pad_tokens(tokens, size),
        end_token(special, "<|endoftext|>", name) if eos_token_id is None else eos_token_id,
        special,
        split_pattern=getattr(encoding, "_pat_str", None),
        name=name,
    )


def _from_file(path: Path, size: int | None, eos_token_id: int | Sequence[int] | None) -> Vocabulary:
    ranks: dict[int, bytes] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            text, rank = line.split()
            ranks[int(rank)] = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error) as error:
            raise VocabularyError(
                f"{path}, line {number}: expected 'base64 rank', found {line[:60]!r}"
            ) from error
    if not ranks or min(ranks) < 0 or max(ranks) > MAX_TOKEN_ID:
        raise VocabularyError(f"{path} holds no tokens, or ranks that are no token ids")
    if eos_token_id is None:
        raise VocabularyError(f"{path} does not say what its end token is: pass eos_token_id")
    tokens = [ranks.get(token, b"") for token in range(max(ranks) + 1)]
    return Vocabulary(pad_tokens(tokens, size), eos_token_id, name=f"tiktoken:{path}")
