"""llama.cpp itself, through llama-cpp-python, with a tiny random GGUF model (``make test-llama``)."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pydantic
import pytest

from tokenfst import Generator, Vocabulary, WeightedLanguage, compile, gbnf, regex
from tokenfst.errors import (
    DecodingError,
    LogitsError,
    MatcherError,
    ModelError,
    TokenLimitError,
    VocabularyMismatchError,
)

llama_cpp = pytest.importorskip(
    "llama_cpp", reason="llama.cpp has an environment of its own: make test-llama"
)
gguf = pytest.importorskip("gguf")
engine = pytest.importorskip("tokenfst.decoding.engines.llama_cpp")
samplers = pytest.importorskip("tokenfst.decoding.engines.llama_sampler")
PIECES = ["▁", "▁the", "▁a", "ab", "▁▁", "é", "12", "a", "b", "x", *"0123456789", "-", "tr", "ue", "▁true"]
WORDS = ["ab", "cd", "Ġa", "Ġthe", "12", '{"', '":', "true", "é"]


class Person(pydantic.BaseModel, extra="forbid"):
    active: bool
    age: Literal[1, 22]


def bytes_to_letters() -> list[str]:
    """The letters that stand for bytes in GPT-2's vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def write_model(path: Path, *, pieces: bool = False) -> Path:
    """A random two-layer Llama with a byte-level vocabulary, or with SentencePiece's pieces and tokens for bytes."""
    letters = bytes_to_letters()
    words = ["".join(letters[byte] for byte in word.replace("Ġ", " ").encode()) for word in WORDS]
    tokens = [*letters, *words, "<|end|>", "<|turn|>"]
    merges = [f"{word[:-1]} {word[-1]}" for word in words if len(word) == 2]
    kinds = [gguf.TokenType.NORMAL] * (len(tokens) - 2) + [gguf.TokenType.CONTROL] * 2
    if pieces:
        tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES]
        kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
        kinds += [gguf.TokenType.NORMAL] * len(PIECES)
    writer = gguf.GGUFWriter(str(path), "llama")
    width, heads, head = 64, 2, 32
    for name, value in {
        "context_length": 256, "embedding_length": width, "block_count": 2, "feed_forward_length": 128,
        "head_count": heads, "head_count_kv": heads, "key_length": head, "value_length": head,
        "rope_dimension_count": head, "vocab_size": len(tokens),
    }.items():  # fmt: skip
        getattr(writer, f"add_{name}")(value)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    if pieces:
        writer.add_tokenizer_model("llama")
        writer.add_token_scores([-float(place) for place in range(len(tokens))])
        writer.add_eos_token_id(2)
        writer.add_bos_token_id(1)
    else:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
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
    with pytest.raises(TokenLimitError, match=str(least)):
        generator("record: ", Person, max_new_tokens=least - 1)
    grammar = gbnf('root ::= "(" root ")" | [a-d]{9}')
    stream = generator.stream("x", grammar, max_new_tokens=20)
    pieces = list(stream)
    assert "".join(pieces) == stream.result() and grammar.accepts(stream.text) and len(pieces) > 1
    assert all(isinstance(each, Person) for each in generator.batch(["a", "b"], Person, max_new_tokens=50))
    chat = [{"role": "user", "content": "hello"}]
    assert generator(chat, Literal["yes", "no"], max_new_tokens=20) in ("yes", "no")
    with generator.stream("x", regex("[a-z]{100}"), max_new_tokens=120) as left:
        next(left)
    assert isinstance(generator("record: ", Person, max_new_tokens=50), Person)


def test_options_of_llama_cpp(model):
    """``temperature`` and ``seed`` have the names that ``create_completion`` gives them."""
    generator = Generator(model)
    asked = {"max_new_tokens": 60, "temperature": 1.5, "top_p": 0.9, "seed": 7}
    first = generator("record: ", regex("[a-z]{20}"), **asked)
    assert first == generator("record: ", regex("[a-z]{20}"), **asked)
    assert first == generator.stream("record: ", regex("[a-z]{20}"), **asked).result()
    assert generator.batch(["record: "] * 2, regex("[a-z]{20}"), **asked) == [first, first]
    assert (
        len({generator("record: ", regex("[a-z]{20}"), **{**asked, "seed": seed}) for seed in range(4)}) > 1
    )
    del asked["seed"]
    assert len({*generator.batch(["record: "] * 4, regex("[a-z]{20}"), **asked)}) > 1
    assert generator("x", regex("[a-z]{9}"), max_new_tokens=9, temperature=0) == generator(
        "x", regex("[a-z]{9}"), max_new_tokens=9, temp=0.0
    )
    for options, message in (
        ({"stop": ["a"]}, "stop cannot be given.*top_k.*temperature and seed"),
        ({"temp": 1.0, "temperature": 1.0}, "one of them"),
    ):
        with pytest.raises(DecodingError, match=message):
            generator("x", regex("a"), **options)


def test_what_does_not_fit_is_refused(model):
    generator = Generator(model)
    with pytest.raises(ModelError, match="context has 256 tokens"):
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


@pytest.fixture(scope="module")
def of_pieces(tmp_path_factory) -> Any:
    path = write_model(tmp_path_factory.mktemp("gguf") / "pieces.gguf", pieces=True)
    return llama_cpp.Llama(str(path), n_ctx=256, n_threads=1, verbose=False, seed=1)


def test_a_vocabulary_of_sentencepiece_is_what_llama_cpp_writes(of_pieces):
    vocabulary = engine.llama_vocabulary(of_pieces)
    assert vocabulary.tokens[:3] == (b"", b"", b"") and vocabulary.eos_token_ids == (2,)
    assert list(vocabulary.tokens[3:259]) == [bytes([byte]) for byte in range(256)]
    assert vocabulary.tokens[259:] == tuple(piece.replace("▁", " ").encode() for piece in PIECES)
    for text in ("x the ab 12", "ab  é東京", "a"):
        ids = of_pieces.tokenize(text.encode(), add_bos=False)
        assert vocabulary.decode(ids).removeprefix(b" ") == text.encode()


@pytest.mark.parametrize("pattern", [r"( the| a){2,4}", "[0-9]{3}-(é|x)+", "(ab)* true"])
def test_completions_by_pieces_are_in_the_language(of_pieces, pattern):
    automaton = compile(regex(pattern), engine.llama_vocabulary(of_pieces))
    for seed in range(4):
        processor = llama_cpp.LogitsProcessorList([engine.LlamaConstraint(automaton, 14)])
        found = of_pieces.create_completion(
            "x", max_tokens=14, temperature=1.0, seed=seed, logits_processor=processor
        )
        assert re.fullmatch(pattern, found["choices"][0]["text"]), found
    assert generated(of_pieces, pattern, 14, 3)


def generated(model: Any, pattern: str, room: int, seed: int, *cuts: Any) -> list[str]:
    """Texts of one prompt by llama.cpp's own chain of samplers, without llama-cpp-python's loop: one, and one by the
    chain that was cloned when the first token was chosen.
    """
    c, vocabulary = llama_cpp, engine.llama_vocabulary(model)
    automaton = compile(regex(pattern), vocabulary)
    chain = c.llama_sampler_chain_init(c.llama_sampler_chain_default_params())
    sampler = samplers.LlamaSampler(automaton, room)
    for each in (sampler.pointer, *cuts, c.llama_sampler_init_dist(seed)):
        c.llama_sampler_chain_add(chain, each)
    prompt, texts, clone = model.tokenize(b"x"), [], None
    for _ in range(2):
        model.reset()
        model.eval(prompt)
        tokens: list[int] = []
        using = chain if clone is None else clone
        while len(tokens) < room:
            token = c.llama_sampler_sample(using, model._ctx.ctx, -1)
            if token in vocabulary.eos_token_ids:
                break
            tokens.append(token)
            model.eval([token])
            if clone is None:
                clone, first = c.llama_sampler_clone(chain), token
        assert re.fullmatch(pattern, vocabulary.decode([first, *tokens] if texts else tokens).decode())
        texts.append(vocabulary.decode(tokens).decode())
        if not texts[1:]:
            room -= 1
            model.reset()
            model.eval([*prompt, first])
            prompt = [*prompt, first]
    sampler.check()
    before = len(samplers._known)
    for each in (chain, clone):
        c.llama_sampler_free(each)
    assert len(samplers._known) == before - 2
    return texts


def test_a_sampler_of_llama_cpps_own_chains(model):
    for seed in range(4):
        generated(model, r"[0-9]{3}-[a-f]{2,6}", 12, seed)
        generated(model, r"x{3,9}", 9, seed)
    assert not samplers._known


def test_what_goes_wrong_in_a_sampler_is_told(model):
    c, vocabulary = llama_cpp, engine.llama_vocabulary(model)
    automaton = compile(regex("ab"), vocabulary)
    with pytest.raises(TokenLimitError):
        samplers.LlamaSampler(automaton, 0)
    sampler = samplers.LlamaSampler(automaton)
    array = (c.llama_token_data * 3)(
        *[c.llama_token_data(token, 1.0, 0.0) for token in (ord("z"), ord("a"), 10**6)]
    )
    candidates = c.llama_token_data_array(data=array, size=3, selected=-1, sorted=False)
    c.llama_sampler_apply(sampler.pointer, ctypes.byref(candidates))
    assert [each.logit for each in array] == [-np.inf, 1.0, -np.inf]
    c.llama_sampler_accept(sampler.pointer, ord("z"))
    with pytest.raises(LogitsError, match="not allow"):
        sampler.check()
    assert sampler.is_over()
    c.llama_sampler_reset(sampler.pointer)
    sampler.check()
    candidates.size = 1
    c.llama_sampler_apply(sampler.pointer, ctypes.byref(candidates))
    with pytest.raises(LogitsError, match="candidates"):
        sampler.check()
    assert c.llama_sampler_name(sampler.pointer) == b"tokenfst"
    c.llama_sampler_free(sampler.pointer)


@pytest.mark.parametrize("call", ["accept_token", "fill_next_token_bitmask"])
def test_no_error_of_any_kind_enters_c_code(model, call, capfd):
    """ctypes would print it and go on, and the text would be without a constraint."""
    c, vocabulary = llama_cpp, engine.llama_vocabulary(model)
    sampler = samplers.LlamaSampler(compile(regex("ab"), vocabulary))

    class Broken:
        max_tokens_left = None

        def __getattr__(self, name: str) -> Any:
            if name == call:
                raise KeyError("a defect")
            return lambda *given: name == "accept_token"

    sampler._matcher = Broken()
    sampler._matcher.is_terminated = lambda: False
    c.llama_sampler_accept(sampler.pointer, ord("a"))
    letters = (ord("a"), ord("z"), vocabulary.eos_token_ids[0])
    array = (c.llama_token_data * 3)(*[c.llama_token_data(token, 1.0, 0.0) for token in letters])
    candidates = c.llama_token_data_array(data=array, size=3, selected=-1, sorted=False)
    c.llama_sampler_apply(sampler.pointer, ctypes.byref(candidates))
    assert [each.logit for each in array] == [-np.inf, -np.inf, 1.0]
    assert sampler.is_over()
    with pytest.raises(KeyError, match="a defect"):
        sampler.check()
    c.llama_sampler_free(sampler.pointer)
    assert capfd.readouterr().err == ""


def test_scores_are_added(model):
    """With a weight that outdoes the model, the text is the likeliest one of the weighted language."""
    vocabulary = engine.llama_vocabulary(model)
    automaton = compile(regex("[a-d]{4}"), vocabulary)
    language = WeightedLanguage.alternatives({"abcd": 1, "dcba": 1000, "bbbb": 10}).normalized()
    scores = compile(language, vocabulary)

    def text(weight):
        processor = engine.LlamaConstraint(automaton, 8, scores=scores, scores_weight=weight)
        made = model.create_completion(
            "record: ",
            max_tokens=8,
            temperature=1.0,
            seed=1,
            logits_processor=llama_cpp.LogitsProcessorList([processor]),
        )
        return made["choices"][0]["text"]

    assert text(50.0) == "dcba" and text(0.0) in ("abcd", "dcba", "bbbb") and text(-50.0) == "abcd"
    generator = Generator(model)
    for given in (language, scores):
        for weight, wanted in ((50.0, "dcba"), (-50.0, "abcd")):
            options = {"scores": given, "scores_weight": weight, "max_new_tokens": 8}
            assert generator("record: ", regex("[a-d]{4}"), **options) == wanted
            assert generator.stream("record: ", regex("[a-d]{4}"), **options).result() == wanted
    with pytest.raises(DecodingError, match="scores must be"):
        generator("record: ", regex("a"), max_new_tokens=8, scores="abcd")
    with pytest.raises(LogitsError, match="score"):
        engine.LlamaConstraint(compile(regex("x"), vocabulary), 8, scores=scores)(
            np.array([1]), np.zeros(len(vocabulary), np.float32)
        )


def test_scores_in_a_chain_of_samplers(model):
    c, vocabulary = llama_cpp, engine.llama_vocabulary(model)
    automaton = compile(regex("[a-d]{4}"), vocabulary)
    scores = compile(
        WeightedLanguage.alternatives({"abcd": 1, "dcba": 1000, "bbbb": 10}).normalized(), vocabulary
    )

    def text(sampler: Any) -> str:
        tokens: list[int] = []
        model.reset()
        model.eval(model.tokenize(b"x"))
        while len(tokens) < 8:
            token = c.llama_sampler_sample(sampler, model._ctx.ctx, -1)
            if token in vocabulary.eos_token_ids:
                break
            tokens.append(token)
            model.eval([token])
        return str(vocabulary.decode(tokens), "utf-8")

    for weight, wanted in ((50.0, "dcba"), (-50.0, "abcd")):
        sampler = samplers.LlamaSampler(automaton, 8, scores=scores, scores_weight=weight)
        chain = c.llama_sampler_chain_init(c.llama_sampler_chain_default_params())
        for each in (sampler.pointer, c.llama_sampler_init_dist(1)):
            c.llama_sampler_chain_add(chain, each)
        clone = c.llama_sampler_clone(chain)
        assert text(chain) == wanted
        c.llama_sampler_reset(chain)
        assert text(chain) == wanted and text(clone) == wanted
        sampler.check()
        for each in (chain, clone):
            c.llama_sampler_free(each)
    with pytest.raises(VocabularyMismatchError, match="another vocabulary"):
        samplers.LlamaSampler(
            automaton, scores=compile(WeightedLanguage.of(regex("a")), Vocabulary([b"a", b""], 1))
        )
    with pytest.raises(ValueError, match="finite"):
        samplers.LlamaSampler(automaton, scores=scores, scores_weight=float("inf"))
    nothing = samplers.LlamaSampler(compile(regex("x"), vocabulary), scores=scores)
    array = (c.llama_token_data * 1)(c.llama_token_data(ord("x"), 1.0, 0.0))
    candidates = c.llama_token_data_array(data=array, size=1, selected=-1, sorted=False)
    c.llama_sampler_apply(nothing.pointer, ctypes.byref(candidates))
    with pytest.raises(LogitsError, match="has a score"):
        nothing.check()
    c.llama_sampler_free(nothing.pointer)
