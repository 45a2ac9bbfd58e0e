"""Finite automata over tokens as edges and incidence matrices: one edge for each pair of states, with its set of
tokens.

Globally constrained decoding represents an automaton by three incidence matrices ("Mitigating bias in locally
constrained decoding via tractable proposals", definition 3.2): ``T_out`` (S, E) for the source of each edge, ``T_in``
(E, S) for its target, and ``B_f`` (E, V) for its tokens. ``TokenEdges`` is this representation, of a token automaton
(``from_automaton``) or of arcs, deterministic or not (``from_arcs``).

Data. Edges are sorted by source and target; ``source`` and ``target`` are T_out and T_in. Many edges have the same
tokens (all positions within a string do), so each distinct token set is stored once, as a row of a CSR matrix, and
``label`` is the number of each edge's set: B_f = rows of ``token_sets`` taken by ``label``. Sums over the tokens of all
edges are then computed once for each set, not once for each edge.

Invariants: no two edges have the same source and target; no set is empty; sets are distinct, their tokens ascending.

Cost. One walk of the vocabulary for each state, and 8 bytes for each token of the distinct sets. Example: Tekken's
131,072 tokens and a JSON string of up to 30 characters take 1.5 s and give 243 states, 1,735 edges, 81 sets with
129,710 tokens in all. Rejected: one arc for each token, which would be millions there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, checked_but, whole
from tokenfst.common.plurals import counted
from tokenfst.common.token_ids import outside
from tokenfst.decoding.matchers.reach import nearest
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    MissingDependencyError,
    TokenLimitError,
)

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error

if TYPE_CHECKING:
    from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TokenEdges:
    """An automaton over the tokens 0..V-1, with one edge for each pair of connected states. Read-only.

    ``start``: bool (S,), the initial states. ``accepting``: bool (S,). ``source``, ``target``, ``label``: int64 (E,),
    the states of each edge and the number of its token set. ``offsets``: int64 (D + 1,), ``tokens``: int64; set d is
    ``tokens[offsets[d] : offsets[d + 1]]``. ``num_tokens``: V.

    End tokens are on edges only after ``with_end``: acceptance takes their place, as in ``TokenAutomaton.arcs()``.
    """

    start: npt.NDArray[np.bool_]
    accepting: npt.NDArray[np.bool_]
    source: Ints
    target: Ints
    label: Ints
    offsets: Ints
    tokens: Ints
    num_tokens: int

    @classmethod
    @checked
    def from_automaton(cls, automaton: TokenAutomaton) -> TokenEdges:
        """The edges of a token automaton's reachable states; state 0 is its start. Deterministic.

        Within ``automaton.budget``. Raises ``ConstraintError`` for a push-down automaton, ``EmptyLanguageError`` if no
        token sequence is accepted, ``BudgetExceeded``.
        """
        native, budget = automaton.native, automaton.budget
        if automaton.is_pushdown:
            raise ConstraintError(
                f"{automaton.source} needs a stack and has no finite set of edges. Compile its truncate(depth) instead"
            )
        if not native.spellable:
            raise EmptyLanguageError(
                f"no token sequence of this vocabulary spells any string of {automaton.source}"
            )
        states, accepting = [int(native.start)], []
        number = {states[0]: 0}
        edges = _EdgeList(budget)
        for here, state in enumerate(states):  # grows meanwhile
            found, where = native.arcs(state)
            arrived, which = np.unique(where, return_inverse=True)
            for new in arrived.tolist():
                if new not in number:
                    number[new] = len(states)
                    states.append(new)
            if len(states) > budget.states:
                raise BudgetExceeded("states", budget.states, f"the edges of {automaton.source}")
            ends = np.array([number[new] for new in arrived.tolist()], np.int64)
            edges.add(here, ends[which], found.astype(np.int64))
            accepting.append(native.distance(state) == 0)
        start = np.zeros(len(states), np.bool_)
        start[0] = True
        return edges.freeze(start, np.array(accepting, np.bool_), len(automaton.vocabulary))

    @classmethod
    @checked_but("arcs")
    def from_arcs(
        cls,
        arcs: Iterable[tuple[int, int, int]] | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
        *,
        num_states: int,
        start: Sequence[int],
        accepting: Sequence[int],
        num_tokens: int,
        budget: Budget | None = None,
    ) -> TokenEdges:
        """The edges of arcs (source, token, target), deterministic or not: triples, or three arrays. Repeated arcs
        count once.

        Raises ``ConstraintError`` for a state outside ``num_states``, ``TokenIdError`` for a token outside the
        vocabulary, ``BudgetExceeded``. O(arcs log arcs).
        """
        try:
            if isinstance(arcs, tuple) and len(arcs) == 3 and not isinstance(arcs[0], tuple):
                columns = np.stack([np.asarray(column, np.int64) for column in arcs])
            else:
                columns = np.array(list(arcs), np.int64).reshape(-1, 3).T
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise ConstraintError(
                f"arcs must be triples (state, token, state) of integers: {error}"
            ) from error
        sources, tokens, targets = np.unique(columns, axis=1)
        for bad in tokens[(tokens < 0) | (tokens >= num_tokens)][:1].tolist():
            raise outside(bad, num_tokens)
        for bad in [s for s in [*sources, *targets, *start, *accepting] if not 0 <= s < num_states][:1]:
            raise ConstraintError(f"there is no state {bad}: num_states is {num_states:,}")
        edges = _EdgeList(budget or Budget())
        begins = np.searchsorted(sources, np.arange(num_states + 1))
        for state in range(num_states):
            part = slice(begins[state], begins[state + 1])
            edges.add(state, targets[part], tokens[part])
        flags = np.zeros((2, num_states), np.bool_)
        flags[0, list(start)] = flags[1, list(accepting)] = True
        return edges.freeze(flags[0], flags[1], num_tokens)

    def __repr__(self) -> str:
        return (
            f"<TokenEdges: {counted(self.num_states, 'state')}, {counted(self.num_edges, 'edge')} with "
            f"{counted(self.num_sets, 'token set')} over {counted(self.num_tokens, 'token')}>"
        )

    @property
    def num_states(self) -> int:
        """The number of states, S."""
        return len(self.accepting)

    @property
    def num_edges(self) -> int:
        """The number of edges, E."""
        return len(self.source)

    @property
    def num_sets(self) -> int:
        """The number of distinct token sets, D."""
        return len(self.offsets) - 1

    @checked
    def set_of(self, label: int) -> Ints:
        """The tokens of a set, ascending."""
        whole("TokenEdges.set_of", "label", label, 0, self.num_sets - 1)
        return self.tokens[self.offsets[label] : self.offsets[label + 1]]

    @checked
    def with_end(self, end_tokens: Sequence[int], *, needed: bool = False) -> TokenEdges:
        """The automaton with end tokens on edges.

        They lead from accepting states to one more state, the last one, which is accepting and has a loop of
        ``end_tokens[0]`` as padding. So the sequences of exactly n tokens are the texts of at most n tokens, padded,
        and the exact-length algorithms also implement limits (``at_most``). A text of n tokens needs no end token. With
        ``needed`` every text needs its end token, and there is no padding: the sequences of exactly n tokens are the
        texts of n - 1 tokens, each with its end token.
        """
        for bad in [token for token in end_tokens if not 0 <= token < self.num_tokens]:
            raise outside(bad, self.num_tokens)
        edges, end = _EdgeList(Budget()), self.num_states
        ends = np.unique(np.array(end_tokens, np.int64))
        for state in range(self.num_states):
            for edge in range(*np.searchsorted(self.source, [state, state + 1]).tolist()):
                edges.append(state, int(self.target[edge]), self.set_of(int(self.label[edge])))
            if self.accepting[state]:
                edges.append(state, end, ends)
        if not needed:
            edges.append(end, end, np.array(end_tokens[:1], np.int64))
        accepting = np.append(self.accepting & (not needed), True)
        return edges.freeze(np.append(self.start, False), accepting, self.num_tokens)

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether there is one initial state, and no state has two edges with the same token."""
        if np.count_nonzero(self.start) != 1:
            return False
        counts = np.bincount(self.source, self._lengths(), self.num_states)
        return all(
            len(np.unique(np.concatenate([self.set_of(d) for d in self.label[begin:end]]))) == count
            for begin, end, count in zip(*self._slices(), counts.tolist(), strict=True)
            if end - begin > 1
        )

    @checked
    def is_unambiguous(self, budget: Budget | None = None) -> bool:
        """Whether no token sequence has two accepting paths. Then sums over paths are sums over sequences.

        Decided on the product of the automaton with itself, O(E²) in the worst case, within ``budget``.
        """
        if self.is_deterministic:
            return True
        most = (budget or Budget()).states
        begins, ends = self._slices()
        meet = np.zeros((self.num_sets, self.num_sets), np.bool_)
        matrix = self.token_sets(dtype=torch.float32)
        for label in range(self.num_sets):
            row = torch.zeros(self.num_tokens)
            row[torch.tensor(self.set_of(label))] = 1
            meet[label] = (matrix @ row).numpy() > 0
        initial = np.flatnonzero(self.start)
        pairs = [(int(p), int(q)) for p in initial for q in initial]
        before: dict[tuple[int, int], list[tuple[int, int]]] = {pair: [] for pair in pairs}
        for p, q in pairs:  # grows meanwhile
            for i in range(begins[p], ends[p]):
                for j in range(begins[q], ends[q]):
                    if not meet[self.label[i], self.label[j]]:
                        continue
                    pair = int(self.target[i]), int(self.target[j])
                    if pair not in before:
                        pairs.append(pair)
                        before[pair] = []
                    before[pair].append((p, q))
            if len(pairs) > most:
                raise BudgetExceeded("states", most, "the product of an automaton with itself")
        live = [pair for pair in pairs if self.accepting[pair[0]] and self.accepting[pair[1]]]
        found = set(live)
        for pair in live:  # grows meanwhile
            for earlier in before[pair]:
                if earlier not in found:
                    found.add(earlier)
                    live.append(earlier)
        return all(p == q for p, q in found)

    @checked
    def reachability(self, length: int, budget: Budget | None = None) -> npt.NDArray[np.bool_]:
        """β for exact lengths: bool (length + 1, S); entry (r, s) is True if some sequence of exactly r tokens leads
        from s to acceptance. O(length * E). Raises ``BudgetExceeded``.
        """
        whole("TokenEdges.reachability", "length", length, 0)
        deadline = Deadline(budget or Budget(), f"what {counted(length, 'token')} complete")
        if (length + 1) * self.num_states > deadline.budget.bytes:
            raise BudgetExceeded("bytes", deadline.budget.bytes, deadline.where)
        beta = np.zeros((length + 1, self.num_states), np.bool_)
        beta[0] = self.accepting
        for r in range(1, length + 1):
            deadline.check()
            beta[r, self.source[beta[r - 1][self.target]]] = True
        return beta

    @checked
    def completing(
        self, tokens: int, *, exact: bool, name: str, budget: Budget | None = None
    ) -> npt.NDArray[np.bool_]:
        """``reachability(tokens, budget)``, after a check that some text has ``tokens`` tokens.

        Otherwise raises ``TokenLimitError``, which names the nearest feasible numbers. ``exact`` and ``name`` (of the
        automaton) are used in the message. Raises ``BudgetExceeded``.
        """
        deadline = Deadline(budget or Budget(), f"the numbers of tokens that texts of {name} have")
        with deadline.part() as part:
            beta = self.reachability(tokens, part)
        if not (beta[tokens] & self.start).any():
            less = np.flatnonzero((beta & self.start).any(axis=1)).tolist()
            more = self._next_length(beta[tokens], tokens, deadline)
            kind = "exactly" if exact else "at most"
            raise TokenLimitError(
                f"no text of {name} has {kind} {counted(tokens, 'token')}: "
                + nearest(tokens, [*less, *([] if more is None else [more])])
            )
        return beta

    def _next_length(self, reach: npt.NDArray[np.bool_], tokens: int, deadline: Deadline) -> int | None:
        """The least number of tokens above ``tokens`` that some text has.

        ``reach``: the states that ``tokens`` tokens complete. This terminates, because only states that the start
        reaches are followed: with a cycle among them there are arbitrarily long texts, without one no text has as
        many tokens as there are states.
        """
        met = self.start.copy()
        for _ in range(self.num_states):
            deadline.check()
            further = met.copy()
            further[self.target[met[self.source]]] = True
            if (further == met).all():
                break
            met = further
        while (reach := reach & met).any():
            deadline.check()
            before = np.zeros_like(reach)
            before[self.source[reach[self.target]]] = True
            reach, tokens = before, tokens + 1
            if (reach & self.start).any():
                return tokens
        return None

    # --- matrices -------------------------------------------------------------------------------------------------

    @checked
    def out_matrix(
        self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """T_out: sparse CSR of shape (S, E), 1 at the source state of each edge."""
        offsets = np.searchsorted(self.source, np.arange(self.num_states + 1))
        return _csr(offsets, np.arange(self.num_edges), (self.num_states, self.num_edges), device, dtype)

    @checked
    def in_matrix(
        self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """T_in: sparse CSR of shape (E, S), 1 at the target state of each edge."""
        return _csr(
            np.arange(self.num_edges + 1), self.target, (self.num_edges, self.num_states), device, dtype
        )

    @checked
    def token_sets(
        self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """The distinct token sets: sparse CSR of shape (D, V). Row ``label[e]`` is row e of B_f."""
        return _csr(self.offsets, self.tokens, (self.num_sets, self.num_tokens), device, dtype)

    @checked
    def sets_by_token(
        self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """The transpose of ``token_sets``, by rows: sparse CSR of shape (V, D).

        Multiply this matrix by a dense one, not a dense one by ``token_sets``: that takes 2 ms instead of 400 ms (4
        rows, 1.2 million tokens).
        """
        labels = np.repeat(np.arange(self.num_sets), np.diff(self.offsets))
        counts = np.bincount(self.tokens, minlength=self.num_tokens)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        order = np.argsort(self.tokens, kind="stable")
        return _csr(offsets, labels[order], (self.num_tokens, self.num_sets), device, dtype)

    @checked
    def label_matrix(
        self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """B_f: sparse CSR of shape (E, V), 1 for each token of an edge. ``token_sets`` avoids the repetition."""
        lengths = self._lengths()
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        columns = [self.set_of(int(d)) for d in self.label]
        tokens = np.concatenate(columns) if columns else np.empty(0, np.int64)
        return _csr(offsets, tokens, (self.num_edges, self.num_tokens), device, dtype)

    def _lengths(self) -> Ints:
        return np.diff(self.offsets)[self.label]

    def _slices(self) -> tuple[list[int], list[int]]:
        """The first edge of each state, and the one after its last."""
        offsets = np.searchsorted(self.source, np.arange(self.num_states + 1)).tolist()
        return offsets[:-1], offsets[1:]


class _EdgeList:
    """Edges under construction, state by state; equal token sets are stored once."""

    def __init__(self, budget: Budget) -> None:
        self._most = budget.bytes
        self._held = 0
        self._labels: dict[bytes, int] = {}
        self._sets: list[Ints] = []
        self._edges: list[tuple[int, int, int]] = []

    def add(self, state: int, targets: Ints, tokens: Ints) -> None:
        """The arcs of a state."""
        order = np.lexsort((tokens, targets))
        targets, tokens = targets[order], tokens[order]
        ends, begins = np.unique(targets, return_index=True)
        for end, part in zip(ends.tolist(), np.split(tokens, begins[1:]), strict=False):
            self.append(state, end, part)

    def append(self, state: int, target: int, tokens: Ints) -> None:
        """Add one edge. The targets of a state must be in ascending order."""
        key = tokens.tobytes()
        label = self._labels.get(key)
        if label is None:
            label = self._labels[key] = len(self._sets)
            self._sets.append(tokens)
            self._held += 2 * len(key)
            if self._held > self._most:
                raise BudgetExceeded("bytes", self._most, "the token sets of an automaton's edges")
        self._edges.append((state, target, label))

    def freeze(
        self, start: npt.NDArray[np.bool_], accepting: npt.NDArray[np.bool_], num_tokens: int
    ) -> TokenEdges:
        source, target, label = np.array(self._edges, np.int64).reshape(-1, 3).T.copy()
        tokens = np.concatenate(self._sets) if self._sets else np.empty(0, np.int64)
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in self._sets])]).astype(np.int64)
        for array in (start, accepting, source, target, label, offsets, tokens):
            array.flags.writeable = False
        return TokenEdges(start, accepting, source, target, label, offsets, tokens, num_tokens)


def _csr(
    offsets: Ints, columns: Ints, shape: tuple[int, int], device: torch.device | str, dtype: torch.dtype
) -> torch.Tensor:
    """The matrix of ones at these positions."""
    ones = torch.ones(len(columns), dtype=dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.tensor(offsets),
            torch.tensor(columns),
            ones,
            shape,
            dtype=dtype,
            device=device,
            check_invariants=False,
        )
