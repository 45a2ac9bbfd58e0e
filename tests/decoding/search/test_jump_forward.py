"""The plain decoding loop: what it generates is in the language, and runs without a choice change nothing."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import tokenfst
from reference.decoding.masked_sampling import sequence_probabilities
from reference.tokens.byte_pairs import train
from tokenfst import Vocabulary, compile, regex
from tokenfst.decoding.models.language_model import CallbackModel
from tokenfst.decoding.models.sampling import Sampling
from tokenfst.decoding.search.jump_forward import Batch, generate
from tokenfst.errors import (
    DecodingError,
    LogitsError,
    ModelError,
    TokenizationError,
    TokenLimitError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.segmentation.tokenizer import byte_pair_tokenizer

SPLIT = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "kind": {"enum": ["fruit", "vegetable"]},
        "ripe": {"type": "boolean"},
    },
    "required": ["name", "kind", "ripe"],
    "additionalProperties": False,
}
PATTERNS = [
    "(abc|abd)+",
    '\\{"name": "[a-c]{1,3}", "ripe": (true|false)\\}',
    "[ab]{0,6}",
    "fruit salad|fruit",
    "é|è",
]


pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    text = b'{"name": "ab", "kind": "fruit", "ripe": true} {"name": "cd", "kind": "vegetable", "ripe": false} abc abd'
    tokens = train(text, 60)
    return Vocabulary([*tokens, b""], len(tokens), split_pattern=SPLIT)


@pytest.fixture(scope="module")
def llama(vocabulary: Vocabulary) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaForCausalLM(
        LlamaConfig(vocab_size=len(vocabulary), max_position_embeddings=256, **sizes)
    ).eval()
    for parameter in model.parameters():
        parameter.data.mul_(5)
    return model


def check(found: Batch, patterns: list[str], max_new_tokens: int) -> None:
    for tokens, text, pattern in zip(found.tokens, found.texts, patterns, strict=True):
        assert re.fullmatch(pattern, text.decode()), (pattern, text)
        assert len(tokens) <= max_new_tokens
    assert found.chosen - found.replaced + found.forced == sum(map(len, found.tokens))


@pytest.mark.parametrize("limit", [18, 40])
def test_every_row_is_in_its_language_and_jumps_change_nothing(
    vocabulary: Vocabulary, llama: LlamaForCausalLM, limit: int
) -> None:
    automata = [compile(regex(pattern), vocabulary) for pattern in PATTERNS]
    prompts = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10], [11]]
    plain = generate(llama, prompts, automata, max_new_tokens=limit, jump_forward=False)
    jumped = generate(llama, prompts, automata, max_new_tokens=limit, jump_forward=True)
    check(plain, PATTERNS, limit)
    check(jumped, PATTERNS, limit)
    assert jumped.tokens == plain.tokens and plain.forced == 0 < jumped.forced and jumped.calls <= plain.calls
    for row, (prompt, automaton) in enumerate(zip(prompts, automata, strict=True)):
        alone = generate(llama, [prompt], automaton, max_new_tokens=limit)
        assert alone.tokens == [plain.tokens[row]]
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        options = {"do_sample": True, "temperature": 1.3, "top_k": 9, "top_p": 0.95, "generator": generator}
        check(generate(llama, prompts, automata, max_new_tokens=limit, **options), PATTERNS, limit)
        found = generate(llama, prompts, automata, max_new_tokens=limit, jump_forward="canonical", **options)
        check(found, PATTERNS, limit)


def test_a_forced_text_needs_no_model(vocabulary: Vocabulary) -> None:
    small = Vocabulary([b"a", b"b", b"c", b""], eos_token_id=3)

    def scores(ids: torch.Tensor) -> torch.Tensor:
        raise AssertionError("called")

    found = generate(CallbackModel(scores, 4), [[]], compile(regex("abcab"), small), max_new_tokens=6)
    assert found.tokens == [[0, 1, 2, 0, 1, 3]] and (found.calls, found.forced) == (0, 6)
    found = generate(CallbackModel(scores, 4), [[]], compile(regex("abcab"), small), max_new_tokens=5)
    assert found.tokens == [[0, 1, 2, 0, 1]]
    whole = generate(
        CallbackModel(scores, len(vocabulary)),
        [[1]],
        compile(regex(r'\{"name": "ab"\}'), vocabulary),
        max_new_tokens=20,
        jump_forward="canonical",
    )
    assert whole.texts == [b'{"name": "ab"}'] and whole.calls == 0
    assert whole.tokens[0][:-1] == byte_pair_tokenizer(vocabulary).encode(b'{"name": "ab"}')


@pytest.mark.parametrize("pattern", ["(ab|ba)*c?", "abab|b[ac]?"])
def test_sampling_has_the_distribution_of_masked_scores(pattern: str) -> None:
    small = Vocabulary([b"a", b"b", b"ab", b"c", b"ba", b""], eos_token_id=5)
    table = torch.randn(7, 6, generator=torch.Generator().manual_seed(1)) * 1.5
    model = CallbackModel(lambda ids: table[(ids * 3 + 1).sum(1) % 7], 6)
    automaton = compile(regex(pattern), small)
    expected = sequence_probabilities(automaton, model, 4)
    assert abs(sum(expected.values()) - 1) < 1e-9 and len(expected) > 3
    runs = 6000
    for jump in (True, False):
        generator = torch.Generator().manual_seed(5)
        found = generate(
            model,
            [[]] * runs,
            automaton,
            max_new_tokens=4,
            do_sample=True,
            generator=generator,
            jump_forward=jump,
        )
        counts = Counter(map(tuple, found.tokens))
        assert set(counts) <= set(expected)
        chi = sum(
            (counts[key] - runs * mass) ** 2 / (runs * mass)
            for key, mass in expected.items()
            if runs * mass > 5
        )
        freedom = sum(runs * mass > 5 for mass in expected.values()) - 1
        most = freedom * (1 - 2 / (9 * freedom) + 4.5 * (2 / (9 * freedom)) ** 0.5) ** 3
        assert chi < most, (jump, chi, freedom)


def test_certain_bytes_are_cut_as_the_tokenizer_does(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    schema = tokenfst.json_schema(SCHEMA, whitespace="compact")
    automaton = compile(schema & regex(r"[^\\\\]*"), vocabulary)  # names and values without escapes
    encode = byte_pair_tokenizer(vocabulary).encode
    plain = generate(llama, [[1, 2]], automaton, max_new_tokens=80, jump_forward=False)
    assert plain.calls == len(plain.tokens[0])
    for seed in range(6):
        generator = torch.Generator().manual_seed(seed)
        found = generate(
            llama,
            [[1, 2]],
            automaton,
            max_new_tokens=80,
            jump_forward="canonical",
            do_sample=True,
            generator=generator,
        )
        (text,), (tokens,) = found.texts, found.tokens
        assert schema.accepts(text) and set(json.loads(text)) == {"name", "kind", "ripe"}
        assert found.calls < len(tokens) and found.forced > 10
        head = encode(b'{"name":"')
        assert tokens[: len(head) - 1] == head[:-1]


def test_a_chosen_token_is_cut_anew_with_what_follows() -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), b"tr", b"true", b""]
    ranked = Vocabulary([*tokens[:257], b"ue", b"true", b""], 259, split_pattern=SPLIT)
    wanted = torch.zeros(260)
    wanted[ord("t")] = 5.0
    found = generate(
        CallbackModel(lambda ids: wanted.repeat(len(ids), 1), 260),
        [[]],
        compile(regex("true|false"), ranked),
        max_new_tokens=6,
        jump_forward="canonical",
    )
    assert found.tokens == [[258, 259]] and (found.calls, found.replaced) == (1, 1)


def test_characters_that_the_tokenizer_does_not_know(vocabulary: Vocabulary) -> None:
    """An unassigned character before a certain text: the text is cut by itself. One inside: it is left to the model."""
    unassigned = "\U00015a84"
    wanted = torch.zeros(len(vocabulary))
    model = CallbackModel(lambda ids: wanted.repeat(len(ids), 1), len(vocabulary))
    for pattern in (f"[x{unassigned}]abc", f"[xy]{unassigned}abc"):
        automaton = compile(regex(pattern), vocabulary)
        wanted.zero_()[unassigned.encode()[0]] = 1.0
        found = generate(model, [[]], automaton, max_new_tokens=12, jump_forward="canonical")
        assert re.fullmatch(pattern, found.texts[0].decode()) and found.forced > 0
        with pytest.raises(TokenizationError):
            byte_pair_tokenizer(vocabulary).encode(unassigned.encode())


def test_canonical_automata_are_followed_exactly(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    encode = byte_pair_tokenizer(vocabulary).encode
    automaton = compile(regex(PATTERNS[1]), vocabulary, tokenization="canonical")
    plain = generate(llama, [[1, 2], [3]], automaton, max_new_tokens=30, jump_forward=False)
    found = generate(llama, [[1, 2], [3]], automaton, max_new_tokens=30)
    assert found.tokens == plain.tokens and found.forced > 0
    for tokens, text in zip(found.tokens, found.texts, strict=True):
        assert tokens == [*encode(text), vocabulary.eos_token_ids[0]]
    with pytest.raises(TokenLimitError):
        generate(llama, [[1, 2]], automaton, max_new_tokens=2)


def test_encoding_is_the_tokenizers_own(vocabulary: Vocabulary) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {data: token for token, data in enumerate(vocabulary.tokens) if data}
    theirs = tiktoken.Encoding("test", pat_str=SPLIT, mergeable_ranks=ranks, special_tokens={})
    ours = byte_pair_tokenizer(vocabulary)
    rng = random.Random(0)
    for _ in range(300):
        text = "".join(rng.choices('{" name":true,fi d\n1é東  ', k=rng.randint(0, 20)))
        assert ours.encode(text.encode()) == theirs.encode_ordinary(text), text
    with pytest.raises(TokenizationError, match="no canonical tokens"):
        ours.encode(b"a\xff")


# --- choosing -----------------------------------------------------------------------------------------


def test_settings_mean_what_they_mean_in_transformers() -> None:
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    scores = torch.randn(20, 40, generator=torch.Generator().manual_seed(0)) * 2
    scores[:, ::3] = -torch.inf
    theirs = TemperatureLogitsWarper(0.7)(None, scores)
    theirs = TopPLogitsWarper(0.8)(None, TopKLogitsWarper(11)(None, theirs)).softmax(-1)
    ours = Sampling(True, 0.7, 11, 0.8).probabilities(scores)
    assert torch.allclose(ours.float(), theirs, atol=1e-6)
    greedy = Sampling().probabilities(scores)
    assert torch.equal(greedy.argmax(-1), Sampling().choose(scores)) and greedy.sum() == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature=0.0 is not positive"),
        ({"top_k": 0}, "top_k=0"),
        ({"top_p": 1.5}, "top_p=1.5"),
        ({"jump_forward": "yes"}, "jump_forward is True, False"),
        ({"max_new_tokens": 0}, "max_new_tokens=0"),
    ],
)
def test_bad_settings(vocabulary: Vocabulary, options: dict[str, object], message: str) -> None:
    model = CallbackModel(lambda ids: torch.zeros(len(ids), len(vocabulary)), len(vocabulary))
    with pytest.raises(DecodingError, match=message):
        generate(model, [[]], compile(regex("a"), vocabulary), **{"max_new_tokens": 3, **options})


def test_what_cannot_be_decoded_is_refused_before_the_model_is_called(vocabulary: Vocabulary) -> None:
    def scores(ids: torch.Tensor) -> torch.Tensor:
        raise AssertionError("called")

    model = CallbackModel(scores, len(vocabulary))
    automaton = compile(regex("q{5}"), vocabulary)
    with pytest.raises(TokenLimitError, match="least number from here is 5"):
        generate(model, [[]], automaton, max_new_tokens=4)
    with pytest.raises(VocabularyMismatchError, match="scores 5 tokens"):
        generate(CallbackModel(scores, 5), [[]], automaton, max_new_tokens=9)
    with pytest.raises(ModelError, match="no prompts"):
        generate(model, [], automaton, max_new_tokens=9)
    with pytest.raises(ModelError, match="1 constraint for 2 prompts"):
        generate(model, [[], []], [automaton], max_new_tokens=9)
    plain = Vocabulary([b"q", b""], 1)
    with pytest.raises(TokenizationError, match="is not known"):
        generate(model, [[]], compile(regex("q"), plain), max_new_tokens=9, jump_forward="canonical")
    first = Vocabulary([b" q", b"q", b""], 2, initial_tokens=[b"q", b"q", b""])
    with pytest.raises(TokenizationError, match="in a way of its own"):
        generate(
            model, [[]], compile(regex("q"), first), max_new_tokens=9, jump_forward="canonical", encode=list
        )


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("do_sample", [False, True])
def test_scores_that_leave_nothing_to_choose(vocabulary: Vocabulary, bad: float, do_sample: bool) -> None:
    scores = torch.zeros(1, len(vocabulary))
    scores[0, [ord("a"), ord("b")]] = bad
    model = CallbackModel(lambda ids: scores.expand(len(ids), -1), len(vocabulary))
    with pytest.raises(LogitsError, match="row 0"):
        generate(model, [[]], compile(regex("a|b"), vocabulary), max_new_tokens=4, do_sample=do_sample)
    found = generate(model, [[]], compile(regex("x|y"), vocabulary), max_new_tokens=4, do_sample=do_sample)
    assert found.texts[0] in (b"x", b"y")
    assert scores[0, ord("x")] == 0  # the model's own tensor is not masked
