"""The commands of ``tokenfst``, and the handling of their errors.

The idea: a command is a function from its options to an exit code. It prints its answer on stdout, as text or
as one JSON object, and raises when there is none. ``run`` turns what was raised into ``error: ...`` on stderr
and an exit code; no command catches errors to print them.

Invariants: stdout holds the answer and nothing else; progress, estimates, warnings and errors go to stderr.
Starting up imports neither pynini nor torch nor a tokenizer package: the calls that need them do.

Rejected: Typer's own main, which draws errors in boxes, ends with code 1 for an interrupt or a closed pipe,
and shows a traceback for a missing file.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import tokenfst._native as _native
from tokenfst.cli.output.examples import epilog
from tokenfst.cli.output.exits import Exit, UsageError, prepare_streams
from tokenfst.errors import BudgetExceeded, TokenfstError, TokenfstWarning

_PARSER_ERROR: type[Exception] = typer.BadParameter.mro()[1]

COMMANDS = {
    "compile": (
        "artifacts.compiling",
        "Compile a pattern, a schema, a grammar or another constraint for a vocabulary, into an artifact.",
    ),
    "inspect": (
        "artifacts.inspecting",
        "Show what is in an artifact: source, sizes, masks, distances, and the states that allow the most tokens.",
    ),
    "check": ("questions.checking", "Check whether texts or token ids satisfy a constraint."),
    "repair": (
        "questions.repairing",
        "Repair a text: find the nearest text that satisfies a constraint, the one with the cheapest edits.",
    ),
    "sample": ("questions.sampling", "Draw random strings that satisfy a constraint, one on each line."),
    "list": (
        "questions.listing",
        "List the texts that satisfy a constraint, one on each line, shorter ones first.",
    ),
    "count": (
        "questions.counting",
        "Count the texts that satisfy a constraint: all of them, and those of each length in bytes.",
    ),
    "draw": (
        "questions.drawing",
        "Draw the automaton of a constraint: over bytes, or with --vocabulary over tokens.",
    ),
    "explore": (
        "services.exploring",
        "Serve a page to play with constraints: the automaton, the tokens allowed next, the mask at each step.",
    ),
    "lint": (
        "questions.linting",
        "Report what is suspicious about a grammar or a JSON Schema: unreachable and unproductive rules, cycles, left "
        "recursion, conflicts (where one stack is not enough), and keywords that constrain nothing. With --vocabulary, "
        "also report rules that no token sequence can spell; with --strict, what OpenAI's, Anthropic's or Gemini's "
        "structured outputs do not accept.",
    ),
    "diff": (
        "questions.comparing",
        "Compare two constraints: do they allow the same strings? If not, show a shortest string that only one of them "
        "allows.",
    ),
    "serve": (
        "services.serving",
        "Serve constraints over HTTP: compile, check, explain, compare and sample them.",
    ),
    "store": (
        "artifacts.stores",
        "Show and change a store of artifacts: list, contains, get, put, verify, prune, remove, new-key.",
    ),
    "vocab": (
        "artifacts.vocabularies",
        "Show what a vocabulary contains, and check that texts survive tokenization unchanged.",
    ),
    "doctor": (
        "services.doctor",
        "Report which packages are installed, which are missing and what they are for, and what the computer has.",
    ),
}
"""The module of each command, and the first paragraph of its help: modules are imported when their command is given."""


class _Program(TyperGroup):
    """The commands; a page that lists them imports none."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, summary = COMMANDS[cmd_name]
        if self._listing:
            return TyperCommand(cmd_name, help=summary)
        only = typer.Typer(add_completion=False, rich_markup_mode="rich")
        importlib.import_module(f"tokenfst.cli.{module}").register(only)
        if len(only.registered_commands) == 1:
            return typer.main.get_command(only)
        only.info.help, only.info.epilog, only.info.no_args_is_help = summary, epilog(cmd_name), True
        return typer.main.get_command(only)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


app = typer.Typer(
    name="tokenfst",
    cls=_Program,
    help="Constrain language models to formal languages, exactly: compile constraints into artifacts over "
    "token ids, and ask questions about them.",
    epilog="Exit codes: 0 yes or done, 1 no, 2 usage or bad input, 3 budget exceeded or out of memory, 70 a bug in "
    "tokenfst, 130 interrupted, 141 the reader of the output went away.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    code.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    command: Any = typer.main.get_command(app)
    try:
        with _telling_warnings(), command.make_context("tokenfst", words) as context:
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
        if threading.current_thread() is not threading.main_thread():
            threading.Event().wait()  # the main thread hears the same interrupt, and ends the process
        from tokenfst.cli.output.terminal import leave_interrupted

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
            "out of memory: make the constraint smaller, or set --budget-bytes below what this computer has"
        )
        return Exit.BUDGET
    except (TokenfstError, OSError) as error:
        complain(explain(error))
        return Exit.BAD_INPUT
    except Exception:
        import traceback

        traceback.print_exc()
        complain(
            "this is a bug in tokenfst, not an error in your input: please report it with the lines above"
        )
        return Exit.FAULT


def complain(text: str) -> None:
    """``terminal.complain``, which is imported when there is something to print."""
    from tokenfst.cli.output import terminal

    terminal.complain(text)


def explain(error: BaseException) -> str:
    """``terminal.explain``."""
    from tokenfst.cli.output import terminal

    return terminal.explain(error)


def _parser_error(error: Any, words: list[str]) -> int:
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":  # the message is the help page, unless that was printed
        print(message, end="\n" * bool(message))
        return Exit.BAD_INPUT
    if type(error).__name__ == "NoSuchOption":
        message += " (a pattern or text that begins with - goes after --)"
    if words and words[0][:1] != "-" and words[0] not in COMMANDS:
        message = message.rstrip(".") + _near_command(words[0])
    return _usage(message, words, error.ctx.command_path if error.ctx else "")


_MEANT = {
    "estimate": "compile --estimate", "validate": "check", "match": "check", "generate": "sample", "plot": "draw",
    "compare": "diff", "show": "inspect", "info": "inspect", "enumerate": "list", "server": "serve",
}  # fmt: skip
"""Names that people try, each with the command that does what is meant."""


def _near_command(word: str) -> str:
    near = [_MEANT[word]] if word in _MEANT else difflib.get_close_matches(word, COMMANDS, 1)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _usage(message: str, words: list[str], path: str = "") -> int:
    path = path or (f"tokenfst {words[0]}" if words and words[0] in COMMANDS else "tokenfst")
    complain(f"{message.rstrip('.')}; see: {path} --help")
    return Exit.BAD_INPUT


@contextlib.contextmanager
def _telling_warnings() -> Iterator[None]:
    """Prints tokenfst's warnings as the command line's own, without the line of the program that warned."""
    plain = warnings.showwarning

    def tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, TokenfstWarning):
            plain(message, category, *place, **more)
            return
        from tokenfst.cli.output.terminal import warn

        warn(str(message))

    with warnings.catch_warnings():
        warnings.showwarning = tell
        yield


def run_in_thread() -> int:
    """``run`` for the process's own command line, in another thread than the main one."""
    prepare_streams()
    _native.watch_interrupts()
    if "_TOKENFST_COMPLETE" in os.environ:  # the shell asks for completions
        from tokenfst.cli.input.completion import join_divided_words

        bash = os.environ["_TOKENFST_COMPLETE"] == "complete_bash"
        left_out = join_divided_words(os.environ) if bash else ""
        answers = io.StringIO()
        try:
            with contextlib.redirect_stdout(answers):
                app(prog_name="tokenfst")
        except SystemExit as stop:
            sys.stdout.write(
                "".join(each.removeprefix(left_out) for each in answers.getvalue().splitlines(True))
            )
            return stop.code if isinstance(stop.code, int) else Exit.YES
    return run()
