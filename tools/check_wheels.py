"""Whether wheels are what docs/installation.md says: ``python tools/check_wheels.py FOLDER``.

Each holds at most 4 MB, has the core and nothing that is built beside it, needs numpy, safetensors, typer and rich
alone, and says its Python rightly: the stable ABI means a core whose name says so.
"""

from __future__ import annotations

import email
import re
import sys
import zipfile
from pathlib import Path

MOST_BYTES = 4_000_000
NEEDED = {"numpy", "safetensors", "typer", "rich"}
CORE = re.compile(r"tokenfst/_native\.[^/]*(so|pyd)")


def findings(wheel: Path) -> list[str]:
    """What is wrong with a wheel."""
    found = []
    if wheel.stat().st_size > MOST_BYTES:
        found.append(f"holds {wheel.stat().st_size:,} bytes, and {MOST_BYTES:,} is the most")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(opened.read(about))
    cores = [name for name in names if CORE.fullmatch(name)]
    if len(cores) != 1:
        found.append(f"has {len(cores)} cores and wants 1: {cores}")
    stable = "-abi3-" in wheel.name
    if cores and stable != (".abi3." in cores[0] or cores[0].endswith("_native.pyd")):
        found.append(f"is named {wheel.name}, and its core {cores[0]}")
    requirements = [text for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text]
    needed = {re.split(r"[^A-Za-z0-9_.-]", text)[0].lower() for text in requirements}
    if needed != NEEDED:
        found.append(f"needs {sorted(needed)} and may need {sorted(NEEDED)}")
    return found


def main(arguments: list[str]) -> int:
    """Print what is wrong; 1 if anything is."""
    wheels = sorted(Path(arguments[0] if arguments else "dist").glob("*.whl"))
    wrong = [f"{wheel.name}: {text}" for wheel in wheels for text in findings(wheel)]
    print("\n".join(wrong) or f"{len(wheels)} of {len(wheels)} wheels are as they should be")
    return 1 if wrong or not wheels else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
