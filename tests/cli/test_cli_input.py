"""What the command line refuses, and says about it: options, files, streams, interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.programs.command_line import tokenfst, write_toy

from tokenfst.cli import program

POSIX = pytest.mark.skipif(os.name != "posix", reason="streams and signals as POSIX has them")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "person.json").write_text('{"type": "object", "properties": {"age": {"type": "integer"}}}')
    (tmp_path / "other.json").write_text('{"type": "array"}')
    (tmp_path / "sums.gbnf").write_text('root ::= "a" | root "+" root | "(" root ")"')
    (tmp_path / "labels.txt").write_text("one\ntwo\n")
    write_toy(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("compile a -v tokens:toy.json -o one.safetensors -o two.safetensors", "--output"),
        ("compile a -v tokens:toy.json --vocabulary tokens:toy.json --estimate", "--vocabulary"),
        ("check --flags i --flags s ab ab", "--flags"),
        ("check --json-schema person.json --json-schema other.json []", "--json-schema"),
        ("sample a|b --seed 1 --seed 1", "--seed"),
        ("check a --budget-seconds 1 --budget-seconds 2 a", "--budget-seconds"),
        ("vocab tokens:toy.json --samples 1 --samples 2", "--samples"),
    ],
)
def test_options_given_twice(folder: Path, words: str, option: str) -> None:
    done = tokenfst(*words.split())
    assert done.code == 2 and done.out == ""
    assert done.err.startswith(
        f"error: {option} is given twice: give it once; see: tokenfst {words.split()[0]} --help"
    )


def test_options_that_may_be_repeated(folder: Path) -> None:
    assert tokenfst("check", "a", "a", "--json", "--json").code == 0
    words = "--document", "u:x=person.json", "--document", "u:x=other.json"
    done = tokenfst("check", "--json-schema", "person.json", *words, "{}")
    assert done.code == 2 and "--document gives u:x twice" in done.err
    assert (
        tokenfst(
            "check", "--json-schema", "person.json", *words[:2], "--document", "u:y=other.json", "{}"
        ).code
        == 0
    )


def test_a_file_given_as_a_pattern(folder: Path) -> None:
    for name, option in (
        ("person.json", "--json-schema"),
        ("sums.gbnf", "--grammar"),
        ("labels.txt", "--file"),
    ):
        for command in ("check", "sample", "draw"):
            done = tokenfst(command, name, *(("x",) if command == "check" else ()))
            assert done.code == 2 and f"use {option} {name}" in done.err, (command, done)
    assert tokenfst("check", "(person.json)", "person.json").code == 0
    done = tokenfst("check", "missing.json", "missing.json")
    assert done.code == 0 and "warning: there is no file missing.json" in done.err
    assert tokenfst("check", r"a\.json", "a.json").err == ""


@pytest.mark.parametrize(
    "option", ["--file", "--json-schema", "--grammar", "--choices", "--hierarchy", "--concepts"]
)
def test_files_that_cannot_be_read(folder: Path, option: str) -> None:
    (folder / "latin.json").write_bytes(b'["caf\xe9"]')
    (folder / "inside").mkdir()
    (folder / "secret.json").write_text("[]")
    (folder / "secret.json").chmod(0)
    more = ["--ltlf", "F a"] if option == "--concepts" else []
    cases = [("missing.json", "missing.json"), ("inside", "inside"), ("latin.json", "UTF-8")]
    if os.name == "posix" and os.getuid() != 0:
        cases.append(("secret.json", "secret.json"))
    for name, word in cases:
        done = tokenfst("check", option, name, *more, "x")
        assert done.code == 2 and word in done.err and done.err.startswith("error: "), (name, done)
        assert "None" not in done.err and "Traceback" not in done.err


def test_files_that_cannot_be_written(folder: Path) -> None:
    (folder / "inside.safetensors").mkdir()
    for name, word in (("inside.safetensors", "folder"), ("missing/a.safetensors", "no folder")):
        done = tokenfst("compile", "a", "-v", "tokens:toy.json", "-o", name)
        assert done.code == 2 and word in done.err
    done = tokenfst("draw", "a", "-o", "missing/a.dot")
    assert done.code == 2 and "missing/a.dot" in done.err


def test_an_artifact_that_no_matcher_can_use(folder: Path) -> None:
    done = tokenfst("compile", "x", "-v", "tokens:toy.json", "-o", "none.safetensors")
    assert done.code == 2 and "no token sequence of toy spells a string of regex('x')" in done.err
    assert not (folder / "none.safetensors").exists()


def test_messages_name_what_to_do_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bytes.json").write_text(json.dumps({"tokens": ["a", "+", "(", ")", ""], "eos_token_id": 4}))
    (folder / "mirrored.gbnf").write_text('root ::= "a" root "a" | "+" root "+" | "a" | "+"')
    done = tokenfst(
        "compile", "--grammar", "mirrored.gbnf", "-v", "tokens:bytes.json", "-o", "it.safetensors"
    )
    assert done.code == 2 and "None" not in done.err and "--depth N" in done.err
    done = tokenfst("check", "--choices", "labels.txt", "--separator", ",", "--least", "3", "one")
    assert done.code == 2 and "no selection of 3 or more of 2 labels" in done.err
    monkeypatch.setenv("PATH", str(folder))
    done = tokenfst("draw", "a", "-o", "a.svg")
    assert done.code == 2 and "the format dot does without" in done.err and "format=" not in done.err


@pytest.mark.parametrize(
    "words",
    [
        "check a --vocabulary tokens:toy.json --tokens 99",
        "check a --vocabulary tokens:toy.json --tokens -1",
        "check a --vocabulary tokens:toy.json --tokens 99999999999999999999999999",
        "vocab tokens:toy.json --eos-token-id 99",
        "vocab tokens:toy.json --eos-token-id 99999999999999999999999999",
        "vocab tokens:toy.json --vocab-size 3",
        "vocab tokens:toy.json --vocab-size 99999999999999999999999999",
        "sample a -n -1",
        "check a --budget-states 0 a",
        "check a --budget-seconds nan a",
        "check a --budget-bytes -5 a",
        "check a --budget-states 99999999999999999999999999 a",
        "compile (?P<IMAGE>) -v tokens:toy.json --token-class IMAGE=99 -o a.safetensors",
    ],
)
def test_numbers_out_of_range(folder: Path, words: str) -> None:
    done = tokenfst(*words.split())
    assert done.code == 2 and done.err.startswith("error: ") and "Traceback" not in done.err, done


def test_the_list_of_commands_says_what_their_pages_say() -> None:
    for name, (_, summary) in program.COMMANDS.items():
        words = " ".join(tokenfst(name, "--help").out.split())
        assert summary in words, name
    assert all(str(code.value) in tokenfst("--help").out for code in program.Exit)


# --- the program in a process of its own --------------------------------------------------------------


def started(*words: str, shell: str = "", **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tokenfst", *words]
    if shell:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)  # type: ignore[call-overload]


@POSIX
def test_closed_streams(folder: Path) -> None:
    assert (done := started("check", "a", "a", shell=">&-")).returncode == 0 and done.stderr == ""
    assert (done := started("check", "a", "b", shell=">&-")).returncode == 1 and done.stderr == ""
    words = "compile", "a", "-v", "tokens:toy.json", "-o", "a.safetensors"
    assert (done := started(*words, shell=">&-")).returncode == 0 and "Traceback" not in done.stderr
    assert tokenfst("inspect", "a.safetensors").code == 0
    done = started("check", "a", shell="<&-")
    assert done.returncode == 0 and done.stderr.startswith("warning: stdin is empty")
    assert started("check", "(", "a", shell="2>&-").returncode == 2
    assert started("check", "a", "b", shell="<&- >&- 2>&-").returncode == 1


@POSIX
def test_errors_that_nobody_reads_keep_their_exit_code(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tokenfst", "check", "(", "a"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stderr is not None
        running.stderr.close()
        assert running.wait(120) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_device(folder: Path) -> None:
    done = started("check", "a", "a", shell=">/dev/full")
    assert done.returncode == 2 and done.stderr.count("error: ") == 1 and "No space left" in done.stderr
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@POSIX
def test_an_interrupt_is_heard_while_the_program_starts(folder: Path) -> None:
    """From the first line of its own on: what the interpreter does before is not in its hand."""
    code = (
        "import os, signal, sys, threading\n"
        "from tokenfst import cli\n"
        "real, begun = threading.Thread.start, []\n"
        "def start(thread):\n"
        "    real(thread)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread.start = start\n"
        "sys.argv = ['tokenfst', 'check', 'a', 'a']\n"
        "cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


@POSIX
def test_an_interrupt_is_heard_inside_of_the_core(folder: Path) -> None:
    """The core itself hears it, within 0.2 seconds of its own time: here the main thread is busy in it."""
    code = (
        "import tokenfst\n"
        "from tokenfst import _native\n"
        "_native.watch_interrupts()\n"
        "budget = tokenfst.Budget(states=10**8, bytes=4 << 30, seconds=100)\n"
        "language = tokenfst.regex('(a|b)*a(a|b){24}', budget=budget)\n"
        "print('begun', flush=True)\n"
        "try:\n"
        "    language.determinize()\n"
        "except KeyboardInterrupt:\n"
        "    print('heard', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stdout.readline() == "begun\n"
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        before = cpu_seconds(running.pid)
        assert running.stdout.readline() == "heard\n"
        assert cpu_seconds(running.pid) - before < 0.2
        assert running.wait(60) == 0


def cpu_seconds(process: int) -> float:
    """What a process has used, as the system counts it."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_json_answers_stay_whole(folder: Path) -> None:
    done = tokenfst("check", "a", "a", "--json")
    assert json.loads(done.out)["accepted"] is True
