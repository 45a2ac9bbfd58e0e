"""What tests ask of vLLM in a process of its own.

vLLM makes no second engine in a process that has loaded numba's compiler, as its n-gram drafts do: it fails in its own
``_rebind_kernels``. So each function here is called in a new process.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, ClassVar

import numpy as np
from support.engines.served import CHOICE, EBNF, LARK, LIST, PATTERN, PERSON, TAG, check

from tokenfst import WeightedLanguage, boost, compile
from tokenfst.decoding.engines import vllm_backend
from tokenfst.decoding.engines.shared.requests import CompiledRequests, Request, RequestMatcher
from tokenfst.decoding.engines.vllm_scores import VLLMScores

ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


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


def in_new_process(function: Callable[[str], None], model: Any) -> None:
    """Call a function of this module with a model's folder, in a process that ends with it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(function, str(model)).result()


def in_process(model: str, **options: Any) -> Any:
    """An engine within this process."""
    os.environ |= {**ENVIRONMENT, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    from vllm import LLM
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    return LLM(
        model=model, max_model_len=256, enforce_eager=True, dtype="bfloat16", max_num_seqs=8, **options
    )


def texts_behind_reasoning(model: str) -> None:
    """Texts after reasoning are whole and constrained; the reasoning is not. A model with the tokens of the tags."""
    engine = in_process(
        model, structured_outputs_config={"backend": "tokenfst", "reasoning_parser": "deepseek_r1"}
    )
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

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


def drafts_and_aborted_requests(model: str) -> None:
    """With drafts by n-grams texts are whole; a request that is aborted leaves no grammar."""
    engine = in_process(
        model,
        structured_outputs_config={"backend": "tokenfst"},
        speculative_config={"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3},
    )
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

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
    # Whatever is written, none ends before all three have begun.
    pattern = StructuredOutputsParams(regex="[a-z]{200}")
    for name in "abc":
        params = SamplingParams(max_tokens=240, temperature=1.0, structured_outputs=pattern)
        inside.add_request(name, "(((", params)
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


class Broken:
    """A matcher of any text that raises an error at its third mask."""

    max_tokens_left = None
    num_tokens = 0

    def fill_next_token_bitmask(self, bitmask: Any, row: int) -> None:
        if self.num_tokens == 2:
            raise RuntimeError("an error in one matcher")
        bitmask[row] = -1

    def accept_token(self, token: int) -> bool:
        self.num_tokens += 1
        return True

    def is_terminated(self) -> bool:
        return False


def one_broken_matcher(model: str) -> None:
    """An error in one request's matcher ends that request; the others of its batch are whole."""
    engine = in_process(model, structured_outputs_config={"backend": "tokenfst"})
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    made = CompiledRequests.served

    def served(self: Any, request: Request, ends: Any, most: Any) -> RequestMatcher:
        if request.text == "broken":
            return RequestMatcher(Broken(), ends)  # type: ignore[arg-type]
        return made(self, request, ends, most)

    CompiledRequests.served = served  # type: ignore[method-assign]
    asked = [{"regex": PATTERN}, {"regex": "broken"}, {"json": PERSON}, {"regex": "broken"}]
    params = [
        SamplingParams(
            max_tokens=40, temperature=1.0, seed=1, structured_outputs=StructuredOutputsParams(**each)
        )
        for each in asked
    ]
    for _ in range(2):  # the engine lives on
        found = [
            output.outputs[0] for output in engine.generate(["Say"] * len(params), params, use_tqdm=False)
        ]
        check("regex", found[0].text)
        check("json", found[2].text)
        for each in found[1::2]:
            assert each.finish_reason == "error", each


def live_grammars() -> int:
    """How many requests have a matcher."""
    gc.collect()
    return sum(isinstance(each, vllm_backend.TokenfstGrammar) for each in gc.get_objects())


class Scores(VLLMScores):
    """Those of the test."""

    weighted: ClassVar = {
        "boosted": boost({"e": 2.0, " the": 3.0, "ing": -4.0}),
        "few": WeightedLanguage.alternatives({"123-aax": 5, "123-bbyy": 1, "999": 1}),
    }


def scores(model: str) -> None:
    """Requests are sampled from the sum of the model's logits and the scores; constraints hold, too."""
    engine = in_process(
        model,
        structured_outputs_config={"backend": "tokenfst"},
        logits_processors=[Scores],
        logprobs_mode="processed_logits",
        max_logprobs=-1,
        enable_prefix_caching=False,
    )
    from vllm import SamplingParams
    from vllm.exceptions import VLLMValidationError
    from vllm.inputs import TokensPrompt
    from vllm.sampling_params import StructuredOutputsParams

    tokenizer = engine.get_tokenizer()
    width = engine.llm_engine.model_config.get_vocab_size()
    vocabulary = vllm_backend.vocabulary_of(tokenizer, width)([tokenizer.eos_token_id])
    prompt = tokenizer("Say something.")["input_ids"]

    def logits(step: Any) -> Any:
        found = np.full(width, -np.inf)
        for token, each in step.items():
            found[token] = each.logprob
        return found

    def ask(ids: list[int], number: int, **more: Any) -> Any:
        params = SamplingParams(max_tokens=number, temperature=0.0, logprobs=-1, **more)
        return engine.generate([TokensPrompt(prompt_token_ids=ids)], [params], use_tqdm=False)[0].outputs[0]

    for weight in (1.0, -0.5, 0.0):
        options = {"tokenfst_scores": "boosted", "tokenfst_scores_weight": weight}
        # Requests without scores, and with others, share the batch.
        some = [
            SamplingParams(max_tokens=6, temperature=0.0, logprobs=-1, extra_args=extra)
            for extra in (None, options, {"tokenfst_scores": "few"}, options)
        ]
        found = engine.generate([TokensPrompt(prompt_token_ids=prompt)] * 4, some, use_tqdm=False)
        few = compile(Scores.weighted["few"], vocabulary).matcher()
        # Two logits may be so close that the two texts differ.
        for scored in (found[1].outputs[0], found[3].outputs[0]):
            walk = compile(Scores.weighted["boosted"], vocabulary).matcher()
            for place, token in enumerate(scored.token_ids):
                plain = ask([*prompt, *scored.token_ids[:place]], 1)
                expected = logits(plain.logprobs[0]) + weight * walk.scores()
                assert np.allclose(logits(scored.logprobs[place]), expected, atol=0.1), (weight, place)
                assert walk.accept_token(token)
        for token in found[2].outputs[0].token_ids:
            assert few.accept_token(token)

    pattern = StructuredOutputsParams(regex=PATTERN)
    both = ask(prompt, 30, extra_args={"tokenfst_scores": "few"}, structured_outputs=pattern)
    assert both.text in ("123-aax", "123-bbyy"), both.text
    # No text is in both languages: that request fails, and the engine goes on.
    none = ask(
        prompt,
        30,
        extra_args={"tokenfst_scores": "few"},
        structured_outputs=StructuredOutputsParams(regex="x+"),
    )
    assert none.finish_reason == "error", none
    assert ask(prompt, 3).token_ids
    for extra, message in (
        ({"tokenfst_scores": "other"}, "'boosted', 'few'"),
        ({"tokenfst_scores_weight": 1}, "without"),
    ):
        try:
            ask(prompt, 3, extra_args=extra)
        except (VLLMValidationError, ValueError) as error:
            assert message in str(error), error
        else:
            raise AssertionError(f"{extra} was not refused")
