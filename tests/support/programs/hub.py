"""The model that README's and the quickstart's first snippets name, where no hub can be reached."""

from __future__ import annotations

from pathlib import Path

from tests.support.rooms import ROOT

NAME = "Qwen/Qwen3-0.6B"
"""What the snippets name."""


def place(folder: Path) -> None:
    """Make ``folder/NAME`` the small model of ``examples/``: transformers opens a folder of that name, under the folder
    where a program runs, before it asks the hub.
    """
    (folder / NAME).parent.mkdir()
    (folder / NAME).symlink_to(ROOT / "examples" / "small_model")
