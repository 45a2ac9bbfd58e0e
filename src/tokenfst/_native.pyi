"""Types of the native core (native/bindings.cpp). Semantics stand with the Python faces that use it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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

class ByteAutomaton:
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
        states: int,
        bytes: int,
        seconds: float,
    ) -> None: ...
    def accepts(self, data: bytes) -> bool: ...
    def viable_prefix(self, data: bytes) -> int: ...
    def next_bytes(self, prefix: bytes) -> tuple[bytes, bool]: ...
    def rules_around(self, prefix: bytes) -> list[list[int]]: ...
    def conflict(self) -> bytes | None: ...
    def shortest(self) -> bytes | None: ...
    def determinize(
        self,
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32], npt.NDArray[np.uint8], int]: ...
    @property
    def num_states(self) -> int: ...
    @property
    def memory(self) -> int: ...

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
    def trie_nodes(self) -> int: ...

class TokenAutomaton:
    @staticmethod
    def compose(
        code: npt.NDArray[np.int32],
        sets: npt.NDArray[np.uint8],
        blob: bytes,
        machines: Sequence[Machine],
        labels: Sequence[tuple[int, str]],
        rules: Sequence[tuple[int, bool]],
        assured: npt.NDArray[np.int32],
        labelled: bool,
        lexicons: Sequence[Lexicon],
        vocabulary: Vocabulary,
        states: int,
        bytes: int,
        seconds: float,
        narrow: int = ...,
    ) -> TokenAutomaton: ...
    @staticmethod
    def from_arrays(
        vocabulary: Vocabulary, arrays: dict[str, Any], start: int, inner_start: int
    ) -> TokenAutomaton: ...
    def expand(self) -> dict[str, Any]: ...
    def advance(self, state: int, token: int) -> int: ...
    def arcs(self, state: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
    def distance(self, state: int) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def is_empty(self) -> bool: ...
    @property
    def is_pushdown(self) -> bool: ...
    @property
    def spellable(self) -> bool: ...
    @property
    def memory(self) -> int: ...
    @property
    def stats(self) -> dict[str, int]: ...

class Matcher:
    """One decoding under a constraint: where the tokens accepted so far have led."""

    def __init__(self, automaton: TokenAutomaton, max_tokens: int | None = None) -> None: ...
    def accept_token(self, token_id: int) -> bool: ...
    def accept_tokens(self, token_ids: Sequence[int]) -> bool: ...
    def validate_tokens(self, token_ids: Sequence[int]) -> int: ...
    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool: ...
    def traverse_draft_tree(
        self,
        next_token: npt.NDArray[np.int64],
        next_sibling: npt.NDArray[np.int64],
        draft_tokens: npt.NDArray[np.int64],
        bitmask: Any,
    ) -> None: ...
    def forced_tokens(self) -> list[int]: ...
    def forced_bytes(self) -> bytes: ...
    def find_jump_forward_string(self) -> str: ...
    def rollback(self, num_tokens: int = 1) -> None: ...
    def fork(self) -> Matcher: ...
    def reset(self) -> None: ...
    def is_accepting(self) -> bool: ...
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

def fill_bitmasks(matchers: Sequence[Matcher], bitmask: Any, threads: int) -> None: ...
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
def suffix_automaton(
    text: bytes, begins: npt.NDArray[np.uint8], ends: npt.NDArray[np.uint8], states: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32], npt.NDArray[np.uint8], npt.NDArray[np.uint32]]: ...
def budget_layers(
    automaton: TokenAutomaton, bytes: int, seconds: float
) -> dict[str, npt.NDArray[np.uint32]]: ...

class DeviceTables:
    def __init__(
        self,
        states: int,
        table: int,
        classes: int,
        bytes: int,
        tokens: int,
        masks: int,
        rows: int,
        flips: int,
        layers: int,
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

def simd_levels() -> list[str]: ...
def buffer_address(array: Any) -> int: ...
