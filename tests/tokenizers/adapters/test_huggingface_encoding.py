"""How Hugging Face tokenizers make tokens of a text: as their library encodes, or unknown with a typed error."""

from __future__ import annotations

import pickle
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds.byte_level_tokenizers import (
    LLAMA,
    SAMPLE,
    damaged,
    listing,
    specification,
    spelled,
    split,
    texts,
    trained,
    vocabulary_of,
)
from tokenizers import Tokenizer, decoders, models

import tokenfst
from reference.tokens.byte_pairs import train
from tokenfst import Vocabulary, choices, compile, load_vocabulary
from tokenfst.errors import ArtifactVocabularyError, TokenizationError
from tokenfst.tokenizers.adapters.huggingface import from_huggingface, from_specification
from tokenfst.tokenizers.adapters.pack import read_pack, write_pack
from tokenfst.tokenizers.adapters.token_file import read_token_file, write_token_file
from tokenfst.tokenizers.segmentation.byte_pairs import BytePairs
from tokenfst.tokenizers.segmentation.tokenizer import byte_pair_tokenizer
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding


@pytest.mark.parametrize("pattern", [None, LLAMA, r"\s+|\S+"])
@pytest.mark.parametrize("size", [257, 280, 330])
def test_trained_tokenizers_encode_as_their_library_does(pattern: str | None, size: int) -> None:
    tokenizer = trained(pattern, SAMPLE * 3, size)
    known = byte_pair_tokenizer(vocabulary_of(tokenizer))
    for text in texts(size, 300):
        assert known.encode(text.encode()) == tokenizer.encode(text, add_special_tokens=False).ids, text


@pytest.mark.parametrize("pattern", [None, LLAMA])
def test_canonical_sequences_are_the_library_s(pattern: str | None) -> None:
    tokenizer = trained(pattern, SAMPLE * 3, 300)
    vocabulary = vocabulary_of(tokenizer)
    wanted = {text: tokenizer.encode(text, add_special_tokens=False).ids for text in texts(1, 60)}
    automaton = compile(choices([text.encode() for text in wanted]), vocabulary, tokenization="canonical")
    matcher = automaton.matcher()
    mask = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    for text, ids in wanted.items():
        matcher.reset()
        for place, token in enumerate(ids):
            matcher.fill_next_token_bitmask(mask, 0)
            allowed = {t for t in range(len(vocabulary)) if mask[0, t // 32] >> t % 32 & 1}
            going = {
                other[place]
                for other in wanted.values()
                if other[:place] == ids[:place] and len(other) > place
            }
            assert allowed - {*vocabulary.eos_token_ids} == going, (text, place)
            assert matcher.accept_token(token)
        assert matcher.is_accepting()


@st.composite
def listed_tokenizers(draw: st.DrawFn) -> Tokenizer:
    """Tokens of two letters, merged from two others each, with some of their splits listed, mostly in order."""
    made = [b"a", b"b"]
    for _ in range(draw(st.integers(0, 7))):
        data = draw(st.sampled_from(made)) + draw(st.sampled_from(made))
        if data not in made and len(data) < 8:
            made.append(data)
    merged = made[2:] if draw(st.integers(0, 3)) else draw(st.permutations(made[2:]))
    tokens = [bytes([byte]) for byte in range(256)] + merged
    listed = [
        (data[:cut], data[cut:])
        for data in merged
        for cut in range(1, len(data))
        if {data[:cut], data[cut:]} <= {*tokens} and draw(st.integers(0, 9))
    ]
    if not draw(st.integers(0, 3)):
        listed = draw(st.permutations(listed))
    return listing(tokens, listed, ignore_merges=draw(st.booleans()))


WORDS = ["".join(word) for length in range(1, 7) for word in product("ab", repeat=length)]


@settings(deadline=None)
@given(listed_tokenizers())
def test_merges_that_are_accepted_encode_every_word_as_the_library_does(tokenizer: Tokenizer) -> None:
    try:
        known = byte_pair_tokenizer(vocabulary_of(tokenizer))
    except TokenizationError:
        return
    for word in WORDS:
        assert known.encode(word.encode()) == tokenizer.encode(word, add_special_tokens=False).ids, word


@pytest.mark.parametrize("style", ["one", "all"])
def test_both_styles_of_listing_merges_are_accepted(style: str) -> None:
    """Trained tokenizers list one split of each token; those converted from tiktoken's form list all of them."""
    tokens = train(SAMPLE.encode() * 2, 60)
    plain = BytePairs(Vocabulary([*tokens, b""], len(tokens)))
    ids = {data: token for token, data in enumerate(tokens)}
    if style == "one":
        pairs = [(tokens[a], tokens[b]) for a, b in plain.parts[256:-1].tolist()]
    else:
        pairs = []
        for data in tokens[256:]:
            cuts = [
                (ids[data[:c]], ids[data[c:]])
                for c in range(1, len(data))
                if {data[:c], data[c:]} <= set(ids)
            ]
            pairs += [(tokens[a], tokens[b]) for a, b in sorted(cuts)]
        assert len(pairs) > len(tokens) - 256
    tokenizer = listing(tokens, pairs, ignore_merges=style == "all")
    known = byte_pair_tokenizer(vocabulary_of(tokenizer))
    for text in texts(3, 300):
        assert known.encode(text.encode()) == tokenizer.encode(text, add_special_tokens=False).ids, text


def test_tekken_as_a_tokenizer_json() -> None:
    """The real vocabulary in the form of the hub: texts of this repository are encoded as the library does."""
    tekken = load_vocabulary("mistral:tekken_240911")
    text = [spelled(data) for data in tekken.tokens]
    ids = {text[token]: token for token in range(len(text)) if text[token]}
    parts = BytePairs(tekken).parts
    tokenizer = Tokenizer(
        models.BPE(ids, [(text[a], text[b]) for a, b in parts.tolist() if a >= 0], ignore_merges=True)
    )
    assert tekken.split_pattern is not None
    tokenizer.pre_tokenizer, tokenizer.decoder = split(tekken.split_pattern), decoders.ByteLevel()
    vocabulary = from_huggingface(tokenizer, eos_token_id=2, size=len(tekken))
    assert vocabulary.tokens == tekken.tokens
    known = byte_pair_tokenizer(vocabulary)
    sample = Path(__file__).read_text() + SAMPLE
    for each in texts(5, 200, sample):
        assert known.encode(each.encode()) == tokenizer.encode(each, add_special_tokens=False).ids, each


# --- files and copies -----------------------------------------------------------------------------------------------


def test_packs_and_files_keep_the_pattern(tmp_path: Path) -> None:
    vocabulary = vocabulary_of(trained(None, SAMPLE * 3, 300))
    write_pack(vocabulary, tmp_path / "pack")
    write_token_file(vocabulary, tmp_path / "file")
    for found in (read_pack(tmp_path / "pack"), read_token_file(tmp_path / "file")):
        assert found == vocabulary and found.encoding == BytePairEncoding(vocabulary.split_pattern or "")
        for text in texts(9, 40):
            assert byte_pair_tokenizer(found).encode(text.encode()) == byte_pair_tokenizer(vocabulary).encode(
                text.encode()
            )


def test_pickled_vocabularies_keep_their_merges() -> None:
    vocabulary = vocabulary_of(trained(None, SAMPLE * 3, 300))
    copied = pickle.loads(pickle.dumps(vocabulary))
    assert copied.encoding == vocabulary.encoding and copied.encoding.merges


def test_equal_vocabularies_with_other_merges_do_not_share_a_tokenizer() -> None:
    good, bad = (from_specification(each, eos_token_id=0) for each in (specification(), damaged("missing")))
    assert good == bad and byte_pair_tokenizer(good)
    with pytest.raises(TokenizationError):
        byte_pair_tokenizer(bad)


def test_artifacts_are_bound_to_the_tokenizer(tmp_path: Path) -> None:
    vocabulary = vocabulary_of(trained(LLAMA, SAMPLE * 3, 300))
    compile(choices([b"the cat", b"the hat"]), vocabulary, tokenization="canonical").save(tmp_path / "it")
    loaded = tokenfst.CanonicalAutomaton.load(tmp_path / "it", vocabulary).matcher()
    assert loaded.accept_tokens(byte_pair_tokenizer(vocabulary).encode(b"the hat")) and loaded.is_accepting()


def test_an_artifact_is_not_called_damaged_if_the_merges_of_a_vocabulary_are(tmp_path: Path) -> None:
    good, bad = (from_specification(each, eos_token_id=0) for each in (specification(), damaged("missing")))
    compile(choices([b"the cat"]), good, tokenization="canonical").save(tmp_path / "it")
    with pytest.raises(ArtifactVocabularyError, match="made by none of them"):
        tokenfst.CanonicalAutomaton.load(tmp_path / "it", bad)
