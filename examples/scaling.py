"""Time for a token: what a constraint costs as the text grows.

With the index of Willard and Louf ("Efficient guided generation for large language models", the paper of Outlines)
the cost of a step does not depend on the number of tokens generated so far. It does in a matcher without a state,
which reads the whole text again at each step. Four costs are measured along a text of many tokens:

- a mask and an advance of a regular expression;
- the same of a JSON grammar with its stack;
- a mask of the regular expression when the text is read from the start at each step;
- for comparison, one step of the small model, whose attention grows with its text.

Writes docs/experiments/scaling.md and .png.
"""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import torch
from corpus import json_document
from experiments import Experiment, table
from small_model import SmallModel, load

import tokenfst
from tokenfst import TokenAutomaton, allocate_token_bitmask, compile, regex
from tokenfst.decoding.models.language_model import as_language_model

BLOCKS = 16


def main() -> None:
    run = Experiment.start("scaling", __doc__ or "")
    loaded = load()
    length = run.pick(512, 4096, 16384)
    ids = tokenized(loaded, length, "")
    anything = compile(regex(r"([^\n]|\n[^\n])*"), loaded.vocabulary)
    document = compile(tokenfst.bundled_grammar("json"), loaded.vocabulary)
    inside = tokenized(loaded, length, "[")
    series = {
        "regular expression": least(lambda: walked(anything, ids)),
        "JSON grammar": least(lambda: walked(document, inside)),
        "read from the start": least(lambda: from_the_start(anything, ids, length // 64)),
    }
    run.note("constraints")
    series["the model itself"] = model_steps(loaded.model, ids[: min(length, 2048)], length)
    places = [(2 * block + 1) * length // (2 * BLOCKS) for block in range(BLOCKS)]
    shown = (0, 3, 7, 11, 15)
    rows = [
        (name, *(1e6 * float(values[block]) if block < len(values) else "" for block in shown))
        for name, values in series.items()
    ]
    run.write(
        f"Microseconds for a token, the median of each {length // BLOCKS} tokens, the least of three runs; {length} "
        "tokens of JSON. The model has no more than 2,048 positions; its figures are processor time.",
        [table(("after tokens", *(str(places[block]) for block in shown)), rows)],
        lambda axes: plot(axes, places, series),
        columns=1,
    )


def tokenized(loaded: SmallModel, length: int, opening: str) -> list[int]:
    """``length`` token ids of JSON values, with ``, `` between them, after ``opening``."""
    draw, ids = random.Random(5), []
    while len(ids) < length:
        made = json_document(draw, ["A man.", "A dog.", "A ball."]).rsplit("\n", 1)[1].split(": ", 1)[1]
        ids += loaded.tokenizer((", " if ids else opening) + made, add_special_tokens=False).input_ids
    return ids[:length]


def medians(seconds: list[float]) -> np.ndarray:
    """The median of each of ``BLOCKS`` blocks of equal size."""
    return np.median(np.array(seconds[: len(seconds) // BLOCKS * BLOCKS]).reshape(BLOCKS, -1), axis=1)


def least(measure: Any) -> np.ndarray:
    return np.min([medians(measure()) for _ in range(3)], axis=0)


def walked(automaton: TokenAutomaton, ids: list[int]) -> list[float]:
    """Seconds of each advance and mask."""
    matcher, bitmask = automaton.matcher(), allocate_token_bitmask(1, len(automaton.vocabulary))
    seconds = []
    for token in ids:
        begin = time.perf_counter()
        matcher.fill_next_token_bitmask(bitmask, 0)
        taken = matcher.accept_token(token)
        seconds.append(time.perf_counter() - begin)
        assert taken, "the text is in the language"
    return seconds


def from_the_start(automaton: TokenAutomaton, ids: list[int], every: int) -> list[float]:
    """Seconds to read the text from its start and make the mask, after every ``every`` tokens."""
    bitmask = allocate_token_bitmask(1, len(automaton.vocabulary))
    seconds = []
    for count in range(0, len(ids), every):
        begin = time.perf_counter()
        matcher = automaton.matcher()
        matcher.accept_tokens(ids[:count])
        matcher.fill_next_token_bitmask(bitmask, 0)
        seconds.append(time.perf_counter() - begin)
    return seconds


def model_steps(model: Any, ids: list[int], length: int) -> np.ndarray:
    """The median seconds of the model's steps in each block; blocks have the same size as those of the constraints."""
    session = as_language_model(model).start([ids[:1]])
    parents, seconds = torch.tensor([0]), []
    for token in ids[1:]:
        begin = time.process_time()  # others may use the machine, and a step is long
        session.extend(parents, torch.tensor([token]))
        seconds.append(time.process_time() - begin)
    size = length // BLOCKS
    return np.array(
        [np.median(seconds[start : start + size]) for start in range(0, len(seconds) - size // 2, size)]
    )


def plot(axis: Any, places: list[int], series: dict[str, np.ndarray]) -> None:
    for name, values in series.items():
        axis.plot(places[: len(values)], 1e6 * values, marker="o", label=name)
    axis.set(yscale="log", xlabel="tokens generated", ylabel="microseconds for a token")
    axis.legend(fontsize=8)


if __name__ == "__main__":
    main()
