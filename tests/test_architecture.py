"""The house rules that no other tool can see: layers, import weight, and names that must not be shadowed."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.rooms import (
    FILES,
    NATIVE_ROOMS,
    ROOMS,
    ROOT,
    TOPS,
    edges,
    imports,
    native_edges,
    native_room_of,
    nodes_of,
)

GROUND = {"_native", "budget", "common", "errors"}
MODULES = [(path.relative_to(ROOT).parts[0], path) for path in FILES]


def test_every_file_is_in_a_room_that_says_what_it_is() -> None:
    assert len(FILES) > 150
    for path in FILES:
        assert str(path.parent.relative_to(ROOT)) in ROOMS, f"{path} is in no room"
    for room in ROOMS:
        text = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text()))
        assert text and "``" in text, f"{room}/__init__.py does not say what the room is"


def test_tests_lie_in_the_rooms_of_what_they_test() -> None:
    program = ROOT / "src" / "tokenfst"
    parts = (path.parent.relative_to(program) for path in (program / "cli").rglob("*.py"))
    rooms = {*ROOMS, *(f"native/{room}" for room in NATIVE_ROOMS), *map(str, parts)}
    found = {
        str(path.parent.relative_to(ROOT / "tests"))
        for top in (*TOPS, "native", "cli")
        for path in (ROOT / "tests" / top).rglob("*.py")
    }
    assert found <= rooms and len(found) > 20, found - rooms


@pytest.mark.parametrize("room", ROOMS)
def test_a_rooms_docstring_says_its_invariant_its_cost_and_its_files(room: str) -> None:
    text = (ROOT / room / "__init__.py").read_text()
    assert "\nInvariant: " in text and re.search(r"\bCost( of a step)?:\s", text), (
        f"{room}: an invariant and a cost"
    )
    for path in (ROOT / room).glob("*.py"):
        assert path.stem == "__init__" or f"``{path.stem}``" in text, (
            f"{room}: {path.name} is not in its reading order"
        )


def test_imports_point_one_way_only() -> None:
    for one, other in sorted(edges()):
        assert ROOMS.index(other) < ROOMS.index(one), f"{one} imports {other}"
    for path in FILES:
        for module in imports(path):
            parts = module.split(".")
            assert parts[0] != "tokenfst" or parts[1] in {*TOPS, *GROUND}, f"{path} imports {module}"


def test_private_names_stay_in_their_room() -> None:
    files = [*FILES, *(ROOT / "src").rglob("*.py")]
    own: dict[Path, set[str]] = {}
    for path in files:
        names = own.setdefault(path.parent, set())
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    ours = set().union(*own.values())
    for path in files:
        for node in nodes_of(path):
            used: list[str] = []
            if isinstance(node, ast.Attribute):
                itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                used = [] if itself else [node.attr]
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("tokenfst."):
                used = [alias.name for alias in node.names]
            for name in used:
                if name.startswith("_") and not name.endswith("__") and name != "_replace":  # named tuples
                    # Those of other libraries are no names of ours: ruff asks why each of them is used.
                    assert name in own[path.parent] or name not in ours, f"{path}: {name}"


def test_nothing_below_the_facade_imports_it() -> None:
    """``from tokenfst import x`` would make one circle of the whole house: it is ``import tokenfst.x``."""
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                assert node.module != "tokenfst", f"{path}: {ast.unparse(node)}"
            elif isinstance(node, ast.Import):
                assert all(alias.name != "tokenfst" for alias in node.names), f"{path}: {ast.unparse(node)}"


def test_native_includes_point_one_way_only() -> None:
    for one, other in sorted(native_edges()):
        assert NATIVE_ROOMS.index(other) < NATIVE_ROOMS.index(one), f"{one} includes {other}"


def test_the_cores_page_names_its_headers() -> None:
    texts = page_of_rooms()["native_texts"]()
    assert list(texts) == NATIVE_ROOMS
    for path in (ROOT / "native").rglob("*.[hc]pp"):
        room = native_room_of(path)
        assert room == "bindings" or f"`{path.stem}`" in texts[room], f"native/README.md does not name {path}"


def test_the_code_map_shows_the_rooms_of_now() -> None:
    script = page_of_rooms()
    page = (ROOT / "docs" / "project" / "code-map.md").read_text()
    assert script["written"](page) == page, "run python docs/rooms.py"
    for name, pairs in (("rooms", edges()), ("native-rooms", native_edges())):
        drawn = script["drawn"]((ROOT / "docs" / f"{name}.svg").read_text())
        assert drawn == script["reduced"](pairs), f"docs/{name}.svg: run python docs/rooms.py"


def page_of_rooms() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "rooms.py"))


def imports_when_run(path: Path, package: str) -> bool:
    """Whether a file imports ``package`` other than for type checking."""
    if package not in path.read_text():
        return False
    nodes = nodes_of(path)
    checking = [node for node in nodes if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    hidden = {id(inner) for block in checking for statement in block.body for inner in ast.walk(statement)}
    for node in nodes:
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


def test_errors_of_decoding_are_typed() -> None:
    """A wrong argument raises ArgumentValueError or ArgumentTypeError, which are errors of tokenfst, too."""
    for path in sorted((ROOT / "decoding").rglob("*.py")):
        for node in nodes_of(path):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                raised = ast.unparse(node.exc.func)
                assert raised not in ("ValueError", "TypeError"), f"{path}:{node.lineno}: raises {raised}"


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
        "         'tokenfst.automata.json_schema.json_schema')\n"
        "print(*[name for name in heavy if name in sys.modules])"
    )
    assert loaded == ""


def test_every_public_name_is_there() -> None:
    missing = python("import tokenfst; print(*[n for n in tokenfst.__all__ if not hasattr(tokenfst, n)])")
    assert missing == ""


def test_files_stay_small_enough_to_hold_in_the_head() -> None:
    kept = [
        *FILES,
        *ROOT.glob("*/*.py"),
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("benchmarks/*/*.py"),
        *ROOT.glob("native/**/*.[hc]pp"),
    ]
    large = {path.name: count for path in kept if (count := len(path.read_text().splitlines())) > 520}
    assert not large, large


def tracked(*patterns: str) -> list[str]:
    """The files of the repository, from its root."""
    listed = ["git", "ls-files", "--", *patterns]
    return subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def test_each_exception_from_a_rule_has_a_reason() -> None:
    bare = [
        f"{name}:{number}"
        for name in tracked("*.py")
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
        if re.search(r"# noqa(: [A-Z0-9, ]+)?$", line)
    ]
    assert not bare, bare


def test_nothing_names_a_place_of_this_machine() -> None:
    for name in tracked():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".hpp", ".cpp", ".txt", ".yml"} and path != Path(__file__):
            text = path.read_text()
            assert str(ROOT) not in text and "pypi.org" not in text, name
