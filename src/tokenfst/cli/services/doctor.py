"""``tokenfst doctor``: installed and missing packages, the features of the missing ones, and the computer."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from tokenfst.cli.constraints import options
from tokenfst.cli.input import groups
from tokenfst.cli.output.terminal import Exit, say, say_json, say_pairs

GIVES = {
    "transformers": "Generator, the logits processor, models of transformers",
    "torch": "masks on tensors, the masking loop on a device",
    "tokenizers": "vocabularies of Hugging Face, tiktoken, SentencePiece and mistral-common",
    "pydantic": "Python types as JSON Schemas: models, dataclasses, annotations",
    "grammars": "grammars: Lark, GBNF, EBNF",
    "fst": "pynini's machines: to_fst, detokenizer; reversal of automata; pictures as svg, png and html",
    "concepts": "English inflections",
    "gpu": "Triton kernels of the masking loop",
    "store": "stores of artifacts at any address that fsspec reads, signed artifacts",
    "serve": "a server of constraints over HTTP",
    "ray": "batches and offline decoding on Ray",
    "vllm": "the plugin for vLLM",
    "sglang": "the plugin for SGLang",
    "llama": "llama.cpp through llama-cpp-python",
    "mlx": "MLX-LM: Generator, a logits processor",
    "onnx-genai": "masks and a loop for ONNX Runtime GenAI",
    "openai": "Generator over a server that speaks OpenAI's protocol",
}
"""The extras, and the features of each."""


@dataclass(frozen=True, slots=True)
class Package:
    """A required package. ``found``: its version; None if it is not installed. ``wanted``: the requirement; ``fits``:
    whether the version satisfies it.
    """

    name: str
    wanted: str
    found: str | None
    fits: bool


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "doctor", doctor_command)


def doctor_command(*, json: options.Json = False) -> int:
    """Report which packages are installed, which are missing and what they are for, and what the computer has.

    No large package is imported, and nothing is changed. Exit code 1: a package that tokenfst requires is missing
    or too old.
    """
    needed, extras = packages()
    about = computer()
    well = all(package.fits for package in needed)
    if json:
        say_json(
            {
                "command": "doctor",
                "computer": about,
                "needed": [asdict(package) for package in needed],
                "extras": {
                    name: {"gives": GIVES[name], "packages": [asdict(package) for package in some]}
                    for name, some in extras.items()
                },
            }
        )
        return Exit.YES if well else Exit.NO
    say_pairs(list(about.items()))
    if not needed:
        say("tokenfst is not installed as a package, so its requirements are not known")
        return Exit.YES
    say()
    say("needed")
    say_pairs([(package.name, _state(package)) for package in needed], "  ")
    for name, some in extras.items():
        if not some:  # the installed metadata are those of a version without this extra
            continue
        missing = [package for package in some if not package.fits]
        say()
        say(f"[{name}] {GIVES[name]}", "yellow" if missing else "green")
        say_pairs([(package.name, _state(package)) for package in some], "  ")
        if missing:
            say(f'    pip install "tokenfst[{name}]"')
    return Exit.YES if well else Exit.NO


def packages() -> tuple[list[Package], dict[str, list[Package]]]:
    """The requirements of this distribution: those without extras, and those of each extra."""
    needed: list[Package] = []
    extras: dict[str, list[Package]] = {name: [] for name in GIVES}
    try:
        texts = importlib.metadata.requires("tokenfst") or []
    except importlib.metadata.PackageNotFoundError:  # it runs from its sources
        texts = []
    for text in texts:
        requirement, _, condition = text.partition(";")
        name = re.match(r"[A-Za-z0-9_.-]+", requirement.strip())
        if name is None or name[0] == "tokenfst":
            continue
        package = _package(
            name[0], re.sub(r"^\[[^]]*\]", "", requirement.strip()[len(name[0]) :].strip()).strip(" ()")
        )
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", condition)
        if extra is None:
            needed.append(package)
        elif extra[1] in extras:
            extras[extra[1]].append(package)
    return needed, extras


def _package(name: str, wanted: str) -> Package:
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Package(name, wanted, None, False)
    least = re.search(r">=\s*([0-9.]+)", wanted)
    return Package(name, wanted, found, least is None or _numbers(found) >= _numbers(least[1]))


def _numbers(version: str) -> list[int]:
    """The numbers at the beginning of a version, without trailing zeros."""
    leading = re.match(r"[0-9.]*", version)
    numbers = [int(each) for each in (leading[0] if leading else "").split(".") if each]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def _state(package: Package) -> str:
    if package.found is None:
        return f"missing (wanted: {package.wanted or 'any'})"
    return package.found if package.fits else f"{package.found} is too old (wanted: {package.wanted})"


def computer() -> dict[str, str]:
    """Versions and properties of the computer, as text by name."""
    from tokenfst import __version__, _native

    return {
        "tokenfst": __version__,
        "Python": f"{platform.python_version()} ({sys.implementation.name})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "CPUs": str(os.cpu_count()),
        "vectors": ", ".join(_native.simd_levels()),
        "core": str(getattr(_native, "__file__", "built in")),
        "Graphviz": shutil.which("dot") or "missing: pictures as dot text only",
        "GPU": _gpu(),
    }


def _gpu() -> str:
    """The GPU that the driver reports. torch is not used, since its import takes seconds."""
    if Path("/proc/driver/nvidia/version").exists():
        return "NVIDIA's driver is there" + (
            "" if importlib.util.find_spec("torch") else "; torch is missing"
        )
    return "no driver of NVIDIA found"
