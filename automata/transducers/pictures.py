"""Pictures of transducers: Graphviz text that is identical to that of OpenFst's ``fstdraw``."""

from __future__ import annotations

import math

from tokenfst.automata.pictures.drawing import Drawing, check_size
from tokenfst.automata.transducers.checks import chosen
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.errors import FstArgError, FstIOError

Tables = tuple[SymbolTable | None, SymbolTable | None, SymbolTable | None]


def drawn(
    fst: VectorFst, tables: Tables, acceptor: bool, title: str, width: float, height: float, portrait: bool,
    vertical: bool, ranksep: float, nodesep: float, fontsize: int, precision: int, float_format: str,
    show_weight_one: bool, max_states: int,
) -> Drawing:  # fmt: skip
    """The picture of ``VectorFst.draw``. Linear."""
    chosen("draw: float_format", float_format, ("e", "f", "g"))
    if precision < 0 or precision > 40:
        raise FstArgError(f"draw: precision is a number of digits from 0 to 40: {precision}")
    check_size(fst.num_states(), max_states)
    one, zero = fst.kind.core.one(), fst.kind.core.zero()
    both = not (acceptor and fst.properties(1 << 16))

    def written(value: float) -> str:
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return format(value, f".{precision}{float_format}")

    lines = [
        "digraph FST {",
        f"rankdir = {'BT' if vertical else 'LR'};",
        f'size = "{written(width)},{written(height)}";',
        *([f'label = "{_escaped(title)}";'] if title else []),
        "center = 1;",
        f"orientation = {'Portrait' if portrait else 'Landscape'};",
        f'ranksep = "{written(ranksep)}";',
        f'nodesep = "{written(nodesep)}";',
    ]
    start = fst.start()
    order = [] if start < 0 else [start, *(state for state in fst.states() if state != start)]
    for state in order:
        final = fst.core.final(state)
        weight = f"/{written(final)}" if final != zero and (show_weight_one or final != one) else ""
        name = _named(state, tables[2], "state")
        shape, style = "doublecircle" if final != zero else "circle", "bold" if state == start else "solid"
        lines.append(
            f'{state} [label = "{name}{weight}", shape = {shape}, style = {style}, fontsize = {fontsize}]'
        )
        for ilabel, olabel, value, target in fst.core.arcs(state):
            label = _named(ilabel, tables[0], "input label")
            if both:
                label += ":" + _named(olabel, tables[1], "output label")
            if show_weight_one or value != one:
                label += f"/{written(value)}"
            lines.append(f'\t{state} -> {target} [label = "{label}", fontsize = {fontsize}];')
    return Drawing("\n".join([*lines, "}", ""]))


def _named(label: int, table: SymbolTable | None, what: str) -> str:
    if table is None:
        return str(label)
    if not table.member(label):
        raise FstIOError(f"draw: the {what} {label} is not in the symbol table {table.name()!r}")
    return _escaped(str(table.find(label)))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
