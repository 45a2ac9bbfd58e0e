"""What is said of the package in several places is the same: the conda recipe, headings of the changelog, and the
sources that are checked for other platforms.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def listed(recipe: str, part: str) -> set[str]:
    """The packages of one part of the recipe's requirements, as pyproject.toml writes them."""
    block = re.search(rf"^  {part}:\n((?:    - .*\n)+)", recipe, re.MULTILINE)
    assert block is not None, part
    return {line.strip().removeprefix("- ").replace(" ", "") for line in block[1].splitlines()}


def test_the_conda_recipe_says_what_the_project_says() -> None:
    recipe = (ROOT / "tools" / "conda" / "meta.yaml").read_text()
    project = PROJECT["project"]
    assert f'set version = "{project["version"]}"' in recipe
    assert listed(recipe, "run") == {f"python{project['requires-python']}", *project["dependencies"]}
    assert listed(recipe, "host") - {"python", "pip"} == set(PROJECT["build-system"]["requires"])
    assert all(f"{name} = {target}" in recipe for name, target in project["scripts"].items())
    assert project["license"] in recipe


def test_every_change_is_under_a_kind_of_keep_a_changelog() -> None:
    version = kind = None
    for line in (ROOT / "CHANGELOG.md").read_text().splitlines():
        if line.startswith("## "):
            version, kind = line, None
            assert re.fullmatch(r"## (Unreleased|\[?\d+\.\d+\.\d+\]? - \d{4}-\d\d-\d\d)", line), line
        elif line.startswith("### "):
            kind = line.removeprefix("### ")
            assert kind in KINDS and version, line
        elif line.startswith("- "):
            assert kind is not None, f"under no heading: {line}"


@pytest.fixture(scope="module")
def platforms() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_platforms", ROOT / "tools" / "check_platforms.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_source_of_the_core_is_checked_for_other_platforms(platforms: ModuleType) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "native/*.cpp"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    checked = [source for together in platforms.units().values() for source in together]
    assert sorted(checked) == sorted(set(listed.stdout.split()) - {"native/wasm/stubs.cpp"})


def test_what_a_compiler_complains_about_is_found(platforms: ModuleType) -> None:
    said = (
        "zig: warning: argument unused during compilation: '-c'\n"
        "native/a.hpp:35:38: error: use of undeclared identifier 'hear'\n"
        "native/a.hpp:36:1: warning: unused parameter 'x'\n"
        "native/a.cpp:1:1: error: failed to rename 'tmp/a.o' into 'b.o': FileNotFound\n"
    )
    assert [line.partition(": ")[0] for line in platforms.complaints(said)] == [
        "native/a.hpp:35:38",
        "native/a.hpp:36:1",
    ]


def test_a_source_that_another_platform_does_not_take_is_found(tmp_path: Path) -> None:
    """``std::signal`` was called with a name that had changed, and no compiler on Linux read that line."""
    pytest.importorskip("ziglang", reason="make check-platforms installs ziglang")
    bad = tmp_path / "bad.cpp"
    bad.write_text("#ifdef _WIN32\nint wrong = nowhere;\n#endif\n")
    ends = []
    for target in ("x86_64-windows-gnu", "x86_64-linux-musl"):
        command = [sys.executable, str(ROOT / "tools" / "check_platforms.py"), target, "--unit", str(bad)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        ends.append((done.returncode, "nowhere" in done.stdout))
    assert ends == [(1, True), (0, False)]
