"""n-gram models with exact back-off, over characters, words or token ids.

A state is a context. A symbol that is listed after the context leads to the longest listed context that is a suffix of
the symbols read. Any other symbol is looked up in the context without its first symbol, at the price of the back-off
weight: a failure arc (phi), not an epsilon. So each symbol has one path, and its weight is the model's probability.

Over bytes, a context has a trie of the spellings of its symbols, with the weight on the last byte. A node of that trie
fails to the same node of the shorter context. So a symbol that shares a prefix with a listed symbol backs off exactly
when it departs from it. Spellings must be prefix-free: characters are; words are spelled with a trailing space.

Cost: a state for each byte of each n-gram.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from tokenfst.automata.openfst.labels import symbol_bytes
from tokenfst.automata.weights.arpa import Words, read_arpa
from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.automata.weights.machine import by_failure, make
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, refuse
from tokenfst.common.plurals import counted
from tokenfst.errors import ArgumentValueError, ArpaError, BudgetExceeded

Unit = Literal["character", "word", "token"]
_UNITS = ("character", "word", "token")
BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
_NAMED = {"<space>": " ", "<tab>": "\t", "<newline>": "\n"}


class NGramModel:
    """An n-gram model with back-off; immutable. ``from_arpa`` reads one.

    ``unit``: the kind of symbols. "character": a character, a byte such as ``0x0a``, or ``<space>``, ``<tab>``,
    ``<newline>``. "word": words with single spaces between them. "token": token ids, as decimal numbers.
    """

    def __init__(
        self, order: int, log_probs: dict[Words, float], backoffs: dict[Words, float], unit: Unit
    ) -> None:
        if unit not in _UNITS:
            refuse("NGramModel", "unit", unit, " or ".join(map(repr, _UNITS)), ArgumentValueError)
        self.order, self.unit = order, unit
        self._log_probs, self._backoffs = log_probs, backoffs
        contexts = {words[:-1] for words in self._log_probs} | set(backoffs) | {()}
        self.contexts: tuple[Words, ...] = tuple(sorted(contexts, key=lambda words: (len(words), words)))
        """The states: contexts with listed continuations or with a back-off weight; the empty one first."""
        self.numbers = {words: number for number, words in enumerate(self.contexts)}
        for words in contexts:
            # Else a symbol that is backed off would lead on by a context that its back-off does not know.
            if words and words not in self._log_probs:
                raise ArpaError(f"the context {' '.join(words)!r} is no n-gram of the model itself")
        if (END,) not in self._log_probs:
            raise ArpaError(f"the model has no unigram {END}: no text could end")
        for words in self._log_probs:
            # Else a text would have the symbol as what it is, or as an unknown one.
            if words[-1:] not in self._log_probs:
                raise ArpaError(f"the n-gram {' '.join(words)!r} predicts {words[-1]!r}, which is no unigram")

    @classmethod
    @checked
    def from_arpa(cls, text: str, *, unit: Unit) -> NGramModel:
        """The model in the text of an ARPA file. Raises ``ArpaError``, which names the faulty line. Linear."""
        found = read_arpa(text)
        return cls(found.order, found.log_probs, found.backoffs, unit)

    def __repr__(self) -> str:
        return (
            f"<NGramModel of order {self.order}: {counted(len(self._log_probs), 'n-gram')} over {self.unit}s>"
        )

    @property
    def symbols(self) -> tuple[str, ...]:
        """Every symbol except the begin, end and unknown symbols."""
        return tuple(
            words[0] for words in self._log_probs if len(words) == 1 and words[0] not in (BEGIN, END, UNKNOWN)
        )

    # --- one symbol at a time -------------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The context at the beginning of a text."""
        return self.longest((BEGIN,))

    def longest(self, words: Words) -> int:
        """The longest context that is a suffix of ``words``."""
        for cut in range(max(len(words) - self.order + 1, 0), len(words) + 1):
            if (number := self.numbers.get(words[cut:])) is not None:
                return number
        raise AssertionError("the empty context is always there")

    def shorter(self, context: int) -> tuple[int, float]:
        """The context that a context backs off to, and the log of the back-off weight."""
        words = self.contexts[context]
        return self.longest(words[1:]), self._backoffs.get(words, 0.0)

    def listed(self) -> Iterator[tuple[int, str, float]]:
        """Each n-gram as (context, symbol, log-probability), except those that predict the begin symbol."""
        for words, log_prob in self._log_probs.items():
            if words[-1] != BEGIN:
                yield self.numbers[words[:-1]], words[-1], log_prob

    def log_prob(self, context: int, symbol: str) -> float:
        """The log-probability of a symbol in a context, with back-off."""
        cost = 0.0
        if (symbol,) not in self._log_probs:
            symbol = UNKNOWN
        while True:
            words = self.contexts[context]
            if (found := self._log_probs.get((*words, symbol))) is not None:
                return cost + found
            if not words:
                return -np.inf
            context, back = self.shorter(context)
            cost += back

    def after(self, context: int, symbol: str) -> int:
        """The context after a symbol."""
        if (symbol,) not in self._log_probs:
            symbol = UNKNOWN
        return self.longest((*self.contexts[context], symbol))

    @checked
    def log_weight(self, symbols: Sequence[str]) -> float:
        """The log-probability of a complete sequence of symbols, including the end. O(symbols x order)."""
        at, total = self.start, 0.0
        for symbol in symbols:
            total += self.log_prob(at, symbol)
            at = self.after(at, symbol)
        return total + self.log_prob(at, END)

    # --- over bytes -----------------------------------------------------------------------------------

    @checked
    def to_weighted(self, budget: Budget | None = None) -> WeightedLanguage:
        """The model over bytes: a deterministic weighted language with failure arcs.

        Unknown symbols have no weight, because they have no spelling. Raises ``ArpaError`` for token ids (compile such
        a model against a vocabulary) and for symbols that are not characters. A state for each byte of an n-gram, and
        one failure arc a state.
        """
        if self.unit == "token":
            raise ArpaError(
                "the model is over token ids, which have bytes in a vocabulary only: compile(model, vocabulary)"
            )
        return _Spelled(self, budget or Budget()).language()

    def spelling(self, symbol: str) -> bytes:
        """The bytes of a symbol; for a word, including the trailing space."""
        if self.unit == "word":
            return symbol.encode() + b" "
        if symbol in _NAMED:
            return _NAMED[symbol].encode()
        data = symbol_bytes(symbol)
        if data is not None:
            return data
        raise ArpaError(
            f"the symbol {symbol!r} is no character, byte such as 0x0a, or one of {', '.join(_NAMED)}: is "
            "the model over words?"
        )


class _Spelled:
    """The tries of all contexts. Node (context, b"") is the context itself."""

    def __init__(self, model: NGramModel, budget: Budget) -> None:
        self._model, self._budget = model, budget
        self._nodes: dict[tuple[int, bytes], int] = {}
        self._arcs: list[tuple[int, int, float, int]] = []
        self._ends: dict[int, float] = {}
        self._last: set[bytes] = set()

    def language(self) -> WeightedLanguage:
        model, words = self._model, self._model.unit == "word"
        begin = self._node(
            -1, b""
        )  # as the start's context, but that a text of words may be empty there alone
        for context in range(len(model.contexts)):
            self._node(context, b"")
        spelled: dict[str, bytes] = {}
        for context, symbol, log_prob in model.listed():
            if symbol in (END, UNKNOWN):
                continue
            data = spelled.setdefault(symbol, model.spelling(symbol))
            target = model.after(context, symbol)
            for place in range(1, len(data)):
                if (context, data[:place]) not in self._nodes:
                    self._arc(
                        context, data[: place - 1], data[place - 1], 0.0, self._node(context, data[:place])
                    )
            self._arc(context, data[:-1], data[-1], log_prob, self._node(target, b""))
            if words:
                node = self._node(context, data[:-1])
                self._ends[node] = log_prob + model.log_prob(target, END)
        self._free_of_prefixes(spelled)
        return self._made(begin, words)

    def _node(self, context: int, prefix: bytes) -> int:
        found = self._nodes.setdefault((context, prefix), len(self._nodes))
        if found >= self._budget.states:
            raise BudgetExceeded("states", self._budget.states, "an n-gram model over bytes")
        return found

    def _arc(self, context: int, prefix: bytes, byte: int, weight: float, target: int) -> None:
        self._arcs.append((self._node(context, prefix), byte, weight, target))

    def _made(self, begin: int, words: bool) -> WeightedLanguage:
        model = self._model
        fails, costs = np.full(len(self._nodes), -1), np.zeros(len(self._nodes))
        for (context, prefix), node in self._nodes.items():
            cost = 0.0
            if context == -1:
                fails[node] = self._nodes[model.start, b""]
                continue
            while context:
                context, back = model.shorter(context)
                cost += back
                if (context, prefix) in self._nodes:
                    fails[node], costs[node] = self._nodes[context, prefix], cost
                    break
        finals = np.full(len(self._nodes), -np.inf)
        finals[begin] = model.log_prob(model.start, END)
        for (context, prefix), node in self._nodes.items():
            if context >= 0 and not prefix and not words:
                finals[node] = model.log_prob(context, END)
        if words:
            # A context has no own node for words that end there: shorter contexts count, with their back-off weight.
            for node in by_failure(fails.astype(np.int32)):
                if node == begin:
                    continue
                back = finals[fails[node]] + costs[node] if fails[node] >= 0 else -np.inf
                finals[node] = self._ends.get(node, back)
        columns = zip(*self._arcs, strict=True) if self._arcs else ([], [], [], [])
        source, label, weight, target = (np.array(each) for each in columns)
        arcs = (
            source.astype(np.int64), label.astype(np.int64), weight.astype(np.float64), target.astype(np.int64),
        )  # fmt: skip
        return WeightedLanguage(make(begin, 0.0, finals, arcs, (fails, costs)), repr(model), self._budget)

    @staticmethod
    def _free_of_prefixes(spelled: dict[str, bytes]) -> None:
        by_bytes: dict[bytes, str] = {}
        for symbol, data in spelled.items():
            if data in by_bytes:
                raise ArpaError(
                    f"the symbols {by_bytes[data]!r} and {symbol!r} are spelled by the same bytes {data!r}"
                )
            by_bytes[data] = symbol
        for data, symbol in by_bytes.items():
            for cut in range(1, len(data)):
                if data[:cut] in by_bytes:
                    other = by_bytes[data[:cut]]
                    raise ArpaError(
                        f"the symbol {symbol!r} begins with the bytes of {other!r}: what was read would be ambiguous"
                    )
