"""Running ``tokenfst`` inside the test's own process: the same ``run`` as the program, its streams in hand."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from tokenfst import Vocabulary
from tokenfst.cli import run


@dataclass(frozen=True, slots=True)
class Result:
    """What one command line printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1, self.out
        found: dict[str, Any] = json.loads(self.out)
        return found


def tokenfst(*words: str | Path, stdin: bytes = b"") -> Result:
    """Run one command line. Neither stream is a terminal."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
        mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run([str(word) for word in words])
    return Result(code, out.getvalue(), err.getvalue())


def tokenfst_merged(command: str) -> tuple[int, str]:
    """Run one command line as a shell would split it; the exit code, and both streams in the order of printing."""
    both = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}),
        contextlib.redirect_stdout(both),
        contextlib.redirect_stderr(both),
    ):
        code = run(shlex.split(command, comments=True)[1:])
    return code, both.getvalue()


TOY_TOKENS = [b"a", b"b", b"ab", b"ba", b"0", b"1", b"01", b"-", b" ", "é".encode(), b"\xe2", b""]
TOY_END = len(TOY_TOKENS) - 1


def toy() -> Vocabulary:
    """A vocabulary of twelve tokens that cannot spell everything."""
    return Vocabulary(TOY_TOKENS, TOY_END, {"<end>": TOY_END}, name="toy")


def write_toy(folder: Path) -> str:
    """The toy vocabulary as a file in ``folder``; returns its name for ``--vocabulary``."""
    path = folder / "toy.json"
    toy().to_json(path)
    return f"tokens:{path}"
