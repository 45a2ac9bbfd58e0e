"""Vocabularies of plain symbols: class labels, tags, actions. A token is a symbol, so there is nothing to detokenize.

Token t spells code number t of ``symbol_codes``, so every part of the engine works on sequences of symbols as on texts,
and an automaton over symbols is a language over codes. Codes have one length, so no token splits or crosses a code. The
end token and padding are special, as everywhere.

``Vocabulary.symbols`` has the names; ``shown``, the command line and drawings use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenfst.automata.symbols.automaton import checked_symbols, symbol_codes
from tokenfst.errors import ConstraintError, VocabularyError
from tokenfst.tokenizers.vocabulary.tables import pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

END = "</s>"
"""The default name of the end token."""


def from_symbols(
    symbols: Iterable[str],
    end: str = END,
    *,
    size: int | None = None,
    eos_token_id: int | Sequence[int] | None = None,
    name: str = "",
) -> Vocabulary:
    """The vocabulary in which token t is symbol t.

    ``end``: the end token, which is one of the symbols or else is added after them. ``eos_token_id``: end tokens by id,
    in place of ``end``; then no token is added. ``size``: the width of the logits; ids beyond the symbols are special.
    Raises ``VocabularyError``. Linear in the number of symbols.
    """
    try:
        names = list(checked_symbols(symbols))
    except ConstraintError as error:
        raise VocabularyError(str(error)) from error
    if not names:
        raise VocabularyError("a vocabulary of symbols needs at least one symbol")
    if eos_token_id is None:
        if end not in names:
            names.append(end)
        ends: Sequence[int] = [names.index(end)]
    else:
        ends = [eos_token_id] if isinstance(eos_token_id, int) else list(eos_token_id)
    width = len(pad_tokens([b""] * len(names), size))
    tokens = symbol_codes(width)
    padding = range(len(names), width)
    special = {names[token]: token for token in ends if 0 <= token < len(names)}
    tokens[len(names) :] = [b""] * len(padding)
    return Vocabulary(tokens, ends, special, symbols=(*names, *(None for _ in padding)), name=name)


def read_symbols(
    text: str, *, size: int | None = None, eos_token_id: int | Sequence[int] | None = None
) -> Vocabulary:
    """The vocabulary of the symbols that ``listed_symbols`` reads."""
    return from_symbols(listed_symbols(text), size=size, eos_token_id=eos_token_id, name=f"symbols:{text}")


def listed_symbols(text: str) -> list[str]:
    """Symbols separated by commas, ``a,b,c``; or ``@FILE``, a file of them (UTF-8), one on each line.

    White space around a symbol and empty lines are ignored. Raises ``VocabularyError`` if the file cannot be read.
    """
    if not text.startswith("@"):
        if "," not in text and set(text) & set("./\\") and Path(text).is_file():
            raise VocabularyError(f"{text} is a file: symbols:@{text} reads the symbols in it")
        return [part.strip() for part in text.split(",")]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise VocabularyError(f"cannot read the symbols in {text[1:]}: {reason}") from error
    return [line.strip() for line in lines if line.strip()]
