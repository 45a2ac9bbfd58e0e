"""Structural tags beside xgrammar: the first mask of 20 tools, masks in free text and in arguments, texts read back,
and their events.

The tools are MaskBench's schemas of function calls (``../shared/maskbench``), 20 at a time; each tag is free text
with one trigger. A text is a sentence, a call with a valid document of the schema, and a sentence. Masks are timed in
the second walk along a text, when they are known. A text that is read back is a megabyte of such calls in the format
of qwen_3, with and without sentences between them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter_ns, process_time
from typing import Any

import tokenfst
from benchmarks.measuring.libraries import Walk, World
from benchmarks.measuring.measure import OURS, Figure, clock_overhead, figure, quiet, sample
from tokenfst import Vocabulary, structural_tag, tools

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "maskbench" / "all.jsonl.gz"
TOOLS, TAGS, RUNS = 20, 8, 5
PARSED, PARSES = 1_000_000, 15
"""The number of bytes of a text that is read back, and the number of times that it is read."""
FREE = "I will look that up for you, one moment please.\n"
Row = dict[str, Any]


def tags(world: World) -> Iterator[Figure]:
    """The figures of first masks of tags with 20 tools, of masks along texts, and of texts read back."""
    if not DATA.is_file():
        yield Figure("structural tags", OURS, None, note="the schemas are not beside the repository")
        return
    groups = list(islice(_groups(), TAGS))
    specs = [_spec(rows) for rows in groups]
    libraries: dict[str, Callable[[dict[str, Any]], Walk]] = {OURS: partial(_ours, world.vocabulary)}
    for peer in world.peers("xgrammar"):
        libraries[peer.name] = partial(_theirs, peer)
    texts = [_text(rows, world.vocabulary) for rows in groups]
    what = f"structural tag with {TOOLS} tools"
    for who, start in libraries.items():
        for spec in specs:
            start(spec).fill()
        firsts = [
            seconds
            for spec in specs
            for seconds in sample(lambda spec=spec, start=start: start(spec).fill(), runs=RUNS)
        ]
        yield figure(f"{what}: to the first mask", who, firsts, target=0.010 if who == OURS else None)
    for part in ("free text", "arguments"):
        for who, start in libraries.items():
            steps = [
                each
                for spec, text in zip(specs, texts, strict=True)
                for each in _steps(start(spec), text[part])
            ]
            target = 2e-6 if who == OURS and part == "free text" else None
            yield figure(f"{what}: a known mask, {part}", who, steps, target=target)
    yield from _parsed(groups[0])
    yield from _told(groups[0], world.vocabulary)


def _groups() -> Iterator[list[Row]]:
    """Groups of ``TOOLS`` tools that have a valid document; the tools of a group have different names."""
    rows: list[Row] = []
    with gzip.open(DATA, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if not row["id"].startswith("Glaiveai2K---") or not any(test["valid"] for test in row["tests"]):
                continue
            try:
                tokenfst.json_schema(row["schema"], additional_properties="forbid")
            except tokenfst.TokenfstError:
                continue
            rows.append(row)
            if len(rows) == TOOLS:
                yield rows
                rows = []


def _spec(rows: list[Row]) -> dict[str, Any]:
    tagged = [
        {
            "type": "tag",
            "begin": f"<function={_name(row)}>",
            "content": {"type": "json_schema", "json_schema": row["schema"]},
            "end": "</function>",
        }
        for row in rows
    ]
    return {
        "type": "structural_tag",
        "format": {"type": "triggered_tags", "triggers": ["<function="], "tags": tagged},
    }


def _parsed(rows: list[Row]) -> Iterator[Figure]:
    """Texts of one megabyte read back. The figures are processor time, because each call takes long enough for other
    work on the computer to disturb the clock.
    """
    made = tools([_tool(row) for row in rows], format="qwen_3")
    written = [(_name(row), json.dumps(_valid(row), ensure_ascii=False)) for row in rows]
    calls = [
        f'<tool_call>\n{{"name": "{name}", "arguments": {each}}}\n</tool_call>' for name, each in written
    ]
    kept = [call for call in calls if made.accepts(call)]
    for what, between in (("free text and calls", FREE * 10), ("calls alone", "\n")):
        text = between.join([*kept, ""])
        data = (text * (PARSED // len(text.encode()) + 1)).encode()
        count = len(made.parse(data).calls)
        label = f"{what} read back, a megabyte ({count * PARSED // len(data):,} calls), processor time"
        seconds = [_processor_seconds(partial(made.parse, data)) * PARSED / len(data) for _ in range(PARSES)]
        yield figure(label, OURS, seconds, target=0.05)


def _told(rows: list[Row], vocabulary: Vocabulary) -> Iterator[Figure]:
    """Events of texts that arrive token by token: the processor time for a token."""
    made = tools([_tool(row) for row in rows], format="qwen_3")
    calls = [
        f'<tool_call>\n{{"name": "{_name(row)}", "arguments": {json.dumps(_valid(row), ensure_ascii=False)}}}'
        "\n</tool_call>"
        for row in rows
    ]
    kept = [call for call in calls if made.accepts(call)]
    for what, between in (("free text and calls", FREE * 5), ("calls alone", "\n")):
        text = between.join([*kept, ""]) * 4
        tokens = [vocabulary.token_bytes(token) for token in vocabulary.encode_greedy(text.encode())]

        def follow(tokens: list[bytes] = tokens) -> None:
            stream = made.stream()
            for token in tokens:
                stream.feed(token)
            stream.close()

        follow()
        seconds = [_processor_seconds(follow) / len(tokens) for _ in range(PARSES)]
        yield figure(f"{what} as they come, a token, processor time", OURS, seconds, target=2e-6)


def _processor_seconds(function: Callable[[], object]) -> float:
    with quiet():
        begin = process_time()
        function()
        return process_time() - begin


def _tool(row: Row) -> dict[str, Any]:
    return {"type": "function", "name": _name(row), "parameters": row["schema"]}


def _valid(row: Row) -> Any:
    """A valid document, its members in the order of the schema."""
    valid = next(test["data"] for test in row["tests"] if test["valid"])
    names = row["schema"].get("properties", {})
    return {name: valid[name] for name in names if name in valid} if isinstance(valid, dict) else valid


def _name(row: Row) -> str:
    return str(row["id"]).partition("---")[2]


def _text(rows: list[Row], vocabulary: Vocabulary) -> dict[str, list[tuple[list[int], bool]]]:
    """For each part ("free text", "arguments"), the tokens of a text in pieces, and whether each piece is measured."""
    row = rows[0]
    encode = vocabulary.encode_greedy
    begin = list(encode(f"<function={_name(row)}>".encode()))
    arguments = list(encode(json.dumps(_valid(row), ensure_ascii=False).encode()))
    free = list(encode(FREE.encode()))
    return {
        "free text": [(free, True)],
        "arguments": [(free, False), (begin, False), (arguments, True)],
    }


def _steps(walk: Walk, pieces: list[tuple[list[int], bool]]) -> list[float]:
    """The seconds of each mask in the second walk. The list ends where a token is refused: a library may divide a
    document into other tokens.
    """
    found: list[float] = []
    overhead = clock_overhead()
    with quiet():
        for lap in range(2):
            walk.restart()
            found.clear()
            for tokens, measured in pieces:
                for token in tokens:
                    begin = perf_counter_ns()
                    walk.fill()
                    end = perf_counter_ns()
                    if measured and lap:
                        found.append(max(0.0, (end - begin) / 1e9 - overhead))
                    if not walk.accept(token):
                        return found
    return found


def _ours(vocabulary: Vocabulary, spec: dict[str, Any]) -> Walk:
    matcher = tokenfst.compile(structural_tag(spec), vocabulary).matcher()
    bitmask = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    return Walk(
        partial(matcher.fill_next_token_bitmask, bitmask, 0), matcher.accept_token, bitmask, matcher.reset
    )


def _theirs(library: Any, spec: dict[str, Any]) -> Walk:
    walk: Walk = library.walk(library.compile_structural_tag(spec))
    return walk
