"""What is said of the package in several places is the same: the conda recipe, and the changelog's headings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

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
