"""The grammar backend in SGLang itself: requests over HTTP, ``sgl.Engine``, SGLang's own manager and tree of drafts.

Runs in the engine's own environment (``make test-sglang``), with a tiny random model, on the CPU.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import time
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("sglang", reason="SGLang has an environment of its own: make test-sglang")
import numpy as np
import openai
import torch
from sglang.srt.constrained.base_grammar_backend import GrammarRow, InvalidGrammarObject
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.plugins import load_plugins
from sglang.srt.speculative.spec_utils import traverse_tree
from support.engines.served import CHOICE, EBNF, LIST, PATTERN, PERSON, TAG, ServedRequests, check
from support.engines.serving import server, tiny_model

from tokenfst import allocate_token_bitmask, compile, json_schema
from tokenfst.decoding.engines.sglang_backend import TokenfstGrammar, TokenfstGrammarBackend, make_backend
from tokenfst.decoding.engines.shared.requests import Request
from tokenfst.errors import MatcherError, TokenLimitError
from tokenfst.tokenizers.adapters.huggingface import from_huggingface

ENVIRONMENT = {"SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
OPTIONS: dict[str, Any] = {
    "device": "cpu",
    "dtype": "bfloat16",
    "attention_backend": "torch_native",
    "sampling_backend": "pytorch",
    "grammar_backend": "tokenfst",
    "context_length": 256,
    "max_total_tokens": 2048,
    "mem_fraction_static": 0.1,
    "disable_cuda_graph": True,
    "disable_overlap_schedule": True,
    "skip_server_warmup": True,
}
ASKED: dict[str, dict[str, Any]] = {
    "response_format": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}
    },
    "list": {"response_format": {"type": "json_schema", "json_schema": {"name": "l", "schema": LIST}}},
    "json_object": {"response_format": {"type": "json_object"}},
    "regex": {"regex": PATTERN},
    "choice": {"regex": "|".join(CHOICE)},
    "grammar": {"ebnf": EBNF},
    "structural_tag": {"response_format": TAG},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def client(model, tmp_path_factory):
    options = [
        part
        for name, value in OPTIONS.items()
        for part in ("--" + name.replace("_", "-"), *([] if value is True else [str(value)]))
    ]
    command = [
        *(sys.executable, "-m", "sglang.launch_server", "--model-path", str(model)),
        *("--served-model-name", "tiny", "--host", "127.0.0.1", "--port", "{port}", *options),
    ]
    with server(command, tmp_path_factory.mktemp("log") / "log", **ENVIRONMENT) as url:
        yield openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=600)


class TestSGLang(ServedRequests):
    server, whole, seeded = "sglang", "response_format", False
    asked = ASKED


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"regex": "(a"}, "position"),
        ({"regex": r"(a)\1"}, "back-reference"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "no"}},
                }
            },
            "#/type",
        ),
        ({"ebnf": "root ::= nothing"}, "nothing"),
        ({"regex": "[0-9]{100}"}, "tokens"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(client, asked, message):
    for _ in range(2):  # the second time SGLang knows that it failed
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": "x"}], max_tokens=30, extra_body=asked
            )
        assert re.search(message, str(caught.value)), caught.value
    check("choice", TestSGLang().ask(client, "choice", 0).message.content)


def test_an_engine_in_python(model, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    # Processes of the engine are spawned and look for what the tests import.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    import sglang

    engine = sglang.Engine(model_path=str(model), constrained_json_disable_any_whitespace=True, **OPTIONS)
    try:
        asked = [
            {"json_schema": json.dumps(PERSON)},
            {"json_schema": "$$ANY$$"},
            {"regex": PATTERN},
            {"ebnf": EBNF},
            {"structural_tag": json.dumps(TAG)},
            {},
        ]
        found = engine.generate(
            ["Say something."] * len(asked),
            [{"max_new_tokens": 30, "temperature": 1.0, **each} for each in asked],
        )
        texts = [each["text"] for each in found]
        check("json", texts[0])
        assert json_schema(PERSON, whitespace="compact").accepts(texts[0]), texts[0]
        json.loads(texts[1])
        for kind, text in zip(("regex", "grammar", "structural_tag"), texts[2:], strict=False):
            check(kind, text)
        several = engine.generate("Say", {"max_new_tokens": 20, "temperature": 1.0, "n": 3, "regex": PATTERN})
        assert len(several) == 3
        for each in several:
            check("regex", each["text"])
        for asked, message in (
            ({"regex": "[0-9]{40}"}, "least number"),
            ({"regex": "(?=a)b"}, "language is empty"),
            ({"regex": "((a{0,900}){0,900}){0,900}b"}, "positions"),
            ({"json_schema": '{"$ref": "http://x/y"}'}, "nothing is fetched"),
            ({"ebnf": 'root ::= "a" root'}, "has no word"),
        ):
            with pytest.raises(ValueError, match=message):
                engine.generate("x", {"max_new_tokens": 5, **asked})
    finally:
        engine.shutdown()


def test_scores_are_added_to_the_logits(model, tokenizer, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    import sglang
    from support.engines.sglang_scored import Scores

    engine = sglang.Engine(model_path=str(model), enable_custom_logit_processor=True, **OPTIONS)
    prompt = tokenizer("Say something.")["input_ids"]
    width = len(tokenizer)
    vocabulary = from_huggingface(tokenizer, size=width, eos_token_id=[1])

    def ask(ids, number, scores=None, weight=1.0, **more):
        options = {"tokenfst_scores": scores, "tokenfst_scores_weight": weight} if scores else None
        params = {"temperature": 0.0, "max_new_tokens": number, "custom_params": options, **more}
        processor = Scores.to_str() if scores else None
        return engine.generate(
            input_ids=ids,
            sampling_params=params,
            custom_logit_processor=processor,
            return_logprob=not scores,
            top_logprobs_num=0 if scores else width,
        )

    try:
        for weight in (1.0, -0.5, 0.0):
            written = ask(prompt, 6, "boosted", weight)["output_ids"]
            walk = compile(Scores.weighted["boosted"], vocabulary).matcher()
            for place, token in enumerate(written):
                plain = ask([*prompt, *written[:place]], 1)["meta_info"]["output_top_logprobs"][0]
                logprobs = np.full(width, -np.inf)
                for logprob, other, _ in plain:
                    logprobs[other] = logprob
                total = logprobs + weight * walk.scores()
                assert total[token] >= total.max() - 0.1, (weight, place)
                assert walk.accept_token(token)
        assert ask(prompt, 30, "few")["text"] in ("123-aax", "123-bbyy", "999")
        assert ask(prompt, 30, "few", regex=PATTERN)["text"] in ("123-aax", "123-bbyy")
        # No text is in both languages: that request fails, and the engine goes on.
        with pytest.raises(Exception, match="is not allowed after 0 tokens"):
            ask(prompt, 30, "few", regex="x+")
        for scores, weight, message in (("other", 1.0, "'boosted', 'few'"), ("few", "much", "finite number")):
            with pytest.raises(ValueError, match=message):
                ask(prompt, 3, scores, weight)
        assert ask(prompt, 3)["output_ids"]
    finally:
        engine.shutdown()


@pytest.fixture(scope="module")
def tokenizer(model):
    import transformers

    return transformers.AutoTokenizer.from_pretrained(model)


@pytest.fixture
def backend(tokenizer) -> TokenfstGrammarBackend:
    return TokenfstGrammarBackend(tokenizer, 640, {1})


def grammar(backend, kind: str, text: str, most: int | None = None, stops=()) -> TokenfstGrammar:
    found = getattr(backend, f"dispatch_{kind}")(text)
    found.begin(stops, most)
    return found


def reference(backend, kind, text: str, tokens: list[int]) -> np.ndarray:
    """The mask of the plain matcher after these tokens."""
    matcher = backend.requests.matcher(Request(kind, text), [1], None)
    assert matcher.accept_tokens(tokens)
    row = allocate_token_bitmask(1, 640)
    matcher.fill_next_token_bitmask(row, 0)
    return row[0]


def test_the_grammar_as_sglang_uses_it(backend, tokenizer):
    a, b = (tokenizer.convert_tokens_to_ids(each) for each in "ab")
    template = backend.dispatch_regex("a+b")
    with pytest.raises(MatcherError, match="begin"):
        template.accept_token(a)
    one = grammar(backend, "regex", "a+b", 5)
    with pytest.raises(ValueError, match=f"token {b} is not allowed"):
        one.accept_token(b)
    one.accept_token(a)
    assert one.current_token == a and not one.is_terminated()
    mask = one.allocate_vocab_mask(640, 2, "cpu")
    one.fill_vocab_mask(mask, 1)
    assert (mask[0] == -1).all() and np.array_equal(mask[1].numpy(), reference(backend, "regex", "a+b", [a]))
    for token in (b, 1, a, a):
        one.accept_token(token)  # what follows the end is not looked at
    assert one.is_terminated()
    one.rollback(1)
    assert not one.is_terminated()
    logits = torch.zeros(1, 640)
    one.apply_vocab_mask(logits, mask[1:])
    assert (logits[0] == 0).sum() == np.unpackbits(mask[1].numpy().view(np.uint8)).sum()
    one.reset_vocab_mask(mask)
    assert (mask == -1).all()
    with pytest.raises(TokenLimitError):
        grammar(backend, "regex", "[xyz]{300}", 3)
    stopped = grammar(backend, "regex", "a", stops=[9])
    stopped.accept_token(a)
    stopped.accept_token(9)
    assert stopped.is_terminated()


def test_masks_of_a_batch_are_those_of_each(backend, tokenizer):
    patterns = ["a+b", "[0-9]{3}", "x*", "(yes|no)"]
    listed = [grammar(backend, "regex", pattern, 9) for pattern in patterns]
    rows = [5, 0, 3, 2]
    mask = listed[0].allocate_vocab_mask(640, 6, "cpu")
    alone = mask.clone()
    entries = [GrammarRow(row=row, grammar=each) for row, each in zip(rows, listed, strict=True)]
    listed[0].fill_vocab_mask_batched(entries, mask)
    for entry in entries:
        entry.grammar.fill_vocab_mask(alone, entry.row)
    assert torch.equal(mask, alone) and (mask[1] == -1).all() and not (mask[0] == -1).all()


def test_a_tree_of_drafts(backend, tokenizer):
    a, b, c = (tokenizer.convert_tokens_to_ids(each) for each in "abc")
    one = grammar(backend, "regex", "a(b|a)c", 4)
    one.accept_token(a)
    # the root (a, accepted); below it b and, its siblings, c and a; below b: c
    drafts = torch.tensor([a, b, c, a, c])
    child = torch.tensor([1, 4, -1, -1, -1])
    sibling = torch.tensor([-1, 2, 3, -1, -1])
    mask = one.allocate_vocab_mask(640, 5, "cpu")
    traverse_tree(child, sibling, drafts, one, mask, vocab_size=640)
    expected = {0: [a], 1: [a, b], 3: [a, a], 4: [a, b, c]}
    for row, tokens in expected.items():
        if row == 4:
            assert np.array_equal(mask[4].numpy(), reference(backend, "regex", "a(b|a)c", tokens))
        else:
            assert np.array_equal(mask[row].numpy(), reference(backend, "regex", "a(b|a)c", tokens)), row
    assert (mask[2] == -1).all() and one.matcher.num_tokens == 1


def test_jump_forward(backend, tokenizer):
    one = grammar(backend, "regex", "ab[0-9]")
    a, b, x = (tokenizer.convert_tokens_to_ids(each) for each in "abx")
    helper = one.try_jump_forward(tokenizer)
    assert one.jump_forward_str_state(helper) == ("ab", -1)
    one.accept_token(a)
    assert grammar(backend, "regex", "aé|aè").try_jump_forward(tokenizer) == ([], "a")
    one.jump_and_retokenize([a], [a, b], -1)
    assert one.matcher.num_tokens == 2 and one.try_jump_forward(tokenizer) is None
    with pytest.raises(ValueError, match="not allowed"):
        one.jump_and_retokenize([a, b], [a, b, x], -1)
    one.jump_and_retokenize([a, b], [a], -1)
    assert one.matcher.num_tokens == 1


class Asked:
    """A request as the scheduler has it."""

    def __init__(self, max_new_tokens: int = 20, **params: Any) -> None:
        every = dict.fromkeys(
            ("json_schema", "regex", "ebnf", "structural_tag", "custom_params", "stop_token_ids")
        )
        self.sampling_params = SimpleNamespace(
            **{**every, **params}, ebnf_full_assistant=False, max_new_tokens=max_new_tokens
        )
        self.grammar, self.grammar_key, self.grammar_wait_ct, self.rid = None, None, 0, "r"
        self.origin_input_ids, self.require_reasoning, self.refusal = [5], False, ""

    def set_finish_with_abort(self, message: str) -> None:
        self.grammar, self.refusal = None, message

    def finished(self) -> bool:
        return bool(self.refusal)


@pytest.fixture
def manager(backend) -> GrammarManager:
    load_plugins()
    made = GrammarManager.__new__(GrammarManager)
    made.grammar_queue, made.grammar_backend, made._enable_strict_thinking = [], backend, False
    made.grammar_sync_size, made.pp_rank, made.pp_size, made.pp_group = 1, 0, 1, None
    made.SGLANG_GRAMMAR_POLL_INTERVAL, made.SGLANG_GRAMMAR_MAX_POLL_ITERATIONS = 0.005, 10000
    made.scheduler = SimpleNamespace(model_config=SimpleNamespace())
    return made


def served(manager, asked: Asked) -> Asked:
    if manager.process_req_with_grammar(asked):
        while asked not in manager.get_ready_grammar_requests():
            time.sleep(0.01)
    return asked


def test_the_manager_begins_each_request_with_its_own_limits(manager, backend):
    first = served(manager, Asked(5, regex="[0-9]{3}"))
    second = served(manager, Asked(7, regex="[0-9]{3}", stop_token_ids={9}))
    assert first.grammar is not second.grammar
    assert [each.grammar.matcher.max_tokens_left for each in (first, second)] == [5, 7]
    assert "least number" in served(manager, Asked(2, regex="[0-9]{30}")).refusal
    assert "least number" in served(manager, Asked(2, regex="[0-9]{30}")).refusal
    assert "position" in served(manager, Asked(2, regex="(a")).refusal
    assert not isinstance(served(manager, Asked(30, regex="[0-9]{30}")).grammar, InvalidGrammarObject)


def test_what_has_gone_from_the_store_is_compiled_again(manager, backend):
    served(manager, Asked(regex="[0-9]{3}"))
    assert not manager.process_req_with_grammar(Asked(regex="[0-9]{3}"))
    backend.requests._kept.clear()
    again = Asked(regex="[0-9]{3}")
    assert served(manager, again).grammar.matcher.max_tokens_left == 20
    assert backend.dispatch_regex("[0-9]{3}").is_compiled()


def test_an_aborted_request_frees_its_matcher(manager):
    asked = served(manager, Asked(regex="[a-z]+"))
    grammar = weakref.ref(asked.grammar)
    asked.set_finish_with_abort("Aborted by AbortReq.")
    gc.collect()
    assert grammar() is None


def test_options_of_the_server(tokenizer):
    args = SimpleNamespace(
        reasoning_parser=None,
        constrained_json_disable_any_whitespace=False,
        constrained_json_whitespace_pattern=None,
        constrained_json_max_whitespace_cnt=None,
    )
    assert make_backend(args, tokenizer, 640, {1})._whitespace == "flexible"
    args.constrained_json_max_whitespace_cnt = 1
    made = make_backend(args, tokenizer, 640, None)
    made.dispatch_json("true")
    assert made._whitespace == "[ \\t\\n\\r]{0,1}"
    args.constrained_json_whitespace_pattern = " ?"
    assert make_backend(args, tokenizer, 640, 1)._whitespace == " ?"
    args.constrained_json_disable_any_whitespace = True
    assert make_backend(args, tokenizer, 640, [1])._whitespace == "compact"
    args.reasoning_parser, args.enable_strict_thinking = "qwen3", True
    wrapped = make_backend(args, tokenizer, 640, [1])
    assert isinstance(wrapped.grammar_backend, TokenfstGrammarBackend)
