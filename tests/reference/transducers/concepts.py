"""The slow twin of concept transducers: every form tried at every place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


def occurrences(forms: Mapping[str, Sequence[str]], text: str, boundaries: bool = True) -> list[str]:
    """The concepts of a text by where their forms end; at one place the longest first, each concept once."""
    found = []
    for name, each in forms.items():
        longest: dict[int, int] = {}
        for form in each:
            for begin in range(len(text) - len(form) + 1):
                end = begin + len(form)
                if text[begin:end] != form:
                    continue
                if boundaries and _joins(text[begin - 1 : begin], form[0]):
                    continue
                if boundaries and _joins(form[-1], text[end : end + 1]):
                    continue
                longest[end] = min(begin, longest.get(end, begin))
        found += [(end, begin, name) for end, begin in longest.items()]
    return [name for _, _, name in sorted(found)]


def _joins(before: str, after: str) -> bool:
    return bool(re.fullmatch(r"\w\w", before + after))
