"""Records of the leaderboard in the repository: ``benchmarks/leaderboard/records/SUITE.jsonl.xz``.

A file has one line of JSON for each case, sorted by the case's name, and is compressed by xz. A run goes on from these
files and writes them at its end; once they are committed, another computer can continue the run. ``build/leaderboard``
has the cases of runs that have not ended yet.

All of MaskBench has to fit into about a megabyte, so a record is shortened:

- seconds and bytes are rounded to three digits;
- messages are cut to ``MESSAGE`` characters;
- the seconds of single steps are kept for the first ``STEPPED`` cases of a suite only, with two digits and in ascending
  order; the other cases have only their sum;
- a text that proves a mask wrong is kept only in the smallest such case of each library and kind.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("records")
STEPPED = 400
"""The number of cases of a suite whose steps are kept."""
MESSAGE = 60
"""The number of characters of a message that are kept."""

Case = dict[str, Any]
_LEFT_OUT = ("schema", "who", "first_mask", "moved")
"""Fields of a record that the file leaves out: the case has them already, or nothing uses them."""


def read(suite: str, folder: Path | None = None) -> dict[str, Case]:
    """The cases of a suite by their names; empty if there is no file."""
    path = _path(suite, folder)
    if not path.is_file():
        return {}
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        cases = [_opened(json.loads(line)) for line in lines]
    return {case["id"]: case for case in cases}


def write(suite: str, cases: Iterable[Case], stepped: set[str], folder: Path | None = None) -> Path:
    """Write the cases of a suite and return the path. ``stepped``: the names of those whose steps are kept."""
    kept = sorted(cases, key=lambda case: str(case["id"]))
    texts = smallest(kept)
    lines = [
        json.dumps(
            _closed(case, case["id"] in stepped, texts),
            ensure_ascii=False,
            sort_keys=True,
            separators=(",", ":"),
        )
        for case in kept
    ]
    path = _path(suite, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".part")
    whole.write_bytes(
        lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=9 | lzma.PRESET_EXTREME)
    )
    whole.replace(path)
    return path


def smallest(cases: Iterable[Case]) -> dict[str, tuple[int, Case]]:
    """The smallest case that proves each library wrong in each way. Keys are ``"LIBRARY KIND"``; values are the size,
    and the ``Case`` of ``mask_by_mask`` as a dict with the name of the leaderboard's case. Cases whose text was left
    out are skipped.
    """
    least: dict[str, tuple[int, Case]] = {}
    for case in cases:
        for compared in case["masks"].values():
            for each in compared["cases"]:
                for who in each["wrong"] if each["text"] is not None else ():
                    size = compared["size"] + len(each["text"])
                    key = f"{who} {each['kind']}"
                    if key not in least or size < least[key][0]:
                        least[key] = size, each | {"case": case["id"]}
    return least


def _path(suite: str, folder: Path | None) -> Path:
    return (folder or FOLDER) / f"{suite}.jsonl.xz"


def _closed(case: Case, stepped: bool, texts: dict[str, tuple[int, Case]]) -> Case:
    """A case in the shortened form that the file has."""
    records = {}
    for who, record in sorted(case["records"].items()):
        made = {key: value for key, value in record.items() if value and key not in _LEFT_OUT}
        for name in ("refused", "trouble"):
            if name in made:
                made[name] = made[name][:MESSAGE]
        for name in ("first_mask_cpu", "spent"):
            if name in made:
                made[name] = float(f"{made[name]:.3g}")
        if made.get("memory"):
            made["memory"] = int(float(f"{made['memory']:.3g}"))
        made.pop("steps", None)
        steps = record["steps"]
        if stepped and steps is not None:
            made["steps"] = sorted(Counter(round(float(f"{step:.2g}") * 1e9) for step in steps).items())
        records[who] = made
    kept = [each for _, each in texts.values() if each["case"] == case["id"]]
    masks = {}
    for names, compared in case["masks"].items():
        shortened = [
            {**each, "wrong": list(each["wrong"]), "right": list(each["right"])}
            if each | {"case": case["id"]} in kept
            else {"kind": each["kind"], "wrong": list(each["wrong"])}
            for each in compared["cases"]
        ]
        masks[names] = compared | {"cases": shortened}
    return {"id": case["id"], "records": records, "masks": masks}


def _opened(case: Case) -> Case:
    """A case in the form that a run makes; where ``steps`` or ``text`` were left out, they are None."""
    blank = {
        "refused": "",
        "trouble": "",
        "memory": None,
        "first_mask_cpu": None,
        "spent": 0.0,
        "settings": {},
    }
    lists = ("accepts_invalid", "other_order", "rejects_valid")
    for who, record in case["records"].items():
        steps = record.pop("steps", None)
        opened = (
            None
            if steps is None
            else [nanoseconds / 1e9 for nanoseconds, count in steps for _ in range(count)]
        )
        case["records"][who] = {**blank, **{name: [] for name in lists}, **record, "steps": opened}
    for compared in case["masks"].values():
        compared["cases"] = [{"text": None, **each} for each in compared["cases"]]
    return case
