"""What was run for the leaderboard: as JSON (docs/data/leaderboard.json), as a page and as pictures.

Slow libraries run fewer cases than others. So a suite has a table for those that ran the most cases, then one with
those that ran fewer beside them, and so on; each table is about the cases that all of its libraries ran.
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

The same schemas, regular expressions and grammars in {libraries}:
what each is right about, what it refuses, and what it costs. Written by `python -m benchmarks.leaderboard.run` from
[docs/data/leaderboard.json](data/leaderboard.json) on {date}: {machine}, Python {python}, Tekken's vocabulary of
131,072 tokens.

{whole}
Every table below is about the cases that all of its libraries ran: [how many, and why](#how-many-cases-were-run);
[how to read the tables](#how-to-read-the-tables). The best figure of a column is bold."""
TAIL = """## How many cases were run

{counts}

A number in bold is all of the suite's cases. Everywhere else **it was not a full run** but a sample: the first cases
of an order that was drawn at random once. The command goes on where it stopped. A case of MaskBench takes each library
about so many seconds of one core, first mask and all texts, where one that was stopped counts as {limit}:

{seconds}

## How to read the tables

- *Right*: compiled, and right about every text of the case. *Refused*: the library said that it cannot.
- *Accepts invalid*, *rejects valid*: wrong both ways. *By order*: valid objects that are accepted only with their
  members in another order (what a library may mean to do).
- *Stopped*: over {limit} s of processor time, or a crash. *Faults*: errors in the midst of a text, or of compiling
  where they say nothing about the case.
- First masks are in processor time, since the computer did other work too. Steps are wall-clock: their means and high
  percentiles are those of a busy computer, and where a table says so they are of the cases that its libraries ran one
  after the other in one run. Memory is what a case added at its peak.
- Each library is called with its defaults, but for white space, which is free. xgrammar keeps parts of earlier
  grammars, in at most 512 MB, as vLLM calls it{older}.
- What a library means to leave out counts as wrong too: tokenfst asserts `format`, which the JSON Schema test suite
  means as an annotation, writes numbers and strings as `json.dumps` does (`1.0` is no spelling of 1), and, as others
  do, fixes the order of members (`property_order="any"` is its other setting)."""
DECIDED = """At the first step of a document at which masks differ in a token without white space, texts decided who
is wrong: {narrow:,} times a valid text was denied, {wide:,} times an invalid text was made, and
{undecided:,} times neither was shown. A valid object with its members in another order counts as denied. The judge
reads patterns as Python's `re` does, whose classes differ from ECMA-262's in a few characters (`\\s` lacks U+FEFF)."""
VERDICTS = ("right", "refused", "accepts invalid", "rejects valid", "by order", "stopped", "faults")
COSTS = ("first mask p50 / p90 / p99", "step mean / p50 / p99", "memory p50 / max")
_LONG = 160
"""Characters of a text that is shown."""

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
    """Where the results that are there are of more cases than ``found``, in words."""
    there = json.loads(DATA.read_text())["suites"] if DATA.is_file() else {}
    return [
        f"{suite}, {who}: {count:,} there, {now:,} now"
        for suite, result in there.items()
        for who, count in result["ran"].items()
        if (now := ran(found.get(suite, [])).get(who, 0)) < count
    ]


def seconds(cases: list[Case], limit: float) -> dict[str, float]:
    """What a case takes each library in the mean: the first mask and all steps, or the limit where it was stopped."""
    spent: dict[str, list[float]] = {}
    for case in cases:
        for who, record in case["records"].items():
            whole = (record["first_mask_cpu"] or 0.0) + record["spent"]
            spent.setdefault(who, []).append(limit if record["trouble"] == "timeout" else whole)
    return {who: fmean(each) for who, each in sorted(spent.items())}


def older(cases: list[Case]) -> dict[str, int]:
    """How many records of a library were made before those settings that others of its records have."""
    counts: dict[str, Counter[bool]] = {}
    for case in cases:
        for who, record in case["records"].items():
            counts.setdefault(who, Counter())[bool(record.get("settings"))] += 1
    return {who: each[False] for who, each in counts.items() if len(each) > 1}


def levels(cases: list[Case]) -> list[list[str]]:
    """The libraries that ran the most cases; then with those that ran the next most, and so on to all of them."""
    counts = ran(cases)
    return [
        [who for who in counts if counts[who] >= least]
        for least in sorted(set(counts.values()), reverse=True)
    ]


def table(cases: list[Case], engines: Sequence[str]) -> dict[str, Any]:
    """The figures of some libraries over the cases that all of them ran; the steps are wall-clock, so they are those
    of cases that all of them ran in one run (``side_by_side``), if there are any, and whose steps are kept.
    """
    shared = [case["records"] for case in cases if all(who in case["records"] for who in engines)]
    runs = [{each[who]["run"] for who in engines} for each in shared]
    known = [all(each[who]["steps"] is not None for who in engines) for each in shared]
    beside = [each for each, run, steps in zip(shared, runs, known, strict=True) if len(run) == 1 and steps]
    timed = beside or [each for each, steps in zip(shared, known, strict=True) if steps]
    return {
        "cases": len(shared),
        "side_by_side": len(timed),
        "engines": {
            who: figures([each[who] for each in shared], [each[who] for each in timed]) for who in engines
        },
    }


def figures(records: list[Case], timed: list[Case]) -> dict[str, Any]:
    """What the records of one library come to; the steps are those of ``timed``."""
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
    """Mask against mask: pairs, how the first differing steps of documents were decided, and the smallest case that
    proves each library wrong in each way.
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
    """How many are right, and how long first masks and steps take."""
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
                parts.append(
                    f"Steps: of {found['side_by_side']:,} cases, which the libraries ran in one run."
                )
            parts += _tables(engines)
            alt = f"{TITLES[suite]}: cases that each library is right about, first masks and steps, as in the table"
            parts.append(f"![{alt}](images/leaderboard-{suite}-{number}.svg)")
        parts += _masks(result["masks"])
    spent = real["seconds"]
    rows = [[who, f"{spent[who]:.2g}"] for who in sorted(spent, key=spent.__getitem__)]
    before = real["older"].get("xgrammar", 0)
    note = f" ({before:,} of its records of MaskBench are older, and made without that)" if before else ""
    counts = _counts(suites)
    tail = TAIL.format(counts=counts, seconds=_rows(["s a case"], rows), older=note, **results["about"])
    return "\n\n".join([*parts, tail]) + "\n"


def _whole(result: dict[str, Any]) -> str:
    """Which libraries ran all of MaskBench, in a sentence."""
    whole = sorted(who for who, ran in result["ran"].items() if ran == result["of"])
    some = sorted(set(result["ran"]) - set(whole))
    if not whole:
        return f"No library ran all of MaskBench's {result['of']:,} schemas yet."
    ran = f"Of MaskBench's {result['of']:,} schemas {_listed(whole)} ran all"
    counts = [f"{who} {result['ran'][who]:,}" for who in some]
    return f"{ran}, {_listed(counts)}." if some else f"{ran}."


def _counts(suites: dict[str, Any]) -> str:
    """How many cases of each suite each library ran."""
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
    """What each library is right about, and what that costs."""
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
    """Mask against mask, in words and tables."""
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
    rows = ["| | denied valid texts | made invalid texts |", "|---|---|---|"]
    rows += [
        f"| {who} | {found['wrong'][who]['narrow']:,} | {found['wrong'][who]['wide']:,} |" for who in names
    ]
    if names:
        parts.append("\n".join(rows))
        parts.append("The smallest case of each:")
        parts.append("\n".join(_told(key, each) for key, each in found["smallest"].items()))
    return parts


def _told(key: str, case: Case) -> str:
    """A case in one line of a list."""
    does = "denies" if case["kind"] == "narrow" else "makes"
    where = f"after {_code(case['before'])} by {_code(case['token'])}" if case["before"] else "from the start"
    return f"- {key.rpartition(' ')[0]}, {does} {_code(case['text'])}: {where} ({case['case']})"


def _code(text: str) -> str:
    cut = text if len(text) <= _LONG else f"{text[:_LONG]}…"
    shown = json.dumps(cut, ensure_ascii=True)[1:-1].replace('\\"', '"') if not cut.isprintable() else cut
    return f"`` {shown} ``" if shown else "the start"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
