"""The explorer without a server, in build/explorer: ``make explorer-page``.

The page of ``tokenfst explore``, and a worker that answers its questions in the browser: Pyodide, the core as one of
its modules (``core``), the package's own Python, already compiled, a small numpy, lark, and a vocabulary. What is
packed for this browser to unpack is packed here; nothing is fetched from elsewhere when the page is used.

Where a tool is missing, nothing is built, and what would bring it is said; ``--need`` makes that an error.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import core

from tokenfst import load_vocabulary

HERE = Path(__file__).parent
ROOT = core.ROOT
WORK = ROOT / "build" / "wasm"
TARGET = ROOT / "build" / "explorer"
PYODIDE = "314.0.7"
VOCABULARY = "mistral:tekken_240911"
MOST_BYTES = 15 << 20
LEFT_OUT = (
    "cli", "compat", "ray", "server", "decoding/device", "decoding/engines", "decoding/generation", "decoding/labels",
    "decoding/lattices", "decoding/models", "decoding/particles", "decoding/search", "decoding/store", "explore/page",
)  # fmt: skip
"""Parts of the package that no question of the page leads to."""
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'"
)
NOTICES = """This page carries parts of others:
Pyodide and what it contains (CPython): Mozilla Public License 2.0, Python Software Foundation License 2
lark: MIT License
nanobind, robin-map: BSD 3-Clause License, MIT License
libc++ of LLVM: Apache License 2.0 with LLVM Exceptions
The vocabulary Tekken of mistral-common: Apache License 2.0
"""


def main() -> int:
    """Build all of it, or say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--need", action="store_true", help="what is missing is an error")
    need = parser.parse_args().need
    try:
        size = _build()
    except core.MissingError as missing:
        print(f"the explorer's page is not built: {missing}")
        return int(need)
    print(f"build/explorer: {size / 1e6:.1f} MB until the first question")
    if size > MOST_BYTES:
        print(f"that is more than the {MOST_BYTES >> 20} MiB that it may be")
        return 1
    return 0


def _build() -> int:
    node = shutil.which("node")
    if node is None:
        raise core.MissingError("node is not there")
    pyodide = _pyodide()
    module = core.build(WORK)
    packed = WORK / "packed.zip"
    subprocess.run(
        [node, str(HERE / "pack.mjs"), str(pyodide), str(_package(module)), str(packed)], check=True, cwd=ROOT
    )
    fresh = WORK / "page"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for path in (ROOT / "src" / "tokenfst" / "explore" / "page").iterdir():
        if path.suffix in (".js", ".css", ".svg"):
            shutil.copy(path, fresh)
    for name in ("pyodide.mjs", "pyodide.asm.mjs", "python_stdlib.zip"):
        shutil.copy(pyodide / name, fresh)
    shutil.copy(HERE / "worker.js", fresh)
    shutil.copy(packed, fresh / "tokenfst.zip")
    _compress(pyodide / "pyodide.asm.wasm", fresh)
    vocabulary = load_vocabulary(VOCABULARY)
    vocabulary.to_pack(WORK / "vocabulary.pack", tries=False)
    _compress(WORK / "vocabulary.pack", fresh)
    (fresh / "NOTICES.txt").write_text(NOTICES)
    size = sum(path.stat().st_size for path in fresh.iterdir())
    (fresh / "index.html").write_text(_index(size))
    shutil.rmtree(TARGET, ignore_errors=True)
    fresh.rename(TARGET)
    return size


def _pyodide() -> Path:
    """Pyodide's own package, from npm, unpacked once."""
    target = WORK / f"pyodide-{PYODIDE}"
    if not (target / "package" / "pyodide.asm.wasm").is_file():
        npm = shutil.which("npm")
        if npm is None:
            raise core.MissingError("npm is not there, which brings Pyodide")
        target.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [npm, "pack", "--silent", f"pyodide@{PYODIDE}"],
            cwd=target,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise core.MissingError(f"npm does not bring Pyodide {PYODIDE}: {done.stderr.strip()[-300:]}")
        with tarfile.open(target / done.stdout.split()[-1]) as archive:
            archive.extractall(target, filter="data")
    return target / "package"


def _package(module: Path) -> Path:
    """What Python imports in the page, as sources: a zip archive as the wheel is laid out."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["packages"]
    lark = importlib.util.find_spec("lark")
    if lark is None or lark.origin is None:
        raise core.MissingError("lark is not there: pip install lark")
    folders = {
        **{package: ROOT / folder for package, folder in table.items()},
        "lark": Path(lark.origin).parent,
        "numpy": HERE / "numpy",
    }
    sources = WORK / "sources.zip"
    with zipfile.ZipFile(sources, "w") as archive:
        for package, folder in sorted(folders.items()):
            for path in sorted(folder.rglob("*")):
                inside = f"{package}/{path.relative_to(folder).as_posix()}"
                left_out = inside.removeprefix("tokenfst/").startswith(tuple(f"{each}/" for each in LEFT_OUT))
                if (
                    path.suffix in (".py", ".json", ".lark", ".gbnf")
                    and not left_out
                    and "__pycache__" not in inside
                ):
                    archive.write(path, inside)
        archive.write(module, "tokenfst/_native.abi3.so")
    return sources


def _compress(path: Path, folder: Path) -> None:
    (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def _index(size: int) -> str:
    """The page, told that a worker answers."""
    text = (ROOT / "src" / "tokenfst" / "explore" / "page" / "index.html").read_text()
    for old, new in (
        ('<html lang="en">', '<html lang="en" data-answers="worker">'),
        (
            '<meta charset="utf-8">',
            f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        ),
        (
            '<p id="about"></p>',
            f'<p id="about">Loading Python, tokenfst and a vocabulary: {size / 1e6:.0f} MB, once…</p>',
        ),
    ):
        if text.count(old) != 1:
            raise ValueError(f"index.html has not exactly one {old}")
        text = text.replace(old, new)
    return text


if __name__ == "__main__":
    raise SystemExit(main())
