"""Trees of tokens after a session's rows: each node is scored as if its path stood alone, and kept paths are rows."""

from __future__ import annotations

import random

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from tokenfst.decoding.models.language_model import CallbackModel, Session, TreeSession, as_language_model
from tokenfst.decoding.models.token_tree import TokenTree
from tokenfst.decoding.models.tree_session import Branches, tree_session
from tokenfst.errors import ModelError

WIDTH = 23
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
BASE = {"vocab_size": WIDTH, "max_position_embeddings": 64, **SIZES}


pytestmark = pytest.mark.usefixtures("one_torch_thread")


def make(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    match name:
        case "llama":
            return LlamaForCausalLM(LlamaConfig(**BASE)).eval()
        case "eager":
            return LlamaForCausalLM(LlamaConfig(**BASE, attn_implementation="eager")).eval()
        case "gpt2":
            return GPT2LMHeadModel(
                GPT2Config(vocab_size=WIDTH, n_positions=64, n_embd=32, n_layer=2, n_head=2)
            ).eval()
    return MistralForCausalLM(
        MistralConfig(**BASE, num_key_value_heads=2, sliding_window=4, pad_token_id=0)
    ).eval()


def alone(model: torch.nn.Module, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0, -1]


def grow_and_keep(model: torch.nn.Module, session: TreeSession, rows: list[list[int]], seed: int) -> None:
    """Random trees in several calls, one of their paths kept, some tokens after it, again and again."""
    rng = random.Random(seed)
    for _ in range(3):
        tree = TokenTree()
        for _ in range(rng.randint(1, 3)):
            size = rng.randint(1, 4)
            parents = [rng.randint(-1, len(tree) - 1) if len(tree) else -1 for _ in range(size)]
            tokens = [rng.randrange(WIDTH) for _ in range(size)]
            new = tree.add(parents, tokens)
            scores = session.extend_tree(parents, tokens)
            assert scores.shape == (len(rows), size, WIDTH)
            for row, ids in enumerate(rows):
                for place, node in enumerate(new):
                    expected = alone(model, ids + tree.path(node))
                    assert torch.allclose(scores[row, place], expected, atol=1e-5), (tree.parents, node)
        end = rng.randint(-1, len(tree) - 1)
        session.keep(tree.path_nodes(end))
        for ids in rows:
            ids += tree.path(end)
        token = rng.randrange(WIDTH)
        for row, ids in enumerate(rows):
            assert torch.allclose(session.logits[row], alone(model, ids), atol=1e-5)
        session.extend(torch.arange(len(rows)), torch.full((len(rows),), token))
        for row, ids in enumerate(rows):
            ids.append(token)
            assert torch.allclose(session.logits[row], alone(model, ids), atol=1e-5)


@pytest.mark.parametrize("name", ["llama", "eager", "gpt2"])
@pytest.mark.parametrize("prompts", [[[1, 2, 3]], [[4], [1, 2, 3], [5, 6]]])
def test_a_tree_is_scored_path_by_path(name: str, prompts: list[list[int]]) -> None:
    model = make(name)
    for seed in range(4):
        session = as_language_model(model).start(prompts)
        assert tree_session(session) is session
        grow_and_keep(model, session, [list(ids) for ids in prompts], seed)


def test_trees_behind_rows_that_grew_unevenly() -> None:
    model = make("llama")
    session = as_language_model(model).start([[1, 2], [3]])
    tokens, lengths = torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([3, 1])
    scores = session.extend(torch.tensor([1, 0]), tokens, lengths)
    rows = [[3, 5, 6, 7], [1, 2, 8]]
    for row, ids in enumerate(rows):
        assert torch.allclose(scores[row, lengths[row] - 1], alone(model, ids), atol=1e-5)
        assert torch.allclose(session.logits[row], alone(model, ids), atol=1e-5)
    with pytest.raises(ModelError, match="different numbers"):
        session.rewind(1)
    grow_and_keep(model, session, rows, 0)
    with pytest.raises(ModelError, match="from 1 to 2"):
        session.extend(torch.arange(2), torch.zeros((2, 2), dtype=torch.long), torch.tensor([0, 2]))


def test_a_model_that_sees_no_trees_gets_branches() -> None:
    model = make("llama")

    class Plain:
        """A session as a third party would write it."""

        def __init__(self, session: Session) -> None:
            self._session = session

        @property
        def logits(self) -> torch.Tensor:
            return self._session.logits

        def extend(self, *args: torch.Tensor) -> torch.Tensor:
            return self._session.extend(*args)

        def rewind(self, count: int) -> None:
            self._session.rewind(count)

    for seed in range(4):
        session = tree_session(Plain(as_language_model(model).start([[1, 2, 3]])))
        assert isinstance(session, Branches)
        grow_and_keep(model, session, [[1, 2, 3]], seed)
    with pytest.raises(ModelError, match="a tree after each of 2 rows"):
        tree_session(Plain(as_language_model(model).start([[1], [2]])))


def test_sliding_windows_are_branches() -> None:
    model = make("mistral")
    session = as_language_model(model).start([[1, 2, 3, 4, 5, 6]])
    assert not session.sees_trees
    with pytest.raises(ModelError, match="no attention masks of trees"):
        session.extend_tree([-1], [3])
    session.extend(torch.tensor([0]), torch.tensor([7]))
    with pytest.raises(ModelError, match="MistralForCausalLM cannot go back"):
        session.rewind(1)
    for seed in range(3):
        branches = tree_session(as_language_model(model).start([[1, 2, 3, 4, 5, 6]]))
        assert isinstance(branches, Branches)
        grow_and_keep(model, branches, [[1, 2, 3, 4, 5, 6]], seed)


def scores_by_sum(ids: torch.Tensor) -> torch.Tensor:
    weights = torch.arange(1, ids.shape[1] + 1)
    return ((ids * weights).sum(1, keepdim=True) * torch.arange(WIDTH) % 7).float()


def test_callbacks_see_paths_as_rows() -> None:
    model = CallbackModel(scores_by_sum, WIDTH)

    class Twin:
        def __call__(self, ids: torch.Tensor) -> object:
            return type("Out", (), {"logits": scores_by_sum(ids).unsqueeze(1)})

    for seed in range(4):
        grow_and_keep(Twin(), model.start([[1, 2], [3, 4]]), [[1, 2], [3, 4]], seed)
    session = model.start([[1], [2]])
    session.extend(torch.tensor([0, 1, 1]), torch.tensor([[3, 4], [5, 0], [6, 7]]), torch.tensor([2, 1, 2]))
    rows = [[1, 3, 4], [2, 5], [2, 6, 7]]
    assert torch.equal(session.logits, torch.cat([scores_by_sum(torch.tensor([ids])) for ids in rows]))
    grow_and_keep(Twin(), session, rows, 5)
    session.rewind(1)
    session.extend(torch.tensor([1, 0]), torch.tensor([8, 9]))
    rows = [[*rows[1][:-1], 8], [*rows[0][:-1], 9]]
    assert torch.equal(session.logits, torch.cat([scores_by_sum(torch.tensor([ids])) for ids in rows]))


def test_tries_and_their_links() -> None:
    tree, ends = TokenTree.of_sequences([[1, 2], [1, 3], [1], [4, 2, 2], []])
    assert [tree.path(end) for end in ends] == [[1, 2], [1, 3], [1], [4, 2, 2], []]
    assert len(tree) == 6 and not tree.is_chain
    first, sibling, tokens = tree.links()
    found = []
    pending = [(0, [])]
    while pending:
        node, path = pending.pop()
        child = first[node]
        while child >= 0:
            found.append([*path, int(tokens[child])])
            pending.append((child, found[-1]))
            child = sibling[child]
    assert sorted(found) == sorted(tree.path(node) for node in range(len(tree)))
    with pytest.raises(ModelError, match="node 6 of a tree has the parent 6"):
        tree.append(6, 1)
