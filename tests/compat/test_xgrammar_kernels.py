"""tokenfst.compat.xgrammar: the kernels by name, free text that holds a model's own signs, and what MLX-LM calls."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from tests.support.engines.peers import peer
from tests.support.running.interpreted import interpreted

torch = pytest.importorskip("torch")
import tokenfst.compat.xgrammar as ours
from tokenfst import Vocabulary
from tokenfst.automata.languages.language import Language
from tokenfst.automata.structural_tags.structural_tag import structural_tag
from tokenfst.compat.xgrammar import builtin_structural_tag as ours_by_model
from tokenfst.errors import MaskBufferError, ToolError

PLAIN_KERNELS = ("cpu", "torch", "torch_compile")
NAMED = "apply_token_bitmask_inplace_"
CALL = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": CALL}} for name in ("weather", "clock")
]
FORCED = {"type": "function", "function": {"name": "clock"}}
MODELS = ("llama", "qwen_3", "glm_4_7", "kimi_k3", "mimo", "minimax_m3", "cohere", "deepseek_v3_1")


def kernel(library: str, name: str) -> Any:
    return getattr(import_module(f"{library}.kernels.{NAMED}{name}"), NAMED + name)


def masked(apply: Any, logits: Any, *arguments: Any, **options: Any) -> Any:
    made = logits.clone()
    apply(made, *arguments, **options)
    return made


def cases() -> list[tuple[Any, Any, dict[str, Any]]]:
    draw = torch.Generator().manual_seed(5)
    found = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        logits = torch.randn((4, 131), generator=draw).to(dtype)
        bitmask = torch.randint(-(2**31), 2**31, (4, 5), generator=draw, dtype=torch.int64).to(torch.int32)
        for options in ({}, {"vocab_size": 100}, {"indices": [2, 0]}, {"vocab_size": 70, "indices": [3]}):
            found.append((logits, bitmask, options))
            if options.get("vocab_size", 0) <= 96:
                found.append((logits, bitmask[:, :3].contiguous(), options))
    return found


def expected(logits: Any, bitmask: Any, options: dict[str, Any]) -> Any:
    """The slow twin: bit by bit."""
    made = logits.clone()
    width = options.get("vocab_size", min(logits.shape[1], 32 * bitmask.shape[1]))
    for row in options.get("indices", range(len(logits))):
        for token in range(width):
            if not int(bitmask[row, token // 32]) >> token % 32 & 1:
                made[row, token] = float("-inf")
    return made


@pytest.mark.parametrize("name", PLAIN_KERNELS)
def test_kernels_on_the_cpu(name: str) -> None:
    for logits, bitmask, options in cases():
        assert torch.equal(
            masked(kernel("tokenfst.compat.xgrammar", name), logits, bitmask, **options),
            expected(logits, bitmask, options),
        )
    apply = kernel("tokenfst.compat.xgrammar", name)
    alone, row = torch.zeros(40), torch.tensor([5, 1], dtype=torch.int32)
    apply(alone, row)
    assert torch.nonzero(alone == 0)[:, 0].tolist() == [0, 2, 32]
    for wrong in ({"vocab_size": 41}, {"vocab_size": -1}):
        with pytest.raises(MaskBufferError, match="vocab_size"):
            apply(alone, row, **wrong)
    with pytest.raises(MaskBufferError, match="int32"):
        apply(alone, row.to(torch.int64))
    with pytest.raises(MaskBufferError, match="dimensions"):
        apply(alone[None, None], row)


@pytest.mark.parametrize("name", ["cpu", "torch"])
def test_kernels_are_theirs(name: str) -> None:
    peer("xgrammar")
    for logits, bitmask, options in cases():
        both = [
            masked(kernel(library, name), logits, bitmask, **options)
            for library in ("xgrammar", "tokenfst.compat.xgrammar")
        ]
        assert torch.equal(*both)


TRITON = """
import torch
import tests.compat.test_xgrammar_kernels as this
for name in ("triton", "cuda"):
    apply = this.kernel("tokenfst.compat.xgrammar", name)
    for logits, bitmask, options in this.cases():
        if name == "triton" or "vocab_size" not in options:
            assert torch.equal(this.masked(apply, logits, bitmask, **options), this.expected(logits, bitmask, options))
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_the_triton_kernel_by_its_interpreter() -> None:
    interpreted(TRITON)


def test_a_gpu_is_asked_for_by_name() -> None:
    module = f"tokenfst.compat.xgrammar.kernels.{NAMED}triton"
    if find_spec("triton") is None:
        with pytest.raises(ImportError, match=r"tokenfst\[gpu\]"):
            import_module(module)
        return
    with pytest.raises(MaskBufferError, match="apply_token_bitmask_inplace_cpu"):
        getattr(import_module(module), f"{NAMED}triton")(torch.zeros(32), torch.zeros(1, dtype=torch.int32))


def language(made: Any) -> Language:
    found = made if isinstance(made, Language) else made.to_language()
    assert isinstance(found, Language)
    return found


def tag(model: str, choice: Any, reasoning: str, exclude: bool = False) -> Any:
    return ours.get_model_structural_tag(model, TOOLS, choice, reasoning, exclude_special_tokens=exclude)


@pytest.mark.parametrize("model", MODELS)
def test_signs_in_free_text_as_theirs(model: str) -> None:
    xgrammar = peer("xgrammar")
    for choice in ("auto", "required", FORCED, "none"):
        for reasoning in ("disabled", "enabled", "auto"):
            other = language(
                structural_tag(
                    xgrammar.get_model_structural_tag(
                        model, TOOLS, choice, reasoning, exclude_special_tokens=False
                    )
                )
            )
            mine = language(ours.Grammar.from_structural_tag(tag(model, choice, reasoning)).constraint)
            assert other.includes(mine) if choice == "none" else other.equivalent(mine)


def test_signs_in_free_text() -> None:
    grammar = ours.Grammar.from_structural_tag
    assert not grammar(tag("qwen_3", "auto", "disabled", exclude=True)).constraint.accepts("a<think>b")
    assert grammar(tag("qwen_3", "auto", "disabled")).constraint.accepts("a<think>b")
    assert not grammar(tag("qwen_3", "none", "disabled")).constraint.accepts("a<tool_call>")
    assert "control_tokens" not in tag("qwen_3", "auto", "disabled", exclude=True).model_dump_json()
    tokens = [*(bytes([byte]) for byte in range(256)), b"", b"", b""]
    named = {"<think>": 256, "<tool_call>": 257, "</s>": 258}
    info = ours.TokenizerInfo.from_vocabulary(Vocabulary(tokens, 258, named))
    for exclude in (True, False):
        made = tag("qwen_3", "auto", "disabled", exclude)
        for sent in (made, made.model_dump_json(), made.model_dump()):
            compiled = ours.GrammarCompiler(info).compile_structural_tag(sent)
            matcher = ours.GrammarMatcher(compiled)
            assert matcher.accept_token(ord("a")) and matcher.accept_token(256) == (not exclude)
            assert matcher.accept_token(257) and not matcher.accept_token(256)
    again = ours.Grammar.deserialize_json(grammar(made).serialize_json())
    assert ours.GrammarMatcher(ours.GrammarCompiler(info).compile_grammar(again)).accept_token(256)


def test_a_function_for_each_model() -> None:
    for model in MODELS:
        build = getattr(ours_by_model, f"get_{model}_structural_tag")
        for choice, given in (("auto", "auto"), ("required", "required"), (FORCED, "forced")):
            functions, builtin, word = ours.normalize_tool_choice(TOOLS, choice)
            assert word == given
            assert build(functions, builtin, word, "auto") == tag(model, choice, "auto", exclude=True)
    with pytest.raises(ToolError, match="one function"):
        ours_by_model.get_llama_structural_tag(TOOLS, tool_choice="forced")


def test_a_processor_of_mlx() -> None:
    mx = pytest.importorskip("mlx.core", reason="mlx is not installed: make test-compat")
    from tokenfst.compat.xgrammar.contrib.mlxlm import XGrammarLogitsProcessor, parse_args
    from tokenfst.compat.xgrammar.kernels.apply_token_bitmask_mlx import apply_token_bitmask_mlx

    info = ours.TokenizerInfo([*(bytes([byte]) for byte in range(256)), b"</s>"])
    processor = XGrammarLogitsProcessor(ours.GrammarCompiler(info).compile_regex("ab"))
    seen = [1, 2]
    for token in (97, 98, 256):
        row = processor(mx.array(seen), mx.zeros((1, 260)))
        assert row.shape == (1, 260) and mx.argmax(row, -1).item() == token
        assert mx.sum(row == 0).item() == 1
        seen.append(token)
    for logits, bitmask, options in cases()[:4]:
        wide = min(options.get("vocab_size", 131), 32 * bitmask.shape[1])
        found = apply_token_bitmask_mlx(mx.array(bitmask.numpy()), mx.array(logits.numpy()), wide)
        assert found.tolist() == expected(logits, bitmask, {"vocab_size": wide})[:, :wide].tolist()
    with pytest.raises(MaskBufferError, match="a row of bitmask"):
        apply_token_bitmask_mlx(mx.zeros((2, 1), mx.int32), mx.zeros((1, 4)), 4)
    assert json.loads(json.dumps(vars(parse_args(["--model", "m"]))))["seed"] == 42
