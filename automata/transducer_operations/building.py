"""Machines from strings, as in pynini: ``accep``, ``cross``, ``string_map``, ``optimize``; and strings from machines.

Labels are bytes (``token_type="byte"``, label b for byte b), code points ("utf8"), or words of a symbol table, as in
pynini; square brackets have no special meaning here. Byte 0 would be epsilon, and is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tokenfst.automata.openfst.labels import LAST_BYTE_LABEL, label_byte
from tokenfst.automata.transducer_operations.operations import compose, determinize, shortestpath
from tokenfst.automata.transducers.arcs import require_same
from tokenfst.automata.transducers.byte_labels import is_byte_table
from tokenfst.automata.transducers.checks import chosen
from tokenfst.automata.transducers.growth import Growth
from tokenfst.automata.transducers.mapping import EncodeMapper, arcmap, statemap
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import Weight, number
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import FstArgError, FstOpError

_ACCEPTOR, _UNWEIGHTED, _NO_EPSILONS, _I_DETERMINISTIC, _ACYCLIC, _EPSILONS = (
    0x10000, 0x200000000, 0x800000, 0x40000, 0x800000000, 0x400000,
)  # fmt: skip


def labels_of(text: str | bytes, token_type: str | SymbolTable) -> list[int]:
    """The labels of a string: bytes, code points or the words of a table."""
    if isinstance(token_type, SymbolTable):
        if isinstance(text, bytes):
            raise FstArgError("a string of a symbol table's words is text, not bytes")
        missing = [word for word in text.split() if not token_type.member(word)]
        if missing:
            raise FstOpError(f"the symbol {missing[0]!r} is not in the symbol table {token_type.name()!r}")
        return [int(token_type.find(word)) for word in text.split()]
    if token_type == "byte":
        labels = list(text if isinstance(text, bytes) else text.encode())
    elif token_type == "utf8":
        labels = [ord(each) for each in characters(text)]
    else:
        raise FstArgError(f'token_type is "byte", "utf8" or a SymbolTable, not {token_type!r}')
    if 0 in labels:
        raise FstArgError(
            f"place {labels.index(0)} of {text!r:.60} is the character 0, whose label is epsilon's"
        )
    return labels


def characters(text: str | bytes) -> str:
    """The text of bytes. Raises ``FstArgError`` if they are not UTF-8."""
    try:
        return text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as error:
        raise FstArgError(f"{text!r:.60} is no UTF-8 from place {error.start} on: {error.reason}") from error


def chain(
    inputs: list[int], outputs: list[int], weight: Any, arc_type: str, budget: Budget | None = None
) -> VectorFst:
    """The machine with one path, given its input and output labels."""
    made = VectorFst(arc_type)
    made.set_start(made.add_state())
    one, growth = made.kind.core.one(), Growth(budget, "accep")
    for at in range(max(len(inputs), len(outputs))):
        growth.grown(made, 1)
        read = inputs[at] if at < len(inputs) else 0
        written = outputs[at] if at < len(outputs) else 0
        made.core.add_arc(made.num_states() - 1, read, written, one, made.add_state())
    return made.set_final(made.num_states() - 1, weight)


@checked
def accep(
    astring: str | bytes, weight: Weight | str | float | None = None, arc_type: str = "standard",
    token_type: str | SymbolTable = "byte", *, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """The acceptor of one string, with a weight (by default One). Linear.

    ``token_type``: "byte" (label b for byte b), "utf8" (code points), or a symbol table (the words of the string).
    Raises ``FstArgError`` for the character 0, ``FstOpError`` for a word that is not in the table.
    """
    labels = labels_of(astring, token_type)
    return chain(labels, labels, weight, arc_type, budget)


@checked
def cross(
    fst1: VectorFst | str | bytes, fst2: VectorFst | str | bytes, token_type: str | SymbolTable = "byte", *,
    budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """The cross product: every word of the first acceptor mapped to every word of the second; weights multiply.

    Strings stand for their acceptors; epsilons are removed first. Raises ``FstOpError`` for transducers, and if the
    weights of epsilons have no sum. At worst the product of the states of both; of two strings, the longer one.
    """
    if not isinstance(fst1, VectorFst) and not isinstance(fst2, VectorFst):
        inputs, outputs = labels_of(fst1, token_type), labels_of(fst2, token_type)
        return chain(inputs, outputs, None, "standard", budget)
    kind = fst1.arc_type() if isinstance(fst1, VectorFst) else fst2.arc_type()  # type: ignore[union-attr]
    sides = [
        each
        if isinstance(each, VectorFst)
        else accep(each, arc_type=kind, token_type=token_type, budget=budget)
        for each in (fst1, fst2)
    ]
    require_same("cross", *sides)
    for which, each in zip(("first", "second"), sides, strict=True):
        if not each.properties(_ACCEPTOR):
            raise FstOpError(f"cross: the {which} machine is a transducer, and an acceptor is due")
    sides = [each.copy().rmepsilon(budget=budget) for each in sides]
    return compose(
        arcmap(sides[0], map_type="output_epsilon", budget=budget),
        arcmap(sides[1], map_type="input_epsilon", budget=budget),
        "match",  # which takes an arc of each side at once, as long as both have one
        budget=budget,
    )


@checked
def string_map(
    lines: Iterable[Any], arc_type: str = "standard", token_type: str | SymbolTable = "byte", *,
    budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """A transducer that maps strings: ``lines`` has strings (mapped to themselves), (input, output) or (input, output,
    weight).

    A prefix tree of the inputs, with the outputs along the paths; linear in the strings.
    """

    def spell(text: str | bytes) -> list[int]:
        return labels_of(text, token_type)

    return tree_of(lines, arc_type, spell, spell, budget)


def tree_of(
    lines: Iterable[Any],
    arc_type: str,
    spell_input: Callable[[str | bytes], list[int]],
    spell_output: Callable[[str | bytes], list[int]],
    budget: Budget | None,
) -> VectorFst:
    """``string_map``, with functions that give the labels of inputs and outputs."""
    made = VectorFst(arc_type)
    made.set_start(made.add_state())
    one, zero = made.kind.core.one(), made.kind.core.zero()
    growth = Growth(budget, "string_map")
    places: dict[tuple[int, int, int], int] = {}
    for at, line in enumerate(lines):
        parts = [line] if isinstance(line, str | bytes) else line
        if not isinstance(parts, tuple | list) or not 1 <= len(parts) <= 3 or not all(
            isinstance(each, str | bytes) for each in parts[:2]
        ):  # fmt: skip
            raise FstArgError(
                f"string_map: line {at} is no string, pair, or pair with a weight: {line!r:.60}"
            )
        inputs, outputs = spell_input(parts[0]), spell_output(parts[1] if len(parts) > 1 else parts[0])
        weight = number(parts[2], made.kind, f"string_map: line {at}") if len(parts) > 2 else one
        state = 0
        for k in range(max(len(inputs), len(outputs))):
            pair = (inputs[k] if k < len(inputs) else 0, outputs[k] if k < len(outputs) else 0)
            if (state, *pair) not in places:
                places[state, *pair] = made.add_state()
                made.core.add_arc(state, *pair, one, made.num_states() - 1)
            state = places[state, *pair]
        final = made.core.final(state)
        made.core.set_final(state, weight if final == zero else made.kind.core.plus(final, weight))
        growth.grown(made, len(inputs) + len(outputs))
    return made


_SUMS = ("log", "log64", "real", "real64")


@checked
def optimize(fst: VectorFst, *, budget: Budget | None = None) -> VectorFst:
    """An equivalent machine, usually smaller, as in pynini's ``optimize``.

    Epsilons are removed; unweighted or acyclic acceptors are determinized and minimized; for others, labels and weights
    are encoded as letters. In semirings in which the weights of parallel paths add up ("log", "real"), that would lose
    paths that occur twice. There, except for acyclic acceptors, only arcs with the same labels between the same states
    are merged. Exponential at worst, as determinization is.
    """
    made = fst.copy().rmepsilon(budget=budget)
    if made.arc_type() in _SUMS and not (made.properties(_ACCEPTOR) and made.properties(_ACYCLIC)):
        return statemap(made, "arc_sum", budget=budget).connect(budget=budget)
    if made.properties(_ACCEPTOR) and (made.properties(_UNWEIGHTED) or made.properties(_ACYCLIC)):
        return determinize(made, budget=budget).minimize(budget=budget)
    mapper = EncodeMapper(made.arc_type(), True, True)
    made.encode(mapper, budget=budget)
    smallest = determinize(made, budget=budget).minimize(budget=budget)
    return smallest.decode(mapper, budget=budget).rmepsilon(budget=budget)


@checked
def string(
    fst: VectorFst,
    token_type: str | SymbolTable = "byte",
    side: str = "output",
    *,
    budget: Budget | None = None,
) -> str:
    """The text of the best path: of its outputs, or with ``side="input"`` of its inputs.

    ``token_type``: what labels stand for: "byte", "utf8" (code points) or a symbol table, whose words are joined by
    spaces. Raises ``FstOpError`` if there is no path, or for labels without text. The cost is that of ``shortestpath``.
    """
    chosen("string: side", side, ("input", "output"))
    best = shortestpath(fst, budget=budget)
    if best.start() < 0:
        raise FstOpError("string: the machine accepts nothing")
    labels, state = list[int](), best.start()
    while best.num_arcs(state):
        ilabel, olabel, _, state = best.core.arc(state, 0)
        labels.append(olabel if side == "output" else ilabel)
    table = fst.output_symbols() if side == "output" else fst.input_symbols()
    return spelled([label for label in labels if label], token_type, table)


def plain(labels: list[int], token_type: str | SymbolTable, table: SymbolTable | None) -> list[int]:
    """Labels as in machines of strings, where byte b has label b. They are converted if the machine's ``table`` says
    that byte b has label b + 1. Raises ``FstOpError`` if that table says bytes, but ``token_type`` says characters.
    """
    if isinstance(token_type, SymbolTable) or not is_byte_table(table):
        return labels
    if token_type != "byte":
        raise FstOpError(
            f'string: token_type is {token_type!r}, but the labels are bytes, as the symbol table says: give "byte"'
        )
    return [label_byte(label) if label <= LAST_BYTE_LABEL else label for label in labels]


def spelled(labels: list[int], token_type: str | SymbolTable, table: SymbolTable | None = None) -> str:
    """The text of some labels. Raises ``FstOpError`` for labels without text. ``table``: the symbol table of the
    machine; if it is that of byte labels, label b + 1 stands for byte b.
    """
    if isinstance(token_type, SymbolTable):
        missing = [label for label in labels if not token_type.member(label)]
        if missing:
            raise FstOpError(f"string: label {missing[0]} is not in the symbol table {token_type.name()!r}")
        return " ".join(str(token_type.find(label)) for label in labels)
    labels = plain(labels, token_type, table)
    most = 0xFF if chosen("string: token_type", token_type, ("byte", "utf8")) == "byte" else 0x10FFFF
    if large := [label for label in labels if label > most or (most > 0xFF and 0xD800 <= label < 0xE000)]:
        raise FstOpError(f"string: label {large[0]} is no {'byte' if most == 0xFF else 'character'}")
    if token_type == "utf8":
        return "".join(map(chr, labels))
    try:
        return bytes(labels).decode()
    except UnicodeDecodeError as error:
        raise FstOpError(f"string: the bytes {bytes(labels)!r:.60} are no UTF-8: {error.reason}") from error
