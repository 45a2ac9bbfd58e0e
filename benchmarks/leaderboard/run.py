"""The leaderboard: ``python -m benchmarks.leaderboard.run [--suite NAME]... [--number N] [--engine NAME]...``.

Runs every library over MaskBench, the JSON Schema test suite, patterns and grammars. For each it counts the cases
that the library is right about, that it refuses, and about which it is wrong in one or the other direction. It
measures the first mask, each step and memory, and compares the libraries' masks (``mask_by_mask``).

All of MaskBench takes hours, so a run can be stopped. Each case is written to a file in ``build/leaderboard`` and is
not run again, unless the version of a library or its settings have changed. A run goes on from the records in the
repository (``kept``). At its end, or with ``--page`` alone, it writes all records there; once they are committed,
another computer can continue the run. Then it writes the results to docs/data/leaderboard.json, and from there
docs/leaderboard.md and its pictures (``page``). It does not write them if the existing page is about more cases,
except with ``--fewer``.

The order of the cases is random and the same every time, so the first N are a random sample. All libraries run a case
one after the other. They run in ``PASSES``: all cases of all suites with the fast libraries, then again with the
slower ones beside them. So a run that is stopped has compared some libraries on many cases, and all libraries on
fewer.

With ``--alone``, only the libraries that have not run a case run it, without the others. Verdicts, first masks and
memory then take a part of the time. But masks are not compared, and neither are steps, which are compared within one
run of a case only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import tokenfst
from benchmarks.grammars.grammars import GRAMMARS
from benchmarks.leaderboard import kept, page
from benchmarks.masks.compilation import TEKKEN
from benchmarks.measuring.libraries import LIBRARIES, version
from benchmarks.measuring.measure import pin_to_one_cpu
from benchmarks.schemas import mask_by_mask
from benchmarks.schemas.runner import Runner, encoder, text_of
from benchmarks.schemas.schemas import ROOT, sample_of

SHARED = ROOT.parent / "shared"
FOLDER = ROOT / "build" / "leaderboard"
LIMIT = 10.0
"""Seconds of processor time of one library for one case and its documents, and for each question about its masks."""
WALKED = 2
"""The number of valid documents of a case along which masks are compared."""
DOCUMENTS = 4
"""The number of a grammar's own texts in its case, and of texts in which one character is changed."""
SEED = 7
RUN = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}, process {os.getpid()}"
"""The name of this run. Wall-clock figures are compared among the records of one run of a case only."""
PASSES = (("tokenfst", "llguidance", "glrmask"), ("xgrammar",), ("lm-format-enforcer", "outlines-core"))
"""The libraries that each pass over the cases adds, ordered by the processor time that a case of MaskBench takes."""
SETTINGS: dict[str, dict[str, Any]] = {"xgrammar": {"cache_bytes": 512 << 20}}
"""Arguments of libraries' classes. By default xgrammar keeps parts of grammars; vLLM lets it use as many bytes as here.
Settings are part of a record: a record with other settings is made again, beside those of the other libraries."""


# --- cases ------------------------------------------------------------------------------------------------


def maskbench(count: int | None) -> Iterator[dict[str, Any]]:
    """Real schemas with documents; none if MaskBench is not beside the repository."""
    path = SHARED / "maskbench" / "all.jsonl.gz"
    yield from sample_of(path, count) if path.is_file() else ()


def json_schema_suite(count: int | None) -> Iterator[dict[str, Any]]:
    """The groups of the JSON Schema test suite, draft 2020-12, without optional ones."""
    folder = SHARED / "json-schema-test-suite" / "draft2020-12"
    rows = [
        {
            "id": f"{path.stem}: {group['description']}",
            "schema": group["schema"],
            "tests": [{"valid": test["valid"], "data": test["data"]} for test in group["tests"]],
        }
        for path in sorted(folder.glob("*.json"))
        for group in json.loads(path.read_text())
    ]
    random.Random(SEED).shuffle(rows)
    yield from rows[:count]


def patterns(count: int | None) -> Iterator[dict[str, Any]]:
    """Regular expressions from practice, with texts, from tests/corpus. Flags are written at the start of the pattern
    (``(?i)``), so that each library gets the whole meaning.
    """
    text = (ROOT / "tests" / "corpus" / "regex.toml").read_text()
    for number, case in enumerate(tomllib.loads(text)["pattern"]):
        if count is not None and number >= count:
            break
        tests = [
            {"valid": valid, "text": each}
            for valid in (True, False)
            for each in case["yes" if valid else "no"]
        ]
        flags = f"(?{INLINE[case['flags']]})" if "flags" in case else ""
        yield {"id": case["name"], "regex": flags + case["regex"], "tests": tests}


INLINE = {"ASCII": "a", "IGNORECASE": "i", "DOTALL": "s", "MULTILINE": "m"}
"""The letters for flags of ``re`` inside a pattern."""


def grammar_cases(count: int | None) -> Iterator[dict[str, Any]]:
    """The grammars of grammars.py with texts that they generate and with texts in which one character is changed. The
    Earley parser of the package lark decides which texts are valid.
    """
    for grammar in GRAMMARS[:count]:
        judge = grammar_judge(grammar.lark)
        rng, tests = random.Random(grammar.name), []
        while len(tests) < 2 * DOCUMENTS:
            text = grammar.document(rng)[:4_000]
            if len(text) > 400 or not text:
                continue
            if len(tests) % 2:
                place = rng.randrange(len(text))
                text = text[:place] + rng.choice("(){}[],\"'=x1 ") + text[place + 1 :]
            tests.append({"valid": bool(judge(text)), "text": text})
        yield {"id": grammar.name, "lark": grammar.lark, "ebnf": grammar.ebnf, "tests": tests}


def grammar_judge(grammar: str) -> mask_by_mask.Judge:
    """Whether a text is one of a grammar's, by Earley's parser in the package lark, which takes no empty terminals."""
    from lark import Lark

    parser = Lark(grammar.replace(r"/[ \t\n\r]*/", r"/[ \t\n\r]+/?"), parser="earley", lexer="dynamic")
    return partial(_parsed, parser)


def _parsed(parser: Any, text: str) -> bool:
    from lark.exceptions import UnexpectedInput

    try:
        parser.parse(text)
    except UnexpectedInput:
        return False
    return True


def judge_of(row: dict[str, Any]) -> mask_by_mask.Judge:
    """The judge of a case's texts, which is independent of the compared libraries."""
    if "schema" in row:
        return mask_by_mask.schema_judge(row["schema"])
    if "regex" in row:
        pattern = re.compile(row["regex"])
        return lambda text: pattern.fullmatch(text) is not None
    return grammar_judge(row["lark"])


SUITES = {
    "maskbench": maskbench,
    "json-schema-test-suite": json_schema_suite,
    "patterns": patterns,
    "grammars": grammar_cases,
}
FRONTS = {"schema": "compile_schema", "regex": "compile", "lark": "compile_grammar"}
"""The method of a library that compiles a case, by the key that the case has."""


# --- the run ----------------------------------------------------------------------------------------------


def run(
    suite: str,
    count: int | None,
    engines: list[str],
    source: str = TEKKEN,
    folder: Path = FOLDER,
    *,
    alone: bool = False,
) -> None:
    """Run what is missing of a suite. ``alone``: without the libraries that have run a case already, with any
    settings.
    """
    encode = encoder(source)
    vocabulary = tokenfst.load_vocabulary(source)
    world = mask_by_mask.world_of(vocabulary.tokens, vocabulary.eos_token_ids[0])
    with ExitStack() as stack:
        runners = {
            who: stack.enter_context(Runner(who, source, LIMIT, **SETTINGS.get(who, {}))) for who in engines
        }
        rows = list(SUITES[suite](count))
        earlier = kept.read(suite)
        for number, row in enumerate(rows):
            path = folder / suite / f"{hashlib.sha256(row['id'].encode()).hexdigest()[:20]}.json"
            new = {"id": row["id"], "records": {}, "masks": {}}
            done = json.loads(path.read_text()) if path.is_file() else earlier.get(row["id"], new)
            ran = one_case(row, done, runners, encode, world, alone=alone)
            if ran:
                path.parent.mkdir(parents=True, exist_ok=True)
                whole = path.with_suffix(".part")
                whole.write_text(json.dumps(done))
                whole.replace(path)
                print(f"{suite} {number + 1:,} of {len(rows):,}: {row['id']}", file=sys.stderr, flush=True)


def one_case(
    row: dict[str, Any],
    done: dict[str, Any],
    runners: dict[str, Runner],
    encode: Any,
    world: mask_by_mask.World,
    *,
    alone: bool = False,
) -> bool:
    """Run what is missing of one case and add it to ``done``. Returns whether anything was missing."""
    front = next(method for key, method in FRONTS.items() if key in row)
    able = [who for who in runners if hasattr(LIBRARIES[who], front)]
    marks = {who: {"version": version(who) or "sources", "settings": SETTINGS.get(who, {})} for who in able}
    wanted = ("version",) if alone else ("version", "settings")
    fresh = [who for who in able if not _made_so(done["records"].get(who, {}), marks[who], wanted)]
    if not fresh:
        return False
    alone = alone and not set(done["records"]) <= set(fresh)  # if others ran it, their masks were compared
    there = []
    for who in fresh if alone else able:
        record = runners[who].run(row)
        done["records"][who] = asdict(record) | marks[who] | {"run": RUN, "spent": sum(record.steps)}
        if record.first_mask is not None and record.trouble not in ("timeout", "crash"):
            there.append(runners[who])
    if len(there) > 1 and not alone:
        texts = [text_of(test) for test in row["tests"] if test["valid"]][:WALKED]
        documents = [[*encode(text), world.end] for text in texts]
        with suppress(Exception):  # there is no judge of an invalid schema
            pairs, cases = mask_by_mask.compared(there, documents, world, judge_of(row))
            size = len(json.dumps(row.get("schema", row.get("regex", row.get("lark")))))
            key = ",".join(sorted(each.who for each in there))
            done["masks"] = {key: {"pairs": pairs, "cases": [asdict(case) for case in cases], "size": size}}
    return True


def _made_so(record: dict[str, Any], marks: dict[str, Any], wanted: tuple[str, ...]) -> bool:
    """Whether a record has the version, or the version and settings, that a run would have now."""
    return bool(record) and all(record.get(key, {}) == marks[key] for key in wanted)


def computer() -> dict[str, str]:
    """The date, the computer, Python's version and the limit of seconds, which the page names."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if "model name" in line]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, one thread each",
        "python": platform.python_version(),
        "limit": f"{LIMIT:g}",
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def records_of(suite: str, folder: Path = FOLDER) -> list[dict[str, Any]]:
    """All cases of a suite that were run, sorted by name: those in ``folder``, and those kept in the repository."""
    cases = kept.read(suite)
    for path in (folder / suite).glob("*.json"):
        case = json.loads(path.read_text())
        cases[case["id"]] = case
    return [cases[name] for name in sorted(cases)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--suite", action="append", choices=SUITES, help=f"default: {', '.join(SUITES)}")
    parser.add_argument(
        "--number", type=int, metavar="N", help="the first N cases of each suite; default: all"
    )
    parser.add_argument(
        "--engine", action="append", choices=LIBRARIES, help="default: all that are installed"
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="run only the libraries that have not run a case, without the others",
    )
    parser.add_argument(
        "--page", action="store_true", help="run nothing; only write the records, the results and the page"
    )
    parser.add_argument(
        "--fewer", action="store_true", help="write the page even if the existing one is about more cases"
    )
    options = parser.parse_args(arguments)
    about = computer()
    if not options.page:
        pin_to_one_cpu()
        engines = [
            who for who in options.engine or LIBRARIES if who == "tokenfst" or version(who) is not None
        ]
        for number in range(len(PASSES)):
            so_far = [who for who in chain(*PASSES[: number + 1]) if who in engines]
            if so_far:
                for suite in options.suite or SUITES:
                    run(suite, options.number, so_far, alone=options.alone)
    found = {suite: records_of(suite) for suite in SUITES}
    for suite, cases in found.items():
        if cases:
            first = {row["id"] for row in SUITES[suite](kept.STEPPED)}
            print(f"{len(cases):,} cases of {suite}: {kept.write(suite, cases, first)}")
    fewer = [] if options.fewer else page.fewer(found)
    if fewer:
        print("the existing page is about more cases and is kept:", *fewer, sep="\n- ")
    else:
        page.write(found, about, {suite: len(list(cases(None))) for suite, cases in SUITES.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
