"""Tekken files against mistral-common's own Tekkenizer."""

from __future__ import annotations

import base64
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mistral_common.tokens.tokenizers.tekken import SpecialTokenPolicy, Tekkenizer

from reference.tokens.detokenize import CORPUS, check, random_sequences
from tokenfst.errors import UnknownTokenizerError, VocabularyError
from tokenfst.tokenizers.adapters.mistral import _locate, from_mistral
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


def replacing(vocabulary: Vocabulary) -> Callable[[Sequence[int]], str]:
    """Tekkenizer decodes each run of text tokens between special ones by itself."""

    def shown(ids: Sequence[int]) -> str:
        runs = itertools.groupby(ids, lambda token: token in vocabulary.special_token_ids)
        return "".join(vocabulary.decode(list(run)).decode("utf-8", "replace") for _, run in runs)

    return shown


def against(vocabulary: Vocabulary, real: Tekkenizer, count: int, composed: int) -> None:
    assert len(vocabulary) == real.n_words
    assert vocabulary.eos_token_ids == (real.eos_id,)
    # The oldest version that we allow has no ``special_ids`` (they are the first ones), and an older name of a method.
    assert vocabulary.special_token_ids == set(range(real.num_special_tokens))
    number_of = getattr(real, "get_special_token", None) or real.get_control_token
    for name, token in vocabulary.special_tokens.items():
        assert number_of(name) == token
    assert vocabulary.special_tokens["<s>"] == real.bos_id
    rng = random.Random(7)
    for token in [*range(1000, 1400), *(rng.randrange(len(vocabulary)) for _ in range(2000))]:
        if token < len(vocabulary):
            assert vocabulary.token_bytes(token) == real.id_to_byte_piece(token)
    partial = [
        token
        for token in range(real.num_special_tokens, len(vocabulary))
        if real.id_to_piece(token) == "\ufffd"
    ]
    favoured = [*range(5), real.num_special_tokens + 32, real.num_special_tokens - 1, *partial[:60]]
    sequences = random_sequences(vocabulary, count, rng, favoured)
    for text in CORPUS[:8]:
        ids = real.encode(text, bos=True, eos=True)
        sequences += [ids, ids[1:-1], *(ids[begin : begin + 5] for begin in range(0, len(ids), 3))]
    rng.shuffle(sequences)
    check(
        vocabulary,
        sequences,
        lambda ids: real.decode(ids, SpecialTokenPolicy.IGNORE),
        replacing(vocabulary),
        composed=composed,
    )


@pytest.mark.parametrize(
    ("name", "count", "composed"), [("tekken_240911", 2500, 5), ("tekken_240718.json", 500, 1)]
)
def test_real_files(name: str, count: int, composed: int) -> None:
    vocabulary = from_mistral(name)
    assert len(vocabulary) == 131_072
    assert vocabulary.name == f"mistral:{name}"
    against(vocabulary, Tekkenizer.from_file(_locate(name)), count, composed)


def small(**changes: Any) -> dict[str, Any]:
    texts = [*(bytes([byte]) for byte in range(256)), b"ab", " é".encode(), b"cut"]
    document = {
        "config": {
            "pattern": ".+",
            "num_vocab_tokens": len(texts),
            "default_vocab_size": 270,
            "default_num_special_tokens": 12,
            "version": "v11",
        },
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(text).decode(), "token_str": None}
            for rank, text in enumerate(texts)
        ],
        "special_tokens": [
            {"rank": rank, "token_str": name, "is_control": True}
            for rank, name in enumerate(["</s>", "<s>", "[X]"])
        ],
    }
    document["config"] |= changes.pop("config", {})
    return document | changes


def test_a_file_with_its_own_special_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(small()))
    vocabulary = from_mistral(path)
    assert vocabulary.eos_token_ids == (0,)
    assert vocabulary.special_tokens["[X]"] == 2
    assert vocabulary.special_tokens["<SPECIAL_11>"] == 11
    assert vocabulary.token_bytes(269) == " é".encode(), "ranks beyond default_vocab_size are cut"
    against(vocabulary, Tekkenizer.from_file(path), 500, 25)
    assert len(from_mistral(path, size=300)) == 300


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "not a Tekken file"),
        (small(vocab=[]), "do not fit 0 ranks"),
        (small(config={"default_num_special_tokens": 271}), "do not fit"),
        (small(config={"default_num_special_tokens": 2}), "do not fit 259 ranks"),
        (small(special_tokens=None, config={"version": "v11"}), "must have"),
        (small(special_tokens=[{"rank": 3, "token_str": "</s>"}]), "do not have the ranks"),
        (small(vocab=small()["vocab"][::-1]), "the ranks are not"),
    ],
)
def test_broken_files(tmp_path: Path, document: dict[str, Any], words: str) -> None:
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(document))
    with pytest.raises(UnknownTokenizerError, match=words):
        from_mistral(path)


def test_a_file_without_an_end_token(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(small(special_tokens=[{"rank": 0, "token_str": "<s>"}])))
    with pytest.raises(VocabularyError, match="no special token </s>"):
        from_mistral(path)
    assert from_mistral(path, eos_token_id=5).eos_token_ids == (5,)


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(VocabularyError, match="tekken_240911"):
        from_mistral("tekken_999999")
    with pytest.raises(VocabularyError, match="carries only"):
        from_mistral("../data/tekken_240911")


def test_mistral_common_is_not_imported() -> None:
    code = (
        "import sys; from tokenfst.tokenizers.adapters.sources import load_vocabulary as load; "
        "load('mistral:tekken_240911'); load('mistral:tokenizer.model.v1'); "
        "heavy = ('mistral_common', 'pynini', 'torch', 'transformers', 'tiktoken', 'sentencepiece'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
