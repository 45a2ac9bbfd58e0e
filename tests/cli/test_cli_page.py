"""docs/command-line.md shows what the program prints: every example is run, and its output compared.

``python tests/cli/test_cli_page.py`` writes the present output into the page. Times differ from run to run and are not
compared.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command-line.md"
BLOCK = re.compile(r"^```(?P<kind>python|console)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
TIME = re.compile(r"[0-9.]+ (ms|s)$|(?<=\"seconds\": )[0-9.]+", re.MULTILINE)


def replay(body: str) -> str:
    """A console block with the output that its commands have now."""
    from support.programs.command_line import tokenfst_merged

    lines = []
    for command in re.findall(r"^\$ (tokenfst .*)$", body, re.MULTILINE):
        code, output = tokenfst_merged(command)
        expected = re.search(r"# exit (\d+)$", command)
        assert code == int(expected[1] if expected else 0), f"{command}: exit code {code}\n{output}"
        lines.append(f"$ {command}\n{output}")
    return "".join(lines)


def replayed(page: str) -> str:
    """The page with the output of now, made in the present folder."""

    def block(match: re.Match[str]) -> str:
        if match["kind"] == "python":
            exec(match["body"], {})
            return match[0]
        return f"```console\n{replay(match['body'])}```"

    return BLOCK.sub(block, page)


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text()
    assert len(BLOCK.findall(page)) >= 7  # one for each command
    assert TIME.sub("TIME", replayed(page)) == TIME.sub("TIME", page)


def test_the_page_names_every_command_and_option() -> None:
    from support.programs.command_line import tokenfst

    from tokenfst.cli.program import COMMANDS

    page = PAGE.read_text()
    for command in COMMANDS:
        assert f"## {command}" in page
        shown = set(re.findall(r"--[a-z][a-z-]+", tokenfst(command, "--help").out))
        assert not [option for option in shown if option not in page], command


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        PAGE.write_text(replayed(PAGE.read_text()))
        print(f"wrote {os.path.relpath(PAGE, PAGE.parent.parent)}")
