"""The drop-in module inside of engines: vLLM's and SGLang's own xgrammar backends, with one import exchanged.

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


@pytest.mark.parametrize(("kind", "spec", "right", "wrong"), [*CASES, LARK])
def test_vllm(kind: str, spec: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vllm", reason="vLLM has an environment of its own: make test-vllm")
    from vllm.v1.structured_output import backend_xgrammar
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    import tokenfst.compat.xgrammar as ours

    monkeypatch.setattr(backend_xgrammar, "xgr", ours)
    known = tokenizer()
    config = types.SimpleNamespace(
        structured_outputs_config=types.SimpleNamespace(disable_any_whitespace=False),
        model_config=None,
        speculative_config=types.SimpleNamespace(num_speculative_tokens=3),
    )
    backend = backend_xgrammar.XgrammarBackend(vllm_config=config, tokenizer=known, vocab_size=len(known))
    grammar = backend.compile_grammar(StructuredOutputOptions[kind.upper()], spec, {known.eos_token_id})
    tokens = known.encode(right, add_special_tokens=False)
    mask = backend.allocate_token_bitmask(2)
    grammar.fill_bitmask(mask, 1)
    assert mask[1, tokens[0] // 32] >> tokens[0] % 32 & 1
    assert grammar.validate_tokens(tokens) == tokens
    refused = known.encode(wrong, add_special_tokens=False)
    assert grammar.validate_tokens(refused) != refused
    assert grammar.accept_tokens("request", [*tokens, known.eos_token_id]) and grammar.is_terminated()
    grammar.rollback(1)
    assert not grammar.is_terminated()


@pytest.mark.parametrize(("kind", "spec", "right", "wrong"), CASES)
def test_sglang(kind: str, spec: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sglang", reason="SGLang has an environment of its own: make test-sglang")
    from sglang.srt.constrained import xgrammar_backend

    import tokenfst.compat.xgrammar as ours

    for name in ours.__all__:
        monkeypatch.setattr(xgrammar_backend, name, getattr(ours, name), raising=False)
    known = tokenizer()
    backend = xgrammar_backend.XGrammarGrammarBackend(known, len(known), [known.eos_token_id])
    dispatch = {
        "json": backend.dispatch_json,
        "json_object": lambda _: backend.dispatch_json('{"type": "object"}'),
        "regex": backend.dispatch_regex,
        "grammar": backend.dispatch_ebnf,
        "structural_tag": backend.dispatch_structural_tag,
    }[kind]
    grammar = dispatch(spec)
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
