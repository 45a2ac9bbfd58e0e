"""The notebooks run, show what their files say, and have all of their outputs.

``python docs/notebooks/run.py`` writes the outputs. Pictures depend on Graphviz' version: only their number counts.
"""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def texts(notebook: dict[str, Any]) -> list[str]:
    """What each code cell shows as text. Fingerprints of values stay; addresses of objects do not."""
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            parts = [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
            shown.append(re.sub(r" at 0x[0-9a-f]+", "", "".join(text for part in parts for text in part)))
    return shown


def test_all_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "composition",
        "constraints",
        "decoding",
        "detokenizer",
        "lattices",
        "noisy_channel",
        "shallow_fusion",
        "transducers",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_files_are_notebooks_with_outputs(path: Path) -> None:
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert notebook["cells"][0]["source"][0].startswith("# ")
    assert sum(bool(cell["outputs"]) for cell in cells) >= len(cells) - 1
    assert "svg" in path.read_text()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_they_say(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    monkeypatch.syspath_prepend(str(FOLDER.parent.parent / "examples"))
    threads = torch.get_num_threads()
    notebook = json.loads(path.read_text())
    before = texts(notebook)
    try:
        runpy.run_path(str(FOLDER / "run.py"))["run"](notebook)
    finally:
        torch.set_num_threads(threads)
    assert texts(notebook) == before
