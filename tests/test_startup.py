"""How soon the package and the program start, and what they import until then.

Times are CPU times of whole processes, the least of five: a loaded machine does not change what is right. The bounds
are those of a quiet machine with half as much again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

import tokenfst

RUNS = 5
SLACK = 1.5


def cpu(*arguments: str) -> float:
    """Seconds of CPU of a Python process, the least of some runs."""
    taken = []
    for _ in range(RUNS):
        process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, arguments
        taken.append(usage.ru_utime + usage.ru_stime)
    return min(taken)


def imported(*arguments: str) -> set[str]:
    """The modules that a Python process imports and that are no part of Python."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True
    )
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    names = {line.rpartition("|")[2].strip() for line in lines}
    return {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}


def packages(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


OWN = {
    "tokenfst",
    "tokenfst.common",
    "tokenfst.common.moved",
    "tokenfst.tokenizers",
    "tokenfst.tokenizers.adapters",
    "tokenfst.tokenizers.vocabulary",
    "tokenfst.tokenizers.vocabulary.doors",
}
"""What ``import tokenfst`` imports: the public names come with their first use."""
BARE = packages(imported("-c", "pass")) | {"org"}
"""What this interpreter imports for itself, as an editable install does; ``org``: copy asks for Jython."""


def test_import_is_quick_and_loads_nothing() -> None:
    found = imported("-c", "import tokenfst")
    assert {name for name in found if name.startswith("tokenfst")} == OWN
    assert packages(found) - BARE == {"tokenfst"}
    assert cpu("-c", "import tokenfst") - cpu("-c", "import numpy") <= 0.120 * SLACK


def test_the_programs_version_is_quick_and_loads_no_room() -> None:
    found = imported("-m", "tokenfst", "--version")
    assert not [name for name in found if name.startswith(("tokenfst.automata", "tokenfst.decoding"))]
    assert packages(found) - BARE <= {"tokenfst", "typer", "annotated_doc", "shellingham"}
    assert cpu("-m", "tokenfst", "--version") <= 0.150 * SLACK


def test_the_programs_help_is_quick_and_loads_no_room() -> None:
    found = imported("-m", "tokenfst", "--help")
    assert not [name for name in found if name.startswith(("tokenfst.automata", "tokenfst.decoding"))]
    assert not {"numpy", "torch", "pynini", "transformers", "lark"} & packages(found)
    assert cpu("-m", "tokenfst", "--help") <= 0.250 * SLACK


def test_compiling_and_walking_load_nothing_that_is_optional() -> None:
    found = imported(
        "-c",
        "import tokenfst\n"
        "v = tokenfst.Vocabulary([b'a', b'b', b''], 2)\n"
        "tokenfst.compile(tokenfst.regex('(ab)*'), v).matcher().accept_token(0)",
    )
    assert packages(found) - BARE <= {"tokenfst", "numpy", "safetensors"}


def without(*missing: str, run: str) -> str:
    """What a program prints where these packages cannot be imported."""
    code = (
        "import sys\n"
        "class Refuses:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] in {missing!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Refuses())\n"
    )
    done = subprocess.run([sys.executable, "-c", code + run], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("missing", [("torch", "triton", "transformers"), ("transformers",)])
def test_a_star_imports_what_can_be_imported(missing: tuple[str, ...]) -> None:
    """Of a package that is not installed, the names that need it are left out of ``__all__``, and no others; each of
    them says which package it needs.
    """
    lists = (
        "import json, tokenfst\n"
        "needs = {}\n"
        "for name in tokenfst._ALL:\n"
        "    try: getattr(tokenfst, name)\n"
        "    except tokenfst.TokenfstError as error: needs[name] = str(error)\n"
        "print(json.dumps([needs, tokenfst.__all__]))"
    )
    needs, names = json.loads(without(*missing, run=lists))
    assert needs and set(names) == set(tokenfst.__all__) - set(needs)
    for said in needs.values():
        assert any(re.search(rf"needs? {package}: pip install", said) for package in missing), said
    star = "from tokenfst import *\nprint(regex('a').accepts(b'a'), 'ConstraintLogitsProcessor' in globals())"
    assert without(*missing, run=star) == "True False"


def test_a_star_imports_everything_here() -> None:
    assert set(tokenfst.__all__) == set(tokenfst._ALL)
    found = subprocess.run(
        [sys.executable, "-c", "from tokenfst import *\nprint(*dir())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(tokenfst.__all__) <= set(found.stdout.split())
