"""clang-tidy over the core, by the checks of ``.clang-tidy``: ``python -m tests.support.running.tidy``.

Each source is read on its own, as many at a time as there are processors. Exit status 1 where a check finds something,
0 where nothing is found, or clang-tidy or nanobind is not to be had (which is said).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def flags() -> list[str]:
    """What the sources are compiled with, as far as it matters to a reader of them."""
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--include_dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return [
        *("-std=c++20", "-DNDEBUG", "-I", str(ROOT / "native"), "-I", sysconfig.get_path("include")),
        *("-isystem", nanobind),
        *(["-march=x86-64-v2"] if os.uname().machine == "x86_64" else []),
    ]


def sources() -> list[Path]:
    """What CMake compiles: not what is for WebAssembly alone."""
    return [path for path in sorted((ROOT / "native").rglob("*.cpp")) if "wasm" not in path.parts]


def main() -> int:
    """Read all sources; the exit status."""
    clang_tidy = shutil.which(
        "clang-tidy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if clang_tidy is None:
        print("clang-tidy is not to be had: the core is not looked at")
        return 0
    options = flags()

    def read(source: Path) -> tuple[Path, str]:
        done = subprocess.run(
            [clang_tidy, "--quiet", str(source), "--", *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        return source, done.stdout if done.returncode == 0 else done.stdout + done.stderr

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [(source, said) for source, said in pool.map(read, sources()) if said]
    for source, said in found:
        print(f"{source.relative_to(ROOT)}:\n{said}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
