"""Drawings: the text is ours and exact, images need Graphviz, and both fail by name."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from tokenfst.automata.expressions.expression import ALL_BYTES
from tokenfst.automata.languages.display.drawing import bytes_label
from tokenfst.automata.languages.language import Language
from tokenfst.automata.pictures.drawing import Edge, check_size, draw_graph
from tokenfst.automata.regex.translate import regex
from tokenfst.errors import DrawingError, MissingDependencyError

needs_dot = pytest.mark.skipif(
    shutil.which("dot") is None, reason="Graphviz's program `dot` is not installed"
)


def bits(*chosen: int) -> int:
    return sum(1 << byte for byte in chosen)


@pytest.mark.parametrize(
    ("some", "label"),
    [
        (bits(ord("a")), "a"),
        (bits(*b"0123456789"), "0-9"),
        (bits(*range(0x80, 0xC0)), r"\x80-\xbf"),
        (bits(*b"ABC_"), "[A-C_]"),
        (bits(ord(" ")), "␣"),
        (bits(ord('"')), '"'),
        (bits(ord("\\")), r"\\"),
        (bits(ord("-")), r"\-"),
        (bits(*b"\t\n\r"), r"[\t-\n\r]"),
        (bits(0), r"\x00"),
        (bits(127), r"\x7f"),
        (bits(255), r"\xff"),
        (ALL_BYTES, "any"),
        (ALL_BYTES & ~bits(*b'"\\'), r'[^"\\]'),
        (ALL_BYTES & ~bits(0), r"\x01-\xff"),
    ],
)
def test_bytes_label(some: int, label: str) -> None:
    assert bytes_label(some) == label


def test_long_labels_are_shortened() -> None:
    label = bytes_label(bits(*range(0, 256, 2)))
    assert label.endswith("…]")
    assert len(label) < 70


def test_dot_text_is_the_machine() -> None:
    dot = Language.union_of(map(Language.literal, ["ab", "a\\"])).draw().dot
    edges = re.findall(r'^  (\d+) -> (\d+) \[label="(.*)"\];$', dot, re.MULTILINE)
    finals = set(re.findall(r"^  (\d+) \[shape=doublecircle\];$", dot, re.MULTILINE))
    start = re.findall(r'^  "" -> (\d+);$', dot, re.MULTILINE)
    assert [(label, target in finals) for source, target, label in edges if [source] == start] == [
        ("a", False)
    ]
    assert {label for *_, label in edges} == {"a", "b", r"\\\\"} or len(edges) == 2
    assert "0" not in {state for edge in edges for state in edge[:2]}  # DEAD is not drawn
    assert dot == Language.union_of(map(Language.literal, ["ab", "a\\"])).draw().dot


def test_generic_graph_quotes_labels() -> None:
    """What token automata use: any text as label."""
    dot = draw_graph(4, [7], [Edge(4, 7, '<"a\\n"\n>')], title='x "y"').dot
    assert r'4 -> 7 [label="<\"a\\n\"\\n>"];' in dot
    assert r'label="x \"y\""' in dot
    assert "7 [shape=doublecircle]" in dot


def test_empty_language() -> None:
    assert "doublecircle" not in Language.empty().draw().dot


def test_too_large() -> None:
    with pytest.raises(DrawingError, match=r"301 states, and at most 200 are drawn; minimize"):
        Language.literal("a" * 300).draw()
    assert Language.literal("a" * 300).draw(max_states=301).dot
    check_size(3, 3)


@needs_dot
@pytest.mark.parametrize(
    ("suffix", "magic"),
    [("svg", b"<?xml"), ("png", b"\x89PNG"), ("html", b"<!doctype html>"), ("dot", b"digraph")],
)
def test_files(tmp_path: Path, suffix: str, magic: bytes) -> None:
    language = regex(r'"[^"\\]*"|[<>&]+|日|\\ ')
    path = tmp_path / f"machine.{suffix}"
    language.draw(path)
    assert path.read_bytes().startswith(magic)
    other = tmp_path / "machine"
    language.draw(other, format=suffix)
    assert other.read_bytes().startswith(magic)


@needs_dot
def test_labels_survive_graphviz() -> None:
    svg = Language.literal('\\"<&\x00').draw().render("svg").decode()
    for shown in (r"\\", "&quot;", "&lt;", "&amp;", r"\x00"):
        assert f">{shown}</text>" in svg
    assert "<svg" in (Language.literal("a").draw()._repr_svg_() or "")


def test_unknown_formats(tmp_path: Path) -> None:
    with pytest.raises(DrawingError, match="'jpeg' is not known; use one of svg, png, html, dot"):
        Language.literal("a").draw(tmp_path / "x.png", format="jpeg")
    with pytest.raises(DrawingError, match=r"'x\.txt' does not end in \.svg, \.png, \.html, \.dot"):
        Language.literal("a").draw(tmp_path / "x.txt")
    assert not list(tmp_path.iterdir())


def test_without_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = Language.literal("a").draw()
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        with pytest.raises(MissingDependencyError, match="Graphviz's program `dot`"):
            picture.save(tmp_path / "x.svg")
        assert picture._repr_svg_() is None
    monkeypatch.setitem(sys.modules, "graphviz", None)
    with pytest.raises(MissingDependencyError, match=r"tokenfst\[fst\]"):
        picture.save(tmp_path / "x.png")
    picture.save(tmp_path / "x.dot")
    assert [path.name for path in tmp_path.iterdir()] == ["x.dot"]
