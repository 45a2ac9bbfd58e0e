"""Types of the native core (native/bindings). Semantics stand with the Python faces that use it."""

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
    def __init__(
        self,
        classes: npt.NDArray[np.uint8],
        table: npt.NDArray[np.uint32],
        accepting: npt.NDArray[np.bool_],
        start: int,
        offsets: npt.NDArray[np.uint32],
    ) -> None: ...

class Lexicon:
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
    """A transducer; so are ``Fst_standard``, ``Fst_log64`` and all others of automata/transducers/weights.py."""

    def num_states(self) -> int: ...
    def start(self) -> int: ...
    def arrays(self) -> tuple[npt.NDArray[Any], ...]: ...
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
    ) -> Fst_boolean: ...
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
    def __init__(self) -> None: ...
    def hold(self, document: object, forms: dict[str, int]) -> bool: ...

class PlainReader:
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
    def said(self, schema: dict[str, Any]) -> int: ...
    def formula(
        self,
        schema: object,
        atoms: dict[Any, Any],
        targets: dict[Any, Any],
        resource: object,
        closed: object,
        pointer: str,
        keyword: str,
    ) -> Any: ...
    def formulas(
        self,
        properties: dict[str, Any],
        atoms: dict[Any, Any],
        targets: dict[Any, Any],
        resource: object,
        closed: object,
        pointer: str,
        otherwise: Callable[[Any, str], object],
    ) -> dict[str, Any]: ...

class PlainPattern:
    def expr(self) -> Expr: ...
    def width(self) -> tuple[int, int]: ...
    def is_orderly(self) -> bool | None: ...
    def hides_nothing(self) -> bool: ...
    def first(self) -> tuple[tuple[int, int], ...] | None: ...

def read_pattern(
    pattern: str, classes: Mapping[str, object], named: Callable[[str], str], most: int
) -> PlainPattern | None: ...
def plain_pattern(
    pattern: str,
    leaf: Callable[[tuple[tuple[int, int], ...]], Expr],
    named: Callable[[tuple[tuple[int, int], ...], str], str],
    most: int,
) -> Expr | None: ...

class NameTexts:
    def __init__(
        self,
        every: Expr,
        has_plain_names: bool,
        one: Callable[[str], Expr],
        several: Callable[[list[str]], Expr],
        few: int,
    ) -> None: ...
    def of(self, name: str) -> Expr: ...
    def without(self, names: frozenset[str]) -> Expr: ...

class MemberNodes:
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
    ) -> dict[str, Expr]: ...

class PlainLevel:
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

class PlainWriter:
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
    def text(self, writer: object, level: object, formula: object) -> Expr | None: ...

def plain_parts(value: object) -> int: ...
def characters(
    classes: npt.NDArray[np.uint8],
    table: npt.NDArray[np.uint32],
    accepting: npt.NDArray[np.bool_],
    start: int,
    limit: int,
    seconds: float,
) -> tuple[tuple[tuple[tuple[int, int, int], ...], ...], tuple[bool, ...], bool] | None: ...
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
) -> tuple[int, bool, list[int]]: ...
def live_states(
    table: npt.NDArray[np.uint32], accepting: npt.NDArray[np.bool_], start: int, seconds: float
) -> npt.NDArray[np.uint8]: ...

class Speller:
    def __init__(
        self, forms: Sequence[tuple[int, int, int, Sequence[Sequence[bytes]], Sequence[int]]]
    ) -> None: ...
    def spell(
        self, steps: Sequence[Sequence[tuple[int, int, int]]], limit: int, seconds: float
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]] | None: ...

class Node:
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

def begin_nodes(type: type[Node], ops: tuple[Op, ...], empty: Node, epsilon: Node) -> None: ...
def concat(*parts: Expr) -> Expr: ...
def union(*parts: Expr) -> Expr: ...
def literal(data: bytes) -> Expr: ...
def word_tree(words: list[bytes]) -> Expr: ...
def first_of(parts: list[Expr], later: list[Expr], end: int) -> Expr: ...

class ProgramCode:
    def __init__(self) -> None: ...
    def copy(self) -> ProgramCode: ...
    def follow(
        self,
        bodies: Mapping[str, Expr],
        states: Container[str],
        large: int,
        most: int,
        composed: list[int],
    ) -> None: ...
    def enter(self, name: str) -> None: ...
    calls: dict[str, int]
    finished: dict[str, int]
    begun: set[str]
    open: list[str]
    def add(self, node: object, operands: list[int], size: int = ...) -> int: ...
    def number_of(self, node: object) -> int | None: ...
    def give(self, node: object, number: int) -> None: ...
    def push(self, node: object) -> None: ...
    def pop(self) -> None: ...
    def doubt(self, number: int, doubted: bool) -> None: ...
    def advance(self) -> Any: ...
    def operands(self, node: object) -> list[int] | None: ...
    def size_of(self, number: int) -> int: ...
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
    def __init__(self, program: Program, states: int, bytes: int, seconds: float) -> None: ...
    def accepts(self, data: bytes) -> bool: ...
    def viable_prefix(self, data: bytes) -> int: ...
    def next_bytes(self, prefix: bytes) -> tuple[bytes, bool]: ...
    def rules_around(self, prefix: bytes) -> list[list[int]]: ...
    def conflict(self) -> bytes | None: ...
    def shortest(self) -> bytes | None: ...
    def completed(self, prefix: bytes) -> bytes | None: ...
    @property
    def has_marks(self) -> bool: ...
    def determinize(
        self,
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32], npt.NDArray[np.uint8], int]: ...
    @property
    def num_states(self) -> int: ...
    @property
    def memory(self) -> int: ...

class ByteWalk:
    def __init__(self, automaton: ByteAutomaton) -> None: ...
    def __len__(self) -> int: ...
    def accepting(self, number: int) -> bool: ...
    def least(self, number: int) -> int: ...
    def advance(self, number: int, byte: int) -> int: ...
    def boundary(self, number: int) -> int: ...
    def arcs(self, number: int) -> list[tuple[int, bytes]]: ...
    @property
    def memory(self) -> int: ...

class TextWithSentinels:
    def __init__(self, automaton: ByteAutomaton) -> None: ...
    @property
    def alive(self) -> bool: ...
    @property
    def accepting(self) -> bool: ...
    @property
    def state(self) -> int: ...
    def read(self, data: bytes, begin: int) -> int: ...
    def read_on(self, data: bytes) -> tuple[list[tuple[int, bytes]], int] | None: ...
    def take_sentinel(self) -> bytes: ...
    def sentinel_after(self, way: bytes) -> bytes: ...
    def ahead(self, most: int) -> tuple[list[tuple[bytes, int]], bool, bool]: ...
    def next_bytes(self, way: bytes) -> tuple[bytes, bool]: ...

class Vocabulary:
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
    def limit_fragments(self, bytes: int) -> None: ...
    @property
    def trie_nodes(self) -> int: ...
    def trie_tables(self, initial: bool = False) -> bytes: ...
    def adopt_trie(self, tables: npt.NDArray[np.uint8], initial: bool = False) -> bool: ...

_RuleTable = tuple[
    npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.float64]
]

class RuleChart:
    @property
    def size(self) -> int: ...
    @property
    def end(self) -> float: ...
    def key(self) -> bytes: ...

class WeightedRules:
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
    def start(self, limit: int) -> RuleChart: ...
    def advance(
        self, chart: RuleChart, data: bytes, limit: int, seconds: float
    ) -> tuple[RuleChart, float]: ...
    def scores(
        self, vocabulary: Vocabulary, initial: bool, chart: RuleChart, limit: int, seconds: float
    ) -> npt.NDArray[np.float32]: ...

class WeightedBytes:
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
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64]]: ...
    def scores(
        self,
        vocabulary: Vocabulary,
        initial: bool,
        states: npt.NDArray[np.uint32],
        weights: npt.NDArray[np.float64],
        seconds: float,
    ) -> npt.NDArray[np.float32]: ...

def lattice_forward(
    graph: Sequence[npt.NDArray[np.int64]], start: int, weights: npt.NDArray[Any], finals: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...
def lattice_backward(
    graph: Sequence[npt.NDArray[np.int64]],
    weights: npt.NDArray[Any],
    finals: npt.NDArray[Any],
    alpha: npt.NDArray[np.float64],
    totals: npt.NDArray[np.float64],
    scales: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]: ...

class TokenAutomaton:
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
    ) -> TokenAutomaton: ...
    @staticmethod
    def from_arrays(
        vocabulary: Vocabulary, arrays: dict[str, Any], start: int, inner_start: int
    ) -> TokenAutomaton: ...
    def expand(self) -> dict[str, Any]: ...
    def learn(self, arrays: dict[str, Any], instead: bool = False) -> None: ...
    def learned(self) -> dict[str, Any]: ...
    def advance(self, state: int, token: int) -> int: ...
    def arcs(self, state: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
    def distance(self, state: int) -> int: ...
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
    def share(self) -> bool: ...

class Configurations:
    """The configurations of a token automaton that a search visits, by number."""

    def __init__(self, automaton: TokenAutomaton) -> None: ...
    def __len__(self) -> int: ...
    def accepting(self, number: int) -> bool: ...
    def distance(self, number: int) -> int: ...
    @property
    def distances_are_least(self) -> bool: ...
    def advance(self, number: int, token: int) -> int: ...
    def arcs(
        self, number: int
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
    def mask(self, number: int, left: int | None) -> npt.NDArray[np.int32] | None:
        """The mask of a configuration within so many tokens (None: any number); None where bounds do not say it."""
    @property
    def memory(self) -> int: ...

class Matcher:
    """One decoding under a constraint: where the tokens accepted so far have led."""

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

def watch_interrupts() -> None: ...
def lock_waits() -> tuple[int, float, float]: ...
def fill_bitmasks(matchers: Sequence[Matcher], bitmask: Any, threads: int) -> None: ...
def fill_step(matchers: list[Any], bitmask: Any, rows: Sequence[int] | None = None) -> None: ...
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
) -> tuple[int, int] | None: ...
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
) -> int | None: ...
def suffix_automaton(
    text: bytes, begins: npt.NDArray[np.uint8], ends: npt.NDArray[np.uint8], states: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32], npt.NDArray[np.uint8], npt.NDArray[np.uint32]]: ...
def byte_tables(automaton: TokenAutomaton) -> dict[str, Any]: ...
def budget_layers(
    automaton: TokenAutomaton, bytes: int, seconds: float
) -> dict[str, npt.NDArray[np.uint32]]: ...
def stack_layers(
    automaton: TokenAutomaton,
    states: list[int],
    masks: list[int],
    offsets: list[int],
    answers: list[int],
    bytes: int,
    seconds: float,
) -> dict[str, npt.NDArray[np.uint32]]: ...

class DeviceTables:
    def __init__(
        self,
        addresses: Sequence[int],
        num_states: int,
        vocab_size: int,
        words: int,
    ) -> None: ...
    def advance(self, states: int, tokens: int, out: int, rows: int) -> None: ...
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
    ) -> None: ...
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
    ) -> None: ...
    def fill(self, states: int, each_left: int, left: int, bitmask: int, rows: int) -> None: ...

class DeviceStacks:
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
    def resting(self, states: int, out: int, lengths: int, rows: int) -> None: ...

def simd_levels() -> list[str]: ...
def buffer_address(array: Any) -> int: ...
