"""Vocabulary packs: what is read is what was written, or it is refused."""

from __future__ import annotations

import hashlib
import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenfst as library
from reference.tokens.small_automata import small_vocabulary
from tests.support.programs.command_line import tokenfst
from tokenfst import Vocabulary, load_vocabulary, regex
from tokenfst.errors import TokenfstError, VocabularyError

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
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for write in (TOY.to_pack, TOY.to_json):
        for path in ("none/it", "file/it", "x" * 300, "", "pipe", "/"):
            with pytest.raises(VocabularyError, match="cannot write"):
                write(path if path == "/" else tmp_path / path)
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to("file")
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink() and (tmp_path / "file").stat().st_size
        (tmp_path / "file").write_text("")
    assert (tmp_path / "pipe").is_fifo() and not [*tmp_path.glob(".*")]


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
        ("tries", [1, 1], "'tries' is"),
        ("tries", [-1], "'tries' is"),
        ("tries", [1 << 60], "sizes of its tries"),
        ("tries", [True], "'tries' is"),
        ("tries", [], "not those of its bytes"),
    ],
)
def test_false_headers_under_a_right_digest(key: str, value: Any, says: str, tmp_path: Path) -> None:
    TOY.to_pack(tmp_path / "it")
    data = (tmp_path / "it").read_bytes()
    magic, rest = data[:27], data[27 + 65 :]
    length = int.from_bytes(rest[:8], "little")
    header = json.loads(rest[8 : 8 + length]) | {key: value}
    text = json.dumps(header).encode()
    text += b" " * ((length - len(text)) % 16)  # what is after it stays where tries may begin
    rest = len(text).to_bytes(8, "little") + text + rest[8 + length :]
    (tmp_path / "it").write_bytes(magic + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
    with pytest.raises(VocabularyError, match=says):
        load_vocabulary(f"pack:{tmp_path / 'it'}")


def test_packs_of_the_first_version_are_read(tmp_path: Path) -> None:
    TOY.to_pack(tmp_path / "it")
    data = (tmp_path / "it").read_bytes()
    rest = data[27 + 65 :]
    length = int.from_bytes(rest[:8], "little")
    header = json.loads(rest[8 : 8 + length])
    tries = sum(each + -each % 16 for each in header.pop("tries"))
    tables = rest[8 + length : len(rest) - tries][: 4 * len(TOY) + sum(map(len, TOY.tokens))]
    text = json.dumps(header).encode()
    rest = len(text).to_bytes(8, "little") + text + tables
    magic = b"tokenfst vocabulary pack 1\n"
    (tmp_path / "old").write_bytes(magic + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
    found = load_vocabulary(f"pack:{tmp_path / 'old'}")
    assert found == TOY
    assert not found.tries
    (tmp_path / "old").write_bytes(
        magic + hashlib.sha256(rest + b"\0").hexdigest().encode() + b"\n" + rest + b"\0"
    )
    with pytest.raises(VocabularyError, match="not those of its bytes"):
        load_vocabulary(f"pack:{tmp_path / 'old'}")


@pytest.mark.parametrize("seed", range(40))
def test_tries_are_those_that_the_core_makes(seed: int, tmp_path: Path) -> None:
    vocabulary = small_vocabulary(random.Random(seed))
    found = packed(vocabulary, tmp_path / "it")
    made, mapped = vocabulary.native, found.native
    assert mapped.trie_tables() == made.trie_tables()
    assert mapped.trie_tables(initial=True) == made.trie_tables(initial=True)
    assert mapped.memory <= made.memory
    assert not mapped.adopt_trie(found.tries[0])  # it has one
    patterns = [regex("[a-z]*"), regex("(ab|b)*a?"), regex(".{0,3}")]
    for pattern in patterns:
        try:
            ours = library.compile(pattern, vocabulary).expand().serialize()
        except TokenfstError as error:
            with pytest.raises(type(error)):
                library.compile(pattern, found).expand()
        else:
            assert library.compile(pattern, found).expand().serialize() == ours


@pytest.mark.parametrize("seed", range(10))
def test_packs_without_tries(seed: int, tmp_path: Path) -> None:
    vocabulary = small_vocabulary(random.Random(seed))
    vocabulary.to_pack(tmp_path / "small", tries=False)
    vocabulary.to_pack(tmp_path / "whole")
    assert (tmp_path / "small").stat().st_size < (tmp_path / "whole").stat().st_size
    found = load_vocabulary(f"pack:{tmp_path / 'small'}")
    assert found == vocabulary
    assert found.tries == ()
    assert found.native.trie_tables() == vocabulary.native.trie_tables()


def test_mapped_tries_take_no_memory(tmp_path: Path) -> None:
    vocabulary = Vocabulary([*(bytes([a, b]) for a in range(256) for b in range(64)), b""], 256 * 64)
    found = packed(vocabulary, tmp_path / "it")
    assert found.native.trie_nodes == vocabulary.native.trie_nodes
    assert found.native.memory < vocabulary.native.memory - 16 * found.native.trie_nodes
    wide = load_vocabulary(f"pack:{tmp_path / 'it'}", 256 * 64 + 9)
    assert wide.native.memory < vocabulary.native.memory - 16 * wide.native.trie_nodes


@pytest.mark.parametrize("seed", range(20))
def test_a_false_trie_is_never_adopted(seed: int) -> None:
    rng = random.Random(seed)
    vocabulary = small_vocabulary(rng)
    tables = np.frombuffer(vocabulary.native.trie_tables(), np.uint8)
    fresh = Vocabulary(
        vocabulary.tokens, vocabulary.eos_token_ids, initial_tokens=vocabulary.initial_tokens
    ).with_tries(())
    nodes = int(tables[:8].view(np.uint64)[0])
    unused = {16 + 16 * k + 15 for k in range(nodes)}  # after the byte of a node
    for _ in range(200):
        broken = tables.copy()
        place = rng.randrange(len(broken))
        if place in unused:
            continue
        broken[place] ^= 1 << rng.randrange(8)
        assert not fresh.native.adopt_trie(broken), place
    for length in range(0, len(tables), 5):
        assert not fresh.native.adopt_trie(tables[:length].copy())
    other = Vocabulary([*vocabulary.tokens[:-1], b"another one", b""], len(vocabulary))
    assert not other.native.adopt_trie(tables)
    assert fresh.native.adopt_trie(tables)


def test_command_line(tmp_path: Path) -> None:
    TOY.to_json(tmp_path / "toy.json")
    source = (tmp_path / "toy.json").read_bytes()
    own = tokenfst("vocab", f"tokens:{tmp_path / 'toy.json'}", "--pack", tmp_path / "toy.json")
    assert own.code == 2 and "toy.json exists and is not a pack" in own.err
    assert (tmp_path / "toy.json").read_bytes() == source
    (tmp_path / "toy.pack").write_bytes(b"tokenfst vocabulary pack 1\n")  # an older one, however broken
    done = tokenfst("vocab", f"tokens:{tmp_path / 'toy.json'}", "--pack", tmp_path / "toy.pack")
    assert done.code == 0, done
    assert load_vocabulary(f"pack:{tmp_path / 'toy.pack'}") == TOY
