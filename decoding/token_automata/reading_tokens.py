"""Tokens as a constraint's reading takes them, and the temperature that its rules say for the next one.

The idea: a reading reads bytes, special tokens, and the ends of tokens, where something is bounded to few of them.
Where the last question about a constraint ended a few tokens before, its run goes on; else the tokens are read from
the first on.

Cost: ``temperature`` takes the bytes of one token a call in a loop that goes forward; after ``rollback`` and in forks
all of the text once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import tokenfst._native as _native
from tokenfst.automata.captures.reader import Part, Reader, feed_parts
from tokenfst.automata.captures.run import Run
from tokenfst.automata.captures.temperature import temperature_of
from tokenfst.automata.expressions.expression import TokenName
from tokenfst.errors import ConstraintError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_MOST_RUNS = 64
_MOST_AHEAD = 32
"""So many tokens may have come since the last question: drafts, and what has no alternative, come several at once."""


def parts_of(
    special: Callable[[int], Part], vocabulary: Vocabulary, tokens: Sequence[int], *, begun: bool = False
) -> Iterator[Part]:
    """What tokens are to a reading. ``special``: what special ones are; ``begun``: there is text in front of them."""
    for token in tokens:
        if token in vocabulary.eos_token_ids:
            continue
        if token in vocabulary.special_token_ids:
            yield special(token)
        else:
            first = not begun and vocabulary.initial_tokens is not None
            spelled = (vocabulary.initial_tokens if first else vocabulary.tokens)[token]  # type: ignore[index]
            begun = begun or bool(spelled)
            yield spelled
            yield None


def special_tokens(native: _native.TokenAutomaton) -> Callable[[int], Part]:
    """What says of a special token whether it is one of a name."""
    program, classes = native.made_from[1], native.made_from[4:]
    if native.speaks_of_tokens and not program.only_counts_tokens:
        if not classes or classes[0] is None or any(words is not None for _, words in classes[0].rows):
            raise ConstraintError(
                "captures and temperatures beside classes that hold tokens of text cannot be told, nor in expanded "
                "automata of constraints that speak of tokens"
            )
        symbols, rows = dict(classes[0].symbols), classes[0].rows
    else:
        symbols, rows = {}, ()
    names = {name: number for number, name in enumerate(program.token_names)}

    def one_of(token: int) -> Part:
        symbol = symbols.get(token)

        def is_one(name: TokenName) -> bool:
            return symbol is not None and bool(rows[names[name]][0] >> symbol & 1)

        return is_one

    return one_of


class Heats:
    """The temperatures of one constraint over one vocabulary: the runs that the last questions ended with, by their
    tokens. Threads may share it: whoever takes a run out has it alone."""

    def __init__(self, reader: Reader, native: _native.TokenAutomaton, vocabulary: Vocabulary) -> None:
        self._reader, self._vocabulary = reader, vocabulary
        self._special = special_tokens(native)
        self._runs: dict[tuple[int, ...], tuple[Run, bytes]] = {}

    def behind(self, tokens: Sequence[int]) -> float | None:
        """The temperature of the token behind these, which are allowed."""
        key = tuple(tokens)
        for length in range(len(key), max(len(key) - _MOST_AHEAD, 0), -1):
            known = self._runs.pop(key[:length], None)
            if known is not None:
                run, data = known
                break
        else:
            length, run, data = 0, self._reader.run(), b""
        parts = [*parts_of(self._special, self._vocabulary, key[length:], begun=bool(data))]
        feed_parts(run, parts)
        data += b"".join(part for part in parts if isinstance(part, bytes))
        found = temperature_of(run, data)
        self._runs[key] = run, data
        if len(self._runs) > _MOST_RUNS:
            with suppress(RuntimeError):  # another thread makes room
                self._runs.pop(next(iter(self._runs)), None)
        return found
