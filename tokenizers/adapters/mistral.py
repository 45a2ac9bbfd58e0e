"""Vocabularies of Mistral's tokenizers: Tekken files (JSON) and SentencePiece models.

A Tekken file lists byte strings by rank. Its configuration defines the size of the vocabulary and the number of special
ids at its front: rank r has the id r + ``default_num_special_tokens``, and only the first ``default_vocab_size -
default_num_special_tokens`` ranks are used. Special ids that the file does not name (files up to version 7 name none
and use a fixed list) are called ``<SPECIAL_n>``. SentencePiece files are passed to ``from_sentencepiece``.

``mistral:NAME`` is a path, or the name of a file, with or without ``.json``, in the data folder of the installed
mistral-common. That package is located without importing it, which would take a second.

The reference is ``Tekkenizer.decode`` with special tokens ignored. It decodes each run of tokens between special ones
separately, so if a special token splits the bytes of a character it writes U+FFFD; the vocabulary has the bytes.

End tokens. ``eos_token_id`` if given, else ``</s>``.
"""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tokenfst.errors import MissingDependencyError, UnknownTokenizerError, VocabularyError
from tokenfst.tokenizers.adapters.sentencepiece import from_sentencepiece
from tokenfst.tokenizers.adapters.token_file import read_json_object
from tokenfst.tokenizers.vocabulary.tables import end_token, pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_UNNAMED_VERSIONS = ("v1", "v2", "v3", "v7")
_UNNAMED_SPECIAL = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]"),
    *("[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)
"""The special tokens of files that list none, by id."""


def from_mistral(
    name_or_path: str | PathLike[str],
    *,
    size: int | None = None,
    eos_token_id: int | Sequence[int] | None = None,
) -> Vocabulary:
    """The vocabulary of a Mistral tokenizer file.

    ``name_or_path``: a path, or the name of a file in mistral-common (``tekken_240911``). ``size``: the width of the
    model's logits, if it is larger. Linear in the size of the file. Raises ``VocabularyError``.
    """
    path = _locate(fspath(name_or_path))
    if path.suffix != ".json":
        vocabulary = from_sentencepiece(path, size=size, eos_token_id=eos_token_id)
        return _renamed(vocabulary, f"mistral:{fspath(name_or_path)}")
    document = read_json_object(path)
    try:
        tokens, special, pattern = _tekken(document)
    except (KeyError, TypeError, ValueError) as error:
        raise UnknownTokenizerError(f"{path} is not a Tekken file: {error!r}") from error
    return Vocabulary(
        pad_tokens(tokens, size),
        end_token(special, "</s>", str(path)) if eos_token_id is None else eos_token_id,
        special,
        split_pattern=pattern,
        name=f"mistral:{fspath(name_or_path)}",
    )


def _tekken(document: dict[str, Any]) -> tuple[list[bytes], dict[str, int], str | None]:
    """Token bytes by id, the special tokens by name, and the pattern that splits texts."""
    config, ranks = document["config"], document["vocab"]
    width, count = config["default_vocab_size"], config["default_num_special_tokens"]
    used = ranks[: width - count]
    if not 0 <= count <= width or len(used) != width - count:
        raise ValueError(f"{width} ids, {count} of them special, do not fit {len(ranks)} ranks")
    if [entry["rank"] for entry in used] != list(range(len(used))):
        raise ValueError("the ranks are not 0, 1, 2, ...")
    named = document.get("special_tokens")
    if named is None:
        if config["version"] not in _UNNAMED_VERSIONS:
            raise ValueError(f"no special_tokens, which version {config['version']!r} must have")
        named = [{"rank": token, "token_str": name} for token, name in enumerate(_UNNAMED_SPECIAL)]
    special = {entry["token_str"]: entry["rank"] for entry in named}
    if sorted(special.values()) != list(range(len(named))) or len(named) > count:
        raise ValueError(f"its {len(named)} special tokens do not have the ranks 0, 1, 2, ... below {count}")
    special |= {f"<SPECIAL_{token}>": token for token in range(len(named), count)}
    tokens = [b""] * count + [base64.b64decode(entry["token_bytes"]) for entry in used]
    return tokens, special, config.get("pattern")


def carried() -> list[Path]:
    """The vocabulary files in mistral-common; none if it is not installed."""
    return [file for folder in _folders() for file in folder.iterdir()]


def _folders() -> list[Path]:
    spec = importlib.util.find_spec("mistral_common")
    return [Path(place) / "data" for place in spec.submodule_search_locations or ()] if spec else []


def _locate(name: str) -> Path:
    path = Path(name)
    if path.is_file():
        return path
    folders = _folders()
    for folder in folders:
        for candidate in (folder / name, folder / f"{name}.json"):
            if candidate.parent == folder and candidate.is_file():
                return candidate
    if not folders:
        raise MissingDependencyError(
            f'there is no file {name}; names need mistral-common: pip install "tokenfst[tokenizers]"'
        )
    known = sorted(file.name.removesuffix(".json") for file in carried())
    raise VocabularyError(f"there is no file {name}, and mistral-common carries only {', '.join(known)}")


def _renamed(vocabulary: Vocabulary, name: str) -> Vocabulary:
    return Vocabulary(
        vocabulary.tokens,
        vocabulary.eos_token_ids,
        vocabulary.special_tokens,
        initial_tokens=vocabulary.initial_tokens,
        start_absorbs=vocabulary.start_absorbs,
        name=name,
    )
