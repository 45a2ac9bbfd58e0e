"""Constraints in transformers' continuous batching: the real engine, with a small model, on the CPU."""

from __future__ import annotations

import copy
import re

import pytest
import small_model

import tokenfst
from tokenfst import compile, gbnf, regex
from tokenfst.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BudgetExceeded,
    ModelError,
    TokenLimitError,
    VocabularyMismatchError,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
batching = pytest.importorskip("tokenfst.decoding.engines.continuous_batching")
pytestmark = pytest.mark.usefixtures("one_torch_thread")
PATTERNS = [r"[0-9]{3}-[0-9]{4}", r"(yes|no), [a-z]{1,9}", r'\{"a": (true|false)\}', r"x{3,20}", ""]


@pytest.fixture(scope="module")
def loaded() -> small_model.SmallModel:
    return small_model.load()


def start(loaded, requests: int = 8, **options):
    """A manager that has not started."""
    return loaded.model.init_continuous_batching(
        generation_config=transformers.GenerationConfig(
            max_new_tokens=24, eos_token_id=list(loaded.vocabulary.eos_token_ids), **options
        ),
        continuous_batching_config=transformers.ContinuousBatchingConfig(
            num_blocks=64, page_size=16, max_batch_tokens=64, max_requests_per_batch=requests
        ),
    )


def finish(manager, names) -> dict[str, list[int]]:
    """The tokens of all requests."""
    manager.start()
    found: dict[str, list[int]] = {}
    try:
        while len(found) < len(names):
            output = manager.get_result(timeout=60)
            assert output is not None and output.error is None, output
            if output.is_finished():
                found[output.request_id] = output.generated_tokens
    finally:
        manager.stop(block=True)
    return found


@pytest.mark.parametrize("options", [{}, {"do_sample": True, "temperature": 2.0, "top_k": 5}])
def test_requests_of_different_constraints_in_flight_at_once(loaded, options):
    manager = start(loaded, **options)
    batches = batching.ConstrainedBatches(manager, loaded.vocabulary)
    automata = {pattern: compile(regex(pattern), loaded.vocabulary) for pattern in PATTERNS}
    wanted: dict[str, str] = {}
    free = []
    for number in range(21):  # more than fit into a batch at once
        ids = loaded.tokenizer(f"record: {'name ' * (number % 5)}").input_ids
        if number % 7 == 3:
            free.append(manager.add_request(ids, eos_token_id=-1))  # nothing ends it before its 24 tokens
            continue
        pattern = PATTERNS[number % len(PATTERNS)]
        wanted[batches.add_request(ids, automata[pattern], max_new_tokens=12 + number % 3)] = pattern
    found = finish(manager, [*wanted, *free])
    for name, pattern in wanted.items():
        assert re.fullmatch(pattern, loaded.vocabulary.decode(found[name]).decode()), (pattern, found[name])
    assert len(free) == 3 and all(len(found[name]) == 24 for name in free)


def test_it_chooses_what_generate_chooses(loaded):
    automata = [compile(regex(pattern), loaded.vocabulary) for pattern in PATTERNS]
    ids = [loaded.tokenizer(f"record: {pattern}").input_ids for pattern in PATTERNS]
    manager = start(loaded)
    batches = batching.ConstrainedBatches(manager, loaded.vocabulary)
    names = [batches.add_request(*each) for each in zip(ids, automata, strict=True)]
    found = finish(manager, names)
    for name, prompt, automaton in zip(names, ids, automata, strict=True):
        processor = tokenfst.ConstraintLogitsProcessor(automaton, max_new_tokens=24)
        out = loaded.model.generate(
            torch.tensor([prompt]), max_new_tokens=24, do_sample=False, logits_processor=[processor]
        )
        text = loaded.vocabulary.decode(out[0, len(prompt) :].tolist())
        assert loaded.vocabulary.decode(found[name]) == text


def test_forks_have_matchers_of_their_own(loaded):
    manager = start(loaded, num_return_sequences=3, do_sample=True, temperature=3.0)
    batches = batching.ConstrainedBatches(manager, loaded.vocabulary)
    automaton = compile(gbnf('root ::= "(" root ")" | [a-z]{4}'), loaded.vocabulary)
    name = batches.add_request(loaded.tokenizer("x").input_ids, automaton, max_new_tokens=9)
    found = finish(manager, range(3))
    assert name in found and len(found) == 3
    grammar = gbnf('root ::= "(" root ")" | [a-z]{4}')
    assert all(grammar.accepts(loaded.vocabulary.decode(tokens)) for tokens in found.values())


class Broken:
    """A matcher that raises in one of its calls, once it has a token."""

    def __init__(self, matcher, call: str, error: Exception) -> None:
        self._matcher, self._call, self._error = matcher, call, error

    def __getattr__(self, name: str):
        if name == self._call and self._matcher.num_tokens == 1:
            raise self._error
        return getattr(self._matcher, name)


@pytest.mark.parametrize("call", ["accept_tokens", "fill_next_token_bitmask"])
@pytest.mark.parametrize("error", [BudgetExceeded("seconds", 0.5, "masks"), KeyError("a defect")])
def test_a_matcher_that_raises_ends_its_request_alone_with_the_reason(loaded, call, error):
    manager = start(loaded)
    batches = batching.ConstrainedBatches(manager, loaded.vocabulary)
    automaton = compile(regex("[a-z]{12}"), loaded.vocabulary)
    ids = loaded.tokenizer("record: name").input_ids
    names = [batches.add_request(ids, automaton, max_new_tokens=14) for _ in range(5)]
    free = manager.add_request(ids)
    (broken,) = (each for each in manager.input_queue.queue if each.request_id == names[2])
    request = broken.logit_processor_kwargs["constraint"]
    request._matcher = Broken(request.matcher(), call, error)
    manager.start()
    found = {}
    try:
        while len(found) < 6:
            output = manager.get_result(timeout=60)
            assert output is not None
            if output.is_finished():
                found[output.request_id] = output
        late = batches.add_request(ids, automaton, max_new_tokens=14)  # the engine goes on
        assert late is not None
        assert manager.get_result(late, timeout=60).error is None
    finally:
        manager.stop(block=True)
    assert found[names[2]].error == str(error)
    assert len(found[names[2]].generated_tokens) <= 3
    assert found[names[2]].generated_tokens[-1] in loaded.vocabulary.eos_token_ids
    for name in {*names, free} - {names[2]}:
        assert found[name].error is None
        if name != free:
            assert re.fullmatch("[a-z]{12}", loaded.vocabulary.decode(found[name].generated_tokens).decode())


def test_a_request_begun_anew_takes_the_tokens_it_has(loaded):
    automaton = compile(regex("[ab]{6}"), loaded.vocabulary)
    request = batching._Request(automaton, 9)
    tokens = loaded.vocabulary.encode_greedy(b"abab")
    assert request.follow(tokens[:1]).tokens == tokens[:1]
    assert request.follow(tokens).tokens == tokens
    again = copy.deepcopy(request)
    assert again._matcher is None and again._automaton is automaton
    assert again.follow(tokens).max_tokens_left == 9 - len(tokens)
    with pytest.raises(tokenfst.errors.LogitsError, match="not allow"):
        again.follow([*tokens, *loaded.vocabulary.encode_greedy(b"z")])


def test_what_does_not_fit_is_refused_before_it_is_queued(loaded, tekken):
    manager = start(loaded)
    with pytest.raises(VocabularyMismatchError, match="131,072"):
        batching.ConstrainedBatches(manager, tekken)
    with pytest.raises(ModelError, match="init_continuous_batching"):
        batching.ConstrainedBatches(loaded.model, loaded.vocabulary)
    batches = batching.ConstrainedBatches(manager, loaded.vocabulary)
    automaton = compile(regex("[0-9]{40}x"), loaded.vocabulary)
    with pytest.raises(TokenLimitError, match="41"):
        batches.add_request([1], automaton)
    with pytest.raises(ArgumentValueError, match="eos_token_id"):
        batches.add_request([1], automaton, max_new_tokens=50, eos_token_id=5)
    with pytest.raises(ArgumentTypeError, match="automaton"):
        batches.add_request([1], regex("a"))
    with pytest.raises(VocabularyMismatchError, match="another vocabulary"):
        batches.add_request([1], compile(regex("a"), tekken))
    manager = start(loaded)
    manager.continuous_batching_config.use_async_batching = True
    with pytest.raises(ModelError, match="use_async_batching=False"):
        batching.ConstrainedBatches(manager, loaded.vocabulary)


def test_the_pipeline_takes_the_processor(loaded):
    pipeline = transformers.pipeline("text-generation", model=loaded.model, tokenizer=loaded.tokenizer)
    automaton = compile(regex(PATTERNS[0]), loaded.vocabulary)
    processor = tokenfst.ConstraintLogitsProcessor(automaton, max_new_tokens=12)
    prompts = ["record: name", "request: what?\ncall:"]
    found = pipeline(prompts, logits_processor=[processor], max_new_tokens=12, return_full_text=False)
    for [each] in found:
        assert re.fullmatch(PATTERNS[0], each["generated_text"])
    generator = tokenfst.Generator(pipeline)
    assert re.fullmatch(PATTERNS[0], generator(prompts[0], automaton, max_new_tokens=12))
