"""Machines as pictures: Graphviz text, made without any binary, and images where Graphviz is installed.

Nothing here knows what a machine is: a picture is ``Edge`` values with label text, so byte automata and token
automata are drawn alike. DEAD is never drawn (convention 3): a missing edge leads there. Accepting states are
doubled.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tokenfst.automata.expressions.expression import ALL_BYTES, Dfa
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
_LABEL_WIDTH = 48
_ESCAPES = {0x09: r"\t", 0x0A: r"\n", 0x0D: r"\r", 0x20: "␣"}


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
        return f"<Drawing: {len(self.dot):,} characters of dot>"

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


def draw_dfa(dfa: Dfa, title: str = "", max_states: int = 200) -> Drawing:
    """A picture of a byte automaton: one edge for two states, labelled with the bytes between them.

    Raises ``DrawingError`` for more than ``max_states`` states (DEAD not counted): nobody can read that, and
    Graphviz would not end.
    """
    check_size(dfa.num_states - 1, max_states)
    bits = [0] * dfa.table.shape[1]
    for byte, group in enumerate(dfa.classes.tolist()):
        bits[group] |= 1 << byte
    between: dict[tuple[int, int], int] = {}
    for source, group in np.argwhere(dfa.table).tolist():
        pair = (source, int(dfa.table[source, group]))
        between[pair] = between.get(pair, 0) | bits[group]
    edges = (Edge(source, target, bytes_label(some)) for (source, target), some in between.items())
    return draw_graph(dfa.start, np.flatnonzero(dfa.accepting).tolist(), edges, title)


def check_size(num_states: int, max_states: int) -> None:
    """``DrawingError`` if a machine is too large to be drawn."""
    if num_states > max_states:
        raise DrawingError(
            f"the machine has {num_states:,} states, and at most {max_states:,} are drawn; minimize() it, "
            "draw a part of the constraint, or pass a larger max_states"
        )


def bytes_label(bits: int) -> str:
    r"""A set of bytes as readable text (bit b of ``bits``: byte b).

    One byte or one range stands alone (``a``, ``0-9``, ``\x80-\xbf``), other sets are written like a regular
    expression's class (``[A-Z_]``, ``[^"\\]``), all bytes as ``any``. A space is ``␣``; long sets end in
    ``…``.
    """
    if bits == ALL_BYTES:
        return "any"
    inside, outside = _ranges(bits), _ranges(ALL_BYTES & ~bits)
    if len(inside) == 1:
        return _shown_range(*inside[0])
    sign, ranges = ("^", outside) if len(outside) < len(inside) else ("", inside)
    text = ""
    for low, high in ranges:
        if len(text) > _LABEL_WIDTH:
            text += "…"
            break
        text += _shown_range(low, high)
    return f"[{sign}{text}]"


def _ranges(bits: int) -> list[tuple[int, int]]:
    """The runs of ones, as (first, last)."""
    runs: list[tuple[int, int]] = []
    at = 0
    while bits >> at:
        first = at + ((bits >> at) & -(bits >> at)).bit_length() - 1
        run = bits >> first
        at = first + (~run & (run + 1)).bit_length() - 1
        runs.append((first, at - 1))
    return runs


def _shown_range(low: int, high: int) -> str:
    return _shown(low) if low == high else f"{_shown(low)}-{_shown(high)}"


def _shown(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    if not 0x21 <= byte < 0x7F:
        return f"\\x{byte:02x}"
    return f"\\{chr(byte)}" if chr(byte) in "\\[]^-" else chr(byte)


def quoted(text: str) -> str:
    """``text`` as a string of the dot language, in which backslashes of ``text`` stand for themselves."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'
