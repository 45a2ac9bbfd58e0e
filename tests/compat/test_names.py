"""The drop-in modules have the public names of xgrammar and llguidance, module by module, but for the table."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.engines.peers import VERSIONS, peer

pytest.importorskip("torch")

NOT_HERE = {
    "xgrammar": {"base", "load_binding", "tvm_ffi_binding"},
    "llguidance": set(),
    "llguidance.gbnf_to_lark": {
        "ASTNode",
        "AlternativeNode",
        "GrammarParser",
        "LiteralNode",
        "Position",
        "RegexNode",
        "RepetitionNode",
        "RuleNode",
        "RuleRefNode",
        "SequenceNode",
        "resolve",
    },
}
"""Names of each module that docs/engines/compat.md says are not here."""
ABSENT = (
    "xgrammar.libxgrammar_bindings",
    "xgrammar.base",
    "xgrammar.load_binding",
    "xgrammar.tvm_ffi_binding",
)
ELSEWHERE = ("mlx", "triton", "cuda", "huggingface", "llama_cpp", "tiktoken")
"""What a module may need that is not installed here."""


def public_modules(name: str) -> list[str]:
    package = importlib.import_module(name)
    found = [each.name for each in pkgutil.walk_packages(package.__path__, f"{name}.")]
    return [each for each in found if not any(part.startswith("_") for part in each.split("."))]


def own_names(module: ModuleType) -> set[str]:
    """The public names that a module defines; of a package all that are its library's."""
    home = module.__name__ if "." in module.__name__ else f"{module.__name__}."
    found = set()
    for name, value in vars(module).items():
        where = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
        if name.startswith("_") or name == "TYPE_CHECKING":
            continue
        if where is None or where == home or ("." not in module.__name__ and where.startswith(home)):
            found.add(name)
    return found


@pytest.mark.parametrize("library", VERSIONS)
def test_every_name_of_every_module(library: str) -> None:
    peer(library)
    differences: dict[str, set[str]] = {}
    for name in (library, *public_modules(library)):
        if name.startswith(ABSENT):
            continue
        mine_name = f"tokenfst.compat.{name}"
        assert find_spec(mine_name) is not None, f"there is no {mine_name}"
        try:
            theirs = importlib.import_module(name)
        except (ImportError, AttributeError) as error:  # AttributeError: Triton without a GPU
            assert any(each in str(error).lower() for each in ELSEWHERE), (name, error)
            continue
        mine = importlib.import_module(mine_name)
        missing = own_names(theirs) - set(dir(mine)) - NOT_HERE.get(name, set())
        if "." not in name:  # modules that are imported by their names
            missing -= {each for each in missing if find_spec(f"{mine_name}.{each}")}
        differences[name] = missing
    assert not any(differences.values()), differences
    assert len(differences) >= 7, differences


def test_what_is_not_here_is_in_the_docs() -> None:
    page = Path(__file__).parents[2].joinpath("docs/engines/compat.md").read_text("utf-8")
    for names in NOT_HERE.values():
        for name in names:
            assert f"`{name}`" in page, f"docs/engines/compat.md does not name {name}"
