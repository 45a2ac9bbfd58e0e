"""The stub of the native core names what the compiled module has, with the same parameters."""

import ast
from pathlib import Path
from typing import Any

import pytest

import tokenfst
import tokenfst.decoding.token_automata.token_automaton  # adds methods to Matcher
from tokenfst import _native

STUB = ast.parse((Path(tokenfst.__file__).parent / "_native.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}


def parameters(signature: str) -> list[str]:
    """The names of the parameters in nanobind's text of a signature, whose types may be no expressions."""
    names, depth, begin = [], 0, signature.index("(") + 1
    for at in range(begin, len(signature)):
        if depth == 0 and signature[at] in ",)":
            names.append(signature[begin:at].partition(":")[0].partition("=")[0].strip())
            if signature[at] == ")":
                break
            begin = at + 1
        depth += (signature[at] in "([") - (signature[at] in ")]")
    return [name for name in names if name not in ("", "/")]


def check(node: ast.FunctionDef, function: Any) -> None:
    for signature, _, _ in getattr(function, "__nb_signature__", ()):
        found = parameters(signature)
        if not any(name.rstrip("0123456789") == "arg" for name in found):  # the binding names none
            assert found == [each.arg for each in node.args.args], node.name


def test_names_of_signatures() -> None:
    assert parameters(
        "def f(self, a: ndarray[shape=(*, *), order='C'], b: int = 0, /) -> tuple[int, str]"
    ) == [*("self", "a", "b")]
    assert parameters("def f() -> None") == []


def test_functions() -> None:
    assert len(FUNCTIONS) > 30
    for name, node in FUNCTIONS.items():
        check(node, getattr(_native, name))
    with pytest.raises(AssertionError):
        check(FUNCTIONS["concat"], _native.fill_step)


def test_every_name() -> None:
    named = {name for name in vars(_native) if not name.startswith(("_", "Fst_", "Lazy_"))}
    named -= {"stress"}  # of builds for sanitizers only
    assert named == (FUNCTIONS.keys() | CLASSES.keys()) - {"Fst_boolean"}


def test_classes() -> None:
    assert len(CLASSES) > 30
    for name, node in CLASSES.items():
        found, named = getattr(_native, name), set()
        for member in node.body:
            if isinstance(member, ast.FunctionDef):
                named.add(member.name)
                if not any(
                    isinstance(each, ast.Name) and each.id == "property" for each in member.decorator_list
                ):
                    check(member, getattr(found, member.name))
            elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                named.add(member.target.id)
        assert all(hasattr(found, each) for each in named - {"made_from", "held_constraint"}), name
        if name != "Fst_boolean":  # of which only what is typed is in the stub
            assert {each for each in vars(found) if not each.startswith("_")} <= named, name
