"""``Stream``: a generated text in pieces, and its parsed result."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from tokenfst.common.arguments import shown
from tokenfst.decoding.generation.targets import as_text
from tokenfst.errors import DecodingError

_T = TypeVar("_T")


class Stream(Generic[_T]):
    """An iterator over the pieces of a text. Each piece consists of complete characters; together they are the text.

    ``result()`` reads to the end and returns the parsed text. As a context manager, or by ``close()``, it stops the
    model; a closed text has no result.
    """

    def __init__(self, pieces: Iterator[bytes], parse: Callable[[bytes], _T]) -> None:
        self._pieces, self._parse = pieces, parse
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._read: list[bytes] = []
        self._ended = self._closed = False

    def __iter__(self) -> Stream[_T]:
        return self

    def __next__(self) -> str:
        while not (self._ended or self._closed):
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
                text = self._decoder.decode(b"", True)
            else:
                self._read.append(piece)
                text = self._decoder.decode(piece)
            if text:
                return text
        raise StopIteration

    @property
    def text(self) -> str:
        """The text so far."""
        return as_text(b"".join(self._read))

    def result(self) -> _T:
        """The parsed complete text. Raises DecodingError if the stream was closed before the text had ended."""
        for _ in self:
            pass
        if not self._ended:
            raise DecodingError(
                f"the stream was closed before its text had ended, so it has no result: {shown(self.text)}. Call "
                "result() before close(), and within the with block"
            )
        return self._parse(b"".join(self._read))

    def close(self) -> None:
        """Stop the model, if it is still running."""
        self._closed = True
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Stream[_T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
