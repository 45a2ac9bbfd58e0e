"""Vocabularies of Hugging Face tokenizers, from their specification (``tokenizer.json``).

The tokens are those of the model (BPE, Unigram, WordPiece, WordLevel), overlaid by the added tokens. The decoder node
determines their bytes (``tokenfst.tokenizers.adapters.decoder_chain``); added tokens pass through it like all others.
Ids that the tokenizer does not define, and tokens marked special, emit nothing.

The reference is ``tokenizers.Tokenizer.decode(ids, skip_special_tokens=True)``; in transformers that is ``decode(ids,
skip_special_tokens=True, clean_up_tokenization_spaces=False)``. The clean-up is an edit of the whole text after
decoding and is not modelled. If the bytes are not valid UTF-8, the tokenizer writes U+FFFD and the vocabulary has the
bytes.

End tokens. ``eos_token_id`` if given; else the tokenizer object's own; else, for a folder or a name, the first of
``generation_config.json``, ``tokenizer_config.json``, ``config.json`` that names one. Otherwise an error asks for it.

Normalized added tokens. The text that ``decode`` writes for an added token with ``normalized: true`` depends on the
release of ``tokenizers`` (``normalized_tokens``): for a tokenizer object it is measured; in a file, such a token is
rejected if it makes a difference. A token marked special emits nothing, whatever its library writes for it.

How a text is encoded is known for byte-pair encodings of bytes with one split pattern (``huggingface_encoding``).

A slow (pure Python) transformers tokenizer has no such specification and is rejected.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tokenfst.errors import MissingDependencyError, UnknownTokenizerError, VocabularyError
from tokenfst.tokenizers.adapters.decoder_chain import decoded_forms
from tokenfst.tokenizers.adapters.huggingface_encoding import byte_pair_encoding
from tokenfst.tokenizers.adapters.normalized_tokens import is_unchanged
from tokenfst.tokenizers.adapters.token_file import read_json_object
from tokenfst.tokenizers.vocabulary.tables import MAX_TOKEN_ID, pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_EOS_FILES = ("generation_config.json", "tokenizer_config.json", "config.json")


def from_huggingface(
    tokenizer: object, *, size: int | None = None, eos_token_id: int | Sequence[int] | None = None
) -> Vocabulary:
    """The vocabulary of a Hugging Face fast tokenizer.

    ``tokenizer``: a ``tokenizers.Tokenizer``, a fast tokenizer of transformers, the path of a ``tokenizer.json`` or of
    a folder with one, or the name of a model on the hub (from the local cache if possible; needs huggingface_hub).
    ``size``: the width of the model's logits, if it exceeds the tokenizer's size.

    Linear in the size of the specification. Raises ``UnknownTokenizerError`` for unsupported parts, ``VocabularyError``
    for a missing end token or unusable files.
    """
    spelled: dict[int, str] | None = None
    if isinstance(tokenizer, str | PathLike):
        document, eos, name = _from_files(fspath(tokenizer), wants_eos=eos_token_id is None)
    else:
        document, eos, name, spelled = _from_object(tokenizer)
    return from_specification(
        document,
        size=size,
        eos_token_id=eos if eos_token_id is None else eos_token_id,
        name=name,
        spelled=spelled,
    )


def from_specification(
    document: dict[str, Any],
    *,
    size: int | None = None,
    eos_token_id: int | str | Sequence[int | str] | None = None,
    name: str = "",
    spelled: Mapping[int, str] | None = None,
) -> Vocabulary:
    """The vocabulary that the object in a ``tokenizer.json`` specifies. End tokens are ids or strings.

    ``spelled``: the library's spelling of added tokens, if it is available.
    """
    name = name or "huggingface"
    try:
        pieces, marked = _pieces(document, spelled, name)
    except UnknownTokenizerError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnknownTokenizerError(f"{name} is not a tokenizer.json specification: {error!r}") from error
    if not pieces:
        raise VocabularyError(f"{name} has no tokens")
    if min(pieces) < 0 or max(pieces) > MAX_TOKEN_ID:
        raise VocabularyError(
            f"{name} has the token ids {min(pieces)} to {max(pieces)}; the limit is {MAX_TOKEN_ID}"
        )
    ids = [token for token in sorted(pieces) if pieces[token] not in marked]
    forms = decoded_forms([pieces[token] for token in ids], document.get("decoder"))
    later, first = [b""] * (max(pieces) + 1), [b""] * (max(pieces) + 1)
    for token, inside, start in zip(ids, *forms, strict=True):
        later[token], first[token] = inside, start
    if eos_token_id is None:
        raise VocabularyError(f"{name} does not say what its end token is: pass eos_token_id")
    by_content = {content: token for token, content in pieces.items()}
    eos = []
    for item in [eos_token_id] if isinstance(eos_token_id, int | str) else eos_token_id:
        if isinstance(item, str) and item not in by_content:
            raise VocabularyError(f"{name} has no token {item!r}, which is named as its end token")
        eos.append(by_content[item] if isinstance(item, str) else item)
    special = {content: by_content[content] for content in marked if content in by_content}
    return Vocabulary(
        pad_tokens(later, size),
        eos,
        special,
        initial_tokens=pad_tokens(first, size),
        split_pattern=byte_pair_encoding(document, later, eos),
        name=name,
    )


def _pieces(
    document: dict[str, Any], spelled: Mapping[int, str] | None, name: str
) -> tuple[dict[int, str], set[str]]:
    """Token strings by id, and which of them are special."""
    pieces = _model_pieces(document["model"])
    marked = set()
    for entry in document.get("added_tokens") or []:
        token, content = operator.index(entry["id"]), entry["content"]
        if not isinstance(content, str):
            raise TypeError(f"the content of an added token is {content!r}")
        if entry.get("special"):
            marked.add(content)
        elif spelled is not None:
            content = spelled.get(token, content)
        elif entry.get("normalized") and not is_unchanged(content, document.get("normalizer")):
            raise UnknownTokenizerError(
                f"{name}: the added token {content!r} (id {token}) is normalized, and releases of tokenizers differ in "
                "whether they decode it as it was added or as the normalizer writes it. Pass the tokenizer object "
                '(tokenizers.Tokenizer.from_file(path)), or write "normalized": false for it in the file'
            )
        pieces[token] = content
    return pieces, marked


def _model_pieces(model: Any) -> dict[int, str]:
    kind, vocab = model.get("type"), model.get("vocab")
    if isinstance(vocab, list) and kind in (None, "Unigram"):
        return {token: piece for token, (piece, _) in enumerate(vocab)}
    if isinstance(vocab, dict) and kind in (None, "BPE", "WordPiece", "WordLevel"):
        return {operator.index(token): piece for piece, token in vocab.items()}
    raise UnknownTokenizerError(
        f"the tokenizer's model has the type {kind!r} and a {type(vocab).__name__} as vocabulary; known are "
        "BPE, WordPiece, WordLevel (an object) and Unigram (a list)"
    )


def _from_object(tokenizer: object) -> tuple[dict[str, Any], Any, str, dict[int, str]]:
    inner: Any = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not callable(getattr(inner, "to_str", None)):
        raise UnknownTokenizerError(
            f"a {type(tokenizer).__module__}.{type(tokenizer).__qualname__} carries no tokenizer.json "
            "specification; pass a tokenizers.Tokenizer, a fast transformers tokenizer, or a path"
        )
    name = getattr(tokenizer, "name_or_path", "")
    document = json.loads(inner.to_str())
    ids = [entry["id"] for entry in document.get("added_tokens") or []]
    spelled = {token: piece for token in ids if (piece := inner.id_to_token(token)) is not None}
    return document, getattr(tokenizer, "eos_token_id", None), f"hf:{name}" if name else "", spelled


def _from_files(name: str, *, wants_eos: bool) -> tuple[dict[str, Any], Any, str]:
    path = Path(name)
    if path.is_file():
        return read_json_object(path), None, f"hf:{name}"
    if path.is_dir():
        found = {file: path / file for file in ("tokenizer.json", *_EOS_FILES) if (path / file).is_file()}
    else:
        found = _from_hub(name, _EOS_FILES if wants_eos else ())
    if "tokenizer.json" not in found:
        raise VocabularyError(f"there is no tokenizer.json in {name}")
    eos = None
    for file in _EOS_FILES:
        if wants_eos and eos is None and file in found:
            config = read_json_object(found[file])
            eos = config.get("eos_token_id", config.get("eos_token"))
            eos = eos.get("content") if isinstance(eos, dict) else eos
    return read_json_object(found["tokenizer.json"]), eos, f"hf:{name}"


def _from_hub(name: str, optional: Sequence[str]) -> dict[str, Path]:
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
        from huggingface_hub.errors import EntryNotFoundError
    except ImportError as error:
        raise MissingDependencyError(
            f"there is no file or folder {name}; to look it up on the hub install huggingface_hub: "
            'pip install "tokenfst[transformers]"'
        ) from error
    folder = Path(name).parent
    if Path(name).suffix == ".json" or Path(name).is_absolute() or (folder != Path() and folder.is_dir()):
        raise VocabularyError(f"hf:{name} is a path, and there is no file or folder {name}")
    found = {}
    try:
        if not isinstance(try_to_load_from_cache(name, "tokenizer.json"), str):
            get_hf_file_metadata(
                hf_hub_url(name, "tokenizer.json")
            )  # checks once; a download would try five times
        found["tokenizer.json"] = Path(hf_hub_download(name, "tokenizer.json"))
        for file in optional:
            try:
                found[file] = Path(hf_hub_download(name, file))
            except EntryNotFoundError:
                continue
    except Exception as error:
        raise VocabularyError(
            f"hf:{name} is neither a file, nor a folder, nor a model that can be read from the hub: {error}"
        ) from error
    return found
