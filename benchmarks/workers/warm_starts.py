"""The start of a cold process, and the time that packs of vocabularies and learned facts save.

    python -m benchmarks.workers.warm_starts [--schemas FILE] [--count N] [--save]

All times are CPU time. The first part is a process from its start to the masks of one document, the least of three:
the import of the package, the reading of Tekken's 131,072 tokens, the compilation of a schema, its first mask, and
the masks of a document; then the same for a second schema. The second part walks schemas of a file (lines as in
MaskBench) over their valid instances: with new automata; with automata that were saved with learned facts and loaded;
and with these a second time. It also counts the masks that each of them composed. ``--save`` writes
docs/data/cold-process.json and docs/data/learned.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import report

COLD = """
import sys, time
now, begun = time.process_time, time.process_time()
import numpy as np
import tokenfst
from tokenfst import compile, json_schema, load_vocabulary
imported = now()
vocabulary = load_vocabulary(sys.argv[1])
vocabulary.fingerprint
read = now()
mask = np.zeros((1, (len(vocabulary) + 31) // 32), np.int32)

def masks(schema):
    begin = now()
    matcher = compile(json_schema(schema), vocabulary).matcher()
    compiled = now()
    matcher.fill_next_token_bitmask(mask)
    first = now()
    for token in vocabulary.encode_greedy(b'{"name": "Ada", "email": "a@b.org"'):
        if not matcher.accept_token(token):
            break
        matcher.fill_next_token_bitmask(mask)
    return [compiled - begin, first - compiled, now() - first]

text = {"type": "string"}
email, short = {**text, "format": "email"}, {**text, "maxLength": 20}
one = masks({"type": "object", "properties": {"name": text, "email": email}, "required": ["name"]})
two = masks({"type": "object", "properties": {"name": short, "email": text}, "required": ["name"]})
print(imported - begun, read - imported, *one, *two)
"""
PARTS = [
    "import",
    "vocabulary",
    *(
        f"{which} schema: {what}"
        for which in ("first", "second")
        for what in ("compile", "its first mask", "a document's masks")
    ),
]


def cold(spec: str) -> list[float]:
    """The seconds of each of ``PARTS``, the least of three processes."""
    runs = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", COLD, spec], capture_output=True, text=True, check=True)
        runs.append([float(each) for each in done.stdout.split()])
    return [min(each) for each in zip(*runs, strict=True)]


def walked(automaton: Any, sequences: list[list[int]], mask: Any) -> float:
    """The CPU seconds of all masks and advances along these tokens."""
    begun = time.process_time()
    for tokens in sequences:
        matcher = automaton.matcher()
        for token in tokens:
            matcher.fill_next_token_bitmask(mask)
            if not matcher.accept_token(token):
                break
    return time.process_time() - begun


def learned(path: Path, count: int) -> dict[str, float]:
    """Sums over the first ``count`` schemas of a file."""
    import numpy as np

    from tokenfst import TokenAutomaton, compile, json_schema, load_vocabulary
    from tokenfst.decoding.artifacts import artifact
    from tokenfst.errors import TokenfstError

    vocabulary = load_vocabulary("mistral:tekken_240911")
    mask = np.zeros((1, (len(vocabulary) + 31) // 32), np.int32)
    names = ["schemas", "new", "warm", "again", "save", "load", "composed", "composed again", "bytes"]
    sums = dict.fromkeys(names, 0.0)
    with gzip.open(path) as lines:
        rows = [json.loads(line) for _, line in zip(range(count), lines, strict=False)]
    for row in rows:
        try:
            make = json_schema(row["schema"])
            texts = [json.dumps(test["data"], ensure_ascii=False) for test in row["tests"] if test["valid"]]
            sequences = [vocabulary.encode_greedy(text.encode()) for text in texts]
            compiled = compile(make, vocabulary)
            walked(compiled, sequences, mask)  # fragments belong to the vocabulary and are known from now on
            new = compile(make, vocabulary)
            sums["new"] += walked(new, sequences, mask)
            begun = time.process_time()
            data = new.serialize(learned=True)
            sums["save"] += time.process_time() - begun
            found = artifact.parse(row["id"], data)
            begun = time.process_time()
            warm = TokenAutomaton.of_artifact(found, row["id"], vocabulary)
            sums["load"] += time.process_time() - begun
            sums["warm"] += walked(warm, sequences, mask)
            sums["again"] += walked(warm, sequences, mask)
        except TokenfstError:
            continue
        sums["schemas"] += 1
        sums["bytes"] += len(data)
        sums["composed"] += new.stats().masks_composed
        sums["composed again"] += warm.stats().masks_composed
    return sums


def cold_figures() -> Iterator[Figure]:
    """The figures of a cold process, by the kind of file that has the vocabulary."""
    from tokenfst import load_vocabulary

    with tempfile.TemporaryDirectory() as folder:
        pack = Path(folder) / "tekken.pack"
        load_vocabulary("mistral:tekken_240911").to_pack(pack)
        files = {"tokenizer's file": "mistral:tekken_240911", "pack": f"pack:{pack}"}
        seconds = {who: cold(spec) for who, spec in files.items()}
    for number, part in enumerate(PARTS):
        for who, found in seconds.items():
            yield Figure(part, who, found[number], found[number], 3)


def learned_figures(path: Path, count: int) -> Iterator[Figure]:
    """The figures of learned facts, over the schemas of a file."""
    sums = learned(path, count)
    for name, key, composed in (
        ("new automata", "new", "composed"),
        ("loaded with learned facts", "warm", "composed again"),
        ("the same, known states", "again", ""),
    ):
        yield Figure(name, "all masks", sums[key])
        yield Figure(name, "masks composed", sums[composed] if composed else 0, unit="count")
    yield Figure("schemas", "number", sums["schemas"], unit="count")
    yield Figure("artifacts", "size of all", sums["bytes"], unit="bytes")
    yield Figure("save(learned=True)", "of a schema", sums["save"] / sums["schemas"])
    yield Figure("load", "of a schema", sums["load"] / sums["schemas"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--schemas", type=Path, default=Path("../shared/maskbench/dev.jsonl.gz"))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--save", action="store_true", help="also write docs/data")
    arguments = parser.parse_args()
    report("cold-process", cold_figures(), "CPU time, the least of three processes", keep=arguments.save)
    found = learned_figures(arguments.schemas, arguments.count)
    report("learned", found, "CPU time, steps included; fragments known", keep=arguments.save)


if __name__ == "__main__":
    main()
