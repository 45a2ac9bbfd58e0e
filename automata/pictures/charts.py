"""Bar charts as SVG, without another package.

A picture in a file follows the reader's light or dark colours; one inside of a page is dark on white. Each bar has its
value in text beside it, so colour and length are not the only information.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_ROW, _GAP, _LEFT, _WIDTH, _RIGHT = 22, 14, 190, 380, 130
_LIGHT = "text{font:13px system-ui,sans-serif;fill:#1b1f24}.soft{fill:#4d5661}rect{fill:#2450a8}.first{fill:#c2570c}"
_DARK = "@media(prefers-color-scheme:dark){text{fill:#e8ebef}.soft{fill:#aab4bf}rect{fill:#8ab4ff}.first{fill:#ffb27a}}"
_INSIDE = re.sub(r"(?<=\})(?=[^}])|^", ".tokenfst-chart ", _LIGHT)
"""The style inside of a page, whose other pictures it must not change."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its name, its length, the text beside it, and whether it is highlighted."""

    name: str
    value: float
    shown: str
    first: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars with a title. ``logarithmic``: the scale is logarithmic, and begins at a tenth of the least value."""

    title: str
    bars: Sequence[Bar]
    logarithmic: bool = False


def svg(charts: Sequence[Chart], *, inside: bool = False) -> str:
    """Charts, one below the other, as an SVG element: for a file, or ``inside`` of a page."""
    width = _LEFT + _WIDTH + _RIGHT
    parts, at = [], _GAP
    for chart in charts:
        parts.append(f'<text x="4" y="{at + 15}" font-weight="600">{escape(chart.title)}</text>')
        at += _ROW + 4
        lengths = _lengths(chart)
        for bar, length in zip(chart.bars, lengths, strict=True):
            middle = at + 15
            kind = ' class="first"' if bar.first else ""
            parts.append(
                f'<text class="soft" x="{_LEFT - 8}" y="{middle}" text-anchor="end">{escape(bar.name)}</text>'
            )
            parts.append(
                f'<rect{kind} x="{_LEFT}" y="{at + 3}" width="{length:.1f}" height="{_ROW - 6}" rx="2"/>'
            )
            parts.append(f'<text x="{_LEFT + length + 6:.1f}" y="{middle}">{escape(bar.shown)}</text>')
            at += _ROW
        at += _GAP
    titles = "; ".join(
        f"{chart.title}: {', '.join(f'{bar.name} {bar.shown}' for bar in chart.bars)}" for chart in charts
    )
    kind = ' class="tokenfst-chart" style="background:white"' if inside else ""
    style = _INSIDE if inside else _LIGHT + _DARK
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {at}" width="{width}" height="{at}" role="img" '
        f'aria-label="{escape(titles)}"{kind}><style>{style}</style>{"".join(parts)}</svg>\n'
    )


def _lengths(chart: Chart) -> list[float]:
    values = [max(bar.value, 0.0) for bar in chart.bars]
    most = max(values, default=0.0)
    if most <= 0:
        return [0.0] * len(values)
    if not chart.logarithmic:
        return [_WIDTH * value / most for value in values]
    least = min((value for value in values if value > 0), default=most) / 10
    span = math.log(most / least)
    return [_WIDTH * math.log(value / least) / span if value > 0 else 0.0 for value in values]
