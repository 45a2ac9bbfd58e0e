"""Generation with transformers that stays on the device: the texts of ``generate`` with a logits processor, token by
token.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tokenfst import Vocabulary, compile, gbnf, regex
from tokenfst.errors import StackDepthError, TokenLimitError, VocabularyMismatchError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from tokenfst import (
    ConstraintLogitsProcessor,
    DeviceAutomaton,
    DeviceGenerate,
    PushDownDeviceAutomaton,
)

VOCABULARY = Vocabulary([*(bytes([b]) for b in range(256)), b"12", b""], eos_token_id=257)
PATTERNS = ["[0-9]{3}-[0-9]+", "(yes|no)+", "[a-z]*x"]
AUTOMATA = [compile(regex(pattern), VOCABULARY) for pattern in PATTERNS]
PROMPTS = torch.tensor([list(b"call "), list(b"sure?"), list(b"word:")])
NEW = 12


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=260,  # wider than the vocabulary
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=64,
        bos_token_id=257,
        eos_token_id=257,
        pad_token_id=257,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def device() -> Any:
    return DeviceAutomaton(AUTOMATA)


def generate(model: Any, **options: Any) -> Any:
    prompts = options.pop("prompts", PROMPTS)
    return model.generate(
        prompts,
        attention_mask=torch.ones_like(prompts),
        max_new_tokens=NEW,
        **({"do_sample": False} | options),
    )


@pytest.mark.parametrize("options", [{}, {"cache_implementation": "static"}, {"repetition_penalty": 1.3}])
@pytest.mark.parametrize("check_every", [1, 5])
def test_greedy_texts_are_those_of_the_logits_processor(
    model: Any, device: Any, options: dict[str, Any], check_every: int
) -> None:
    processor = ConstraintLogitsProcessor(AUTOMATA, max_new_tokens=NEW)
    if "repetition_penalty" in options:  # processors come first in generate(), and see unmasked scores there
        processors = [transformers.RepetitionPenaltyLogitsProcessor(1.3)]
        wanted = generate(model, logits_processor=[processor, *processors])
        found = generate(
            model,
            logits_processor=processors,
            custom_generate=DeviceGenerate(device, [0, 1, 2], check_every=check_every),
        )
    else:
        wanted = generate(model, logits_processor=[processor], **options)
        found = generate(
            model, custom_generate=DeviceGenerate(device, [0, 1, 2], check_every=check_every), **options
        )
    assert torch.equal(found, wanted)


def test_samples_are_complete_texts(model: Any, device: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    loop = DeviceGenerate(device, [0, 1, 2], generator=generator)
    options = {
        "do_sample": True,
        "temperature": 1.5,
        "top_k": 20,
        "num_return_sequences": 4,
        "custom_generate": loop,
    }
    found = generate(model, **options)
    assert len(found) == 12
    for row, tokens in enumerate(found[:, 5:].tolist()):
        assert re.fullmatch(PATTERNS[row // 4], VOCABULARY.decode(tokens).decode())
    loop.generator = generator.manual_seed(1)
    assert torch.equal(generate(model, **options), found)


def test_texts_of_a_grammar_nest_as_deep_as_there_is_room(model: Any) -> None:
    automata = [compile(gbnf('root ::= "(" root ")" | [0-9]'), VOCABULARY), AUTOMATA[1]]
    options = {"do_sample": True, "num_return_sequences": 8, "prompts": PROMPTS[:2]}
    loop = DeviceGenerate(PushDownDeviceAutomaton(automata), [0, 1])
    for row, tokens in enumerate(generate(model, custom_generate=loop, **options)[:, 5:].tolist()):
        matcher = automata[row // 8].matcher()
        assert matcher.accept_tokens(tokens[: tokens.index(257)] if 257 in tokens else tokens)
        assert matcher.is_accepting()
    nested = compile(gbnf('root ::= "(" root ")" | "1"'), VOCABULARY)
    shallow = DeviceGenerate(
        PushDownDeviceAutomaton(nested, depth=1), generator=torch.Generator().manual_seed(0)
    )
    with pytest.raises(StackDepthError, match="depth=2"):
        generate(model, custom_generate=shallow, do_sample=True, num_return_sequences=64)


def test_other_criteria_stop_rows(model: Any, device: Any) -> None:
    class AfterThree(transformers.StoppingCriteria):
        def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
            return torch.full((len(input_ids),), input_ids.shape[1] >= 8)

    found = generate(
        model, custom_generate=DeviceGenerate(device, [0, 1, 2]), stopping_criteria=[AfterThree()]
    )
    assert found.shape == (3, 8)


def test_what_is_refused(model: Any, device: Any) -> None:
    with pytest.raises(ValueError, match="index of each prompt"):
        generate(model, custom_generate=DeviceGenerate(device))
    with pytest.raises(ValueError, match="greedily or by sampling"):
        generate(model, custom_generate=DeviceGenerate(device, [0, 1, 2]), num_beams=2)
    with pytest.raises(ValueError, match="check_every"):
        DeviceGenerate(device, check_every=0)
    with pytest.raises(VocabularyMismatchError, match="ends texts by"):
        generate(model, custom_generate=DeviceGenerate(device, [0, 1, 2]), eos_token_id=65)
    long = DeviceAutomaton(compile(regex("[a-z]{40}"), VOCABULARY))
    with pytest.raises(TokenLimitError, match="12 tokens: the least number from here is 40"):
        generate(model, custom_generate=DeviceGenerate(long))


def test_draft_trees(device: Any) -> None:
    """As a matcher's, node for node; rows after a forbidden token are DEAD."""
    rng = np.random.default_rng(0)
    for index, automaton in enumerate(AUTOMATA):
        tokens = torch.from_numpy(rng.choice(list(b"012-yesnox"), 60))
        parents = torch.tensor([-1] + [int(rng.integers(-1, node)) for node in range(1, 60)])
        reached = device.advance_tree(device.start_states([index]), parents, tokens, 60)
        for node in range(60):
            path, at = [], node
            while at >= 0:
                path.append(int(tokens[at]))
                at = int(parents[at])
            assert automaton.matcher().accept_tokens(path[::-1]) == bool(reached[node] != 0)
