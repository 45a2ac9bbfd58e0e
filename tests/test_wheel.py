"""The source archive, the wheel that is built from it, and the package that is installed from that.

``make test-wheel``: the core is compiled once more, which takes a minute.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.programs import hub
from tests.support.rooms import ROOMS, ROOT

pytestmark = pytest.mark.wheel

BUILD = "import sys, scikit_build_core.build as build; print(getattr(build, sys.argv[1])(sys.argv[2]))"
LEFT_OUT = ("tests/", "benchmarks/", "docs/", "examples/", ".ci/", ".github/")
"""What a source archive has not."""


def python(*arguments: str, program: str = sys.executable, cwd: Path = ROOT) -> str:
    done = subprocess.run([program, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    python("-c", BUILD, "build_sdist", str(folder))
    (found,) = folder.glob("tokenfst-*.tar.gz")
    return found


@pytest.fixture(scope="module")
def wheel(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (source,) = folder.glob("tokenfst-*")
    python("-c", BUILD, "build_wheel", str(folder), cwd=source)
    (found,) = folder.glob("tokenfst-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of a new environment that has the wheel; what it depends on comes from this one."""
    folder = tmp_path_factory.mktemp("environment")
    python("-m", "venv", "--without-pip", str(folder))
    program = str(folder / "bin" / "python")
    python("-m", "pip", "--python", program, "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    (site,) = (folder / "lib").glob("python*/site-packages")
    # Paths alone: the .pth files of this environment, one of which may bring an editable install, are not read.
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site / "zz_others.pth").write_text("".join(f"{path}\n" for path in others))
    return program


def test_the_source_archive_has_what_a_build_needs(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    needed = {name for name in tracked() if not name.startswith(LEFT_OUT) and (ROOT / name).is_file()}
    assert needed <= names
    assert not [name for name in names if name.startswith(LEFT_OUT)]


def test_the_wheel_is_as_the_documentation_says(wheel: Path) -> None:
    """Its size among other things: 4 MB at most."""
    assert "1 of 1 wheels" in python("tools/check_wheels.py", str(wheel.parent))


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["packages"]
    expected = set()
    for name in tracked():
        for package, folder in table.items():
            if name.startswith(f"{folder}/") and (ROOT / name).is_file():
                expected.add(f"{package}/{name.removeprefix(f'{folder}/')}")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"tokenfst/{room}/__init__.py" for room in ROOMS} <= names
    assert {"tokenfst/py.typed", "tokenfst/_native.pyi"} <= names
    assert any(name.endswith(".lark") for name in names)
    beside = {name for name in names - expected if ".dist-info/" not in name}
    assert expected <= names
    assert len(beside) == 1 and re.match(r"tokenfst/_native\..*so$", beside.pop())


def stable_headers() -> str | None:
    """The headers of a Python that the stable ABI's wheel is for; None: there is none on this machine."""
    for minor in range(12, 20):
        program = shutil.which(f"python3.{minor}")
        known = [program] if program else []
        known += [str(path) for path in Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3.{minor}")]
        for each in known:
            asked = [each, "-c", "import sysconfig; print(sysconfig.get_path('include'))"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            if done.returncode == 0 and (Path(done.stdout.strip()) / "Python.h").is_file():
                return done.stdout.strip()
    return None


@pytest.mark.parametrize("name", ["matching/matchers", "module"])
def test_the_core_asks_of_python_what_the_stable_interface_has(name: str) -> None:
    """The wheel for 3.12 and later could not be built for a while, and no test on 3.11 noticed."""
    nanobind = pytest.importorskip("nanobind")
    compiler, headers = shutil.which("g++"), stable_headers()
    if compiler is None or headers is None:
        pytest.skip("no g++, or no headers of Python 3.12 or later")
    include = [str(ROOT / "native"), headers, nanobind.include_dir()]
    flags = ["-std=c++20", "-fsyntax-only", "-DPy_LIMITED_API=0x030C0000", *(f"-I{each}" for each in include)]
    source = str(ROOT / "native" / "bindings" / f"{name}.cpp")
    done = subprocess.run([compiler, *flags, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def test_the_installed_package_works(installed: str, tmp_path: Path) -> None:
    where, allowed, grammar = python(
        "-c",
        "import tokenfst\n"
        "v = tokenfst.Vocabulary([*(bytes([b]) for b in range(256)), b'ab', b''], 257)\n"
        "a = tokenfst.compile(tokenfst.regex('(ab)+'), v)\n"
        "m = a.matcher()\n"
        "print(tokenfst.__file__)\n"
        "print(m.accept_token(256), m.accept_token(98))\n"
        "print(tokenfst.compile(tokenfst.bundled_grammar('json'), v).is_pushdown)\n"
        "a.save('it.safetensors')\n"
        "assert tokenfst.load('it.safetensors', v).is_expanded\n",
        program=installed,
        cwd=tmp_path,
    ).split("\n")
    assert Path(where).is_relative_to(Path(installed).parent.parent)
    assert (allowed, grammar) == ("True False", "True")
    assert python("-m", "tokenfst", "--version", program=installed, cwd=tmp_path).startswith("tokenfst ")
    assert os.access(Path(installed).with_name("tokenfst"), os.X_OK)


def test_the_first_example_of_the_readme_runs(installed: str, tmp_path: Path) -> None:
    """As a user of the wheel pastes it, without a checkout on the path."""
    example = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert example and hub.NAME in example[1]
    hub.place(tmp_path)
    made = python("-c", f"{example[1]}\nprint(type(person).__name__)", program=installed, cwd=tmp_path)
    assert made == "Person"
