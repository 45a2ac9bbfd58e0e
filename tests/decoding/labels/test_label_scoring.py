"""Probabilities of labels against each label scored by itself; and the bugs of the paper's code."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import tokenfst
from reference.tokens.byte_pairs import train
from tokenfst import Budget, Vocabulary, choices, compile, multi_choice, regex
from tokenfst.decoding.labels import trie_pass as label_pass
from tokenfst.decoding.labels.lists import label_lists, multi_label
from tokenfst.decoding.labels.scoring import LabelScores, classify, label_probabilities
from tokenfst.decoding.labels.search import top_labels
from tokenfst.decoding.models.language_model import CallbackModel, Prompts, Session, as_language_model
from tokenfst.decoding.search.jump_forward import generate
from tokenfst.errors import (
    ArgumentTypeError,
    BudgetExceeded,
    ConstraintError,
    DecodingError,
    LabelError,
    LogitsError,
    ModelError,
    TokenizationError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.segmentation.tokenizer import byte_pair_tokenizer

LABELS = ["happy", "happy-go-lucky", "sad", "sadness", "sa", "apple pie", "apple tart", "日本"]
PROMPTS = [[1, 2, 3], [4], [5, 6]]


pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    tokens = train(" ".join(LABELS * 2).encode() + b", ; and also ", 40)
    return Vocabulary([*tokens, b"", b""], [len(tokens), len(tokens) + 1], split_pattern=r"\s?\S+|\s+")


@pytest.fixture(scope="module")
def llama(vocabulary: Vocabulary) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=len(vocabulary) + 5, max_position_embeddings=256, **sizes)
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        parameter.data.mul_(3)
    return model


def alone(
    model: LlamaForCausalLM, prompt: Sequence[int], tokens: Sequence[int], stops: Sequence[int]
) -> float:
    """The twin: ln p of the tokens and then a stop, by one call over the whole sequence."""
    with torch.no_grad():
        scores = model(torch.tensor([[*prompt, *tokens]])).logits[0].double().log_softmax(-1)
    value = sum(float(scores[len(prompt) - 1 + k, token]) for k, token in enumerate(tokens))
    return value + (float(scores[-1, list(stops)].logsumexp(0)) if stops else 0.0)


def spellings(text: bytes, vocabulary: Vocabulary) -> list[list[int]]:
    """All token sequences of a text."""
    found: list[list[list[int]]] = [[[]]]
    for end in range(1, len(text) + 1):
        found.append(
            [
                [*path, token]
                for begin in range(end)
                for token in vocabulary.ids(text[begin:end])
                for path in found[begin]
            ]
        )
    return found[-1]


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("leading_space", ["none", "required"])
@pytest.mark.parametrize("part", [1, 3, 1024])
def test_every_label_as_if_scored_alone(
    vocabulary: Vocabulary,
    llama: LlamaForCausalLM,
    monkeypatch: pytest.MonkeyPatch,
    end: bool,
    leading_space: str,
    part: int,
) -> None:
    monkeypatch.setattr(label_pass, "_MOST_NODES", part)
    scores = label_probabilities(llama, PROMPTS, LABELS, vocabulary, end=end, leading_space=leading_space)
    encode = byte_pair_tokenizer(vocabulary).encode
    stops = vocabulary.eos_token_ids if end else ()
    space = " " if leading_space == "required" else ""
    for row, prompt in enumerate(PROMPTS):
        expected = torch.tensor(
            [alone(llama, prompt, encode((space + label).encode()), stops) for label in LABELS]
        ).double()
        assert torch.allclose(scores.joint[row], expected, atol=1e-5)
        assert torch.allclose(scores.log_probs[row], expected - expected.logsumexp(0), atol=1e-5)
        assert scores.best()[row][0][0] == LABELS[int(expected.argmax())]
    assert torch.allclose(scores.log_probs.exp().sum(1), torch.ones(3).double())
    assert classify(llama, PROMPTS, LABELS, vocabulary, end=end, leading_space=leading_space) == [
        best[0][0] for best in scores.best()
    ]


def test_all_tokenizations_are_summed(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    labels = ["sad", "sa", "happ", "日"]
    scores = label_probabilities(llama, PROMPTS[:2], labels, vocabulary, tokenization="all")
    for row, prompt in enumerate(PROMPTS[:2]):
        for column, label in enumerate(labels):
            ways = spellings(label.encode(), vocabulary)
            assert len(ways) > 1
            each = torch.tensor(
                [alone(llama, prompt, way, vocabulary.eos_token_ids) for way in ways]
            ).double()
            assert math.isclose(float(scores.joint[row, column]), float(each.logsumexp(0)), abs_tol=1e-5)
    with pytest.raises(BudgetExceeded, match="score canonical ones"):
        label_probabilities(
            llama, [[1]], ["happy-go-lucky"], vocabulary, tokenization="all", budget=Budget(positions=50)
        )


def test_a_tokenizer_that_is_given(llama: LlamaForCausalLM, vocabulary: Vocabulary) -> None:
    unknown = Vocabulary(vocabulary.tokens, vocabulary.eos_token_ids)
    encode = byte_pair_tokenizer(vocabulary).encode
    ours = label_probabilities(llama, [[1]], LABELS, unknown, encode=encode)
    assert torch.equal(ours.joint, label_probabilities(llama, [[1]], LABELS, vocabulary).joint)
    with pytest.raises(TokenizationError, match="is not known"):
        label_probabilities(llama, [[1]], LABELS, unknown)
    greedy = label_probabilities(llama, [[1]], LABELS, unknown, encode=unknown.encode_greedy)
    assert bool(greedy.joint.isfinite().all())


def test_models_that_see_no_trees(llama: LlamaForCausalLM, vocabulary: Vocabulary) -> None:
    class Blind:
        width, device = len(vocabulary), torch.device("cpu")

        def start(self, prompts: object) -> object:
            inner = tokenfst.decoding.models.language_model.as_language_model(llama).start(prompts)
            return type(
                "Session",
                (),
                {
                    "logits": property(lambda self: inner.logits),
                    "extend": lambda self, *arguments: inner.extend(*arguments),
                    "rewind": lambda self, count: inner.rewind(count),
                },
            )()

    ours = label_probabilities(Blind(), PROMPTS, LABELS, vocabulary)
    expected = label_probabilities(llama, PROMPTS, LABELS, vocabulary)
    assert torch.allclose(ours.joint, expected.joint, atol=1e-5)


# --- the best of many ---------------------------------------------------------------------------------


@pytest.mark.parametrize("beams", [1, 4, 64])
@pytest.mark.parametrize("end", [True, False])
def test_the_best_labels_are_the_best(
    vocabulary: Vocabulary, llama: LlamaForCausalLM, beams: int, end: bool
) -> None:
    rng = random.Random(0)
    labels = sorted(
        {
            "".join(rng.choices(["sa", "d", "hap", "py", " ", "p", "ie"], k=rng.randint(1, 4)))
            for _ in range(90)
        }
    )
    labels = [label for label in labels if label.strip() == label]
    scores = label_probabilities(llama, [[1, 2]], labels, vocabulary, end=end)
    expected = scores.joint[0].topk(7)
    found = top_labels(llama, [1, 2], labels, vocabulary, 7, beams=beams, end=end)
    assert [label for label, _ in found] == [labels[place] for place in expected.indices]
    assert torch.allclose(torch.tensor([value for _, value in found]).double(), expected.values, atol=1e-5)
    spaced = top_labels(llama, [1, 2], ["sad", "sa"], vocabulary, 5, leading_space="required")
    assert {label for label, _ in spaced} == {"sad", "sa"}


def test_the_best_by_any_tokenization(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    labels = ["sad", "sa", "happ"]
    best = {
        label: max(
            alone(llama, [1], way, vocabulary.eos_token_ids) for way in spellings(label.encode(), vocabulary)
        )
        for label in labels
    }
    found = top_labels(llama, [1], labels, vocabulary, 3, tokenization="all")
    assert [label for label, _ in found] == sorted(labels, key=lambda label: -best[label])
    for label, value in found:
        assert math.isclose(value, best[label], abs_tol=1e-5)


# --- several labels -----------------------------------------------------------------------------------


def test_several_labels_step_by_step(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    labels = ["happy", "sad", "sadness"]
    encode = byte_pair_tokenizer(vocabulary).encode
    ends = list(vocabulary.eos_token_ids)
    for prompt in PROMPTS:
        found = multi_label(llama, prompt, labels, vocabulary, threshold=0.0)
        assert sorted(label for label, _ in found) == labels
        context: list[int] = list(prompt)
        for step, (label, share) in enumerate(found):
            left = [each for each in labels if each not in [name for name, _ in found[:step]]]
            ways = {each: encode(((", " if step else "") + each).encode()) for each in left}
            stops = {
                each: [*ends, *{encode(f", {other}".encode())[0] for other in left if other != each}]
                for each in left
            }
            weight = {each: math.exp(alone(llama, context, way, stops[each])) for each, way in ways.items()}
            stop = math.exp(alone(llama, context, [], ends)) if step else 0.0
            assert label == max(weight, key=lambda each: weight[each])
            assert math.isclose(share, weight[label] / (sum(weight.values()) + stop), abs_tol=1e-5)
            context += ways[label]
        high = max(share for _, share in found[1:]) + 1e-3
        assert multi_label(llama, prompt, labels, vocabulary, threshold=high) == found[:1]
        assert len(multi_label(llama, prompt, labels, vocabulary, threshold=1.0, min=2, max=2)) == 2
        assert multi_label(llama, prompt, labels, vocabulary, threshold=0.0, max=9) == found
        assert multi_label(llama, prompt, labels, vocabulary, threshold=1.0, min=0) == []


def every_list(
    llama: LlamaForCausalLM,
    vocabulary: Vocabulary,
    prompt: list[int],
    labels: list[str],
    least: int,
    most: int,
) -> dict[tuple[str, ...], float]:
    """The twin: the probability of each list, one forward pass a label and place."""
    encode = byte_pair_tokenizer(vocabulary).encode
    ends = list(vocabulary.eos_token_ids)
    found = {}
    pending: list[tuple[tuple[str, ...], list[int], float]] = [((), list(prompt), 1.0)]
    for used, context, share in pending:  # grows meanwhile
        left = [each for each in labels if each not in used]
        if not left or len(used) == most:
            found[used] = share
            continue
        ways = {each: encode(((", " if used else "") + each).encode()) for each in left}
        weight = {}
        for each, way in ways.items():
            more = {encode(f", {other}".encode())[0] for other in left if other != each}
            stops = [
                *(ends if len(used) + 1 >= least else ()),
                *(more if len(used) + 1 < most else ()),
            ]
            weight[each] = math.exp(alone(llama, context, way, stops))
        stop = math.exp(alone(llama, context, [], ends)) if len(used) >= least else 0.0
        total = sum(weight.values()) + stop
        if len(used) >= least:
            found[used] = share * stop / total
        pending += [((*used, each), context + ways[each], share * weight[each] / total) for each in left]
    return found


@pytest.mark.parametrize(("least", "most"), [(1, None), (0, 2), (2, 2)])
def test_lists_of_labels_are_those_of_the_enumeration(
    vocabulary: Vocabulary, llama: LlamaForCausalLM, least: int, most: int | None
) -> None:
    labels = ["happy", "sad", "sadness"]
    for prompt in PROMPTS[:2]:
        twin = every_list(llama, vocabulary, prompt, labels, least, most or 3)
        found = label_lists(llama, prompt, labels, vocabulary, beams=99, min=least, max=most)
        assert math.isclose(found.covered, 1, abs_tol=1e-5)
        assert {labels for labels, _ in found.lists} == twin.keys()
        for each, share in found.lists:
            assert math.isclose(share, twin[each], abs_tol=1e-5)
        shares = [share for _, share in found.lists]
        assert shares == sorted(shares, reverse=True)
        for each, share in found.sets():
            assert math.isclose(share, sum(p for one, p in twin.items() if set(one) == each), abs_tol=1e-5)
        for label, share in found.marginals().items():
            assert math.isclose(share, sum(p for one, p in twin.items() if label in one), abs_tol=1e-5)
        few = label_lists(llama, prompt, labels, vocabulary, beams=2, min=least, max=most)
        assert len(few.lists) <= 2 and few.covered <= found.covered
        assert all(math.isclose(share, twin[each], abs_tol=1e-5) for each, share in few.lists)
        # One beam of as many labels as must be is what multi_label finds.
        if least == most:
            (one,) = label_lists(llama, prompt, labels, vocabulary, beams=1, min=least, max=most).lists
            greedy = multi_label(llama, prompt, labels, vocabulary, threshold=1.0, min=least, max=most)
            assert list(one[0]) == [label for label, _ in greedy]
            assert math.isclose(one[1], math.prod(share for _, share in greedy), abs_tol=1e-6)


def test_lists_by_models_that_see_no_trees(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    """Prompts one by one, a row for each path: the same."""
    labels = ["happy", "sad", "sadness"]

    class Rows:
        """The model without its trees."""

        width, device = llama.config.vocab_size, llama.device

        def start(self, prompts: Prompts) -> Session:
            session = as_language_model(llama).start(prompts)
            return Plain(session)

    class Plain:
        def __init__(self, session: Session) -> None:
            self._session = session
            self.extend, self.rewind = session.extend, session.rewind

        @property
        def logits(self) -> torch.Tensor:
            return self._session.logits

    ours = label_lists(Rows(), [1, 2], labels, vocabulary, beams=99)
    seen = label_lists(llama, [1, 2], labels, vocabulary, beams=99)
    assert [each for each, _ in ours.lists] == [each for each, _ in seen.lists]
    assert all(math.isclose(a[1], b[1], abs_tol=1e-5) for a, b in zip(ours.lists, seen.lists, strict=True))


# --- the bugs of the paper's code ---------------------------------------------------------------------


def test_no_repeat_is_about_labels_not_first_tokens(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    labels = ["apple pie", "apple tart"]
    encode = byte_pair_tokenizer(vocabulary).encode
    assert encode(b"apple pie")[0] == encode(b"apple tart")[0]
    found = multi_label(llama, [1, 2], labels, vocabulary, threshold=0.0)
    assert sorted(label for label, _ in found) == labels
    again = compile(multi_choice(labels, ", ", min=2), vocabulary)
    for text in generate(llama, PROMPTS, again, max_new_tokens=30).texts:
        assert sorted(text.decode().split(", ")) == labels


@pytest.mark.parametrize("separator", [" and also ", "; "])
def test_a_separator_of_several_tokens(
    vocabulary: Vocabulary, llama: LlamaForCausalLM, separator: str
) -> None:
    labels = ["sad", "happy", "sa"]
    language = multi_choice(labels, separator, min=2)
    found = multi_label(llama, [3], labels, vocabulary, separator=separator, threshold=0.0, min=2)
    assert language.accepts(separator.join(label for label, _ in found))
    for text in generate(llama, PROMPTS, compile(language, vocabulary), max_new_tokens=40).texts:
        assert language.accepts(text) and not text.decode().endswith(separator)


def test_no_separator_trails_when_labels_run_out(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    automaton = compile(multi_choice(["sad", "happy"], ", "), vocabulary)
    favoured = CallbackModel(
        lambda ids: torch.zeros(len(ids), len(vocabulary)).index_fill_(
            1, torch.tensor([ord(","), ord(" ")]), 9.0
        ),
        len(vocabulary),
    )
    found = generate(favoured, [[]], automaton, max_new_tokens=30)
    assert sorted(found.texts[0].decode().split(", ")) == ["happy", "sad"]


def test_every_row_of_a_batch_is_constrained(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    automaton = compile(choices(LABELS), vocabulary)
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        found = generate(llama, PROMPTS, automaton, max_new_tokens=16, do_sample=True, generator=generator)
        assert all(text.decode() in LABELS for text in found.texts)
    batch = label_probabilities(llama, PROMPTS, LABELS, vocabulary)
    for row, prompt in enumerate(PROMPTS):
        single = label_probabilities(llama, [prompt], LABELS, vocabulary)
        assert torch.allclose(batch.joint[row], single.joint[0], atol=1e-5)


def test_a_token_limit_never_cuts_a_label(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    automaton = compile(choices(LABELS), vocabulary)
    for limit in range(automaton.distance(), 9):
        for text in generate(llama, PROMPTS, automaton, max_new_tokens=limit).texts:
            assert text.decode() in LABELS


def test_a_leading_space_is_kept(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    with pytest.raises(TokenizationError, match="' sad' as tokens that spell b'sad'"):
        label_probabilities(
            llama,
            [[1]],
            ["sad"],
            vocabulary,
            leading_space="required",
            encode=lambda text: byte_pair_tokenizer(vocabulary).encode(text.strip()),
        )
    plain, spaced = (
        label_probabilities(llama, [[1]], ["sad", "sa"], vocabulary, leading_space=which)
        for which in ("none", "required")
    )
    assert not torch.allclose(plain.joint, spaced.joint)


# --- bad input ----------------------------------------------------------------------------------------


def test_bad_input(vocabulary: Vocabulary, llama: LlamaForCausalLM) -> None:
    def run(labels: Sequence[str] = ("a", "b"), **options: object) -> LabelScores:
        return label_probabilities(llama, [[1]], labels, vocabulary, **options)

    for labels in ([], ["a", "a"], ["a", ""], "ab"):
        with pytest.raises(ConstraintError):
            run(labels)
    with pytest.raises(ConstraintError, match='tokenization is "canonical" or "all"'):
        run(tokenization="some")
    with pytest.raises(ConstraintError, match="leading_space is"):
        top_labels(llama, [1], ["a"], vocabulary, 1, leading_space="optional")
    with pytest.raises(ModelError, match="no prompts"):
        label_probabilities(llama, [], ["a"], vocabulary)
    with pytest.raises(ModelError, match="at least one token in each prompt"):
        label_probabilities(llama, [[]], ["a"], vocabulary)
    narrow = CallbackModel(lambda ids: torch.zeros(len(ids), 3), 3)
    with pytest.raises(VocabularyMismatchError, match="scores 3 tokens"):
        label_probabilities(narrow, [[1]], ["a"], vocabulary)
    with pytest.raises(LabelError, match="holds the separator"):
        multi_label(llama, [1], ["a, b"], vocabulary)
    with pytest.raises(DecodingError, match="beams=0"):
        label_lists(llama, [1], ["a"], vocabulary, beams=0)
    with pytest.raises(DecodingError, match="is not a probability"):
        multi_label(llama, [1], ["a"], vocabulary, threshold=2)
    with pytest.raises(DecodingError, match="1 or more"):
        top_labels(llama, [1], ["a"], vocabulary, 0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_scores_that_are_no_distribution(vocabulary: Vocabulary, bad: float) -> None:
    broken = CallbackModel(lambda ids: torch.full((len(ids), len(vocabulary)), bad), len(vocabulary))
    with pytest.raises(LogitsError):
        label_probabilities(broken, [[1]], LABELS, vocabulary)
    with pytest.raises(LogitsError):
        top_labels(broken, [1], LABELS, vocabulary, 1)
    scores = torch.zeros(1, len(vocabulary))
    scores[0, : len(vocabulary) - 2] = -torch.inf
    ends = CallbackModel(lambda ids: scores.expand(len(ids), -1), len(vocabulary))
    with pytest.raises(LogitsError, match="none of the labels"):
        label_probabilities(ends, [[1]], LABELS, vocabulary)
    assert top_labels(ends, [1], LABELS, vocabulary, 3) == []


@pytest.mark.parametrize(
    "call",
    [label_probabilities, partial(top_labels, count=2), multi_label, label_lists],
    ids=["label_probabilities", "top_labels", "multi_label", "label_lists"],
)
def test_labels_are_texts(vocabulary: Vocabulary, llama: LlamaForCausalLM, call: Any) -> None:
    prompt = [[1]] if call is label_probabilities else [1]
    with pytest.raises(ArgumentTypeError, match=r"labels\[1\] must be text, not b'b'"):
        call(llama, prompt, ["a", b"b"], vocabulary)
    with pytest.raises(ArgumentTypeError, match="labels must be several texts, not a Language"):
        call(llama, prompt, regex("a+"), vocabulary)
    assert str(call(llama, prompt, iter("ab"), vocabulary)) == str(
        call(llama, prompt, ["a", "b"], vocabulary)
    )
