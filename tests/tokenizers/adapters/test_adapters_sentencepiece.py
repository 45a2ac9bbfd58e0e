"""SentencePiece adapters: the models in mistral-common, and small ones with every normalizer setting."""

from __future__ import annotations

import codecs
import contextlib
import functools
import importlib.util
import io
import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import sentencepiece

from reference.tokens.detokenize import CORPUS, by_byte_runs, check, pieces_of, random_sequences
from tokenfst.errors import UnknownTokenizerError, VocabularyError
from tokenfst.tokenizers.adapters.mistral import from_mistral
from tokenfst.tokenizers.adapters.sentencepiece import from_sentencepiece
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

DATA = Path(importlib.util.find_spec("mistral_common").submodule_search_locations[0]) / "data"
REAL = [
    "tokenizer.model.v1",
    "mistral_instruct_tokenizer_240216.model.v2",
    "mistral_instruct_tokenizer_240323.model.v3",
    "mistral_instruct_tokenizer_241114.model.v7m1",
]

codecs.register_error("one byte", lambda error: ("\ufffd", error.start + 1))


def replacing(
    vocabulary: Vocabulary, processor: sentencepiece.SentencePieceProcessor
) -> Callable[[Sequence[int]], str]:
    """Each byte that begins no character is replaced, in runs of byte pieces that control pieces end."""

    def shown(ids: Sequence[int]) -> str:
        flags = [processor.is_byte(token) for token in ids]
        pieces = zip(flags, pieces_of(vocabulary, ids), strict=True)
        return by_byte_runs(pieces, lambda run: run.decode("utf-8", "one byte"))

    return shown


def sequences_for(
    vocabulary: Vocabulary, processor: sentencepiece.SentencePieceProcessor, count: int, seed: str
) -> list[list[int]]:
    rng = random.Random(seed)
    favoured = [token for token, text in enumerate(vocabulary.tokens) if not text.strip(b" ")][:40]
    favoured += [token for token, text in enumerate(vocabulary.tokens) if text == b" "] * 20
    favoured += [processor.unk_id(), *range(len(vocabulary))[:5]]
    favoured += [token for token in range(len(vocabulary)) if processor.is_byte(token)][::8]
    sequences = random_sequences(vocabulary, count, rng, favoured)
    for text in CORPUS[:8]:
        ids = processor.encode(text)
        sequences += [ids, [processor.bos_id(), *ids, processor.eos_id()]]
        sequences += [ids[begin : begin + 5] for begin in range(0, len(ids), 3)]
    rng.shuffle(sequences)
    return sequences


@pytest.mark.parametrize("file", REAL)
def test_real_models(file: str) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(DATA / file))
    vocabulary = from_mistral(file)
    assert vocabulary == from_sentencepiece(processor) == from_sentencepiece(DATA / file)
    assert len(vocabulary) == processor.vocab_size()
    assert vocabulary.eos_token_ids == (processor.eos_id(),)
    assert vocabulary.special_token_ids == {
        token for token in range(len(vocabulary)) if processor.is_control(token)
    }
    assert not vocabulary.start_absorbs
    sequences = sequences_for(vocabulary, processor, 2500, file)
    check(vocabulary, sequences, processor.decode, replacing(vocabulary, processor), composed=10)


def test_as_mistral_common_decodes() -> None:
    from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer

    file = "mistral_instruct_tokenizer_240323.model.v3"
    real = SentencePieceTokenizer(DATA / file)
    vocabulary = from_mistral(file)
    assert vocabulary.eos_token_ids == (real.eos_id,)
    assert len(vocabulary) == real.n_words
    sequences = sequences_for(vocabulary, real._model, 500, "mistral")
    check(vocabulary, sequences, real.decode, replacing(vocabulary, real._model), composed=5)


@functools.cache
def trained(model_type: str, dummy: bool, remove: bool, suffix: bool) -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=written,
        model_type=model_type,
        vocab_size=420 if model_type != "char" else 100,
        hard_vocab_limit=False,
        byte_fallback=model_type != "char",
        add_dummy_prefix=dummy,
        remove_extra_whitespaces=remove,
        treat_whitespace_as_suffix=suffix,
        user_defined_symbols=["▁▁", "<tool>", "▁x▁"],
        control_symbols=["<ctl>"],
        unk_surface=" <?> " if remove else " ⁇ ",
        character_coverage=0.98,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    return written.getvalue()


SETTINGS = [*itertools.product(["unigram", "bpe"], [True, False], [True, False], [False])]
SETTINGS += [("char", True, True, False), ("unigram", True, False, True), ("unigram", False, False, True)]


@pytest.mark.parametrize(("model_type", "dummy", "remove", "suffix"), SETTINGS)
def test_trained_models(model_type: str, dummy: bool, remove: bool, suffix: bool) -> None:
    model = trained(model_type, dummy, remove, suffix)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocabulary = Vocabulary.from_sentencepiece(processor)
    assert vocabulary == from_sentencepiece(model)
    assert vocabulary.start_absorbs == remove
    assert (vocabulary.initial_tokens is None) == (not dummy and not remove)
    assert vocabulary.special_tokens["<ctl>"] == processor.piece_to_id("<ctl>")
    assert vocabulary.token_bytes(processor.unk_id()) == (b" <?> " if remove else " ⁇ ".encode())
    sequences = sequences_for(vocabulary, processor, 2500, f"{model_type}{dummy}{remove}")
    check(vocabulary, sequences, processor.decode, replacing(vocabulary, processor))


def test_size_and_end_token() -> None:
    model = trained("bpe", True, False, False)
    vocabulary = from_sentencepiece(model)
    padded = from_sentencepiece(model, size=512, eos_token_id=[2, 511])
    assert len(padded) == 512 and padded.eos_token_ids == (2, 511)
    assert padded.tokens[: len(vocabulary)] == vocabulary.tokens


def test_a_model_without_an_end_token() -> None:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=written,
        model_type="char",
        vocab_size=100,
        hard_vocab_limit=False,
        eos_id=-1,
        minloglevel=2,
    )
    with pytest.raises(VocabularyError, match="no control piece '</s>'"):
        from_sentencepiece(written.getvalue())
    assert from_sentencepiece(written.getvalue(), eos_token_id=1).eos_token_ids == (1,)


def test_a_denormalizer_is_refused() -> None:
    model = trained("bpe", True, False, False)
    denormalizer = b"\x12\x03map"
    with pytest.raises(UnknownTokenizerError, match="denormalizer"):
        from_sentencepiece(model + b"\x2a" + bytes([len(denormalizer)]) + denormalizer)


def test_an_unknown_piece_type_is_refused() -> None:
    piece = b"\x0a\x01a\x18\x09"
    with pytest.raises(UnknownTokenizerError, match=r"piece 0 \(b'a'\) has the unknown type 9"):
        from_sentencepiece(b"\x0a" + bytes([len(piece)]) + piece)
    piece = b"\x0a\x01a\x18\x06"
    with pytest.raises(UnknownTokenizerError, match="type BYTE"):
        from_sentencepiece(b"\x0a" + bytes([len(piece)]) + piece)


def test_broken_files(tmp_path: Path) -> None:
    model = trained("bpe", True, False, False)
    for broken in (b"", b"\xff" * 40, b"{}", b"\x0a", b"\x0a\xff\xff\xff\xff\x7f", b"\x08\x01", b"\x0b"):
        with pytest.raises(VocabularyError, match="is not a SentencePiece model"):
            from_sentencepiece(broken)
    rng = random.Random(5)
    for _ in range(300):
        place = rng.randrange(min(len(model), 4000))
        broken = model[:place] + rng.randbytes(rng.randrange(3)) + model[place + rng.randrange(3) :]
        with contextlib.suppress(VocabularyError):
            from_sentencepiece(broken[: rng.choice([None, place])])
    with pytest.raises(VocabularyError, match="cannot read"):
        from_sentencepiece(tmp_path / "missing.model")
    with pytest.raises(UnknownTokenizerError, match="a int is neither"):
        from_sentencepiece(3)
