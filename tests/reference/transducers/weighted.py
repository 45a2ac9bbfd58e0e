"""Weighted languages by enumeration: every path of every text, and scores of tokens by their definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from tokenfst.automata.weights.machine import Machine
from tokenfst.automata.weights.ngrams import BEGIN, END, UNKNOWN

Words = tuple[str, ...]


def paths(machine: Machine, text: bytes) -> Iterator[tuple[int, float]]:
    """Each path that reads a text: where it ends, and the product of its weights. A failure is taken where a
    state has no arc of its own for the byte, and only there.
    """
    if not machine.num_states:
        return
    pending = [(machine.start, math.exp(machine.initial), 0)]
    while pending:
        state, weight, place = pending.pop()
        if place == len(text):
            yield state, weight
            continue
        here, cost = state, 1.0
        while True:
            arcs = range(machine.offsets[here], machine.offsets[here + 1])
            own = [arc for arc in arcs if machine.labels[arc] == text[place]]
            if own or machine.failures[here] < 0:
                break
            cost *= math.exp(machine.failure_weights[here])
            here = int(machine.failures[here])
        pending += [
            (int(machine.targets[arc]), weight * cost * math.exp(machine.weights[arc]), place + 1)
            for arc in own
        ]


def prefix_weight(machine: Machine, text: bytes) -> float:
    """What all paths that read a text weigh together, wherever they end."""
    return math.fsum(weight for _, weight in paths(machine, text))


def text_weight(machine: Machine, text: bytes) -> float:
    """What the accepting paths of a text weigh together."""
    return math.fsum(weight * math.exp(machine.finals[state]) for state, weight in paths(machine, text))


def token_scores(
    machine: Machine, before: bytes, tokens: Sequence[bytes], ends: Sequence[int], special: float = -math.inf
) -> list[float]:
    """The score of each token after a text, by the definition."""
    whole = prefix_weight(machine, before)
    found = []
    for token, data in enumerate(tokens):
        if token in ends:
            found.append(_log(text_weight(machine, before) / whole))
        elif not data:
            found.append(special)
        else:
            found.append(_log(prefix_weight(machine, before + data) / whole))
    return found


def texts(alphabet: bytes, longest: int) -> Iterator[bytes]:
    """All texts over an alphabet, up to a length."""
    for length in range(longest + 1):
        for text in itertools.product(alphabet, repeat=length):
            yield bytes(text)


def occurrences(text: bytes, phrase: bytes) -> int:
    """How often a phrase stands in a text, overlapping ones too."""
    return sum(text[at : at + len(phrase)] == phrase for at in range(len(text)))


def back_off(log_probs: Mapping[Words, float], backoffs: Mapping[Words, float], words: Words) -> float:
    """The log-probability of the last of ``words`` after the others, as the definition of back-off has it: of
    the longest n-gram that is listed, with the back-off weights of the contexts that did not list it.
    """
    if words in log_probs:
        return log_probs[words]
    if len(words) == 1:
        return -math.inf
    return backoffs.get(words[:-1], 0.0) + back_off(log_probs, backoffs, words[1:])


def ngram_weight(
    order: int, log_probs: Mapping[Words, float], backoffs: Mapping[Words, float], symbols: Words
) -> float:
    """The log-probability of a sequence of symbols and its end."""
    known = tuple(symbol if (symbol,) in log_probs else UNKNOWN for symbol in symbols)
    whole = (BEGIN, *known, END)
    return math.fsum(
        back_off(log_probs, backoffs, whole[max(at - order + 1, 0) : at + 1]) for at in range(1, len(whole))
    )


def lattice_total(
    arcs: Sequence[tuple[int, int]], weights: Sequence[float], finals: Sequence[float], start: int = 0
) -> float:
    """The log-sum of all paths from the start to an end, by walking each."""

    def walk(state: int) -> Iterator[float]:
        yield math.exp(finals[state])
        for (source, target), weight in zip(arcs, weights, strict=True):
            if source == state:
                yield from (math.exp(weight) * rest for rest in walk(target))

    return _log(math.fsum(walk(start)))


def sums(weight: Callable[[bytes], float], alphabet: bytes, longest: int) -> dict[bytes, float]:
    """The weights of all texts up to a length, those of none left out."""
    found = {text: weight(text) for text in texts(alphabet, longest)}
    return {text: value for text, value in found.items() if value > 0}


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
