"""The worked diffs of CONTRIBUTING.md work: what they add runs, and what they add it to is in the files."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import tokenfst
from tokenfst.automata.formats import host, registry
from tokenfst.decoding.models.language_model import CallbackModel
from tokenfst.errors import LogitsError, TokenLimitError

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^ *```diff\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
VOCABULARY = tokenfst.Vocabulary([*(bytes([byte]) for byte in range(256)), b"12", b""], eos_token_id=257)


def parts() -> dict[str, list[str]]:
    """The lines of each file that a diff changes or makes."""
    found = {}
    for block in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text()):
        for part in re.split(r"^\+\+\+ ", textwrap.dedent(block), flags=re.MULTILINE)[1:]:
            path, *lines = part.splitlines()
            found[path] = lines
    return found


PARTS = parts()
ENGINE, DECODER = "decoding/engines/example.py", "decoding/search/greedy.py"


def run(path: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """The names after the lines that are added to a file."""
    added = "".join(f"{line[1:]}\n" for line in PARTS[path] if line.startswith("+"))
    exec(compile(added, path, "exec", dont_inherit=True), namespace)
    return namespace


def test_the_files_are_there_but_those_that_are_new() -> None:
    assert {path for path in PARTS if not (ROOT / path).exists()} == {ENGINE, DECODER}
    assert {path.split("/")[0] for path in PARTS} == {"Makefile", "automata", "decoding", "src", "tests"}


@pytest.mark.parametrize("path", [path for path in PARTS if path not in (ENGINE, DECODER)])
def test_lines_around_are_in_the_files(path: str) -> None:
    there = (ROOT / path).read_text().splitlines()
    for line in PARTS[path]:
        assert line.startswith("+") or line[1:] in there, line


def test_the_format() -> None:
    made = run("automata/formats/host.py", dict(vars(host)))["mac_address"]
    assert made().accepts("00:1b:63:84:45:E6")
    assert not made().accepts("00-1b-63-84-45-e6") and not made().accepts("00:1b:63:84:45")
    row = "".join(line[1:] for line in PARTS["automata/formats/registry.py"] if line.startswith("+"))
    given = eval(
        row.strip().rstrip(","),
        {"Format": registry.Format, "formats_host": SimpleNamespace(mac_address=made)},
    )
    assert given.name == "mac-address" and given.build is made


def test_the_decoder() -> None:
    scores = torch.zeros(258)
    scores[256] = 1.0
    model = CallbackModel(lambda ids: scores.expand(len(ids), -1), 258)
    greedy = run(DECODER, {"__name__": "greedy"})["greedy"]
    automaton = tokenfst.compile(tokenfst.regex("[0-9]{2,4}x"), VOCABULARY)
    assert greedy(model, [[1], [2]], automaton, max_new_tokens=4).texts == [b"1212x"] * 2
    assert greedy(model, [[1]], automaton, max_new_tokens=2).texts == [b"12x"]
    with pytest.raises(TokenLimitError):
        greedy(model, [[1]], automaton, max_new_tokens=1)


def test_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)  # the checks of arguments look for the module
    constraint = run(ENGINE, vars(module))["ExampleConstraint"]
    automaton = tokenfst.compile(tokenfst.regex("[0-9]{2,4}x"), VOCABULARY)
    ids, logits = [*b"call "], np.zeros(258, np.float32)
    logits[ord("0")] = 1.0
    processor = constraint(automaton, 4)
    while len(ids) < 5 + 4:
        ids.append(int(processor(np.array(ids), logits).argmax()))
    assert bytes(ids[5:]) == b"000x"
    with pytest.raises(LogitsError):
        constraint(automaton)(np.array([1]), np.full(258, -np.inf, np.float32))
