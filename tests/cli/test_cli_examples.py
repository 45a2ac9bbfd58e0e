"""The examples at the end of the help pages: each command has some, they are shown as they are, and they run."""

from __future__ import annotations

import re
import shlex

import pytest
from support.programs.command_line import tokenfst

from tokenfst.cli.output.examples import EXAMPLES
from tokenfst.cli.program import COMMANDS


def test_every_command_shows_its_examples() -> None:
    assert list(EXAMPLES) == list(COMMANDS)
    for command, examples in EXAMPLES.items():
        page = re.sub(r"\s+", "", tokenfst(command, "--help").out)
        for example in examples:
            assert re.sub(r"\s+", "", example) in page, f"{command}\n{page}"


def test_all_examples_run(monkeypatch: pytest.MonkeyPatch, tmp_path: pytest.TempPathFactory) -> None:
    monkeypatch.chdir(str(tmp_path))
    for command, examples in EXAMPLES.items():
        if command == "explore":  # it serves until it is interrupted: tests/cli/services/test_cli_explore.py
            continue
        for example in examples:
            program, name, *arguments = shlex.split(example)
            assert (program, name) == ("tokenfst", command)
            done = tokenfst(name, *arguments)
            assert done.code == 0, f"{example}\n{done.out}{done.err}"
