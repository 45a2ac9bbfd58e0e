"""llama.cpp itself, through llama-cpp-python, with a tiny random GGUF model (``make test-llama``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pydantic
import pytest

from tokenfst import Generator, Vocabulary, compile, gbnf, regex
from tokenfst.errors import DecodingError, MatcherError, ModelError, TokenBudgetError, VocabularyMismatchError

llama_cpp = pytest.importorskip(
    "llama_cpp", reason="llama.cpp has an environment of its own: make test-llama"
)
gguf = pytest.importorskip("gguf")
engine = pytest.importorskip("tokenfst.decoding.engines.llama_cpp")
WORDS = ["ab", "cd", "Ġa", "Ġthe", "12", '{"', '":', "true", "é"]


class Person(pydantic.BaseModel, extra="forbid"):
    active: bool
    age: Literal[1, 22]


def bytes_to_letters() -> list[str]:
    """The letters that stand for bytes in GPT-2's vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def write_model(path: Path) -> Path:
    """A random two-layer Llama with a byte-level vocabulary."""
    letters = bytes_to_letters()
    words = ["".join(letters[byte] for byte in word.replace("Ġ", " ").encode()) for word in WORDS]
    tokens = [*letters, *words, "<|end|>", "<|turn|>"]
    merges = [f"{word[:-1]} {word[-1]}" for word in words if len(word) == 2]
    kinds = [gguf.TokenType.NORMAL] * (len(tokens) - 2) + [gguf.TokenType.CONTROL] * 2
    writer = gguf.GGUFWriter(str(path), "llama")
    width, heads, head = 64, 2, 32
    for name, value in {
        "context_length": 256, "embedding_length": width, "block_count": 2, "feed_forward_length": 128,
        "head_count": heads, "head_count_kv": heads, "key_length": head, "value_length": head,
        "rope_dimension_count": head, "vocab_size": len(tokens),
    }.items():  # fmt: skip
        getattr(writer, f"add_{name}")(value)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(len(tokens) - 2)
    writer.add_bos_token_id(len(tokens) - 2)
    writer.add_eot_token_id(len(tokens) - 1)
    writer.add_chat_template("{% for m in messages %}{{m['role']}}: {{m['content']}} {% endfor %}")
    draw = np.random.default_rng(0)

    def tensor(name: str, *shape: int) -> None:
        made = np.ones(shape) if "norm" in name else draw.normal(0, 0.2, shape)
        writer.add_tensor(name, made.astype(np.float32))

    tensor("token_embd.weight", len(tokens), width)
    tensor("output.weight", len(tokens), width)
    tensor("output_norm.weight", width)
    for layer in range(2):
        for name, shape in {
            "attn_norm": (width,), "ffn_norm": (width,), "attn_q": (width, width), "attn_k": (width, width),
            "attn_v": (width, width), "attn_output": (width, width), "ffn_gate": (128, width),
            "ffn_up": (128, width), "ffn_down": (width, 128),
        }.items():  # fmt: skip
            tensor(f"blk.{layer}.{name}.weight", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Any:
    path = write_model(tmp_path_factory.mktemp("gguf") / "tiny.gguf")
    return llama_cpp.Llama(str(path), n_ctx=256, n_threads=1, verbose=False, seed=1)


def test_the_vocabulary_is_what_llama_cpp_writes(model):
    vocabulary = engine.llama_vocabulary(model)
    assert list(vocabulary.tokens[:256]) == [bytes([byte]) for byte in range(256)]
    assert vocabulary.tokens[256:-2] == tuple(word.replace("Ġ", " ").encode() for word in WORDS)
    assert vocabulary.eos_token_ids == (len(vocabulary) - 2, len(vocabulary) - 1)
    for text in ("the ab 12", "Zürich 東京", '{"a": true}'):
        ids = model.tokenize(text.encode(), add_bos=False)
        assert vocabulary.decode(ids) == text.encode() == model.detokenize(ids)


@pytest.mark.parametrize("pattern", [r"[0-9]{3}-[a-f]{2,6}", "(the|é)( a)*12", "x{3,9}"])
def test_completions_are_in_the_language(model, pattern):
    automaton = compile(regex(pattern), engine.llama_vocabulary(model))
    for seed in range(4):
        found = model.create_completion(
            "record: ",
            max_tokens=14,
            temperature=1.0,
            seed=seed,
            logits_processor=llama_cpp.LogitsProcessorList([engine.LlamaConstraint(automaton, 14)]),
        )
        assert re.fullmatch(pattern, found["choices"][0]["text"]), found


def test_the_generator(model):
    generator = Generator(model)
    least = generator.compile(Person).distance()
    for room in (least, least + 1, 60):
        assert isinstance(generator("record: ", Person, max_new_tokens=room, temp=1.0), Person)
    with pytest.raises(TokenBudgetError, match=str(least)):
        generator("record: ", Person, max_new_tokens=least - 1)
    grammar = gbnf('root ::= "(" root ")" | [a-d]+')
    stream = generator.stream("x", grammar, max_new_tokens=20)
    pieces = list(stream)
    assert "".join(pieces) == stream.result() and grammar.accepts(stream.text) and len(pieces) > 1
    assert all(isinstance(each, Person) for each in generator.batch(["a", "b"], Person, max_new_tokens=50))
    chat = [{"role": "user", "content": "hello"}]
    assert generator(chat, Literal["yes", "no"], max_new_tokens=20) in ("yes", "no")
    with generator.stream("x", regex("[a-z]{100}"), max_new_tokens=120) as left:
        next(left)
    assert isinstance(generator("record: ", Person, max_new_tokens=50), Person)


def test_what_does_not_fit_is_refused(model):
    generator = Generator(model)
    with pytest.raises(ModelError, match="room"):
        generator("x", Person, max_new_tokens=300)
    with pytest.raises(DecodingError, match="grammar"):
        generator("x", Person, max_new_tokens=50, grammar=None)
    with pytest.raises(ModelError, match=r"llama_cpp\.Llama"):
        engine.llama_vocabulary("model.gguf")
    processor = engine.LlamaConstraint(compile(regex("a+"), generator.vocabulary))
    scores = np.zeros(len(generator.vocabulary), np.float32)
    processor(np.array([1, 2]), scores)
    with pytest.raises(MatcherError, match="one completion"):
        processor(np.array([1, 2]), scores)
    with pytest.raises(VocabularyMismatchError, match="llama_vocabulary"):
        engine.LlamaConstraint(compile(regex("a+"), Vocabulary([b"a"] * 999, 5)))(np.array([1]), scores)
