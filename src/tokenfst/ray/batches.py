"""``compile_batch`` on Ray: all computers of a cluster compile many constraints into a store.

Ray Data gives blocks of lines to actors. Each actor has one child process that compiles (``decoding/store/batch``),
so a line that ends this process is an outcome like any other, and affects neither the actor nor other lines. If an
actor or a computer is lost, its blocks go to other actors: entries that were stored are found, the rest is compiled
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from itertools import chain
from typing import Any

from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, whole
from tokenfst.decoding.store.batch import Outcome, Pool, not_utf8
from tokenfst.decoding.store.store import Store
from tokenfst.errors import ConstraintError, MissingDependencyError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import ray
    import ray.data
except ImportError as error:
    raise MissingDependencyError('batches on Ray need ray: pip install "tokenfst[ray]"') from error

BATCH = 64
"""The number of lines that an actor gets at a time."""
_BLOCK = 512
"""The number of lines of a block, which is the unit that is repeated if a computer is lost."""
_NAMES = tuple(field.name for field in fields(Outcome))


@checked
def compile_batch(
    lines: Iterable[str] | Any,
    store: Store,
    vocabulary: Vocabulary,
    budget: Budget | None = None,
    *,
    expand: bool = False,
    jobs: int = 1,
    column: str = "text",
) -> Iterator[Outcome]:
    """Run ``tokenfst.decoding.store.batch.compile_batch`` with ``jobs`` actors of Ray, each with one CPU.

    Yields the outcome of each line as soon as its block is done.

    ``lines``: texts, or a dataset of Ray Data with one line a row in ``column`` (``ray.data.read_text``); the lines
    of a dataset have no numbers and are identified by their ``id``. All computers must reach the store. Raises the
    errors of Ray if there is no cluster; any failure of a line is its outcome.
    """
    whole("compile_batch", "jobs", jobs, 1)
    store.need_shared("a batch")
    broken: list[Outcome] = []
    if isinstance(lines, ray.data.Dataset):
        dataset = lines
        if column not in (dataset.columns() or ()):
            raise ConstraintError(f"the dataset has no column {column!r}: it has {dataset.columns()}")
    else:
        rows = []
        for number, line in enumerate(lines, 1):
            if fault := not_utf8(line):  # Ray's tables have no place for such a text
                broken.append(Outcome(number, "", "failed", reason=fault))
            elif line.strip():
                rows.append({column: line, "line": number})
        if not rows:
            return iter(broken)
        blocks = min(len(rows), max(2 * jobs, len(rows) // _BLOCK))
        dataset = ray.data.from_items(rows, override_num_blocks=blocks)
    given = {"store": store, "vocabulary": ray.put(vocabulary), "budget": budget, "expand": expand}
    found = dataset.map_batches(
        Compiler,
        fn_constructor_kwargs=given | {"column": column},
        batch_size=BATCH,
        concurrency=jobs,
        num_cpus=1,
    )
    return chain(broken, (_outcome(row) for row in found.iter_rows()))


def _outcome(row: dict[str, Any]) -> Outcome:
    return Outcome(**{name: row[name] for name in _NAMES})


class Compiler:
    """The actor: lines in, outcomes out."""

    def __init__(
        self, store: Store, vocabulary: Any, budget: Budget | None, expand: bool, column: str
    ) -> None:
        self._column = column
        self._pool = Pool(store, ray.get(vocabulary), budget, expand=expand, jobs=1)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """The outcomes of a batch of lines."""
        lines = list(map(str, batch[self._column]))
        numbers = list(map(int, batch["line"])) if "line" in batch else [0] * len(lines)
        found: dict[str, list[Any]] = {name: [] for name in _NAMES}
        for outcome in self._pool.run(zip(numbers, lines, strict=True)):
            for name, value in asdict(outcome).items():
                found[name].append(value)
        return found
