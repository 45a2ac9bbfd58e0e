"""The causes of the high percentiles of mask + advance, over the steps of MaskBench's documents.

    python -m benchmarks.schemas.tails --schemas 400 --order any
    python -m benchmarks.schemas.tails --schemas 400 --masks masks.jsonl

A step is a mask and the advance by the document's next token, timed as `maskbench` does. A cause has two parts: the
place at which the token begins in the document (in a string, after a name's quotation mark, ...), and what the step
made: nothing (the mask was known), a mask, fragments, states. Causes are ranked by the time of their steps beyond
p99, and beyond p99.9. `--masks` writes a digest of every schema's masks instead; if two builds write equal files,
their masks are equal.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import tokenfst
from benchmarks.masks.compilation import TEKKEN
from benchmarks.measuring.libraries import LIBRARIES, Walk
from benchmarks.schemas.maskbench import DATA, shown, stepped
from benchmarks.schemas.runner import WARM_UP, encoder
from benchmarks.schemas.schemas import sample_of

SHOWN = 14
"""The number of causes, and of single steps, that are printed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its time (ns), its cause, and its place."""

    time: int
    cause: str
    schema: str
    position: int
    text: str


def main() -> None:
    parser = argparse.ArgumentParser(description="the slowest steps over MaskBench, by cause")
    parser.add_argument("--order", choices=("schema", "any"), default="any", help="order of members")
    parser.add_argument(
        "--schemas", type=int, default=400, help="number of schemas, a sample that is the same every time"
    )
    parser.add_argument("--skip", type=int, default=0, help="number of schemas to leave out at the beginning")
    parser.add_argument("--masks", type=Path, help="file for digests of masks; nothing is timed")
    given = parser.parse_args()
    vocabulary, encode = tokenfst.load_vocabulary(TEKKEN), encoder(TEKKEN)
    library = LIBRARIES["tokenfst"](vocabulary, encode)
    rows = sample_of(DATA, given.skip + given.schemas)[given.skip :]

    def compiled(schema: Any) -> Any:
        return tokenfst.compile(tokenfst.json_schema(schema, property_order=given.order), vocabulary)

    library.walk(compiled(WARM_UP)).fill()
    gc.collect()
    gc.freeze()
    steps: list[Step] = []
    digests = []
    for row in rows:
        try:
            automaton = compiled(row["schema"])
            walk = library.walk(automaton)
            walk.fill()
        except tokenfst.errors.TokenfstError:
            continue
        digest = blake2b(digest_size=16)
        for test in row["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False)
            tokens = [*encode(text), vocabulary.eos_token_ids[0]]
            walk.restart()
            if given.masks:
                led(walk, tokens, digest)
            else:
                steps.extend(taken(walk, automaton, tokens, row["id"], text, vocabulary))
        digests.append({"id": row["id"], "masks": digest.hexdigest()})
    if given.masks:
        given.masks.write_text("".join(json.dumps(each) + "\n" for each in digests))
    else:
        report(steps)


def led(walk: Walk, tokens: list[int], digest: Any) -> None:
    """Add the masks along one document to a digest, up to the first token that is not allowed."""
    for token in tokens:
        walk.fill()
        digest.update(walk.bitmask.tobytes())
        if not walk.bitmask[0, token // 32] >> (token % 32) & 1:
            return
        walk.accept(token)


def taken(
    walk: Walk, automaton: Any, tokens: list[int], schema: str, text: str, vocabulary: Any
) -> Iterator[Step]:
    """The steps along one document, up to the first token that is not allowed."""
    places = [*places_of(text.encode()), "end"]
    before, at = automaton.stats(), 0
    for token in tokens:
        allowed, time = stepped(walk, token)
        after = automaton.stats()
        made = "known"
        if after.masks_composed > before.masks_composed or after.masks_made > before.masks_made:
            made = "fragment" if after.fragments > before.fragments else "mask"
        elif after.states > before.states:
            made = "states"
        if after.dense_rows > before.dense_rows:
            made += "+row"
        if after.states - before.states > 64:
            made += "+states"
        piece = vocabulary.tokens[token]
        yield Step(
            time, f"{places[min(at, len(places) - 1)]}: {made}", schema, at, piece.decode(errors="replace")
        )
        if not allowed:
            return
        before, at = after, at + len(piece)


def places_of(text: bytes) -> Iterator[str]:
    """For each byte of a JSON document, a name for the text before it, such as "in string"."""
    inside, names, name, escaped, before = False, [], False, False, "start"
    for byte in text:
        yield before
        char = chr(byte)
        if inside:
            if escaped or char == "\\":
                escaped = not escaped
            elif char == '"':
                inside = False
                before = "after name" if name else "after string"
                continue
            before = "in name" if name else "in string"
        elif char == '"':
            inside, before = True, "in name" if name else "string begins"
            before = "name begins" if name else "string begins"
        elif char in "{[":
            names.append(char == "{")
            name = names[-1]
            before = f"after {char}"
        elif char in "}]":
            names.pop()
            before = f"after {char}"
        elif char == ",":
            name = bool(names and names[-1])
            before = "after , of object" if name else "after , of array"
        elif char == ":":
            name, before = False, "after :"
        elif char in "0123456789.-+eE" and before != "in literal":
            before = "in number"
        elif char != " ":
            before = "in literal"
    yield before


def report(steps: list[Step]) -> None:
    """Print percentiles, and the causes by their share of the time beyond p99 and p99.9."""
    times = sorted(step.time for step in steps)
    print(
        f"mask + advance, µs: mean {sum(times) / len(times) / 1e3:.2f},",
        shown(times, 1e3),
        f"of {len(times):,}",
    )
    known = sorted(step.time for step in steps if step.cause.endswith("known"))
    print(f"known masks: {len(known) / len(times):.0%}, µs:", shown(known, 1e3))
    for part in (0.0, 0.99, 0.999):
        least = times[min(len(times) - 1, int(len(times) * part))]
        beyond = [step for step in steps if step.time >= least]
        total = sum(step.time for step in beyond)
        print(f"\nbeyond p{100 * part:g} ({least / 1e3:.3g} µs): {len(beyond):,} steps, {total / 1e6:.1f} ms")
        spent: Counter[str] = Counter()
        number: Counter[str] = Counter()
        for step in beyond:
            spent[step.cause] += step.time
            number[step.cause] += 1
        for cause, time in spent.most_common(SHOWN):
            print(f"  {time / total:6.1%} {number[cause]:6,}  {time / number[cause] / 1e3:8.1f} µs  {cause}")
    print("\nthe longest:")
    for step in sorted(steps, key=lambda step: -step.time)[: 3 * SHOWN]:
        print(f"  {step.time / 1e3:9.1f} µs  {step.cause:34} {step.schema} at {step.position}: {step.text!r}")


if __name__ == "__main__":
    main()
