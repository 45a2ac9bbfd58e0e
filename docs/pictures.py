"""The pictures of README.md and the site that ``draw`` makes, each in light and in dark.

    python docs/pictures.py

writes ``docs/images/NAME-light.svg`` and ``docs/images/NAME-dark.svg`` (with Graphviz' ``dot``), and
``docs/images/fst-PAGE-VARIABLE.svg``, the machine of that name in the example of docs/fst/PAGE.md.
``python docs/pictures.py fst`` draws these alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import tokenfst
import tokenfst.fst as fst
from tokenfst.automata.pictures.drawing import HEADER, Drawing

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


def letters() -> fst.SymbolTable:
    """What labels of bytes stand for."""
    table = fst.SymbolTable("letters")
    table.add_symbol("ε", 0)
    for byte in range(33, 127):
        table.add_symbol(chr(byte), byte)
    return table


def draw_examples() -> None:
    """The machines of the pages of operations that show them."""
    table = letters()
    for page in sorted((IMAGES.parent / "fst").glob("*.md")):
        text = page.read_text()
        shown = re.findall(rf"images/fst-{page.stem}-(\w+)\.svg", text)
        if not shown:
            continue
        namespace: dict[str, fst.VectorFst] = {}
        exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], namespace)  # type: ignore[index]
        for name in shown:
            machine = namespace[name]
            acceptor = machine.properties(0x10000) != 0
            drawing = machine.draw(None, table, table, acceptor=acceptor, portrait=True, fontsize=12)
            drawing.save(IMAGES / f"fst-{page.stem}-{name}.svg")


def main() -> None:
    """Draw all of them."""
    draw_examples()
    if sys.argv[1:] == ["fst"]:
        return
    vocabulary = tokenfst.load_vocabulary(VOCABULARY)
    for name, pattern in PATTERNS.items():
        picture = tokenfst.compile(tokenfst.regex(pattern), vocabulary).draw()
        for theme, (lines, tokens) in COLOURS.items():
            coloured(picture, lines, tokens).save(IMAGES / f"{name}-{theme}.svg")


if __name__ == "__main__":
    main()
