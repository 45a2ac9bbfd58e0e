"""``TokenIndex``: token ids by their bytes, and the greedy encoding that uses it.

A vocabulary builds its index when it is first asked for ids by bytes. Time and memory are linear in the bytes of all
tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenfst.errors import VocabularyError
from tokenfst.tokenizers.vocabulary.tables import inverse


class TokenIndex:
    """The ids of tokens by their bytes. ``inside``: the ids of each byte string inside a text. ``initial``: the same at
    the start of a text.

    ``initial`` has the key ``b""`` if a token with an empty initial form starts the text (``start_absorbs`` is false).
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        initial_tokens: Sequence[bytes] | None,
        special: frozenset[int],
        start_absorbs: bool,
    ) -> None:
        self.inside: dict[bytes, tuple[int, ...]] = inverse(tokens)
        self.inside.pop(b"", None)
        self.initial, longest = self.inside, max(map(len, tokens))
        self._longest_inside = self._longest_initial = longest
        if initial_tokens is not None:
            self.initial = inverse(initial_tokens)
            self._longest_initial = max(map(len, initial_tokens))
            empty = tuple(token for token in self.initial.pop(b"", ()) if token not in special)
            if empty and not start_absorbs:
                self.initial[b""] = empty

    def encode_greedy(self, data: bytes) -> list[int]:
        """The ids of tokens that spell ``data``: at each position the longest matching token, and of those with the
        same bytes the lowest id. Raises ``VocabularyError`` at a position that no token matches.
        """
        result: list[int] = []
        place = 0
        index, longest = self.initial, self._longest_initial
        while place < len(data):
            for length in range(min(longest, len(data) - place), -1, -1):
                found = index.get(data[place : place + length])
                if found:
                    break
            else:
                shown = data[place : place + 20]
                raise VocabularyError(
                    f"no token continues the text at byte {place}, which goes on with {shown!r}"
                )
            result.append(found[0])
            place += length
            index, longest = self.inside, self._longest_inside
        return result
