"""``tokenfst inspect``: the content of an artifact, read from its tables without the vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from tokenfst.automata.expressions.digests import digest
from tokenfst.automata.pictures.charts import Bar, Chart, svg
from tokenfst.cli.constraints import options
from tokenfst.cli.input import groups
from tokenfst.cli.output.terminal import (
    Exit,
    UsageError,
    counted,
    json_bytes,
    quoted,
    say,
    say_json,
    say_pairs,
)
from tokenfst.common.sizes import byte_size
from tokenfst.decoding.artifacts import artifact, program_arrays
from tokenfst.decoding.token_automata.token_automaton import ASK, UNREACHABLE
from tokenfst.errors import ArtifactCorruptError

Ints = npt.NDArray[np.int64]

_BAR = 32
"""Columns of the longest bar of the histogram."""
_BARS = 10
"""Most lines of the histogram."""
_SHOWN_PATH = 40
_READABLE_LAST = sorted(range(256), key=lambda b: (32 < b < 127) + chr(b).isalnum() * (b < 128))
"""All bytes, those that are the most readable examples of their class last."""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "inspect", inspect_command)


def inspect_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An artifact.", show_default=False)],
    widest: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="How many of the states that allow the most tokens to list."),
    ] = 5,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg",
            help="Also draw bar charts: how many states have each distance, and how many allow each number of tokens.",
        ),
    ] = None,
    json: options.Json = False,
) -> int:
    """Show what is in an artifact: source, sizes, masks, distances, and the states that allow the most
    tokens.

    No vocabulary is needed.
    """
    if plot is not None and plot.suffix.lower() != ".svg":
        raise UsageError(f"--plot writes SVG: the name must end in .svg, not be {str(plot)!r}")
    found = artifact.read(file)
    if found.is_program:
        if plot is not None:
            raise UsageError(f"{file} is a program, which has no states to plot: compile it without --batch")
        answer = _head(found) | _program(found, file)
    else:
        _check_tables(found, file)
        answer = describe(found, widest)
    answer = {"command": "inspect", "file": str(file)} | answer
    if plot is not None:
        plot.write_text(svg(_charts(found, answer["distances"]["histogram"])), encoding="utf-8")
    if json:
        say_json(answer)
    elif found.is_program:
        _show_program(answer)
    else:
        _show(answer)
    return Exit.YES


def _check_tables(found: artifact.Artifact, file: Path) -> None:
    """Raise ``ArtifactCorruptError`` if a number points outside of its table. ``artifact.read`` leaves this check to
    the native core, which needs a vocabulary for it.
    """
    arrays = found.arrays
    states, classes = arrays["table"].shape
    if "stack_states" in arrays:
        # In place of a mask, states with a stack may hold the number of a look-up.
        arrays = arrays | {"mask": np.where(arrays["mask"] & ASK, 0, arrays["mask"])}
    limits = {
        "classes": classes,
        "table": states,
        "mask": len(arrays["mask_row"]),
        "mask_row": len(arrays["rows"]) + 1,
        "flips": found.vocabulary_size,
    }
    wrong = [name for name, limit in limits.items() if arrays[name].max(initial=0) >= limit]
    offsets, distance = arrays["flip_offsets"].astype(np.int64), arrays["distance"]
    if offsets[0] != 0 or np.any(np.diff(offsets) < 0) or offsets[-1] != len(arrays["flips"]):
        wrong.append("flip_offsets")
    if "stack_states" not in arrays and distance[distance != UNREACHABLE].max(initial=0) >= states:
        wrong.append("distance")
    if wrong:
        raise ArtifactCorruptError(
            f"{file} breaks a rule of the format: {wrong[0]!r} has a number that is too large or out of order. "
            "Compile the constraint again"
        )


def describe(found: artifact.Artifact, widest: int) -> dict[str, Any]:
    """The figures of an artifact, as ``--json`` prints them. Linear in its tables, which must be consistent."""
    arrays = found.arrays
    table, distance = arrays["table"], arrays["distance"]
    classes = np.bincount(arrays["classes"], minlength=table.shape[1])
    counts = mask_counts(arrays)
    mask, stack = arrays["mask"], None
    live = distance != UNREACHABLE
    live[0] = False
    if "stack_states" in arrays:
        stack = _stack(arrays)
        mask = np.where(mask & ASK, 0, mask)
    lengths = np.diff(arrays["flip_offsets"].astype(np.int64))[1:]
    tokens = np.where(live, counts[mask], 0)
    order = np.lexsort((np.arange(len(tokens)), -tokens))[:widest]
    # With a stack, which text leads to a state is no question of the table alone.
    words = {} if stack else access_words(arrays, [int(state) for state in order if live[state]])
    finite = distance[live].astype(np.int64)
    start = int(distance[arrays["start"]])
    return _head(found) | {
        "states": len(distance) - 1,
        "accepting": int(np.count_nonzero(arrays["accepting"])),
        "unspellable": 0 if stack else int(np.count_nonzero(~live)) - 1,
        "classes": int(table.shape[1]),
        "transitions": int(((table != 0) @ classes).sum()),
        "masks": {
            "distinct": len(lengths),
            "dense_rows": int(arrays["rows"].shape[0]),
            "list_lengths": {
                "total": int(lengths.sum()),
                "median": int(np.median(lengths)) if len(lengths) else 0,
                "longest": int(lengths.max(initial=0)),
            },
        },
        "stack": stack,
        "distances": {
            "start": None if start == UNREACHABLE else start,
            "max": int(finite.max()) if len(finite) else None,
            "histogram": np.bincount(finite).tolist() if len(finite) else [],
        },
        "widest": [
            {
                "state": state,
                "allowed_tokens": int(tokens[state]),
                "accepting": bool(arrays["accepting"][state]),
                "after": json_bytes(word),
            }
            for state, word in words.items()
        ],
    }


def _charts(found: artifact.Artifact, distances: list[int]) -> list[Chart]:
    """The numbers of states by distance, and by the number of allowed tokens, in powers of ten."""
    arrays = found.arrays
    mask = np.where(arrays["mask"] & ASK, 0, arrays["mask"])
    allowed = mask_counts(arrays)[mask[(mask != 0) & (arrays["distance"] != UNREACHABLE)]]
    lows = [1, 2, *(10**power for power in range(1, 7))]
    of_sizes = []
    for low, above in zip(lows, [*lows[1:], None], strict=True):
        count = int(np.count_nonzero((allowed >= low) & ((above is None) | (allowed < (above or 0)))))
        name = (
            f"{low:,} or more"
            if above is None
            else f"{low:,}"
            if above == low + 1
            else f"{low:,} to {above - 1:,}"
        )
        of_sizes.append((name, count))
    return [
        Chart("tokens to acceptance: states", [_bar(*each) for each in _grouped(distances)]),
        Chart("tokens allowed: states", [_bar(name, count) for name, count in of_sizes if count]),
    ]


def _bar(name: str, count: int) -> Bar:
    return Bar(name, count, f"{count:,}")


def _grouped(histogram: list[int]) -> list[tuple[str, int]]:
    """A histogram in at most ``_BARS`` groups of equal width: their names and sums."""
    width = -(-len(histogram) // _BARS)
    groups = []
    for first in range(0, len(histogram), width or 1):
        last = min(first + width, len(histogram)) - 1
        groups.append((f"{first}" if first == last else f"{first}-{last}", sum(histogram[first : last + 1])))
    return groups


def _head(found: artifact.Artifact) -> dict[str, Any]:
    return {
        "bytes": found.size,
        "format_version": found.version,
        "tokenization": "all" if found.encoding is None else "canonical",
        "digest": found.digest,
        "source": found.source,
        "vocabulary": {"fingerprint": found.vocabulary_fingerprint, "size": found.vocabulary_size},
    }


def _program(found: artifact.Artifact, file: Path) -> dict[str, Any]:
    """The figures of an artifact that is a program: it has no states yet."""
    program, _ = program_arrays.read(found, file)
    return {
        "program": digest(program),
        "instructions": len(program.code),
        "rules": len(program.rules),
        "machines": len(program.machines),
        "words": sum(map(len, program.lexicons)),
    }


def _stack(arrays: dict[str, Any]) -> dict[str, int]:
    """The figures of a push-down automaton beyond its states: stack symbols, masks that depend on the stack (leaves),
    and the greatest number of symbols that one of them inspects.
    """
    depth: dict[int, int] = {int(root ^ ASK): 1 for root in arrays["mask"] if root & ASK}
    leaves = int(np.count_nonzero((arrays["mask"] & ASK == 0) & (arrays["mask"] != 0)))
    for node, _, value in arrays["stack_asks"].tolist():
        if value & ASK:
            depth[value ^ ASK] = depth.get(node, 0) + 1
        else:
            leaves += 1
    return {
        "symbols": len(arrays["stack_frames"]),
        "effects": len(arrays["stack_effects"]),
        "leaves": leaves,
        "deepest_look": max(depth.values(), default=0),
    }


def mask_counts(arrays: dict[str, Any]) -> Ints:
    """The number of tokens that each mask allows: int64 (masks,)."""
    rows, offsets = arrays["rows"], arrays["flip_offsets"].astype(np.int64)
    in_row = np.array([0, *(np.unpackbits(row.view(np.uint8)).sum() for row in rows)], np.int64)
    row_of = arrays["mask_row"].astype(np.int64)
    flips = arrays["flips"].astype(np.int64)
    mask_of = np.repeat(np.arange(len(row_of)), np.diff(offsets))
    flip_row = row_of[mask_of]
    removed = np.zeros(len(flips), np.int64)
    based = np.flatnonzero(flip_row)
    removed[based] = rows[flip_row[based] - 1, flips[based] >> 5] >> (flips[based] & 31).astype(np.uint32) & 1
    change = np.bincount(mask_of, weights=1 - 2 * removed, minlength=len(row_of)).astype(np.int64)
    counts: Ints = in_row[row_of] + change
    return counts


def access_words(arrays: dict[str, Any], states: list[int]) -> dict[int, bytes]:
    """For each of the states, a shortest text that leads to it, without its special tokens. Breadth-first search over
    the whole table.
    """
    table = arrays["table"]
    first_byte = np.full(table.shape[1], -1, np.int64)
    for byte in _READABLE_LAST:
        first_byte[arrays["classes"][byte]] = byte
    parent = np.full(len(table), -1, np.int64)
    through = np.zeros(len(table), np.int64)
    frontier = np.unique([arrays["start"], arrays["inner_start"]]).astype(np.int64)
    parent[frontier] = frontier
    parent[0] = 0
    while len(frontier):
        targets = table[frontier].ravel().astype(np.int64)
        new, place = np.unique(targets, return_index=True)
        fresh = parent[new] < 0
        new, place = new[fresh], place[fresh]
        parent[new] = frontier[place // table.shape[1]]
        through[new] = place % table.shape[1]
        frontier = new
    words = {}
    for state in states:
        word, at = bytearray(), state
        while parent[at] != at:
            if (byte := first_byte[through[at]]) >= 0:
                word.append(byte)
            at = int(parent[at])
        words[state] = bytes(word[::-1])
    return words


# --- for people ---------------------------------------------------------------------------------------


def _show_program(answer: dict[str, Any]) -> None:
    vocabulary = answer["vocabulary"]
    say(f"{answer['file']}: {answer['source']}")
    say_pairs(
        [
            ("size", f"{byte_size(answer['bytes'])}, format version {answer['format_version']}"),
            ("digest", answer["digest"]),
            (
                "vocabulary",
                f"{counted(vocabulary['size'], 'token')}, fingerprint {vocabulary['fingerprint'][:16]}…",
            ),
            ("tokens", "canonical sequences alone" if answer["tokenization"] == "canonical" else "all"),
            ("states", "made when they are first asked for: the artifact is a program"),
            ("program", f"{counted(answer['rules'], 'rule')}, {answer['program']}"),
        ],
        "  ",
    )


def _show(answer: dict[str, Any]) -> None:
    vocabulary, masks, distances = answer["vocabulary"], answer["masks"], answer["distances"]
    lists = masks["list_lengths"]
    say(f"{answer['file']}: {answer['source']}")
    start = distances["start"]
    say_pairs(
        [
            ("size", f"{byte_size(answer['bytes'])}, format version {answer['format_version']}"),
            ("digest", answer["digest"]),
            *(
                [("tokens", "canonical sequences alone; the figures below are of all token sequences")]
                if answer["tokenization"] == "canonical"
                else []
            ),
            (
                "vocabulary",
                f"{counted(vocabulary['size'], 'token')}, fingerprint {vocabulary['fingerprint'][:16]}…",
            ),
            (
                "states",
                f"{answer['states']:,} ({answer['accepting']:,} accepting), {answer['transitions']:,} "
                f"transitions, {answer['classes']} byte classes",
            ),
            (
                "masks",
                f"{masks['distinct']:,} different, {counted(masks['dense_rows'], 'dense row')}, lists of "
                f"{lists['median']:,} (median) to {lists['longest']:,} (longest) tokens",
            ),
            *(
                [
                    (
                        "stack",
                        f"{counted(stack['symbols'], 'symbol')}; {counted(stack['leaves'], 'mask')}, which inspect "
                        f"at most {counted(stack['deepest_look'], 'symbol')} of the stack",
                    )
                ]
                if (stack := answer["stack"])
                else []
            ),
            (
                "distances",
                "no token sequence spells a string"
                if start is None
                else f"{counted(start, 'token')} from the start, at most {distances['max']:,}",
            ),
        ],
        "  ",
    )
    if answer["unspellable"]:
        say(f"  {counted(answer['unspellable'], 'state')} on no token sequence of the vocabulary")
    _show_histogram(distances["histogram"])
    if answer["widest"]:
        say("widest states")
        say_pairs(
            [
                (
                    f"{entry['state']:>8}",
                    f"{counted(entry['allowed_tokens'], 'token'):>15} after {_after(entry)}",
                )
                for entry in answer["widest"]
            ]
        )


def _after(entry: dict[str, Any]) -> str:
    word = bytes.fromhex(entry["after"]["hex"])
    return f"{quoted(word, _SHOWN_PATH)}{', accepting' if entry['accepting'] else ''}"


def _show_histogram(histogram: list[int]) -> None:
    """Print the numbers of states by distance, in at most ``_BARS`` groups of equal width."""
    if not histogram:
        return
    groups = _grouped(histogram)
    say("tokens to acceptance")
    largest = max(count for _, count in groups)
    lines = []
    for name, count in groups:
        bar = "█" * round(_BAR * count / largest) or ("▏" if count else "")
        lines.append((f"{name:>8}", f"{bar:<{_BAR}} {counted(count, 'state')}"))
    say_pairs(lines)
