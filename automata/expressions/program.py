"""Programs: expression graphs in the form that the native core reads.

``linearize`` writes a graph instruction by instruction, operands first; the core's ``ProgramCode`` is what it, and
front ends that make programs without an expression in between, write with. A program that speaks of tokens needs a
vocabulary to be run: ``native`` takes what the names in it stand for. The core decodes and checks a program once.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst._native import Lexicon, Machine, ProgramCode
from tokenfst.automata.expressions.expression import Dfa, Expr, Op, TokenName, below
from tokenfst.errors import ConstraintError

_CALL = Op.CALL
_machines: WeakKeyDictionary[Dfa, Machine] = WeakKeyDictionary()
"""Of each automaton, how the native core holds it: front ends share theirs among many programs."""


def _native_machine(dfa: Dfa) -> Machine:
    found = _machines.get(dfa)
    if found is None:
        found = _machines[dfa] = Machine(*dfa.native_tables())
    return found


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Program:
    """An expression graph in the form that the native core reads.

    ``code``: int32, one instruction after another: opcode, operand count n, n operands. Instruction k makes node
    k, and operands that are nodes are such numbers. Operands come before their users, except that a VARIABLE comes
    after its body, which names it. Other operands index the side tables. The last instruction is the root.
    ``sets``: uint8 (n, 32), bit b of a row is byte b. ``blob``: all literal bytes. ``labels``
    pairs a node's number with the text its author wrote. ``rules``: for each rule that a CALL can name by its number,
    the instruction that is its body, and whether it has the empty word; ``assured``: int32, instructions whose nodes
    surely have a word, so that none is searched for; ``labelled`` keeps on the stack which rule a frame belongs to.
    ``lexicons``: the finite sets of words. ``token_names``: the classes of tokens that TOKENS name by number;
    ``speaks_of_tokens``: whether the words are sequences of tokens, not only of bytes.
    """

    code: npt.NDArray[np.int32]
    sets: npt.NDArray[np.uint8]
    blob: bytes
    machines: tuple[Dfa, ...]
    labels: tuple[tuple[int, str], ...]
    rules: tuple[tuple[int, bool], ...] = ()
    rule_names: tuple[str, ...] = ()
    assured: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    labelled: bool = False
    lexicons: tuple[Lexicon, ...] = ()
    token_names: tuple[TokenName, ...] = ()
    speaks_of_tokens: bool = False

    def refuse_tokens(self) -> None:
        """``ConstraintError`` if the program speaks of tokens."""
        if self.speaks_of_tokens:
            named = f" ({', '.join(map(str, self.token_names))})" if self.token_names else ""
            raise ConstraintError(
                f"this language speaks of tokens{named}, not of bytes alone, and only a vocabulary knows which those "
                f"are: compile it, and ask the TokenAutomaton; or ask the parts that are text"
            )

    @property
    def only_counts_tokens(self) -> bool:
        """Whether it speaks of tokens only where it bounds how many there are: no vocabulary is needed to read a text,
        token by token."""
        place = 0
        while place < len(self.code):
            if self.code[place] in (Op.ONE_TOKEN, Op.TOKENS):
                return False
            place += 2 + int(self.code[place + 1])
        return self.speaks_of_tokens

    def native(self, classes: Sequence[tuple[int, Lexicon | None]] | None = None) -> _native.Program:
        """The program as the native core holds it, decoded and checked; without ``classes`` kept as long as this.

        ``classes``: for each of ``token_names`` the symbols (as bits) and the words that its tokens are. Without,
        ``ConstraintError`` if the program speaks of tokens."""
        if classes is None:
            self.refuse_tokens()
            found = _programs.get(self)
            if found is None:
                found = _programs[self] = self._read(())
            return found
        return self._read(classes)

    def _read(self, classes: Sequence[tuple[int, Lexicon | None]]) -> _native.Program:
        machines = [_native_machine(dfa) for dfa in self.machines]
        lexicons = list(self.lexicons)
        rows = []
        for symbols, lexicon in classes:
            rows.append((symbols, -1 if lexicon is None else len(lexicons)))
            if lexicon is not None:
                lexicons.append(lexicon)
        return _native.Program(
            *(self.code, self.sets, self.blob, machines, self.labels, self.rules),
            *(self.assured, self.labelled, lexicons, rows),
        )


_programs: WeakKeyDictionary[Program, _native.Program] = WeakKeyDictionary()
"""Of each program without classes of tokens, how the native core holds it: several automata are made of one."""


def linearize(
    root: Expr,
    rules: Mapping[str, tuple[Expr, bool]] | None = None,
    *,
    assured: Container[int] = (),
    labelled: bool = False,
) -> Program:
    """Write the graph below ``root`` as a program. Linear in the number of nodes and operands.

    ``rules``: what calls name: a body, and whether it has the empty word. No rule may lead to itself before a byte is
    read, and ``root`` must be no part of one. ``assured``: ids of nodes known to have a word, plain ones apart.
    """
    roots = [body for body, _ in (rules or {}).values()]
    nodes = below(*roots, root)
    order = {id(node): number for number, node in enumerate(nodes)}
    rule_numbers = {name: number for number, name in enumerate(rules or {})}
    code = ProgramCode()
    for node in nodes:
        operands = [order[id(arg)] for arg in node.args]
        if node.op is _CALL:
            value = node.value
            if value not in rule_numbers:
                raise ConstraintError(
                    f"the rule {value!r} is called outside of a Grammar: compile the grammar, or its truncate(depth)"
                )
            operands.append(rule_numbers[value])
        code.add(node, operands)
    bodies = tuple((order[id(body)], empty) for body, empty in (rules or {}).values())
    found = [number for number, node in enumerate(nodes) if node.size or id(node) in assured]
    return program_of(code, bodies, tuple(rule_numbers), found, labelled=labelled)


def program_of(
    code: ProgramCode,
    rules: tuple[tuple[int, bool], ...] = (),
    rule_names: tuple[str, ...] = (),
    assured: Sequence[int] = (),
    *,
    labelled: bool = False,
) -> Program:
    """The program of these instructions; the last is its root."""
    return Program(
        code=code.code,
        sets=np.frombuffer(code.rows, np.uint8).reshape(-1, 32),
        blob=code.blob,
        machines=tuple(code.machines),
        labels=tuple(code.labels),
        rules=rules,
        rule_names=rule_names,
        assured=np.array(assured, np.int32),
        labelled=labelled,
        lexicons=tuple(code.lexicons),
        token_names=tuple(code.token_names),
        speaks_of_tokens=code.speaks_of_tokens,
    )
