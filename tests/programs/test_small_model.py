"""The small model in examples/: it loads, its vocabulary is its tokenizer's, and it knows something."""

from __future__ import annotations

import json
import random
import re

import corpus
import pytest
import safetensors
import small_model
import torch

import tokenfst
from tokenfst import ConstraintLogitsProcessor, Vocabulary

SENTENCES = ["The quick brown fox.", 'Zürich isn\'t 東京, "is it"?\n\n\tNo 👍', "He said: {}"]


pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.fixture(scope="module")
def loaded() -> small_model.SmallModel:
    return small_model.load()


@pytest.fixture(scope="module")
def held_out() -> list[str]:
    if not corpus.COMMONGEN.exists():
        pytest.skip("shared/commongen is not beside the repository")
    return [text for item in corpus.commongen("held out") for text in item.sentences]


def calls(count: int) -> list[tuple[str, str]]:
    draw = random.Random(7)
    return [corpus.tool_call(draw, SENTENCES) for _ in range(count)]


def mean_loss(loaded: small_model.SmallModel, texts: list[str]) -> float:
    """Nats a token, of whole texts with their end, each on its own."""
    losses, count = 0.0, 0
    with torch.no_grad():
        for text in texts:
            ids = torch.tensor([[*loaded.tokenizer(text).input_ids, loaded.tokenizer.eos_token_id]])
            losses += float(loaded.model(input_ids=ids, labels=ids).loss) * (ids.shape[1] - 1)
            count += ids.shape[1] - 1
    return losses / count


# --- files --------------------------------------------------------------------------------------------


def test_the_files_are_small_and_name_no_machine() -> None:
    names = {path.name for path in small_model.FOLDER.iterdir()}
    wanted = {"README.md", "config.json", "loss.png", "model.safetensors", "tokenizer.json"}
    assert names == wanted | {"tokenizer_config.json", "training.json"}
    assert sum(path.stat().st_size for path in small_model.FOLDER.iterdir()) < 8e6
    for path in small_model.FOLDER.iterdir():
        if path.suffix in {".json", ".md"}:
            assert not re.search(r"/(home|tmp|usr|root|work|opt)/", path.read_text()), path.name


def test_weights_are_halves_and_widen_exactly(loaded: small_model.SmallModel) -> None:
    weights = dict(loaded.model.named_parameters())
    with safetensors.safe_open(small_model.FOLDER / "model.safetensors", "pt") as file:
        assert set(file.keys()) == set(weights)
        for name in file.keys():  # noqa: SIM118 - not a mapping
            stored = file.get_tensor(name)
            assert stored.dtype == torch.float16 and weights[name].dtype == torch.float32
            assert torch.equal(weights[name].to(torch.float16), stored)
            assert torch.equal(stored.to(torch.float32), weights[name])
    assert loaded.model.lm_head.weight is loaded.model.model.embed_tokens.weight
    assert loaded.model.num_parameters() < 4e6


def test_the_record_of_the_training_says_what_is_needed() -> None:
    record = json.loads((small_model.FOLDER / "training.json").read_text())
    assert set(record["packages read"]) == set(corpus.PACKAGES)
    assert {"torch", "transformers", "tokenizers", "safetensors"} == set(record["versions"])
    last = record["history"][-1]
    assert last["step"] == record["steps"] and last["train"] < record["history"][0]["train"]


# --- vocabulary ---------------------------------------------------------------------------------------


def test_vocabulary_and_tokenizer_agree(loaded: small_model.SmallModel, held_out: list[str]) -> None:
    texts = [*SENTENCES, *held_out[::7], *(f"{prompt} {call}" for prompt, call in calls(50))]
    for text in texts:
        ids = loaded.tokenizer(text).input_ids
        assert ids[0] == loaded.tokenizer.eos_token_id
        assert loaded.vocabulary.decode(ids).decode() == text
        assert loaded.tokenizer.decode(ids, skip_special_tokens=True) == text


def test_canonical_tokenizations_are_the_tokenizers(
    loaded: small_model.SmallModel, held_out: list[str]
) -> None:
    anything = tokenfst.compile(tokenfst.regex(".*", re.DOTALL), loaded.vocabulary, tokenization="canonical")
    for text in [*SENTENCES, *held_out[::20], *(call for _, call in calls(20))]:
        matcher = anything.matcher()
        assert matcher.accept_tokens(loaded.tokenizer(text).input_ids[1:]) and matcher.is_accepting(), text


def test_other_tools_open_the_folder(loaded: small_model.SmallModel) -> None:
    by_path = tokenfst.load_vocabulary(f"hf:{small_model.FOLDER}")
    assert by_path.tokens == loaded.vocabulary.tokens
    assert by_path.eos_token_ids == loaded.vocabulary.eos_token_ids == (len(by_path) - 1,)
    assert isinstance(by_path, Vocabulary) and len(by_path) == loaded.model.config.vocab_size


# --- what is held out ---------------------------------------------------------------------------------


def test_parts_of_commongen_share_no_concept_set(held_out: list[str]) -> None:
    parts = {part: corpus.commongen(part) for part in ("train", "choose", "held out")}
    sets = {part: {frozenset(item.concepts) for item in items} for part, items in parts.items()}
    assert not (sets["train"] | sets["choose"]) & sets["held out"] and not sets["train"] & sets["choose"]
    assert 0.45 < len(parts["held out"]) / sum(map(len, parts.values())) < 0.55
    assert corpus.part_of(("dog", "throw")) == corpus.part_of(("throw", "dog"))


def test_documents_of_a_sentence() -> None:
    item = corpus.ConceptSet(("dog", "throw", "catch"), ("A man throws it and his dogs catch a frisbee.",))
    assert corpus.concepts_of(item.sentences[0], item.concepts, random.Random(0)) == ["throw", "dog", "catch"]
    for seed in range(40):
        [document] = corpus.sentence_documents([item], random.Random(seed))
        first, second = document.split("\n")
        assert second == f"sentence: {item.sentences[0]}"
        if first.startswith("blanks: "):
            pattern = re.escape(first.removeprefix("blanks: ")).replace("_", r"\S+( \S+)*")
            assert re.fullmatch(pattern, item.sentences[0]), document
        else:
            concepts = first.removeprefix("concepts: ").split(", ")
            assert 2 <= len(concepts) <= 5 and set(concepts) <= {"man", "throw", "dog", "catch", "frisbee"}


def test_json_of_the_corpus_is_json() -> None:
    draw = random.Random(1)
    for _ in range(200):
        first, second = corpus.json_document(draw, SENTENCES).rsplit("\n", 1)
        kind, text = second.split(": ", 1)
        assert (kind == "call") == first.startswith("request: ") and (kind == "json") == first.startswith(
            "record: "
        )
        value = json.loads(text)
        if kind == "call":
            assert set(value) == {"name", "arguments"} and value["name"] in corpus.TOOLS
        else:
            rows = value if isinstance(value, list) else [value]
            assert all(list(row) == first.removeprefix("record: ").split(", ") for row in rows)


# --- what the model knows -----------------------------------------------------------------------------


def test_losses_on_texts_that_were_not_learned_from(
    loaded: small_model.SmallModel, held_out: list[str]
) -> None:
    """Guessing evenly is 8.03 nats a token."""
    sets = corpus.commongen("held out")[::12]
    assert mean_loss(loaded, corpus.sentence_documents(sets, random.Random(3))) < 3.43  # measured: 3.380
    assert mean_loss(loaded, [f"{prompt} {call}" for prompt, call in calls(60)]) < 0.86  # measured: 0.813


CALL = {
    "type": "object",
    "properties": {
        "name": {"enum": sorted(corpus.TOOLS)},
        "arguments": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
    },
    "required": ["name", "arguments"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("options", [{}, {"do_sample": True, "top_k": 0}, {"num_beams": 3}], ids=str)
def test_constrained_texts_are_in_the_language(loaded: small_model.SmallModel, options: dict) -> None:
    torch.manual_seed(0)
    schema = tokenfst.json_schema(CALL)
    automaton = tokenfst.compile(schema, loaded.vocabulary)
    processor = ConstraintLogitsProcessor(automaton, max_new_tokens=60)
    prompts = [prompt + " " for prompt, _ in calls(3)]
    batch = loaded.tokenizer(prompts, padding=True, return_tensors="pt")
    out = loaded.model.generate(**batch, logits_processor=[processor], max_new_tokens=60, **options)
    for row in out[:, batch.input_ids.shape[1] :].tolist():
        text = loaded.vocabulary.decode(row).decode()
        assert schema.accepts(text) and json.loads(text)["name"] in corpus.TOOLS


def test_it_answers_requests_by_itself(loaded: small_model.SmallModel) -> None:
    """Without a constraint: most texts are calls of the right tool."""
    asked = calls(24)
    batch = loaded.tokenizer([prompt for prompt, _ in asked], padding=True, return_tensors="pt")
    out = loaded.model.generate(**batch, max_new_tokens=16)
    texts = loaded.tokenizer.batch_decode(out[:, batch.input_ids.shape[1] :], skip_special_tokens=True)
    right = [
        text.startswith(" " + call[: call.index(",")]) for text, (_, call) in zip(texts, asked, strict=True)
    ]
    assert sum(right) >= 20
