"""Pictures: Graphviz text, made without any binary, and images where Graphviz is installed.

Nothing here knows what a machine is: a picture is ``Edge`` values with label text, so byte automata and token
automata are drawn alike. DEAD is never drawn (convention 3): a missing edge leads there. Accepting states are
doubled.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tokenfst.common.plurals import counted
from tokenfst.common.printable import printable
from tokenfst.errors import DrawingError, MissingDependencyError

FORMATS = ("svg", "png", "html", "dot")
HEADER = (
    "digraph {",
    "  rankdir=LR;",
    '  node [shape=circle, fontname="Helvetica", fontsize=11, width=0.35, fixedsize=false];',
    '  edge [fontname="Helvetica", fontsize=11];',
)
"""How every picture begins."""
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>tokenfst</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1"></head>'
    '<body style="margin:0;background:white;overflow:auto">\n'
)
"""How a page begins that holds a picture; it scrolls where the picture is larger."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow between two states, with its text."""

    source: int
    target: int
    label: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture. ``dot`` is its Graphviz text; notebooks show it by themselves."""

    dot: str

    def __repr__(self) -> str:
        return f"<Drawing: {counted(len(self.dot), 'character')} of dot>"

    def render(self, format: str = "svg") -> bytes:
        """The picture as a file's bytes: ``"svg"``, ``"png"``, ``"html"`` (a page with the SVG) or ``"dot"``.

        Raises ``DrawingError`` for another format, ``MissingDependencyError`` where another than dot is asked for and
        the Python package ``graphviz`` or Graphviz's program ``dot`` is missing.
        """
        if format not in FORMATS:
            raise DrawingError(f"format {format!r} is not known; use one of {', '.join(FORMATS)}")
        if format == "dot":
            return self.dot.encode()
        if format == "html":
            svg = self.render("svg").decode()
            return (_PAGE + svg[svg.index("<svg") :] + "</body></html>\n").encode()
        try:
            import graphviz
        except ImportError as error:
            raise MissingDependencyError(
                f'a drawing as {format} needs: pip install "tokenfst[fst]"; the format dot does without'
            ) from error
        try:
            image: bytes = graphviz.Source(self.dot).pipe(format=format)
        except graphviz.ExecutableNotFound as error:
            raise MissingDependencyError(
                f"a drawing as {format} needs Graphviz's program `dot` (say, apt-get install graphviz); "
                "the format dot does without"
            ) from error
        return image

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the picture; without ``format``, the path's suffix decides."""
        target = Path(path)
        if format is None:
            format = target.suffix.lstrip(".").lower()
            if format not in FORMATS:
                raise DrawingError(
                    f"{target.name!r} does not end in .{', .'.join(FORMATS)}; rename it or pass format=..."
                )
        target.write_bytes(self.render(format))

    def svg_or_none(self) -> str | None:
        """The picture as the text of an SVG element; None where Graphviz is missing."""
        try:
            text = self.render("svg").decode()
        except MissingDependencyError:
            return None
        return text[text.index("<svg") :]

    def _repr_svg_(self) -> str | None:
        return self.svg_or_none()


def draw_graph(start: int, accepting: Iterable[int], edges: Iterable[Edge], title: str = "") -> Drawing:
    """A picture of the states that ``start``, ``accepting`` and the edges name. Linear."""
    final = set(accepting)
    arrows = list(edges)
    states = sorted({start, *final, *(e.source for e in arrows), *(e.target for e in arrows)})
    lines = list(HEADER)
    if title:
        lines.append(f'  label={quoted(title)}; labelloc=t; fontname="Helvetica";')
    lines += ['  "" [shape=point, style=invis];', f'  "" -> {start};']
    lines += [f"  {state} [shape=doublecircle];" if state in final else f"  {state};" for state in states]
    lines += [f"  {edge.source} -> {edge.target} [label={quoted(edge.label)}];" for edge in arrows]
    return Drawing("\n".join([*lines, "}", ""]))


def check_size(num_states: int, max_states: int) -> None:
    """``DrawingError`` if a machine is too large to be drawn."""
    if num_states > max_states:
        raise DrawingError(
            f"the machine has {counted(num_states, 'state')}, and at most {max_states:,} are drawn; minimize() it, "
            "draw a part of the constraint, or pass a larger max_states"
        )


def quoted(text: str) -> str:
    """``text`` as a string of the dot language, in which backslashes of ``text`` stand for themselves."""
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
