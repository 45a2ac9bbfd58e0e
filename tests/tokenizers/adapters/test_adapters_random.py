"""Random small tokenizers of every kind: what a vocabulary decodes is what the library decodes, or it is refused.

Models, normalizers, decoders and added tokens with any flags are put together at random. A tokenizer object is read,
and its ``tokenizer.json`` too: that either means the same for every release of the library, or is refused.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running.parts import in_parts
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from tokenfst.errors import UnknownTokenizerError
from tokenfst.tokenizers.adapters.huggingface import from_huggingface, from_specification
from tokenfst.tokenizers.adapters.normalized_tokens import is_unchanged
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

PIECES = [
    *(
        "a",
        "B",
        "ab",
        "▁",
        "▁a",
        "▁▁",
        "a▁b",
        "##a",
        "##",
        "é",
        "e\u0301",
        "Ġ",
        "Ġa",
        "Ã",
        "©",
        "Ãa",
        " ",
        " a",
        "a ",
    ),
    *(
        ".",
        " .",
        " n't",
        "do not",
        "<0x20>",
        "<0x41>",
        "<0xC3>",
        "<0xA9>",
        "<0xE2>",
        "<0xZZ>",
        "ﬁ",
        "日",
        "a\n",
        "Foo",
    ),
]
END = "</s>"
NORMALIZERS = [
    None,
    normalizers.Lowercase(),
    normalizers.NFC(),
    normalizers.NFKC(),
    normalizers.NFD(),
    normalizers.Prepend("▁"),
    normalizers.Replace(" ", "▁"),
    normalizers.Strip(),
    normalizers.StripAccents(),
    normalizers.BertNormalizer(),
    normalizers.ByteLevel(),
    normalizers.Nmt(),
    normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]),
]
DECODERS = [
    None,
    decoders.ByteLevel(),
    decoders.ByteFallback(),
    decoders.Fuse(),
    decoders.Metaspace(prepend_scheme="always"),
    decoders.Metaspace(prepend_scheme="first"),
    decoders.Metaspace(prepend_scheme="never"),
    decoders.WordPiece("##", True),
    decoders.WordPiece("##", False),
    decoders.WordPiece("", True),
    decoders.Replace("▁", " "),
    decoders.Strip(" ", 1, 0),
    decoders.Strip("a", 0, 1),
    decoders.BPEDecoder("a"),
    decoders.CTC("a", "▁", True),
]
SEQUENCES = [
    [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)],
    [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()],
    [decoders.ByteFallback(), decoders.Metaspace()],
    [decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)],
    [decoders.Metaspace(), decoders.ByteFallback()],
]


def bpe(pieces: list[str], fallback: bool) -> Any:
    return models.BPE({piece: token for token, piece in enumerate(pieces)}, [], byte_fallback=fallback)


def word_piece(pieces: list[str], _: bool) -> Any:
    return models.WordPiece({piece: token for token, piece in enumerate(pieces)}, unk_token=END)


def word_level(pieces: list[str], _: bool) -> Any:
    return models.WordLevel({piece: token for token, piece in enumerate(pieces)}, unk_token=END)


def unigram(pieces: list[str], fallback: bool) -> Any:
    return models.Unigram([(piece, -1.0) for piece in pieces], 0, fallback)


MODELS = [bpe, word_piece, word_level, unigram]


@st.composite
def small_tokenizers(draw: st.DrawFn) -> Tokenizer:
    pieces = [END, *draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=10, unique=True))]
    tokenizer = Tokenizer(draw(st.sampled_from(MODELS))(pieces, draw(st.booleans())))
    normalizer = draw(st.sampled_from(NORMALIZERS))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = draw(
        st.sampled_from([pre_tokenizers.ByteLevel(add_prefix_space=True), pre_tokenizers.Metaspace()])
    )
    chain = draw(
        st.one_of(
            st.sampled_from(DECODERS),
            st.sampled_from(SEQUENCES),
            st.lists(st.sampled_from(DECODERS[1:]), min_size=1, max_size=3),
        )
    )
    if chain is not None:
        tokenizer.decoder = decoders.Sequence(chain) if isinstance(chain, list) else chain
    tokenizer.add_special_tokens([AddedToken(END, normalized=False, special=True)])
    for content in draw(
        st.lists(st.sampled_from([*PIECES, "<tool>", "x y", "ΣΑΣ"]), max_size=4, unique=True)
    ):
        flags = {name: draw(st.booleans()) for name in ("single_word", "lstrip", "rstrip", "normalized")}
        special = draw(st.integers(0, 3)) == 0
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)(
            [AddedToken(content, special=special, **flags)]
        )
    return tokenizer


def agrees(tokenizer: Tokenizer, vocabulary: Vocabulary, ids: list[int]) -> None:
    """Whether the library decodes what the vocabulary does. Tokens that it holds for special are left out: they are on
    no path.
    """
    ids = [token for token in ids if token < len(vocabulary) and token not in vocabulary.special_token_ids]
    try:
        theirs = tokenizer.decode(ids)
    except BaseException as error:
        # The library's Strip reads before the beginning of an empty piece: there is nothing to compare with.
        if type(error).__name__ == "PanicException":
            return
        raise
    ours = vocabulary.decode(ids)
    try:
        text = ours.decode()
    except UnicodeDecodeError:
        assert "\ufffd" in theirs, (ids, theirs, ours)
    else:
        assert theirs == text, [tokenizer.id_to_token(token) for token in ids]


def read_both(tokenizer: Tokenizer, sequences: list[list[int]]) -> None:
    document = json.loads(tokenizer.to_str())
    for read in (
        lambda: from_huggingface(tokenizer, eos_token_id=0),
        lambda: from_specification(document, eos_token_id=END),
    ):
        try:
            vocabulary = read()
        except UnknownTokenizerError:
            continue
        for ids in sequences:
            agrees(tokenizer, vocabulary, ids)


IDS = st.lists(st.lists(st.integers(0, 15), max_size=6), min_size=1, max_size=8)


@settings(max_examples=500, deadline=None)
@given(small_tokenizers(), IDS)
def test_refused_or_exact(tokenizer: Tokenizer, sequences: list[list[int]]) -> None:
    read_both(tokenizer, sequences)


@in_parts(50, 1_000, small_tokenizers(), IDS)
def test_refused_or_exact_for_long(tokenizer: Tokenizer, sequences: list[list[int]]) -> None:
    read_both(tokenizer, sequences)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("chain", [*DECODERS[:11], *SEQUENCES])
def test_the_common_kinds_are_not_refused(model: Any, chain: Any) -> None:
    tokenizer = Tokenizer(model([END, *PIECES], False))
    if chain is not None:
        tokenizer.decoder = decoders.Sequence(chain) if isinstance(chain, list) else chain
    if tokenizer.id_to_token(1) and chain is not SEQUENCES[2]:
        from_huggingface(tokenizer, eos_token_id=0)


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet="aBéÉ ▁ﬁ\u0301ß\n日Ġ<x>", min_size=1, max_size=6), st.sampled_from(NORMALIZERS[1:]))
def test_what_is_unchanged_is_unchanged(content: str, normalizer: Any) -> None:
    node = json.loads(normalizer.__getstate__())
    if is_unchanged(content, node):
        assert normalizer.normalize_str(content) == content


def test_a_file_names_the_token_that_releases_decode_in_two_ways() -> None:
    tokenizer = Tokenizer(word_level([END, "a"], False))
    tokenizer.normalizer, tokenizer.decoder = normalizers.Lowercase(), decoders.Fuse()
    tokenizer.add_tokens([AddedToken("bar", normalized=True), AddedToken("Foo", normalized=True)])
    with pytest.raises(UnknownTokenizerError, match=r"'Foo' \(id 3\) is normalized"):
        from_specification(json.loads(tokenizer.to_str()), eos_token_id=END)
    vocabulary = from_huggingface(tokenizer, eos_token_id=0)
    assert vocabulary.decode([2, 3]).decode() == tokenizer.decode([2, 3])
