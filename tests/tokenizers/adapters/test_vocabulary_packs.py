"""Vocabulary packs: what is read is what was written, or it is refused."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from reference.tokens.small_automata import small_vocabulary
from tests.support.programs.command_line import tokenfst
from tokenfst import Vocabulary, load_vocabulary
from tokenfst.errors import VocabularyError

TOY = Vocabulary(
    [b"a", "é".encode(), b"\xff", b"", b""], 3, {"<tool>": 4, "</s>": 3}, split_pattern="[a-z]+|.", name="toy"
)
SYMBOLS = Vocabulary.of_symbols(["go", "stop"])


def packed(vocabulary: Vocabulary, path: Path) -> Vocabulary:
    vocabulary.to_pack(path)
    return load_vocabulary(f"pack:{path}")


@pytest.mark.parametrize("seed", range(40))
def test_round_trip(seed: int, tmp_path: Path) -> None:
    vocabulary = small_vocabulary(random.Random(seed))
    found = packed(vocabulary, tmp_path / "it")
    assert found == vocabulary
    assert (found.tokens, found.initial_tokens) == (vocabulary.tokens, vocabulary.initial_tokens)


@pytest.mark.parametrize("vocabulary", [TOY, SYMBOLS], ids=["toy", "symbols"])
def test_all_of_it_comes_back(vocabulary: Vocabulary, tmp_path: Path) -> None:
    found = packed(vocabulary, tmp_path / "it")
    assert found == vocabulary
    for name in ("special_tokens", "split_pattern", "name", "symbols", "eos_token_ids", "start_absorbs"):
        assert getattr(found, name) == getattr(vocabulary, name), name
    before = (tmp_path / "it").read_bytes()
    found.to_pack(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


def test_overrides(tmp_path: Path) -> None:
    TOY.to_pack(tmp_path / "it")
    wide = load_vocabulary(f"pack:{tmp_path / 'it'}", 8, eos_token_id=4)
    assert (len(wide), wide.eos_token_ids, wide.tokens[:3]) == (8, (4,), TOY.tokens[:3])
    with pytest.raises(VocabularyError):
        load_vocabulary(f"pack:{tmp_path / 'it'}", 2)


def test_damage(tmp_path: Path) -> None:
    TOY.to_pack(tmp_path / "it")
    data, rng = (tmp_path / "it").read_bytes(), random.Random(1)
    for _ in range(150):
        broken = bytearray(data)
        if rng.random() < 0.4:
            del broken[rng.randrange(len(data)) :]
        else:
            broken[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (tmp_path / "broken").write_bytes(broken)
        with pytest.raises(VocabularyError):
            load_vocabulary(f"pack:{tmp_path / 'broken'}")
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(VocabularyError, match="cannot read"):
            load_vocabulary(f"pack:{path}")
    with pytest.raises(VocabularyError, match="cannot write"):
        TOY.to_pack(tmp_path / "none" / "it")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("size", 1 << 40, "do not fit"),
        ("size", 0, "do not fit"),
        ("size", -1, "do not fit"),
        ("size", 4, "not those of its bytes"),
        ("size", "5", "'size' is '5'"),
        ("initial", True, "do not fit"),
        ("eos_token_ids", [99], "99"),
        ("eos_token_ids", [None], "end"),
        ("eos_token_ids", [1], "another vocabulary"),
        ("symbols", [3], ""),
        ("special_tokens", {"x": 77}, "77"),
        ("fingerprint", "0" * 64, "another vocabulary"),
        ("more", 1, "does not have the keys"),
    ],
)
def test_false_headers_under_a_right_digest(key: str, value: Any, says: str, tmp_path: Path) -> None:
    TOY.to_pack(tmp_path / "it")
    data = (tmp_path / "it").read_bytes()
    magic, rest = data[:27], data[27 + 65 :]
    length = int.from_bytes(rest[:8], "little")
    header = json.loads(rest[8 : 8 + length]) | {key: value}
    text = json.dumps(header).encode()
    rest = len(text).to_bytes(8, "little") + text + rest[8 + length :]
    (tmp_path / "it").write_bytes(magic + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
    with pytest.raises(VocabularyError, match=says):
        load_vocabulary(f"pack:{tmp_path / 'it'}")


def test_command_line(tmp_path: Path) -> None:
    TOY.to_json(tmp_path / "toy.json")
    done = tokenfst("vocab", f"tokens:{tmp_path / 'toy.json'}", "--pack", tmp_path / "toy.pack")
    assert done.code == 0, done
    assert load_vocabulary(f"pack:{tmp_path / 'toy.pack'}") == TOY
