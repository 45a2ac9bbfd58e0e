"""The pictures of README.md and the site that ``draw`` makes, each in light and in dark.

    python docs/pictures.py

writes ``docs/images/NAME-light.svg`` and ``docs/images/NAME-dark.svg`` (with Graphviz' ``dot``).
"""

from __future__ import annotations

from pathlib import Path

import tokenfst
from tokenfst.automata.languages.drawing import HEADER, Drawing

IMAGES = Path(__file__).resolve().parent / "images"
VOCABULARY = "mistral:tekken_240911"
PATTERNS = {"answer": "(yes|no)!"}
COLOURS = {"light": ("#1f2328", "#0550ae"), "dark": ("#e6edf3", "#79c0ff")}
"""Of lines and of the tokens on them."""


def coloured(picture: Drawing, lines: str, tokens: str) -> Drawing:
    """The same picture without its title, on no background."""
    rows = [row for row in picture.dot.splitlines() if "labelloc=t" not in row]
    at = len(HEADER)
    style = [
        "  graph [bgcolor=transparent];",
        f'  node [color="{lines}", fontcolor="{lines}"];',
        f'  edge [color="{lines}", fontcolor="{tokens}"];',
    ]
    return Drawing("\n".join([*rows[:at], *style, *rows[at:], ""]))


def main() -> None:
    """Draw all of them."""
    vocabulary = tokenfst.load_vocabulary(VOCABULARY)
    for name, pattern in PATTERNS.items():
        picture = tokenfst.compile(tokenfst.regex(pattern), vocabulary).draw()
        for theme, (lines, tokens) in COLOURS.items():
            coloured(picture, lines, tokens).save(IMAGES / f"{name}-{theme}.svg")


if __name__ == "__main__":
    main()
