"""Files that are not artifacts, or broken ones: each rule of docs/serving/format.md has its error, and nothing
crashes.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.worlds.artifact_files import GOOD, VOCABULARY, Header, put_together, take_apart

from reference.tokens import artifact as slow
from reference.tokens.small_automata import EVERY_BYTE
from tokenfst import _native
from tokenfst.automata.regex.translate import regex
from tokenfst.common.plurals import counted
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.artifacts.artifact_format import MAX_HEADER
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import (
    ArtifactCorruptError,
    ArtifactError,
    ArtifactVersionError,
    VocabularyError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., None]:
    def check(data: bytes, error: type[ArtifactError], match: str) -> None:
        path = tmp_path / "it.safetensors"
        path.write_bytes(data)
        with pytest.raises(error, match=match) as caught:
            TokenAutomaton.load(path, VOCABULARY)
        assert type(caught.value) is error
        with pytest.raises(slow.BrokenRuleError):
            slow.read(data, len(VOCABULARY))

    return check


def test_the_good_file_is_good(tmp_path: Path) -> None:
    assert put_together(*take_apart(GOOD)) == GOOD
    (tmp_path / "it").write_bytes(GOOD)
    assert TokenAutomaton.load(tmp_path / "it", VOCABULARY).matcher()


# --- what is no file, or no artifact --------------------------------------------------------------------


def test_no_such_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none", str(tmp_path / "none" / "none")):
        with pytest.raises(ArtifactError, match="there is no file"):
            artifact.read(path)


def test_names_that_no_file_has(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(GOOD)
    for path in (tmp_path / "file" / "below", tmp_path / ("x" * 5000), "null\0byte"):
        with pytest.raises(ArtifactError, match="cannot read the artifact"):
            artifact.read(path)


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is a folder"):
        artifact.read(tmp_path)


def test_a_pipe_and_a_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", "/dev/zero"):
        with pytest.raises(ArtifactError, match="a device or a pipe"):
            artifact.read(path)


def test_an_empty_file(refused: Callable[..., None]) -> None:
    refused(b"", ArtifactError, "is empty")


@pytest.mark.parametrize("data", [b"%PDF-1.7 and so on, a text", b"\x80\x04\x95" + bytes(200), GOOD[::-1]])
def test_other_kinds_of_files(data: bytes, refused: Callable[..., None]) -> None:
    refused(data, ArtifactError, "does not begin as a .safetensors file does")


def test_weights_of_a_model(tmp_path: Path) -> None:
    for metadata in ({"format": "pt"}, {"author": "me"}, None):
        save_file({"weight": np.zeros((2, 2), np.float32)}, tmp_path / "model.safetensors", metadata)
        with pytest.raises(ArtifactError, match=r"is a \.safetensors file but not an artifact") as caught:
            artifact.read(tmp_path / "model.safetensors")
        assert type(caught.value) is ArtifactError


# --- the header -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 8, 9])
def test_shorter_than_any_header(size: int, refused: Callable[..., None]) -> None:
    refused(GOOD[:size], ArtifactCorruptError, f"it has {counted(size, 'byte')}, fewer than any header")


def test_header_lengths(refused: Callable[..., None]) -> None:
    def claim(length: int) -> bytes:
        return length.to_bytes(8, "little") + GOOD[8:]

    refused(
        claim(2**64 - 1),
        ArtifactCorruptError,
        "18,446,744,073,709,551,615 bytes, and the limit is 16,777,216",
    )
    refused(claim(MAX_HEADER + 8), ArtifactCorruptError, "the limit is")
    refused(claim(len(GOOD) + 8), ArtifactCorruptError, "and the file has")
    refused(claim(int.from_bytes(GOOD[:8], "little") - 1), ArtifactCorruptError, "not a multiple of 8")
    refused(claim(int.from_bytes(GOOD[:8], "little") - 16), ArtifactCorruptError, "its header is not JSON")
    refused(claim(int.from_bytes(GOOD[:8], "little") + 8), ArtifactCorruptError, "its header is not")
    refused(claim(0), ArtifactCorruptError, "not JSON")


def test_headers_that_are_not_json(refused: Callable[..., None]) -> None:
    text, content = GOOD[8 : 8 + int.from_bytes(GOOD[:8], "little")].rstrip(b" "), take_apart(GOOD)[1]
    opening = text[:-1]
    for broken in (
        opening,
        opening + b",}",
        opening + b',"x":NaN,',
        text + b"{}",
        text.replace(b":", b"=", 9),
    ):
        refused(put_together(broken, content), ArtifactCorruptError, "its header is not JSON")
    refused(put_together(opening + b',"\xff":1}', content), ArtifactCorruptError, "not UTF-8 at byte")
    refused(put_together(opening + b',"x":"\xed\xa0\x80"}', content), ArtifactCorruptError, "not UTF-8")
    deep = opening + b',"x":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    refused(put_together(deep, content), ArtifactCorruptError, "nested too deeply")
    digits = opening + b',"x":' + b"9" * 100_000 + b"}"
    refused(put_together(digits, content), ArtifactCorruptError, "its header")


def test_duplicate_keys(refused: Callable[..., None]) -> None:
    header, content = take_apart(GOOD)
    text = json.dumps(header, separators=(",", ":")).encode()
    for old, new, key in [
        (b'"format":', b'"format":"x","format":', "format"),
        (b'"mask":', b'"mask":1,"mask":', "mask"),
        (b'"dtype":"U32"', b'"dtype":"U32","dtype":"U32"', "dtype"),
    ]:
        refused(
            put_together(text.replace(old, new, 1), content), ArtifactCorruptError, f"the key '{key}' twice"
        )


def test_the_digest_comes_first(refused: Callable[..., None]) -> None:
    header, content = take_apart(GOOD)
    metadata = header.pop("__metadata__")
    text = json.dumps(header | {"__metadata__": metadata}, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    refused(len(text).to_bytes(8, "little") + text + content, ArtifactCorruptError, "begin with the digest")


# --- what the header says -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["6", "0", "01", "", "1.0", "one" * 50])
def test_other_versions(version: str, refused: Callable[..., None]) -> None:
    header, content = take_apart(GOOD)
    header["__metadata__"]["version"] = version
    # Whatever else a later version has: the version is what the message must be about.
    header["__metadata__"]["digest_of_version_4"] = "new"
    header["new"] = header.pop("worst")
    refused(
        put_together(header, content),
        ArtifactVersionError,
        "reads versions 1 to 5 only: compile the constraint again",
    )


def change_metadata(**values: object) -> Callable[[Header], None]:
    return lambda header: header["__metadata__"].update(values)


def change_tensor(name: str, **values: object) -> Callable[[Header], None]:
    return lambda header: header[name].update(values)


def change(name: str, value: object) -> Callable[[Header], None]:
    return lambda header: header.update({name: value})


STATES = take_apart(GOOD)[0]["mask"]["shape"][0]
BROKEN: list[tuple[Callable[[Header], object], str]] = [
    (lambda header: header.pop("worst"), "its header lacks 'worst'"),
    (change("more", {}), "its header holds 'more', which the format does not have"),
    (lambda header: header["__metadata__"].pop("source"), "its metadata lacks 'source'"),
    (change_metadata(more=""), "its metadata holds 'more'"),
    (change_metadata(source=None), "the metadata 'source' is not a string but None"),
    (change_metadata(vocabulary_size=7), "the metadata 'vocabulary_size' is not a string but 7"),
    (change_metadata(vocabulary_size="7e3"), "'vocabulary_size' is '7e3', not a number"),
    (change_metadata(vocabulary_size="0"), "a vocabulary cannot have 0 tokens"),
    (change_metadata(vocabulary_size="4294967296"), "a vocabulary cannot have 4294967296 tokens"),
    (change_metadata(vocabulary_size="9" * 5000), "not a number"),
    (change_metadata(vocabulary_size="4294967295"), "'rows' has the shape"),
    (change_metadata(start="-1"), "'start' is '-1', not a number"),
    (change_metadata(start="+1"), "'start' is"),
    (change_metadata(start="01"), "'start' is"),
    (change_metadata(start="٣"), "'start' is"),
    (change_metadata(start="1\n"), "'start' is"),
    (change_metadata(start=str(STATES)), f"'start' is state {STATES}, and the automaton has {STATES} states"),
    (change_metadata(inner_start="4294967295"), "'inner_start' is state 4294967295"),
    (change_metadata(vocabulary_fingerprint="F" * 64), "fingerprint is 'FFF"),
    (change_metadata(vocabulary_fingerprint=""), "not 64 hexadecimal digits"),
    (change_metadata(source="\ud800"), "source has a lone surrogate at position 0"),
    (change("mask", 1), "the entry of 'mask' is not an object but 1"),
    (change("mask", None), "the entry of 'mask' is not an object"),
    (lambda header: header["mask"].pop("dtype"), "the entry of 'mask' lacks 'dtype'"),
    (change_tensor("mask", more=1), "the entry of 'mask' holds 'more'"),
    (change_tensor("mask", dtype="I32"), "'mask' has the type 'I32', not U32"),
    (change_tensor("mask", dtype=["U32"]), r"'mask' has the type \['U32'\], not U32"),
    (change_tensor("accepting", dtype="BOOL"), "'accepting' has the type 'BOOL', not U8"),
    (change_tensor("mask", shape=[STATES, 1]), rf"shape \[{STATES}, 1\], not \[states\]"),
    (change_tensor("mask", shape=STATES), r"not \[states\]"),
    (change_tensor("mask", shape=[-STATES]), r"not \[states\]"),
    (change_tensor("mask", shape=[float(STATES)]), r"not \[states\]"),
    (change_tensor("mask", shape=[True]), r"shape \[True\], not \[states\]"),
    (change_tensor("mask", shape=[str(STATES)]), r"not \[states\]"),
    (change_tensor("mask", shape=[STATES + 1]), f"states is {STATES}"),
    (change_tensor("distance", shape=[2**62]), "its shape needs 18,446,744,073,709,551,616"),
    (change_tensor("distance", shape=[2**64]), r"not \[states\]"),
    (change_tensor("classes", shape=[255]), "256 is 256"),
    (
        change_tensor("flip_offsets", shape=[0], data_offsets=[4 * STATES, 4 * STATES]),
        "overlaps|leaves a gap|shape",
    ),
    (change_tensor("flips", shape=[2**40]), "its shape needs"),
    (change_tensor("mask", data_offsets=[0]), r"the offsets \[0\], not a begin and an end"),
    (change_tensor("mask", data_offsets={"begin": 0}), "not a begin and an end"),
    (change_tensor("distance", data_offsets=[-4, 0]), "not a begin and an end"),
    (
        change_tensor("distance", data_offsets=[4, 4 * STATES + 4]),
        "'distance' begins at 4 and leaves a gap after the tensor before it",
    ),
    (
        change_tensor("flip_offsets", data_offsets=[0, 4]),
        "'flip_offsets' begins at 0 and overlaps the tensor",
    ),
    (change_tensor("distance", data_offsets=[0, 2**63 - 1]), "has 9,223,372,036,854,775,807 bytes"),
    (change_tensor("distance", data_offsets=[0, 0]), "'distance' has 0 bytes, and its shape needs"),
]


@pytest.mark.parametrize(("edit", "match"), BROKEN, ids=[match[:40] for _, match in BROKEN])
def test_each_rule_of_the_header(
    edit: Callable[[Header], object], match: str, refused: Callable[..., None]
) -> None:
    header, content = take_apart(GOOD)
    edit(header)
    refused(put_together(header, content), ArtifactCorruptError, match)


def test_sizes_of_the_data(refused: Callable[..., None]) -> None:
    header, content = take_apart(GOOD)
    refused(
        put_together(header, content + b"\0"),
        ArtifactCorruptError,
        "goes on for 1 byte after the last tensor",
    )
    refused(put_together(header, content[:-1]), ArtifactCorruptError, "cut off: 'classes' ends at")
    refused(put_together(header, b""), ArtifactCorruptError, "cut off: 'distance' ends at")


def test_every_truncation(tmp_path: Path) -> None:
    path = tmp_path / "it"
    for size in range(len(GOOD)):
        path.write_bytes(GOOD[:size])
        with pytest.raises(ArtifactError):
            artifact.read(path)


def test_every_altered_byte(tmp_path: Path) -> None:
    rng, path = random.Random(1), tmp_path / "it"
    for place in range(len(GOOD)):
        data = bytearray(GOOD)
        data[place] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        with pytest.raises(ArtifactError):
            artifact.read(path)


# --- a right digest over wrong content --------------------------------------------------------------------


def with_value(name: str, index: int, value: int) -> bytes:
    """The good file with one number replaced, and sealed again."""
    header, content = take_apart(GOOD)
    width = 4 if header[name]["dtype"] == "U32" else 1
    begin, end = header[name]["data_offsets"]
    place = (begin if index >= 0 else end) + index * width
    return put_together(header, content[:place] + value.to_bytes(width, "little") + content[place + width :])


WRONG = [
    ("table", 0, 1, "state 0 is absorbing"),
    ("table", -1, STATES, "transitions lead to states"),
    ("table", -1, 2**32 - 1, "transitions lead to states"),
    ("classes", 255, 255, "each byte has a class"),
    ("accepting", 0, 1, "state 0 does not accept"),
    ("accepting", 1, 2, "a state accepts"),
    ("mask", 0, 1, "state 0 .* allows nothing"),
    ("mask", -1, 2**31, "masks that exist"),
    ("distance", 0, 0, "state 0 .* leads nowhere"),
    ("distance", -1, STATES, "a distance is less"),
    ("distance", -1, 2**32 - 2, "a distance is less"),
    ("mask_row", 0, 1, "rows that exist|mask 0 is the empty one"),
    ("mask_row", -1, 2**32 - 1, "rows that exist"),
    ("flip_offsets", 0, 1, "flip ranges"),
    ("flip_offsets", 1, 1, "flip ranges|mask 0 is the empty one"),
    ("flip_offsets", -2, 2**32 - 1, "flip ranges ascend"),
    ("flip_offsets", -1, 2**32 - 1, "flip ranges cover"),
    ("flips", -1, 2**32 - 1, "flips are token ids"),
]


@pytest.mark.parametrize(("name", "index", "value", "match"), WRONG)
def test_each_rule_of_indices(
    name: str, index: int, value: int, match: str, refused: Callable[..., None]
) -> None:
    refused(with_value(name, index, value), ArtifactCorruptError, match)


def test_rows_end_with_the_vocabulary_and_flips_ascend(tmp_path: Path) -> None:
    rng = random.Random(2)
    words = [bytes(rng.choices(b"cdefg", k=5)) for _ in range(1000)]
    vocabulary = Vocabulary([*words, *EVERY_BYTE, b""], len(words) + 256)
    automaton = compile(regex(r"[c-g]*a[c-f]{0,3}"), vocabulary)
    data = artifact.serialize(automaton.arrays(), vocabulary.fingerprint, len(vocabulary), "")
    header, content = take_apart(data)
    # The last word of the last row, and a flip that is now twice in the mask with the most of them.
    offsets = automaton.arrays()["flip_offsets"].tolist()
    most = max(range(len(offsets) - 1), key=lambda mask: offsets[mask + 1] - offsets[mask])
    twice = header["flips"]["data_offsets"][0] + 4 * offsets[most]
    for place, new, match in [
        (header["rows"]["data_offsets"][1] - 4, b"\xff" * 4, "rows end with the vocabulary"),
        (twice + 4, content[twice : twice + 4], "flips ascend"),
    ]:
        (tmp_path / "it").unlink(missing_ok=True)
        (tmp_path / "it").write_bytes(put_together(header, content[:place] + new + content[place + 4 :]))
        with pytest.raises(ArtifactCorruptError, match=f"/it is damaged .* the rule that {match}"):
            TokenAutomaton.load(tmp_path / "it", vocabulary)


def test_the_core_refuses_an_empty_vocabulary() -> None:
    with pytest.raises(VocabularyError, match="at least one token"):
        _native.Vocabulary(b"", np.zeros(1, np.uint64), None, None, [])
