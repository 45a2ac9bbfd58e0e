"""xgrammar's matchers and bitmasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from tokenfst._native import Matcher
from tokenfst.common.arguments import shown
from tokenfst.common.plurals import counted
from tokenfst.compat.xgrammar.compiler import CompiledGrammar
from tokenfst.compat.xgrammar.exception import raising
from tokenfst.decoding.masks import bitmask as masks
from tokenfst.errors import MissingDependencyError, VocabularyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError(
        'tokenfst.compat.xgrammar needs torch: pip install "tokenfst[torch]"'
    ) from error

bitmask_dtype = torch.int32
_BACKENDS = ("auto", "cpu", "cuda", "triton", "torch_compile", "torch_native")
_T = TypeVar("_T")


class GrammarMatcher:
    """One decoding under a compiled grammar."""

    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: Sequence[int] | int | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: float | None = None,
    ) -> None:
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise ValueError(
                f"GrammarMatcher: compiled_grammar must be compiled, not {shown(compiled_grammar)}"
            )
        if isinstance(override_stop_tokens, int):
            override_stop_tokens = [override_stop_tokens]
        self.matcher: Matcher = raising(compiled_grammar.automaton(override_stop_tokens).matcher)()
        self._compiled = compiled_grammar
        info = compiled_grammar.tokenizer_info
        self._vocabulary, self._size, self._hidden = info.vocabulary, info.vocab_size, info.hidden_tokens
        self.stop_token_ids = list(override_stop_tokens or info.stop_token_ids)
        self._without_stop = terminate_without_stop_token
        self._refused = frozenset(self.stop_token_ids if terminate_without_stop_token else ())
        self._default_temperature, self.max_rollback_tokens = default_temperature, -1
        self._steps: list[int] = []

    @property
    def whole_masks(self) -> bool:
        """Whether the core's masks are this matcher's: as wide as the tokenizer's vocabulary, with stop tokens."""
        return not self._hidden and not self._refused

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Accept a token. Returns False for a token that is not allowed, after the end, and for ids out of range. A
        matcher that terminates without stop tokens accepts none of them.
        """
        if (
            self.matcher.is_terminated()
            or token_id in self._refused
            or not 0 <= token_id < self._size
            or not self.matcher.accept_token(token_id)
        ):
            return False
        self._steps.append(1)
        return True

    @property
    def temperature(self) -> float | None:
        """The temperature of the rules that may read the next token (``rule[temperature=0.7]``), otherwise the
        default.
        """
        said = raising(lambda: self.matcher.temperature)()
        return self._default_temperature if said is None else said

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Accept a text, as one step. Returns False, and changes nothing, if it is not allowed or cannot be spelled."""
        data = input_str.encode() if isinstance(input_str, str) else input_str
        if self.matcher.is_terminated():
            return False
        try:
            tokens = self._vocabulary.encode_greedy(data)
        except VocabularyError:
            return False
        if not self.matcher.accept_tokens(tokens):
            return False
        self._steps.append(len(tokens))
        return True

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0, *, debug_print: bool = False) -> bool:
        """Write the mask of the next token into a row. Returns False if every token is allowed."""
        if self.matcher.is_terminated():
            raise RuntimeError(
                "GrammarMatcher has terminated: it has no next token. Roll it back, or reset it"
            )
        if self.whole_masks:
            return raising(self.matcher.fill_next_token_bitmask)(bitmask, index)
        row = allocate_token_bitmask(1, len(self._vocabulary))
        self.matcher.fill_next_token_bitmask(row, 0)
        allowed = self._own(row)
        _write(bitmask, [index], packed(allowed))
        return not bool(allowed.all())

    def _own(self, rows: torch.Tensor) -> torch.Tensor:
        """Which of the tokenizer's tokens masks of the core allow here, as booleans."""
        allowed = bits(rows, self._size)
        allowed[:, [token for token in self._refused if token < self._size]] = False
        return allowed

    def traverse_draft_tree(
        self,
        retrieve_next_token: torch.Tensor,
        retrieve_next_sibling: torch.Tensor,
        draft_tokens: torch.Tensor,
        token_bitmask: torch.Tensor,
        time_threshold: float = -1.0,
        temperatures: torch.Tensor | None = None,
    ) -> bool:
        """Write the masks of a tree of drafts, and the temperatures of its nodes (-1 for none, and for nodes that are
        not reached). The whole tree is always traversed.
        """
        children, siblings = retrieve_next_token.numpy(), retrieve_next_sibling.numpy()
        tokens = draft_tokens.numpy().copy()
        tokens[np.isin(tokens, list(self._refused)) | (tokens >= self._size)] = -1  # which no mask allows
        traverse = raising(self.matcher.traverse_draft_tree)
        if self.whole_masks:
            traverse(children, siblings, tokens, token_bitmask)
        else:
            rows = allocate_token_bitmask(len(tokens), len(self._vocabulary))
            kept = token_bitmask[: len(tokens), : rows.shape[1]]  # no path leads to some rows: they stay
            rows[: len(kept), : kept.shape[1]] = kept
            traverse(children, siblings, tokens, rows)
            _write(token_bitmask, range(len(tokens)), packed(self._own(rows)))
        if temperatures is not None:
            _check_temperatures("traverse_draft_tree", temperatures)
            if len(temperatures) != len(tokens):
                raise RuntimeError(
                    f"traverse_draft_tree: {counted(len(tokens), 'node')} need as many temperatures, not "
                    f"{len(temperatures)}"
                )
            temperatures.fill_(-1.0)
            self.fork()._heat(children.tolist(), siblings.tolist(), tokens.tolist(), temperatures)  # a copy
        return True

    def _heat(
        self, children: list[int], siblings: list[int], tokens: list[int], temperatures: torch.Tensor
    ) -> None:
        """Write the temperatures of a tree's nodes that are reached, and leave the matcher wherever that ends."""
        pending, begun = [(0, 0)] if tokens else [], self.matcher.num_tokens
        while pending:
            node, depth = pending.pop()
            if node < 0:
                continue
            if node:
                pending.append((siblings[node], depth))
            self.matcher.rollback(self.matcher.num_tokens - begun - depth)
            if node and not self.accept_token(tokens[node]):
                continue
            if not self.matcher.is_terminated():
                temperatures[node] = -1.0 if self.temperature is None else self.temperature
            pending.append((children[node], self.matcher.num_tokens - begun))

    def find_jump_forward_string(self) -> str:
        """The text that must come next; empty if there is a choice, or after the end."""
        return "" if self.matcher.is_terminated() else self.matcher.find_jump_forward_string()

    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last ``num_tokens`` steps: tokens, or whole texts of ``accept_string``."""
        if not 0 <= num_tokens <= len(self._steps):
            raise RuntimeError(
                f"cannot roll back {counted(num_tokens, 'step')}: only {len(self._steps):,} were taken"
            )
        if num_tokens:
            self.matcher.rollback(sum(self._steps[-num_tokens:]))
            del self._steps[-num_tokens:]

    def get_captures(self, *, deduplicate: bool = True) -> list[tuple[str, bytes]]:
        """The text that named rules and groups matched, in the order in which the matches end, without duplicates."""
        found = [
            (each.end, name, each.data)
            for name, many in raising(self.matcher.captures)().items()
            for each in many
            if each.end is not None
        ]
        return [(name, data) for _, name, data in sorted(found, key=lambda each: each[0])]

    def is_terminated(self) -> bool:
        """Whether a stop token was accepted, or, if none is required, whether the text is complete."""
        return self.matcher.is_terminated() or (self._without_stop and self.matcher.is_accepting())

    def is_completed(self) -> bool:
        """Whether the text so far is complete."""
        return self.matcher.is_terminated() or self.matcher.is_accepting()

    def reset(self) -> None:
        """Return to the beginning of the text."""
        self.matcher.reset()
        self._steps.clear()

    def fork(self) -> GrammarMatcher:
        """An independent copy."""
        made = GrammarMatcher.__new__(GrammarMatcher)
        made.__dict__.update(self.__dict__)
        made.matcher, made._steps = self.matcher.fork(), list(self._steps)  # a copy
        return made


class BatchGrammarMatcher:
    """Calls for many matchers at once. Masks are filled in one native call that releases the interpreter's lock."""

    def __init__(self, max_threads: int | Literal["auto"] = "auto") -> None:
        self._threads = None if max_threads == "auto" else max_threads

    def batch_fill_next_token_bitmask(
        self,
        matchers: Sequence[GrammarMatcher],
        bitmask: Any,
        indices: Sequence[int] | None = None,
        debug_print: bool = False,
    ) -> None:
        """Write the masks of all matchers, into the rows ``indices`` if they are given."""
        rows = list(range(len(matchers))) if indices is None else list(indices)
        _check_rows("batch_fill_next_token_bitmask", matchers, rows, len(bitmask))
        if not all(each.whole_masks for each in matchers):
            for row, each in zip(rows, matchers, strict=True):
                each.fill_next_token_bitmask(bitmask, row)
            return
        native = [each.matcher for each in matchers]
        if indices is None:
            raising(masks.fill_bitmasks)(native, bitmask, self._threads)
            return
        found = torch.full((len(native), bitmask.shape[1]), -1, dtype=bitmask_dtype)
        raising(masks.fill_bitmasks)(native, found, self._threads)
        bitmask[rows] = found

    @staticmethod
    def batch_fill_temperature(
        matchers: Sequence[GrammarMatcher], temperatures: torch.Tensor, indices: Sequence[int] | None = None
    ) -> None:
        """Write the temperature of each matcher, or its default, into its row; -1 if it has neither."""
        _check_temperatures("batch_fill_temperature", temperatures)
        rows = list(range(len(matchers))) if indices is None else list(indices)
        _check_rows("batch_fill_temperature", matchers, rows, len(temperatures))
        for row, each in zip(rows, matchers, strict=True):
            temperatures[row] = -1.0 if each.temperature is None else each.temperature

    @staticmethod
    def batch_accept_token(
        matchers: Sequence[GrammarMatcher], tokens: Sequence[int], debug_print: bool = False
    ) -> list[bool]:
        """Accept a token in each matcher, and return which matchers accepted it."""
        return [each.accept_token(token) for each, token in _pairs(matchers, tokens)]

    @staticmethod
    def batch_accept_string(
        matchers: Sequence[GrammarMatcher], strings: Sequence[str | bytes], debug_print: bool = False
    ) -> list[bool]:
        """Accept a text in each matcher, and return which matchers accepted it."""
        return [each.accept_string(text) for each, text in _pairs(matchers, strings)]

    @staticmethod
    def batch_rollback(matchers: Sequence[GrammarMatcher], num_tokens: Sequence[int] | int = 1) -> None:
        """Take back the last steps of each matcher."""
        counts = [num_tokens] * len(matchers) if isinstance(num_tokens, int) else num_tokens
        for each, count in _pairs(matchers, counts):
            each.rollback(count)


def _check_temperatures(name: str, temperatures: torch.Tensor) -> None:
    if temperatures.dtype != torch.float32 or temperatures.dim() != 1 or temperatures.device.type != "cpu":
        raise RuntimeError(f"{name}: temperatures must be one row of float32 on the CPU")


def _check_rows(name: str, matchers: Sequence[GrammarMatcher], rows: list[int], most: int) -> None:
    if len(rows) != len(matchers) or any(not 0 <= row < most for row in rows):
        raise RuntimeError(
            f"{name}: {counted(len(matchers), 'matcher')} need as many indices, from 0 to {most - 1}, not "
            f"{rows!r:.80}"
        )


def _write(bitmask: Any, rows: Sequence[int], masks_of_rows: torch.Tensor) -> None:
    """Write masks into rows of a bitmask, which may be one row, or wider: what lies beyond is forbidden."""
    table, width = bitmask if len(bitmask.shape) == 2 else bitmask[None], masks_of_rows.shape[1]
    if not all(0 <= row < len(table) for row in rows) or table.shape[1] < width:
        raise RuntimeError(
            f"{counted(len(rows), 'mask')} of {counted(width, 'word')} cannot be written into rows {list(rows)!r:.80} "
            f"of a bitmask of shape {tuple(bitmask.shape)}"
        )
    for row, each in zip(rows, masks_of_rows, strict=True):
        table[row, width:] = 0
        table[row, :width] = each


def _pairs(matchers: Sequence[GrammarMatcher], parts: Sequence[_T]) -> list[tuple[GrammarMatcher, _T]]:
    if len(matchers) != len(parts):
        raise RuntimeError(
            f"{counted(len(matchers), 'matcher')} and {counted(len(parts), 'argument')}: give one for each"
        )
    return list(zip(matchers, parts, strict=True))


def bits(bitmask: torch.Tensor, size: int) -> torch.Tensor:
    """A bitmask, int32 (rows, words), as booleans (rows, size)."""
    places = torch.arange(32, dtype=torch.int32)
    return ((bitmask[:, :, None] >> places) & 1).reshape(len(bitmask), -1)[:, :size].bool()


def packed(allowed: torch.Tensor) -> torch.Tensor:
    """Booleans (rows, size) as a bitmask, int32 (rows, ceil(size / 32)). The remaining bits are 0 (not allowed)."""
    rows, size = allowed.shape
    padded = torch.zeros((rows, -(-size // 32) * 32), dtype=torch.int64)
    padded[:, :size] = allowed
    words = (padded.reshape(rows, -1, 32) << torch.arange(32)).sum(2)
    return (words - (words >= 2**31).to(torch.int64) * 2**32).to(torch.int32)


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """The shape of a bitmask: (rows, words of 32 bits in a row)."""
    return batch_size, -(-vocab_size // 32)


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> torch.Tensor:
    """A bitmask that allows every token, int32 of shape ``get_bitmask_shape(batch_size, vocab_size)``."""
    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=bitmask_dtype)


def reset_token_bitmask(bitmask: torch.Tensor) -> None:
    """Allow every token again."""
    bitmask.fill_(-1)


def apply_token_bitmask_inplace(
    logits: torch.Tensor,
    bitmask: torch.Tensor,
    *,
    vocab_size: int | None = None,
    indices: Sequence[int] | None = None,
    backend: str = "auto",
) -> None:
    """Set the logits of forbidden tokens to -inf, on any device. Tokens beyond the mask are forbidden as well.

    ``backend``: a name that xgrammar knows; the device of the logits decides what does the work.
    """
    if backend not in _BACKENDS:
        raise ValueError(
            f"apply_token_bitmask_inplace: backend must be one of {', '.join(_BACKENDS)}, not {shown(backend)}"
        )
    raising(masks.apply_token_bitmask_inplace)(
        logits,
        bitmask,
        vocab_size=vocab_size,
        indices=None if indices is None else list(indices),
        check_nan=False,
    )
