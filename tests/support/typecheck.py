"""mypy --strict over the package.

The three root folders are one import package in the wheel only, so mypy gets a tree of links that mirrors the wheel
table of pyproject.toml. Without the tree it would report success on almost nothing: the number of files it checked is
compared with the number there are.
"""

from __future__ import annotations

import re
import subprocess
import sys

from tests.support.link_tree import ROOT, link_tree


def main() -> int:
    """Build the tree, run mypy, count."""
    tree = ROOT / "build" / "typing"
    wanted = len(link_tree(tree))
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
