"""The core, bindings and all, as a module of Pyodide: the same sources as everywhere, compiled for WebAssembly.

Emscripten, which Pyodide is made with, is not needed: clang for ``wasm32-wasi`` makes code that is independent of its
place, and its linker a module that Pyodide's own loader takes, with exceptions. What the module wants from the C and
C++ libraries Pyodide has and exports; the headers of both have the same layout (libc++'s ABI version 2), which
``make explorer-page`` finds out by running it. Python's interface is the stable one of 3.12, so that headers of any
later Python serve. docs/decisions/021-the-core-in-a-browser.md says what else was tried.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDES = Path("/usr/include/wasm32-wasi")
PACKAGES = "clang-22 lld-22 libc++-22-dev-wasm32 libc++abi-22-dev-wasm32 libclang-rt-22-dev-wasm32 wasi-libc"
OLDEST, NEWEST = 22, 30
"""Of clang: the headers of libc++ must be no older than Pyodide's own."""
FLAGS = [
    "--target=wasm32-wasi", "-Wno-deprecated", "-std=c++20", "-O2", "-fPIC", "-fwasm-exceptions", "-fvisibility=hidden",
    "-DNDEBUG", "-DNB_COMPACT_ASSERTIONS", "-DPy_LIMITED_API=0x030C0000", "-D_WASI_EMULATED_SIGNAL",
    "-nostdinc", "-nostdinc++", "-include", "native/wasm/pyconfig.hpp", "-include", "native/wasm/platform.hpp",
    "-Inative", "-Inative/wasm",
]  # fmt: skip
LINKED = [
    "--target=wasm32-wasi", "-Wno-deprecated", "-shared", "-nostdlib", "-Wl,--experimental-pic", "-Wl,--no-entry",
    "-Wl,--strip-all", "-Wl,--export=PyInit__native", "-Wl,--export=__wasm_call_ctors",
    "-Wl,--unresolved-symbols=import-dynamic",
]  # fmt: skip


class MissingError(Exception):
    """Something of the machine that is needed is not there: what, and what would bring it."""


def build(folder: Path) -> Path:
    """Compile what has changed since the last time, link, and say where the module is."""
    compiler, version = _compiler()
    ninja = shutil.which("ninja", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if ninja is None:
        raise MissingError("ninja is not there: pip install ninja")
    folder.mkdir(parents=True, exist_ok=True)
    nanobind = _nanobind()
    includes = [
        f"/usr/lib/llvm-{version}/include/wasm32-wasi/c++/v1",
        subprocess.check_output([compiler, "-print-resource-dir"], text=True).strip() + "/include",
        str(INCLUDES),
        str(_python_headers()),
        str(nanobind / "include"),
        str(nanobind / "ext" / "robin_map" / "include"),
    ]
    flags = " ".join([*FLAGS, *(f"-isystem {each}" for each in includes)])
    lines = [
        f"builddir = {folder}",  # of its log
        "rule compile",
        f"  command = {compiler} {flags} -MD -MF $out.d -c $in -o $out",
        "  depfile = $out.d",
        "  deps = gcc",
        "rule link",
        f"  command = {compiler} {' '.join(LINKED)} $in -o $out",
    ]
    objects = []
    for source in [*_sources(), str(nanobind / "src" / "nb_combined.cpp")]:
        made = folder / f"{Path(source).stem}.o"
        objects.append(str(made))
        lines.append(f"build {made}: compile {source}")
    module = folder / "_native.so"
    lines.append(f"build {module}: link {' '.join(objects)}")
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")
    subprocess.run([ninja, "--quiet", "-C", str(ROOT), "-f", str(folder / "build.ninja")], check=True)
    return module


def _compiler() -> tuple[str, int]:
    for version in range(OLDEST, NEWEST):
        found = shutil.which(f"clang++-{version}")
        library = Path(f"/usr/lib/llvm-{version}/include/wasm32-wasi/c++/v1/vector")
        if found and shutil.which(f"wasm-ld-{version}") and library.is_file() and INCLUDES.is_dir():
            return found, version
    raise MissingError(f"there is no clang for wasm32: apt-get install {PACKAGES}")


def _nanobind() -> Path:
    found = importlib.util.find_spec("nanobind")
    if found is None or found.origin is None:
        raise MissingError("nanobind is not there: pip install nanobind")
    return Path(found.origin).parent


def _python_headers() -> Path:
    """Headers of Python 3.12 or later: of this Python, of another one on the path, or of one that pyenv has."""
    ask = "import sys, sysconfig; print(sys.version_info >= (3, 12), sysconfig.get_path('include'))"
    named = [shutil.which(f"python3.{minor}") for minor in range(12, 20)]
    others = sorted(
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.1[2-9]*/bin/python3")
    )
    for python in [sys.executable, *filter(None, named), *map(str, others)]:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
        new, _, include = done.stdout.strip().partition(" ")
        if new == "True" and (Path(include) / "Python.h").is_file():
            return Path(include)
    raise MissingError("there are no headers of Python 3.12 or later on this machine")


def _sources() -> list[str]:
    """The translation units of CMakeLists.txt, but transducers."""
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.findall(r"\bnative/[\w/]+\.cpp\b", text)
    return [*(each for each in found if "/fst/" not in each), "native/wasm/stubs.cpp"]
