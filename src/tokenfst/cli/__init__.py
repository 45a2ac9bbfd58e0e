"""The command line ``tokenfst``; its manual is docs/command-line.md.

This module starts and ends the program. ``program`` has the commands: ``questions`` about a constraint, ``artifacts``,
``services``. ``constraints`` builds a constraint from options; ``input`` and ``output`` are shared by all commands.
This module imports almost nothing, so that an interrupt is handled before any large import.

The command runs in a thread, and the main thread waits for signals. Ctrl-C ends the process at once, whatever the
command is doing; only a file that is being written is completed first.
"""

from __future__ import annotations

import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_STACK = 64 << 20
"""Bytes of stack for the thread that runs the command."""
_LISTEN = 0.1
"""Seconds between two looks for an interrupt, where waiting for a thread does not notice one."""
_BAD_INPUT, _FAULT, _INTERRUPTED, _PIPE = 2, 70, 130, 141


_after: list[Callable[[], int]] = []


def afterwards(work: Callable[[], int]) -> None:
    """Have the main thread call ``work`` after the command has returned, for work that must receive signals, such as a
    server. Its result is the exit code.
    """
    _after.append(work)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (without the program's name; ``None``: the process's own) and return the exit code."""
    from tokenfst.cli.program import run

    return run(arguments)


def main() -> None:
    """The entry point of the program ``tokenfst``."""
    try:
        _open_streams()
        codes: list[int] = []
        threading.stack_size(_STACK)
        thread = threading.Thread(target=_work, args=(codes,), daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(_LISTEN)
        _leave(_after.pop()() if _after else codes[0])
    except KeyboardInterrupt:
        _interrupted()


def _work(codes: list[int]) -> None:
    """Run the command in this thread and append its exit code; an exception would be lost with the thread."""
    try:
        from tokenfst.cli import program

        codes.append(program.run_in_thread())
    except BrokenPipeError:
        codes.append(_PIPE)
    except BaseException:
        import traceback

        traceback.print_exc()
        codes.append(_FAULT)


def _open_streams() -> None:
    """Connect closed standard streams, as under some service managers, to the null device. Otherwise the next opened
    file would get the number of such a stream, and answers and errors would be written into that file.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # it stays open


def _leave(code: int) -> None:
    """Flush the streams and end the process. If a stream cannot be written, the rest of its buffer is dropped, so that
    it raises no second error when the interpreter ends.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            if stream is sys.stdout:
                code = _PIPE if isinstance(error, BrokenPipeError) else _BAD_INPUT
                if code == _BAD_INPUT:
                    print(f"error: cannot write the answer: {error.strerror}", file=sys.stderr)
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _interrupted() -> None:
    """Print the message of an interrupt and end the process, without waiting for the command's thread."""
    terminal = sys.modules.get("tokenfst.cli.output.terminal")
    if terminal is None or not hasattr(terminal, "leave_interrupted"):  # it was still starting
        os.write(2, b"error: interrupted\n")
    else:
        with terminal.writing:  # a file that is being written becomes whole first
            terminal.leave_interrupted()
    os._exit(_INTERRUPTED)
