"""The leaderboard: ``python -m benchmarks.leaderboard.run [--suite NAME]... [--number N] [--engine NAME]...``.

Every library over MaskBench, the JSON Schema test suite, patterns and grammars: how many cases it is right about,
refuses, is wrong about both ways, how long the first mask and each step take, memory; and mask against mask
(``mask_by_mask``). All of MaskBench takes hours, so the run can be stopped: each case is a file in
``build/leaderboard``, and what is there is not run again, unless the library's version is another one by now. A run
goes on from the records that are kept in the repository (``kept``), and at its end, or with ``--page`` alone, writes
all records there: commit them, and the run may be continued on another computer. Then the results go to
docs/data/leaderboard.json, and from there to docs/leaderboard.md and its pictures (``page``), unless these are of more
cases already: ``--fewer`` writes them all the same.

Cases are taken in an order that was drawn at random once and is the same every time, so that the first N are a random
sample. All libraries get a case one after the other. They come in ``PASSES``: all cases of all suites with the fast
ones, and then again with the slower ones beside them. So a run that is stopped has compared some libraries on many
cases, and all libraries on fewer. With ``--alone`` a case that others have run already is run by those that lack it,
without them: verdicts, first masks and memory take a part of the time so, but there are no masks to compare, and
steps are compared within one run of a case only.
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
"""Valid documents of a case along which masks are compared."""
DOCUMENTS = 4
"""Texts of a grammar: as many valid ones, and as many that were changed at one place."""
SEED = 7
RUN = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}, process {os.getpid()}"
"""The name of this run. Wall-clock figures are compared among the records of one run of a case only."""
PASSES = (("tokenfst", "llguidance", "glrmask"), ("xgrammar",), ("lm-format-enforcer", "outlines-core"))
"""What each pass over the cases adds, by the processor time that one case of MaskBench takes."""
SETTINGS: dict[str, dict[str, Any]] = {"xgrammar": {"cache_bytes": 512 << 20}}
"""Arguments of libraries' classes. xgrammar keeps parts of grammars by default; vLLM gives it as many bytes for that.
They are part of a record: one that was made with others is made again, beside those of the other libraries."""


# --- cases ------------------------------------------------------------------------------------------------


def maskbench(count: int | None) -> Iterator[dict[str, Any]]:
    """Real schemas with documents."""
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
    """Real-life regular expressions with texts, from tests/corpus. Flags stand at the start of the pattern, as
    ``(?i)`` does, so that each library gets the whole meaning.
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
"""Flags of ``re`` as they are written inside a pattern."""


def grammar_cases(count: int | None) -> Iterator[dict[str, Any]]:
    """The grammars of grammars.py with texts that they make, and such texts with one character changed, as Earley's
    parser in the package lark judges them.
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
"""The method that reads a case of each kind."""


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
    """Run what is missing of a suite; ``alone``: without the libraries that ran a case already, with any settings."""
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
    """Run what is missing of one case, into ``done``; whether anything was."""
    front = next(method for key, method in FRONTS.items() if key in row)
    able = [who for who in runners if hasattr(LIBRARIES[who], front)]
    marks = {who: {"version": version(who) or "sources", "settings": SETTINGS.get(who, {})} for who in able}
    wanted = ("version",) if alone else ("version", "settings")
    fresh = [who for who in able if not _made_so(done["records"].get(who, {}), marks[who], wanted)]
    if not fresh:
        return False
    alone = alone and not set(done["records"]) <= set(fresh)  # others ran it: their masks were compared
    there = []
    for who in fresh if alone else able:
        record = runners[who].run(row)
        done["records"][who] = asdict(record) | marks[who] | {"run": RUN, "spent": sum(record.steps)}
        if record.first_mask is not None and record.trouble not in ("timeout", "crash"):
            there.append(runners[who])
    if len(there) > 1 and not alone:
        texts = [text_of(test) for test in row["tests"] if test["valid"]][:WALKED]
        documents = [[*encode(text), world.end] for text in texts]
        with suppress(Exception):  # a schema that is none has no judge
            pairs, cases = mask_by_mask.compared(there, documents, world, judge_of(row))
            size = len(json.dumps(row.get("schema", row.get("regex", row.get("lark")))))
            key = ",".join(sorted(each.who for each in there))
            done["masks"] = {key: {"pairs": pairs, "cases": [asdict(case) for case in cases], "size": size}}
    return True


def _made_so(record: dict[str, Any], marks: dict[str, Any], wanted: tuple[str, ...]) -> bool:
    """Whether a record is of the version, and of the settings, that would be run now."""
    return bool(record) and all(record.get(key, {}) == marks[key] for key in wanted)


def computer() -> dict[str, str]:
    """What the figures depend on."""
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
    """All cases of a suite that were run, by their names: those in ``folder``, and those kept in the repository."""
    cases = kept.read(suite)
    for path in (folder / suite).glob("*.json"):
        case = json.loads(path.read_text())
        cases[case["id"]] = case
    return [cases[name] for name in sorted(cases)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--suite", action="append", choices=SUITES, help=f"without: {', '.join(SUITES)}")
    parser.add_argument("--number", type=int, metavar="N", help="so many cases of each suite; without: all")
    parser.add_argument(
        "--engine", action="append", choices=LIBRARIES, help="without: all that are installed"
    )
    parser.add_argument(
        "--alone", action="store_true", help="where others ran a case already, only those that did not run it"
    )
    parser.add_argument(
        "--page", action="store_true", help="run nothing: write the records, the results and the page alone"
    )
    parser.add_argument(
        "--fewer", action="store_true", help="write the page though the one there is of more cases"
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
        print("the page stays, as it is of more cases:", *fewer, sep="\n- ")
    else:
        page.write(found, about, {suite: len(list(cases(None))) for suite, cases in SUITES.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
