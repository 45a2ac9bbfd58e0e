"""``WalkHistory``: the nodes and tokens of one decoding, over any kind of automaton.

Invariant: there is one node more than there are tokens, and the last node is the current one. An error leaves the
history unchanged. A rollback only drops entries. An end token repeats the node before it and ends the walk.

A subclass defines the effect of a token in ``_push``. ``NodeMatcher`` walks masks, ``decoding/scores`` walks scores.
Cost: a node and a number for each token.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Self, TypeVar

from tokenfst.common.arguments import whole
from tokenfst.common.plurals import counted
from tokenfst.common.token_ids import token_id as read_token_id
from tokenfst.common.token_ids import whole_list
from tokenfst.errors import RollbackError, TerminatedError

N = TypeVar("N")


class WalkHistory(ABC, Generic[N]):
    """Nodes and tokens from the start of ``automaton``. Not thread-safe."""

    def __init__(self, automaton: Any, start: N) -> None:
        self.automaton = automaton
        self._nodes: list[N] = [start]
        self._tokens: list[int] = []
        self._terminated = False

    def __copy__(self) -> Self:
        return self.fork()

    def __deepcopy__(self, memo: object) -> Self:
        return self.fork()

    @property
    def tokens(self) -> list[int]:
        """The tokens accepted so far."""
        return list(self._tokens)

    @property
    def num_tokens(self) -> int:
        """The number of tokens accepted so far."""
        return len(self._tokens)

    def is_terminated(self) -> bool:
        """Whether an end token was accepted."""
        return self._terminated

    def accept_token(self, token_id: int) -> bool:
        """Advance by one token. Returns False and changes nothing if it is not allowed.

        Raises ``TokenIdError``, and ``TerminatedError`` after an end token: masks allow end tokens there, so that a
        row that has ended stays well formed in a batch, but a loop that goes on has missed the end.
        """
        size = len(self.automaton.vocabulary)
        token = read_token_id(f"{type(self).__name__}.accept_token", "token_id", token_id, size)
        if self._terminated:
            raise TerminatedError(
                f"token {token} was offered after the end token; reset() or rollback() first"
            )
        return self._push(token)

    def accept_tokens(self, token_ids: Sequence[int]) -> bool:
        """Advance by all of the tokens and return True; or by none, if one of them is not allowed, and return False."""
        tokens, before, all_accepted = self._read("accept_tokens", token_ids), len(self._tokens), False
        try:
            all_accepted = self._push_all(tokens) == len(tokens)
        finally:
            if not all_accepted:
                self.rollback(len(self._tokens) - before)
        return all_accepted

    def validate_tokens(self, token_ids: Sequence[int]) -> int:
        """The number of leading tokens that would be accepted; the matcher does not change."""
        tokens, before = self._read("validate_tokens", token_ids), len(self._tokens)
        try:
            return self._push_all(tokens)
        finally:
            self.rollback(len(self._tokens) - before)

    def rollback(self, num_tokens: int = 1) -> None:
        """Undo the last ``num_tokens`` tokens. Raises ``RollbackError``."""
        if type(num_tokens) is not int:
            num_tokens = whole(f"{type(self).__name__}.rollback", "num_tokens", num_tokens)
        if not 0 <= num_tokens <= len(self._tokens):
            raise RollbackError(
                f"cannot roll back {counted(num_tokens, 'token')}: only {len(self._tokens)} were accepted"
            )
        if num_tokens:
            del self._tokens[-num_tokens:]
            del self._nodes[len(self._tokens) + 1 :]
            self._terminated = False

    def reset(self) -> None:
        """Return to the start."""
        self.rollback(len(self._tokens))

    def fork(self) -> Self:
        """A copy of this matcher, in the same state."""
        other = self._new()
        other._nodes, other._tokens = list(self._nodes), list(self._tokens)  # noqa: SLF001  # another of this class
        other._terminated = self._terminated  # noqa: SLF001  # another of this class
        return other

    @abstractmethod
    def _new(self) -> Self:
        """Another one, at the start."""

    @abstractmethod
    def _push(self, token: int) -> bool:
        """Advance by one token, which must be in the vocabulary; returns whether it is allowed."""

    def _went(self, node: N, token: int) -> bool:
        """Note a step; True."""
        self._nodes.append(node)
        self._tokens.append(token)
        return True

    def _push_all(self, tokens: list[int]) -> int:
        for accepted, token in enumerate(tokens):
            if self._terminated or not self._push(token):
                return accepted
        return len(tokens)

    def _read(self, method: str, token_ids: Sequence[int]) -> list[int]:
        """The ids, each of which is in the vocabulary."""
        call, size = f"{type(self).__name__}.{method}", len(self.automaton.vocabulary)
        tokens = whole_list(call, "token_ids", token_ids)
        return [read_token_id(call, "token_ids", token, size) for token in tokens]
