r"""n-gram models in ARPA format: ``\data\``, ``\1-grams:``, ..., ``\end\``, logarithms to the base 10.

A line of order k has a logarithm, k symbols and, unless k is the highest order, the logarithm of a back-off weight (0
if missing), separated by white space of ASCII; other spaces and line separators are parts of symbols. Linear.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from tokenfst.common.digits import natural
from tokenfst.errors import ArpaError

_HEAD = re.compile(r"\\(\d+)-grams:")
_COUNT = re.compile(r"ngram\s+(\d+)\s*=\s*(\d+)")
_LINES = re.compile("\r\n|\r|\n")
_SPACES = " \t\v\f"
_LOG_10 = math.log(10)
_MOST = 10**9
"""The greatest order, and the greatest number of n-grams, that is read."""
_ZERO = -99.0
"""The conventional logarithm of zero in files."""

Words = tuple[str, ...]


class Arpa(NamedTuple):
    """The contents of a file, in natural logarithms: the probability of each n-gram's last symbol after the others, and
    the back-off weights that are not One.
    """

    order: int
    log_probs: dict[Words, float]
    backoffs: dict[Words, float]


def read_arpa(text: str) -> Arpa:
    """The contents of a file. Raises ``ArpaError``, which names the faulty line."""
    counts: dict[int, int] = {}
    found: dict[Words, float] = {}
    backoffs: dict[Words, float] = {}
    seen: dict[int, int] = {}
    order, begun, ended = 0, False, False
    for number, line in enumerate(_LINES.split(text), 1):
        line = line.strip(_SPACES)
        if not line or not begun:
            begun = begun or line == "\\data\\"
            continue
        if line == "\\end\\":
            ended = True
            break
        head, count = _HEAD.fullmatch(line), _COUNT.fullmatch(line)
        if head:
            order = natural(head[1], _MOST)
            if order not in counts:
                raise ArpaError(f"line {number}: {line} has no count in \\data\\")
        elif count and order == 0:
            counts[natural(count[1], _MOST)] = natural(count[2], _MOST)
        else:
            _read_line(line, number, order, counts, found, backoffs)
            seen[order] = seen.get(order, 0) + 1
    if not ended:
        raise ArpaError("the text has no \\data\\ line" if not begun else "the text ends before \\end\\")
    if sorted(counts) != list(range(1, len(counts) + 1)) or not counts:
        raise ArpaError(f"\\data\\ counts n-grams of the orders {sorted(counts)}: 1, 2, ... are due")
    for each, due in counts.items():
        if seen.get(each, 0) != due:
            raise ArpaError(f"\\data\\ promises {due:,} {each}-grams, and there are {seen.get(each, 0):,}")
    return Arpa(max(counts), found, backoffs)


def _read_line(
    line: str, number: int, order: int, counts: dict[int, int], found: dict[Words, float],
    backoffs: dict[Words, float],
) -> None:  # fmt: skip
    parts = re.split(f"[{_SPACES}]+", line)
    if order == 0:
        raise ArpaError(f"line {number}: {line[:60]!r} is no count of n-grams, which is written ngram 2=1000")
    if not order + 1 <= len(parts) <= order + 1 + (order < max(counts)):
        raise ArpaError(
            f"line {number}: {line[:60]!r} is no {order}-gram: a logarithm, {order} symbols and perhaps a back-off"
        )
    words = tuple(parts[1 : order + 1])
    if words in found:
        raise ArpaError(f"line {number}: the n-gram {' '.join(words)!r} occurs twice")
    found[words] = _log(parts[0], number, 0.0)
    if len(parts) > order + 1:
        back = _log(parts[-1], number, math.inf)
        if back != 0:
            backoffs[words] = back


def _log(text: str, number: int, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    # A probability that was rounded up to a little more than 1 counts as 1.
    if math.isnan(value) or value == math.inf or value > most + 1e-4:
        raise ArpaError(f"line {number}: {text!r} is no logarithm of a probability or back-off weight")
    return -math.inf if value <= _ZERO else min(value, most) * _LOG_10
