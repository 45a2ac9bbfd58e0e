"""Types of the native core (``native/bindings``).

The package uses these classes and functions through Python modules. These check arguments, keep alive the objects that
the core refers to, and document what is public. A docstring here says what a class or function is for, what its numbers
mean, and where it is used. The methods of ``Matcher`` are documented in the compiled module; Python adds ``explain``,
``captures`` and ``temperature`` to it. ``Fst_boolean`` stands for one class for each semiring.

Everywhere: a *budget* is given as numbers of ``states``, ``bytes`` and ``seconds``, and raises ``BudgetExceeded``.
``memory`` is in bytes. State 0 of a table is dead. Tables are ``(states, classes)``, and ``classes`` gives the class of
each byte. A function named ``tick`` or ``charge`` is called from time to time with the work done, and may raise.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tokenfst.automata.captures.values import Captures
from tokenfst.automata.expressions.expression import (
    Dfa,
    Differing,
    Expr,
    Op,
    TokenBound,
    TokenName,
    Unordered,
)
from tokenfst.decoding.token_automata.explaining import TokenExplanation

class Machine:
    """A deterministic byte automaton, which is checked once and is a leaf of any number of programs. Immutable.

    ``offsets`` is empty for a dense table. Otherwise the rows of ``table`` are edges (class, next state), and
    ``offsets`` has the index of the first edge of each state, and the number of edges. Raises ConstraintError.
    """

    def __init__(
        self,
        classes: npt.NDArray[np.uint8],
        table: npt.NDArray[np.uint32],
        accepting: npt.NDArray[np.bool_],
        start: int,
        offsets: npt.NDArray[np.uint32],
    ) -> None: ...

class Lexicon:
    """A finite set of words as a minimal acyclic automaton (``native/words/acyclic.hpp``). Immutable."""

    def __init__(self, words: list[bytes], bytes: int = ..., seconds: float = ...) -> None: ...
    def __len__(self) -> int: ...
    def words(self) -> list[bytes]: ...
    @property
    def num_states(self) -> int: ...
    @property
    def num_arcs(self) -> int: ...
    @property
    def memory(self) -> int: ...

class Fst_boolean:  # noqa: N801  # named after OpenFst's arc types
    """A transducer over the Boolean semiring. ``Fst_standard``, ``Fst_log64`` and the other classes, which
    automata/transducers/weights.py lists, have the same methods.
    """

    def num_states(self) -> int: ...
    def start(self) -> int: ...
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """Return (finals, counts of arcs, ilabels, olabels, weights, next states); the arcs in the order of states."""
    @staticmethod
    def from_arrays(
        start: int,
        finals: npt.NDArray[np.uint8],
        counts: npt.NDArray[np.int64],
        ilabels: npt.NDArray[np.int32],
        olabels: npt.NDArray[np.int32],
        weights: npt.NDArray[np.uint8],
        nexts: npt.NDArray[np.int32],
        limits: tuple[int, int, float],
    ) -> Fst_boolean:
        """The inverse of ``arrays``. ``limits``: (states, bytes, seconds)."""
    def rmepsilon(
        self, connect: bool, threshold: float, nstate: int, delta: float, limits: tuple[int, int, float]
    ) -> Fst_boolean: ...
    def determinize(
        self,
        outputs: int,
        subsequential: int,
        increment: bool,
        threshold: float,
        nstate: int,
        delta: float,
        limits: tuple[int, int, float],
    ) -> Fst_boolean: ...
    def minimize(self, delta: float, allow_nondet: bool, limits: tuple[int, int, float]) -> Fst_boolean: ...

class PlainForms:
    """Checks that the keywords of schemas have values of the right forms (``json_schema/documents``)."""

    def __init__(self) -> None: ...
    def hold(self, document: object, forms: dict[str, int]) -> bool:
        """Return True if all keywords certainly have the right forms; False is no proof of an error.

        ``forms``: for each keyword the number of its form.
        """

class PlainReader:
    """Reads subschemas as formulas (``json_schema/reading/plain_parts.py``). Immutable."""

    def __init__(
        self,
        bits: dict[str, int],
        scalars: frozenset[str],
        type_key: object,
        place: type,
        formula: type,
        atom: object,
        any: object,
        none: object,
        dumps: Callable[[Any, int], bytes],
        far_down: int,
    ) -> None: ...
    def said(self, schema: dict[str, Any]) -> int:
        """Return the bits of the keywords that a schema has."""
    def formula(
        self,
        schema: object,
        atoms: dict[Any, Any],
        targets: dict[Any, Any],
        resource: object,
        closed: object,
        pointer: str,
        keyword: str,
    ) -> Any:
        """Return the formula of the subschema under ``keyword``, or None if Python has to make it."""
    def formulas(
        self,
        properties: dict[str, Any],
        atoms: dict[Any, Any],
        targets: dict[Any, Any],
        resource: object,
        closed: object,
        pointer: str,
        otherwise: Callable[[Any, str], object],
    ) -> dict[str, Any]:
        """Return the formula of each property; ``otherwise(schema, name)`` makes those that are left to Python."""

def fold(tree: Any, build: Callable[[str, list[Any]], Any], tick: Callable[[int], None] | None) -> Any:
    """Return ``build(kind, children)`` of a tree, computed from the leaves up; tokens stand for themselves."""

class SyntaxTree:
    """A node of the syntax tree of a notation, and all nodes below it, without a Python object for each."""

    @staticmethod
    def of(tree: Any) -> SyntaxTree:
        """Return the tree of a node with ``data`` and ``children``, whose leaves are tokens."""
    def children(self) -> list[Any]: ...
    def tokens(self, type: str) -> list[Any]:
        """Return the tokens of a type, in the order of the text."""
    def words(self) -> list[str] | None:
        """Return the words of a terminal if its alternatives are plain string literals, else None."""
    def rule(
        self,
        values: dict[str, Expr],
        part: Callable[[str, list[Any]], Any],
        tick: Callable[[int], None],
        work: int,
    ) -> Expr:
        """Return the expression of the body of a rule; ``part(kind, children)`` makes that of rarer nodes."""

class LalrTables:
    """The parser of a notation, as tables (``notations/parsing``; ``native/bindings/patterns/lalr.hpp``)."""

    def __init__(
        self,
        matches: Mapping[str, Callable[[str, int], object]],
        ignored: list[str],
        kept: list[str],
        actions: dict[Any, dict[str, tuple[bool, int]]],
        productions: list[Any],
        gotos: dict[Any, dict[str, int]],
        start: int,
        end: int,
        classes: tuple[type, type, type],
        late: str | None,
        patterns: dict[str, PlainPattern],
        firsts: list[list[str]],
    ) -> None: ...
    def tree(self, text: str, tick: Callable[[], None]) -> Any:
        """Return the tree of a text, or None if the text has an error."""

class RuleBody:
    """The body of a rule as a list of nodes (``native/bindings/rules/rule_bodies.hpp``). Immutable."""

    def __init__(self, body: Expr) -> None: ...
    def nodes(self) -> list[Expr]: ...
    @property
    def length(self) -> int: ...
    @property
    def size(self) -> int: ...
    def leaves(self) -> list[Expr]:
        """Return the nodes that are neither plain nor composed."""
    def calls_only(self, rules: dict[str, Expr]) -> bool:
        """Return whether all calls are calls of ``rules`` and stand where a grammar may have them."""
    def calls(self) -> list[str]:
        """Return the rules that are called, each once, in the order of the nodes."""
    def left_edge(self, empty: Container[int]) -> list[str]:
        """Return the rules that can be called before a byte is read.

        ``empty``: the ids of the nodes that have the empty word.
        """

class Inlining:
    """Replaces calls of rules by expressions (``automata/rules/inlining.py`` defines the terms)."""

    def __init__(self, bodies: dict[str, RuleBody], start: str) -> None: ...
    @property
    def hard(self) -> dict[str, list[str]]: ...
    def heads(self, charge: Callable[[int, str], None]) -> dict[str, tuple[str, ...]]:
        """Return, by rule, the heads of the components of hard calls that contain it, outermost first."""
    def expressions(
        self,
        entry: str,
        hard: dict[str, Expr],
        rebuilt: Callable[[Expr, list[Expr]], Expr],
        charge: Callable[[int, str], None],
    ) -> dict[str, Expr]:
        """Return the expressions of a rule and of the others of its system.

        ``hard``: the expressions that replace hard calls.
        """
    def called(
        self,
        large: int,
        doublings: int,
        rebuilt: Callable[[Expr, list[Expr]], Expr],
        charge: Callable[[int, str], None],
    ) -> dict[str, Expr]:
        """Return the expressions of the start and of the rules that stay called."""

def least_true(
    bodies: dict[str, RuleBody], leaf: Callable[[Expr], bool], is_nullable: bool
) -> frozenset[int]:
    """Return the ids of the nodes that have a word, or, if ``is_nullable``, of those that have the empty word.

    ``leaf`` decides nodes that are neither plain nor composed.
    """

def components(graph: dict[Any, Any]) -> list[list[Any]]:
    """Return the strongly connected components, in reverse topological order."""

def rule_bodies(rules: dict[str, Expr], known: dict[int, RuleBody]) -> dict[str, RuleBody]:
    """Return the body of each rule. ``known`` has the bodies that were made before, by the ids of their expressions."""

def first_fault(bodies: dict[str, RuleBody], most: int) -> str | None:
    """Return the first rule with a misplaced or unknown call or more than ``most`` positions, or None."""

def are_within(bodies: dict[str, RuleBody], ids: Container[int]) -> bool:
    """Return whether the ids of all nodes of the bodies are among ``ids``."""

def operators(bodies: dict[str, RuleBody]) -> int:
    """Return the operators of all nodes as bits."""

def call_graph(bodies: dict[str, RuleBody]) -> dict[str, list[str]]:
    """Return the rules that each rule calls."""

def left_edges(bodies: dict[str, RuleBody], empty: Container[int]) -> dict[str, list[str]]:
    """Return ``left_edge`` of each rule."""

def reachable(graph: dict[str, list[str]], start: str) -> list[str]:
    """Return the vertices that can be reached from ``start``, in depth-first order."""

def with_words(bodies: dict[str, RuleBody], roots: list[Expr], alive: Container[int]) -> set[int]:
    """Return the ids of nodes that have a word because the rules have one."""

def has_calls(roots: list[Expr]) -> bool:
    """Return whether a call is among the roots and the nodes below them, down to plain nodes."""

def nodes_below(roots: list[Expr], is_whole: bool) -> list[Expr]:
    """Return the roots and the nodes below them, operands first; unless ``is_whole``, down to plain nodes."""

class PlainPattern:
    """A regular expression without constructs that need Python's parser (``automata/regex/plain``)."""

    def expr(self) -> Expr: ...
    def width(self) -> tuple[int, int]:
        """Return the least and the greatest number of characters of a word."""
    def is_orderly(self) -> bool | None:
        """Return whether ``re.match`` surely matches all of every word; None: the pattern is too large."""
    def longer_by(self) -> tuple[tuple[int, int], ...] | None:
        """Return the ranges of characters by which a match may continue to a longer one; None: unknown."""
    def is_repetition(self) -> bool:
        """Return whether the pattern is a repetition, so that a sequence of words is a word."""
    def first(self) -> tuple[tuple[int, int], ...] | None:
        """Return ranges that contain all characters with which a word can begin; None: unknown."""
    def match_end(self, text: str, at: int) -> int | None:
        """Return the index after the match at ``at``, -1 if there is none; None: use ``re``."""

def read_pattern(
    pattern: str, classes: Mapping[str, object], named: Callable[[str], str], most: int
) -> PlainPattern | None:
    """Read a pattern in Python's syntax; None if it is not plain or has more than ``most`` positions."""

def plain_pattern(
    pattern: str,
    leaf: Callable[[tuple[tuple[int, int], ...]], Expr],
    named: Callable[[tuple[tuple[int, int], ...], str], str],
    most: int,
) -> Expr | None:
    """Return the expression of a pattern in ECMA-262's syntax, or None if it is not plain."""

class NameTexts:
    """The expressions of the names of JSON objects, under one setting of spellings."""

    def __init__(
        self,
        every: Expr,
        has_plain_names: bool,
        one: Callable[[str], Expr],
        several: Callable[[list[str]], Expr],
        few: int,
    ) -> None: ...
    def of(self, name: str) -> Expr:
        """Return the expression of a name."""
    def without(self, names: frozenset[str]) -> Expr:
        """Return the expression of all strings except these names."""

class MemberNodes:
    """The expressions of members of JSON objects: a name with its colon, and a value."""

    def __init__(self, colon: Expr, has_plain_names: bool) -> None: ...
    def members(
        self,
        names: list[str],
        formulas: dict[str, Any],
        known_names: dict[str, Expr],
        members: dict[tuple[str, int], Expr],
        texts: dict[Any, Expr],
        value_of: Callable[[Any], Expr],
        name_of: Callable[[str], Expr],
    ) -> dict[str, Expr]:
        """Return the expression of each member, by name. Fills ``known_names`` and ``members``."""

class PlainLevel:
    """The caches of the values at one depth of a JSON text (``json_schema/writing/writer.py``)."""

    def __init__(
        self,
        known: dict[Any, Expr],
        shared: dict[Any, Expr],
        names: dict[str, Expr],
        members: dict[tuple[str, int], Expr],
        later: dict[Expr, Expr],
        later_needed: dict[Expr, Expr],
        layout: tuple[Expr, Expr, Expr, Expr, Expr],
        nodes: MemberNodes,
        name_of: Callable[[str], Expr],
        texts: NameTexts,
        is_own: bool,
    ) -> None: ...

class PlainBody:
    """The body of a rule of a plain schema, which is written when it is called."""

    def __call__(self) -> Expr: ...

class PlainWriter:
    """Writes plain schemas as expressions and rules (``json_schema/writing/plain.py``)."""

    def __init__(
        self,
        reader: PlainReader,
        bits: tuple[int, int, int, int],
        nested: object,
        entered: object,
        typed: dict[Any, Expr],
        scalars: dict[Any, Expr],
        ways: object,
    ) -> None: ...
    def text(self, writer: object, level: object, formula: object) -> Expr | None:
        """Return the expression of the texts of a formula, or None if it is not a plain schema."""

def plain_parts(value: object) -> int:
    """Return how many values a JSON document has; 0 if ``json.loads`` could not have returned it."""

def characters(
    classes: npt.NDArray[np.uint8],
    table: npt.NDArray[np.uint32],
    accepting: npt.NDArray[np.bool_],
    start: int,
    limit: int,
    seconds: float,
) -> tuple[tuple[tuple[tuple[int, int, int], ...], ...], tuple[bool, ...], bool] | None:
    """Convert a byte automaton of UTF-8 texts to one over characters; None beyond ``limit``.

    Returns (steps of each state as (low, high, target), accepting states, whether all texts are whole characters).
    """

def word_counts(
    classes: npt.NDArray[np.uint8],
    table: npt.NDArray[np.uint32],
    accepting: npt.NDArray[np.bool_],
    start: int,
    excluded: int,
    many: int,
    numbers: list[int],
    longest: int,
    ascii: bool = False,
) -> tuple[int, bool, list[int]]:
    """Count the words of a trim automaton, without ``excluded`` of them, for ``json_schema/writing/distinct.py``.

    Returns the count (words are counted up to ``many`` squared), whether fewer than ``many`` words lead from some state
    to acceptance, and, for each of ``numbers``, a length within which more than so many words end, or all words (0: it
    exceeds ``longest``).
    """

def live_states(
    table: npt.NDArray[np.uint32], accepting: npt.NDArray[np.bool_], start: int, seconds: float
) -> npt.NDArray[np.uint8]:
    """Return for each state 1 if it is on a path from the start to acceptance, else 0."""

class Speller:
    """Converts automata over characters to automata over bytes, in one encoding (``automata/characters``)."""

    def __init__(
        self, forms: Sequence[tuple[int, int, int, Sequence[Sequence[bytes]], Sequence[int]]]
    ) -> None: ...
    def spell(
        self, steps: Sequence[Sequence[tuple[int, int, int]]], limit: int, seconds: float
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]] | None:
        """Return (classes, table) of a byte automaton, or None if it has more than ``limit`` states."""

class Node:
    """The base class of ``Expr``, whose fields the core reads in place. ``known``: whether the node is known to have a
    word (1), to have none (2), or neither (0).
    """

    op: Final[Op]
    args: Final[tuple[Expr, ...]]
    value: Final[
        int
        | bytes
        | str
        | tuple[int, int]
        | Unordered
        | Differing
        | Dfa
        | Lexicon
        | TokenName
        | TokenBound
        | None
    ]
    source: Final[str | None]
    size: Final[int]
    nullable: Final[bool]
    known: int
    def __init__(
        self,
        op: Op,
        args: tuple[Expr, ...] = ...,
        value: int
        | bytes
        | str
        | tuple[int, int]
        | Unordered
        | Differing
        | Dfa
        | Lexicon
        | TokenBound
        | TokenName
        | None = ...,
        source: str | None = ...,
        size: int = ...,
        nullable: bool = ...,
    ) -> None: ...

def begin_nodes(type: type[Node], ops: tuple[Op, ...], empty: Node, epsilon: Node) -> None:
    """Register ``Expr`` and its operators; to be called once."""

def concat(*parts: Expr) -> Expr:
    """Return the concatenation in normal form."""

def union(*parts: Expr) -> Expr:
    """Return the union in normal form."""

def literal(data: bytes) -> Expr: ...
def word_tree(words: list[bytes]) -> Expr:
    """Return the prefix tree of a finite set of words, as an expression."""

def first_of(parts: list[Expr], later: list[Expr], end: int) -> Expr:
    """Return the expression of a non-empty sequence of optional parts, of which the first ``end`` may come first.

    ``later[k]`` is part k after another part; it has the empty word if the part is optional.
    """

class ProgramCode:
    """The instructions of a program while it is written, and its side tables
    (``native/bindings/values/program_code.hpp`` defines the terms). Instructions are numbered from 0, operands first.
    """

    def __init__(self) -> None: ...
    def copy(self) -> ProgramCode: ...
    def follow(
        self,
        bodies: Mapping[str, Expr],
        states: Container[str],
        large: int,
        most: int,
        composed: list[int],
    ) -> None:
        """Set the rules that calls refer to, and which of them are inlined."""
    def enter(self, name: str) -> None:
        """Open a rule and push its body."""
    calls: dict[str, int]
    finished: dict[str, int]
    begun: set[str]
    open: list[str]
    def add(self, node: object, operands: list[int], size: int = ...) -> int:
        """Add an instruction unless there is an equal one; return its number."""
    def end_with(self, root: int) -> None:
        """Make an instruction the last one, which is the whole program."""
    def assure(self, number: int) -> None:
        """Record that an instruction is known to have a word."""
    def add_nodes(self, nodes: list[Expr], rules: dict[str, int], assured_ids: Container[int]) -> list[int]:
        """Write nodes that are given operands first; return the instructions that are known to have a word."""
    def number_of(self, node: object) -> int | None:
        """Return the instruction of a node, -1 if it has no word, None if it is not written."""
    def instruction(self, node: object) -> int:
        """Return the same for a node that is written; raises KeyError for others."""
    def give(self, node: object, number: int) -> None:
        """Set the instruction of a node that has none; -1: it has no word."""
    def push(self, node: object) -> None:
        """Push a node, which the caller keeps alive, onto the stack of nodes to be written."""
    def pop(self) -> None: ...
    def doubt(self, number: int, doubted: bool) -> None:
        """Set whether it is uncertain that an instruction has a word."""
    def advance(self) -> Any:
        """Write the nodes on the stack; return the first that is left to the caller, or None at the end of a rule."""
    def operands(self, node: object) -> list[int] | None:
        """Return the instructions of a node's operands; None if some are not written, which are then pushed."""
    def size_of(self, number: int) -> int:
        """Return the positions of an instruction with counted repetitions expanded."""
    @property
    def pending(self) -> bool: ...
    @property
    def length(self) -> int: ...
    @property
    def code(self) -> npt.NDArray[np.int32]: ...
    @property
    def blob(self) -> bytes: ...
    @property
    def rows(self) -> bytes: ...
    @property
    def labels(self) -> list[tuple[int, str]]: ...
    @property
    def assured(self) -> list[int]: ...
    @property
    def is_token_level(self) -> bool: ...
    @property
    def sets(self) -> dict[int, int]: ...
    @property
    def token_names(self) -> dict[Any, int]: ...
    @property
    def machines(self) -> list[Any]: ...
    @property
    def lexicons(self) -> list[Lexicon]: ...

class Program:
    """A program, decoded and checked, for any number of automata. Immutable. Raises ConstraintError."""

    def __init__(
        self,
        code: npt.NDArray[np.int32],
        sets: npt.NDArray[np.uint8],
        blob: bytes,
        machines: Sequence[Machine],
        labels: Sequence[tuple[int, str]],
        rules: Sequence[tuple[int, bool]],
        assured: npt.NDArray[np.int32],
        labelled: bool,
        lexicons: Sequence[Lexicon],
        token_classes: Sequence[tuple[int, int]],
    ) -> None: ...

class ByteAutomaton:
    """The byte automaton of a program, determinized as it is used."""

    def __init__(self, program: Program, states: int, bytes: int, seconds: float) -> None: ...
    def accepts(self, data: bytes) -> bool: ...
    def viable_prefix(self, data: bytes) -> int:
        """Return the length of the longest prefix of ``data`` that some word begins with; -1: there is no word."""
    def next_bytes(self, prefix: bytes) -> tuple[bytes, bool]:
        """Return the bytes that may follow a prefix, and whether it is a word."""
    def rules_around(self, prefix: bytes) -> list[list[int]]:
        """Return the rules that are open where a text leaves the language, the innermost first: one list for each of up
        to 64 readings that differ there.
        """
    def conflict(self) -> bytes | None:
        """Return a shortest text after which one stack is not enough; None: there is none."""
    def shortest(self) -> bytes | None:
        """Return a shortest word, a short one if strings must differ; None: there is no word."""
    def completed(self, prefix: bytes) -> bytes | None:
        """Return a short word that begins with a prefix; None: there is none."""
    @property
    def has_marks(self) -> bool: ...
    def determinize(
        self,
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32], npt.NDArray[np.uint8], int]:
        """Compute all states; return (classes, table, accepting, start)."""
    @property
    def num_states(self) -> int: ...
    @property
    def memory(self) -> int: ...

class ByteWalk:
    """The configurations of a byte automaton that a search visits, by number; 0 is the start, if there is a word.

    A text leads to one configuration. The condition that strings differ is ignored. Threads may share it; they take
    turns.
    """

    def __init__(self, automaton: ByteAutomaton) -> None: ...
    def __len__(self) -> int: ...
    def accepting(self, number: int) -> bool: ...
    def least(self, number: int) -> int:
        """Return a lower bound of the number of bytes to acceptance; 0: none is known."""
    def advance(self, number: int, byte: int) -> int: ...
    def boundary(self, number: int) -> int:
        """Return the configuration after the end of a token, if the language depends on tokens; -1: there is none."""
    def arcs(self, number: int) -> list[tuple[int, bytes]]:
        """Return pairs (configuration, bytes that lead to it)."""
    @property
    def memory(self) -> int: ...

class TextWithSentinels:
    """A text of a language with sentinels, read piece by piece (``native/exclusion/text_with_sentinels.hpp``).

    Threads may share it; they take turns.
    """

    def __init__(self, automaton: ByteAutomaton) -> None: ...
    @property
    def alive(self) -> bool: ...
    @property
    def accepting(self) -> bool: ...
    @property
    def state(self) -> int: ...
    def read(self, data: bytes, begin: int) -> int:
        """Read as much of ``data[begin:]`` as some word continues with; return the index after what was read."""
    def read_on(self, data: bytes) -> tuple[list[tuple[int, bytes]], int] | None:
        """Read ``data``. Take a sentinel where the text cannot continue, or at its end if only a sentinel can follow.

        Returns ([(place, sentinel)], number of bytes read), or None if all of ``data`` was read without a sentinel.
        """
    def take_sentinel(self) -> bytes:
        """Take the sentinel that can come next (the least of several) and return it; b"": there is none."""
    def sentinel_after(self, way: bytes) -> bytes:
        """Return the sentinel that can come after the text ``way``; b"": there is none."""
    def ahead(self, most: int) -> tuple[list[tuple[bytes, int]], bool, bool]:
        """Return the sentinels that text leads to, if there are at most ``most``.

        As ([(sentinel, number of bytes before it)], whether these numbers are fixed, whether nothing else may come).
        """
    def next_bytes(self, way: bytes) -> tuple[bytes, bool]:
        """Return the bytes that may follow after the text ``way``, and whether a word ends there."""

class Vocabulary:
    """The bytes of all tokens, their tries, and the fragments found over them. ``offsets`` has the index of each
    token's first byte, and the number of bytes; ``initial_data`` and ``initial_offsets`` are the same for the forms of
    tokens at the start of a text. Raises VocabularyError.
    """

    def __init__(
        self,
        data: bytes,
        offsets: npt.NDArray[np.uint64],
        initial_data: bytes | None,
        initial_offsets: npt.NDArray[np.uint64] | None,
        eos_ids: Sequence[int],
        start_absorbs: bool = False,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    @property
    def memory(self) -> int: ...
    @property
    def num_fragments(self) -> int: ...
    def limit_fragments(self, bytes: int) -> None:
        """Set how many bytes of fragments are cached."""
    @property
    def trie_nodes(self) -> int: ...
    def trie_tables(self, initial: bool = False) -> bytes:
        """Return the tables of a trie as bytes, for a file."""
    def adopt_trie(self, tables: npt.NDArray[np.uint8], initial: bool = False) -> bool:
        """Use the tables of a trie that are in an array. Returns False if they are not those of these tokens."""

_RuleTable = tuple[
    npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.float64]
]

class RuleChart:
    """The position of a text in a weighted grammar. Immutable."""

    @property
    def size(self) -> int: ...
    @property
    def end(self) -> float: ...
    def key(self) -> bytes:
        """Return a key that is equal for charts with the same continuations."""

class WeightedRules:
    """A weighted grammar without empty words (``native/scores/weighted_rules.hpp``). Immutable."""

    def __init__(
        self,
        bytes: WeightedBytes,
        rule_of: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint32],
        reads: npt.NDArray[np.uint8],
        calls: _RuleTable,
        predicts: _RuleTable,
        corners: _RuleTable,
        units: _RuleTable,
        first: _RuleTable,
        root: int,
        empty: float,
    ) -> None: ...
    def start(self, limit: int) -> RuleChart:
        """Return the chart of the empty text."""
    def advance(self, chart: RuleChart, data: bytes, limit: int, seconds: float) -> tuple[RuleChart, float]:
        """Return the chart after ``data``, and the log of the fraction of the weight of texts that continue with it."""
    def scores(
        self, vocabulary: Vocabulary, initial: bool, chart: RuleChart, limit: int, seconds: float
    ) -> npt.NDArray[np.float32]:
        """Return the log score of each token; -inf: no text continues with it. ``limit``: entries of charts."""

class WeightedBytes:
    """A weighted automaton over bytes, with failure arcs; weights are logarithms. Immutable. Raises ConstraintError."""

    def __init__(
        self,
        finals: npt.NDArray[np.float64],
        offsets: npt.NDArray[np.uint32],
        labels: npt.NDArray[np.uint8],
        weights: npt.NDArray[np.float64],
        targets: npt.NDArray[np.uint32],
        failures: npt.NDArray[np.int32],
        failure_weights: npt.NDArray[np.float64],
    ) -> None: ...
    @property
    def num_states(self) -> int: ...
    @property
    def memory(self) -> int: ...
    def advance(
        self, states: npt.NDArray[np.uint32], weights: npt.NDArray[np.float64], data: bytes
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64]]:
        """Return the states after ``data``, ascending, and their log weights."""
    def scores(
        self,
        vocabulary: Vocabulary,
        initial: bool,
        states: npt.NDArray[np.uint32],
        weights: npt.NDArray[np.float64],
        seconds: float,
    ) -> npt.NDArray[np.float32]:
        """Return the log score of each token; -inf: no path reads it."""

def lattice_forward(
    graph: Sequence[npt.NDArray[np.int64]], start: int, weights: npt.NDArray[Any], finals: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the log total of each row [rows], and the log-sum of all paths to each state [rows, states].

    ``graph``: sources, targets, arcs by target, arcs by source, where these begin for each state.
    """

def lattice_backward(
    graph: Sequence[npt.NDArray[np.int64]],
    weights: npt.NDArray[Any],
    finals: npt.NDArray[Any],
    alpha: npt.NDArray[np.float64],
    totals: npt.NDArray[np.float64],
    scales: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the gradients of the totals, times ``scales``, by the weights of arcs and of final states."""

class TokenAutomaton:
    """A vocabulary composed with a byte automaton, determinized as it is used. Threads may share it.

    Functions of states are for automata without a stack.
    """

    made_from: Any
    held_constraint: Any
    @staticmethod
    def compose(
        program: Program,
        vocabulary: Vocabulary,
        states: int,
        bytes: int,
        seconds: float,
        narrow: int = ...,
        symbols: Sequence[tuple[int, int]] = ...,
    ) -> TokenAutomaton:
        """Compose a program with a vocabulary. ``symbols``: (special token, symbol of the program).

        ``narrow``: a mask whose walk of the vocabulary enters at most this many nodes is computed without a fragment.
        """
    @staticmethod
    def from_arrays(
        vocabulary: Vocabulary, arrays: dict[str, Any], start: int, inner_start: int
    ) -> TokenAutomaton:
        """Return the automaton of an artifact, which refers to the arrays; raises ArtifactCorruptError."""
    def expand(self) -> dict[str, Any]:
        """Compute every state, mask and distance; return the arrays of an artifact."""
    def learn(self, arrays: dict[str, Any], instead: bool = False) -> None:
        """Load learned facts from the arrays of a file, in addition to those loaded before or ``instead`` of them."""
    def learned(self) -> dict[str, Any]:
        """Return all facts that were found or loaded, as the arrays of a file."""
    def advance(self, state: int, token: int) -> int:
        """Return the state after a token; 0: no text of the language continues with it."""
    def arcs(self, state: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """Return the tokens that are allowed in a state, and the state after each."""
    def distance(self, state: int) -> int:
        """Return the least number of tokens to acceptance."""
    @property
    def start(self) -> int: ...
    @property
    def is_empty(self) -> bool: ...
    @property
    def is_token_level(self) -> bool: ...
    @property
    def is_pushdown(self) -> bool: ...
    @property
    def has_marks(self) -> bool: ...
    @property
    def has_learned(self) -> bool: ...
    @property
    def spellable(self) -> bool: ...
    @property
    def memory(self) -> int: ...
    @property
    def stats(self) -> dict[str, int]: ...
    def share(self) -> bool:
        """Let several threads compute states at the same time. Returns False for finished tables, which need none."""

class Configurations:
    """The configurations of a token automaton that a search visits, by number."""

    def __init__(self, automaton: TokenAutomaton) -> None: ...
    def __len__(self) -> int: ...
    def accepting(self, number: int) -> bool: ...
    def distance(self, number: int) -> int: ...
    @property
    def distances_are_least(self) -> bool: ...
    def advance(self, number: int, token: int) -> int:
        """Return the configuration after a token; raises IndexError for a number out of range."""
    def arcs(
        self, number: int
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """Return (targets, offsets, tokens): ``tokens[offsets[k]:offsets[k + 1]]`` lead to ``targets[k]``."""
    def mask(self, number: int, left: int | None) -> npt.NDArray[np.int32] | None:
        """Return the mask of a configuration: the tokens after which the text can be completed within ``left`` tokens
        in all (``None``: any number). Returns None if bounds on distances do not decide it.
        """
    @property
    def memory(self) -> int: ...

class Matcher:
    """The state of one decoding under a constraint: a token automaton and the tokens accepted so far."""

    def __init__(self, automaton: TokenAutomaton, max_new_tokens: int | None = None) -> None: ...
    def accept_token(self, token_id: int) -> bool: ...
    def accept_tokens(self, token_ids: Sequence[int]) -> bool: ...
    def accept_until_over(self, token_ids: Sequence[int]) -> bool: ...
    def validate_tokens(self, token_ids: Sequence[int]) -> int: ...
    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool: ...
    def traverse_draft_tree(
        self,
        next_token: Sequence[int] | npt.NDArray[np.integer[Any]],
        next_sibling: Sequence[int] | npt.NDArray[np.integer[Any]],
        draft_tokens: Sequence[int] | npt.NDArray[np.integer[Any]],
        bitmask: Any,
    ) -> None: ...
    def forced_tokens(self) -> list[int]: ...
    def forced_bytes(self) -> bytes: ...
    def find_jump_forward_string(self) -> str: ...
    def explain(self, token_id: int) -> TokenExplanation: ...
    def captures(self) -> Captures: ...
    @property
    def temperature(self) -> float | None: ...
    def rollback(self, num_tokens: int = 1) -> None: ...
    def fork(self) -> Matcher: ...
    @property
    def automaton(self) -> TokenAutomaton: ...
    def reset(self) -> None: ...
    def is_accepting(self) -> bool: ...
    def is_over(self) -> bool: ...
    def is_terminated(self) -> bool: ...
    def distance(self) -> int: ...
    @property
    def max_tokens_left(self) -> int | None: ...
    @max_tokens_left.setter
    def max_tokens_left(self, left: int | None) -> None: ...
    @property
    def num_tokens(self) -> int: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def memory(self) -> int: ...
    @property
    def state(self) -> int: ...

def watch_interrupts() -> None:
    """Let Ctrl-C end every call of the core from now on; for programs, not for libraries."""

def lock_waits() -> tuple[int, float, float]:
    """Return how often threads waited for a lock since the last call, the sum of these waits and the longest one, in
    seconds.
    """

def fill_bitmasks(matchers: Sequence[Matcher], bitmask: Any, threads: int) -> None:
    """Fill row i of a bitmask with the mask of matcher i."""

def fill_step(matchers: list[Any], bitmask: Any, rows: Sequence[int] | None = None) -> None:
    """Fill the masks of one step of an engine. Rows of None and of texts that have ended allow every token."""

def apply_bitmask(
    logits: int,
    type: int,
    rows: int,
    width: int,
    stride: int,
    mask: int,
    mask_rows: int,
    words: int,
    mask_stride: int,
    vocab_size: int,
    indices: Sequence[int] | None,
    check_nan: bool,
    threads: int,
    level: str,
) -> tuple[int, int] | None:
    """Mask logits in place; return the (row, column) of the first NaN at an allowed column, or None.

    ``logits`` and ``mask`` are addresses, strides are in bytes. ``type``: 0 float32, 1 float16, 2 bfloat16.
    """

def row_without_choice(
    logits: int,
    type: int,
    rows: int,
    width: int,
    stride: int,
    mask: int,
    mask_rows: int,
    words: int,
    mask_stride: int,
    vocab_size: int,
    indices: Sequence[int] | None,
) -> int | None:
    """Return the first row in which every allowed logit is -inf, or None."""

def suffix_automaton(
    text: bytes, begins: npt.NDArray[np.uint8], ends: npt.NDArray[np.uint8], states: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32], npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
    """Return (classes, edges, accepting, offsets) of the automaton of a text's substrings.

    ``begins`` and ``ends``: for each position, the end included, whether a substring may begin or end there.
    """

def byte_tables(automaton: TokenAutomaton) -> dict[str, Any]:
    """Return the byte automaton of a token automaton without a stack, with every state."""

def limit_layers(automaton: TokenAutomaton, bytes: int, seconds: float) -> dict[str, npt.NDArray[np.uint32]]:
    """Return the masks of each state under a limit of tokens, as lists of (least distance, mask)."""

def stack_layers(
    automaton: TokenAutomaton,
    states: list[int],
    masks: list[int],
    offsets: list[int],
    answers: list[int],
    bytes: int,
    seconds: float,
) -> dict[str, npt.NDArray[np.uint32]]:
    """Return ``limit_layers`` of a push-down automaton, for each leaf of its decision trees."""

class DeviceTables:
    """Packed tables at addresses in host memory, which the caller keeps alive. Nothing is checked.

    ``addresses``: states, table, classes, bytes, tokens, masks, rows, flips, layers. Arrays are passed as addresses
    too; ``type`` is that of ``apply_bitmask``.
    """

    def __init__(
        self,
        addresses: Sequence[int],
        num_states: int,
        vocab_size: int,
        words: int,
    ) -> None: ...
    def advance(self, states: int, tokens: int, out: int, rows: int) -> None:
        """Write the state after a token for each row."""
    def mask(
        self,
        states: int,
        each_left: int,
        left: int,
        logits: int,
        type: int,
        rows: int,
        width: int,
        stride: int,
        threads: int,
    ) -> None:
        """Mask the logits of each row. ``each_left``: the address of the number of tokens left of each row; if it is 0,
        all rows have ``left`` tokens left.
        """
    def greedy(
        self,
        states: int,
        each_left: int,
        left: int,
        logits: int,
        type: int,
        rows: int,
        width: int,
        stride: int,
        tokens: int,
        next: int,
        threads: int,
    ) -> None:
        """Mask the logits; write, for each row, the token with the greatest logit and the state after this token."""
    def fill(self, states: int, each_left: int, left: int, bitmask: int, rows: int) -> None:
        """Write the mask of each row."""

class DeviceStacks:
    """The tables of stacks, in addition to those of states. ``addresses``: controls, actions, pushes, comb, frames."""

    def __init__(
        self,
        tables: DeviceTables,
        addresses: Sequence[int],
        num_states: int,
        num_slots: int,
        num_frames: int,
        capacity: int,
    ) -> None: ...
    def advance(self, states: int, tokens: int, out: int, rows: int) -> None: ...
    def resting(self, states: int, out: int, lengths: int, rows: int) -> None:
        """Write, for each row, the state whose mask it has, and, unless ``lengths`` is 0, how many tokens complete the
        stack symbols below those that were inspected.
        """

def simd_levels() -> list[str]:
    """Return the levels that this CPU supports, best first."""

def buffer_address(array: Any) -> int:
    """Return the address of an array's first element."""
