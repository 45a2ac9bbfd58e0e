"""The rooms and their order: what tests/test_architecture.py checks and docs/rooms.py draws."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("automata", "tokenizers", "decoding")
# From the bottom up: a room imports those before it. Each room's docstring says its idea and its reading order.
ROOMS = [
    "automata/pictures",
    "automata/expressions",
    "automata/characters",
    "automata/openfst",
    "automata/transducers",
    "automata/transducer_operations",
    "automata/transducer_grammars",
    "automata/semirings",
    "automata/captures",
    "automata/events",
    "automata/languages/texts",
    "automata/languages/display",
    "automata/languages",
    "automata/images",
    "automata/pieces",
    "automata/regex",
    "automata/formats",
    "automata/rules",
    "automata/grammars",
    "automata/weights",
    "automata/weighted_grammars",
    "automata/json_values",
    "automata/json_schema/sets",
    "automata/json_schema/documents",
    "automata/json_schema/reading",
    "automata/json_schema/writing",
    "automata/json_schema",
    "automata/notations/parsing",
    "automata/notations",
    "automata/structural_tags/documents",
    "automata/structural_tags",
    "automata/python_text",
    "automata/tools/definitions",
    "automata/tools/reading",
    "automata/tools",
    "automata/symbols",
    "tokenizers/vocabulary",
    "decoding/artifacts",
    "decoding/token_automata",
    "decoding/masks",
    "tokenizers/segmentation",
    "decoding/matchers",
    "decoding/canonical",
    "decoding/scores",
    "decoding/compiling",
    "decoding/store/storages",
    "decoding/store",
    "decoding/device/tables",
    "decoding/device/kernels",
    "decoding/device/kernels/sampling",
    "decoding/device/kernels/scores",
    "decoding/device/automata",
    "decoding/device/paged",
    "decoding/device/lazy",
    "decoding/device/weighted",
    "decoding/device",
    "decoding/rows",
    "decoding/models",
    "decoding/search",
    "decoding/labels",
    "decoding/particles",
    "decoding/lattices",
    "tokenizers/adapters",
    "decoding/engines/shared",
    "decoding/engines",
    "decoding/generation",
]
NATIVE_ROOMS = [
    "calls",
    "support",
    "containers",
    "graph_searches",
    "threads",
    "words",
    "fst",
    "fst_operations",
    "fst_selection",
    "fst_lazy",
    "expressions",
    "derivatives",
    "programs",
    "expression_forms",
    "stacks",
    "byte_automata",
    "walks",
    "exclusion",
    "vocabulary",
    "scores",
    "masks",
    "token_automata",
    "matching",
    "artifact",
    "device",
    "python",
    "bindings",
    "wasm",
]
FILES = [path for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))]


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a file's syntax tree."""
    return [*ast.walk(ast.parse(path.read_text()))]


@cache
def imports(path: Path) -> list[str]:
    """Every module that a file imports, at its top or later, ``from a import b`` as ``a.b``."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports do not survive the layout"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and _name_of(node.func) == "import_module":
            found += [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    return found


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def room_of(path: str) -> str:
    """The innermost room that a file, or the dotted name of a module with slashes for dots, lies in."""
    return max((room for room in ROOMS if path.startswith(f"{room}/")), key=len)


def edges() -> set[tuple[str, str]]:
    """Each room and a room that it imports."""
    found = set()
    for path in FILES:
        own = room_of(str(path.relative_to(ROOT)))
        for module in imports(path):
            parts = module.split(".")
            if parts[0] == "tokenfst" and parts[1] in TOPS:
                found.add((own, room_of("/".join(parts[1:]))))
    return {(one, other) for one, other in found if one != other}


def native_room_of(path: Path) -> str:
    """The room of a file of the core. Rooms may have folders."""
    return path.relative_to(ROOT / "native").parts[0]


def native_edges() -> set[tuple[str, str]]:
    """Each room of the core and a room that it includes."""
    found = set()
    for path in (ROOT / "native").rglob("*.[hc]pp"):
        for included in re.findall(r'#include "([^"]+)"', path.read_text()):
            found.add((native_room_of(path), included.split("/")[0]))
    return {(one, other) for one, other in found if one != other}


def docstring(room: str) -> str:
    """What a room's ``__init__.py`` says of it."""
    return ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text())) or ""
