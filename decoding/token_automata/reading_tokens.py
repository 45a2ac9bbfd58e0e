"""Token sequences as input of a constraint's capture reading, and the temperature that its rules set for the next
token.

The input of a reading consists of bytes, special tokens and the ends of tokens; the ends matter where the constraint
bounds the number of tokens. If the last query for a constraint ended a few tokens earlier, its run is continued;
otherwise the tokens are read from the first one.

Cost: in a forward loop ``temperature`` reads the bytes of one token per call; after ``rollback`` and in forks it reads
the whole text once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import tokenfst._native as _native
from tokenfst.automata.captures.reader import Part, Reader, feed_parts
from tokenfst.automata.captures.run import Run
from tokenfst.automata.captures.temperature import temperature_of
from tokenfst.automata.expressions.expression import TokenName
from tokenfst.decoding.token_automata.held_constraints import program_of
from tokenfst.errors import ConstraintError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_MOST_RUNS = 64
_MOST_AHEAD = 32
"""Maximum number of tokens since the last query for which its run is continued: drafts and forced tokens add several at
once.
"""


def parts_of(
    special: Callable[[int], Part], vocabulary: Vocabulary, tokens: Sequence[int], *, begun: bool = False
) -> Iterator[Part]:
    """The input of a capture reading for these tokens: their bytes and ends, and special tokens.

    ``special``: returns the input for a special token. ``begun``: whether text precedes the tokens, so that none of
    them is spelled as the first token of a text.
    """
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
    """A function that maps a special token to a test whether a token name includes it."""
    symbols: dict[int, int] = {}
    rows: Sequence[tuple[int, object]] = ()
    names: dict[TokenName, int] = {}
    if native.is_token_level:
        program, classes = program_of(native.made_from[1]), native.made_from[4:]
        names = {name: number for number, name in enumerate(program.token_names)}
        if not program.only_counts_tokens:
            if not classes or classes[0] is None or any(words is not None for _, words in classes[0].rows):
                raise ConstraintError(
                    "captures and temperatures are not supported together with token classes that contain text "
                    "tokens, nor in expanded automata of constraints on tokens"
                )
            symbols, rows = dict(classes[0].symbols), classes[0].rows

    def one_of(token: int) -> Part:
        symbol = symbols.get(token)

        def is_one(name: TokenName) -> bool:
            return symbol is not None and bool(rows[names[name]][0] >> symbol & 1)

        return is_one

    return one_of


class TokenTemperatures:
    """The temperatures of one constraint over one vocabulary: a cache of the runs at the last queries, by their tokens.

    Threads may share it: a run that is in use is removed from the cache.
    """

    def __init__(self, reader: Reader, native: _native.TokenAutomaton, vocabulary: Vocabulary) -> None:
        self._reader, self._vocabulary = reader, vocabulary
        self._special = special_tokens(native)
        self._runs: dict[tuple[int, ...], tuple[Run, bytes]] = {}

    def after(self, tokens: Sequence[int]) -> float | None:
        """The temperature of the token after these tokens, which must be allowed."""
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
        while len(self._runs) > _MOST_RUNS:  # two threads may have removed the same one
            with suppress(RuntimeError, StopIteration):  # another thread changed it meanwhile
                self._runs.pop(next(iter(self._runs)), None)
        return found
