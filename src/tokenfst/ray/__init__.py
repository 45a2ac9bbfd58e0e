"""Batch compilation and offline decoding on a Ray cluster.

Little data crosses the network, and large data lies once in the object store of each computer. Constraints are sent as
text, as lines of a batch. An artifact is sent from the store to the cluster once and to each computer once, and all
processes of a computer map the same pages. If a computer is lost, only its unfinished lines are compiled again, because
the store records which are done.

Read in this order: ``batches`` (``compile_batch``), ``artifacts`` (shared by computers), ``decoding`` (``generate``),
``vllm_workers`` (actors that run vLLM).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tokenfst.ray.batches import compile_batch
    from tokenfst.ray.decoding import generate

__all__ = ["compile_batch", "generate"]
_PLACES = {"compile_batch": "batches", "generate": "decoding"}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found
