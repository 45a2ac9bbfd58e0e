"""``Program``: the serialized form of expression graphs that the native core reads.

``linearize`` writes a graph instruction by instruction, operands first. It uses the core's ``ProgramCode``, as do front
ends that create programs directly. A program that constrains tokens needs a vocabulary: ``native`` takes the meaning of
its token names. The core decodes and checks a program once.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst._native import Lexicon, Machine, ProgramCode
from tokenfst.automata.expressions.expression import Dfa, Expr, Op, TokenName, below
from tokenfst.common.clock_cache import Recent
from tokenfst.common.renamed import old_attribute
from tokenfst.errors import ConstraintError

_machines: WeakKeyDictionary[Dfa, Machine] = WeakKeyDictionary()
"""The native form of each automaton: front ends share automata among many programs."""


def _native_machine(dfa: Dfa) -> Machine:
    found = _machines.get(dfa)
    if found is None:
        found = _machines[dfa] = Machine(*dfa.native_tables())
    return found


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Program:
    """A serialized expression graph.

    ``code``: int32, a sequence of instructions: opcode, operand count n, n operands. Instruction k creates node k, and
    operands that are nodes are such numbers. Operands precede their users, except that a VARIABLE follows its body,
    which refers to it. Other operands index the side tables. The last instruction is the root.

    ``sets``: uint8 (n, 32), bit b of a row is byte b. ``blob``: all literal bytes. ``labels`` pairs a node's number
    with its source text. ``rules``: for each rule that a CALL can reference by number, the instruction of its body, and
    whether it has the empty word; ``assured``: int32, instructions whose nodes are known to have a word, so that none
    is searched for; ``labelled``: stack frames record their rule. ``lexicons``: the finite sets of words.
    ``token_names``: the token classes that TOKENS reference by number; ``is_token_level``: whether the words are
    sequences of tokens, not only of bytes.
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
    is_token_level: bool = False
    speaks_of_tokens = old_attribute("speaks_of_tokens", "is_token_level")

    def refuse_tokens(self) -> None:
        """Raise ``ConstraintError`` if the program constrains tokens."""
        if self.is_token_level:
            named = f" ({', '.join(map(str, self.token_names))})" if self.token_names else ""
            raise ConstraintError(
                f"this language constrains tokens{named}, not only bytes, and only a vocabulary defines their bytes: "
                f"compile it, and query the TokenAutomaton; or query its parts that are text"
            )

    @property
    def only_counts_tokens(self) -> bool:
        """Whether the program constrains tokens only by bounding their number. If so, texts can be read token by token
        without a vocabulary.
        """
        if not self.is_token_level:
            return False
        return all(op not in (Op.ONE_TOKEN, Op.TOKENS) for op, _, _ in instructions(self.code.tolist()))

    def native(self, classes: Sequence[tuple[int, Lexicon | None]] | None = None) -> _native.Program:
        """The native core's decoded and checked form of the program; cached for a while if ``classes`` is None.

        ``classes``: for each of ``token_names`` the symbols (as bits) and the words of its tokens. If they are missing
        and the program constrains tokens, raises ``ConstraintError``.
        """
        if classes is None:
            self.refuse_tokens()
            return _programs.get(self, lambda: self._read(()))
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


def instructions(code: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """For each instruction of a program's code: its opcode, and the indices in the code at which its operands begin and
    end (exclusive).

    This is the only reader of the code in Python. The core decodes and checks a program once, in ``_native.Program``.
    """
    place = 0
    while place < len(code):
        op = code[place]
        first = place + 2
        place = first + code[place + 1]
        yield op, first, place


_programs: Recent[Program, _native.Program] = Recent(4)
"""The native forms of the last few programs without token classes. Several automata of one program are usually made
soon after each other. The forms are not kept longer: each takes as much memory as its program, and a finished automaton
does not need it.
"""


def linearize(
    root: Expr,
    rules: Mapping[str, tuple[Expr, bool]] | None = None,
    *,
    assured: Container[int] = (),
    labelled: bool = False,
) -> Program:
    """Serialize the graph below ``root``. Linear in the number of nodes and operands.

    ``rules``: the rules that calls reference: a body, and whether it has the empty word. No rule may be left-recursive,
    and ``root`` must not be part of one. ``assured``: ids of nodes that are known to have a word, in addition to plain
    ones.
    """
    roots = [body for body, _ in (rules or {}).values()]
    nodes = below(*roots, root)
    rule_numbers = {name: number for number, name in enumerate(rules or {})}
    code = ProgramCode()
    try:
        found = code.add_nodes(nodes, rule_numbers, assured)
    except KeyError as error:
        raise ConstraintError(
            f"the rule {error.args[0]!r} is called outside of a Grammar: compile the grammar, or its truncate(depth)"
        ) from None
    code.end_with(code.instruction(root))
    bodies = tuple((code.instruction(body), empty) for body, empty in (rules or {}).values())
    return program_of(code, bodies, tuple(rule_numbers), found, labelled=labelled)


def program_of(
    code: ProgramCode,
    rules: tuple[tuple[int, bool], ...] = (),
    rule_names: tuple[str, ...] = (),
    assured: Sequence[int] = (),
    *,
    labelled: bool = False,
) -> Program:
    """The program that consists of the instructions in ``code``; the last one is its root."""
    return Program(
        code=code.code,
        sets=np.frombuffer(code.rows, np.uint8).reshape(-1, 32),
        blob=code.blob,
        machines=tuple(code.machines),
        labels=tuple((number, _in_unicode(text)) for number, text in code.labels),
        rules=rules,
        rule_names=rule_names,
        assured=np.array(assured, np.int32),
        labelled=labelled,
        lexicons=tuple(code.lexicons),
        token_names=tuple(code.token_names),
        is_token_level=code.is_token_level,
    )


def _in_unicode(text: str) -> str:
    """A text whose lone surrogates, which UTF-8 does not have, are escapes. A comment in a pattern may contain some."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
