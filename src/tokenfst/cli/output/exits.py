"""Exit codes, errors of the command line, and the preparation of the output streams."""

from __future__ import annotations

import enum
import io
import sys


class Exit(enum.IntEnum):
    """Exit codes; docs/command-line.md promises them."""

    YES = 0
    NO = 1
    BAD_INPUT = 2
    BUDGET = 3
    FAULT = 70
    INTERRUPTED = 130
    PIPE = 141


class UsageError(Exception):
    """Options of a command line that are invalid or cannot be combined."""


def prepare_streams() -> None:
    """Make printing safe for every character, whatever the encoding of the terminal."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
