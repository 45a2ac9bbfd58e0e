"""The results of the leaderboard: as JSON (docs/data/leaderboard.json), as a page and as pictures.

Slow libraries run fewer cases than fast ones, so a suite may have several tables. The first table has the libraries
that ran the most cases; each further table adds those that ran the next most. A table is about the cases that all of
its libraries ran.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from benchmarks.leaderboard import kept
from benchmarks.measuring.measure import OURS, shown
from benchmarks.schemas.schemas import ROOT, summary
from tokenfst.automata.pictures.charts import Bar, Chart, svg

DATA = ROOT / "docs" / "data" / "leaderboard.json"
PAGE = ROOT / "docs" / "leaderboard.md"
IMAGES = ROOT / "docs" / "images"
TITLES = {
    "maskbench": "MaskBench: real JSON Schemas",
    "json-schema-test-suite": "The JSON Schema test suite",
    "patterns": "Regular expressions",
    "grammars": "Grammars",
}
HEAD = """# Leaderboard

<!-- written by benchmarks/leaderboard/run.py: do not edit -->

The results of the same schemas, regular expressions and grammars in {libraries}:
what each is right about, what it refuses, and what it costs. Written by `python -m benchmarks.leaderboard.run` from
[docs/data/leaderboard.json](data/leaderboard.json) on {date}: {machine}, Python {python}, Tekken's vocabulary of
131,072 tokens.

{whole}
Every table below is about the cases that all of its libraries ran: [how many, and why](#how-many-cases-were-run);
[how to read the tables](#how-to-read-the-tables). The best figure of a column is bold."""
TAIL = """## How many cases were run

{counts}

A number in bold means that the library ran all cases of the suite. All other numbers are **samples, not full
runs**: the first cases of a random order, which is the same every time. The command goes on where it stopped. The
next table has the mean time that one case of MaskBench takes each library, in seconds of one core: the first mask
and all texts. A case that was stopped counts as {limit} s.

{seconds}

## How to read the tables

The verdicts count cases. A case may count in several columns.

- *Right*: the library compiled the case and is right about every text of it. *Refused*: the library said that it
  does not support the case.
- *Accepts invalid*: it accepted an invalid text. *Rejects valid*: it rejected a valid text. *By order*: it rejected
  a valid object that it accepts with the members in another order (a library may do so on purpose).
- *Stopped*: it took more than {limit} s of processor time, or crashed. *Faults*: it raised an error in the middle
  of a text, or an error of compilation that says nothing about the case.
- First masks are in processor time, because the computer did other work too. Steps are wall-clock time, so that
  work is part of their means and high percentiles. Where a table says so, its steps are those of the cases that its
  libraries ran one after the other in one run. Memory is the growth of a process at the peak of a case.
- Each library is called with its defaults, except that white space is free. xgrammar keeps parts of earlier
  grammars, in at most 512 MB, as vLLM calls it{older}.
- What a library leaves out on purpose counts as wrong too. tokenfst asserts `format`, which is an annotation in the
  JSON Schema test suite. It writes numbers and strings as `json.dumps` does (`1.0` is no spelling of 1). By default
  it fixes the order of members, as others do (`property_order="any"` does not)."""
DECIDED = """For each document, the first step was examined at which masks differ in a token without white space. Texts
that libraries completed from such a token were judged: {narrow:,} times a library's mask denied a token of a valid
text, {wide:,} times a library made an invalid text, and {undecided:,} times neither was shown. A valid object with its
members in another order counts as denied. The judge reads patterns as Python's `re` does, whose classes differ from
those of ECMA-262 in a few characters (`\\s` lacks U+FEFF)."""
VERDICTS = ("right", "refused", "accepts invalid", "rejects valid", "by order", "stopped", "faults")
COSTS = ("first mask p50 / p90 / p99", "step mean / p50 / p99", "memory p50 / max")
_LONG = 160
"""The greatest number of characters of a text that the page shows."""

Case = dict[str, Any]


def write(found: dict[str, list[Case]], about: dict[str, str], sizes: dict[str, int]) -> None:
    """Write the results, the page and the pictures."""
    results = {"about": about, "suites": {}}
    for suite, cases in found.items():
        tables = [table(cases, engines) for engines in levels(cases)]
        results["suites"][suite] = {
            "of": sizes[suite],
            "ran": ran(cases),
            "seconds": seconds(cases, float(about["limit"])),
            "older": older(cases),
            "tables": tables,
            "masks": masks(cases),
        }
    DATA.parent.mkdir(parents=True, exist_ok=True)
    DATA.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    for old in IMAGES.glob("leaderboard-*.svg"):
        old.unlink()
    for suite, result in results["suites"].items():
        for number, each in enumerate(result["tables"]):
            (IMAGES / f"leaderboard-{suite}-{number}.svg").write_text(picture(each))
    PAGE.write_text(page(results))


def ran(cases: list[Case]) -> dict[str, int]:
    """How many cases each library ran."""
    return Counter(who for case in cases for who in case["records"])


def fewer(found: dict[str, list[Case]]) -> list[str]:
    """One line of text for each suite and library of which the present results have more cases than ``found``."""
    there = json.loads(DATA.read_text())["suites"] if DATA.is_file() else {}
    return [
        f"{suite}, {who}: {count:,} there, {now:,} now"
        for suite, result in there.items()
        for who, count in result["ran"].items()
        if (now := ran(found.get(suite, [])).get(who, 0)) < count
    ]


def seconds(cases: list[Case], limit: float) -> dict[str, float]:
    """The mean seconds that a case takes each library: the first mask and all steps, or the limit if it was stopped."""
    spent: dict[str, list[float]] = {}
    for case in cases:
        for who, record in case["records"].items():
            whole = (record["first_mask_cpu"] or 0.0) + record["spent"]
            spent.setdefault(who, []).append(limit if record["trouble"] == "timeout" else whole)
    return {who: fmean(each) for who, each in sorted(spent.items())}


def older(cases: list[Case]) -> dict[str, int]:
    """The number of records of each library that were made without settings, if others of its records have some."""
    counts: dict[str, Counter[bool]] = {}
    for case in cases:
        for who, record in case["records"].items():
            counts.setdefault(who, Counter())[bool(record.get("settings"))] += 1
    return {who: each[False] for who, each in counts.items() if len(each) > 1}


def levels(cases: list[Case]) -> list[list[str]]:
    """The libraries of each table: those that ran the most cases, then the same with those that ran the next most,
    and so on, up to all of them.
    """
    counts = ran(cases)
    return [
        [who for who in counts if counts[who] >= least]
        for least in sorted(set(counts.values()), reverse=True)
    ]


def table(cases: list[Case], engines: Sequence[str]) -> dict[str, Any]:
    """The figures of some libraries over the cases that all of them ran. Steps are wall-clock time, so they come from
    the cases that all of these libraries ran in one run and whose steps are kept; if there are none, from all cases
    whose steps are kept. ``side_by_side`` is the number of these cases, ``one_run`` whether they ran in one run.
    """
    shared = [case["records"] for case in cases if all(who in case["records"] for who in engines)]
    runs = [{each[who]["run"] for who in engines} for each in shared]
    known = [all(each[who]["steps"] is not None for who in engines) for each in shared]
    beside = [each for each, run, steps in zip(shared, runs, known, strict=True) if len(run) == 1 and steps]
    timed = beside or [each for each, steps in zip(shared, known, strict=True) if steps]
    return {
        "cases": len(shared),
        "side_by_side": len(timed),
        "one_run": bool(beside),
        "engines": {
            who: figures([each[who] for each in shared], [each[who] for each in timed]) for who in engines
        },
    }


def figures(records: list[Case], timed: list[Case]) -> dict[str, Any]:
    """The figures of one library's records; the steps are those of the records ``timed``."""
    ended = {"timeout", "crash"}
    wrong = ("accepts_invalid", "rejects_valid", "other_order")
    ran = [each for each in records if not each["refused"] and each["trouble"] not in ended]
    first = [each["first_mask_cpu"] for each in ran if each["first_mask_cpu"] is not None]
    steps = [step for each in timed for step in each["steps"]]
    memory = [each["memory"] for each in ran if each["memory"] is not None]

    def summaries(values: list[Any], *names: str) -> dict[str, float | None]:
        return {name: summary(name, values) if values else None for name in names}

    return {
        "version": records[0]["version"] if records else "",
        "passed": sum(
            not each["refused"] and not each["trouble"] and not any(map(each.get, wrong)) for each in records
        ),
        "refused": sum(bool(each["refused"]) for each in records),
        "accepts_invalid": sum(bool(each["accepts_invalid"]) for each in records),
        "rejects_valid": sum(bool(each["rejects_valid"]) for each in records),
        "other_order": sum(bool(each["other_order"]) for each in records),
        "stopped": sum(each["trouble"] in ended for each in records),
        "faults": sum(bool(each["trouble"]) and each["trouble"] not in ended for each in records),
        "first_mask_cpu": summaries(first, "p50", "p90", "p99"),
        "step": summaries(steps, "mean", "p50", "p90", "p99"),
        "memory": summaries(memory, "p50", "max"),
    }


def masks(cases: list[Case]) -> dict[str, Any]:
    """Mask against mask: the counts of each pair of libraries, the verdicts about the first differing steps, and the
    smallest case that proves each library wrong in each way.
    """
    pairs: dict[str, list[int]] = {}
    kinds: Counter[str] = Counter()
    wrong: dict[str, dict[str, int]] = {}
    for case in cases:
        for compared in case["masks"].values():
            for pair, counts in compared["pairs"].items():
                known = pairs.setdefault(pair, [0, 0, 0])
                known[:] = [a + b for a, b in zip(known, counts, strict=True)]
            for each in compared["cases"]:
                kinds[each["kind"]] += 1
                for who in each["wrong"]:
                    by_kind = wrong.setdefault(who, {"narrow": 0, "wide": 0})
                    by_kind[each["kind"]] += 1
    least = {key: each for key, (_, each) in sorted(kept.smallest(cases).items())}
    return {"pairs": pairs, "decided": dict(kinds), "wrong": wrong, "smallest": least}


def picture(found: dict[str, Any]) -> str:
    """A picture (SVG) of the cases that each library is right about, and of the times of first masks and steps."""
    engines = found["engines"]

    def chart(title: str, value: Any, unit: str) -> Chart:
        logarithmic = unit == "s"
        bars = [
            Bar(who, number, shown(number, unit), first=who == OURS)
            for who, figures in engines.items()
            if (number := value(figures)) is not None
        ]
        return Chart(title, sorted(bars, key=lambda bar: bar.value, reverse=not logarithmic), logarithmic)

    return svg(
        [
            chart(f"right about all texts, of {found['cases']:,}", lambda each: each["passed"], "count"),
            chart(
                "first mask, median (processor time, logarithmic)",
                lambda each: each["first_mask_cpu"]["p50"],
                "s",
            ),
            chart("mask and advance, 99th percentile (logarithmic)", lambda each: each["step"]["p99"], "s"),
        ]
    )


def page(results: dict[str, Any]) -> str:
    """The page in Markdown."""
    suites = results["suites"]
    libraries = sorted({who for each in suites.values() for who in each["ran"]})
    real = suites.get("maskbench", {"of": 0, "ran": {}, "seconds": {}, "older": {}})
    parts = [HEAD.format(libraries=_listed(libraries), whole=_whole(real), **results["about"])]
    for suite, result in suites.items():
        if not result["tables"]:
            continue
        parts.append(f"## {TITLES[suite]}")
        for number, found in enumerate(result["tables"]):
            engines = found["engines"]
            parts.append(
                f"**{found['cases']:,} of {result['of']:,} cases**: those that {_listed(list(engines))} ran."
            )
            if found["side_by_side"] < found["cases"]:
                how = (
                    "the libraries ran in one run"
                    if found["one_run"]
                    else "the libraries ran in several runs"
                )
                parts.append(f"Steps are those of {found['side_by_side']:,} cases that {how}.")
            parts += _tables(engines)
            alt = f"{TITLES[suite]}: cases that each library is right about, first masks and steps, as in the table"
            parts.append(f"![{alt}](images/leaderboard-{suite}-{number}.svg)")
        parts += _masks(result["masks"])
    spent = real["seconds"]
    rows = [[who, f"{spent[who]:.2g}"] for who in sorted(spent, key=spent.__getitem__)]
    before = real["older"].get("xgrammar", 0)
    note = f" ({before:,} of its records of MaskBench are older and were made without this)" if before else ""
    counts = _counts(suites)
    tail = TAIL.format(
        counts=counts, seconds=_rows(["seconds for a case"], rows), older=note, **results["about"]
    )
    return "\n\n".join([*parts, tail]) + "\n"


def _whole(result: dict[str, Any]) -> str:
    """A sentence that says which libraries ran all of MaskBench."""
    whole = sorted(who for who, ran in result["ran"].items() if ran == result["of"])
    some = sorted(set(result["ran"]) - set(whole))
    if not whole:
        return f"No library ran all of MaskBench's {result['of']:,} schemas yet."
    ran = f"Of MaskBench's {result['of']:,} schemas {_listed(whole)} ran all"
    counts = [f"{who} {result['ran'][who]:,}" for who in some]
    return f"{ran}, {_listed(counts)}." if some else f"{ran}."


def _counts(suites: dict[str, Any]) -> str:
    """The table that says how many cases of each suite each library ran."""
    engines = sorted(
        {who for result in suites.values() for who in result["ran"]}, key=lambda who: (who != OURS, who)
    )
    heads = [f"{TITLES[suite]}, {result['of']:,}" for suite, result in suites.items()]
    rows = [
        [
            who,
            *(
                "" if not ran else f"**{ran:,}**" if ran == result["of"] else f"{ran:,}"
                for result in suites.values()
                for ran in (result["ran"].get(who, 0),)
            ),
        ]
        for who in engines
    ]
    return _rows(heads, rows)


def _tables(engines: dict[str, Any]) -> list[str]:
    """Two tables of some libraries: their verdicts, and their times and memory."""
    best = {
        ("passed", ""): max(each["passed"] for each in engines.values()),
        **{
            (group, name): min(
                (value for each in engines.values() if (value := each[group][name]) is not None), default=None
            )
            for group, name in (
                ("first_mask_cpu", "p50"),
                ("first_mask_cpu", "p99"),
                ("step", "mean"),
                ("step", "p99"),
            )
        },
    }

    def cell(each: dict[str, Any], group: str, name: str, unit: str) -> str:
        """A figure, in bold where it is the best."""
        value = each[group][name] if name else each[group]
        text = shown(value, unit)
        return f"**{text}**" if value is not None and best.get((group, name)) == value else text

    verdicts, costs = [], []
    for who, each in sorted(engines.items(), key=lambda item: -item[1]["passed"]):
        names = ("refused", "accepts_invalid", "rejects_valid", "other_order", "stopped", "faults")
        right = cell(each, "passed", "", "count")
        verdicts.append([f"{who} {each['version']}", right, *(f"{each[name]:,}" for name in names)])
        first = " / ".join(cell(each, "first_mask_cpu", name, "s") for name in ("p50", "p90", "p99"))
        step = " / ".join(cell(each, "step", name, "s") for name in ("mean", "p50", "p99"))
        memory = " / ".join(cell(each, "memory", name, "bytes") for name in ("p50", "max"))
        costs.append([who, first, step, memory])
    return [_rows(VERDICTS, verdicts), _rows(COSTS, costs)]


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column has no heading."""
    lines = [f"| | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _masks(found: dict[str, Any]) -> list[str]:
    """The section about masks of pairs of libraries: paragraphs and tables."""
    if not found["pairs"]:
        return []
    rows = ["| pair | steps | masks differ | in tokens without white space |", "|---|---|---|---|"]
    rows += [
        f"| {pair.replace('|', ', ')} | {steps:,} | {differ:,} | {plain:,} |"
        for pair, (steps, differ, plain) in sorted(found["pairs"].items())
    ]
    parts = ["### Mask against mask", "\n".join(rows)]
    if not found["decided"]:
        return parts
    parts.append(DECIDED.format(**{"narrow": 0, "wide": 0, "undecided": 0} | found["decided"]))
    names = sorted(found["wrong"])
    rows = ["| | valid texts denied | invalid texts made |", "|---|---|---|"]
    rows += [
        f"| {who} | {found['wrong'][who]['narrow']:,} | {found['wrong'][who]['wide']:,} |" for who in names
    ]
    if names:
        parts.append("\n".join(rows))
        parts.append("The smallest case of each kind for each library, with the token that decided it:")
        parts.append("\n".join(_told(key, each) for key, each in found["smallest"].items()))
    return parts


def _told(key: str, case: Case) -> str:
    """A case in one line of a list."""
    does = "denies" if case["kind"] == "narrow" else "makes"
    token = "the end token" if case["token"] == "the end" else _code(case["token"])
    where = f"after {_code(case['before'])}" if case["before"] else "as the first token"
    return f"- {key.rpartition(' ')[0]} {does} {_code(case['text'])}: {token} {where} ({case['case']})"


def _code(text: str) -> str:
    """A text as code, cut to ``_LONG`` characters, with escapes where it is not printable; an empty one in words."""
    cut = text if len(text) <= _LONG else f"{text[:_LONG]}…"
    shown = json.dumps(cut, ensure_ascii=True)[1:-1].replace('\\"', '"') if not cut.isprintable() else cut
    return f"`` {shown} ``" if shown else "the empty text"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
