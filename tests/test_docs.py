"""Every snippet of README.md and docs/ runs.

``python`` blocks of one page share a namespace and run in order, in an empty folder. In ``console`` blocks each line
that begins with ``$ `` is a command: ``tokenfst`` lines are run there too, and must exit with 0, or with N where the
line ends in ``# exit N``; those of README.md each in a process of its own, others in this one. The page of the command
line is run in tests/cli/test_cli_page.py, which compares the output too. A block that cannot run has the comment
``<!-- not run: why -->`` above it.

The model of the hub that the first snippets name is the small one of ``examples/`` (``support/programs/hub.py``).
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from support.programs import hub
from support.programs.command_line import tokenfst_merged

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "examples" / "small_model" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
ELSEWHERE = ROOT / "docs" / "command-line.md"
BLOCK = re.compile(
    r"^(?P<note><!-- not run: [^\n]+ -->\n)?```(?P<kind>python|console)\n(?P<body>.*?)^```",
    re.DOTALL | re.MULTILINE,
)
BLOCKS = {page: [match for match in BLOCK.finditer(page.read_text()) if not match["note"]] for page in PAGES}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """The models of the snippets are small: a second thread is of no use, and waits where others compute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if BLOCKS[page] and page != ELSEWHERE],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hub.place(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCKS[page]:
        line = page.read_text()[: block.start()].count("\n") + 2
        if block["kind"] == "python":
            exec(compile("\n" * (line - 1) + block["body"], str(page), "exec", dont_inherit=True), namespace)
        else:
            for command in re.findall(r"^\$ (tokenfst .*(?:\\\n.*)*)", block["body"], re.MULTILINE):
                run(command, apart=page == ROOT / "README.md")


FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```\n", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_are_whole(page: Path) -> None:
    """Also those that are not run: Python parses them, and no fence is left over."""
    text = page.read_text() + "\n"
    for kind, body in FENCED.findall(text):
        if kind == "python":
            ast.parse(body)
    assert "```" not in FENCED.sub("", text)


def run(command: str, apart: bool) -> None:
    """Run one command, ``apart`` in a process of its own."""
    expected = re.search(r"# exit (\d+)\s*$", command)
    command = command.replace("\\\n", " ")
    if not apart:
        code, output = tokenfst_merged(command)
        assert code == int(expected[1] if expected else 0), f"{command}\n{output}"
        return
    words = shlex.split(command, comments=True)
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "110"}
    done = subprocess.run(
        [sys.executable, "-m", "tokenfst", *words[1:]],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == int(expected[1] if expected else 0), f"{command}\n{done.stdout}{done.stderr}"


def test_readme_shows_the_three_doors() -> None:
    text = (ROOT / "README.md").read_text()
    kinds = [block["kind"] for block in BLOCKS[ROOT / "README.md"]]
    assert kinds.count("python") >= 2 and "console" in kinds
    assert "make demo" in text and "make test" in text


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
