"""What may follow a text, and how bytes are shown to people."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tokenfst import Language, regex
from tokenfst.automata.languages.display.explanation import Following
from tokenfst.automata.languages.display.readable import cells, character_class
from tokenfst.cli.output.terminal import counted, duration, json_bytes, plain, pointed, quoted
from tokenfst.common.sizes import byte_size

SURROGATES = range(0xD800, 0xE000)


def expand(found: Following) -> set[int]:
    return {point for first, last in found.characters for point in range(first, last + 1)}


# --- what may follow ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [(r'"[^"\\]*"', '"é'), (r"\w{2}-\d", "ß"), (r"[à-ÿ漢-潭𝔘-𝔲]|x\Z", ""), ("ab", "a"), (r"(?i:k)", "")],
)
def test_against_every_character(pattern: str, prefix: str) -> None:
    language = regex(pattern)
    data = prefix.encode()
    found = language.following(data)
    assert found.ends is language.accepts(data)
    assert found.others == b""
    accepted = language.automaton.viable_prefix
    slow = {
        point
        for point in range(sys.maxunicode + 1)
        if point not in SURROGATES and accepted(data + (more := chr(point).encode())) == len(data) + len(more)
    }
    assert expand(found) == slow
    assert list(found.characters) == sorted(found.characters)


def test_bytes_that_begin_no_character() -> None:
    language = (
        Language.literal(b"a\x80") | Language.literal(b"a\xe0\x80\x80") | Language.literal(b"a\xed\xa0\x80")
    )
    found, ending = language.following(b"a"), language.completion(b"a")
    assert found == Following(False, (), b"\x80\xe0\xed") and ending == b"\x80"
    assert str(found) == r"bytes [\x80\xe0\xed]"
    assert Language.any_bytes().following(b"").others == bytes([*range(0x80, 0xC2), *range(0xF5, 0x100)])


@given(st.text("ab", max_size=8))
def test_the_ending_completes_the_prefix(prefix: str) -> None:
    language = regex("[ab]*c(ab){2}")
    assert language.completion(prefix.encode()) == b"cabab"


def test_long_prefixes() -> None:
    plain_one = regex(r"a*é?b")
    assert (
        str(plain_one.following(b"a" * 100_000)) == "[abé]" and plain_one.completion(b"a" * 100_000) == b"b"
    )
    wide = regex(r"[ax]*a[ax]{40}|x*é")
    assert str(wide.following(b"x" * 2_000)) == "[axé]" and wide.completion(b"x" * 2_000) == "é".encode()


@pytest.mark.parametrize(
    ("ranges", "shown"),
    [
        (((97, 97),), '"a"'),
        (((10, 10),), '"\\n"'),
        (((48, 57),), "[0-9]"),
        (((97, 98), (100, 100)), "[abd]"),
        (((0, 33), (35, 0xD7FF), (0xE000, 0x10FFFF)), '[^"]'),
        (((0, 0xD7FF), (0xE000, 0x10FFFF)), "any character"),
        (((45, 45), (92, 94)), r"[\-\\-\^]"),
        (tuple((point, point) for point in range(0x100, 0x200, 4)), "[ĀĄĈČĐĔĘĜĠĤĨĬ…]"),
    ],
)
def test_classes_are_written_as_in_patterns(ranges: tuple[tuple[int, int], ...], shown: str) -> None:
    assert character_class(ranges) == shown


def test_following_in_words() -> None:
    assert str(Following(True, ((97, 97),), b"")) == '"a" or the end of the text'
    assert str(Following(True, ((97, 97),), b"\x80")) == '"a", byte \\x80 or the end of the text'
    assert str(Following(True, (), b"")) == "the end of the text"


# --- bytes as text ------------------------------------------------------------------------------------


@given(st.binary(max_size=40))
def test_cells_cover_all_bytes(data: bytes) -> None:
    begins = [begin for begin, _ in cells(data)]
    assert begins == sorted(set(begins)) and (not data or begins[0] == 0)
    assert all(shown.isprintable() and shown for _, shown in cells(data))
    assert plain(data) == "".join(shown for _, shown in cells(data))


@given(st.text(max_size=60), st.integers(0, 60))
def test_the_caret_is_under_its_character(text: str, at: int) -> None:
    at = min(at, len(text))
    data, place = text.encode("utf-8", "ignore"), len(text[:at].encode("utf-8", "ignore"))
    line, mark = pointed(data, place, 1_000)
    shown = cells(data)
    before = "".join(each for begin, each in shown if begin < place)
    assert line == plain(data)
    assert mark.index("^") == cell_len(before)


def test_long_lines_are_cut_around_the_place() -> None:
    data = b"x" * 500 + b"!" + b"y" * 500
    line, mark = pointed(data, 500)
    assert cell_len(line) <= 74 and line[mark.index("^")] == "!"
    assert line.startswith("…x") and line.endswith("y…")
    assert pointed(b"abc", 3) == ("abc", "   ^")


def test_quoted_and_json() -> None:
    assert quoted(b'a"\\\n\xff') == r'"a\"\\\n\xff"'
    assert quoted(b"abcdefgh", 4) == '"ab…gh"'
    assert json_bytes(b"\xff") == {"text": None, "hex": "ff"}
    assert json_bytes("é".encode()) == {"text": "é", "hex": "c3a9"}


def test_figures() -> None:
    assert [counted(n, "state") for n in (0, 1, 2000)] == ["0 states", "1 state", "2,000 states"]
    assert counted(2, "entry") == "2 entries"
    assert [byte_size(n) for n in (0, 999, 1000, 999_949, 999_950, 5e9, 5e13)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "999.9 kB",
        "1.0 MB",
        "5.0 GB",
        "50,000.0 GB",
    ]
    assert [duration(s) for s in (0.0123, 0.9996, 3.44, 99.9, 125)] == [
        "12 ms",
        "1.0 s",
        "3.4 s",
        "99.9 s",
        "2:05 min",
    ]
