"""One pass of a model over a trie of labels: the probability of each label, with shared prefixes scored once.

A call of the model scores many nodes; each node attends to its row and its own ancestors. A large trie is processed in
parts, in preorder. The ancestors of a part's first node are fed again before the part. So the cache holds the row and
one part, and results are reduced at once: of a node's scores only those of its children and of the stop tokens are
kept.

Cost: nodes times the model's cost of a token, and a sum over the width for each node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokenfst.decoding.labels.tries import LabelTrie
from tokenfst.decoding.models.language_model import TreeSession
from tokenfst.decoding.models.token_tree import TokenTree
from tokenfst.errors import LogitsError, MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error

_MOST_SCORES = 1 << 24
_MOST_NODES = 1024
"""Bounds of one call: the number of scores that it returns, and the number of nodes."""


def score_trie(
    session: TreeSession, trie: LabelTrie, stops: Sequence[int], without: Mapping[int, int] | None = None
) -> torch.Tensor:
    """ln p of each label after each row, float64 (rows, labels). If there are ``stops``, one of them must follow the
    label.

    ``without``: for nodes at which sequences end, the stop token that does not count after the node.
    """
    tree, rows = trie.tree, len(session.logits)
    reaped = _NodeScores(tree, rows, list(stops), without or {}, session.logits.device)
    reaped.take([-1], session.logits.unsqueeze(1))
    order = _preorder(tree, trie.ends if stops else [])
    size = max(1, min(_MOST_NODES, _MOST_SCORES // session.logits.numel()))
    for begin in range(0, len(order), size):
        part = order[begin : begin + size]
        nodes = [*tree.path_nodes(part[0])[:-1], *part]
        place = {node: number for number, node in enumerate(nodes)}
        scores = session.extend_tree(
            [place.get(tree.parents[node], -1) for node in nodes], [tree.tokens[node] for node in nodes]
        )
        session.keep([])
        reaped.take(part, scores[:, len(nodes) - len(part) :])
    values = reaped.log_probs(trie.ends)
    of = torch.tensor(trie.of, device=values.device).expand(rows, -1)
    empty = values.new_full((rows, trie.num_labels), float("-inf"))
    greatest = empty.scatter_reduce(1, of, values, "amax")
    base = torch.where(greatest.isfinite(), greatest, 0.0)
    return torch.zeros_like(empty).scatter_add(1, of, (values - base.gather(1, of)).exp()).log() + base


class _NodeScores:
    """The scores after nodes that are still needed: ln p of their children, and of the stops."""

    def __init__(
        self, tree: TokenTree, rows: int, stops: list[int], without: Mapping[int, int], device: torch.device
    ) -> None:
        self._tree = tree
        self._stops = stops
        self._without = {node: stops.index(token) for node, token in without.items()}
        self._edge = torch.zeros((rows, len(tree) + 1), dtype=torch.float64, device=device)
        self._stop = torch.zeros_like(self._edge)

    def take(self, nodes: list[int], scores: torch.Tensor) -> None:
        """``scores``: (rows, nodes, width). Raises ``LogitsError``."""
        total = torch.logsumexp(scores.double(), dim=-1)
        if not bool(total.isfinite().all()):
            row = int((~total.isfinite()).any(dim=1).nonzero()[0, 0])
            raise LogitsError(
                f"the model's scores after prompt {row} have NaN or +inf, or only -inf: no distribution. Check the "
                "model's weights and precision"
            )
        places, tokens, children = [], [], []
        for place, node in enumerate(nodes):
            for token, child in self._tree.children(node).items():
                places.append(place)
                tokens.append(token)
                children.append(child + 1)
        self._edge[:, children] = scores[:, places, tokens].double() - total[:, places]
        if self._stops:
            stops = scores[:, :, self._stops].double()
            for place, node in enumerate(nodes):
                if node in self._without:
                    stops[:, place, self._without[node]] = -torch.inf
            self._stop[:, [node + 1 for node in nodes]] = torch.logsumexp(stops, dim=-1) - total

    def log_probs(self, ends: list[int]) -> torch.Tensor:
        """The ln p of the paths to ``ends``, including stops: (rows, ends)."""
        depth: list[int] = []
        for parent in self._tree.parents:
            depth.append(depth[parent] + 1 if parent >= 0 else 0)
        levels: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
        for node, height in enumerate(depth):
            levels[height].append(node)
        total = self._edge.clone()
        for level in levels[1:]:
            above = [self._tree.parents[node] + 1 for node in level]
            total[:, [node + 1 for node in level]] += total[:, above]
        chosen = [node + 1 for node in ends]
        return total[:, chosen] + self._stop[:, chosen]


def _preorder(tree: TokenTree, ends: Sequence[int]) -> list[int]:
    """The nodes whose scores are needed, which are those with children, and ``ends``; in preorder."""
    wanted = set(ends)
    order = []
    pending = [-1]
    while pending:
        node = pending.pop()
        below = tree.children(node).values()
        if node >= 0 and (below or node in wanted):
            order.append(node)
        pending.extend(reversed(below))
    return order
