"""Pictures on the command line: heat maps of masks, formats, plots of artifacts."""

from __future__ import annotations

import re
from pathlib import Path

from support.programs.command_line import tokenfst

from tokenfst import Vocabulary


def test_masks_along_a_text_are_drawn(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    Vocabulary([*(bytes((byte,)) for byte in range(256)), b"yes", b""], 257).to_json(tokens)
    spec = f"tokens:{tokens}"
    shown = tokenfst("draw", "(yes|no)!", "-v", spec, "--text", "yes!")
    assert shown.code == 0 and shown.out.count("BGCOLOR") == 3 and "not allowed" not in shown.err
    refused = tokenfst("draw", "(yes|no)!", "-v", spec, "--text", "yes?", "-o", tmp_path / "x.dot", "--json")
    assert refused.json["tokens"] == 2 and "token 2 of the text is not allowed" in refused.err
    assert tokenfst("draw", "a", "--text", "a").code == 2
    assert tokenfst("draw", "a", "-v", spec, "--text", "a", "--minimize").code == 2


def test_the_format_is_said_or_is_that_of_the_file(tmp_path: Path) -> None:
    assert tokenfst("draw", "a", "--format", "dot", "-o", tmp_path / "picture").code == 0
    assert (tmp_path / "picture").read_text().startswith("digraph")
    refused = tokenfst("draw", "a", "-o", tmp_path / "picture")
    assert refused.code == 2 and "--format" in refused.err
    assert tokenfst("draw", "a", "--json").code == 2


def test_an_artifact_is_plotted(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    Vocabulary([*(bytes((byte,)) for byte in range(256)), b"yes", b""], 257).to_json(tokens)
    made = tmp_path / "a.safetensors"
    assert tokenfst("compile", "[a-z]{1,30}", "-v", f"tokens:{tokens}", "-o", made).code == 0
    done = tokenfst("inspect", made, "--plot", tmp_path / "a.svg", "--json")
    picture = (tmp_path / "a.svg").read_text()
    assert done.code == 0 and done.json["states"] == 31
    assert (
        picture.startswith("<svg")
        and "tokens to acceptance: states: 0 30, 1 1;" in picture
        and "10 to 99 30" in picture
    )
    assert tokenfst("inspect", made, "--plot", tmp_path / "a.png").code == 2


def test_bars_are_as_long_as_their_values() -> None:
    from tokenfst.automata.pictures.charts import Bar, Chart, svg

    plain = svg([Chart("t <", [Bar("a", 1, "1"), Bar("b", 2, "2", first=True), Bar("c", 0, "0")])])
    assert re.findall(r'width="([0-9.]+)" height="16"', plain) == ["190.0", "380.0", "0.0"]
    assert "t &lt;" in plain and plain.count('class="first"') == 1
    logs = svg([Chart("t", [Bar("a", 1e-6, ""), Bar("b", 1e-3, ""), Bar("c", 0, "")], logarithmic=True)])
    assert re.findall(r'width="([0-9.]+)" height="16"', logs) == ["95.0", "380.0", "0.0"]
    assert "<svg" in svg([Chart("none", [])])
    inside = svg([Chart("t", [Bar("a", 1, "1")])], inside=True)
    rules = re.findall(r"([^{}]+){", inside.partition("<style>")[2].partition("</style>")[0])
    assert len(rules) == 4 and all(rule.startswith(".tokenfst-chart ") for rule in rules)
