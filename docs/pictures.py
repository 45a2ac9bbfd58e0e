"""The pictures of README.md and the site that ``draw`` makes, each in light and in dark.

    python docs/pictures.py

writes ``docs/images/NAME-light.svg`` and ``docs/images/NAME-dark.svg`` (with Graphviz' ``dot``); those of
docs/research/pictures.md are the drawings that its snippets make. And
``docs/images/fst-PAGE-VARIABLE.svg``, the machine of that name in the example of docs/fst/PAGE.md.
``python docs/pictures.py fst`` draws these alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import tokenfst
import tokenfst.fst as fst
from tokenfst.automata.pictures.drawing import Drawing

IMAGES = Path(__file__).resolve().parent / "images"
VOCABULARY = "mistral:tekken_240911"
PATTERNS = {"answer": "(yes|no)!"}
COLOURS = {"light": ("#1f2328", "#0550ae", "#e6eef8"), "dark": ("#e6edf3", "#79c0ff", "#22324a")}
"""Of lines, of the tokens on them, and behind the names of rules."""


def coloured(picture: Drawing, lines: str, tokens: str, rules: str) -> Drawing:
    """The same picture without its title, on no background."""
    dot = picture.dot.replace(COLOURS["light"][2], rules)
    first, *rows = [row for row in dot.splitlines() if "labelloc=t" not in row]
    style = [
        f'  graph [bgcolor=transparent, color="{lines}", fontcolor="{lines}"];',
        f'  node [color="{lines}", fontcolor="{lines}"];',
        f'  edge [color="{lines}", fontcolor="{tokens}"];',
    ]
    return Drawing("\n".join([first, *style, *rows, ""]))


def explained() -> dict[str, Drawing]:
    """The pictures of docs/research/pictures.md, by the variables of its snippets."""
    text = (IMAGES.parent / "research" / "pictures.md").read_text()
    found: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(code, found)
    found["distances"] = marked(found["distances"], found["left"])
    return {name: found[name] for name in re.findall(r"images/explained-(\w+)-light\.svg", text)}


def marked(picture: Drawing, distances: dict[int, int]) -> Drawing:
    """The picture with the distance of each state below its number."""
    labels = [f'  {state} [label="{state}\\n{distance} left"];' for state, distance in distances.items()]
    return Drawing("\n".join([picture.dot.rstrip("}\n"), *labels, "}", ""]))


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
    pictures = {
        name: tokenfst.compile(tokenfst.regex(pattern), vocabulary).draw()
        for name, pattern in PATTERNS.items()
    }
    for name, picture in (
        pictures | {f"explained-{name}": made for name, made in explained().items()}
    ).items():
        for theme, colours in COLOURS.items():
            coloured(picture, *colours).save(IMAGES / f"{name}-{theme}.svg")


if __name__ == "__main__":
    main()
