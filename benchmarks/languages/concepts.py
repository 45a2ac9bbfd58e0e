"""Figures of docs/research/concepts.md: texts with five ordered concepts, with their inflections, and a dot at the end.

python -m benchmarks.languages.concepts [--save]
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import numpy as np

import tokenfst
from benchmarks.measuring.measure import LONG, Figure, sample
from benchmarks.measuring.record import report

FORMS = {
    "coffee": ["coffee", "coffees"],
    "cat": ["cat", "cats"],
    "toy": ["toy", "toys", "toyed", "toying"],
    "run": ["run", "runs", "ran", "running"],
    "table": ["table", "tables", "tabled", "tabling"],
}
TEXT = "Over her second coffee she saw that the cats, as ever, had found a toy; one of them ran under the table. "


def figures() -> Iterator[Figure]:
    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    spelled = {token: number for number, token in enumerate(vocabulary.tokens)}
    pieces = [piece.encode() for piece in re.findall(r" ?\w+|.", TEXT * 4)]
    tokens = [
        number
        for piece in pieces
        for number in ([spelled[piece]] if piece in spelled else [spelled[bytes([byte])] for byte in piece])
    ]
    row = tokenfst.allocate_token_bitmask(1, len(vocabulary))

    def ordered() -> tokenfst.Matcher:
        language = tokenfst.contains_in_order(FORMS) & tokenfst.regex(r".*\.", re.DOTALL)
        matcher = tokenfst.compile(language, vocabulary).matcher()
        matcher.fill_next_token_bitmask(row, 0)
        return matcher

    least = min(sample(ordered, runs=5))
    yield Figure("five concepts in order, forms to the first mask", "time", least, least, 5)
    matcher = ordered()
    times: list[list[float]] = []
    for _ in range(5):
        matcher.reset()
        times.append([])
        for token in tokens:
            begin_cpu, begin = time.process_time_ns(), time.perf_counter_ns()
            matcher.fill_next_token_bitmask(row, 0)
            assert matcher.accept_token(token)
            spent, cpu = time.perf_counter_ns() - begin, time.process_time_ns() - begin_cpu
            times[-1].append((cpu if spent >= LONG else spent) / 1e9)
    yield Figure("tokens of the text", "number", len(tokens), unit="count")
    for name, taken in (("first time", times[0]), ("again", np.min(times[1:], axis=0))):
        for part in (50, 99):
            yield Figure(f"mask and advance, {name}", f"p{part}", float(np.percentile(taken, part)))
    for count in (3, 5, 6):
        words = ["coffee", "cat", "toy", "run", "table", "house"][:count]
        begin = time.process_time()
        assert tokenfst.contains_all(words).accepts(" ".join(words))
        yield Figure(f"contains_all of {count} to the first answer", "time", time.process_time() - begin)


if __name__ == "__main__":
    report("concepts", figures())
