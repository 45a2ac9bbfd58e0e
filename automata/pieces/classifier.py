"""A classifier of characters beyond ASCII, as an automaton over their UTF-8 bytes.

An array of classes by code point is divided into rows of 64 (the last continuation byte), rows of 64 rows (the one
before), and so on. Equal blocks are one state, so the hundreds of ranges of word characters take about as many states.

Cost: one pass over all code points for each set of special characters; the last few are cached.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tokenfst.automata.characters.classes import category
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, SURROGATES

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Classifier:
    """The classifier's tables.

    ``table`` (states, byte classes): the next state if the entry is not negative; otherwise -1 - k stands for outcome
    k. State 0 reads the first byte. ``outcomes``: the class of each outcome; one more outcome, the last, is "no
    character". ``classes`` (128,): the class of each byte from 0x80 on.
    """

    table: Ints
    outcomes: Ints
    classes: Ints


@lru_cache(maxsize=1)
def word_characters() -> npt.NDArray[np.bool_]:
    r"""A read-only array of 0x110000 booleans: for each code point, whether it is a word character, as in ``\w``."""
    words = np.zeros(MAX_CODE_POINT + 1, np.bool_)
    for low, high in category("w", True):
        words[low : high + 1] = True
    words.flags.writeable = False
    return words


@lru_cache(maxsize=16)
def classifier(special: tuple[tuple[str, int], ...]) -> Classifier:
    """The classifier of characters beyond ASCII.

    Word characters have class 1, other characters 0. ``special``: pairs of a character and its own class instead.
    """
    by_code = word_characters().astype(np.int64)
    for character, number in special:
        by_code[ord(character)] = number
    outcomes, outcome = np.unique(by_code[128:], return_inverse=True)
    none = len(outcomes)
    values = np.full(MAX_CODE_POINT + 1, none, np.int64)
    values[128:] = outcome.ravel()
    for begin, end in SURROGATES:
        values[begin : end + 1] = none
    values = -1 - values
    rows: list[Ints] = []
    # The states of each level: blocks of 64 code points, blocks of 64 such blocks, and once more for four bytes.
    last = _numbered(values.reshape(-1, 64), rows)
    middle = _numbered(last.reshape(-1, 64), rows)
    # After a lead byte 0xF0 + k: 64 blocks of 4,096 code points; those beyond the last one are not characters.
    planes = np.full(5 * 64, -1 - none, np.int64)
    planes[: len(middle)] = middle
    planes[:16] = -1 - none  # overlong
    high = _numbered(planes.reshape(-1, 64), rows)
    three = middle[:16].copy()
    # 0xE0 must not spell characters that have two bytes.
    first = rows[int(three[0]) - 1].copy()
    first[:32] = -1 - none
    three[0] = _numbered(first.reshape(1, 64), rows)[0]
    lead = np.full(128, -1 - none, np.int64)
    lead[0x42:0x60] = last[2:32]
    lead[0x60:0x70] = three
    lead[0x70:0x75] = high
    table = np.full((1 + len(rows), 128), -1 - none, np.int64)
    table[0] = lead
    if rows:
        table[1:, :64] = np.stack(rows)
    columns, classes = np.unique(table, axis=1, return_inverse=True)
    return Classifier(columns, outcomes, classes.ravel())


def _numbered(blocks: Ints, rows: list[Ints]) -> Ints:
    """A state for each distinct block, appended to ``rows``. All are separate states, because UTF-8's lengths are
    fixed.
    """
    distinct, number = np.unique(blocks, axis=0, return_inverse=True)
    first = 1 + len(rows)
    rows.extend(distinct)
    return first + number.ravel()
