"""The drop-in modules inside of engines: vLLM's and SGLang's own xgrammar and llguidance backends, imports exchanged.

Runs in the engines' environments: ``make test-vllm``, ``make test-sglang``.
"""

from __future__ import annotations

import json
import types
from typing import Any

import pytest

OBJECT = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
TAG = {"structures": [{"begin": "<f=a>", "schema": OBJECT, "end": "</f>"}], "triggers": ["<f="]}
CASES = [
    ("json", json.dumps(OBJECT), '{"a": 2}', '{"a": 3}'),
    ("json_object", "", '{"x": [1]}', "[]"),
    ("regex", "[0-9]{3}", "123", "12a"),
    ("grammar", 'root ::= "a" | "(" root ")"', "((a))", "((b"),
    ("structural_tag", json.dumps(TAG), 'hi<f=a>{"a": 1}</f>', "hi<f=b>"),
    (
        "structural_tag",
        json.dumps({"type": "structural_tag", "format": {"type": "regex", "pattern": "x+"}}),
        "xx",
        "y",
    ),
]
LARK = ("grammar", 'start: "a" B+\nB: "b"', "abb", "ba")


def tokenizer() -> Any:
    from small_model import load

    return load().tokenizer


def on_vllm(backend_type: Any, kind: str, spec: str, right: str) -> tuple[Any, Any, list[int]]:
    """The tokenizer, the grammar that a backend of vLLM compiles, and the tokens of a right text, which it allows."""
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    known = tokenizer()
    options = types.SimpleNamespace(disable_any_whitespace=False, disable_additional_properties=False)
    config = types.SimpleNamespace(
        structured_outputs_config=options,
        model_config=None,
        speculative_config=types.SimpleNamespace(num_speculative_tokens=3),
    )
    backend = backend_type(vllm_config=config, tokenizer=known, vocab_size=len(known))
    grammar = backend.compile_grammar(StructuredOutputOptions[kind.upper()], spec, {known.eos_token_id})
    tokens = known.encode(right, add_special_tokens=False)
    mask = backend.allocate_token_bitmask(2)
    grammar.fill_bitmask(mask, 1)
    assert mask[1, tokens[0] // 32] >> tokens[0] % 32 & 1
    assert grammar.validate_tokens(tokens) == tokens
    return known, grammar, tokens


def on_sglang(backend: Any, kind: str, spec: str) -> Any:
    """The grammar that a backend of SGLang compiles."""
    if kind == "json_object":
        return backend.dispatch_json('{"type": "object"}')
    return getattr(backend, f"dispatch_{'ebnf' if kind == 'grammar' else kind}")(spec)


@pytest.mark.parametrize(("kind", "spec", "right", "wrong"), [*CASES, LARK])
def test_vllm(kind: str, spec: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vllm", reason="vLLM has an environment of its own: make test-vllm")
    from vllm.v1.structured_output import backend_xgrammar

    import tokenfst.compat.xgrammar as ours

    monkeypatch.setattr(backend_xgrammar, "xgr", ours)
    known, grammar, tokens = on_vllm(backend_xgrammar.XgrammarBackend, kind, spec, right)
    refused = known.encode(wrong, add_special_tokens=False)
    assert grammar.validate_tokens(refused) != refused
    assert grammar.accept_tokens("request", [*tokens, known.eos_token_id]) and grammar.is_terminated()
    grammar.rollback(1)
    assert not grammar.is_terminated()


GUIDANCE = [*CASES[:5], LARK]


@pytest.mark.parametrize(("kind", "spec", "right", "wrong"), GUIDANCE)
def test_vllm_with_llguidance(
    kind: str, spec: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("vllm", reason="vLLM has an environment of its own: make test-vllm")
    from vllm.v1.structured_output import backend_guidance

    import tokenfst.compat.llguidance as ours
    import tokenfst.compat.llguidance.hf as ours_hf
    import tokenfst.compat.llguidance.torch as ours_torch

    for name, module in (("", ours), ("_hf", ours_hf), ("_torch", ours_torch)):
        monkeypatch.setattr(backend_guidance, f"llguidance{name}", module)
    known, grammar, tokens = on_vllm(backend_guidance.GuidanceBackend, kind, spec, right)
    refused = known.encode(wrong, add_special_tokens=False)
    taken = grammar.validate_tokens(refused)
    assert taken != refused or not grammar.ll_matcher.is_accepting()
    assert grammar.accept_tokens("request", tokens) and grammar.ll_matcher.is_accepting()
    assert grammar.accept_tokens("request", [known.eos_token_id]) and grammar.is_terminated()
    grammar.rollback(1)
    assert not grammar.is_terminated() and grammar.ll_matcher.is_accepting()


@pytest.mark.parametrize(("kind", "spec", "right", "wrong"), CASES[:5])
def test_sglang_with_llguidance(
    kind: str, spec: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sglang", reason="SGLang has an environment of its own: make test-sglang")
    from sglang.srt.constrained import llguidance_backend
    from sglang.srt.constrained.base_grammar_backend import GrammarRow

    import tokenfst.compat.llguidance as ours
    import tokenfst.compat.llguidance.hf as ours_hf
    import tokenfst.compat.llguidance.torch as ours_torch

    for module in (ours, ours_hf, ours_torch):
        for name in module.__all__:
            if hasattr(llguidance_backend, name):
                monkeypatch.setattr(llguidance_backend, name, getattr(module, name))
    known = tokenizer()
    backend = llguidance_backend.GuidanceBackend(
        known, n_vocab=len(known), eos_token_ids=[known.eos_token_id]
    )
    grammar = on_sglang(backend, kind, spec)
    tokens = known.encode(right, add_special_tokens=False)
    mask = grammar.allocate_vocab_mask(len(known), 2, "cpu")
    grammar.fill_vocab_mask_batched([GrammarRow(row=1, grammar=grammar)], mask)
    assert mask[1, tokens[0] // 32] >> tokens[0] % 32 & 1
    other = grammar.copy()
    for token in tokens:
        grammar.accept_token(token)
    assert grammar.ll_matcher.is_accepting() and not grammar.is_terminated()
    refused = known.encode(wrong, add_special_tokens=False)
    assert other.ll_matcher.try_consume_tokens(refused) < len(refused) or not other.ll_matcher.is_accepting()


@pytest.mark.parametrize(("kind", "spec", "right", "wrong"), CASES)
def test_sglang(kind: str, spec: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sglang", reason="SGLang has an environment of its own: make test-sglang")
    from sglang.srt.constrained import xgrammar_backend

    import tokenfst.compat.xgrammar as ours

    for name in ours.__all__:
        monkeypatch.setattr(xgrammar_backend, name, getattr(ours, name), raising=False)
    known = tokenizer()
    backend = xgrammar_backend.XGrammarGrammarBackend(known, len(known), [known.eos_token_id])
    grammar = on_sglang(backend, kind, spec)
    tokens = known.encode(right, add_special_tokens=False)
    mask = grammar.allocate_vocab_mask(len(known), 2, "cpu")
    grammar.fill_vocab_mask(mask, 1)
    assert mask[1, tokens[0] // 32] >> tokens[0] % 32 & 1
    for token in [*tokens, known.eos_token_id]:
        grammar.accept_token(token)
    assert grammar.is_terminated()
    grammar.rollback(1)
    assert not grammar.is_terminated()
    other = grammar.copy()
    with pytest.raises(ValueError, match="not accepted"):
        for token in known.encode(wrong, add_special_tokens=False):
            other.accept_token(token)
