"""AT&T text format: an arc on each line, ``source target input output [weight]``, and ``state [weight]`` for a final
state.

Acceptors (``acceptor=True``) have no column ``output``. The first state that is named is the start.
"""

from __future__ import annotations

from tokenfst.automata.transducers.arcs import Arc
from tokenfst.automata.transducers.growth import Growth
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import number, written
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.common.digits import natural
from tokenfst.common.plurals import counted
from tokenfst.errors import FstArgError, FstIOError, TokenfstError

_MOST_STATES = 100_000_000
_MOST = 2**31 - 1


@checked
def print_fst(
    fst: VectorFst, isymbols: SymbolTable | None = None, osymbols: SymbolTable | None = None,
    ssymbols: SymbolTable | None = None, acceptor: bool = False, show_weight_one: bool = False,
    missing_sym: str = "",
) -> str:  # fmt: skip
    """The text of a machine. Weights are written so that reading restores them exactly.

    ``isymbols``, ``osymbols``, ``ssymbols``: the names of input labels, output labels and states; by default the tables
    of the machine, and numbers for states. ``acceptor``: write one label for each arc. ``show_weight_one``: write the
    weight One too. A state without arcs that is not final has a line with the weight Zero. Raises ``FstIOError`` for a
    label that is missing in a table, unless ``missing_sym`` is given, and with ``acceptor`` for a transducer.
    """
    tables = isymbols or fst.input_symbols(), osymbols or fst.output_symbols()
    one, zero, dtype = fst.kind.core.one(), fst.kind.core.zero(), fst.kind.dtype

    def name(label: int, table: SymbolTable | None) -> str:
        if table is None:
            return str(label)
        if not table.member(label) and not missing_sym:
            raise FstIOError(f"print: label {label} is not in the symbol table {table.name()!r}")
        return str(table.find(label)) if table.member(label) else missing_sym

    lines = []
    start = fst.start()
    if start < 0:
        return ""
    for state in (start, *(each for each in fst.states() if each != start)):
        source = name(state, ssymbols)
        for ilabel, olabel, weight, target in fst.core.arcs(state):
            words = [source, name(target, ssymbols), name(ilabel, tables[0])]
            if not acceptor:
                words.append(name(olabel, tables[1]))
            elif ilabel != olabel:
                raise FstIOError(f"print: state {state} is not an acceptor's: it maps {ilabel} to {olabel}")
            if show_weight_one or weight != one:
                words.append(written(weight, dtype))
            lines.append("\t".join(words))
        final = fst.core.final(state)
        if final == zero and not fst.core.num_arcs(state):
            lines.append(f"{source}\t{written(zero, dtype)}")  # else nothing would name the state
        elif final != zero:
            weighed = show_weight_one or final != one
            lines.append(f"{source}\t{written(final, dtype)}" if weighed else source)
    return "".join(f"{line}\n" for line in lines)


class Compiler:
    """A compiler for AT&T text, used like a file: ``compiler.write(text)``, then ``compiler.compile()``."""

    @checked
    def __init__(
        self, fst_type: str = "vector", arc_type: str = "standard", isymbols: SymbolTable | None = None,
        osymbols: SymbolTable | None = None, ssymbols: SymbolTable | None = None, acceptor: bool = False,
        keep_isymbols: bool = False, keep_osymbols: bool = False, keep_state_numbering: bool = False,
    ) -> None:  # fmt: skip
        if fst_type != "vector":
            raise FstArgError(f"Compiler: fst_type is 'vector', not {fst_type!r}; VectorFst.write has others")
        self._made = VectorFst(arc_type)
        self._tables = isymbols, osymbols or (isymbols if acceptor else None)
        self._states, self._acceptor, self._keeps = ssymbols, acceptor, (keep_isymbols, keep_osymbols)
        self._numbers = keep_state_numbering
        self._parts: list[str] = []

    @checked
    def write(self, expression: str) -> None:
        """Append text."""
        self._parts.append(expression)

    @checked
    def compile(self, *, budget: Budget | None = None) -> VectorFst:
        """The machine of the text so far; the text is then cleared. Raises ``FstIOError``, which names the
        faulty line.
        """
        made = VectorFst(self._made.arc_type())
        text, self._parts = "".join(self._parts), []
        places: dict[int, int] = {}
        growth = Growth(budget, "compile")
        for at, line in enumerate(text.splitlines(), 1):
            growth.grown(made)
            if words := line.split():
                self._add(made, places, words, at, growth)
        tables = [table if keeps else None for keeps, table in zip(self._keeps, self._tables, strict=True)]
        return made.set_input_symbols(tables[0]).set_output_symbols(tables[1])

    def _add(
        self, made: VectorFst, places: dict[int, int], words: list[str], at: int, growth: Growth
    ) -> None:
        """One line."""
        state = self._place(made, places, words[0], at, growth)
        if made.start() < 0:
            made.set_start(state)
        weighed = 3 if self._acceptor else 4
        if len(words) <= 2:
            made.set_final(state, self._weight(words[1], at) if len(words) == 2 else None)
        elif weighed <= len(words) <= weighed + 1:
            target = self._place(made, places, words[1], at, growth)
            ilabel = _label(words[2], self._tables[0], at, "input")
            olabel = ilabel if self._acceptor else _label(words[3], self._tables[1], at, "output")
            weight = self._weight(words[-1], at) if len(words) > weighed else made.kind.core.one()
            made.add_arc(state, Arc(ilabel, olabel, weight, target))
        else:
            raise FstIOError(
                f"line {at} has {counted(len(words), 'word')}: an arc has {weighed} or {weighed + 1}"
            )

    def _place(self, made: VectorFst, places: dict[int, int], word: str, at: int, growth: Growth) -> int:
        """The state of a name: in the order of the lines, or as numbered."""
        state = _label(word, self._states, at, "state")
        if not self._numbers:
            if state not in places:
                places[state] = made.add_state()
            return places[state]
        if state > _MOST_STATES:
            raise FstIOError(f"line {at}: state {state} is too large a number for keep_state_numbering")
        growth.states(state + 1)
        made.add_states(max(state + 1 - made.num_states(), 0))
        return state

    def _weight(self, word: str, at: int) -> float:
        try:
            return number(word, self._made.kind)
        except TokenfstError as error:
            raise FstIOError(f"line {at}: {error}") from error


def _label(word: str, table: SymbolTable | None, at: int, what: str) -> int:
    if table is not None:
        if not table.member(word):
            raise FstIOError(f"line {at}: the {what} {word!r} is not in the symbol table {table.name()!r}")
        return int(table.find(word))
    if not word.isdecimal() or (label := natural(word, _MOST)) > _MOST:
        raise FstIOError(
            f"line {at}: the {what} {word!r} is not a number from 0 to 2^31 - 1, and there is no table for it"
        )
    return label
