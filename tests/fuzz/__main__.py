"""The driver: ``python -m tests.fuzz [NAME] [--seconds S] [--blind] [--tally FILE]``.

Without a name, all targets share the time.

It ends with a line that says how many inputs ran in what time. An input that breaks the target's promise is written
to ``build/fuzz/NAME`` and ends the run with exit status 1. The corpus that libFuzzer collects stays in
``build/fuzz/NAME/corpus``, so that a later run continues from it. ``--tally`` adds the run to a file (``tally``).
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import time
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.link_tree import link_tree

from fuzz import tally


def blind(name: str, inputs: list[bytes], seconds: float, kept: Path, seed: int) -> int:
    """Mutate without looking at coverage."""
    from fuzz.targets import TARGETS

    rng = random.Random(seed)
    ran, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutated(rng, rng.choice(inputs), rng.choice(inputs))
        (kept / "last").write_bytes(data)  # a crash of the process leaves it
        try:
            TARGETS[name](data)
        except BaseException:
            (kept / f"found-{ran}").write_bytes(data)
            print(f"{name}: input {ran} breaks the promise; it is {kept / f'found-{ran}'}", file=sys.stderr)
            raise
        ran += 1
    (kept / "last").unlink(missing_ok=True)
    print(f"{name}: {ran} inputs in {seconds:.0f} s, mutated blindly; nothing found")
    return 0


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A few edits: bytes replaced, removed, doubled, or taken from the other input."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 8])):
        at, length = rng.randrange(len(changed) + 1), rng.choice([1, 1, 2, 4, 16])
        match rng.randrange(5):
            case 0:
                changed[at : at + length] = rng.randbytes(length)
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = changed[at : at + length]
            case 3:
                begin = rng.randrange(len(other) + 1)
                changed[at:at] = other[begin : begin + length]
            case _:
                changed[at : at + length] = rng.choice(
                    [b"\0", b"\xff" * 4, b"9" * 12, b"(", b'"', b"\xc3", b"{"]
                )
    return bytes(changed[:4000])


def guided(name: str, inputs: list[bytes], seconds: float, kept: Path) -> None:
    """Let libFuzzer choose the mutations, by the coverage of the Python code. Does not return."""
    import atheris

    import_from_files(kept / "package")
    with atheris.instrument_imports(include=["tokenfst", "support", "fuzz"]):
        from fuzz.targets import TARGETS, seeds

        inputs = inputs + seeds(name)
        for (
            data
        ) in inputs:  # the package imports its modules on first use: they are instrumented here or never
            TARGETS[name](data)
    corpus = kept / "corpus"
    corpus.mkdir(exist_ok=True)
    for k, data in enumerate(inputs):
        (corpus / f"seed-{k}").write_bytes(data)
    options = [f"-max_total_time={seconds:.0f}", "-timeout=20", "-rss_limit_mb=4000", "-max_len=4000"]
    atheris.Setup(
        [name, *options, "-print_final_stats=1", f"-artifact_prefix={kept}/found-", str(corpus)],
        TARGETS[name],
    )
    atheris.Fuzz()


def import_from_files(tree: Path) -> None:
    """Import the package by Python's own loader from now on: atheris does not instrument what others load.

    An editable install has a loader of its own, so a tree of links takes its place.
    """
    core = importlib.util.find_spec("tokenfst._native")
    assert core is not None
    assert core.origin is not None
    for name in [name for name in sys.modules if name.partition(".")[0] == "tokenfst"]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
    link_tree(tree)
    link = tree / "tokenfst" / Path(core.origin).name
    link.unlink(missing_ok=True)
    link.symlink_to(core.origin)
    sys.path.insert(0, str(tree))


def in_processes(names: Collection[str], seconds: float, options: list[str], kept: Path | None) -> int:
    """Run targets, each in a process of its own, since a crash ends it. 1 if any of them found something, else 0."""
    found = 0
    for name in names:
        command = [sys.executable, "-m", "tests.fuzz", name, "--seconds", str(seconds / len(names)), *options]
        status, messages, took = tally.run(command, ROOT)
        found += status != 0
        if kept:
            tally.add(kept, name, messages, took)
    print(f"{len(names)} targets, {found} of which found something")
    return min(found, 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("name", nargs="?", help="a target of tests/fuzz/targets.py; none: all of them")
    parser.add_argument("--seconds", type=float, default=60, help="in all")
    parser.add_argument("--blind", action="store_true", help="do without atheris")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the blind mutations")
    parser.add_argument("--tally", type=Path, help="add what ran to this file")
    chosen = parser.parse_args()
    if not chosen.name or chosen.tally:
        from fuzz.targets import TARGETS

        names = [chosen.name] if chosen.name else TARGETS
        return in_processes(names, chosen.seconds, ["--blind"] * chosen.blind, chosen.tally)
    kept = ROOT / "build" / "fuzz" / chosen.name
    kept.mkdir(parents=True, exist_ok=True)
    if not chosen.blind:
        try:
            import atheris  # noqa: F401  # whether it can be imported is what is asked
        except ImportError:
            print("atheris is not installed: mutating blindly", file=sys.stderr)
            chosen.blind = True
    inputs = [path.read_bytes() for path in sorted((ROOT / "tests/hostile/inputs" / chosen.name).glob("*"))]
    if chosen.blind:
        from fuzz.targets import seeds

        return blind(chosen.name, inputs + seeds(chosen.name), chosen.seconds, kept, chosen.seed)
    guided(chosen.name, inputs, chosen.seconds, kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
