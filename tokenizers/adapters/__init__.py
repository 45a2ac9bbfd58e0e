"""Adapters that read the vocabularies of other libraries and files.

The bytes of a token are those that the library's own ``decode`` writes. To add an adapter, write a module here that
returns a ``Vocabulary``, and name it in ``sources``.

Invariant: the tokens' bytes are the library's, or the adapter raises an error. Cost: linear in the bytes of all
tokens.

Read in this order: ``sources`` (vocabularies by name), ``decoder_chain``, ``normalized_tokens``,
``huggingface_encoding`` and ``huggingface``, then any other: ``mistral``, ``sentencepiece``, ``tiktoken``, ``symbols``,
``token_file``, ``pack`` (files that load quickly).
"""

from __future__ import annotations

import importlib

from tokenfst.tokenizers.vocabulary.doors import DOORS

TYPE_CHECKING = (
    False  # typing takes longer to import than everything here, and `import tokenfst` imports this module
)
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _door(module: str, name: str) -> Callable[..., Any]:
    """A function of a module here; the module is imported at the first call."""

    def door(*arguments: object, **options: object) -> Any:
        return getattr(importlib.import_module(f"{__name__}.{module}"), name)(*arguments, **options)

    return door


DOORS["from_huggingface"] = _door("huggingface", "from_huggingface")
DOORS["from_mistral"] = _door("mistral", "from_mistral")
DOORS["from_sentencepiece"] = _door("sentencepiece", "from_sentencepiece")
DOORS["from_symbols"] = _door("symbols", "from_symbols")
DOORS["from_tiktoken"] = _door("tiktoken", "from_tiktoken")
DOORS["pack"] = _door("pack", "pack")
DOORS["unpack"] = _door("pack", "unpack")
DOORS["write_pack"] = _door("pack", "write_pack")
DOORS["write_token_file"] = _door("token_file", "write_token_file")
