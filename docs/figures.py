"""Fills the tables of figures in README.md and docs/ from docs/data/*.json, which benchmarks write.

    python docs/figures.py            # fill the tables
    python docs/figures.py --check    # 1, if a page does not say what its file says

A page marks the place of a table with its name in ``TABLES``, and what stands between the marks is written here:

    <!-- figures: steps -->
    <!-- end of figures -->

A figure in the midst of a sentence has its name in ``INLINE``, and the sentence says from which command it is:

    <!-- figure: tags-parse -->15.4 ms<!-- / -->

Under each table stands by which command, when, at which commit and on which machine its figures were measured. The
best figure of a row is bold, and so are two that look alike; a ratio is the figure beside ours in the same run.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measuring.measure import Figure, digits, shown  # noqa: E402  # needs the root
from benchmarks.measuring.record import DATA, Run, load  # noqa: E402  # the path comes first

MARK = re.compile(
    r"(?P<head><!-- figures: (?P<name>[\w-]+) -->\n).*?(?P<tail><!-- end of figures -->)", re.DOTALL
)
SINGLE = re.compile(r"(?P<head><!-- figure: (?P<name>[\w-]+) -->)[^<]*(?P<tail><!-- / -->)")
OURS = "tokenfst"


@dataclass(frozen=True, slots=True)
class Row:
    r"""One line of figures: those whose ``what`` is matched in full by ``pattern``, called ``label`` (with \1 for a
    group). ``best``: whether the least or the most is best, or nothing is.
    """

    pattern: str
    label: str = ""
    best: str = "least"


@dataclass(frozen=True, slots=True)
class Table:
    """A table over the figures of one file.

    ``columns``: headings by the names in the file; without: all, as they are called. ``ratio``: beside whose figures
    the ratio to the first column stands; ``least``: whether the least value stands in brackets; ``target``: a last
    column with what we set ourselves.
    """

    file: str
    rows: tuple[Row, ...] = (Row(".*", r"\g<0>"),)
    columns: dict[str, str] = field(default_factory=dict)
    ratio: bool = False
    least: bool = False
    target: bool = False


COUNTS = "right|complete"
ALONE = (Row(".*", r"\g<0>", ""),)
"""Lines whose columns are no rivals: nothing is bold."""
PLAIN = (Row(f"(?:{COUNTS}).*", r"\g<0>", "most"), Row(".*", r"\g<0>"))
PEERS = {OURS: OURS, "xgrammar": "xgrammar", "llguidance": "llguidance", "outlines-core": "outlines-core"}
_PATTERNS = "one of .*|a JSON object .*|a string .*"
STEPS = r"(.*): mask \+ advance, (first|second) pass .*, (p50|p99|mean) of .*"

TABLES = {
    "first-mask": Table(
        "first-mask",
        (Row("first mask from source: (.*)", r"`\1`: source to first mask"),),
        PEERS,
        True,
        True,
        True,
    ),
    "object-regex": Table(
        "object-regex",
        (Row(".*", r"\g<0>"),),
        PEERS | {f"{OURS}, again": "tokenfst, fragments known"},
        True,
        True,
    ),
    "object-lazily": Table("object-lazily", ratio=True, least=True),
    "artifact": Table("artifact", least=True, target=True),
    "vocabulary": Table("vocabulary", columns=PEERS, ratio=True, least=True),
    "steps": Table(
        "steps", (Row(r"cached mask \+ advance: (.*)", r"known states: \1"),), PEERS, True, True, True
    ),
    "interior": Table("interior", columns=PEERS, ratio=True, least=True, target=True),
    "completeness": Table("completeness", (Row(".*", r"\g<0>", "most"),), PEERS),
    "grammars-first": Table("grammars", (Row("(.*): grammar text to first mask", r"\1"),), PEERS, True, True),
    "grammars-steps": Table(
        "grammars",
        (Row(STEPS, r"\1, \2 pass: \3"),),
        {OURS: OURS, "llguidance": "llguidance", "xgrammar": "xgrammar"},
        True,
    ),
    "grammar-depth": Table(
        "grammar-depth", (Row(r"JSON arrays (.*), mask \+ advance: (.*)", r"arrays \1: \2"),), PEERS, True
    ),
    "grammar-length": Table("grammar-length", (Row("JSON document.*", r"\g<0>"),), PEERS, True),
    "grammar-memory": Table("grammar-length", (Row("memory of (.*)", r"\1"),), target=True),
    "tags": Table(
        "tags", (Row("structural tag with (.*)", r"\1"), Row(".*", r"\g<0>")), PEERS, True, True, True
    ),
    "logits": Table("logits", ratio=True),
    "schemas": Table("schemas", PLAIN, ratio=True),
    "maskbench": Table("maskbench", PLAIN),
    "maskbench-both": Table("maskbench-both", ratio=True),
    "maskbench-limit": Table("maskbench-limit"),
    "maskbench-memory": Table("maskbench-memory"),
    "published": Table("published", ALONE),
    "events": Table("events", ALONE, target=True),
    "vllm": Table("vllm", ALONE),
    "vllm-ratios": Table("vllm-ratios", ALONE),
    "vllm-first": Table("vllm-first", ALONE),
    "vllm-known": Table("vllm-known", ALONE),
    "vllm-steps": Table("vllm-steps", ALONE),
    "sglang": Table("sglang", ALONE),
    "sglang-ratios": Table("sglang-ratios", ALONE),
    "sglang-first": Table("sglang-first", ALONE),
    "sglang-objects": Table("sglang-objects", ALONE),
    "store": Table(
        "store",
        (Row("lines|put|known|failed|CPU time.*|wall clock", r"\g<0>", ""),),
        columns={"first": "first", "again": "again"},
    ),
    "threads": Table("threads", ALONE),
    "server": Table(
        "server",
        (Row("(?:kept by|made by|how late).*", r"\g<0>", ""),),
        {who: who for who in ("answers", "median", "p99", "p99.9", "most")},
    ),
    "server-whole": Table(
        "server",
        (Row(r"(?!kept by|made by|how late|.* \d{2,} ms).*", r"\g<0>", ""),),
        {"number": "the whole run"},
    ),
    "cold-process": Table("cold-process", ALONE),
    "device": Table("device", ALONE),
    "device-gpu": Table("device-gpu", ALONE),
    "transducers": Table("transducers"),
    "taxonomies": Table("taxonomies", ALONE),
    "concepts": Table("concepts", ALONE),
    "rewriting": Table("rewriting", ALONE),
    "temporal": Table("temporal", ALONE),
    "canonical": Table("canonical", (Row(_PATTERNS, r"\g<0>", ""),)),
    "token-groups": Table("token-groups", ALONE),
    "weights-scores": Table("weights", (Row("(?:4-gram|boost|prefer).*", r"\g<0>", ""),)),
    "weights-lattices": Table("weights", (Row(".* frames .*", r"\g<0>"),)),
    "scale-costs": Table("scale", (Row("front end.*|out of the store.*|size of.*", r"\g<0>", ""),)),
    "scale-calls": Table(
        "scale", (Row("compile and put|known already.*|`compile_document`.*|`get`.*", r"\g<0>", ""),)
    ),
    "scale-ways": Table("scale", (Row("alone.*|a store.*|the same.*|filled.*", r"\g<0>", ""),)),
    "scale-filling": Table("scale", (Row(".* processes", r"\g<0>", ""),)),
    "decoding-per-token": Table("decoding", (Row(".*, rows: .*", r"\g<0>"),), ratio=True, least=True),
    "decoding-jumps": Table("decoding", (Row("(?:one object|40 drawn in a batch), .*", r"\g<0>", ""),)),
    "decoding-speculation": Table("decoding", (Row("an array of 3 .*", r"\g<0>", ""),)),
    "decoding-labels": Table("decoding", (Row("[0-9]+ labels of .*", r"\g<0>"),), ratio=True, least=True),
    "beams": Table("beams", ratio=True, least=True),
    "particles": Table("particles", (Row("SMC.*|plain samples.*", r"\g<0>", ""),), target=True),
    "particles-step": Table("particles", (Row("one step.*|the circuit.*", r"\g<0>", ""),)),
    "substrings": Table("substrings", ALONE, target=True),
    "learned": Table("learned", (Row("new automata|loaded.*|the same.*", r"\g<0>", ""),)),
    "fuzzing": Table(
        "fuzzing", ALONE, columns={name: name for name in ("executions", "processor time", "edges covered")}
    ),
}


def table(name: str) -> str:
    """The text of a table, with where its figures come from."""
    plan = TABLES[name]
    runs = load(DATA / f"{plan.file}.json")
    figures = [figure for run in runs for figure in run.figures]
    lines = list(_lines(plan, figures))
    names = list(plan.columns) or list(dict.fromkeys(each.who for each in figures if _row(plan, each)))
    names = [who for who in names if any(who in cells for _, cells, _ in lines)]
    heads = [plan.columns.get(who, who) for who in names]
    rows = [["", *heads, *(["target"] if plan.target else [])]]
    for label, cells, best in lines:
        texts = _cells(plan, cells, names, best)
        goals = {shown(each.target, each.unit) for each in cells.values() if each.target is not None}
        label = re.sub(r"(?<!\\)\|", r"\\|", label)  # a bar would begin the next column
        rows.append([label, *texts, *([" / ".join(sorted(goals))] if plan.target else [])])
    return "\n\n".join([markdown(rows), *(origin(run, names) for run in runs)])


def _row(plan: Table, figure: Figure) -> Row | None:
    return next((row for row in plan.rows if re.fullmatch(row.pattern, figure.what)), None)


def _lines(plan: Table, figures: list[Figure]) -> Iterator[tuple[str, dict[str, Figure], str]]:
    """The label of each line, its figures by name, and what is best."""
    for what in dict.fromkeys(each.what for each in figures):
        here = {each.who: each for each in figures if each.what == what}
        row = _row(plan, next(iter(here.values())))
        if row is not None:
            yield re.fullmatch(row.pattern, what).expand(row.label), here, row.best  # type: ignore[union-attr]


def _cells(plan: Table, figures: dict[str, Figure], names: list[str], best: str) -> list[str]:
    """A line of figures as text, the best in bold."""
    known = {
        who: shown(each.median, each.unit)
        for who, each in figures.items()
        if each.median is not None and who in names
    }
    values = {who: figures[who].median for who in known}
    choose: Callable[..., Any] = max if best == "most" else min
    top = known[choose(values, key=values.__getitem__)] if len(known) > 1 and best else None
    first = figures.get(names[0])
    texts = []
    for who in names:
        each = figures.get(who)
        if each is None or who not in known:
            texts.append("" if each is None else each.note.replace("|", "\\|"))
            continue
        text = f"**{known[who]}**" if known[who] == top else known[who]
        if plan.least and each.least is not None and each.least != each.median:
            text += f" ({shown(each.least, each.unit)})"
        if (
            plan.ratio
            and who != names[0]
            and first is not None
            and first.median
            and each.median
            and each.unit != "count"
        ):
            text += f", {digits(each.median / first.median)} x"
        texts.append(text)
    return texts


def markdown(rows: list[list[str]]) -> str:
    """Rows as a table in Markdown; the first one is the head."""
    written = [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows]
    return "\n".join([written[0], "|---" * len(rows[0]) + "|", *written[1:]])


def origin(run: Run, names: Sequence[str] = ()) -> str:
    """Where the figures of a run come from, in a sentence; of the versions those of libraries that have a column."""
    known = {word for name in names for word in (name, name.partition(",")[0])} | {"torch", "Python"}
    versions = [each for each in run.versions.split(", ") if not names or each.partition(" ")[0] in known]
    parts = [run.machine, ", ".join(versions) if len(versions) > 1 else run.versions, run.note]
    return f"`{run.command}`, {run.date}, commit {run.commit}: {'; '.join(part for part in parts if part)}."


# --- README's first table ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of README's table: figures of one file under the names of the libraries. ``link``: the command and where
    it is described. ``names``: what a library is called in the file, if it is called otherwise there.
    """

    label: str
    file: str
    what: str
    link: str
    best: str = "least"
    names: dict[str, str] = field(default_factory=dict)


ANY = {OURS: f"{OURS}, any order"}
BENCH = "docs/benchmarks.md"
FACTS = (
    Fact(
        "11,305 real JSON Schemas, members in any order: right about every document",
        "maskbench",
        "right about all documents",
        f"[`maskbench`]({BENCH}#all-of-maskbench)",
        "most",
        ANY,
    ),
    Fact(
        "inside a JSON string: mask and advance",
        "steps",
        "cached mask + advance: JSON string interior (wide)",
        f"[`--only steps`]({BENCH}#a-step-mask-and-advance-through-python)",
    ),
    Fact(
        "regular expression to first mask",
        "first-mask",
        "first mask from source: [0-9]{3}-[0-9]{N}",
        f"[`--only first-mask`]({BENCH}#from-a-regex-to-masks)",
    ),
    Fact(
        "grammar of JSON to first mask",
        "grammars",
        "JSON: grammar text to first mask",
        f"[`--only grammars`]({BENCH}#grammars)",
    ),
    Fact(
        "20 tools to first mask",
        "tags",
        "structural tag with 20 tools: to the first mask",
        f"[`--only tags`]({BENCH}#structural-tags)",
    ),
    Fact(
        "texts complete within 32 tokens, of 50",
        "completeness",
        "texts of an object with a string, complete within 32 tokens, of 50",
        f"[`--only completeness`]({BENCH}#complete-within-the-tokens)",
        "most",
    ),
    Fact(
        "H100, 64 rows: advance and mask in a CUDA graph",
        "device-gpu",
        "advance and mask, in a CUDA graph",
        "[`make bench-gpu`](docs/decoding/device.md#what-ran-on-a-gpu)",
    ),
)
LIBRARIES = (OURS, "xgrammar", "llguidance", "outlines-core", "glrmask")
SHOWN = 4
"""At least so many libraries stand in the rows of README that come from the leaderboard."""
BOARD_LINK = "[`make leaderboard`](docs/leaderboard.md)"
BOARD = (
    ("right about every document", "passed", "", "count", "most"),
    ("accepts an invalid document", "accepts_invalid", "", "count", "least"),
    ("first mask, median", "first_mask_cpu", "p50", "s", "least"),
    ("mask and advance, p99", "step", "p99", "s", "least"),
)


def _board(
    found: dict[str, Any], lines: tuple[tuple[str, str, str, str, str], ...], cases: str
) -> list[list[str]]:
    """Rows of README's table from a table of the leaderboard; ``cases``: what its cases are."""
    rows: list[list[str]] = []
    for label, keys, part, unit, best in lines:
        figures = {
            who: Figure(
                "", who, sum(each[key][part] if part else each[key] for key in keys.split()), unit=unit
            )
            for who, each in found["engines"].items()
        }
        start, link = (
            ("of these: ", "the same") if rows else (f"{cases}, with each library's defaults: ", BOARD_LINK)
        )
        if keys == "step" and found["side_by_side"] < found["cases"]:
            start = f"of {found['side_by_side']:,} of these, measured side by side: "
        rows.append([start + label, *_cells(Table(""), figures, list(LIBRARIES), best), link])
    return rows


def readme() -> str:
    """README's table: what each benchmark says, and the leaderboard's runs of all schemas and of samples."""
    board = json.loads((DATA / "leaderboard.json").read_text())
    suite = board["suites"]["maskbench"]
    found = next(each for each in suite["tables"] if len(each["engines"]) >= SHOWN)
    rows = []
    for table in suite["tables"]:
        whole = table["cases"] == suite["of"]
        if table is found or table is suite["tables"][-1] or whole:
            cases = "all of them" if whole else f"{table['cases']:,} of them, drawn at random"
            rows += _board(table, BOARD if table is found else BOARD[:2], cases)
    facts = []
    for fact in FACTS:
        known = [
            figure
            for run in load(DATA / f"{fact.file}.json")
            for figure in run.figures
            if figure.what == fact.what
        ]
        names = {fact.names.get(who, who): who for who in LIBRARIES}
        figures = {names[each.who]: each for each in known if each.who in names}
        assert figures, f"docs/data/{fact.file}.json has no {fact.what!r}"
        facts.append([fact.label, *_cells(Table(""), figures, list(LIBRARIES), fact.best), fact.link])
    versions = {who: each["version"] for who, each in found["engines"].items()}
    versions |= {
        who: each["version"] for who, each in board["suites"]["maskbench"]["tables"][-1]["engines"].items()
    }
    heads = [who if who == OURS else f"{who} {versions.get(who, '')}".strip() for who in LIBRARIES]
    algebra = [
        "`&`, `\\|`, `-`, `~` of any two regular constraints, equivalence with a witness",
        *ALGEBRA,
        "[algebra](docs/research/algebra.md)",
    ]
    return markdown([["", *heads, "command"], *facts[:1], *rows, *facts[1:], algebra])


@dataclass(frozen=True, slots=True)
class Single:
    """One figure of a file. ``per_second``: how many of a unit a second, where the figure is the time for one."""

    file: str
    what: str
    who: str = OURS
    per_second: str = ""

    def text(self) -> str:
        """The figure for people."""
        found = [
            each
            for run in load(DATA / f"{self.file}.json")
            for each in run.figures
            if (each.what, each.who) == (self.what, self.who)
        ]
        assert found and (found[-1].median is not None or found[-1].note), (
            f"docs/data/{self.file}.json has no {self.what!r}"
        )
        value = found[-1].median
        if value is None:
            return found[-1].note
        return f"{digits(1 / value)} {self.per_second}" if self.per_second else shown(value, found[-1].unit)


_TAG = "structural tag with 20 tools: "
_MIXED = "free text and calls read back, a megabyte (1,452 calls), processor time"
_CALLS = "calls alone read back, a megabyte (4,773 calls), processor time"
_TEXT, _ARGUMENTS = f"{_TAG}a known mask, free text", f"{_TAG}a known mask, arguments"
INLINE = {
    "tags-parse": Single("tags", _MIXED),
    "tags-parse-rate": Single("tags", _MIXED, per_second="MB"),
    "tags-parse-calls": Single("tags", _CALLS),
    "tags-parse-calls-rate": Single("tags", _CALLS, per_second="MB"),
    "tags-event": Single("tags", "free text and calls as they come, a token, processor time"),
    "tags-event-calls": Single("tags", "calls alone as they come, a token, processor time"),
    "tags-first-mask": Single("tags", f"{_TAG}to the first mask"),
    "tags-first-mask-xgrammar": Single("tags", f"{_TAG}to the first mask", "xgrammar"),
    "tags-text": Single("tags", _TEXT),
    "tags-text-xgrammar": Single("tags", _TEXT, "xgrammar"),
    "tags-arguments": Single("tags", _ARGUMENTS),
    "tags-arguments-xgrammar": Single("tags", _ARGUMENTS, "xgrammar"),
    "events-token": Single("events", "events of JSON: 20,290 tokens, 19,092 events: a token"),
    "events-event": Single("events", "events of JSON: 20,290 tokens, 19,092 events: an event"),
    "events-stream": Single("events", "stream_json of it: a token"),
    "events-captures": Single("events", "captures of 5,600 bytes by two groups that repeat: a byte"),
    "store-line": Single("store", "CPU time of a line", "first"),
    "store-line-again": Single("store", "CPU time of a line", "again"),
    "store-known": Single("store", "known", "first"),
    "store-put": Single("store", "put", "first"),
    "store-size": Single("store", "entries", "size"),
    "store-process": Single("store", "the largest process", "size"),
    "store-get": Single("store", "an entry read", "folder"),
    "store-get-cached": Single("store", "an entry read", "cache"),
    "canonical-once": Single("canonical", "made once for the vocabulary", "time"),
    "scale-cpu": Single("scale", "all of them", "CPU"),
    "scale-dollars": Single("scale", "all of them", "requests"),
    "scale-size": Single("scale", "all of them", "size"),
    "scale-compile": Single("scale", "front end, compile, put", "median"),
    "scale-worst": Single("scale", "front end, compile, put", "most"),
    "learned-save": Single("learned", "save(learned=True)", "of a schema"),
    "learned-load": Single("learned", "load", "of a schema"),
    "learned-size": Single("learned", "artifacts", "size of all"),
    "vocabulary-file": Single("cold-process", "vocabulary", "tokenizer's file"),
    "vocabulary-pack": Single("cold-process", "vocabulary", "pack"),
}
"""Figures in the midst of sentences, by the names that pages give them."""
ALGEBRA = ("**yes**", "no", "no", "no", "no")
SPECIAL: dict[str, Callable[[], str]] = {"readme": readme}


def filled(page: str) -> str:
    """A page with its tables and single figures filled."""

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        text = SPECIAL[name]() if name in SPECIAL else table(name)
        return f"{match['head']}\n{text}\n\n{match['tail']}"

    def fill_one(match: re.Match[str]) -> str:
        return f"{match['head']}{INLINE[match['name']].text()}{match['tail']}"

    return SINGLE.sub(fill_one, MARK.sub(fill, page))


def pages() -> list[Path]:
    """The pages that have marks."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in every if MARK.search(text := page.read_text()) or SINGLE.search(text)]


def main(arguments: list[str]) -> int:
    """Fill the pages, or say which are stale."""
    stale = [page for page in pages() if filled(page.read_text()) != page.read_text()]
    for page in stale:
        print(page.relative_to(ROOT))
        if "--check" not in arguments:
            page.write_text(filled(page.read_text()))
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
