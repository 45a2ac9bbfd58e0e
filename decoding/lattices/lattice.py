"""``Lattice``: the log-sum over all paths of an acyclic graph, differentiable by torch.

alpha(s) is the log-sum of all paths from the start to s, beta(s) from s to an end, Z the total. dZ/dw of an arc s -> t
is exp(alpha(s) + w + beta(t) - Z), the posterior probability of the arc. So the backward pass of autograd is the
backward algorithm, and only alpha is saved from the forward pass. The rows of a batch share the graph.

Numerics: sums are computed in float64 whatever the dtype of the weights; -inf is an absent arc. A row without any path
has the total -inf and gradients of 0. Cost: an exponential for each arc and row, once forward and twice backward, in
the core, on the CPU; memory of rows x states for alpha.

Rejected: torch operations state by state or level by level, each of which takes some µs and an autograd node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.common.arguments import checked, refuse, whole
from tokenfst.common.plurals import counted
from tokenfst.errors import ArgumentValueError, ConstraintError, MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('lattices need torch: pip install "tokenfst[torch]"') from error


class Lattice:
    """An acyclic graph: ``arcs`` are pairs (source, target) of states from 0 to ``states`` - 1.

    Paths begin at ``start`` and end in the states of ``finals``, by default in every state. Immutable. Raises
    ``ConstraintError``, which names a state on a cycle.
    """

    @checked
    def __init__(
        self, arcs: Sequence[tuple[int, int]] | npt.NDArray[np.integer[Any]], states: int, *, start: int = 0,
        finals: Iterable[int] | None = None,
    ) -> None:  # fmt: skip
        whole("Lattice", "states", states, 1)
        whole("Lattice", "start", start, 0, states - 1)
        given = _pairs(arcs)
        if len(given) and not (given.min() >= 0 and given.max() < states):
            at = int(np.flatnonzero(((given < 0) | (given >= states)).any(axis=1))[0])
            refuse(
                "Lattice",
                f"arcs[{at}]",
                tuple(given[at].tolist()),
                f"a pair of states below {states:,}",
                ArgumentValueError,
            )
        ends = np.zeros(states, bool) if finals is not None else np.ones(states, bool)
        for each in finals if finals is not None else ():
            ends[whole("Lattice", "a final state", each, 0, states - 1)] = True
        self.arcs, self.start, self.states = given, start, states
        self._final = torch.from_numpy(np.where(ends, 0.0, -np.inf))
        place = _topological(given, states)
        source, target = place[given[:, 0]], place[given[:, 1]]
        places = np.arange(states + 1)
        entering, leaving = np.argsort(target, kind="stable"), np.argsort(source, kind="stable")
        self._graph = (
            source, target, entering, leaving,
            np.searchsorted(target[entering], places), np.searchsorted(source[leaving], places),
        )  # fmt: skip
        self._order, self._begin = torch.from_numpy(np.argsort(place)), int(place[start])

    def __repr__(self) -> str:
        return f"<Lattice of {counted(self.states, 'state')} and {counted(len(self.arcs), 'arc')}>"

    @checked
    def log_partition(self, weights: torch.Tensor, finals: torch.Tensor | None = None) -> torch.Tensor:
        """The log-sum, over all paths, of the sum of their log weights.

        ``weights``: (..., arcs); ``finals``: (..., states), for the state in which a path ends. The result has shape
        (...), and is differentiable in both. Float32 or float64; computed on the CPU.

        An exponential for each arc forward and two backward, for each row of the batch. Raises ``ArgumentValueError``
        for other shapes and for NaN or +infinity.
        """
        rows, ends = self._checked(weights, finals)
        shape = rows.shape[:-1]
        count = int(np.prod(shape, dtype=np.int64))
        flat = rows.reshape(count, len(self.arcs)), ends.reshape(count, self.states)
        total: torch.Tensor = _Sum.apply(*flat, self._graph, self._begin)
        return total.reshape(shape)

    @checked
    def posteriors(self, weights: torch.Tensor, finals: torch.Tensor | None = None) -> torch.Tensor:
        """The probability that a path uses an arc, for each arc: the gradients of ``log_partition``.

        The result has the shape of the weights. The cost is that of a forward and a backward pass.
        """
        given = weights.detach().requires_grad_()
        self.log_partition(given, None if finals is None else finals.detach()).sum().backward()
        assert given.grad is not None
        return given.grad

    def _checked(
        self, weights: torch.Tensor, finals: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights of arcs and of states in topological order, of one batch, on the CPU."""
        for name, each, size in (("weights", weights, len(self.arcs)), ("finals", finals, self.states)):
            if each is None:
                continue
            if each.dtype not in (torch.float32, torch.float64) or each.dim() < 1 or each.shape[-1] != size:
                refuse(
                    "log_partition", name, each, f"a tensor (..., {size}) of float32 or float64", ArgumentValueError
                )  # fmt: skip
            if bool(torch.isnan(each).any()) or bool((each == torch.inf).any()):
                refuse("log_partition", name, each, "without NaN and infinity", ArgumentValueError)
        ends = self._final.to(weights) if finals is None else finals + self._final.to(finals)
        try:
            shape = torch.broadcast_shapes(weights.shape[:-1], ends.shape[:-1])
        except RuntimeError:
            wanted = f"of a batch that fits that of the weights, {tuple(weights.shape[:-1])}"
            refuse("log_partition", "finals", finals, wanted, ArgumentValueError)
        ends = ends.to(weights)[..., self._order.to(weights.device)]
        return weights.expand(*shape, -1), ends.expand(*shape, -1)


def _pairs(arcs: Sequence[tuple[int, int]] | npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """The arcs as an array (arcs, 2)."""
    if not len(arcs):
        return np.zeros((0, 2), np.int64)
    try:
        given = np.array(arcs)
    except ValueError:  # of different lengths
        given = np.zeros(0)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        refuse("Lattice", "arcs", arcs, "pairs of whole numbers, a source and a target", ArgumentValueError)
    return given.astype(np.int64)


def _topological(arcs: npt.NDArray[np.int64], states: int) -> npt.NDArray[np.int64]:
    """The place of each state in an order in which every arc leads on."""
    onward: list[list[int]] = [[] for _ in range(states)]
    for source, target in arcs.tolist():
        onward[source].append(target)
    begun, done = [False] * states, [False] * states
    order: list[int] = []
    for root in range(states):
        stack = [] if begun[root] else [(root, iter(onward[root]))]
        begun[root] = True
        while stack:
            state, following = stack[-1]
            for target in following:
                if begun[target] and not done[target]:
                    raise ConstraintError(f"a lattice has no cycles, and there is one through state {target}")
                if not begun[target]:
                    begun[target] = True
                    stack.append((target, iter(onward[target])))
                    break
            else:
                done[state] = True
                order.append(state)
                stack.pop()
    place = np.zeros(states, np.int64)
    place[order[::-1]] = np.arange(states)
    return place


def _array(values: torch.Tensor) -> npt.NDArray[Any]:
    """A tensor's numbers as the core reads them."""
    found: npt.NDArray[Any] = values.detach().cpu().contiguous().numpy()
    return found


class _Sum(torch.autograd.Function):  # type: ignore[misc]
    """The total, and its gradients by the backward algorithm."""

    @staticmethod
    def forward(
        ctx: Any, weights: torch.Tensor, finals: torch.Tensor, graph: Any, begin: int
    ) -> torch.Tensor:
        totals, alpha = _native.lattice_forward(graph, begin, _array(weights), _array(finals))
        ctx.save_for_backward(weights, finals)
        ctx.sums = graph, totals, alpha
        return torch.from_numpy(totals.copy()).to(weights)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, scale: torch.Tensor) -> Any:
        weights, finals = ctx.saved_tensors
        graph, totals, alpha = ctx.sums
        scales = scale.detach().cpu().double().contiguous().numpy()
        found = _native.lattice_backward(graph, _array(weights), _array(finals), alpha, totals, scales)
        of_weights, of_finals = (torch.from_numpy(each.copy()).to(weights) for each in found)
        return of_weights, of_finals, None, None
