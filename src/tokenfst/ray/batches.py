"""``compile_batch`` on Ray: many constraints into a store, by all machines of a cluster.

Ray Data gives blocks of lines to actors; each has one process below it that compiles (``decoding/store/batch``), so a
line that ends its process is an outcome like others, and costs neither the actor nor the lines beside it. An actor or a
machine that is lost gives its blocks to others: what it had put is known, the rest is compiled again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from typing import Any

from tokenfst.arguments import checked, whole
from tokenfst.budget import Budget
from tokenfst.decoding.store.batch import Outcome, Pool
from tokenfst.decoding.store.store import Store
from tokenfst.errors import ConstraintError, MissingDependencyError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import ray
    import ray.data
except ImportError as error:
    raise MissingDependencyError('batches on Ray need it: pip install "tokenfst[ray]"') from error

BATCH = 64
"""Lines that an actor gets at a time."""
_BLOCK = 512
"""Lines of a block, what is done again where a machine is lost."""
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
    """``tokenfst.decoding.store.batch.compile_batch`` by ``jobs`` actors of Ray, each with a CPU: what became of each
    line, as blocks of them are done.

    ``lines``: texts, or a dataset of Ray Data with one line a row in ``column`` (``ray.data.read_text``); the lines of
    a dataset have no numbers, and are told by their ``id``. The store must be reachable from all machines. Raises what
    Ray raises where there is no cluster; whatever goes wrong with a line is its outcome.
    """
    whole("compile_batch", "jobs", jobs, 1)
    if isinstance(lines, ray.data.Dataset):
        dataset = lines
        if column not in (dataset.columns() or ()):
            raise ConstraintError(f"the dataset has no column {column!r}: it has {dataset.columns()}")
    else:
        rows = [{column: line, "line": number} for number, line in enumerate(lines, 1) if line.strip()]
        if not rows:
            return iter(())
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
    return (_outcome(row) for row in found.iter_rows())


def _outcome(row: dict[str, Any]) -> Outcome:
    return Outcome(**{name: row[name] for name in _NAMES})


class Compiler:
    """What an actor does: lines in, outcomes out."""

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
