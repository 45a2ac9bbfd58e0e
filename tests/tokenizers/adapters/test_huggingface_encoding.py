"""How Hugging Face tokenizers make tokens of a text: as their library encodes, or unknown with a typed error."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import random
import unicodedata
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

import tokenfst
from reference.tokens.byte_pairs import train
from tokenfst import Vocabulary, choices, compile, load_vocabulary
from tokenfst.errors import (
    ArtifactVocabularyError,
    EmptyLanguageError,
    TokenfstError,
    TokenizationError,
    VocabularyError,
)
from tokenfst.tokenizers.adapters.huggingface import from_huggingface, from_specification
from tokenfst.tokenizers.adapters.pack import read_pack, write_pack
from tokenfst.tokenizers.adapters.token_file import read_token_file, write_token_file
from tokenfst.tokenizers.segmentation.byte_pairs import BytePairs
from tokenfst.tokenizers.segmentation.tokenizer import byte_pair_tokenizer
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding, byte_level_alphabet

LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
SAMPLE = (
    "the cat's mat  the  hat\n\n the END\tof   it 1234 56 /a/b \n  中文中 ABc I'VE 中B é e\u0301 --- \n/ "
    "don't\u00a0x "
)
LETTERS = "abce 'ts\n\t1/中é日\u0301\u00a0🙂A\x01"
CHARACTERS = {byte: character for character, byte in byte_level_alphabet().items()}
END = "<|end|>"


def spelled(data: bytes) -> str:
    return "".join(CHARACTERS[byte] for byte in data)


def split(pattern: str | None) -> Any:
    """A pre-tokenizer by a pattern; GPT-2's without one."""
    if pattern is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def trained(pattern: str | None, text: str, size: int) -> Tokenizer:
    """A tokenizer of the library's own trainer, with its special token first."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = split(pattern), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def listing(tokens: list[bytes], merges: list[tuple[bytes, bytes]], ignore_merges: bool) -> Tokenizer:
    """A tokenizer of one piece for a text, with these tokens and merges."""
    ids = {spelled(data): token for token, data in enumerate(tokens)}
    pairs = [(spelled(first), spelled(second)) for first, second in merges]
    tokenizer = Tokenizer(models.BPE(ids, pairs, ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = split(r"[\s\S]+"), decoders.ByteLevel()
    tokenizer.add_special_tokens([END])
    return tokenizer


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    end = tokenizer.token_to_id(END)
    assert end is not None
    return from_huggingface(tokenizer, eos_token_id=end)


def texts(seed: int, count: int, sample: str = SAMPLE) -> list[str]:
    rng = random.Random(seed)
    found = [
        sample[(at := rng.randrange(len(sample))) : at + rng.randrange(1, 40)] for _ in range(count // 2)
    ]
    return found + ["".join(rng.choices(LETTERS, k=rng.randrange(1, 12))) for _ in range(count - len(found))]


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


# --- normal forms and added tokens ------------------------------------------------------------------------------------

TOOL, THINK = "<tool_call>", "<think>"


def like_qwen() -> Tokenizer:
    """NFC, one split, and added tokens that are text."""
    tokenizer = trained(LLAMA, SAMPLE * 3, 300)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in (TOOL, THINK, "<think>>")])
    tokenizer.encode_special_tokens = True
    return tokenizer


def spliced(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    parts = [
        TOOL,
        THINK,
        "<think>>",
        END,
        "<thi",
        "\u0323",
        "e\u0301",
        "\u0344",
        "\u09c7\u09be",
        "\u1100\u1161",
    ]
    return [
        "".join(rng.choice([text[:6], rng.choice(parts)]) for _ in range(3)) for text in texts(seed, count)
    ]


def test_texts_with_added_tokens_are_encoded_as_the_library_does() -> None:
    tokenizer = like_qwen()
    known = byte_pair_tokenizer(vocabulary_of(tokenizer))
    changed = 0
    for text in spliced(2, 600):
        try:
            found = known.encode(text.encode())
        except TokenizationError as error:
            assert "NFC" in str(error) and not unicodedata.is_normalized("NFC", text)
            changed += 1
        else:
            assert found == tokenizer.encode(text, add_special_tokens=False).ids, text
    assert 100 < changed < 500


def test_canonical_sequences_are_of_texts_that_are_not_changed() -> None:
    tokenizer = like_qwen()
    vocabulary = vocabulary_of(tokenizer)
    every = sorted({*spliced(4, 200), *texts(5, 100)})
    matcher = compile(
        choices([text.encode() for text in every]), vocabulary, tokenization="canonical"
    ).matcher()
    allowed = 0
    for text in every:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        added = any(each in text for each in (TOOL, THINK))
        plain = not added and unicodedata.is_normalized("NFC", text) and not set(text) & set("\u0301\u0323")
        matcher.reset()
        assert (matcher.accept_tokens(ids) and matcher.is_accepting()) == plain, text
        allowed += plain
    assert 50 < allowed < 250


def test_a_language_of_added_tokens_only_has_no_canonical_text() -> None:
    vocabulary = vocabulary_of(like_qwen())
    with pytest.raises(EmptyLanguageError, match="added tokens"):
        compile(choices([TOOL.encode()]), vocabulary, tokenization="canonical")
    assert (
        compile(choices([TOOL.encode()]), vocabulary).matcher().accept_tokens(vocabulary.ids(TOOL.encode()))
    )


def test_files_keep_added_tokens_and_the_normal_form(tmp_path: Path) -> None:
    vocabulary = vocabulary_of(like_qwen())
    write_pack(vocabulary, tmp_path / "pack")
    write_token_file(vocabulary, tmp_path / "file")
    assert vocabulary.encoding is not None
    for found in (read_pack(tmp_path / "pack"), read_token_file(tmp_path / "file")):
        assert found == vocabulary and found.encoding == dataclasses.replace(vocabulary.encoding, merges=None)
    compile(choices([b"the cat", TOOL.encode()]), vocabulary, tokenization="canonical").save(tmp_path / "it")
    loaded = tokenfst.CanonicalAutomaton.load(tmp_path / "it", read_pack(tmp_path / "pack")).matcher()
    assert not loaded.accept_tokens(vocabulary.ids(TOOL.encode()))
    loaded.reset()
    assert loaded.accept_tokens(byte_pair_tokenizer(vocabulary).encode(b"the cat")) and loaded.is_accepting()


@pytest.mark.parametrize(
    "document",
    [
        5,
        {"pattern": "a"},
        {"pattern": "a", "added": {}, "nfc": 1},
        {"pattern": "a", "added": {"": 3}, "nfc": True},
        {"pattern": "a", "added": {"b": "3"}, "nfc": True},
        {"pattern": "a", "added": {}, "nfc": True, "more": 1},
    ],
)
def test_malformed_encodings_are_refused(document: object, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(
        json.dumps({"tokens": ["a", ""], "eos_token_id": 1, "split_pattern": document})
    )
    with pytest.raises(VocabularyError, match="split_pattern must be a string, or an object"):
        read_token_file(tmp_path / "file")


def test_an_added_token_that_the_vocabulary_does_not_have_is_refused() -> None:
    tokens = [bytes([byte]) for byte in range(256)]
    wrong = BytePairEncoding(r"\s+|\S+", added=(("<tool>", 300),))
    with pytest.raises(TokenizationError, match="has no token 300"):
        byte_pair_tokenizer(Vocabulary([*tokens, b""], 256, split_pattern=wrong))


# --- what is not known ----------------------------------------------------------------------------------------------

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
SPLIT = {"type": "Split", "pattern": {"Regex": r"\s+|\S+"}, "behavior": "Isolated", "invert": False}


def specification() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(trained(r"\s+|\S+", SAMPLE * 3, 280).to_str())
    return document


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"type": "NFKC"}},
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}},
        {"pre_tokenizer": None},
        {"pre_tokenizer": {**BYTE_LEVEL, "add_prefix_space": True, "use_regex": True}},
        {"pre_tokenizer": BYTE_LEVEL},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": []}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT]}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT, SPLIT, BYTE_LEVEL]}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT, {**BYTE_LEVEL, "use_regex": True}]}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, BYTE_LEVEL]}},
        {
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [{**SPLIT, "behavior": "MergedWithPrevious"}, BYTE_LEVEL],
            }
        },
        {
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [{**SPLIT, "pattern": {"String": " "}}, BYTE_LEVEL],
            }
        },
        {"model": {"dropout": 0.1}},
        {"model": {"continuing_subword_prefix": "##"}},
        {"model": {"end_of_word_suffix": "</w>"}},
        {"model": {"merges": None}},
        {"model": {"merges": [["a"], 3]}},
        {"decoder": {"type": "Fuse"}},
        {"added_tokens": [{"id": 300, "content": "<tool>", "special": False, "lstrip": True}]},
        {"added_tokens": [{"id": 300, "content": "<tool>", "special": False, "single_word": True}]},
        {"added_tokens": [{"id": 97, "content": "th", "special": False, "normalized": False}]},
        {"added_tokens": [{"id": 300, "content": "a\u0120b", "special": False, "normalized": False}]},
        {
            "added_tokens": [
                {"id": 300, "content": "<tool>", "special": False, "normalized": False},
                {"id": 301, "content": "<end>", "special": False, "normalized": True},
            ]
        },
        {
            "normalizer": {"type": "NFC"},
            "added_tokens": [{"id": 300, "content": "e\u0301", "special": False, "normalized": False}],
        },
    ],
)
def test_other_tokenizers_are_not_known(change: dict[str, Any]) -> None:
    document = specification()
    assert from_specification(copy.deepcopy(document), eos_token_id=0).split_pattern == r"\s+|\S+"
    for key, value in change.items():
        document[key] = {**document[key], **value} if key == "model" else value
    vocabulary = from_specification(document, eos_token_id=0)
    assert vocabulary.encoding is None
    with pytest.raises(TokenizationError, match="is not known"):
        compile(choices([b"a"]), vocabulary, tokenization="canonical")


ADDED = {"special": False, "normalized": False, "single_word": False, "lstrip": False, "rstrip": False}


def changed(kind: str) -> dict[str, Any]:
    """Specifications that the library reads otherwise than this package would, if it took them."""
    document = specification()
    vocab, added = document["model"]["vocab"], document["added_tokens"]
    free = len(vocab)
    if kind == "raw byte":  # the model's characters stand for bytes: it never finds this one
        vocab["\x7f"] = vocab.pop(CHARACTERS[0x7F])
    elif kind == "not the next id":
        added.append({"id": free + 7, "content": "<tool>", **ADDED})
    elif kind == "a token of the model":
        added.append({"id": free, "content": "the", **ADDED})
    elif kind == "listed twice":
        added += [{"id": free + each, "content": "<tool>", **ADDED} for each in range(2)]
    elif kind == "hidden in a special token":
        added.append({"id": free, "content": "<|xyz|>", **ADDED, "special": True})
        added.append({"id": free + 1, "content": "xyz", **ADDED})
    elif kind == "hidden by its end":
        added.append({"id": free, "content": "<xy", **ADDED, "special": True})
        added.append({"id": free + 1, "content": "xyz", **ADDED})
    elif kind == "special piece":
        document["model"]["ignore_merges"], vocab["PAD"] = True, free
        added.append({"id": free, "content": "PAD", **ADDED, "special": True})
    return document


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("raw byte", "a\x7fb"),
        ("not the next id", "<tool>"),
        ("a token of the model", "the"),
        ("listed twice", "<tool>"),
        ("hidden in a special token", "<|xyz|>"),
        ("hidden by its end", "<xyz"),
        ("special piece", "a PAD"),
    ],
)
def test_specifications_that_the_library_reads_otherwise_are_not_known(kind: str, text: str) -> None:
    document = changed(kind)
    assert from_specification(document, eos_token_id=0).encoding is None
    library = Tokenizer.from_str(json.dumps(document))
    library.encode_special_tokens = True
    assert library.encode(text, add_special_tokens=False).ids


def test_special_tokens_beside_added_ones_stay_known() -> None:
    document = specification()
    free = len(document["model"]["vocab"])
    document["added_tokens"].append({"id": free, "content": "<|xy|>", **ADDED, "special": True})
    document["added_tokens"].append({"id": free + 1, "content": "<tool>", **ADDED})
    library = Tokenizer.from_str(json.dumps(document))
    library.encode_special_tokens = True
    known = byte_pair_tokenizer(from_specification(document, eos_token_id=0))
    for text in ("<|xy|><tool>", "a<|xy|", "<|xy<tool>|>"):
        assert known.encode(text.encode()) == library.encode(text, add_special_tokens=False).ids, text


def test_a_normalized_added_token_is_not_found_before_a_mark_that_changes_it() -> None:
    tokenizer = trained(LLAMA, SAMPLE * 3, 300)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken("<xyze", normalized=True)])
    known = byte_pair_tokenizer(vocabulary_of(tokenizer))
    for text in ("<xyze", "<xyz\u00e9", "a<xyze b"):
        assert known.encode(text.encode()) == tokenizer.encode(text, add_special_tokens=False).ids
    with pytest.raises(TokenizationError, match="NFC"):
        known.encode("<xyze\u0301".encode())


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"a+$|[\s\S]", "aa\nb"),
        (r"a{1,2}+|[\s\S]", "aaaab"),
        (r"a{2}?|[\s\S]", "aaab"),
        (r"\pL|[\s\S]", "apLb"),
        (r"[\pL]+|[\s\S]", "apLb"),
        (r"(?i:'st)|[\s\S]", "'\ufb06b"),
        (r"(?i:s{2})|[\s\S]", "ssb"),
    ],
)
def test_patterns_that_oniguruma_reads_otherwise_are_not_known(pattern: str, text: str) -> None:
    tokenizer = trained(pattern, SAMPLE * 3, 280)
    assert vocabulary_of(tokenizer).encoding is None and tokenizer.encode(text).ids


@pytest.mark.parametrize(
    "pattern",
    [
        LLAMA,
        r"'(?i:[sdmt]|ll|ve|re)|[\s\S]",
        r"a{2}[b]?|\{2\}\?|[${2}+]+|[\s\S]",
        r"\p{L}++|\p{N}{1,3}|[\s\S]",
    ],
)
def test_patterns_that_both_engines_read_alike_are_known(pattern: str) -> None:
    tokenizer = trained(pattern, SAMPLE * 3, 280)
    known = byte_pair_tokenizer(vocabulary_of(tokenizer))
    for text in ("aab{2}?", "${2}+aab", "'S a'lla'Sx", "1234aaB"):
        assert known.encode(text.encode()) == tokenizer.encode(text, add_special_tokens=False).ids, text


ODD = [None, 5, "x", ["x"], [None], {"type": 5}, {"type": "Sequence"}, [["a", "b", "c"]], "\ud800"]


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_malformed_parts_give_a_vocabulary_or_a_typed_error(odd: object) -> None:
    document = specification()
    document["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}]}
    document["added_tokens"].append({"id": len(document["model"]["vocab"]), "content": "<tool>", **ADDED})
    places: list[tuple[str | int, ...]] = [
        ("normalizer",),
        ("normalizer", "normalizers"),
        ("normalizer", "normalizers", 0),
        ("pre_tokenizer",),
        ("pre_tokenizer", "pretokenizers"),
        ("pre_tokenizer", "pretokenizers", 0),
        ("pre_tokenizer", "pretokenizers", 0, "pattern"),
        ("added_tokens", 1),
        ("added_tokens", 1, "content"),
        ("added_tokens", 1, "id"),
        ("model", "merges"),
        ("model", "merges", 0),
        ("model", "vocab", "a"),
        ("decoder",),
    ]
    for place in places:
        made = copy.deepcopy(document)
        node: Any = made
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = odd
        try:
            vocabulary = from_specification(made, eos_token_id=0)
        except TokenfstError:
            assert place[0] not in ("normalizer", "pre_tokenizer"), place
        else:
            assert vocabulary.tokens


def damaged(kind: str) -> dict[str, Any]:
    document = specification()
    model = document["model"]
    merges: list[Any] = model["merges"]
    if kind == "order":
        merges[0], merges[-1] = merges[-1], merges[0]
    elif kind == "missing":
        del merges[-1]
    elif kind == "twice":
        merges.append(merges[0])
    elif kind == "unknown":
        merges.append(["\u0100", "zz"])
    return document


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("order", "not in the order of its merges"),
        ("missing", "made by none of them"),
        ("twice", "listed twice"),
        ("unknown", "special tokens or no tokens"),
    ],
)
def test_merges_that_are_not_those_by_ids_are_refused(kind: str, message: str, tmp_path: Path) -> None:
    vocabulary = from_specification(damaged(kind), eos_token_id=0)
    with pytest.raises(TokenizationError, match=message):
        byte_pair_tokenizer(vocabulary)
    write_pack(vocabulary, tmp_path / "pack")
    assert read_pack(tmp_path / "pack") == vocabulary and read_pack(tmp_path / "pack").split_pattern is None


def test_an_end_token_that_merges_make_is_refused() -> None:
    document = specification()
    last = len(document["model"]["vocab"]) - 1
    with pytest.raises(TokenizationError, match="special"):
        byte_pair_tokenizer(from_specification(document, eos_token_id=last))


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
