"""The house rules that no other tool can see: layers, import weight, and names that must not be shadowed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"automata": ROOT / "automata", "tokenizers": ROOT / "tokenizers", "decoding": ROOT / "decoding"}
MAY_IMPORT = {
    "automata": {"automata"},
    "tokenizers": {"automata", "tokenizers"},
    "decoding": {"automata", "tokenizers", "decoding"},
}
GROUND = {"arguments", "errors", "budget", "locks", "_native"}
MODULES = [(layer, path) for layer, folder in FOLDERS.items() for path in sorted(folder.rglob("*.py"))]


def imports(path: Path) -> list[str]:
    """Every module that a file imports, at its top or later, ``from a import b`` as ``a.b``."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports do not survive the layout"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def test_there_is_something_to_check() -> None:
    assert len(MODULES) > 20


@pytest.mark.parametrize(
    ("layer", "path"), MODULES, ids=lambda value: value.name if isinstance(value, Path) else value
)
def test_imports_point_one_way_only(layer: str, path: Path) -> None:
    for name in imports(path):
        if name.split(".")[0] == "tokenfst":
            assert name.split(".")[1] in MAY_IMPORT[layer] | GROUND, f"{path.name} imports {name}"


def imports_when_run(path: Path, package: str) -> bool:
    """Whether a file imports ``package`` other than for type checking."""
    tree = ast.parse(path.read_text())
    checking = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    ]
    hidden = {id(inner) for block in checking for statement in block.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(name.split(".")[0] == package for name in names):
            return True
    return False


def test_only_one_module_imports_pynini() -> None:
    users = {
        path.name
        for _, path in MODULES
        if imports_when_run(path, "pynini") or imports_when_run(path, "pywrapfst")
    }
    assert users == {"fst.py"}


def test_torch_stays_in_decoding() -> None:
    assert not {path for layer, path in MODULES if layer != "decoding" and imports_when_run(path, "torch")}


def test_no_root_folder_is_a_package() -> None:
    assert not [folder for folder in FOLDERS.values() if (folder / "__init__.py").exists()]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_root_folders_shadow_no_installed_package() -> None:
    where = python("import tokenizers, transformers; print(tokenizers.__file__)")
    assert "site-packages" in where


def test_importing_and_walking_loads_nothing_heavy() -> None:
    loaded = python(
        "import sys, tokenfst, tokenfst.cli\n"
        "v = tokenfst.Vocabulary([b'a', b'b', b''], 2)\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "m = tokenfst.compile(tokenfst.regex('a*b'), v).expand().matcher()\n"
        "m.fill_next_token_bitmask(tokenfst.allocate_token_bitmask(1, 3))\n"
        "assert m.accept_token(0)\n"
        "heavy = ('pynini', 'pywrapfst', 'torch', 'transformers', 'tokenizers', 'mistral_common',\n"
        "         'tokenfst.automata.json_schema')\n"
        "print(*[name for name in heavy if name in sys.modules])"
    )
    assert loaded == ""


def test_every_public_name_is_there() -> None:
    missing = python("import tokenfst; print(*[n for n in tokenfst.__all__ if not hasattr(tokenfst, n)])")
    assert missing == ""


def test_files_stay_small_enough_to_hold_in_the_head() -> None:
    kept = [*ROOT.glob("*/*.py"), *ROOT.glob("src/**/*.py"), *ROOT.glob("native/*")]
    large = {path.name: count for path in kept if (count := len(path.read_text().splitlines())) > 520}
    assert not large, large


def test_nothing_names_a_place_of_this_machine() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in tracked:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".hpp", ".cpp", ".txt", ".yml"} and path != Path(__file__):
            text = path.read_text()
            assert str(ROOT) not in text and "pypi.org" not in text, name
