"""A matcher by brute force: the language is a set of token sequences, asked one by one."""

from __future__ import annotations


class FiniteMatcher:
    """The agreed methods of ``Matcher``, for ``words`` (tuples of token ids without the end token)."""

    def __init__(self, words, eos: int, max_new_tokens: int | None = None) -> None:
        self.words, self.eos, self.max_new_tokens = frozenset(map(tuple, words)), eos, max_new_tokens
        self.tokens: list[int] = []

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def max_tokens_left(self) -> int | None:
        return None if self.max_new_tokens is None else self.max_new_tokens - len(self.tokens)

    def is_terminated(self) -> bool:
        return bool(self.tokens) and self.tokens[-1] == self.eos

    def allowed(self) -> set[int]:
        here, left = tuple(self.tokens), self.max_tokens_left
        if self.is_terminated():
            return {self.eos}
        tokens = set()
        for word in self.words:
            if word == here and (left is None or left >= 1):
                tokens.add(self.eos)
            elif (
                word[: len(here)] == here and (left is None or len(word) - len(here) <= left) and word != here
            ):
                tokens.add(word[len(here)])
        return tokens

    def accept_token(self, token: int) -> bool:
        assert not self.is_terminated(), "a token was offered after the end token"
        if token not in self.allowed():
            return False
        self.tokens.append(token)
        return True

    def rollback(self, count: int) -> None:
        assert 0 <= count <= len(self.tokens)
        self.tokens = self.tokens[: len(self.tokens) - count]

    def fork(self) -> FiniteMatcher:
        copy = FiniteMatcher(self.words, self.eos, self.max_new_tokens)
        copy.tokens = list(self.tokens)
        return copy

    def follow(self, tokens) -> FiniteMatcher:
        """Feed tokens up to the first that is not allowed, or the end token."""
        for token in tokens:
            if self.is_terminated() or not self.accept_token(token):
                break
        return self
