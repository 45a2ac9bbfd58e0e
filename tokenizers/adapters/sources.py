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

from collections.abc import Callable, Sequence

from tokenfst.arguments import checked
from tokenfst.errors import VocabularyError
from tokenfst.tokenizers.adapters.huggingface import from_huggingface
from tokenfst.tokenizers.adapters.mistral import from_mistral
from tokenfst.tokenizers.adapters.pack import read_pack
from tokenfst.tokenizers.adapters.sentencepiece import from_sentencepiece
from tokenfst.tokenizers.adapters.symbols import read_symbols
from tokenfst.tokenizers.adapters.tiktoken import from_tiktoken
from tokenfst.tokenizers.adapters.token_file import read_token_file
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_ADAPTERS: dict[str, Callable[..., Vocabulary]] = {
    "mistral": from_mistral,
    "hf": from_huggingface,
    "tiktoken": from_tiktoken,
    "spm": from_sentencepiece,
    "symbols": read_symbols,
    "tokens": read_token_file,
    "pack": read_pack,
}


@checked
def load_vocabulary(
    spec: str, size: int | None = None, *, eos_token_id: int | Sequence[int] | None = None
) -> Vocabulary:
    """The vocabulary that ``spec`` names, as ``KIND:REST``; see the module's table.

    ``size``: the width of the model's logits where it is larger than the tokenizer; the ids beyond are
    special. ``eos_token_id``: the end token or tokens, in place of the tokenizer's own. Raises
    ``VocabularyError``, ``UnknownTokenizerError``, ``MissingDependencyError``.
    """
    kind, colon, rest = spec.partition(":")
    if not colon or not rest or kind not in _ADAPTERS:
        known = ", ".join(f"{adapter}:..." for adapter in _ADAPTERS)
        raise VocabularyError(f"{spec!r} does not name a vocabulary: write one of {known}")
    return _ADAPTERS[kind](rest, size=size, eos_token_id=eos_token_id)
