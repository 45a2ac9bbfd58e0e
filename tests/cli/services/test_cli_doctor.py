"""``tokenfst doctor``: what is there, what is missing, and what the missing would give."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path

import pytest
from support.programs.command_line import tokenfst

from tokenfst.cli.services import doctor

PYPROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"


@pytest.fixture
def requirements(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this checkout says that it needs: an installed package may be older than that."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    texts = list(project["dependencies"])
    for extra, some in project["optional-dependencies"].items():
        texts += [f'{text}; extra == "{extra}"' for text in some]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: texts)


def without(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    """As if packages had other versions, or were not there."""
    found = importlib.metadata.version

    def version(name: str) -> str:
        if name in versions:
            if (other := versions[name]) is None:
                raise importlib.metadata.PackageNotFoundError(name)
            return other
        return found(name)

    monkeypatch.setattr(importlib.metadata, "version", version)


@pytest.mark.usefixtures("requirements")
def test_everything_is_there() -> None:
    done = tokenfst("doctor", "--json")
    assert done.code == 0 and done.json["command"] == "doctor"
    assert {each["name"] for each in done.json["needed"]} == {"numpy", "safetensors", "typer", "rich"}
    assert set(done.json["extras"]) == set(doctor.GIVES)
    assert all(some["packages"] for some in done.json["extras"].values())
    assert "scalar" in done.json["computer"]["vectors"]


@pytest.mark.usefixtures("requirements")
def test_what_is_missing_is_said_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, lark=None, pydantic="1.10.2")
    done = tokenfst("doctor")
    assert done.code == 0, "extras may be missing"
    assert "missing (wanted: >=1.2)" in done.out and 'pip install "tokenfst[grammars]"' in done.out
    assert "1.10.2 is too old (wanted: >=2.13)" in done.out and 'pip install "tokenfst[pydantic]"' in done.out


@pytest.mark.usefixtures("requirements")
def test_what_is_needed_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, numpy="1.25.9")
    assert tokenfst("doctor").code == 1


@pytest.mark.usefixtures("requirements")
def test_an_extra_that_the_installed_version_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of an editable install may be older than its code."""
    requires = importlib.metadata.requires
    monkeypatch.setattr(
        importlib.metadata,
        "requires",
        lambda name: [each for each in requires(name) or [] if "store" not in each],
    )
    done = tokenfst("doctor")
    assert done.code == 0 and "[pydantic]" in done.out and "[store]" not in done.out


def test_every_extra_for_users_is_explained() -> None:
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert set(doctor.GIVES) == set(extras) - {"all", "bench", "dev", "experiments", "site"}


def test_without_its_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    done = tokenfst("doctor")
    assert done.code == 0 and "tokenfst" in done.out
