"""JSON files that say what a constraint is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenfst.cli.constraints.grammars import read_text
from tokenfst.cli.output.terminal import UsageError


def read_json(path: Path, what: str) -> Any:
    """The value in a file. Raises UsageError for what is not JSON, with its place, and for a name that stands twice in
    one object; ConstraintError for other encodings than UTF-8; OSError."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"{path}: {twice!r} stands twice in one object")
        return made

    try:
        return json.loads(read_text(path, what), object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: {what} are not JSON: {error}") from error
    except RecursionError:
        raise UsageError(f"{path}: {what} are nested too deeply") from None
