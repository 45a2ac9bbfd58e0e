"""The program as a whole: exit codes, streams, interrupts, what it imports, and faults of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.programs.command_line import tokenfst, write_toy

from tokenfst import __version__
from tokenfst.cli import program as commands
from tokenfst.cli.questions import checking

ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")}
COMMANDS = [
    "compile",
    "inspect",
    "check",
    "repair",
    "sample",
    "list",
    "count",
    "draw",
    "explore",
    "lint",
    "diff",
    "serve",
    "store",
    "vocab",
    "doctor",
]


def program(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tokenfst", *words],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
        timeout=60,
        **options,  # type: ignore[call-overload]
    )


def test_version_and_help() -> None:
    assert tokenfst("--version").out == f"tokenfst {__version__}\n"
    page = tokenfst("--help")
    assert page.code == 0 and all(f" {command} " in page.out for command in COMMANDS)
    assert list(commands.COMMANDS) == COMMANDS
    for command in COMMANDS:
        page = tokenfst(command, "--help")
        assert page.code == 0 and page.err == "" and ("--json" in page.out or command in ("serve", "store"))
    assert tokenfst("check", "-h").out == tokenfst("check", "--help").out


def test_no_arguments_show_the_help_page() -> None:
    done = tokenfst()
    assert done.code == 2 and "Usage: tokenfst" in done.out + done.err


def test_usage_errors_name_the_help_page() -> None:
    assert tokenfst("nonsense").err == "error: No such command 'nonsense'; see: tokenfst --help\n"
    for word, meant in (
        ("compil", "compile"),
        ("smaple", "sample"),
        ("estimate", "compile --estimate"),
        ("validate", "check"),
    ):
        assert f"No such command '{word}' (did you mean {meant}?)" in tokenfst(word, "a").err
    assert tokenfst("diff", "a").err == "error: Missing argument 'B'; see: tokenfst diff --help\n"
    assert tokenfst("sample", "a", "-n", "x").code == 2
    assert tokenfst("sample", "-a").err.endswith("goes after --); see: tokenfst sample --help\n")
    assert tokenfst("sample", "--", "-a").out == "-a\n"


def test_the_program_itself() -> None:
    done = program("check", "[0-9]+", "12", "1x")
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout.startswith('yes  "12"\nno   "1x"\n')
    assert "\x1b" not in done.stdout
    done = program("check", "(", "x")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(
        "error: missing ), unterminated"
    )


def test_starting_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom tokenfst.cli import run\nassert run(['--help']) == 0\nassert run(['check', 'a', 'a']) == 0\n"
        "print('loaded', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "numpy" in loaded
    heavy = {
        "pynini",
        "pywrapfst",
        "torch",
        "transformers",
        "tokenizers",
        "tiktoken",
        "sentencepiece",
        "mistral_common",
    }
    assert not loaded & heavy


def test_bytes_that_are_no_text_in_arguments() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tokenfst", "check", "a", b"\xffa"],
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert done.returncode == 1 and b'no   "\\xffa"' in done.stdout


def test_any_encoding_of_the_terminal_will_do() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tokenfst", "sample", "é"],
        capture_output=True,
        env=ENVIRONMENT | {"PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"\\xe9\n")


@pytest.mark.skipif(os.name != "posix", reason="pipes and signals as POSIX has them")
@pytest.mark.parametrize("command", ["sample", "list"])
@pytest.mark.parametrize("json", [[], ["--json"]], ids=["lines", "json"])
def test_a_closed_pipe_is_quiet(command: str, json: list[str]) -> None:
    """However many texts are asked for: each is printed as soon as it is there, and none is kept."""
    with subprocess.Popen(
        [sys.executable, "-m", "tokenfst", command, "a+", "-n", str(10**30), *json],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        assert running.stdout.read(2) in (b"a\n", b"aa", b'{"')
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(30) == 141


@pytest.mark.skipif(os.name != "posix", reason="pipes and signals as POSIX has them")
def test_an_interrupt_ends_long_work_and_leaves_nothing(tmp_path: Path) -> None:
    spec = write_toy(tmp_path)
    words = ["compile", "(a|b)*a(a|b){24}", "-v", spec, "-o", str(tmp_path / "x.safetensors")]
    budget = ["--budget-states", "100000000", "--budget-bytes", "4G"]
    with subprocess.Popen(
        [sys.executable, "-m", "tokenfst", *words, *budget],
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline().startswith("estimate: more than")
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        began = time.perf_counter()
        assert running.wait(30) == 130
        assert time.perf_counter() - began < 5
        assert running.stderr.read() == "error: interrupted\n"
    assert [path.name for path in tmp_path.iterdir()] == ["toy.json"]


def test_colours_are_for_terminals_only() -> None:
    pty = pytest.importorskip("pty")

    def on_a_terminal(environment: dict[str, str]) -> str:
        master, slave = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "tokenfst", "check", "a", "a"], stdout=slave, env=environment
        ) as running:
            assert running.wait(30) == 0
        os.close(slave)
        shown = os.read(master, 4096).decode()
        os.close(master)
        return shown

    terminal = ENVIRONMENT | {"TERM": "xterm-256color"}
    assert "\x1b[32m" in on_a_terminal(terminal)
    assert re.sub(r"\s", "", on_a_terminal(terminal | {"NO_COLOR": "1"})) == 'yes"a"'


def test_faults_of_our_own_are_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr(checking, "check_text", broken)
    done = tokenfst("check", "a", "a")
    assert done.code == 70 and "RuntimeError: oops" in done.err and "please report it" in done.err


@pytest.mark.parametrize(
    ("error", "code"), [(MemoryError(), 3), (PermissionError(13, "Permission denied", "x"), 2)]
)
def test_errors_of_the_machine(error: Exception, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(checking, "check_text", failing)
    done = tokenfst("check", "a", "a")
    assert done.code == code and done.err.startswith("error: ") and "Traceback" not in done.err


def test_shell_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda *_: ("bash", "/bin/bash"))
    assert tokenfst("--show-completion", "bash").code == 0
    complete = subprocess.run(
        [sys.executable, "-c", "from tokenfst.cli import main; main()"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT
        | {"_TOKENFST_COMPLETE": "complete_bash", "COMP_WORDS": "tokenfst ins", "COMP_CWORD": "1"},
        check=False,
    )
    assert complete.stdout.split() == ["inspect"]
