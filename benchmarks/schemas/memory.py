"""The memory of a library over all schemas of MaskBench, in a process that does nothing else.

    python -m benchmarks.schemas.memory tokenfst --order any
    python -m benchmarks.schemas.memory llguidance

Another process reads the schemas and makes the tokens of their documents. It sends one schema at a time. The library
compiles the schema, walks along all of its documents, and drops it. The program prints three resident sizes: before the
first schema (the vocabulary, and one schema as a warm-up), after the last, and after freed pages have gone back to the
system. The processes of both libraries have our vocabulary in Python, from which llguidance's tokenizer is made.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from pathlib import Path
from time import process_time
from typing import Any

import tokenfst
from benchmarks.measuring.libraries import LIBRARIES
from tokenfst import load_vocabulary

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "maskbench" / "all.jsonl.gz"
TEKKEN = "mistral:tekken_240911"
WARM_UP = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}}


def main() -> None:
    parser = argparse.ArgumentParser(description="memory over all schemas of MaskBench")
    parser.add_argument("library", choices=("tokenfst", "llguidance"))
    parser.add_argument(
        "--order", choices=("schema", "any"), default="schema", help="order of members; tokenfst only"
    )
    parser.add_argument("--schemas", type=int, help="number of schemas, a sample that is the same every time")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        walk_all(given.library, given.order)
    else:
        send_all(given.schemas)


def send_all(count: int | None) -> None:
    """Read the rows, make the tokens, and send both to a process with the library."""
    from benchmarks.schemas.runner import encoder
    from benchmarks.schemas.schemas import sample_of

    command = [sys.executable, "-m", "benchmarks.schemas.memory", *sys.argv[1:], "--child"]
    encode = encoder(TEKKEN)
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        for row in sample_of(DATA, count):
            texts = [json.dumps(test["data"], ensure_ascii=False) for test in row["tests"]]
            line = {"schema": row["schema"], "documents": [encode(text) for text in texts]}
            child.stdin.write(json.dumps(line) + "\n")
        child.stdin.close()
    sys.exit(child.returncode)


def walk_all(name: str, order: Any) -> None:
    """Compile and walk the schemas that are sent, and print the sizes."""
    vocabulary = load_vocabulary(TEKKEN)
    library: Any = LIBRARIES[name](vocabulary, None)
    if name == "tokenfst":

        def compiled(schema: Any) -> Any:
            return tokenfst.compile(tokenfst.json_schema(schema, property_order=order), vocabulary)

        library.compile_schema = compiled
    library.walk(library.compile_schema(WARM_UP)).fill()
    start, schemas, refused = resident(), 0, 0
    for line in sys.stdin:
        row = json.loads(line)
        schemas += 1
        try:
            walk = library.walk(library.compile_schema(row["schema"]))
        except Exception:  # of any type, as libraries have their own
            refused += 1
            continue
        for tokens in row["documents"]:
            walk.restart()
            for token in tokens:
                walk.fill()
                if walk.error() or not walk.accept(token):
                    break
        del walk
    end = resident()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    print(
        f"{name}: {schemas:,} schemas, {refused:,} refused, {process_time():.0f} s of CPU; "
        f"{start} MB before, {end} MB after, {resident()} MB given back"
    )


def resident() -> int:
    """Resident megabytes of this process (Linux only)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / 1e6)


if __name__ == "__main__":
    main()
