"""The slow twin of calls: every text of a call with given values, by trying all of them against the signature."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def call_texts(
    target: Callable[..., Any], values: dict[str, Sequence[str]], arguments: str, defaults: str
) -> Iterator[str]:
    """Texts of calls whose arguments stand in order, each written as one of ``values``: some by position, then some by
    keyword; those that ``inspect`` can bind, and that ``arguments`` and ``defaults`` ask for.
    """
    signature = inspect.signature(target)
    names = list(signature.parameters)
    for ways in itertools.product(("", "position", "keyword"), repeat=len(names)):
        used = [(name, way) for name, way in zip(names, ways, strict=True) if way]
        placed = sum(way == "position" for _, way in used)
        if (
            any(way == "keyword" for _, way in used[:placed])
            or [n for n, _ in used[:placed]] != names[:placed]
        ):
            continue
        try:
            signature.bind(*names[:placed], **{name: 0 for name, way in used if way == "keyword"})
        except TypeError:
            continue
        if not all(
            _asked(signature.parameters[name], way, arguments, defaults)
            for name, way in zip(names, ways, strict=True)
        ):
            continue
        for chosen in itertools.product(*(values[name] for name, _ in used)):
            written = [
                text if way == "position" else f"{name}={text}"
                for (name, way), text in zip(used, chosen, strict=True)
            ]
            yield f"{target.__name__}({', '.join(written)})"


def _asked(parameter: inspect.Parameter, way: str, arguments: str, defaults: str) -> bool:
    optional = parameter.default is not parameter.empty
    if optional and defaults != "any" and bool(way) != (defaults == "write"):
        return False
    if way == "position":
        return arguments != "keyword" or parameter.kind is parameter.POSITIONAL_ONLY
    return way == "" or arguments != "positional" or parameter.kind is parameter.KEYWORD_ONLY
