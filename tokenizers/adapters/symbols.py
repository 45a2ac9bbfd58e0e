"""Vocabularies of plain symbols: class labels, tags, actions. There is nothing to detokenize: a token is a symbol.

The idea: token t spells the code that ``symbol_codes`` gives number t, so every part of the engine works on sequences
of symbols as on texts, and an automaton over symbols is a language over codes. Codes have one length, so no code is
split or crossed by a token. The end token and padding are special, as everywhere.

What sequences mean to people is ``Vocabulary.symbols``; ``shown``, the command line and drawings use those names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenfst.automata.symbols.automaton import checked_symbols, symbol_codes
from tokenfst.errors import ConstraintError, VocabularyError
from tokenfst.tokenizers.vocabulary.tables import pad_tokens
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

END = "</s>"
"""The name of the end token, if none is given."""


def from_symbols(
    symbols: Iterable[str],
    end: str = END,
    *,
    size: int | None = None,
    eos_token_id: int | Sequence[int] | None = None,
    name: str = "",
) -> Vocabulary:
    """The vocabulary in which token t is symbol t.

    ``end``: the end token: one of the symbols, or else a token behind all of them. ``eos_token_id``: end tokens by
    their ids, in place of ``end``; then nothing is added. ``size``: the width of the logits; ids beyond are special.
    Raises ``VocabularyError``. Linear.
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
    """Symbols with commas between them, ``a,b,c``; or ``@FILE``, a file of them (UTF-8), one a line.

    White space around a symbol, and empty lines, do not count. ``VocabularyError`` where the file cannot be read.
    """
    if not text.startswith("@"):
        return [part.strip() for part in text.split(",")]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise VocabularyError(f"cannot read the symbols in {text[1:]}: {reason}") from error
    return [line.strip() for line in lines if line.strip()]
