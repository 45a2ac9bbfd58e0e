"""Building the page without a server: what is missing is said, and the page is the server's, told who answers."""

from __future__ import annotations

import importlib.util
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Any:
    """tools/explorer_page/build.py as a module."""
    place = ROOT / "tools" / "explorer_page" / "build.py"
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("explorer_page_build", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delitem(sys.modules, "core", raising=False)
    return module


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["--need"], 1)])
def test_what_is_missing_is_said(
    build: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any, arguments: list[str], code: int
) -> None:
    monkeypatch.setattr(build.core, "OLDEST", build.core.NEWEST)
    monkeypatch.setattr(build.shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    monkeypatch.setattr(build, "_pyodide", lambda: ROOT)
    monkeypatch.setattr(sys, "argv", ["build.py", *arguments])
    assert build.main() == code
    assert re.search(r"not built: there is no clang .*apt-get install clang-22", capsys.readouterr().out)


def test_every_unit_of_the_core_but_transducers_is_compiled(build: Any) -> None:
    sources = build.core._sources()
    units = {str(path.relative_to(ROOT)) for path in (ROOT / "native").rglob("*.cpp")}
    assert set(sources) == {path for path in units if "/fst/" not in path} and len(sources) > 8


def test_the_page_is_told_who_answers(build: Any) -> None:
    page = build._index(12_000_000)
    assert 'data-answers="worker"' in page and "12 MB" in page and "'wasm-unsafe-eval'" in page
    assert "data-answers" not in (ROOT / "src" / "tokenfst" / "explore" / "page" / "index.html").read_text()


def test_what_python_imports_there_is_packed(
    build: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("lark")
    monkeypatch.setattr(build, "WORK", tmp_path)
    (tmp_path / "_native.so").touch()
    with zipfile.ZipFile(build._package(tmp_path / "_native.so")) as archive:
        names = set(archive.namelist())
    assert {
        "tokenfst/_native.abi3.so",
        "tokenfst/explore/questions.py",
        "numpy/typing.py",
        "lark/lark.py",
    } <= names
    assert not any(name.startswith(("tokenfst/server/", "tokenfst/cli/")) for name in names)
