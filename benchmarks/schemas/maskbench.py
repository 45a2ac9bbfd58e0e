"""All schemas of MaskBench in one process: first masks by CPU time, and every mask of every document.

    python -m benchmarks.schemas.maskbench tokenfst --order any
    python -m benchmarks.schemas.maskbench tokenfst --max-new-tokens 640
    python -m benchmarks.schemas.maskbench llguidance

The times are chosen for computers that others use as well:

- the first mask, with compilation from the schema as a dict, is CPU time of the process;
- a step is a mask and an advance. Its time is the clock's or the thread's CPU time, whichever is less. The look into
  the mask between the two calls is numpy's work and is not timed.

Both kinds of time grow when a busy neighbour fills the caches, so compare only libraries that ran at the same time. A
schema is refused, or judged by all of its documents, end token included. ``--out`` gets one line of JSON for each
schema. The program also prints the memory of the process before the first schema (the vocabulary, and all schemas and
documents as texts) and after the last (with the times of all steps, 8 bytes each), and the pauses of Python's full
garbage collections.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
from array import array
from functools import partial
from pathlib import Path
from statistics import fmean
from time import perf_counter_ns, process_time_ns, thread_time_ns
from typing import Any

import tokenfst
from benchmarks.masks.compilation import TEKKEN
from benchmarks.measuring import record
from benchmarks.measuring.libraries import LIBRARIES, Walk, version
from benchmarks.measuring.measure import Figure
from benchmarks.schemas.runner import WARM_UP, encoder
from benchmarks.schemas.schemas import lines_of

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "maskbench" / "all.jsonl.gz"
LONG = 2_000_000
"""Nanoseconds; the program counts the full collections that take longer."""
PARTS = (0.5, 0.9, 0.99, 0.999, 1.0)
NAMES = ("p50", "p90", "p99", "p99.9", "longest")
MEMORY = ("memory before the first schema", "memory after the last, with all documents and step times")


def main() -> None:
    parser = argparse.ArgumentParser(description="all schemas of MaskBench in one process")
    parser.add_argument("library", choices=("tokenfst", "llguidance"))
    parser.add_argument(
        "--order", choices=("schema", "any"), default="schema", help="order of members; tokenfst only"
    )
    parser.add_argument("--schemas", type=int, help="number of schemas, a sample that is the same every time")
    parser.add_argument(
        "--max-new-tokens", type=int, help="limit of tokens, for tokenfst only; longer documents are left out"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "benchmark-maskbench.jsonl")
    parser.add_argument(
        "--save", action="store_true", help="also write the figures to docs/data/maskbench.json"
    )
    given = parser.parse_args()
    vocabulary, encode = tokenfst.load_vocabulary(TEKKEN), encoder(TEKKEN)
    library = LIBRARIES[given.library](vocabulary, encode)
    if given.library == "tokenfst":

        def compiled(schema: Any) -> Any:
            return tokenfst.compile(tokenfst.json_schema(schema, property_order=given.order), vocabulary)

        library.compile_schema = compiled
        if given.max_new_tokens is not None:
            library.walk = lambda automaton: limited(automaton, len(vocabulary), given.max_new_tokens)
    lines = lines_of(DATA, given.schemas)
    library.walk(library.compile_schema(WARM_UP)).fill()
    gc.collect()
    gc.freeze()  # collections need not look at what was imported
    given.out.parent.mkdir(parents=True, exist_ok=True)
    pauses, memory = full_collections(), resident()
    records = []
    with given.out.open("w") as file:
        for line in lines:
            row = json.loads(line)
            if given.max_new_tokens is not None:
                row["tests"] = fitting(row["tests"], encode, given.max_new_tokens)
            records.append(judged(library, row, encode, vocabulary.eos_token_ids[0], file))
    after = resident()
    passed = sum(not each["wrong"] and "refused" not in each for each in records)
    print(f"{given.library}: {len(records)} schemas, {passed} right about all documents, ", end="")
    print(f"{sum('refused' in each for each in records)} refused")
    firsts = [each["first"] for each in records if "first" in each]
    print("first mask, CPU ms:", shown(firsts, 1e6), f"sum {sum(firsts) / 1e9:.1f} s")
    steps = [step for each in records for step in each["steps"]]
    print(f"mask + advance, µs: mean {fmean(steps) / 1e3:.2f},", shown(steps, 1e3), f"of {len(steps):,}")
    if given.save:
        save(given, records, firsts, steps, pauses, (memory, after))
    print(f"memory, MB: {memory / 1e6:.0f} before, {after / 1e6:.0f} after")
    longer = sum(pause > LONG for pause in pauses)
    print(f"full collections: {len(pauses)}, {longer} of them over {LONG / 1e6:g} ms,", end=" ")
    print(f"CPU ms: sum {sum(pauses) / 1e6:.0f}, longest {max(pauses, default=0) / 1e6:.3g}")


def save(
    given: argparse.Namespace,
    records: list[dict[str, Any]],
    firsts: list[int],
    steps: list[int],
    pauses: list[int],
    memory: tuple[int, int],
) -> None:
    """Write the figures to docs/data, as one column of a table in docs/benchmarks.md."""
    limit = given.max_new_tokens
    who = given.library
    if who == "tokenfst":
        who += f", {limit} tokens" if limit else f", {given.order} order"
    counts = {
        "right about all documents": sum(not each["wrong"] and "refused" not in each for each in records),
        "refused": sum("refused" in each for each in records),
        "full collections of Python": len(pauses),
    }
    times = {f"first mask {part}": value for part, value in zip(NAMES, percentiles(firsts), strict=True)}
    times["mask + advance, mean"] = fmean(steps)
    times |= {f"mask + advance {part}": value for part, value in zip(NAMES, percentiles(steps), strict=True)}
    if pauses:
        times["full collections of Python, longest"] = max(pauses)
    sizes = dict(zip(MEMORY, memory, strict=True))
    figures = [Figure(what, who, number, unit="count") for what, number in counts.items()]
    figures += [Figure(what, who, number / 1e9) for what, number in times.items()]
    figures += [Figure(what, who, number, unit="bytes") for what, number in sizes.items()]
    versions = f"{given.library} {version(given.library)}"
    record.save(
        "maskbench-limit" if limit else "maskbench",
        record.run_now(figures, versions, f"{len(records):,} schemas"),
    )


def full_collections() -> list[int]:
    """A list that grows by the CPU time (ns) of each full garbage collection of Python from now on."""
    pauses: list[int] = []
    begin = 0

    def note(phase: str, about: dict[str, int]) -> None:
        nonlocal begin
        if about["generation"] == 2:
            if phase == "start":
                begin = thread_time_ns()
            else:
                pauses.append(thread_time_ns() - begin)

    gc.callbacks.append(note)
    return pauses


def resident() -> int:
    """The resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def fitting(tests: list[dict[str, Any]], encode: Any, most: int) -> list[dict[str, Any]]:
    """The documents of at most ``most`` tokens."""
    return [test for test in tests if len(encode(json.dumps(test["data"], ensure_ascii=False))) < most]


def limited(automaton: Any, size: int, most: int) -> Walk:
    """A walk with at most ``most`` new tokens; each restart begins with the whole limit."""
    matcher = automaton.matcher(max_new_tokens=most)
    bitmask = tokenfst.allocate_token_bitmask(1, size)

    def restart() -> None:
        matcher.reset()
        matcher.max_tokens_left = most

    return Walk(partial(matcher.fill_next_token_bitmask, bitmask, 0), matcher.accept_token, bitmask, restart)


def judged(library: Any, row: dict[str, Any], encode: Any, end: int, file: Any) -> dict[str, Any]:
    """One schema: the times of its first mask and of its documents' steps, and the number of documents about which the
    library is wrong. Writes them to ``file`` as a line of JSON, without the steps.
    """
    made: dict[str, Any] = {"id": row["id"], "steps": array("q"), "wrong": 0}
    begin = process_time_ns()
    try:
        walk = library.walk(library.compile_schema(row["schema"]))
        walk.fill()
        made["first"] = process_time_ns() - begin
    except Exception as error:  # whatever a library raises
        made["refused"] = repr(error)[:300]
    else:
        for test in row["tests"]:
            tokens = [*encode(json.dumps(test["data"], ensure_ascii=False)), end]
            try:
                walk.restart()
                accepted = led(walk, tokens, made["steps"])
            except Exception as error:
                made["trouble"], accepted = repr(error)[:300], not test["valid"]
            made["wrong"] += accepted is not test["valid"]
    told = {name: value for name, value in made.items() if name != "steps"}
    file.write(json.dumps({**told, "longest": max(made["steps"], default=0)}) + "\n")
    return made


def led(walk: Walk, tokens: list[int], steps: array[int]) -> bool:
    """Whether all tokens are allowed, one after the other; appends the time (ns) of each step to ``steps``."""
    for token in tokens:
        allowed, time = stepped(walk, token)
        steps.append(time)
        if not allowed:
            if problem := walk.error():
                raise ValueError(problem)
            return False
    return True


def stepped(walk: Walk, token: int) -> tuple[bool, int]:
    """Fill a mask and, if it allows the token, accept it. Returns whether the token was allowed and accepted, and the
    time of the two calls (ns) without numpy's look into the mask.
    """
    cpu, clock = thread_time_ns(), perf_counter_ns()
    walk.fill()
    clock = perf_counter_ns() - clock
    cpu = thread_time_ns() - cpu
    if not walk.bitmask[0, token // 32] >> (token % 32) & 1:
        return False, min(clock, cpu)
    second_cpu, second_clock = thread_time_ns(), perf_counter_ns()
    accepted = walk.accept(token)
    clock += perf_counter_ns() - second_clock
    return accepted is not False, min(clock, cpu + thread_time_ns() - second_cpu)


def percentiles(values: list[int]) -> list[int]:
    """The percentiles ``PARTS`` of the values; each is one of the values."""
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in PARTS]


def shown(values: list[int], unit: float) -> str:
    """The percentiles as text, divided by ``unit``."""
    parts = [value / unit for value in percentiles(values)]
    return " ".join(
        f"p{100 * part:g} {value:.3g}," if part < 1 else f"max {value:.3g};"
        for part, value in zip(PARTS, parts, strict=True)
    )


if __name__ == "__main__":
    main()
