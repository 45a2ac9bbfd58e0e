"""The checklist of a release: ``python tools/release.py [VERSION]``.

Looks at everything that can be looked at and prints a line for each point; then what is left to do by hand. Changes
nothing. The exit code is 1 if a point fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BY_HAND = (
    "make check && make test && make test-wheel && make sanitize",
    "make bench: the figures of docs/benchmarks.md and README.md are of this version, or say of which they are",
    "make site: read the pages that changed",
    "git tag -s vVERSION && git push --tags: the workflow builds wheels; take them and the source archive",
    "install a wheel on a machine without a compiler, and run README's first example",
    "write the notes of the release from CHANGELOG.md",
)


def git(*arguments: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def stated() -> dict[str, str]:
    """The version in each file that says it."""
    package = (ROOT / "src" / "tokenfst" / "__init__.py").read_text()
    citation = (ROOT / "CITATION.cff").read_text()
    recipe = (ROOT / "tools" / "conda" / "meta.yaml").read_text()
    return {
        "pyproject.toml": tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"],
        "src/tokenfst/__init__.py": re.findall(r'^__version__ = "(.*)"', package, re.MULTILINE)[0],
        "CITATION.cff": re.findall(r"^version: (.*)", citation, re.MULTILINE)[0],
        "tools/conda/meta.yaml": re.findall(r'set version = "(.*)"', recipe)[0],
    }


def one_version(version: str) -> str:
    """Every file says the version."""
    wrong = {name: found for name, found in stated().items() if found != version}
    return "; ".join(f"{name} says {found}" for name, found in wrong.items())


def a_changelog(version: str) -> str:
    """CHANGELOG.md has a dated section of the version at its top."""
    first = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    dated = re.fullmatch(rf"\[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d", first)
    return "" if dated else f"its first section is {first!r}, and '{version} - YYYY-MM-DD' is wanted"


def nothing_uncommitted(version: str) -> str:
    """The working tree is what was committed."""
    return git("status", "--porcelain")


def a_new_tag(version: str) -> str:
    """The tag is not taken."""
    return f"v{version} is there already" if git("tag", "--list", f"v{version}") else ""


def no_pins_to_places(version: str) -> str:
    """No dependency comes from a URL, which an index of packages refuses."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    everything = [*project["dependencies"], *(text for extra in extras for text in extra)]
    return "; ".join(text for text in everything if "@" in text or "://" in text)


POINTS: tuple[Callable[[str], str], ...] = (
    one_version,
    a_changelog,
    nothing_uncommitted,
    a_new_tag,
    no_pins_to_places,
)


def judged(version: str) -> Iterator[tuple[str, str]]:
    """Each point, and what is wrong with it."""
    for point in POINTS:
        yield (point.__doc__ or "").rstrip("."), point(version)


def main(arguments: list[str]) -> int:
    """Print the list; 1 if a point fails."""
    version = arguments[0] if arguments else stated()["pyproject.toml"]
    print(f"tokenfst {version}")
    failed = 0
    for what, wrong in judged(version):
        print(f"  {'no ' if wrong else 'yes'}  {what}" + (f": {wrong}" if wrong else ""))
        failed += bool(wrong)
    print("by hand:")
    for line in BY_HAND:
        print(f"  [ ]  {line.replace('VERSION', version)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
