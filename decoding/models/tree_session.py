"""Tree scoring for sessions without tree attention: each path of the tree becomes a separate row.

Cost: the whole tree again at every ``extend_tree``, one row for each leaf with a copy of the cache, and one more call
for the tokens that are kept. It is for models with sliding windows, recurrent states instead of keys, or attention
without arbitrary masks; other models score a tree in one row.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenfst.common.plurals import counted
from tokenfst.decoding.models.language_model import (
    LanguageModel,
    Session,
    TransformersSession,
    TreeSession,
    start_after,
)
from tokenfst.decoding.models.token_tree import TokenTree
from tokenfst.errors import MissingDependencyError, ModelError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


def tree_session(session: Session) -> TreeSession:
    """``session`` itself if it scores trees, else a wrapper that expands paths to rows (``Branches``).

    Raises ``ModelError`` if a wrapper is needed and the session has more than one row.
    """
    if isinstance(session, TreeSession) and getattr(session, "sees_trees", True):
        return session
    return Branches(session)


def tree_sessions(
    model: LanguageModel, prompts: list[list[int]], written: list[list[int]] | None = None
) -> list[TreeSession]:
    """One session for all prompts if the model supports trees, else one session for each prompt. Rows consist of the
    prompt and the text already ``written``.
    """
    after = [[] for _ in prompts] if written is None else written
    session = start_after(model, prompts, after)
    if len(prompts) == 1 or (isinstance(session, TreeSession) and getattr(session, "sees_trees", True)):
        return [tree_session(session)]
    return [
        tree_session(start_after(model, [prompt], [tokens]))
        for prompt, tokens in zip(prompts, after, strict=True)
    ]


class Branches:
    """A ``TreeSession`` of one row, implemented by the rows of another session."""

    def __init__(self, session: Session) -> None:
        if len(session.logits) != 1:
            raise ModelError(
                f"a tree after each of {counted(len(session.logits), 'row')} needs a model that sees trees (attention "
                "with masks of any shape, no sliding window): decode the prompts one by one"
            )
        if isinstance(session, TransformersSession):
            session.keep_past()
        self._session = session
        self._tree = TokenTree()
        self._scores = session.logits.new_empty((1, 0, session.logits.shape[1]))
        self.logits = session.logits

    def extend(
        self, parents: torch.Tensor, tokens: torch.Tensor, lengths: torch.Tensor | None = None
    ) -> torch.Tensor:
        scores = self._session.extend(parents, tokens, lengths)
        self.logits = self._session.logits
        return scores

    def rewind(self, count: int) -> None:
        self._session.rewind(count)

    def extend_tree(self, parents: Sequence[int], tokens: Sequence[int]) -> torch.Tensor:
        new = self._tree.add(parents, tokens)
        leaves = [node for node in range(len(self._tree)) if not self._tree.children(node)]
        paths = [self._tree.path_nodes(leaf) for leaf in leaves]
        longest = max(map(len, paths))
        ids = torch.tensor(
            [
                [self._tree.tokens[node] for node in [*path, *[path[-1]] * (longest - len(path))]]
                for path in paths
            ],
            device=self.logits.device,
        )
        scores = self._session.extend(torch.zeros(len(ids), dtype=torch.long, device=ids.device), ids)
        self._session.rewind(longest)
        place = {node: (row, depth) for row, path in enumerate(paths) for depth, node in enumerate(path)}
        self._scores = torch.stack([scores[place[node]] for node in range(len(self._tree))]).unsqueeze(0)
        return self._scores[:, new.start :]

    def keep(self, path: Sequence[int]) -> None:
        if path:
            ids = torch.tensor([[self._tree.tokens[node] for node in path]], device=self.logits.device)
            self._session.extend(torch.zeros(1, dtype=torch.long, device=ids.device), ids)
            self.logits = self._session.logits
        self._tree = TokenTree()
