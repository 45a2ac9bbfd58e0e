"""mypy --strict over the package.

The three root folders are one import package in the wheel only, so mypy gets a tree of links that mirrors the wheel
table of pyproject.toml. Without the tree it would report success on almost nothing: the number of files it checked is
compared with the number there are.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Build the tree, run mypy, count."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["packages"]
    tree = ROOT / "build" / "typing"
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
    wanted = sum(source.suffix in {".py", ".pyi"} for source in sources)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "-p", "tokenfst"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout, done.stderr, sep="", end="")
    checked = re.search(r"(?:no issues found in|checked) (\d+) source files", done.stdout)
    if checked is None or int(checked[1]) < wanted:
        print(f"mypy checked {checked[1] if checked else 'no'} files, but there are {wanted}")
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
