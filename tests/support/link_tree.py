"""A folder of links that mirrors the wheel: the three root folders as one import package ``tokenfst``."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def link_tree(tree: Path) -> list[Path]:
    """Make or renew the tree by the wheel table of pyproject.toml; the source files that it holds."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["packages"]
    sources: list[Path] = []
    for package, folder in sorted(table.items()):
        target = tree / package
        target.mkdir(parents=True, exist_ok=True)
        for stale in target.iterdir():
            if stale.is_symlink():
                stale.unlink()
        for source in sorted((ROOT / folder).iterdir()):
            if source.suffix in {".py", ".pyi", ".typed"} or (source.is_dir() and any(source.glob("*.py"))):
                (target / source.name).symlink_to(source)
        sources += (ROOT / folder).rglob("*.py*")
    return [source for source in sources if source.suffix in {".py", ".pyi"}]
