"""Artifacts as files: whole or not at all, read once and not copied, alive whatever becomes of the file."""

from __future__ import annotations

import gc
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from reference.tokens.small_automata import small_automaton
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArgumentTypeError, ArtifactError

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")


def make(seed: int) -> TokenAutomaton:
    return small_automaton(random.Random(seed)).expand()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def masks(automaton: TokenAutomaton) -> list[list[int]]:
    """The masks of the first states along some walk."""
    size = len(automaton.vocabulary)
    mask, found, matcher = np.zeros((1, (size + 31) // 32), np.int32), [], automaton.matcher()
    for _ in range(5):
        matcher.fill_next_token_bitmask(mask)
        found.append(mask[0].tolist())
        tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if matcher.is_terminated() or not matcher.accept_token(int(tokens[0])):
            break
    return found


def test_arrays_are_views_of_what_was_read(tmp_path: Path) -> None:
    make(8).save(tmp_path / "it")
    found = artifact.read(tmp_path / "it")
    for name, array in found.arrays.items():
        if isinstance(array, int):
            continue
        assert not array.flags.owndata and not array.flags.writeable, name
        assert array.flags.c_contiguous and array.flags.aligned, name
        assert array.ctypes.data % array.itemsize == 0, name
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_a_replaced_or_removed_file_stays_as_it_was_loaded(tmp_path: Path) -> None:
    path = tmp_path / "it"
    first, second = make(8), make(21)
    first.save(path)
    loaded = TokenAutomaton.load(path, first.vocabulary)
    before = masks(loaded)
    second.save(path)
    assert masks(loaded) == before == masks(first)
    assert masks(TokenAutomaton.load(path, second.vocabulary)) == masks(second)
    path.unlink()
    gc.collect()
    assert masks(loaded) == before


@pytest.mark.parametrize("change", [b"", b"x" * 40, bytes(100_000)])
def test_a_file_that_is_changed_in_place(change: bytes, tmp_path: Path) -> None:
    # Cut short (a mapped one would end the process), and with another content: neither is of consequence.
    path = tmp_path / "it"
    first = make(8)
    first.save(path)
    loaded = TokenAutomaton.load(path, first.vocabulary)
    with path.open("r+b") as file:
        file.write(change)
        file.truncate()
    assert masks(loaded) == masks(first)
    loaded.save(path)
    assert masks(TokenAutomaton.load(path, first.vocabulary)) == masks(first)


@pytest.mark.parametrize("left", [0, 5, 8, 9, 50, 200, -1])
def test_a_file_that_is_cut_short_while_it_is_read(
    left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, automaton = tmp_path / "it", make(8)
    automaton.save(path)
    size = path.stat().st_size
    fstat = os.fstat

    def cut(number: int) -> os.stat_result:
        found = fstat(number)
        os.truncate(path, left % size)
        return found

    monkeypatch.setattr(artifact.os, "fstat", cut)
    with pytest.raises(ArtifactError):
        artifact.read(path)


def test_matchers_keep_the_arrays_alive(tmp_path: Path) -> None:
    first = make(8)
    first.save(tmp_path / "it")
    matcher = TokenAutomaton.load(tmp_path / "it", first.vocabulary).matcher()
    (tmp_path / "it").unlink()
    gc.collect()
    mask, wanted = (np.zeros((1, (len(first.vocabulary) + 31) // 32), np.int32) for _ in range(2))
    matcher.fill_next_token_bitmask(mask)
    first.matcher().fill_next_token_bitmask(wanted)
    assert mask.tolist() == wanted.tolist()


def test_saving_over_the_file_that_was_loaded(tmp_path: Path) -> None:
    path = tmp_path / "it"
    make(8).save(path)
    data = path.read_bytes()
    loaded = TokenAutomaton.load(path, make(8).vocabulary)
    loaded.save(path)
    assert path.read_bytes() == data
    assert masks(loaded) == masks(make(8))


def test_nothing_stays_open(tmp_path: Path) -> None:
    make(8).save(tmp_path / "it")
    vocabulary = make(8).vocabulary
    before = len(names(Path("/proc/self/fd")))
    for _ in range(20):
        TokenAutomaton.load(tmp_path / "it", vocabulary)
    gc.collect()
    assert len(names(Path("/proc/self/fd"))) <= before


# --- writing that fails -----------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failures_leave_the_old_file_and_no_other(
    call: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    path = tmp_path / "it"
    make(8).save(path)
    data = path.read_bytes()
    monkeypatch.setattr(os if call == "fsync" else Path, call, fail)
    with pytest.raises(ArtifactError if isinstance(error, OSError) else KeyboardInterrupt) as caught:
        make(21).save(path)
    if isinstance(error, OSError):
        assert "cannot write the artifact" in str(caught.value) and "No space left" in str(caught.value)
    assert names(tmp_path) == ["it"]
    assert path.read_bytes() == data


def test_a_full_disk(tmp_path: Path) -> None:
    # A real one: the process may not write files beyond 1,000 bytes, and the disk says so in the middle of it.
    path = tmp_path / "it"
    make(8).save(path)
    data = path.read_bytes()
    assert len(data) > 1000
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(ArtifactError, match="File too large"):
            make(8).save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert names(tmp_path) == ["it"]
    assert path.read_bytes() == data


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    automaton = make(8)
    (tmp_path / "file").write_bytes(b"x")
    for path in (tmp_path / "none" / "it", tmp_path / "file" / "it", "null\0byte", tmp_path / ("x" * 300)):
        with pytest.raises(
            ArtifactError, match=r"cannot write the artifact .*What was there before is unchanged"
        ):
            automaton.save(path)
    for other in (5, b"it", None):
        with pytest.raises(ArgumentTypeError, match="save: path must be text or a path"):
            automaton.save(other)  # type: ignore[arg-type]
    with pytest.raises(ArtifactError, match="is not a file"):
        automaton.save(tmp_path)
    with pytest.raises(ArtifactError, match="is not a file"):
        automaton.save("/dev/null")
    assert names(tmp_path) == ["file"]


def test_a_folder_and_a_file_without_permission() -> None:
    automaton = make(8)
    # Not in tmp_path, which belongs to whoever runs the tests: they may be root, who needs no permission.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        automaton.save(folder / "it")
        artifact.read(folder / "it")
        (folder / "it").chmod(0o000)
        folder.chmod(0o555)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            with pytest.raises(ArtifactError, match=r"cannot write the artifact .*: Permission denied"):
                automaton.save(folder / "it")
            with pytest.raises(ArtifactError, match=r"cannot read the artifact .*: Permission denied"):
                artifact.read(folder / "it")
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o700)
        assert names(folder) == ["it"]


def test_names_and_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    automaton = make(8)
    automaton.save("plain")
    automaton.save("x" * 255)
    Path("link").symlink_to("target")
    automaton.save("link")
    assert Path("link").is_symlink() and Path("target").is_file()
    mask = os.umask(0)
    os.umask(mask)
    assert Path("plain").stat().st_mode & 0o777 == 0o666 & ~mask
    assert names(tmp_path) == sorted(["plain", "x" * 255, "link", "target"])


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "it"
    make(8).save(path)
    data = path.read_bytes()
    program = (
        "import os, sys, random, signal; sys.path.insert(0, sys.argv[1])\n"
        "from reference.tokens.small_automata import small_automaton\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "small_automaton(random.Random(21)).save(sys.argv[2])\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", program, str(Path(__file__).parents[2]), str(path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert path.read_bytes() == data


def test_many_writers_of_one_name(tmp_path: Path) -> None:
    # The name always holds one whole artifact.
    path = tmp_path / "it"
    program = (
        "import sys, random; sys.path.insert(0, sys.argv[1])\n"
        "from reference.tokens.small_automata import small_automaton\n"
        "it = small_automaton(random.Random(int(sys.argv[3]))).expand()\n"
        "for _ in range(40): it.save(sys.argv[2])\n"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", program, str(Path(__file__).parents[2]), str(path), seed]
        )
        for seed in ("8", "21")
    ]
    wanted = {make(8).source, make(21).source}
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            seen.add(artifact.read(path).source)
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seen <= wanted and artifact.read(path).source in wanted
    assert names(tmp_path) == ["it"]
