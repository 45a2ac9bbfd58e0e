"""The plugin in vLLM itself: requests over HTTP through ``vllm serve``, and speculative decoding in a process.

Runs in the engine's own environment (``make test-vllm``), with a tiny random model, on the CPU.
"""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM has an environment of its own: make test-vllm")
import numpy as np
import openai
from support.engines.served import CHOICE, EBNF, LARK, LIST, PATTERN, PERSON, TAG, ServedRequests, check
from support.engines.serving import script, server, tiny_model

from tokenfst import allocate_token_bitmask, regex
from tokenfst.decoding.engines import vllm_backend
from tokenfst.decoding.engines.requests import Request, fill_rows

ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def client(model, tmp_path_factory):
    command = [
        *(script("vllm"), "serve", str(model), "--served-model-name", "tiny", "--port", "{port}"),
        *("--host", "127.0.0.1", "--max-model-len", "256", "--enforce-eager", "--dtype", "bfloat16"),
        *("--max-num-seqs", "16", "--structured-outputs-config.backend", "tokenfst"),
    ]
    with server(command, tmp_path_factory.mktemp("log") / "log", **ENVIRONMENT) as url:
        yield openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=600)


def has_tags() -> bool:
    try:
        Request("structural_tag", json.dumps(TAG)).constraint()
    except Exception:
        return False
    return True


ASKED: dict[str, dict[str, Any]] = {
    "json": {"structured_outputs": {"json": PERSON}},
    "list": {"structured_outputs": {"json": LIST, "disable_any_whitespace": True}},
    "json_object": {"structured_outputs": {"json_object": True}},
    "regex": {"structured_outputs": {"regex": PATTERN}},
    "choice": {"structured_outputs": {"choice": CHOICE}},
    "grammar": {"structured_outputs": {"grammar": EBNF}},
    "lark": {"structured_outputs": {"grammar": LARK}},
    "response_format": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}
    },
}
if has_tags():
    ASKED["structural_tag"] = {"structured_outputs": {"structural_tag": json.dumps(TAG)}}


class TestVLLM(ServedRequests):
    server, whole, seeded = "vllm", "json", True
    asked = ASKED


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"regex": "(a"}, "position"),
        ({"regex": r"(a)\1"}, "back-reference"),
        ({"json": {"type": "nonsense"}}, "#/type"),
        ({"json": {"type": "string", "const": 1}}, "no JSON value"),
        ({"json": "{"}, "JSON"),
        ({"choice": []}, "choice|label"),
        ({"grammar": "root ::= nothing"}, "nothing"),
        ({"grammar": ""}, "grammar|root|rule"),
        ({"json_object": False}, "json_object"),
        ({"regex": "[0-9]{100}"}, "tokens"),
        ({"regex": "(?=a)b"}, "language is empty"),
        ({"regex": "((a{0,900}){0,900}){0,900}b"}, "positions"),
        ({"json": {"$ref": "http://x/y"}}, "nothing is fetched"),
        *([] if has_tags() else [({"structural_tag": json.dumps(TAG)}, "structural_tag")]),
    ],
)
def test_what_cannot_be_is_refused_in_the_front_end(client, asked, message):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(
            model="tiny", prompt="x", max_tokens=30, extra_body={"structured_outputs": asked}
        )
    assert re.search(message, str(caught.value)), caught.value
    check("choice", TestVLLM().ask(client, "choice", 0).message.content)


@pytest.mark.parametrize(
    ("more", "message"),
    [({"use_beam_search": True, "n": 2}, "beam search"), ({"ignore_eos": True}, "ignore_eos")],
)
def test_what_the_engine_cannot_do_with_a_constraint_is_refused(client, more, message):
    asked = {"structured_outputs": {"regex": "[ab]{4}"}, "max_tokens": 9, **more}
    for _ in range(2):
        with pytest.raises(openai.BadRequestError, match=message):
            client.completions.create(model="tiny", prompt="x", extra_body=asked)
        with pytest.raises(openai.BadRequestError, match=message):
            client.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": "x"}], extra_body=asked
            )
    free = {"max_tokens": 5, **more}
    assert client.completions.create(model="tiny", prompt="x", extra_body=free).choices


def test_the_text_behind_reasoning_is_constrained(tmp_path, monkeypatch):
    # Before the speculative one: vLLM makes no engine in a process that has loaded numba's compiler.
    for name, value in {**ENVIRONMENT, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}.items():
        monkeypatch.setenv(name, value)
    from vllm import LLM, SamplingParams
    from vllm.plugins import load_general_plugins
    from vllm.sampling_params import StructuredOutputsParams

    load_general_plugins()
    folder = tiny_model(tmp_path, ("<think>", "</think>"))
    engine = LLM(
        model=str(folder),
        max_model_len=256,
        enforce_eager=True,
        dtype="bfloat16",
        max_num_seqs=8,
        structured_outputs_config={"backend": "tokenfst", "reasoning_parser": "deepseek_r1"},
    )
    end = engine.get_tokenizer().convert_tokens_to_ids("</think>")
    kinds = ["json", "regex", "choice", "grammar"]
    params = [
        SamplingParams(
            max_tokens=150,
            temperature=1.0,
            seed=seed,
            logit_bias={end: 5.0},  # a random model ends its reasoning some time, and never ends it again
            skip_special_tokens=False,
            structured_outputs=StructuredOutputsParams(**ASKED[kind]["structured_outputs"]),
        )
        for kind in kinds
        for seed in range(3)
    ]
    prompts = ["Say something. <think>"] * len(params)
    found = engine.generate(prompts, params, use_tqdm=False)
    thoughts = 0
    for number, output in enumerate(found):
        thought, closed, text = output.outputs[0].text.partition("</think>")
        assert closed and "</think>" not in text, output.outputs[0].text
        thoughts += bool(thought)
        check(kinds[number // 3], text.removesuffix("</s>"))
    assert thoughts, "no text was thought about: nothing was left free"


def test_speculative_decoding_in_a_process_and_what_an_aborted_request_leaves(model, monkeypatch):
    for name, value in {**ENVIRONMENT, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}.items():
        monkeypatch.setenv(name, value)
    from vllm import LLM, SamplingParams
    from vllm.plugins import load_general_plugins
    from vllm.sampling_params import StructuredOutputsParams

    load_general_plugins()
    engine = LLM(
        model=str(model),
        max_model_len=256,
        enforce_eager=True,
        dtype="bfloat16",
        max_num_seqs=8,
        structured_outputs_config={"backend": "tokenfst"},
        speculative_config={"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3},
    )
    asked = [ASKED[kind]["structured_outputs"] for kind in ASKED if "structured_outputs" in ASKED[kind]]
    asked = [{k: v for k, v in each.items() if k != "disable_any_whitespace"} for each in asked]
    kinds = [kind for kind in ASKED if "structured_outputs" in ASKED[kind]]
    for room in (24, 40):
        params = [
            SamplingParams(
                max_tokens=room, temperature=1.0, seed=1, structured_outputs=StructuredOutputsParams(**each)
            )
            for each in asked
        ]
        found = engine.generate(["((( 111-aa {} yes yes"] * len(params), params, use_tqdm=False)
        for kind, output in zip(kinds, found, strict=True):
            check(kind, output.outputs[0].text)

    long = SamplingParams(
        max_tokens=500, temperature=1.0, structured_outputs=StructuredOutputsParams(regex="([a-z]{2})*[0-9]")
    )
    text = engine.generate(["Say"], [long], use_tqdm=False)[0].outputs[0].text
    assert re.fullmatch("([a-z]{2})*[0-9]", text), "the context has room for 256 tokens"

    assert not live_grammars()
    inside = engine.llm_engine
    for name, each in zip("abc", params, strict=False):
        inside.add_request(name, "((( 111", each)
    for _ in range(200):
        if live_grammars() == 3:
            break
        inside.step()
    assert live_grammars() == 3
    inside.abort_request(["a", "c"])
    inside.step()
    assert live_grammars() <= 1
    while inside.has_unfinished_requests():
        inside.step()
    assert not live_grammars()


def live_grammars() -> int:
    """How many requests have a matcher."""
    gc.collect()
    return sum(isinstance(each, vllm_backend.TokenfstGrammar) for each in gc.get_objects())


def test_the_grammar_as_vllm_uses_it(model):
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    requests = vllm_backend.compiled_requests(tokenizer, 640)
    served = requests.served(Request("regex", "a+b"), [1], 5)
    matcher = served.matcher
    assert requests.automaton(Request("regex", "a+b"), [1]) is requests.automaton(
        Request("regex", "a+b"), [1, 1]
    )
    grammar = vllm_backend.TokenfstGrammar(served)
    a, b = (tokenizer.convert_tokens_to_ids(each) for each in "ab")
    assert grammar.validate_tokens([a, b, a]) == [a, b] and matcher.num_tokens == 0
    mask = vllm_backend.torch.zeros((2, 20), dtype=vllm_backend.torch.int32)
    grammar.fill_bitmask(mask, 1)
    row = allocate_token_bitmask(1, 640)
    matcher.fill_next_token_bitmask(row, 0)
    assert np.array_equal(mask[1].numpy(), row[0]) and not mask[0].any()
    assert grammar.accept_tokens("x", [a, b, 1, a, a]) and grammar.is_terminated()
    assert grammar.validate_tokens([a]) == []
    grammar.rollback(1)
    assert not grammar.is_terminated() and not grammar.accept_tokens("x", [a])
    grammar.reset()
    assert grammar.accept_tokens("x", [a]) and regex("a").accepts("a")
    assert grammar.accept_tokens("x", [a, a, b]) and not grammar.is_terminated()
    assert grammar.accept_tokens("x", [1]) and grammar.is_terminated()
    other = [requests.served(Request("regex", "[xy]*"), [1], None) for _ in range(2)]
    rows = np.zeros((3, 20), np.int32)
    fill_rows(rows, [(0, other[0]), (2, other[1])])
    assert np.array_equal(rows[0], rows[2]) and not rows[1].any()
