"""No pattern by which the package reads texts takes exponential or quadratic time on some text.

None is ambiguous in a loop.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from reference.patterns.ambiguity import ambiguity

ROOT = Path(__file__).resolve().parents[2]
COLLECT = """
import importlib, json, pkgutil, re, sys
compiled, found = re.compile, {}

def compile(pattern, flags=0):
    name = sys._getframe(1).f_globals.get("__name__", "")
    if isinstance(pattern, str) and name.partition(".")[0] == "tokenfst":
        found[pattern] = int(flags), name
    return compiled(pattern, flags)

re.compile = compile
import tokenfst

for module in pkgutil.walk_packages(tokenfst.__path__, "tokenfst."):
    try:
        importlib.import_module(module.name)
    except ImportError:
        pass
tokenfst.lark_grammar("start: 'a'".replace("'", '"'))
tokenfst.gbnf("root ::= [a]")
tokenfst.ebnf("root ::= [a]")
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        ("(a*)*b", "exponential"),
        ("(a|aa)*b", "exponential"),
        ("(a|b|ab)*c", "exponential"),
        (r'"(\\"|\\\\|[^"\n])*?"', "exponential"),
        (r"x(?=(?:\w|\dz?)*y)", "exponential"),
        (r"\s*\n*;", "polynomial"),
        (r"(\r?\n)+\s*\|", "polynomial"),
        ("a*a*b", "polynomial"),
        ("(?i:A)*a*b", "polynomial"),
        ("(ab)*a?", None),
        (r'"(?:\\[^\n]|[^"\\\n])*"', None),
        (r"\r?\n\s*\|", None),
        ("a{2,30}b*", None),
        (r"(?:[^()]|\([^()]*\))*", None),
    ],
)
def test_the_twin(pattern: str, kind: str | None) -> None:
    assert ambiguity(pattern) == kind


def literals() -> dict[str, tuple[int, str]]:
    """The patterns that stand in calls of ``re``. Flags that stand beside them are ignored."""
    found = {}
    for folder in ("automata", "decoding", "src", "tokenizers"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and isinstance(node.func.value, ast.Name)
                    and node.func.value.id == "re"
                    and node.args
                    and isinstance(node.args[0], ast.Constant)
                    and isinstance(node.args[0].value, str)
                ):
                    found[node.args[0].value] = 0, str(path)
    return found


def test_no_pattern_of_the_package_is_ambiguous_in_a_loop() -> None:
    ran = subprocess.run([sys.executable, "-c", COLLECT], capture_output=True, text=True, check=True)
    patterns = {**literals(), **json.loads(ran.stdout)}
    assert len(patterns) > 100
    found = {
        (where, pattern): kind
        for pattern, (flags, where) in patterns.items()
        if (kind := ambiguity(pattern, flags))
    }
    assert not found
