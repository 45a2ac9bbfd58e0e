"""JSON files as parts of a constraint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenfst.cli.constraints.grammars import read_text
from tokenfst.cli.output.terminal import UsageError
from tokenfst.common.json_objects import RepeatedNameError, unique_names


def read_json(path: Path, what: str) -> Any:
    """The value in a file.

    ``what``: the noun for it in messages, in the plural. Raises UsageError for invalid JSON, with the position, and for
    a name that an object has twice; ConstraintError for other encodings than UTF-8; OSError.
    """
    try:
        return json.loads(read_text(path, what), object_pairs_hook=unique_names)
    except RepeatedNameError as error:
        raise UsageError(f"{path}: {error.name!r} occurs twice in one object") from error
    except ValueError as error:  # also a number of thousands of digits, which Python does not read
        raise UsageError(f"{path}: {what} are not JSON: {error}") from error
    except RecursionError:
        raise UsageError(f"{path}: {what} are nested too deeply") from None
