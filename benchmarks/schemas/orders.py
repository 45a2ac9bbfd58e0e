"""A table of the valid documents that the benchmark of schemas rejects because of the order of their members.

Reads the records of the last run of ``run.py --only schemas --schemas all``, and prints docs/project/schema-orders.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring.measure import OURS
from benchmarks.schemas.schemas import RECORDS

HEAD = """# Valid documents in another order of members

With `property_order="schema"`, names in the schema's own `properties` come first, in the order of the schema. Of the
2,500 schemas of [the benchmark](../benchmarks.md#json-schema), those below have valid documents in another order, which
are therefore rejected. The table has the number of each such document, and the first place where an accepted order
differs from it: the name that comes first there, before the name in the document. The table was made by
`python benchmarks/run.py --only schemas --schemas all` and then
`python -m benchmarks.schemas.orders > docs/project/schema-orders.md`.

| schema | document: accepted order |
|---|---|"""


def table(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The lines of the page."""
    yield HEAD
    for record in sorted(records, key=lambda each: str(each["schema"])):
        if record["who"] == OURS and record["other_order"]:
            cases = zip(record["other_order"], record["moved"], strict=True)
            told = "; ".join(f"{number}: `{moved}`" for number, moved in cases)
            yield f"| {record['schema']} | {told.replace('|', chr(92) + '|')} |"


def main(records: Path = RECORDS) -> None:
    """Print the page."""
    with records.open() as lines:
        print(*table([json.loads(line) for line in lines]), sep="\n")


if __name__ == "__main__":
    main()
