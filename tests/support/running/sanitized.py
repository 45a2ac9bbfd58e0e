"""Run a module with the native core built under a sanitizer:
``python -m tests.support.running.sanitized address -- pytest``.

``address`` is AddressSanitizer with UndefinedBehaviorSanitizer, ``thread`` is ThreadSanitizer. The core is built into
``build/sanitize/NAME`` with a virtual environment beside it, in which the package is a tree of links and everything
else comes from the environment that this runs in. A sanitizer's reports are printed at the end, as pytest swallows
what a test that passes has written.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SANITIZERS = {"address": "address;undefined", "thread": "thread"}
RUNTIMES = {"address": "libasan.so", "thread": "libtsan.so"}
OPTIONS = {
    # CPython frees little of what it holds at its end: leaks cannot be judged.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_segv=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    # Races in programs that are not built with the sanitizer (the interpreter, torch) cannot be judged.
    "TSAN_OPTIONS": f"ignore_noninstrumented_modules=1:suppressions={ROOT / 'tests/support/running/tsan.txt'}",
}


def build(name: str, folder: Path) -> Path:
    """Build the core; the path of the extension module."""
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder / "cmake"), "-G", "Ninja"]
    configure += [f"-DTOKENFST_SANITIZE={SANITIZERS[name]}", "-DCMAKE_BUILD_TYPE=Debug"]
    subprocess.run(
        [*configure, f"-DPython_EXECUTABLE={sys.executable}"], check=True, stdout=subprocess.DEVNULL
    )
    subprocess.run(["cmake", "--build", str(folder / "cmake")], check=True)
    (built,) = (folder / "cmake").glob("_native.*.so")
    return built


def environment(folder: Path, extension: Path) -> Path:
    """A virtual environment in which ``tokenfst`` is the sources and this extension; its Python."""
    venv = folder / "venv"
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = (venv / "lib").glob("python*/site-packages")
    (site / "zz_others.pth").write_text(
        "".join(f"{path}\n" for path in sys.path if path.endswith("site-packages"))
    )
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["packages"]
    sources = [path for package in sorted(table) for path in links(site, package, ROOT / table[package])]
    for link, source in [*sources, (site / "tokenfst" / extension.name, extension)]:
        link.unlink(missing_ok=True)
        link.symlink_to(source)
    return python


def links(site: Path, package: str, folder: Path) -> list[tuple[Path, Path]]:
    """The links that make a folder of sources a package: one for the folder, or one for each file of the outermost."""
    if "/" in package:
        return [(site / package, folder)]
    (site / package).mkdir(exist_ok=True)
    return [
        (site / package / source.name, source) for source in folder.iterdir() if source.name != "__pycache__"
    ]


def main() -> int:
    name, dashes, *command = sys.argv[1:]
    if name not in SANITIZERS or dashes != "--" or not command:
        print(
            f"usage: python -m tests.support.running.sanitized {'|'.join(SANITIZERS)} -- MODULE [ARGUMENT]...",
            file=sys.stderr,
        )
        return 2
    folder = ROOT / "build" / "sanitize" / name
    python = environment(folder, build(name, folder))
    compiler = os.environ.get("CXX", "g++")
    runtimes = [
        RUNTIMES[name],
        "libstdc++.so",
    ]  # the second: exceptions are intercepted only where it is loaded early
    found = [
        subprocess.run(
            [compiler, f"-print-file-name={each}"], capture_output=True, text=True, check=True
        ).stdout
        for each in runtimes
    ]
    settings = {**OPTIONS, **os.environ, "LD_PRELOAD": " ".join(path.strip() for path in found)}
    settings["TOKENFST_SANITIZED"] = name
    for options in OPTIONS:
        settings[options] += f":log_path={folder / 'report'}"
    for old in folder.glob("report.*"):
        old.unlink()
    # Without random addresses: ThreadSanitizer's shadow has a fixed place.
    ended = subprocess.run(
        ["setarch", "--addr-no-randomize", str(python), "-m", *command], env=settings, cwd=ROOT, check=False
    )
    for report in sorted(folder.glob("report.*")):
        print(report.read_text(errors="replace"), file=sys.stderr)
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
