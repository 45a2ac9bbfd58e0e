"""Verification of draft tokens on a device: speculative decoding whose result does not depend on the drafts.

The idea: at each position of a draft tree the sampler draws the token that it would draw there without drafts, with
the same seed and the same number of the draw. The longest path of the tree that agrees with these draws is accepted,
and the draw after it is the next token. So the tokens are those of plain decoding, one by one, whatever the drafts
are; a draft token is accepted with its probability under the constrained target distribution.

Invariant: ``verify`` emits what as many calls of ``DeviceSampler.step`` with the same logits would, and leaves the same
states, counts and seen tokens. Nothing waits for the device, so CUDA graphs can capture it.

Cost: one launch for the states of all nodes and two for all draws by Triton; then O(rows * nodes * depth) comparisons.
Rejected: rejection sampling by the draft's own probabilities (Leviathan et al. 2023). It accepts more where drafts are
drawn rather than chosen, but what a seed draws would depend on the drafts.
"""

from __future__ import annotations

from typing import NamedTuple

from tokenfst.decoding.device.automata.automaton import DeviceAutomaton
from tokenfst.decoding.device.automata.masks import Left
from tokenfst.decoding.device.kernels.sampling import plain
from tokenfst.decoding.device.tables.pool import Tensor, torch


class Verified(NamedTuple):
    """The result of a verification, for B rows.

    ``tokens``: int64 (B, depth + 1), the accepted draft tokens and the token drawn after them, followed by -1.
    ``counts``: int64 (B,), how many tokens each row has, at least 1. ``nodes``: int64 (B, depth), the accepted
    nodes in the order of the path, followed by -1; their entries of a key-value cache stay valid. ``states``: the
    states after the last tokens.
    """

    tokens: Tensor
    counts: Tensor
    nodes: Tensor
    states: Tensor


class Tree(NamedTuple):
    """A draft tree by positions: 0 to B - 1 are the texts themselves, B + n is after node n.

    ``rows``: int64 (B + N,), the row of each position. ``levels``: int64 (B + N,), the number of draft tokens up to it.
    ``before``: int64 (N,), the position before each node; -1 for nodes that are deeper than ``depth`` or in no tree.
    """

    rows: Tensor
    levels: Tensor
    before: Tensor

    @classmethod
    def of(cls, parents: Tensor, rows: int, depth: int) -> Tree:
        """The tree of ``parents`` as ``DeviceAutomaton.advance_tree`` takes them. ``rows``: the number of texts."""
        is_first, above = parents < 0, parents.clamp_min(0)
        row = torch.where(is_first, -1 - parents, 0)
        level = is_first.long()
        for _ in range(depth - 1):
            row = torch.where(is_first, row, row[above])
            level = torch.where(is_first, 1, torch.where(level[above] > 0, level[above] + 1, 0))
        texts = torch.arange(rows, device=parents.device)
        before = torch.where(is_first, row, rows + parents)
        return cls(
            torch.cat([texts, row]),
            torch.cat([torch.zeros_like(texts), level]),
            torch.where(level > 0, before, -1),
        )


def left_at(tree: Tree, left: Left) -> Tensor | None:
    """How many tokens each position may still take, int32 (B + N,); negative: no limit."""
    if left is None:
        return None
    each = torch.full_like(tree.rows, left) if isinstance(left, int) else left.long()[tree.rows]
    return torch.where(each < 0, each, (each - tree.levels).clamp_min(0)).int()


def seen_at(tree: Tree, parents: Tensor, tokens: Tensor, seen: Tensor, depth: int) -> Tensor:
    """The tokens that each position has seen, int32 (B + N, words): those of its row, and the draft tokens on its
    path.
    """
    texts = seen[tree.rows[len(seen) :]]
    after = texts.clone()
    for _ in range(depth):
        after = torch.where((parents < 0)[:, None], texts, after[parents.clamp_min(0)])
        plain.see_(after, tokens[:, None])
    return torch.cat([seen, after])


def accept(
    automaton: DeviceAutomaton,
    tree: Tree,
    tokens: Tensor,
    drawn: Tensor,
    states: Tensor,
    left: Tensor | None,
    depth: int,
) -> tuple[Verified, Tensor]:
    """Follow each row's draws through the tree.

    ``drawn``: int64 (B + N,), the token drawn at each position, whose states are ``states``. The second result says
    which positions the rows went through, bool (B, B + N).
    """
    count, nodes = len(drawn) - len(tokens), len(tokens)
    at = torch.arange(count, device=drawn.device)
    is_over = automaton.is_ended(states)
    if left is not None:
        is_over = is_over | (left == 0)
    alive = torch.ones_like(at, dtype=torch.bool)
    emitted, path = [], []
    visited = torch.zeros((count, len(drawn)), dtype=torch.bool, device=drawn.device)
    number = torch.arange(nodes, device=drawn.device)
    for _ in range(depth + 1):
        token = drawn[at]
        emitted.append(torch.where(alive, token, -1))
        visited = visited | (alive[:, None] & (torch.arange(len(drawn), device=drawn.device) == at[:, None]))
        if len(emitted) > depth or not nodes:
            break
        agrees = (tree.before == at[:, None]) & (tokens == token[:, None])
        child = torch.where(agrees, number, nodes).amin(1)
        found = child.clamp_max(nodes - 1)
        alive = alive & (child < nodes) & ~is_over[count + found]
        path.append(torch.where(alive, found, -1))
        at = torch.where(alive, count + found, at)
    short = depth + 1 - len(emitted)
    text = torch.nn.functional.pad(torch.stack(emitted, 1), (0, short), value=-1)
    accepted = torch.stack(path, 1) if path else text[:, :0]
    accepted = torch.nn.functional.pad(accepted, (0, depth - accepted.shape[1]), value=-1)
    reached = automaton.advance(states[at].contiguous(), drawn[at].contiguous())
    return Verified(text, (text >= 0).sum(1), accepted, reached), visited
