"""Unicode's simple case folding: characters that differ only in case.

``str.casefold`` is full folding (Unicode Standard, section 3.13, D145). Where it gives one character, that is also the
simple folding (status C of CaseFolding.txt); where it gives several, the simple folding (status S) is the lower case if
that is one character, and otherwise the character itself. (Unicode 15.1 adds three pairs to status S that this rule
misses: U+FB05, U+1FD3 and U+1FE3 are folded to themselves here.)

Cost: about 0.3 s for all characters, once, on first use.
"""

from __future__ import annotations

import sys
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tokenfst.automata.characters.utf8 import Ranges, normalize

_Codes = NDArray[np.int64]


def simple_fold(character: str) -> str:
    """The simple case folding of one character."""
    for folded in (character.casefold(), character.lower()):
        if len(folded) == 1:
            return folded
    return character


@lru_cache(maxsize=1)
def cased_characters() -> tuple[_Codes, _Codes]:
    """The characters that differ from another one only in case, and their foldings: two int64 arrays, the first
    ascending.
    """
    folded = {
        code: ord(simple_fold(chr(code)))
        for code in range(sys.maxunicode + 1)
        if (text := chr(code)).casefold() != text
    }
    changed = {code: to for code, to in folded.items() if code != to}
    pairs = sorted((changed | {to: to for to in changed.values()}).items())
    return np.array([code for code, _ in pairs]), np.array([to for _, to in pairs])


def with_other_case(ranges: Ranges) -> Ranges:
    """The characters that differ from some character of a set at most in case."""
    if not ranges:
        return ranges
    cased, folded = cased_characters()
    low, high = np.array(ranges, np.int64).reshape(-1, 2).T
    bounds = np.stack([np.searchsorted(cased, low), np.searchsorted(cased, high, side="right")]).T
    inside = [place for begin, end in bounds.tolist() for place in range(begin, end)]
    equal = cased[np.isin(folded, folded[inside])].tolist()
    return normalize((*ranges, *((code, code) for code in equal)))
