"""Pictures of byte automata: one edge for each pair of states, labelled with its bytes."""

from __future__ import annotations

import numpy as np

from tokenfst.automata.expressions.expression import ALL_BYTES, Dfa
from tokenfst.automata.pictures.drawing import (
    Drawing,
    Edge,
    check_size,
    draw_graph,
)

_LABEL_WIDTH = 48
_ESCAPES = {0x09: r"\t", 0x0A: r"\n", 0x0D: r"\r", 0x20: "␣"}


def draw_dfa(dfa: Dfa, title: str = "", max_states: int = 200) -> Drawing:
    """A picture of a byte automaton: one edge for each pair of states, labelled with its bytes.

    Raises ``DrawingError`` for more than ``max_states`` states (without DEAD), which would be unreadable, and too much
    for Graphviz.
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
