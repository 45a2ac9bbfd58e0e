"""The plugin in vLLM itself: requests over HTTP through ``vllm serve``, and speculative decoding in a process.

Runs in the engine's own environment (``make test-vllm``), with a tiny random model, on the CPU.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM has an environment of its own: make test-vllm")
import numpy as np
import openai
from support.engines import vllm_in_process
from support.engines.served import TAG, ServedRequests, check
from support.engines.serving import script, server, tiny_model
from support.engines.vllm_in_process import ASKED, ENVIRONMENT, has_tags

from tokenfst import allocate_token_bitmask, regex
from tokenfst.decoding.engines import vllm_backend
from tokenfst.decoding.engines.shared.requests import Request, fill_step


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


def test_the_text_behind_reasoning_is_constrained(tmp_path):
    folder = tiny_model(tmp_path, ("<think>", "</think>"))
    vllm_in_process.in_new_process(vllm_in_process.texts_behind_reasoning, folder)


def test_speculative_decoding_in_a_process_and_what_an_aborted_request_leaves(model):
    vllm_in_process.in_new_process(vllm_in_process.drafts_and_aborted_requests, model)


def test_an_error_in_one_matcher_ends_its_request_alone(model):
    vllm_in_process.in_new_process(vllm_in_process.one_broken_matcher, model)


def test_scores_are_added_to_the_logits(model):
    vllm_in_process.in_new_process(vllm_in_process.scores, model)


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
    fill_step(rows, other, [0, 2])
    assert np.array_equal(rows[0], rows[2]) and not rows[1].any()
