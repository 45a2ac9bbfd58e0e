"""Whether the native core compiles for other platforms: ``python tools/check_platforms.py [TARGET]...``.

Clang reads every source of CMakeLists.txt for each target, with the C++ library and the system headers that the package
ziglang brings; sources of one room are read together, as they are compiled. Nothing is linked or run. Needed: ziglang,
nanobind, and Python's headers (``--headers``: of another Python; from 3.12 on the sources are read with the stable ABI,
as the wheel has it).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("x86_64-linux-musl", "aarch64-linux-gnu", "x86_64-windows-gnu", "aarch64-macos")
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wno-sign-conversion")
NOTHING_WRITTEN = "error: failed to rename "
"""What zig says after clang has read a unit without an error, since no object was asked for."""
WINDOWS = """#pragma once
#define MS_WINDOWS
#define MS_WIN64
#define NT_THREADS
#define HAVE_SSIZE_T 1
#define HAVE_WCHAR_H 1
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_FLOAT 4
#define SIZEOF_DOUBLE 8
#define ALIGNOF_SIZE_T 8
"""
"""Sizes on 64-bit Windows, in place of the pyconfig.h of the Python whose headers are read."""


def sources() -> list[str]:
    """The core's translation units, as CMakeLists.txt names them."""
    text = (ROOT / "CMakeLists.txt").read_text()
    (module,) = re.findall(r"nanobind_add_module\((.*?)\)", text, re.DOTALL)
    return [word for word in module.split() if word.endswith(".cpp")]


def units() -> dict[str, list[str]]:
    """The sources that are compiled together, by the name of their room, and the others by their own names."""
    (rooms,) = re.findall(r"foreach\(room ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text())
    found: dict[str, list[str]] = {}
    for source in sources():
        room = source.split("/")[1]
        together = room in rooms.split() and source.count("/") == 2
        found.setdefault(f"native/{room}/*.cpp" if together else source, []).append(source)
    return found


def flags(target: str, headers: Path, folder: Path) -> list[str]:
    """What the compiler is called with for a target; ``folder``: for what has to be written."""
    import nanobind

    found = [
        "-target",
        target,
        "-std=c++20",
        "-c",
        "-fsyntax-only",
        "-DNDEBUG",
        *WARNINGS,
        "-include",
        "stdio.h",
    ]
    version = re.search(r"define PY_VERSION_HEX\s+0x(\w+)", (headers / "patchlevel.h").read_text())
    if version is not None and int(version[1], 16) >= 0x030C0000:
        found.append("-DPy_LIMITED_API=0x030C0000")
    if target.startswith("x86_64"):
        found.append("-march=x86_64_v2")  # as zig spells it
    if "windows" in target:
        (folder / "sizes.h").write_text(WINDOWS)
        found += [
            "-DPy_PYCONFIG_H",
            "-include",
            str(folder / "sizes.h"),
        ]  # pyconfig.h is the host's, and left out
    return [*found, "-I", str(ROOT / "native"), "-isystem", nanobind.include_dir(), "-isystem", str(headers)]


def complaints(said: str) -> list[str]:
    """The errors and warnings among what the compiler said."""
    lines = [line for line in said.splitlines() if re.search(r": (?:fatal )?(?:error|warning): ", line)]
    return [line for line in lines if NOTHING_WRITTEN not in line and "zig: warning" not in line]


def checked(target: str, headers: Path, wanted: dict[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Each unit with what is wrong with it."""
    with tempfile.TemporaryDirectory() as folder:
        common = [sys.executable, "-m", "ziglang", "c++", *flags(target, headers, Path(folder))]
        for unit, of_unit in wanted.items():
            together = Path(folder) / "unit.cpp"
            together.write_text("".join(f'#include "{ROOT / source}"\n' for source in of_unit))
            command = [*common, "-o", str(together.with_suffix(".o")), str(together)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            found = complaints(done.stderr)
            if done.returncode and not found and NOTHING_WRITTEN not in done.stderr:
                found = done.stderr.splitlines()[-5:] or [f"the compiler ended with {done.returncode}"]
            yield unit, found


def main(arguments: list[str]) -> int:
    """Print each unit and what is wrong; 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("target", nargs="*", default=TARGETS, help=f"without: {', '.join(TARGETS)}")
    parser.add_argument(
        "--headers", type=Path, default=Path(sysconfig.get_path("include")), help="a folder with Python.h"
    )
    parser.add_argument("--unit", action="append", metavar="FILE", help="without: all of CMakeLists.txt")
    options = parser.parse_args(arguments)
    wrong = 0
    for target in options.target:
        wanted = {name: [name] for name in options.unit} if options.unit else units()
        for unit, found in checked(target, options.headers, wanted):
            print(f"{target} {unit}: {f'{len(found)} complaints' if found else 'compiles'}", flush=True)
            print(*(f"    {line}" for line in found), sep="\n", end="\n" if found else "")
            wrong += bool(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
