"""Hugging Face adapters: every kind trained small, then thousands of sequences against its own decode."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from reference.tokens.detokenize import CORPUS, by_byte_runs, check, is_text, random_sequences
from tokenfst.errors import UnknownTokenizerError, VocabularyError
from tokenfst.tokenizers.adapters.huggingface import from_huggingface, from_specification
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

SPECIAL = ["<unk>", "<s>", "</s>", "<pad>"]


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def byte_fallback(strip: int) -> Tokenizer:
    """As Llama 2's (``strip`` 1) and Gemma's (0)."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps + ([decoders.Strip(" ", strip, 0)] if strip else []))
    byte_pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=800, special_tokens=SPECIAL + byte_pieces, show_progress=False)
    tokenizer.train_from_iterator([text.replace(" ", "▁") for text in CORPUS], trainer)
    document = json.loads(tokenizer.to_str())
    # The trainer knows no plain byte pieces: they were trained as special tokens, and are not in real files.
    document["added_tokens"] = [entry for entry in document["added_tokens"] if entry["content"] in SPECIAL]
    return Tokenizer.from_str(json.dumps(document))


def unigram(scheme: str) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    trainer = trainers.UnigramTrainer(
        vocab_size=400, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def wordpiece(prefix: str, cleanup: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=prefix, cleanup=cleanup)
    trainer = trainers.WordPieceTrainer(
        vocab_size=500, special_tokens=SPECIAL, continuing_subword_prefix=prefix, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_tokens(["n't", "do not", "'s", "' ", prefix, f"{prefix}do not", "?"])
    return tokenizer


def word_level() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(
        CORPUS, trainers.WordLevelTrainer(special_tokens=SPECIAL, show_progress=False)
    )
    return tokenizer


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "byte-level BPE": byte_level,
    "byte-fallback BPE, leading space stripped": functools.partial(byte_fallback, 1),
    "byte-fallback BPE": functools.partial(byte_fallback, 0),
    "Unigram, Metaspace always": functools.partial(unigram, "always"),
    "Unigram, Metaspace first": functools.partial(unigram, "first"),
    "Unigram, Metaspace never": functools.partial(unigram, "never"),
    "WordPiece with clean-up": functools.partial(wordpiece, "##", True),
    "WordPiece": functools.partial(wordpiece, "~", False),
    "WordLevel without a decoder": word_level,
}

ADDED = [
    "<tool>",
    "Ġ",
    " two words ",
    "▁",
    "▁▁",
    "a▁b",
    "<0x20>",
    "<0x41>",
    "naïve",
    "日本",
    "\n",
    ".",
    " .",
    "##ing",
]


@functools.cache
def trained(kind: str) -> Tokenizer:
    tokenizer = KINDS[kind]()
    tokenizer.add_tokens([AddedToken(content, normalized=False) for content in ADDED])
    tokenizer.add_special_tokens([AddedToken("<|special later|>", special=True)])
    return tokenizer


def replacing(
    kind: str, tokenizer: Tokenizer, vocabulary: Vocabulary
) -> Callable[[Sequence[int]], str] | None:
    """How the tokenizer shows bytes that are not UTF-8 (``None``: as ``from_utf8_lossy``).

    ByteFallback replaces every byte of a run of byte tokens if the run is not valid as a whole; skipped
    special tokens do not end a run.
    """
    if not kind.startswith("byte-fallback"):
        return None
    byte_tokens = {tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256)}
    strips = "stripped" in kind

    def shown(ids: Sequence[int]) -> str:
        kept = [token for token in ids if token not in vocabulary.special_token_ids]
        pieces = [(token in byte_tokens, vocabulary.tokens[token]) for token in kept]
        text = by_byte_runs(pieces, lambda run: run.decode() if is_text(run) else "\ufffd" * len(run))
        return text.removeprefix(" ") if strips else text

    return shown


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str) -> None:
    tokenizer = trained(kind)
    vocabulary = from_huggingface(tokenizer, eos_token_id=tokenizer.token_to_id("</s>"))
    assert len(vocabulary) == tokenizer.get_vocab_size()
    assert {"<s>", "</s>", "<|special later|>"} <= set(vocabulary.special_tokens)
    rng = random.Random(kind)
    favoured = [tokenizer.token_to_id(content) for content in (*SPECIAL, *ADDED, "<|special later|>")]
    favoured += [token for token, text in enumerate(vocabulary.tokens) if text in (b" ", b"  ", b"a", b" a")]
    favoured += [token for token, text in enumerate(vocabulary.tokens) if len(text) == 1 and text[0] > 127]
    sequences = random_sequences(vocabulary, 3000, rng, favoured)
    for text in CORPUS[:8]:
        ids = tokenizer.encode(text).ids
        sequences += [ids, [vocabulary.eos_token_ids[0], *ids, vocabulary.eos_token_ids[0]]]
        sequences += [ids[begin : begin + 5] for begin in range(0, len(ids), 3)]
    rng.shuffle(sequences)
    check(vocabulary, sequences, tokenizer.decode, replacing(kind, tokenizer, vocabulary))


@pytest.mark.parametrize(
    "kind", ["byte-level BPE", "byte-fallback BPE, leading space stripped", "WordPiece with clean-up"]
)
def test_through_transformers(kind: str) -> None:
    """The object, and the decode call that the vocabulary is exact for."""
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained(kind), eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    )
    vocabulary = Vocabulary.from_huggingface(fast)
    assert vocabulary.eos_token_ids == (fast.eos_token_id,)
    rng = random.Random(kind)
    check(
        vocabulary,
        random_sequences(vocabulary, 300, rng, fast.all_special_ids),
        lambda ids: fast.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False),
        replacing(kind, fast.backend_tokenizer, vocabulary),
        composed=5,
    )


def test_files_and_folders(tmp_path: Path) -> None:
    tokenizer = trained("byte-level BPE")
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(VocabularyError, match="pass eos_token_id"):
        from_huggingface(tmp_path / "tokenizer.json")
    expected = from_huggingface(tokenizer, eos_token_id=2)
    assert from_huggingface(str(tmp_path / "tokenizer.json"), eos_token_id=2) == expected
    with pytest.raises(VocabularyError, match="pass eos_token_id"):
        from_huggingface(tmp_path)
    (tmp_path / "config.json").write_text('{"eos_token_id": 1, "vocab_size": 9999}')
    assert from_huggingface(tmp_path).eos_token_ids == (1,)
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {"content": "</s>"}}')
    assert from_huggingface(tmp_path) == expected
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [2, 3]}')
    assert from_huggingface(tmp_path).eos_token_ids == (2, 3)
    assert from_huggingface(tmp_path, eos_token_id=2) == expected
    (tmp_path / "generation_config.json").unlink()
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<nowhere>"}')
    with pytest.raises(VocabularyError, match="no token '<nowhere>'"):
        from_huggingface(tmp_path)


def test_models_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub client is replaced: what is asked for, and what a missing file or model leads to."""
    hub = pytest.importorskip("huggingface_hub")
    trained("byte-level BPE").save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')

    asked = []

    def metadata(url: str) -> None:
        asked.append(url)
        if "some/model" not in url:
            raise OSError("no connection")

    def download(name: str, file: str) -> str:
        if not (tmp_path / file).is_file():
            raise hub.errors.EntryNotFoundError(file)
        return str(tmp_path / file)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    monkeypatch.setattr(hub, "get_hf_file_metadata", metadata)
    assert from_huggingface("some/model") == from_huggingface(tmp_path)
    assert from_huggingface("some/model", eos_token_id=1).eos_token_ids == (1,)
    with pytest.raises(VocabularyError, match=r"neither a file, nor a folder.*no connection"):
        from_huggingface("other/model")
    assert len([url for url in asked if "other/model" in url]) == 1
    count = len(asked)
    for missing in ("some.json", str(tmp_path / "missing"), f"{tmp_path}/no/model"):
        with pytest.raises(VocabularyError, match="is a path, and there is no file or folder"):
            from_huggingface(missing)
    assert len(asked) == count
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(VocabularyError, match="neither a file, nor a folder"):
        from_huggingface("some/model")


def test_padded_to_the_width_of_the_logits() -> None:
    tokenizer = trained("WordPiece")
    size = tokenizer.get_vocab_size()
    vocabulary = from_huggingface(tokenizer, size=size + 100, eos_token_id=2)
    assert len(vocabulary) == size + 100
    assert set(range(size, size + 100)) <= vocabulary.special_token_ids
    with pytest.raises(VocabularyError, match="more than the size 10"):
        from_huggingface(tokenizer, size=10, eos_token_id=2)


def test_ids_that_are_left_out_emit_nothing() -> None:
    document = {"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 5}}, "decoder": {"type": "Fuse"}}
    vocabulary = from_specification(document, eos_token_id="b")
    assert vocabulary.tokens == (b"a", b"", b"", b"", b"", b"")
    assert vocabulary.special_token_ids == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    "decoder",
    [
        decoders.CTC(),
        decoders.BPEDecoder(),
        decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 0, 1)]),
        decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 2, 0)]),
        decoders.Replace(tokenizers.Regex("a+"), "b"),
        decoders.Sequence([decoders.Fuse(), decoders.Replace("ab", "b")]),
        decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]),
        decoders.Sequence([decoders.Fuse(), decoders.WordPiece()]),
    ],
)
def test_decoders_that_no_table_expresses_are_refused(decoder: decoders.Decoder) -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    tokenizer.decoder = decoder
    last = json.loads(tokenizer.to_str())["decoder"]
    last = last["decoders"][-1] if last["type"] == "Sequence" else last
    with pytest.raises(UnknownTokenizerError, match=last["type"]):
        from_huggingface(tokenizer, eos_token_id=1)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "not a tokenizer.json"),
        ({"model": None}, "not a tokenizer.json"),
        ({"model": {"type": "Magic", "vocab": {}}}, "'Magic'"),
        ({"model": {"type": "BPE", "vocab": [["a", 0]]}}, "'BPE' and a list"),
        ({"model": {"type": "BPE", "vocab": {}}}, "has no tokens"),
        ({"model": {"vocab": {"a": 1 << 40}}}, "the limit is"),
        ({"model": {"vocab": {"a": 1 << 21}}}, "the limit is 2097151"),
        ({"model": {"vocab": {"a": -1}}}, "the limit is"),
        ({"model": {"vocab": {"a": "0"}}}, "not a tokenizer.json"),
        ({"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 1}]}, "not a tokenizer.json"),
        ({"model": {"vocab": {"a": 0}}, "decoder": {"type": "Quantum"}}, "Quantum"),
        ({"model": {"vocab": {"a": 0}}, "decoder": {}}, "known steps are ByteFallback, ByteLevel, Fuse"),
        ({"model": {"vocab": {"a": 0}}, "decoder": {"type": "Strip"}}, "not well formed"),
        (
            {"model": {"vocab": {"a": 0}}, "decoder": {"type": "Metaspace", "prepend_scheme": "x"}},
            "unknown prepend",
        ),
    ],
)
def test_broken_specifications(document: dict, words: str) -> None:
    with pytest.raises(VocabularyError, match=words):
        from_specification(document, eos_token_id=0)


def test_other_objects_are_refused() -> None:
    with pytest.raises(UnknownTokenizerError, match=r"builtins\.int carries no tokenizer\.json"):
        from_huggingface(3)
