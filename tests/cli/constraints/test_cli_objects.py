"""``--python`` and ``--template`` on the command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from support.programs.command_line import tokenfst, write_toy

from tokenfst import load, load_vocabulary

MODULE = """
from __future__ import annotations
from dataclasses import dataclass, field

@dataclass
class Point:
    x: int
    y: int = 0

@dataclass
class Tree:
    children: list[Tree] = field(default_factory=list)

def move(to: Point) -> None: ...

complex_number: complex
number = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shapes_of_test.py").write_text(MODULE)
    return tmp_path


def test_a_dataclass_is_checked_and_a_function_is_called() -> None:
    assert tokenfst("check", "--python", "shapes_of_test:Point", "Point(x=1, y=-2)").code == 0
    assert tokenfst("check", "--python", "shapes_of_test:Point", "Point(x=1.5)").code == 1
    assert tokenfst("check", "--python", "shapes_of_test:move", "move(to=Point(x=3))").code == 0
    assert tokenfst("check", "--python", "shapes_of_test:Tree", "Tree(children=[Tree()])").code == 0
    assert (
        tokenfst("check", "--python", "shapes_of_test:Tree", "--depth", "0", "Tree(children=[Tree()])").code
        == 1
    )


def test_how_calls_are_written() -> None:
    words = ["check", "--python", "shapes_of_test:Point"]
    assert tokenfst(*words, "--arguments", "positional", "Point(1, 2)", "Point(1)").code == 0
    assert tokenfst(*words, "--arguments", "positional", "Point(x=1)").code == 1
    assert tokenfst(*words, "--arguments", "any", "Point(1, y=2)").code == 0
    assert tokenfst(*words, "--defaults", "write", "Point(x=1)").code == 1
    assert tokenfst(*words, "--defaults", "omit", "Point(x=1, y=2)").code == 1


def test_a_template_is_compiled(folder: Path) -> None:
    spec = write_toy(folder)
    words = ("--template", "a{x}{{", "--hole", "x=b*", "-v", spec, "-o", "out.safetensors")
    assert tokenfst("check", *words[:4], "abb{").code == 0
    assert tokenfst("compile", "--template", "a{x}b", "--hole", "x=b*", *words[4:]).code == 0
    assert load("out.safetensors", load_vocabulary(spec)).matcher().accept_token(0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--python", "shapes_of_test"], "MODULE:NAME"),
        (["--python", "no_such_module:A"], "no module"),
        (["--python", "shapes_of_test:Missing"], "has no"),
        (["--python", "./shapes_of_test.py:Point"], "takes MODULE:NAME"),
        (["--python", "..:Point"], "takes MODULE:NAME"),
        (["--python", "shapes_of_test:Point", "--template", "a"], "give one"),
        (["--python", "shapes_of_test:Point", "--flags", "i"], "--flags"),
        (["--python", "shapes_of_test:Point", "--depth", "1"], "--depth"),
        (["--hole", "x=a"], "--template"),
        (["x", "--defaults", "omit"], "go with --python"),
        (["--template", "{x}", "--hole", "x"], "NAME=PATTERN"),
        (["--template", "{x}", "--hole", "x=a", "--hole", "x=b"], "twice"),
    ],
)
def test_misuse(words: list[str], message: str) -> None:
    done = tokenfst("check", *words, "text")
    assert done.code == 2 and message in done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ndef (", "SyntaxError: invalid syntax (module_of_test.py, line 2)"),
        ("x = 1\ny = x / 0", "ZeroDivisionError: division by zero ({folder}/module_of_test.py, line 2)"),
        ("import missing_of_test", "ModuleNotFoundError: No module named 'missing_of_test' ({folder}/module"),
        ("import sys\nsys.exit(0)", "SystemExit: 0 ({folder}/module_of_test.py, line 2)"),
    ],
)
def test_a_module_that_fails_is_an_error_of_the_user(
    text: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that ends the program with 0 would otherwise say yes to every text."""
    monkeypatch.delitem(sys.modules, "module_of_test", raising=False)
    (folder / "module_of_test.py").write_text(text)
    importlib.invalidate_caches()
    done = tokenfst("check", "--python", "module_of_test:X", "text")
    assert done.code == 2 and not done.out
    assert f"the module module_of_test cannot be imported: {message.format(folder=folder)}" in done.err


def test_errors_of_the_constraint_are_shown() -> None:
    done = tokenfst("check", "--python", "shapes_of_test:number", "3")
    assert done.code not in (0, 1) and "not supported" in done.err
    done = tokenfst("check", "--template", "a {x}", "a")
    assert done.code not in (0, 1) and "nothing is given for the hole {x}" in done.err and "  ^" in done.err
