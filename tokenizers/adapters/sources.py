"""Vocabularies by name, the same on the command line and in Python.

=======================  ================================================================
``mistral:NAME|PATH``    a file of mistral-common, such as ``mistral:tekken_240911``
``hf:PATH|NAME``         a ``tokenizer.json``, a folder with one, or a model on the hub
``tiktoken:NAME|FILE``   an encoding of tiktoken, or a ``.tiktoken`` file
``spm:FILE``             a SentencePiece model
``symbols:A,B,C|@FILE``  plain symbols, or a file of them, one a line (``from_symbols``)
``tokens:FILE``          tokenfst's own small JSON format (``token_file``)
``pack:FILE``            any of these as ``Vocabulary.to_pack`` wrote it: the quickest to read (``pack``)
=======================  ================================================================
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence

from tokenfst.common.arguments import checked
from tokenfst.errors import VocabularyError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_KINDS_OF_NAMES = (
    (re.compile(r"(?:.*/)?tekken[^/]*"), "a file of mistral-common", "mistral"),
    (re.compile(r".*\.tiktoken"), "a file of tiktoken", "tiktoken"),
    (re.compile(r".*\.model"), "a SentencePiece model", "spm"),
    (re.compile(r"[\w./-]+"), "a tokenizer of Hugging Face", "hf"),
)
"""What a name without a kind probably means; the first that matches."""
_ADAPTERS = {
    "mistral": "mistral.from_mistral",
    "hf": "huggingface.from_huggingface",
    "tiktoken": "tiktoken.from_tiktoken",
    "spm": "sentencepiece.from_sentencepiece",
    "symbols": "symbols.read_symbols",
    "tokens": "token_file.read_token_file",
    "pack": "pack.read_pack",
}
"""Adapter functions by kind, as ``module.function``; a module is imported on first use."""


@checked
def load_vocabulary(
    spec: str, size: int | None = None, *, eos_token_id: int | Sequence[int] | None = None
) -> Vocabulary:
    """The vocabulary that ``spec`` names, as ``KIND:REST``; see the module's table.

    ``size``: the width of the model's logits, if it exceeds the tokenizer's size; the additional ids are special.
    ``eos_token_id``: the end token or tokens, instead of the tokenizer's own. Raises ``VocabularyError``,
    ``UnknownTokenizerError``, ``MissingDependencyError``.
    """
    kind, colon, rest = spec.partition(":")
    if not colon or not rest or kind not in _ADAPTERS:
        known = ", ".join(f"{adapter}:..." for adapter in _ADAPTERS)
        fits = ((what, guess) for name, what, guess in _KINDS_OF_NAMES if name.fullmatch(spec))
        meant = next((f"; {what} is {f'{guess}:{spec}'!r}" for what, guess in fits), "")
        raise VocabularyError(f"{spec!r} does not name a vocabulary: write one of {known}{meant}")
    module, _, name = _ADAPTERS[kind].partition(".")
    read = getattr(importlib.import_module(f"tokenfst.tokenizers.adapters.{module}"), name)
    made: Vocabulary = read(rest, size=size, eos_token_id=eos_token_id)
    return made
