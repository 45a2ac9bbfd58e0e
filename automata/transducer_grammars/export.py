"""``pynini.export.export``: an archive of a grammar's machines."""

from __future__ import annotations

import os
from typing import Literal

from tokenfst.automata.transducers.far import FarWriter
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.common.arguments import checked
from tokenfst.errors import FstOpError


class Exporter:
    """Collects machines by name, and writes them to a FAR archive when it is closed, or when a ``with`` block ends
    without an error.

    ``far_type``: "default", "sttable", "stlist" or "fst". The keys are sorted.
    """

    @checked
    def __init__(
        self,
        filename: str | os.PathLike[str],
        arc_type: str = "standard",
        far_type: Literal["default", "sttable", "stlist", "fst"] = "default",
    ) -> None:
        self._filename, self._arc_type, self._far_type = filename, arc_type, far_type
        self._machines: dict[str, VectorFst] = {}
        self._open = True

    @checked
    def __setitem__(self, name: str, fst: VectorFst) -> None:
        """Add a machine. Raises ``FstOpError`` after ``close``."""
        self._require_open()
        self._machines[name] = fst

    def close(self) -> None:
        """Write the archive. Raises ``OSError``, ``FstOpError`` for a machine of another arc type or a second call."""
        self._require_open()
        with FarWriter.create(self._filename, self._arc_type, self._far_type) as archive:
            for name in sorted(self._machines, key=str.encode):
                archive[name] = self._machines[name]
        self._open = False

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._open:
            self.close()

    def _require_open(self) -> None:
        if not self._open:
            raise FstOpError(
                f"the archive {os.fspath(self._filename)!r} is written already: make another Exporter"
            )
