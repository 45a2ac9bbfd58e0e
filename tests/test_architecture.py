"""The house rules that no other tool can see: layers, import weight, and names that must not be shadowed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("automata", "tokenizers", "decoding")
# From the bottom up: a room imports those before it. Each room's docstring says its idea and its reading order.
ROOMS = [
    "automata/expressions",
    "automata/characters",
    "automata/openfst",
    "automata/languages",
    "automata/images",
    "automata/pieces",
    "automata/regex",
    "automata/formats",
    "automata/rules",
    "automata/grammars",
    "automata/json_values",
    "automata/json_schema/sets",
    "automata/json_schema/reading",
    "automata/json_schema/writing",
    "automata/json_schema",
    "automata/notations",
    "automata/structural_tags",
    "automata/python_text",
    "automata/symbols",
    "tokenizers/vocabulary",
    "decoding/token_automata",
    "decoding/masks",
    "tokenizers/segmentation",
    "decoding/matchers",
    "decoding/canonical",
    "decoding/device/tables",
    "decoding/device/kernels",
    "decoding/device",
    "decoding/rows",
    "decoding/models",
    "decoding/search",
    "decoding/labels",
    "decoding/particles",
    "tokenizers/adapters",
]
# Edges that still point upwards, each with what will cut it. The list only shrinks.
UPWARDS = {
    (
        "tokenizers/vocabulary/vocabulary.py",
        "tokenizers/adapters",
    ): "Vocabulary.from_*: the one door to the adapters",
    ("decoding/token_automata/token_automaton.py", "decoding/canonical"): "compile() moves above both",
    (
        "decoding/token_automata/token_automaton.py",
        "decoding/matchers",
    ): "kept answers become a slot without a type",
    ("decoding/matchers/reach_matcher.py", "decoding/canonical"): "start_matcher() moves to decoding/rows",
}
NATIVE_ROOMS = [
    "calls",
    "support",
    "threads",
    "words",
    "expressions",
    "stacks",
    "byte_automata",
    "walks",
    "vocabulary",
    "masks",
    "token_automata",
    "matching",
    "artifact",
    "device",
    "python",
    "bindings",
]
GROUND = {"arguments", "errors", "budget", "locks", "_native"}
FILES = [path for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))]
MODULES = [(path.relative_to(ROOT).parts[0], path) for path in FILES]


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


def room_of(path: str) -> str:
    """The innermost room that a file, or the dotted name of a module with slashes for dots, lies in."""
    return max((room for room in ROOMS if path.startswith(f"{room}/")), key=len)


def test_every_file_is_in_a_room_that_says_what_it_is() -> None:
    assert len(FILES) > 150
    for path in FILES:
        assert str(path.parent.relative_to(ROOT)) in ROOMS, f"{path} is in no room"
    for room in ROOMS:
        text = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text()))
        assert text and "``" in text, f"{room}/__init__.py does not say what the room is"


def test_tests_lie_in_the_rooms_of_what_they_test() -> None:
    rooms = {*ROOMS, *(f"native/{room}" for room in NATIVE_ROOMS), "cli"}
    found = {
        str(path.parent.relative_to(ROOT / "tests"))
        for top in (*TOPS, "native", "cli")
        for path in (ROOT / "tests" / top).rglob("*.py")
    }
    assert found <= rooms and len(found) > 20, found - rooms


@pytest.mark.parametrize("room", ROOMS)
def test_a_rooms_docstring_names_its_files(room: str) -> None:
    text = (ROOT / room / "__init__.py").read_text()
    for path in (ROOT / room).glob("*.py"):
        assert path.stem == "__init__" or f"``{path.stem}``" in text, (
            f"{room}: {path.name} is not in its reading order"
        )


def test_imports_point_one_way_only() -> None:
    upwards = set()
    for path in FILES:
        name = str(path.relative_to(ROOT))
        for module in imports(path):
            parts = module.split(".")
            if parts[0] != "tokenfst":
                continue
            if parts[1] not in TOPS:
                assert parts[1] in GROUND, f"{name} imports {module}"
                continue
            imported = room_of("/".join(parts[1:]))
            if ROOMS.index(imported) > ROOMS.index(room_of(name)):
                upwards.add((name, imported))
    assert upwards == set(UPWARDS)


def test_native_includes_point_one_way_only() -> None:
    for path in (ROOT / "native").rglob("*.[hc]pp"):
        room = path.parent.name
        for included in re.findall(r'#include "([^"]+)"', path.read_text()):
            assert NATIVE_ROOMS.index(included.split("/")[0]) <= NATIVE_ROOMS.index(room), (
                f"{path.name}: {included}"
            )


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
    assert not [top for top in TOPS if (ROOT / top / "__init__.py").exists()]


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
        "         'tokenfst.automata.json_schema.door')\n"
        "print(*[name for name in heavy if name in sys.modules])"
    )
    assert loaded == ""


def test_every_public_name_is_there() -> None:
    missing = python("import tokenfst; print(*[n for n in tokenfst.__all__ if not hasattr(tokenfst, n)])")
    assert missing == ""


def test_files_stay_small_enough_to_hold_in_the_head() -> None:
    kept = [*FILES, *ROOT.glob("*/*.py"), *ROOT.glob("src/**/*.py"), *ROOT.glob("native/**/*.[hc]pp")]
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
