"""Batches and offline decoding on Ray: what one machine does by processes, by all machines of a cluster.

The idea: what goes over the network is small, and what is large lies in the object store of each machine once.
Constraints travel as text, as lines of a batch do; artifacts go from the store to a cluster once, to a machine once,
and all its processes read the same pages. A machine that is lost costs the lines that it had in hand, which are
compiled again: the store knows which are done.

Read in this order: ``batches`` (``compile_batch``), ``artifacts`` (what machines share), ``decoding`` (``generate``).
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
