"""The command line ``tokenfst``; docs/command-line.md is its manual.

The idea: a command is a function from its options to an exit code. It prints its answer on stdout, as text or
as one JSON object, and raises when there is none. ``run`` turns what was raised into ``error: ...`` on stderr
and an exit code; no command catches errors to print them.

Invariants: stdout holds the answer and nothing else; progress, estimates, warnings and errors go to stderr.
Starting up imports neither pynini nor torch nor a tokenizer package: the calls that need them do.

Rejected: Typer's own main, which draws errors in boxes, ends with code 1 for an interrupt or a closed pipe,
and shows a traceback for a missing file.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from tokenfst.cli import checking, comparing, compiling, drawing, inspecting, linting, sampling, vocabularies
from tokenfst.cli.terminal import (
    Exit,
    UsageError,
    complain,
    explain,
    leave_interrupted,
    prepare_streams,
    writing,
)
from tokenfst.errors import BudgetExceeded, TokenfstError

_PARSER_ERROR: type[Exception] = typer.BadParameter.mro()[1]

_STACK = 64 << 20
"""Bytes of stack for the thread that runs the command."""
_LISTEN = 0.2
"""Seconds between two looks for an interrupt, where waiting for a thread does not notice one."""

app = typer.Typer(
    name="tokenfst",
    help="Constrain language models to formal languages, exactly: compile constraints into artifacts over "
    "token ids, and ask questions about them.",
    epilog="Exit codes: 0 yes or done, 1 no, 2 usage or bad input, 3 budget exceeded, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _module in (compiling, inspecting, checking, sampling, drawing, linting, comparing, vocabularies):
    _module.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from tokenfst import __version__

        print(f"tokenfst {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (without the program's name; ``None``: the process's own) and return the exit
    code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command: Any = typer.main.get_command(app)
    try:
        with command.make_context("tokenfst", words) as context:
            code = int(command.invoke(context) or Exit.YES)
        sys.stdout.flush()
        return code
    except typer.Exit as stop:
        return stop.exit_code
    except UsageError as error:
        return _usage(str(error), words)
    except _PARSER_ERROR as error:
        return _parser_error(error, words)
    except SystemExit as stop:  # how Typer ends after it has shown or installed completion
        return stop.code if isinstance(stop.code, int) else Exit.YES
    except (KeyboardInterrupt, typer.Abort):
        leave_interrupted()
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Nobody reads on. What is left in the buffer must not raise again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE
    except BudgetExceeded as error:
        complain(explain(error))
        return Exit.BUDGET
    except MemoryError:
        complain(
            "out of memory: make the constraint smaller, or set --budget-bytes below what this machine has"
        )
        return Exit.BUDGET
    except (TokenfstError, OSError) as error:
        complain(explain(error))
        return Exit.BAD_INPUT
    except Exception:
        traceback.print_exc()
        complain("this is a fault in tokenfst, not in your input: please report it with the lines above")
        return Exit.FAULT


def _parser_error(error: Any, words: list[str]) -> int:
    message = error.format_message()
    if not words:  # the message is the help page
        print(message)
        return Exit.BAD_INPUT
    if type(error).__name__ == "NoSuchOption":
        message += " (a pattern or text that begins with - goes after --)"
    return _usage(message, words)


def _usage(message: str, words: list[str]) -> int:
    names = {command.name for command in app.registered_commands}
    path = f"tokenfst {words[0]}" if words and words[0] in names else "tokenfst"
    complain(f"{message.rstrip('.')}; see: {path} --help")
    return Exit.BAD_INPUT


def main() -> None:
    """The entry point of the program ``tokenfst``.

    The command runs in a thread, so that an interrupt is heard at once: the native core does not listen for
    any.
    """
    prepare_streams()
    if "_TOKENFST_COMPLETE" in os.environ:  # the shell asks for completions
        app(prog_name="tokenfst")
    codes: list[int] = []
    threading.stack_size(_STACK)
    thread = threading.Thread(target=lambda: codes.append(run()), daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_LISTEN)
    except KeyboardInterrupt:
        with writing:  # a file that is being written becomes whole first
            leave_interrupted()
            os._exit(Exit.INTERRUPTED)
    sys.exit(codes[0])
