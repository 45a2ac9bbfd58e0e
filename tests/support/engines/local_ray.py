"""A real local Ray, for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def local_ray(**environment: str) -> Iterator[None]:
    """A cluster of two CPUs whose actors can import the tests, with these variables of the environment."""
    import ray

    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", **environment}
    tests = Path(__file__).parents[2]
    path = os.pathsep.join([str(tests.parent), str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=200 << 20,
        logging_level="error",
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def actors(name: str) -> list[int]:
    """The processes of the actors whose class has ``name`` in its name."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            title = (each / "cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::") and name.encode() in title:
            found.append(int(each.name))
    return found
