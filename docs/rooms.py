"""The pictures of the rooms and the lists of docs/project/code-map.md, drawn from the imports.

    python docs/rooms.py

writes ``docs/rooms.svg``, ``docs/native-rooms.svg`` (with Graphviz' ``dot``) and the tables. An arrow leads from a room
to one that it imports; arrows that follow from others are left out (the transitive reduction).
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.support.rooms import NATIVE_ROOMS, ROOMS, docstring, edges, native_edges  # noqa: E402  # needs the root

PAGE = ROOT / "docs" / "project" / "code-map.md"
COLOURS = {"automata": "#dcebf7", "tokenizers": "#e4f3dd", "decoding": "#fbeed5", "native": "#eeeeee"}


def reduced(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The pairs without those that follow from others. The graph has no circle."""
    below: dict[str, set[str]] = {}
    for one, other in pairs:
        below.setdefault(one, set()).add(other)

    def reachable(start: str) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            for room in below.get(waiting.pop(), set()) - found:
                found.add(room)
                waiting.append(room)
        return found

    return {
        (one, other)
        for one, other in pairs
        if not any(other in reachable(room) for room in below[one] - {other})
    }


def dot(rooms: list[str], pairs: set[tuple[str, str]]) -> str:
    """The graph in Graphviz' language."""
    lines = ["digraph rooms {", 'node [shape=box, style="filled,rounded", fontname=Helvetica, fontsize=11]']
    lines += ["edge [arrowsize=0.6, color=gray40]", "nodesep=0.15", "ranksep=0.35"]
    for room in rooms:
        top, _, name = room.partition("/")
        label = name or room
        lines.append(f'"{room}" [label="{label}", fillcolor="{COLOURS.get(top, COLOURS["native"])}"]')
    lines += [f'"{one}" -> "{other}"' for one, other in sorted(reduced(pairs))]
    return "\n".join([*lines, "}", ""])


def drawn(svg: str) -> set[tuple[str, str]]:
    """The arrows of a picture, by the titles that Graphviz gives them."""
    titles = re.findall(r"<title>([^<]*)&#45;&gt;([^<]*)</title>", svg)
    return {(one, other) for one, other in titles}


def first_sentence(text: str) -> str:
    """What a room is, in one line of a table."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    sentence = re.split(r"(?<=\.) ", paragraph)[0]
    return sentence.rstrip(".").replace("``", "`").replace("|", "\\|")


def native_texts() -> dict[str, str]:
    """What native/README.md says of each room."""
    parts = (ROOT / "native" / "README.md").read_text().split("\n## ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def tables() -> dict[str, str]:
    """The lists of the page by their names, the last room that others stand on first."""
    rooms = [
        f"| [`{room}`](../../{room}/__init__.py) | {first_sentence(docstring(room))} |" for room in ROOMS
    ]
    texts = native_texts()
    native = [f"| `{room}` | {first_sentence(texts[room])} |" for room in NATIVE_ROOMS]
    head = "| room | what it is |\n|---|---|\n"
    return {"rooms": head + "\n".join(rooms), "native rooms": head + "\n".join(native)}


def written(page: str) -> str:
    """The page with the lists of now."""
    for name, table in tables().items():
        page = re.sub(
            rf"(<!-- {name} -->\n).*?(\n<!-- end -->)",
            lambda match, table=table: match[1] + table + match[2],  # type: ignore[misc]
            page,
            flags=re.DOTALL,
        )
    return page


def main() -> None:
    """Write the pictures and the page."""
    for name, rooms, pairs in (("rooms", ROOMS, edges()), ("native-rooms", NATIVE_ROOMS, native_edges())):
        subprocess.run(
            ["dot", "-Tsvg", "-o", str(ROOT / "docs" / f"{name}.svg")],
            input=dot(rooms, pairs),
            text=True,
            check=True,
        )
    PAGE.write_text(written(PAGE.read_text()))


if __name__ == "__main__":
    main()
