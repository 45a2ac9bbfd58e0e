"""Output of the commands: answers in text or JSON on stdout, everything else on stderr, colours only on terminals."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from tokenfst.cli.output.exits import Exit as Exit
from tokenfst.cli.output.exits import UsageError as UsageError
from tokenfst.common.plurals import counted as counted
from tokenfst.common.printable import printable
from tokenfst.errors import BudgetExceeded

writing = threading.Lock()
"""Held while a file is written, so that an interrupt waits for it."""


# --- printing -----------------------------------------------------------------------------------------


def say(text: str = "", style: str = "") -> None:
    """Print a line of the answer."""
    _print(False, Text(_safe(text), style))


def say_pairs(pairs: list[tuple[str, str]], indent: str = "") -> None:
    """Print lines of a name and a value, with the values aligned."""
    width = max(len(name) for name, _ in pairs) + 2
    for name, value in pairs:
        _print(False, Text.assemble(indent, (f"{name:<{width}}", "cyan"), _safe(value)))


def say_json(answer: dict[str, Any]) -> None:
    """Print the answer as one JSON object on one line, in ASCII: it does not depend on the terminal's encoding."""
    print(json.dumps(answer))


def say_json_list(answer: dict[str, Any], name: str, parts: Iterable[dict[str, Any]]) -> int:
    """Print the JSON object ``answer | {name: [*parts]}``, each part as soon as it is computed, and return the number
    of parts.

    If an error or an interrupt ends it, the output is not complete JSON, and the exit code is not 0.
    """
    print(f"{json.dumps(answer)[:-1]}, {json.dumps(name)}: [", end="")
    number = 0
    for part in parts:
        print(", " * (number > 0) + json.dumps(part), end="")
        number += 1
    print("]}")
    return number


def note(text: str) -> None:
    """Print a note that is not a part of the answer."""
    _print(True, Text(_safe(text), "dim"))


def warn(text: str) -> None:
    """A warning."""
    _print(True, Text.assemble(("warning: ", "bold yellow"), _safe(text)))


def complain(text: str) -> None:
    """Print an error. The command then ends with the exit code of the error, even if stderr is closed."""
    with contextlib.suppress(OSError):
        _print(True, Text.assemble(("error: ", "bold red"), _safe(text)))


def leave_interrupted() -> None:
    """Print the message after an interrupt. A progress bar may be on this line, and may have hidden the cursor."""
    with contextlib.suppress(OSError):
        screen = console(stderr=True)
        if screen.is_terminal:
            screen.show_cursor(True)
            screen.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))
        complain("interrupted")
        for stream in (sys.stdout, sys.stderr):
            stream.flush()


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave a broken pipe to ``run``; rich would end the process with code 1."""
        raise BrokenPipeError


def console(stderr: bool) -> Console:
    """The console of a stream as it is now; ``NO_COLOR`` and redirection turn its colours off."""
    return _Console(stderr=stderr, soft_wrap=True, markup=False, emoji=False, highlight=False)


def _print(stderr: bool, text: Text) -> None:
    if stderr:
        sys.stdout.flush()
    console(stderr).print(text)


def _safe(text: str) -> str:
    """``text`` with escapes for control characters, which names of files may contain too."""
    return printable(text, "\n\t")


def explain(error: BaseException) -> str:
    """The message of an error, with the remedies of the command line in place of those of Python."""
    if isinstance(error, BudgetExceeded):
        return str(error).replace(f"Budget({error.resource}=...)", f"--budget-{error.resource}")
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return str(error) or type(error).__name__


# --- bytes as text ------------------------------------------------------------------------------------


def plain(data: bytes) -> str:
    """``data`` on one line, with escapes for characters that cannot be printed."""
    from tokenfst.automata.languages.display.readable import cells

    return "".join(shown for _, shown in cells(data))


def quoted(data: bytes, limit: int | None = None) -> str:
    """``readable.quoted``, imported on first use."""
    from tokenfst.automata.languages.display import readable

    return readable.quoted(data, limit)


def pointed(data: bytes, place: int, width: int = 72) -> tuple[str, str]:
    """The bytes around ``place`` on one line, and a line with a caret under that position."""
    from tokenfst.automata.languages.display.readable import cells

    shown = cells(data)
    at = sum(begin <= place for begin, _ in shown) - (place < len(data))
    before = [text for _, text in shown[:at]]
    after = [text for _, text in shown[at:]]
    left = _fitting(before[::-1], width * 2 // 3)[::-1]
    right = _fitting(after, width - cell_len("".join(left)))
    head = ("…" if len(left) < len(before) else "") + "".join(left)
    tail = "".join(right) + ("…" if len(right) < len(after) else "")
    mark = "^" * max(1, cell_len(after[0])) if after else "^"
    return head + tail, " " * cell_len(head) + mark


def _fitting(texts: list[str], width: int) -> list[str]:
    """As many of the first texts as fit into ``width`` columns."""
    used = 0
    for count, text in enumerate(texts):
        used += cell_len(text)
        if used > width:
            return texts[:count]
    return texts


def json_bytes(data: bytes) -> dict[str, str | None]:
    """Bytes in JSON: as text, where they are UTF-8, and as hexadecimal digits."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"text": None, "hex": data.hex()}
    return {"text": text, "hex": data.hex()}


# --- figures ------------------------------------------------------------------------------------------


def duration(seconds: float) -> str:
    """``12 ms``, ``3.4 s``, ``2:05 min``."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds // 60:.0f}:{seconds % 60:02.0f} min"
