"""Exit codes, what is wrong with a command line, and the streams: what is needed before anything is printed."""

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
    """The options of a command line do not fit together."""


def prepare_streams() -> None:
    """Make printing safe for every character, whatever the encoding of the terminal."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
