"""What notebooks show of a value: its kind, a few facts, and a picture where it is small.

``_repr_html_`` never raises and never takes long: facts and pictures that exceed the budget ``GLANCE`` are left out.
The budget counts work, not time, so the result does not depend on the clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tokenfst.budget import Budget

SMALL = 12
"""Most states of a machine, or rules of a grammar, that are drawn without being asked for."""
GLANCE = Budget(states=SMALL + 1, bytes=1 << 20, positions=2_000)
"""The budget of ``_repr_html_``. It allows one state more than is drawn, which suffices to see that a machine has too
many (compare ``tokenfst.budget.QUICK``).
"""
_LONGEST = 500
"""Characters of one fact."""
_STYLE = "border-collapse:collapse;margin:0.3em 0"
_HEAD = '<th style="text-align:left;padding-right:1em">'
_BODY = '<td style="text-align:left">'


def card(kind: str, facts: Iterable[tuple[str, object]], picture: str | None = None) -> str:
    """A heading, a table of names and values, and a picture in SVG below. Texts are escaped, the picture is not."""
    rows = "".join(f"<tr>{_HEAD}{escape(name)}</th>{_BODY}{_cell(value)}</td></tr>" for name, value in facts)
    drawn = "" if picture is None else f'<div style="background:white;display:inline-block">{picture}</div>'
    return f'<div><strong>{escape(kind)}</strong><table style="{_STYLE}">{rows}</table>{drawn}</div>'


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
