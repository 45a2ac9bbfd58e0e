"""All speed figures in one table: ``python benchmarks/run.py [--only NAME]... [--json] [--save]``.

Every benchmark is a function that yields figures. Ours come first; the ratio column has each line's median divided by
ours of the same run. A missed target is marked, but is not an error: other work on the computer can cause it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import tokenfst
from benchmarks.decoders import beams, completeness, decoding_loop, particles
from benchmarks.device import logits, whole_steps
from benchmarks.grammars import events, grammars, tags
from benchmarks.masks import compilation, length, steps, substrings
from benchmarks.measuring import record
from benchmarks.measuring.libraries import PEERS, World, version
from benchmarks.measuring.measure import Figure, pin_to_one_cpu, shown
from benchmarks.schemas import schemas

BENCHMARKS: dict[str, Callable[[World], Iterator[Figure]]] = {
    "vocabulary": compilation.vocabulary,
    "first-mask": compilation.first_mask,
    "object-regex": compilation.object_regex,
    "object-lazily": compilation.object_regex_lazily,
    "artifact": compilation.artifact,
    "steps": steps.cached_steps,
    "interior": steps.unvisited_interior,
    "substrings": substrings.substrings,
    "logits": logits.logits_masking,
    "device": whole_steps.device,
    "length": length.length,
    "completeness": completeness.completeness,
    "grammars": grammars.grammars,
    "grammar-depth": grammars.grammar_depth,
    "grammar-length": grammars.grammar_length,
    "schemas": schemas.schemas,
    "tags": tags.tags,
    "events": events.events,
    "decoding": decoding_loop.decoding,
    "beams": beams.beams,
    "particles": particles.particles,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=BENCHMARKS, help=", ".join(BENCHMARKS)
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument(
        "--save",
        action="store_true",
        help="also write docs/data/NAME.json, from which the pages take their figures",
    )
    parser.add_argument(
        "--without", action="append", metavar="PEER", choices=PEERS, default=[], help="leave out this library"
    )
    parser.add_argument(
        "--schemas",
        type=lambda text: None if text == "all" else int(text),
        default=schemas.SAMPLE,
        metavar="N",
        help=f"number of JSON schemas, or 'all' (default: {schemas.SAMPLE})",
    )
    options = parser.parse_args(arguments)
    benchmarks = BENCHMARKS | {"schemas": partial(schemas.schemas, count=options.schemas)}
    cores, cpu = os.cpu_count(), pin_to_one_cpu()
    about = computer(cpu, cores)
    commit = record.commit()
    if not options.json:
        for key, value in about.items():
            print(f"{key:9} {value}")
        for peer in PEERS:
            if version(peer) is None:
                print(f"skipped   {peer} is not installed, so it has no figures")
        print(f"\n{'':76}{'median':>10}{'least':>10}{'ratio':>9}  target")
    world = World(tokenfst.load_vocabulary(compilation.TEKKEN), options.without)
    figures, missed = [], 0
    for name in options.only or BENCHMARKS:
        ours: dict[str, Figure] = {}
        kept: list[Figure] = []
        for found in benchmarks[name](world):
            kept.append(found)
            first = ours.setdefault(found.what, found)
            verdict = judge(found, first)
            missed += verdict.endswith("MISSED")
            figures.append(found.as_json() | {"benchmark": name})
            if not options.json:
                print_line(found, first, verdict)
        if options.save:
            record.save(name, recorded(name, kept, about, options, commit))
    if options.json:
        json.dump({"machine": about, "figures": figures}, sys.stdout, indent=1)
        print()
    else:
        print(f"\n{missed} targets missed" if missed else "\nall targets met")
    return 0


def recorded(
    name: str, figures: list[Figure], about: dict[str, str], options: argparse.Namespace, commit: str
) -> record.Run:
    """The run of one benchmark, with the command that runs this benchmark alone."""
    words = ["python benchmarks/run.py --only", name]
    words += [f"--without {peer}" for peer in options.without]
    if name == "schemas" and options.schemas != schemas.SAMPLE:
        words.append(f"--schemas {options.schemas or 'all'}")
    return record.Run(
        " ".join(words), about["date"][:10], commit, about["machine"], tuple(figures), about["versions"]
    )


def judge(found: Figure, ours: Figure) -> str:
    """The target, and whether it was met, as text; empty without a target."""
    if found.median is None or (found.target is None and found.at_least is None):
        return ""
    if found.target is not None:
        met, text = found.median <= found.target, f"<= {shown(found.target, found.unit)}"
    else:
        assert found.at_least is not None and ours.median
        met, text = found.median / ours.median >= found.at_least, f"ratio >= {found.at_least:g}"
    return f"{text} {'met' if met else 'MISSED'}"


def print_line(found: Figure, ours: Figure, verdict: str) -> None:
    if found is ours:
        print(f"\n{found.what}")
    ratio = ""
    if found is not ours and found.unit == ours.unit and found.median is not None and ours.median:
        ratio = f"{found.median / ours.median:.2f} x"
    median, least = shown(found.median, found.unit), shown(found.least, found.unit)
    print(f"  {found.who:74}{median:>10}{least:>10}{ratio:>9}  {verdict}".rstrip())
    if found.note:
        print(f"      {found.note}", flush=True)


def computer(cpu: int | None, cores: int | None) -> dict[str, str]:
    """What the figures depend on: day, computer, versions, vocabulary."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    pinned = "not pinned" if cpu is None else f"pinned to CPU {cpu}"
    libraries = {name: version(name) for name in ("tokenfst", *PEERS, "torch", "numpy")}
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": "python " + " ".join(sys.argv),
        "machine": f"{model}, {cores} cores, {pinned}; load before: {os.getloadavg()[0]:.1f}",
        "versions": ", ".join(f"{name} {found or 'not installed'}" for name, found in libraries.items())
        + f", Python {platform.python_version()}",
        "figures": f"{compilation.TEKKEN}, one thread; median and least; ratio to each group's first line",
    }
